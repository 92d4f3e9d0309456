"""Objects of the classes in a Python file, and the memory that each shares with the program."""

from __future__ import annotations

import inspect
import mmap
import os
import re
import sys
import typing

import numpy as np

from stiefel import roles
from stiefel.process import Error
from stiefel.source import DIVERGED, USAGE, Fault, Field, Source, article, end_if_forked, method_of, named

Arrays = dict[str, typing.Any]
Method = typing.Callable[..., typing.Any]
_SPLITS = ("train", "validation", "test")


class Memory:
    """Memory that is shared with the program, as NumPy arrays: their places are told to the program."""

    def __init__(self, sizes: typing.Iterable[int]):
        """Makes room for parts of these sizes in bytes."""
        self.offsets: list[int] = []
        end = 0
        for size in sizes:
            self.offsets.append(end)
            end += -(-size // 64) * 64
        self.descriptor = os.memfd_create("stiefel-python", os.MFD_CLOEXEC)
        os.ftruncate(self.descriptor, max(end, 64))
        self._map = mmap.mmap(self.descriptor, max(end, 64))
        self._map.madvise(mmap.MADV_DONTFORK)

    def array(self, part: int, shape: tuple[int, ...], dtype: typing.Any, order: str = "F") -> typing.Any:
        end_if_forked()
        return np.ndarray(shape, dtype, self._map, self.offsets[part], order=typing.cast(typing.Any, order))


def _library(value: typing.Any) -> str:
    """numpy, torch, jax, or the name of the type."""
    if isinstance(value, np.ndarray):
        return "numpy"
    for name in ("torch", "jax"):
        module = sys.modules.get(name)
        if module and isinstance(value, module.Tensor if name == "torch" else module.Array):
            return name
    return type(value).__name__


def _as_numpy(value: typing.Any) -> typing.Any:
    """An array of torch or JAX as one of NumPy; anything else as it is."""
    library = _library(value)
    if library == "torch":
        return value.detach().resolve_conj().resolve_neg().numpy()
    return np.asarray(value) if library == "jax" else value


def _checked(
    value: typing.Any, shape: tuple[int, ...], dtype: typing.Any, what: str, like: str = "self.dtype"
) -> typing.Any:
    """The value as a NumPy array of this shape and type; a Fault says what it is instead."""
    if value is None:
        raise Fault(f"{what} is None, not an array: is a `return` missing?")
    library, value = _library(value), _as_numpy(value)
    if not isinstance(value, np.ndarray):
        raise Fault(f"{what} is {article(type(value).__name__)}, not an array")
    if value.shape != shape:
        raise Fault(f"{what} has the shape {value.shape}, but must have {shape}")
    if value.dtype != dtype and dtype == np.int32:
        cast = ".long()" if library == "torch" else ".astype(int)"
        raise Fault(f"{what} is {value.dtype}, but must be of integers: use {cast}")
    if value.dtype != dtype:
        like = like if library in ("torch", "jax") else "self.dtype"
        advice = f"the run computes in {dtype}: use dtype={like}" if dtype.kind == "f" else f"must be {dtype}"
        raise Fault(f"{what} is {value.dtype}, but {advice}")
    return value


def _finite(values: typing.Iterable[typing.Any]) -> bool:
    return all(np.isfinite(value).all() for value in values)


class Subject:
    """An object of the file's class, its options set."""

    def __init__(self, source: Source, scalar: str, options: dict[str, typing.Any], **attributes: typing.Any):
        self.kind, self.name = source.kind, source.kind.__name__
        self.dtype = np.dtype(scalar)
        self.object: typing.Any = object.__new__(source.kind)
        for name, value in {**options, **attributes, "dtype": self.dtype}.items():
            setattr(self.object, name, value)
        self.object.__init__()

    def settle_state(self) -> list[Field]:
        """Notes the names and shapes of the state. Returns their number, then name, type and size of each."""
        self.form = {name: (value.dtype, value.shape) for name, value in self._state().items()}
        fields: list[Field] = [len(self.form)]
        for name, (dtype, shape) in self.form.items():
            fields += [name, str(dtype), _count(shape)]
        return fields

    def _state(self) -> dict[str, typing.Any]:
        state = self.object.state()
        what = method_of(self.kind, "state")
        if not isinstance(state, typing.Mapping):
            raise Fault(f"{what} returns {article(type(state).__name__)}, but must return a dictionary")
        arrays = {}
        for name, value in state.items():
            array = np.asarray(value)
            if array.dtype.kind in "bu" and array.dtype.itemsize < 8:
                array = array.astype(np.int64)
            if array.dtype not in (np.float32, np.float64, np.int64):
                raise Fault(
                    f"{what} has `{name}`, {article(type(value).__name__)}, which cannot be saved: return numbers, and "
                    "arrays of float32, float64 or int64"
                )
            if not re.fullmatch("[a-z0-9_]+", str(name)):
                raise Fault(f"{what} has `{name}`, but names are made of a–z, 0–9 and _")
            arrays[str(name)] = array
        return arrays

    def save(self, memory: Memory, first: int) -> None:
        state = named(self._state(), self.form, method_of(self.kind, "state"))
        for k, (name, (dtype, shape)) in enumerate(self.form.items()):
            value = state[name]
            if (value.dtype, value.shape) != (dtype, shape):
                raise Fault(
                    f"{method_of(self.kind, 'state')} has `{name}`, which was {dtype} {shape} at first and is now "
                    f"{value.dtype} {value.shape}, which cannot be saved: keep its size"
                )
            memory.array(first + k, shape, dtype)[...] = value

    def load(self, memory: Memory, first: int) -> None:
        self.object.load(
            {
                name: memory.array(first + k, shape, dtype).copy()
                if shape
                else memory.array(first + k, shape, dtype)[()]
                for k, (name, (dtype, shape)) in enumerate(self.form.items())
            }
        )

    def state_sizes(self) -> list[int]:
        return [dtype.itemsize * _count(shape) for dtype, shape in self.form.values()]


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count


# How W is differentiated: call(parameters) computes it with arrays of the library, and pullback(dW) returns its
# derivatives by name.


class ByHand:
    library = "numpy"

    def __init__(self, f: Method, pullback: Method | None):
        self._f, self._pullback = f, pullback

    def call(self, parameters: Arrays) -> typing.Any:
        self._parameters = parameters
        return self._f(**parameters)

    def pullback(self, dW: typing.Any) -> typing.Any:
        assert self._pullback
        return self._pullback(dW=dW, **self._parameters)


class ByTorch:
    library = "torch"

    def __init__(self, f: Method, _: typing.Any):
        self._f, self._torch = f, sys.modules["torch"]

    def call(self, parameters: Arrays) -> typing.Any:
        torch: typing.Any = self._torch
        self._parameters = {name: torch.from_numpy(value).requires_grad_() for name, value in parameters.items()}
        with torch.enable_grad():
            self._value = self._f(**self._parameters)
        return self._value

    def pullback(self, dW: typing.Any) -> typing.Any:
        torch: typing.Any = self._torch
        given = list(self._parameters.values())
        found = [None] * len(given)
        if self._value.requires_grad:
            value = torch.from_numpy(dW)
            found = torch.autograd.grad(self._value, given, value, retain_graph=True, allow_unused=True)
        return {
            name: _as_numpy(torch.zeros_like(parameter) if grad is None else grad)
            for (name, parameter), grad in zip(self._parameters.items(), found)
        }


class ByJax:
    library = "jax"

    _compiled: typing.ClassVar[dict[typing.Any, tuple[Method, Method]]] = {}

    def __init__(self, f: Method, key: typing.Any):
        """Compiles f once for all objects with this key; None: f may depend on what changes in the object."""
        self._jax: typing.Any = sys.modules["jax"]
        functions = self._compiled.get(key)
        if functions is None:
            compiled = self._jax.jit if key else lambda function: function
            functions = (
                compiled(lambda arrays: self._jax.vjp(lambda given: f(**given), arrays)),
                compiled(lambda vjp, dW: vjp(dW)[0]),
            )
        if key:
            self._compiled[key] = functions
        self._forward, self._backward = functions

    def call(self, parameters: Arrays) -> typing.Any:
        if any(v.dtype == np.float64 for v in parameters.values()) and not self._jax.config.jax_enable_x64:
            raise Fault(
                'JAX computes without 64 bits, but the run in float64: put `jax.config.update("jax_enable_x64", True)` '
                "after `import jax`, or `scalar: float32` in the experiment"
            )
        arrays = {name: self._jax.numpy.asarray(value) for name, value in parameters.items()}
        value, self._vjp = self._forward(arrays)
        return value

    def pullback(self, dW: typing.Any) -> typing.Any:
        conjugated = self._jax.numpy.asarray(np.conj(dW))  # a vjp multiplies complex numbers without conjugation
        grads = self._backward(self._vjp, conjugated)
        return {name: np.asarray(grad) for name, grad in grads.items()}


class MapObject:
    """A map: parts of the memory are θ, dθ, W, dW and the state."""

    def __init__(self, source: Source, scalar: str, rows: int, cols: int, options: dict[str, typing.Any]):
        if rows != cols and not source.kind.rectangular:  # type: ignore[attr-defined]
            raise Error(f"{source.kind.__name__} needs a square map, but this one has {rows} rows and {cols} columns")
        self.memory_shape = (rows, cols)
        self.complex = bool(source.kind.complex)  # type: ignore[attr-defined]
        if self.complex:
            rows, cols = rows // 2, cols // 2
        self.subject = Subject(source, scalar, options, rows=rows, cols=cols, n=rows)
        self.object, self.name = self.subject.object, self.subject.name
        self.shape, self.dtype = (rows, cols), self.subject.dtype
        self.entries = np.result_type(self.dtype, np.complex64) if self.complex else self.dtype
        self.kind = source.kind
        shapes = self.object.parameters(rows)
        if not isinstance(shapes, typing.Mapping):
            raise Fault(
                f"{self._method('parameters')} returns {article(type(shapes).__name__)}, but must return a dictionary"
            )
        self.shapes = {str(k): tuple(int(d) for d in ((v,) if isinstance(v, int) else v)) for k, v in shapes.items()}
        for name, shape in self.shapes.items():
            if len(shape) not in (1, 2) or min(shape) < 0:
                raise Fault(f"the parameter {name} of {self.name} has the shape {shape}: one or two sizes are possible")
        for method in ("matrix", "pullback", "penalty", "after_step"):
            if self._has(method):
                self._demand_names(method, ["dW"] if method == "pullback" else [])
        keeps_state = source.kind.state is not roles.Map.state  # type: ignore[attr-defined]
        self.key = None if keeps_state else (rows, cols, scalar, repr(sorted(options.items())))
        self.matrix_by: typing.Any = None
        self.penalty_by: typing.Any = None

    def _has(self, method: str) -> bool:
        return callable(getattr(self.kind, method, None))

    def _demand_names(self, method: str, first: list[str]) -> None:
        """Refuses a method whose arguments have other names than the parameters."""
        signature = inspect.signature(getattr(self.object, method))
        try:
            signature.bind(**dict.fromkeys([*first, *self.shapes]))
        except TypeError:
            raise Fault(
                f"{self._method(method)} takes {', '.join(signature.parameters) or 'nothing'}, but must take "
                f"{', '.join([*first, *self.shapes]) or 'nothing'}: the parameters that parameters() names",
                USAGE,
            ) from None

    def created(self) -> tuple[list[Field], int]:
        claim = self.object.claim
        bounds = claim if isinstance(claim, tuple) and len(claim) == 2 else (0.0, 0.0)
        if claim not in ("none", "orthogonal") and bounds is not claim:
            raise Fault(f'claim of {self.name} is {claim!r}; it can be "none", "orthogonal" or a pair of bounds', USAGE)
        fields: list[Field] = [len(self.shapes)]
        for name, shape in self.shapes.items():
            fields += [name, *(shape if len(shape) == 2 else (shape[0], 0))]
        fields += ["bounded" if bounds is claim else claim, float(bounds[0]), float(bounds[1])]
        fields += [int(self._has(m)) for m in ("penalty", "after_step", "record")]
        fields += self.subject.settle_state()
        size = self.dtype.itemsize
        count, matrix = sum(map(_count, self.shapes.values())), _count(self.memory_shape)
        self.memory = Memory([count * size, count * size, matrix * size, matrix * size, *self.subject.state_sizes()])
        return [*fields, len(self.memory.offsets), *self.memory.offsets], self.memory.descriptor

    def _view(self, part: int) -> typing.Any:
        """W (2) or dW (3); a complex matrix A + iB is [[A, −B], [B, A]]."""
        return self.memory.array(part, self.memory_shape, self.dtype)

    def _blocks(self, part: int) -> dict[str, typing.Any]:
        """Views of θ (0) or dθ (1)."""
        count = sum(map(_count, self.shapes.values()))
        flat = self.memory.array(part, (count,), self.dtype)
        views, place = {}, 0
        for name, shape in self.shapes.items():
            views[name] = flat[place : place + _count(shape)].reshape(shape, order="F")
            place += _count(shape)
        return views

    def _method(self, name: str) -> str:
        return method_of(self.kind, name)

    def _array(self, value: typing.Any, shape: tuple[int, ...], what: str, dtype: typing.Any = None) -> typing.Any:
        """The value as an array of the map; a Fault if it is not finite, but all that it is computed from."""
        value = _checked(value, shape, dtype or self.dtype, what, f"{next(iter(self.shapes), 'self')}.dtype")
        if not _finite([value]) and _finite([*self._blocks(0).values(), self._view(3)]):
            bad = np.argwhere(~np.isfinite(value))[0]
            raise Fault(
                f"{what} is {value[tuple(bad)]} at {tuple(bad.tolist())}, computed from finite numbers", DIVERGED
            )
        return value

    def _parameters(self) -> dict[str, typing.Any]:
        return {name: view.copy() for name, view in self._blocks(0).items()}

    def _assign(self, part: int, values: dict[str, typing.Any], what: str) -> None:
        for name, view in self._blocks(part).items():
            if name in values:
                view[...] = self._array(values[name], view.shape, f"{what}: `{name}`")

    def initial(self, seed: int) -> list[Field]:
        what = self._method("initial")
        values = named(self.object.initial(np.random.default_rng(seed % 2**64)), self.shapes, what)
        for name, value in values.items():
            value = values[name] = _as_numpy(value)
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":  # a generator's numbers are float64
                values[name] = value.astype(self.dtype)
        self._assign(0, values, what)
        return []

    def _differentiated(self, method: str) -> typing.Any:
        """How the values of a method are differentiated: by the first library that computes one from the first θ."""
        f, by_hand = getattr(self.object, method), getattr(self.object, "pullback", None)
        if by_hand:
            return ByHand(f, by_hand)
        failure: Exception | None = None
        for route in (ByTorch, ByJax):
            if route.library in sys.modules:
                by = route(f, self.key and (method, *self.key))
                try:
                    value = by.call(self._parameters())
                    if value is None:
                        raise Fault(f"{self._method(method)} returns None: is a `return` missing?")
                    if _library(value) == by.library:
                        return by
                except Exception as error:  # noqa: BLE001 — of the user's method
                    failure = failure or error
        if failure:
            raise failure
        raise Fault(
            f"{self._method(method)} is not computed with torch or JAX, which know its derivatives: write "
            f"pullback(self, dW, {', '.join(self.shapes)}), or import torch or jax and use it"
        )

    def matrix(self) -> list[Field]:
        self.matrix_by = self.matrix_by or self._differentiated("matrix")
        W = self.matrix_by.call(self._parameters())
        W = self._array(W, self.shape, self._method("matrix"), self.entries)
        self._view(2)[...] = np.block([[W.real, -W.imag], [W.imag, W.real]]) if self.complex else W
        return []

    def _differentiate(self, method: str, by: typing.Any, dW: typing.Any) -> None:
        by_hand = isinstance(by, ByHand)
        what = self._method("pullback" if by_hand else method)
        if not by_hand:
            what += f", differentiated by {by.library}"
        self._assign(1, named(by.pullback(dW), self.shapes, what), what)

    def pullback(self) -> list[Field]:
        dW = self._view(3).copy()
        if self.complex:
            n, m = self.shape
            dW = (dW[:n, :m] + dW[n:, m:] + 1j * (dW[n:, :m] - dW[:n, m:])).astype(self.entries)
        self._differentiate("matrix", self.matrix_by, dW)
        return []

    def penalty(self) -> list[Field]:
        what = self._method("penalty")
        self.penalty_by = self.penalty_by or self._differentiated("penalty")
        value = self.penalty_by.call(self._parameters())
        if isinstance(self.penalty_by, ByHand):
            if not isinstance(value, tuple) or len(value) != 2:
                raise Fault(f"{what} must return its value and a dictionary of derivatives")
            value, grads = value
            self._assign(1, named(grads, self.shapes, what), what)
            return [float(self._array(np.asarray(value, self.dtype), (), what))]
        self._differentiate("penalty", self.penalty_by, np.ones((), self.dtype))
        return [float(self._array(value, (), what))]

    def after_step(self) -> list[Field]:
        what = self._method("after_step")
        changed = self.object.after_step(**self._parameters())
        self._assign(0, {} if changed is None else named(changed, self.shapes, what, all_of_them=False), what)
        return []

    def record(self) -> list[Field]:
        scalars = self.object.record()
        fields: list[Field] = [len(scalars)]
        for name, value in scalars.items():
            fields += [str(name), float(value)]
        return fields

    def save(self) -> list[Field]:
        self.subject.save(self.memory, 4)
        return []

    def load(self) -> list[Field]:
        self.subject.load(self.memory, 4)
        return []


class TaskObject:
    """A task: parts of the memory are inputs or symbols, targets or labels, weights and lengths of the last batch."""

    SHAPE: typing.ClassVar[dict[str, typing.Any]] = {
        "input": "dense", "input_size": 0, "output_size": 0, "readout": "every", "labels": False, "steps": 0,
        "streams": False, "training_set": 0, "predicts_inputs": False,
    }  # fmt: skip

    def __init__(self, source: Source, scalar: str, seed: int, batch: int, data: str, options: dict[str, typing.Any]):
        self.subject = Subject(source, scalar, options, seed=seed, batch_size=batch, data_directory=data)
        self.object, self.name, self.dtype = self.subject.object, self.subject.name, self.subject.dtype
        what = method_of(source.kind, "shape")
        self.shape = {**self.SHAPE, **named(self.object.shape(), self.SHAPE, what, all_of_them=False)}
        for name, default in self.SHAPE.items():
            value = self.shape[name]
            right = isinstance(value, str if isinstance(default, str) else (bool, int))
            if not right or (isinstance(default, int) and value < 0):
                raise Fault(f"`{name}` of {what} is {value!r}, but must be like {default!r}", USAGE)
        for name, choices in (("input", ("dense", "symbols", "none")), ("readout", ("every", "last"))):
            if self.shape[name] not in choices:
                raise Fault(f"`{name}` of {what} is {self.shape[name]!r}; choose from {', '.join(choices)}", USAGE)
        losses = ("mean_square", "softmax_cross_entropy", "bernoulli")
        self.loss = self.object.loss or losses[bool(self.shape["labels"])]
        if self.loss not in losses:
            raise Fault(f"loss of {self.name} is {self.loss!r}; choose from {', '.join(losses)}", USAGE)
        if (self.loss == "softmax_cross_entropy") != bool(self.shape["labels"]):
            raise Fault(f"loss of {self.name} is {self.loss}, but labels is {self.shape['labels']}", USAGE)
        self.memory: Memory | None = None
        self.sizes: list[int] = []

    def created(self) -> tuple[list[Field], int]:
        s = self.shape
        files = [os.fspath(path) for path in self.object.files()]
        fields: list[Field] = [s[name] if isinstance(s[name], str) else int(s[name]) for name in self.SHAPE]
        trivial = list(self.object.trivial) or [0.0] * s["output_size"]
        if len(trivial) != s["output_size"]:
            raise Fault(
                f"trivial of {self.name} has {len(trivial)} numbers, but there are {s['output_size']} outputs", USAGE
            )
        fields += [self.loss, float(self.object.baseline), len(trivial), *map(float, trivial)]
        for split in _SPLITS:
            count = self.object.batches(split)
            if not isinstance(count, int):
                what = method_of(self.subject.kind, "batches", repr(split))
                raise Fault(f"{what} returns {article(type(count).__name__)}, not an int")
            fields.append(count)
        return [*fields, len(files), *files], -1

    def _part(
        self, batch: dict[str, typing.Any], name: str, shape: tuple[int, ...], dtype: typing.Any, what: str
    ) -> typing.Any:
        """An array of the batch, integers of any width as int32."""
        value = batch[name]
        value = np.asarray(_as_numpy(value))
        if dtype == np.int32 and value.dtype.kind in "iub":
            value = value.astype(np.int32)
        elif dtype != np.int32 and value.dtype.kind == "f":
            value = value.astype(self.dtype)
        return _checked(value, shape, dtype, f"`{name}` of {what}")

    def batch(self, split: int, index: int) -> tuple[list[Field], int]:
        s = self.shape
        what = method_of(self.subject.kind, "batch", f"{_SPLITS[split]!r}, {index}")
        inputs = {"dense": ["inputs"], "symbols": ["symbols"], "none": []}[s["input"]]
        goal = "labels" if s["labels"] else "targets"
        batch = named(self.object.batch(_SPLITS[split], index), [*inputs, goal, "lengths", "weights"], what, False)
        for name in (*inputs, goal):
            if name not in batch:
                raise Fault(f"{what} does not return `{name}`")
        first = np.shape(batch[inputs[0] if inputs else goal])
        if len(first) < 1 or (len(first) < 2 and (inputs or s["readout"] == "every")):
            raise Fault(
                f"`{inputs[0] if inputs else goal}` of {what} has the shape {first}, but must begin with sequences and steps"
            )
        B, T = first[0], first[1] if len(first) > 1 and (inputs or s["readout"] == "every") else s["steps"]
        every = s["readout"] == "every"
        scored = (B, T) if every else (B,)

        def steps_first(array: typing.Any, per_step: bool = True) -> typing.Any:
            return np.ascontiguousarray(np.swapaxes(array, 0, 1) if per_step else array)

        parts = []
        if s["input"] == "dense":
            parts.append(steps_first(self._part(batch, "inputs", (B, T, s["input_size"]), self.dtype, what)))
        elif s["input"] == "symbols":
            parts.append(steps_first(self._part(batch, "symbols", (B, T), np.int32, what)))
        else:
            parts.append(np.empty(0, self.dtype))
        if s["labels"]:
            parts.append(steps_first(self._part(batch, "labels", scored, np.int32, what), every))
        else:
            parts.append(
                steps_first(self._part(batch, "targets", (*scored, s["output_size"]), self.dtype, what), every)
            )
        if "weights" in batch:
            parts.append(steps_first(self._part(batch, "weights", scored, self.dtype, what), every))
        else:
            parts.append(np.empty(0, self.dtype))
        if "lengths" in batch:
            parts.append(self._part(batch, "lengths", (B,), np.int32, what))
        else:
            parts.append(np.empty(0, np.int32))

        descriptor = -1
        sizes = [part.nbytes for part in parts]
        if self.memory is None or any(size > room for size, room in zip(sizes, self.sizes)):
            self.sizes = sizes
            self.memory = Memory(sizes)
            descriptor = self.memory.descriptor
        for k, part in enumerate(parts):
            self.memory.array(k, part.shape, part.dtype, "C")[...] = part
        fields: list[Field] = [B, T]
        for part, offset in zip(parts, self.memory.offsets):
            fields += [offset, part.size]
        return fields, descriptor


class OptimizerObject:
    """An optimizer: parts of the memory are θ and gradient of each block in turn, and then the state."""

    def __init__(self, source: Source, scalar: str, options: dict[str, typing.Any]):
        self.subject = Subject(source, scalar, options)
        self.object, self.name, self.dtype = self.subject.object, self.subject.name, self.subject.dtype
        self.source = source

    def created(self) -> tuple[list[Field], int]:
        return [int(bool(self.object.decouples))], -1

    def attach(self, *fields: typing.Any) -> tuple[list[Field], int]:
        self.blocks = [
            roles.Block(name, (rows, cols) if cols else (rows,))
            for name, rows, cols in zip(fields[0::3], fields[1::3], fields[2::3])
        ]
        self.object.attach(list(self.blocks))
        state = self.subject.settle_state()
        sizes = [self.dtype.itemsize * _count(block.shape) for block in self.blocks for _ in range(2)]
        self.memory = Memory([*sizes, *self.subject.state_sizes()])
        return [*state, len(self.memory.offsets), *self.memory.offsets], self.memory.descriptor

    def step(self, block: int, rate: float) -> list[Field]:
        shape = self.blocks[block].shape
        theta = self.memory.array(2 * block, shape, self.dtype)
        gradient = self.memory.array(2 * block + 1, shape, self.dtype)
        gradient.flags.writeable = False
        self.object.step(block, rate, theta, gradient)
        return []

    def save(self) -> list[Field]:
        self.subject.save(self.memory, 2 * len(self.blocks))
        return []

    def load(self) -> list[Field]:
        self.subject.load(self.memory, 2 * len(self.blocks))
        return []
