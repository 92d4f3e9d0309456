"""Exported networks as PyTorch modules: stiefel.torch.load("model.safetensors").

A network maps inputs of the shape (batch, time, features), or symbols of the shape (batch, time), to outputs. The
equations of the cells are those of docs/DEPLOY.md. Modules can be trained further, but nothing keeps W orthogonal then.
"""

from __future__ import annotations

import itertools
import os
import typing
from collections.abc import Callable, Iterable
from typing import Optional  # TorchScript of PyTorch 1.13 knows no `Tensor | None`

import torch
from torch import Tensor, nn
from torch.nn import functional

from stiefel.cells import CELLS, Options, Tensors, one_of
from stiefel.weights import Weights, read_weights

LAYER_KEYS = [
    "cell",
    "recurrent",
    "maps",
    "input",
    "initial_state",
    "norm",
    "dropout",
    "residual",
    "gate",
    "bidirectional",
]


def load(path: str | os.PathLike, normalize: bool = True) -> Network:
    """The network of a file of `stiefel export --weights`.

    With `normalize` it takes inputs in the units of the data file, and its values are in these units too. Without, both
    are as during training.
    """
    weights = read_weights(path)
    try:
        return Network(weights, normalize).eval()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    except KeyError as error:
        raise ValueError(f"{path}: its description lacks {error}") from None
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{path}: its description is damaged: {error}") from None


class Network(nn.Module):
    """Recurrent layers and readout of an exported network."""

    if typing.TYPE_CHECKING:  # TorchScript cannot read these annotations
        input_mean: Tensor
        input_scale: Tensor
        target_mean: Tensor
        target_scale: Tensor

    def __init__(self, weights: Weights, normalize: bool = True):
        super().__init__()
        file = Tensors(weights)
        self.metadata = dict(weights.metadata)
        self.symbols = one_of(weights.metadata, "input", "dense", "symbols", "none") == "symbols"
        self.every = one_of(weights.metadata, "readout", "every", "last") == "every"
        self.Y = file.parameter("readout.Y", (None, None))
        self.c = file.optional("readout.c", (self.Y.shape[0],))

        self.layers = nn.ModuleList()
        below: _Layer | None = None
        for number, options in enumerate(_layers(weights.config["model"])):
            below = _Layer(file.part(f"layers.{number}."), options, weights.metadata["input"], below)
            self.layers.append(below)
        self.input_size: int = self.layers[0].input_size
        self.state_rows: int = sum(layer.state_rows for layer in self.layers)
        if below is not None and self.Y.shape[1] > below.output_rows:
            raise ValueError(
                f"readout.Y has {self.Y.shape[1]} columns, but the last layer has {below.output_rows} outputs"
            )
        file.refuse_others()

        scaling = weights.text("normalisation") or {} if normalize else {}
        for part, width in (("input", self.input_size), ("target", self.Y.shape[0])):
            for key in ("mean", "scale"):
                values = torch.tensor(scaling.get(part, {}).get(key, []), dtype=torch.float64)
                if values.shape not in ((0,), (width,)):
                    raise ValueError(f"normalisation.{part}.{key} has {len(values)} numbers instead of {width}")
                self.register_buffer(f"{part}_{key}", values, persistent=False)
            if len(getattr(self, f"{part}_mean")) != len(getattr(self, f"{part}_scale")):
                raise ValueError(f"normalisation.{part} needs both a mean and a scale")

    def _apply(self, fn: Callable[[Tensor], Tensor], *arguments: bool) -> Network:
        """Moves and converts the network, whose normalisation stays in float64."""
        names = [f"{part}_{key}" for part in ("input", "target") for key in ("mean", "scale")]
        exact = {name: getattr(self, name) for name in names}
        super()._apply(fn, *arguments)
        for name, values in exact.items():
            setattr(self, name, values.to(getattr(self, name).device))
        return self

    def forward(self, inputs: Tensor, lengths: Optional[Tensor] = None, state: Optional[Tensor] = None) -> Tensor:
        """Outputs (batch, time, outputs), or (batch, outputs) of a network that is read at the last step.

        `lengths` (batch), a tensor or a list: steps of each sequence; outputs behind its end are 0. `state` (batch, rows): instead of the
        initial state, with the rows of each layer in turn; those of a bidirectional layer's reverse cell follow those
        of its forward cell.
        """
        outputs, _ = self.run(inputs, lengths, state)
        return outputs

    def run(
        self, inputs: Tensor, lengths: Optional[Tensor] = None, state: Optional[Tensor] = None
    ) -> tuple[Tensor, Tensor]:
        """Outputs as of forward(), and the state after the last step, from which the next call can continue.

        A reverse cell reads the first step last, and its state is the one after that: later pieces cannot continue it.
        """
        values = self.check(inputs)
        if lengths is not None:
            if not torch.jit.is_scripting():
                lengths = torch.as_tensor(lengths, device=inputs.device)
            if lengths.dim() != 1 or lengths.shape[0] != inputs.shape[0] or lengths.is_floating_point():
                raise ValueError(f"lengths must be {inputs.shape[0]} integers, one for each sequence")
            if not torch.jit.is_scripting():
                self.check_range(lengths, 1, inputs.shape[1], f"not a length of a sequence of {inputs.shape[1]} steps")
            lengths = lengths.to(torch.int64)
            if values.dim() == 3:  # 0 times the gradient of NaN or an overflow past the end is NaN
                values = _until_end(values, lengths)
        if state is None:
            state = torch.cat([layer.initial() for layer in self.layers]).expand(inputs.shape[0], -1)
        if state.dim() != 2 or state.shape[0] != inputs.shape[0]:
            raise ValueError(f"the state must have the shape ({inputs.shape[0]}, {self.state_rows})")
        if state.shape[1] != self.state_rows:
            raise ValueError(f"the state has {state.shape[1]} rows, but this network needs {self.state_rows}")
        state = state.to(self.Y.dtype)
        after: list[Tensor] = []
        begin = 0
        for layer in self.layers:
            end = begin + layer.state_rows
            values, last = layer(values, state[:, begin:end], lengths)
            after.append(last)
            begin = end
        last = torch.cat(after, 1)
        if not self.every:
            return self.read_out(_at_end(values, lengths)), last
        outputs = self.read_out(values)
        if lengths is not None:
            outputs = _until_end(outputs, lengths)
        return outputs, last

    def check(self, inputs: Tensor) -> Tensor:
        """The inputs that the first layer reads: symbols, or numbers in the units of training."""
        if self.symbols:
            if inputs.dim() != 2 or inputs.is_floating_point():
                raise ValueError("this network reads symbols: integers of the shape (batch, time)")
            if not torch.jit.is_scripting():
                fault = f"not one of the {self.input_size} symbols; -1 is none"
                self.check_range(inputs, -1, self.input_size - 1, fault)
            return inputs
        if inputs.dim() != 3 or inputs.shape[2] != self.input_size:
            raise ValueError(f"this network reads inputs of the shape (batch, time, {self.input_size})")
        if self.input_mean.shape[0] > 0:
            inputs = (inputs.to(torch.float64) - self.input_mean) / self.input_scale
        return inputs.to(self.Y.dtype)

    @torch.jit.unused
    def check_range(self, values: Tensor, least: int, most: int, fault: str) -> None:
        """Refuses numbers out of range, but in an exported graph, which cannot."""
        if _exporting() or torch.jit.is_tracing() or values.numel() == 0:
            return
        for found in (int(values.min()), int(values.max())):
            if not least <= found <= most:
                raise ValueError(f"{found} is {fault}")

    def read_out(self, values: Tensor) -> Tensor:
        """Y h + c, in the units of the targets."""
        outputs = functional.linear(values[..., : self.Y.shape[1]], self.Y, self.c)
        if self.target_mean.shape[0] > 0:
            outputs = (outputs.to(torch.float64) * self.target_scale + self.target_mean).to(outputs.dtype)
        return outputs


def export_onnx(network: Network, path: str | os.PathLike, steps: int = 3) -> None:
    """Writes an ONNX file with the input `inputs`, of any batch size and length, and the output `outputs`.

    The recurrence is a Scan, or a Loop where PyTorch is older than 2.9.
    """
    kind = torch.int64 if network.symbols else network.Y.dtype
    shape = (2, steps) if network.symbols else (2, steps, network.input_size)
    inputs, names = torch.zeros(shape, dtype=kind), {"input_names": ["inputs"], "output_names": ["outputs"]}
    if hasattr(torch, "export") and _version() >= (2, 9):
        sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("time")}
        torch.onnx.export(
            network, (inputs,), path, dynamic_shapes={"inputs": sizes}, external_data=False, verbose=False, **names
        )
        return
    axes = {"inputs": {0: "batch", 1: "time"}, "outputs": {0: "batch", **({1: "time"} if network.every else {})}}
    torch.onnx.export(
        torch.jit.script(_InputsOnly(network)), (inputs,), str(path), dynamic_axes=axes, opset_version=15, **names
    )


class _InputsOnly(nn.Module):
    """Old PyTorch exports no optional arguments."""

    def __init__(self, network: Network):
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor) -> Tensor:
        return self.network(inputs)


def _version() -> tuple[int, ...]:
    return tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def _exporting() -> bool:
    return bool(getattr(getattr(torch, "compiler", None), "is_exporting", bool)())


def _layers(model: Options) -> Iterable[Options]:
    """The description of each layer."""
    layers = model.get("layers", 1)
    if isinstance(layers, list) and layers and all(isinstance(layer, dict) for layer in layers):
        outside = [key for key in LAYER_KEYS if key in model]
        if outside:
            raise ValueError(f"model.{outside[0]} contradicts the list model.layers, where it belongs")
        return layers
    if type(layers) is not int or layers < 1:
        raise ValueError(f"model.layers must be a positive integer or a list of layers, got {layers!r}")
    return itertools.repeat(model, layers)


class _Layer(nn.Module):
    """s_{l+1} from s_l: a norm, one cell or two that read in opposite directions, a gate, dropout and a residual."""

    def __init__(self, file: Tensors, options: Options, kind: str, below: _Layer | None):
        super().__init__()
        first = below is None
        width = None if below is None else below.output_rows
        options = {"norm": "none", "gate": "none", **options}
        norm, gate = one_of(options, "norm", *NORMS), one_of(options, "gate", *GATES)
        self.norm = nn.Identity() if width is None else NORMS[norm](file, width)
        kind = kind if first else "dense"
        self.ahead = _Direction(file, options, kind, width)
        self.input_size: int = self.ahead.input_size
        self.state_rows: int = self.ahead.state_rows
        self.output_rows: int = self.ahead.output_rows
        self.reverse = None
        if options.get("bidirectional", False):
            self.reverse = _Direction(file.part("reverse."), options, kind, self.input_size, backwards=True)
            self.state_rows += self.reverse.state_rows
            self.output_rows += self.reverse.output_rows
        self.gate = GATES[gate](file, self.output_rows)
        self.dropout = nn.Dropout(float(options.get("dropout", 0)))
        self.residual = bool(options.get("residual", False)) and not first
        if self.residual and self.output_rows != self.input_size:
            raise ValueError(
                f"{file.prefix[:-1]} has a residual and {self.output_rows} outputs, "
                f"but the layer below has {self.input_size}"
            )

    def initial(self) -> Tensor:
        if self.reverse is None:
            return self.ahead.initial
        return torch.cat([self.ahead.initial, self.reverse.initial])

    def forward(self, inputs: Tensor, state: Tensor, lengths: Optional[Tensor]) -> tuple[Tensor, Tensor]:
        """Outputs of every step, and the state after the last one."""
        read, rows = self.norm(inputs), self.ahead.state_rows
        h, last = self.ahead(read, state[:, :rows], lengths)
        if self.reverse is not None:
            behind, first = self.reverse(read, state[:, rows:], lengths)
            h, last = torch.cat([h, behind], 2), torch.cat([last, first], 1)
        values = self.dropout(self.gate(h))
        return inputs + values if self.residual else values, last


class _Direction(nn.Module):
    """A cell with its input map and initial state, which reads sequences from their first step on, or backwards."""

    def __init__(self, file: Tensors, options: Options, kind: str, width: int | None, backwards: bool = False):
        super().__init__()
        name = options["cell"]["plugin"]
        if name not in CELLS:
            raise ValueError(f"the cell {name} is not one of {', '.join(CELLS)}: write its step in Python")
        cell: typing.Any = CELLS[name](file, options["cell"]["hidden"], options["cell"])
        self.cell = cell
        self.state_rows: int = cell.state_rows
        self.output_rows: int = cell.output_rows
        self.symbols, self.backwards = kind == "symbols", backwards
        learned = options.get("initial_state", {}).get("kind") == "learned"
        self.initial = file.parameter("initial", (self.state_rows,)).requires_grad_(learned)
        rows = cell.input_rows
        self.V = None if kind == "none" else file.parameter("input.V", (rows, width))
        self.b = (file.parameter if kind == "none" else file.optional)("input.b", (rows,))
        self.input_size: int = 0 if self.V is None else self.V.shape[1]

    def forward(self, inputs: Tensor, state: Tensor, lengths: Optional[Tensor]) -> tuple[Tensor, Tensor]:
        """Outputs of every step, and the state after the step that is read last."""
        drive = self.project(inputs)
        if self.backwards:
            drive = _reversed(drive, lengths)
        states = self.recur(state, drive)
        outputs = self.cell.outputs(states, drive)
        return _reversed(outputs, lengths) if self.backwards else outputs, _at_end(states, lengths)

    def project(self, inputs: Tensor) -> Tensor:
        """V x + b of every step."""
        V, b = self.V, self.b
        if V is None:
            assert b is not None
            return b.expand(inputs.shape[0], inputs.shape[1], -1)
        if not self.symbols:
            return functional.linear(inputs, V, b)
        table = functional.pad(V, (0, 1)).t()  # the last row is that of no symbol, -1
        inputs = inputs.to(torch.int64)
        found = functional.embedding(torch.where(inputs < 0, table.shape[0] - 1, inputs), table)
        return found if b is None else found + b

    def recur(self, state: Tensor, drive: Tensor) -> Tensor:
        """The states after every step, (batch, time, rows)."""
        if not torch.jit.is_scripting():  # noqa: SIM102 -- TorchScript does not compile what is inside
            if _exporting():
                return self.scan(state, drive)
        if drive.shape[1] == 0:
            raise ValueError("a sequence needs at least one step")
        states: list[Tensor] = []
        for t in range(drive.shape[1]):
            state = self.cell(state, drive[:, t])
            states.append(state)
        return torch.stack(states, 1)

    @torch.jit.unused
    def scan(self, state: Tensor, drive: Tensor) -> Tensor:
        """The same as one operation, which torch.onnx.export writes as a Scan."""
        from torch._higher_order_ops.scan import scan

        def step(state: Tensor, drive: Tensor) -> tuple[Tensor, Tensor]:
            after = self.cell(state, drive)
            return after, after.clone()

        return scan(step, state.clone(), drive.transpose(0, 1))[1].transpose(0, 1)


def _until_end(values: Tensor, lengths: Tensor) -> Tensor:
    """The values (batch, time, rows) with 0 past the end of each sequence."""
    steps = torch.arange(values.shape[1], device=values.device)
    return torch.where((steps < lengths.reshape(-1, 1)).unsqueeze(2), values, torch.zeros_like(values))


def _at_end(values: Tensor, lengths: Optional[Tensor]) -> Tensor:
    """The last step of each sequence, from (batch, time, rows)."""
    if lengths is None:
        return values[:, -1]
    place = (lengths - 1).reshape(-1, 1, 1).expand(-1, 1, values.shape[2])
    return values.gather(1, place)[:, 0]


def _reversed(values: Tensor, lengths: Optional[Tensor]) -> Tensor:
    """Each sequence from its last step to its first; what is behind its end stays there."""
    if lengths is None:
        return values.flip(1)
    steps, ends = torch.arange(values.shape[1], device=values.device), lengths.reshape(-1, 1)
    places = torch.where(steps < ends, ends - 1 - steps, steps)
    return values.gather(1, places.unsqueeze(2).expand(-1, -1, values.shape[2]))


class _LayerNorm(nn.Module):
    """In single operations: LayerNormalization of ONNX computes in float32."""

    def __init__(self, file: Tensors, rows: int):
        super().__init__()
        self.weight = file.parameter("norm.weight", (rows,))
        self.bias = file.parameter("norm.bias", (rows,))
        file.constant(self, "epsilon", 1e-5)

    def forward(self, s: Tensor) -> Tensor:
        s = s - s.mean(2, keepdim=True)
        return s / torch.sqrt((s * s).mean(2, keepdim=True) + self.epsilon) * self.weight + self.bias


class _RmsNorm(nn.Module):
    def __init__(self, file: Tensors, rows: int):
        super().__init__()
        self.weight = file.parameter("norm.weight", (rows,))
        file.constant(self, "epsilon", 1e-5)

    def forward(self, s: Tensor) -> Tensor:
        return s / torch.sqrt((s * s).mean(2, keepdim=True) + self.epsilon) * self.weight


class _Glu(nn.Module):
    def __init__(self, file: Tensors, rows: int):
        super().__init__()
        self.weight = file.parameter("gate.weight", (2 * rows, rows))
        self.bias = file.parameter("gate.bias", (2 * rows,))

    def forward(self, h: Tensor) -> Tensor:
        return functional.glu(functional.linear(h, self.weight, self.bias), 2)


NORMS: dict[str, Callable[[Tensors, int], nn.Module]] = {"none": nn.Identity, "layer": _LayerNorm, "rms": _RmsNorm}
GATES: dict[str, Callable[[Tensors, int], nn.Module]] = {"none": nn.Identity, "glu": _Glu}
