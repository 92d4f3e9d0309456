"""The base classes of maps, tasks and optimizers that are written in Python (docs/PYTHON.md).

The annotated fields of a class are its options, which an experiment sets next to `plugin: python`; the comment after
a field says what it means. They are of type bool, int, float, str, a list of int, float or str, or a Literal of
strings. Objects have their options as attributes before __init__ is called, which takes no arguments; it and the
methods called first refuse options that do not fit by raising stiefel.Error.

Everything is called in one thread of a process of its own, stiefel.worker. Arrays are NumPy arrays of the run's number
type, `self.dtype`; those that a method gets are its own copies unless it says otherwise.

A class that keeps anything between calls, other than what follows from its options, saves it: state() returns a
dictionary from names, which are made of a–z, 0–9 and _, to numbers or to arrays of float32, float64 or int64, and
load(state) takes the same. Names and shapes are those of the first call, before anything else is done.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping

if typing.TYPE_CHECKING:
    import numpy as np

Arrays = Mapping[str, typing.Any]


class _Role:
    dtype: typing.ClassVar[np.dtype]
    """float32 or float64."""

    def state(self) -> Arrays:
        """What a resumed run needs to continue exactly; by default nothing."""
        return {}

    def load(self, state: Arrays) -> None:
        """Restores what state() returned."""


class Map(_Role):
    """A recurrent map: the matrix W(θ), which acts on columns, and its pullback.

    Maps are real and square by default. Parameters are real; their shapes have at most two dimensions.
    """

    claim: typing.ClassVar[str | tuple[float, float]] = "none"
    """What holds for every θ: "orthogonal", or bounds of the singular values of W."""
    rectangular: typing.ClassVar[bool] = False
    """Whether rows and cols may differ."""
    complex: typing.ClassVar[bool] = False
    """Whether W is complex, of complex64 or complex128; rows and cols count complex numbers."""
    rows: typing.ClassVar[int]
    cols: typing.ClassVar[int]
    n: typing.ClassVar[int]
    """Rows of W."""

    def parameters(self, n: int) -> Mapping[str, tuple[int, ...]]:
        """Returns the shape of each parameter by its name, in the order of the blocks."""
        raise NotImplementedError

    def initial(self, rng: np.random.Generator) -> Arrays:
        """Returns the parameters at step 0."""
        raise NotImplementedError

    def matrix(self, **parameters: typing.Any) -> typing.Any:
        """Returns W, rows × cols, for parameters that are given by their names.

        If the file has imported torch or jax, the first call gets parameters of that library. If it returns an array
        of that library, the library differentiates W, and `pullback` is not needed. JAX calls it with tracers.
        """
        raise NotImplementedError

    # Optional; whether a class has one is asked of the class.
    #
    # pullback(self, dW, **parameters): returns the derivatives of ⟨dW, W(θ)⟩ by name, for the parameters of the last
    #     call of matrix. With it, matrix gets and returns NumPy arrays. For a complex W, dW is ∂L/∂Re W + i ∂L/∂Im W.
    # penalty(self, **parameters): returns a number that is added to the loss, computed with the same library as W; for
    #     NumPy, the number and its derivatives by name.
    # after_step(self, **parameters): returns those parameters that a projection replaces after an optimizer step, by
    #     name; all are NumPy arrays. A second call must change nothing.
    # record(self): returns numbers by name, for the result file; the same names at every call.


class Task(_Role):
    """Sequences with targets. The loss is computed by the program."""

    loss: typing.ClassVar[str] = ""
    """mean_square, softmax_cross_entropy (of labels), or bernoulli (of targets 0 and 1); by default one of the first
    two."""
    baseline: typing.ClassVar[float] = float("nan")
    """The loss that the constant predictor reaches."""
    trivial: typing.ClassVar[typing.Sequence[float]] = ()
    """What this predictor outputs at every step; by default zeros."""
    seed: typing.ClassVar[int]
    batch_size: typing.ClassVar[int]
    """Sequences of a training batch."""
    data_directory: typing.ClassVar[str]
    """The folder for data, which may be empty; relative paths start in the folder in which the run was started."""

    def shape(self) -> Mapping[str, typing.Any]:
        """Returns the sizes by name: `steps`, the length of the longest sequence, and `output_size` are required.

        input_size numbers of a step, or number of symbols; input = "dense", "symbols" or "none"; readout = "every" step
        or only the "last"; labels = True if targets are class numbers; streams = True if batch i + 1 continues the
        sequences of batch i; training_set, the number of training sequences if it is finite; predicts_inputs = True if
        targets are later inputs.
        """
        raise NotImplementedError

    def batches(self, split: str) -> int:
        """Returns the batches in a pass over the split "train", "validation" or "test"; 0 if it does not exist."""
        raise NotImplementedError

    def batch(self, split: str, index: int) -> Arrays:
        """Returns batch number `index` ≥ 0 of the split, a function of self.seed, split and index alone.

        Training continues past batches("train"). The arrays are, with sequences first and steps second:
        `inputs` (B, T, input_size) or `symbols` (B, T), −1 for a zero vector; `targets` (B, T, output_size) or `labels`
        (B, T), for the readout "last" without T; if sequences differ in length, `lengths` (B,); if outputs count
        differently, `weights` like labels. `rng(split, index)` gives the random numbers.
        """
        raise NotImplementedError

    def rng(self, split: str, index: int) -> np.random.Generator:
        """Returns a generator that depends on self.seed, split and index alone."""
        import numpy as np

        return np.random.default_rng([self.seed, ("train", "validation", "test").index(split), index])

    def files(self) -> Iterable[str]:
        """Returns the paths of the data files, relative to the folder in which the run was started."""
        return ()


class Block(typing.NamedTuple):
    """A block of parameters that an optimizer moves."""

    name: str
    shape: tuple[int, ...]


class Optimizer(_Role):
    """Moves blocks of parameters along their gradients. The program applies schedules, weight decay and clipping."""

    decouples: typing.ClassVar[bool] = False
    """Whether weight decay shrinks the parameters before each step instead of adding to the gradient."""

    def attach(self, blocks: list[Block]) -> None:
        """Called once, before the first step: creates the state of each block."""

    def step(self, block: int, rate: float, theta: np.ndarray, gradient: np.ndarray) -> None:
        """Changes `theta` in place, the parameters of block number `block` of attach(); `gradient` is read-only."""
        raise NotImplementedError


def torch_optimizer(make: typing.Callable[..., typing.Any], **options: typing.Any) -> type[Optimizer]:
    """Returns the optimizer class that wraps a class of torch.optim: `Adam = stiefel.torch_optimizer(torch.optim.Adam)`.

    Keyword arguments are passed on, except the rate, which the experiment sets.
    """
    import numpy as np
    import torch

    class Wrapped(Optimizer):
        def attach(self, blocks: list[Block]) -> None:
            kind = torch.from_numpy(np.empty(0, self.dtype)).dtype
            self.parameters = [torch.zeros(block.shape, dtype=kind, requires_grad=True) for block in blocks]
            self.optimizers = [make([parameter], lr=1.0, **options) for parameter in self.parameters]

        def step(self, block: int, rate: float, theta: np.ndarray, gradient: np.ndarray) -> None:
            parameter, optimizer = self.parameters[block], self.optimizers[block]
            for group in optimizer.param_groups:
                group["lr"] = rate
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(theta))
            parameter.grad = torch.from_numpy(gradient.copy())
            optimizer.step()
            theta[...] = parameter.detach().numpy()

        def _fresh(self, block: int) -> dict[str, typing.Any]:
            """The state after a first step of zero length, for its names and shapes."""
            parameter = self.parameters[block].detach().clone().requires_grad_()
            parameter.grad = torch.zeros_like(parameter)
            optimizer = make([parameter], lr=0.0, **options)
            optimizer.step()
            return optimizer.state_dict()["state"].get(0, {})

        def state(self) -> dict[str, typing.Any]:
            saved: dict[str, typing.Any] = {}
            for block, optimizer in enumerate(self.optimizers):
                own = optimizer.state_dict()["state"].get(0, {})
                saved[f"begun_{block}"] = int(bool(own))
                for name, value in (own or self._fresh(block)).items():
                    if value is None:
                        continue
                    array = value.detach().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
                    saved[f"{name}_{block}"] = array if own else np.zeros_like(array)
            return saved

        def load(self, state: Arrays) -> None:
            for block, optimizer in enumerate(self.optimizers):
                if not state[f"begun_{block}"]:
                    continue
                own = {
                    name: torch.from_numpy(np.array(state[f"{name}_{block}"]))
                    if isinstance(value, torch.Tensor)
                    else value
                    if value is None
                    else type(value)(state[f"{name}_{block}"])
                    for name, value in self._fresh(block).items()
                }
                optimizer.load_state_dict({**optimizer.state_dict(), "state": {0: own}})

    Wrapped.__name__ = getattr(make, "__name__", "Wrapped")
    return Wrapped
