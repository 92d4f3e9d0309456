"""The steps of the cells, in the equations of docs/DEPLOY.md, with the matrices of an exported network."""

from __future__ import annotations

import copy
import typing
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from stiefel.weights import Weights

Options = dict[str, typing.Any]
Shape = tuple[typing.Optional[int], ...]


def one_of(options: Mapping[str, typing.Any], key: str, *known: str) -> str:
    if options[key] not in known:
        raise ValueError(f"the {key} {options[key]} is not one of {', '.join(known)}")
    return options[key]


class Tensors:
    """The matrices of a file as parameters, with their shapes checked; every matrix must be asked for."""

    def __init__(self, weights: Weights):
        self.weights = weights
        self.prefix = ""
        self.unused = set(weights.tensors)
        self.dtype = torch.float64 if any(x.dtype == "float64" for x in weights.tensors.values()) else torch.float32

    def part(self, prefix: str) -> Tensors:
        """The matrices whose names begin with `prefix`, without it."""
        part = copy.copy(self)
        part.prefix += prefix
        return part

    def dimensions(self, name: str) -> int:
        values = self.weights.tensors.get(self.prefix + name)
        return 0 if values is None else values.ndim

    def parameter(self, name: str, shape: Shape) -> nn.Parameter:
        found = self.optional(name, shape)
        if found is None:
            raise ValueError(f"the matrix {self.prefix + name} is missing")
        return found

    def optional(self, name: str, shape: Shape) -> nn.Parameter | None:
        """A dimension of the shape that is None can have any size."""
        name = self.prefix + name
        values = self.weights.tensors.get(name)
        if values is None:
            return None
        self.unused.discard(name)
        if len(values.shape) != len(shape) or any(b not in (None, a) for a, b in zip(values.shape, shape)):
            wanted = " × ".join("any" if size is None else str(size) for size in shape)
            raise ValueError(f"{name} has the shape {' × '.join(map(str, values.shape))} instead of {wanted}")
        return nn.Parameter(torch.from_numpy(values.astype(values.dtype.newbyteorder("="))))

    def block(self, name: str, size: int) -> nn.Parameter:
        return self.parameter(f"cell.{name}", (size,))

    def maps(self, names: Sequence[str], n: int) -> nn.Parameter:
        """The matrices of real maps, one above the other."""
        return nn.Parameter(torch.cat([self.parameter(f"recurrent.{name}.W", (n, n)).data for name in names]))

    def constant(self, module: nn.Module, name: str, value: float) -> None:
        """A number of the type of the network: ONNX rounds others to float32."""
        module.register_buffer(name, torch.tensor(value, dtype=self.dtype), persistent=False)

    def refuse_others(self) -> None:
        if self.unused:
            raise ValueError(f"this network has no use for {', '.join(sorted(self.unused))}")


class _Elementwise(nn.Module):
    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind

    def forward(self, a: Tensor) -> Tensor:
        if self.kind == "tanh":
            return torch.tanh(a)
        return torch.relu(a) if self.kind == "relu" else a


class _Leaky(nn.Module):
    def __init__(self, file: Tensors, rows: int, options: Options):
        super().__init__()
        if options["kind"] == "prelu" and options["trainable"]:
            self.slope = file.block("activation.slope", 1 if options["shared"] else rows)
        else:
            file.constant(self, "slope", options["slope"])

    def forward(self, a: Tensor) -> Tensor:
        return torch.where(a > 0, a, self.slope * a)


class _Oplu(nn.Module):
    """Of each pair of rows the larger number first."""

    if typing.TYPE_CHECKING:  # TorchScript cannot read these annotations
        first: Tensor

    def __init__(self, rows: int, pairing: str):
        super().__init__()
        row = torch.arange(rows)
        self.distance = rows // 2 if pairing == "halves" else 1
        self.register_buffer("first", row < rows // 2 if pairing == "halves" else row % 2 == 0, persistent=False)

    def forward(self, a: Tensor) -> Tensor:
        larger = torch.maximum(a, a.roll(-self.distance, 1))
        return torch.where(self.first, larger, torch.minimum(a, a.roll(self.distance, 1)))


class _SignModrelu(nn.Module):
    def __init__(self, file: Tensors, rows: int, shift: float):
        super().__init__()
        self.bias = file.block("activation.bias", rows)
        file.constant(self, "shift", shift)

    def forward(self, a: Tensor) -> Tensor:
        return torch.sign(a) * torch.relu(torch.abs(a) + (self.bias + self.shift))


class _PairModrelu(nn.Module):
    """Rows i and i + n/2 are one complex number, which is multiplied by a real factor."""

    if typing.TYPE_CHECKING:  # TorchScript cannot read these annotations
        smallest: Tensor
        one: Tensor
        zero: Tensor

    def __init__(self, file: Tensors, pairs: int, form: str, epsilon: float):
        super().__init__()
        self.bias, self.form = file.block("activation.bias", pairs), form
        file.constant(self, "epsilon", epsilon)
        for name, value in (("zero", 0), ("one", 1), ("smallest", torch.finfo(file.dtype).tiny)):
            file.constant(self, name, value)

    def forward(self, a: Tensor) -> Tensor:
        re, im = a.chunk(2, 1)
        square = re * re + im * im
        large = square > self.smallest  # the square of a smaller number underflows
        if self.form == "squared":
            length, below = square, square
        elif self.form == "wis":
            length = torch.sqrt(self.epsilon + square)
            below = length + self.epsilon
        else:
            length = torch.sqrt(torch.where(large, square, self.smallest))  # the gradient of √0 is infinite
            if self.form == "eu":
                length = length + self.epsilon
            below = length + self.epsilon if self.form == "arj" else length
        factor = torch.relu(length + self.bias)
        if self.form == "exact" or self.form == "squared":  # smaller numbers count as 0
            factor = torch.where(large, factor / torch.where(large, below, self.one), self.zero)
        else:
            factor = factor / below
        return torch.cat([factor * re, factor * im], 1)


def _activation(file: Tensors, options: Options, rows: int, complex_map: bool) -> nn.Module:
    kind, epsilon = options["kind"], options["epsilon"]
    form = one_of(options, "form", "exact", "arj", "wis", "eu", "goru", "squared")
    if kind in ("identity", "tanh", "relu"):
        return _Elementwise(kind)
    if kind in ("leaky_relu", "prelu"):
        return _Leaky(file, rows, options)
    if kind == "oplu":
        return _Oplu(rows, one_of(options, "pairing", "halves", "adjacent"))
    if kind != "modrelu":
        raise ValueError(f"the activation {kind} is unknown")
    if complex_map or options["pairs"] or form == "squared":
        return _PairModrelu(file, rows // 2, form, epsilon or (0.01 if form == "eu" else 1e-5))
    released = {"eu": 0.01, "goru": 0.001}
    return _SignModrelu(file, rows, (epsilon or released[form]) if form in released else 0)


class _Cell(nn.Module):
    """A step: the state after it, from the state before it and from a = V x + b."""

    if typing.TYPE_CHECKING:  # TorchScript cannot read this annotation
        output_rows: int

    def outputs(self, states: Tensor, drive: Tensor) -> Tensor:
        """h of every step, from its state and its a, all (batch, time, rows)."""
        return states[..., : self.output_rows]


class _Elman(_Cell):
    def __init__(self, file: Tensors, n: int, options: Options):
        super().__init__()
        name = "recurrent.W"
        complex_map = file.dimensions(name) == 3
        if complex_map:
            A, B = file.parameter(name, (n, n, 2)).data.unbind(2)
            self.W = nn.Parameter(torch.cat([torch.cat([A, -B], 1), torch.cat([B, A], 1)]))
        else:
            self.W = file.parameter(name, (n, n))
        self.input_rows = self.state_rows = self.output_rows = rows = self.W.shape[0]
        self.activation = _activation(file, options["activation"], rows, complex_map)
        self.transition = one_of(options, "transition", "standard", "outside", "residual")
        file.constant(self, "gain", options["gain"])
        file.constant(self, "step", options["step"])

    def forward(self, h: Tensor, a: Tensor) -> Tensor:
        product = functional.linear(h, self.W)
        if self.transition == "outside":
            return self.activation(self.gain * a) + product
        value = self.activation(self.gain * (a + product))
        return h + self.step * value if self.transition == "residual" else value


class _Lstm(_Cell):
    def __init__(self, file: Tensors, n: int, options: Options):
        super().__init__()
        self.input_rows, self.state_rows, self.output_rows = 4 * n, 2 * n, n
        self.W = file.maps(("input", "forget", "output", "candidate"), n)
        file.constant(self, "forget_bias", options["forget_bias"] if options["forget_bias_fixed"] else 0)
        peephole = one_of(options, "peepholes", "none", "diagonal", "output_full")
        gates = ("input", "forget", "output") if peephole == "diagonal" else ()
        peepholes = [file.block(f"peephole.{gate}", n).data for gate in gates]
        self.peepholes = nn.Parameter(torch.stack(peepholes)) if peepholes else None
        self.P = file.maps(("output_peephole",), n) if peephole == "output_full" else None

    def forward(self, state: Tensor, a: Tensor) -> Tensor:
        h, c = state.chunk(2, 1)
        i, f, o, q = (a + functional.linear(h, self.W)).chunk(4, 1)
        peepholes, P = self.peepholes, self.P
        if peepholes is not None:
            i, f = i + peepholes[0] * c, f + peepholes[1] * c
        c = torch.sigmoid(f + self.forget_bias) * c + torch.sigmoid(i) * torch.tanh(q)
        if peepholes is not None:
            o = o + peepholes[2] * c
        if P is not None:
            o = o + functional.linear(c, P)
        return torch.cat([torch.sigmoid(o) * torch.tanh(c), c], 1)


class _Gru(_Cell):
    def __init__(self, file: Tensors, n: int, options: Options):
        super().__init__()
        self.input_rows, self.state_rows, self.output_rows = 3 * n, n, n
        self.gates = file.maps(("update", "reset"), n)
        self.W = file.maps(("candidate",), n)
        self.after = one_of(options, "reset", "before", "after") == "after"
        self.keep = one_of(options, "update", "keep", "new") == "keep"
        self.bias = file.block("candidate.recurrent_bias", n) if self.after else None

    def forward(self, h: Tensor, a: Tensor) -> Tensor:
        candidate, gates = a.split([self.output_rows, 2 * self.output_rows], 1)
        z, r = torch.sigmoid(gates + functional.linear(h, self.gates)).chunk(2, 1)
        if self.after:
            q = torch.tanh(candidate + r * functional.linear(h, self.W, self.bias))
        else:
            q = torch.tanh(candidate + functional.linear(r * h, self.W))
        return z * h + (1 - z) * q if self.keep else (1 - z) * h + z * q


class _Goru(_Cell):
    def __init__(self, file: Tensors, n: int, options: Options):
        super().__init__()
        self.input_rows, self.state_rows, self.output_rows = 3 * n, n, n
        self.gates = file.maps(("update", "reset"), n)
        self.W = file.maps(("candidate",), n)
        self.activation = _activation(file, options["activation"], n, False)

    def forward(self, h: Tensor, a: Tensor) -> Tensor:
        candidate, gates = a.split([self.output_rows, 2 * self.output_rows], 1)
        z, r = torch.sigmoid(gates + functional.linear(h, self.gates)).chunk(2, 1)
        q = self.activation(candidate + r * functional.linear(h, self.W))
        return z * h + (1 - z) * q


class _Cornn(_Cell):
    def __init__(self, file: Tensors, n: int, options: Options):
        super().__init__()
        self.input_rows, self.state_rows, self.output_rows = n, 2 * n, n
        position, velocity = file.maps(("position", "velocity"), n).data.chunk(2)
        self.W = nn.Parameter(torch.cat([position, velocity], 1))  # of the state y over z
        for key in ("step", "gamma", "epsilon"):
            file.constant(self, key, options[key])

    def forward(self, state: Tensor, a: Tensor) -> Tensor:
        y, z = state.chunk(2, 1)
        u = torch.tanh(a + functional.linear(state, self.W))
        z = z + self.step * (u - self.gamma * y - self.epsilon * z)
        return torch.cat([y + self.step * z, z], 1)


class _Lem(_Cell):
    def __init__(self, file: Tensors, n: int, options: Options):
        super().__init__()
        self.input_rows, self.state_rows, self.output_rows = 4 * n, 2 * n, n
        self.W = file.maps(("step_z", "step_y", "z"), n)
        self.last = file.maps(("y",), n)
        file.constant(self, "step", options["step"])

    def forward(self, state: Tensor, a: Tensor) -> Tensor:
        y, z = state.chunk(2, 1)
        first, last = a.split([3 * self.output_rows, self.output_rows], 1)
        d, e, q = (first + functional.linear(y, self.W)).chunk(3, 1)
        d, e = self.step * torch.sigmoid(d), self.step * torch.sigmoid(e)
        z = (1 - d) * z + d * torch.tanh(q)
        y = (1 - e) * y + e * torch.tanh(last + functional.linear(z, self.last))
        return torch.cat([y, z], 1)


class _Lru(_Cell):
    """The constants are those of the program: each function is rounded to the type of the file."""

    def __init__(self, file: Tensors, n: int, options: Options):
        super().__init__()
        self.input_rows = self.state_rows = self.output_rows = 2 * n
        nu, phi, log_gamma = (file.block(name, n).data for name in ("nu", "phi", "log_gamma"))

        def rounded(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
            return function(x.to(torch.float64)).to(file.dtype)

        modulus, phase = rounded(torch.exp, -rounded(torch.exp, nu)), rounded(torch.exp, phi)
        self.re = nn.Parameter(modulus * rounded(torch.cos, phase))
        self.im = nn.Parameter(modulus * rounded(torch.sin, phase))
        self.gamma = nn.Parameter(rounded(torch.exp, log_gamma))

    def forward(self, state: Tensor, a: Tensor) -> Tensor:
        x, y = state.chunk(2, 1)
        u, v = a.chunk(2, 1)
        re = self.re * x - self.im * y + self.gamma * u
        im = self.re * y + self.im * x + self.gamma * v
        return torch.cat([re, im], 1)


class _MinGru(_Cell):
    def __init__(self, file: Tensors, n: int, options: Options):
        super().__init__()
        self.input_rows, self.state_rows, self.output_rows = 2 * n, n, n
        self.positive = one_of(options, "candidate", "linear", "positive") == "positive"

    def forward(self, h: Tensor, a: Tensor) -> Tensor:
        z, q = a.chunk(2, 1)
        z = torch.sigmoid(z)
        if self.positive:
            q = torch.where(q >= 0, q + 0.5, torch.sigmoid(q))
        return (1 - z) * h + z * q


class _Reflections(_Cell):
    def __init__(self, file: Tensors, n: int, options: Options):
        super().__init__()
        self.n, self.reflections = n, int(options["reflections"])
        self.chosen = one_of(options, "beta", "input", "2") == "input"
        self.tanh = one_of(options, "nonlinearity", "identity", "tanh") == "tanh"
        self.additive = bool(options["additive"])
        self.input_rows = self.reflections * (n + self.chosen) + n * self.additive
        self.state_rows = self.output_rows = n
        if options["map"]:
            self.W = file.parameter("recurrent.W", (n, n))
        else:
            self.register_buffer("W", torch.eye(n, dtype=file.dtype), persistent=False)

    def forward(self, h: Tensor, a: Tensor) -> Tensor:
        r, n = self.reflections, self.n
        beta = torch.full_like(a[:, :r], 2.0)
        if self.chosen:
            beta = 2 * torch.sigmoid(a[:, r * n : r * n + r])
        h = functional.linear(h, self.W)
        for j in range(r):
            k = functional.normalize(a[:, j * n : (j + 1) * n], dim=1, eps=1e-15)
            h = h - beta[:, j : j + 1] * (k * h).sum(1, keepdim=True) * k
        if self.additive:
            h = h + a[:, r * n + r * int(self.chosen) :]
        if self.tanh:
            h = torch.tanh(h)
        return h


class _AsRnn(_Cell):
    def __init__(self, file: Tensors, n: int, options: Options):
        super().__init__()
        self.input_rows = self.state_rows = self.output_rows = n
        self.W, self.U = file.maps(("transition",), n), file.maps(("saturation",), n)
        self.scale = file.block("scale", n)
        file.constant(self, "epsilon", options["epsilon"])

    def forward(self, h: Tensor, a: Tensor) -> Tensor:
        D = torch.abs(self.scale) + self.epsilon
        z = a + functional.linear(h, self.W)
        return functional.linear(torch.tanh(functional.linear(D * z, self.U)), self.U.t()) / D


class _DeltaProduct(_Cell):
    """The state holds the matrix of each head by columns."""

    def __init__(self, file: Tensors, n: int, options: Options):
        super().__init__()
        self.heads, self.key_size = int(options["heads"]), int(options["key_size"])
        self.reflections, self.value_size = int(options["reflections"]), n // self.heads
        self.silu = one_of(options, "key_activation", "silu", "identity") == "silu"
        ranges = {(0, 1): 1.0, (-1, 1): 2.0}
        if tuple(options["eigenvalues"]) not in ranges:
            raise ValueError(f"the eigenvalues {options['eigenvalues']} are not one of [0, 1], [-1, 1]")
        self.largest_beta = ranges[tuple(options["eigenvalues"])]
        r, key, value = self.reflections, self.key_size, self.value_size
        self.sizes = [r * key, r * value, r, key, int(options["gate"])]
        self.input_rows, self.state_rows, self.output_rows = self.heads * sum(self.sizes), n * key, n
        self.log_rate = file.block("gate.log_rate", self.heads) if options["gate"] else None
        self.bias = file.block("gate.bias", self.heads) if options["gate"] else None
        file.constant(self, "tiny", 1e-12)

    def unit(self, x: Tensor) -> Tensor:
        if self.silu:
            x = x * torch.sigmoid(x)
        return x / torch.sqrt((x * x).sum(-1, keepdim=True) + self.tiny)

    def parts(self, drive: Tensor) -> list[Tensor]:
        """Keys, values, strengths, query and gate of every step and head."""
        return list(drive.reshape(drive.shape[0], -1, self.heads, sum(self.sizes)).split(self.sizes, 3))

    def forward(self, state: Tensor, a: Tensor) -> Tensor:
        batch, heads, r, key, value = a.shape[0], self.heads, self.reflections, self.key_size, self.value_size
        keys, values, strengths, _, gate = self.parts(a)
        keys, values = keys.reshape(batch, heads, r, key), values.reshape(batch, heads, r, value)
        beta = self.largest_beta * torch.sigmoid(strengths)
        S = state.reshape(batch, heads, key, value)  # a matrix, transposed
        log_rate, bias = self.log_rate, self.bias
        if log_rate is not None and bias is not None:
            z = gate[:, 0, :, 0] + bias
            width = torch.relu(z) + torch.log1p(torch.exp(-torch.abs(z)))
            S = torch.exp(-torch.exp(log_rate) * width).reshape(batch, heads, 1, 1) * S
        for j in range(r):
            k = self.unit(keys[:, :, j]).unsqueeze(3)
            u = beta[:, 0, :, j : j + 1] * (values[:, :, j] - (k * S).sum(2))
            S = S + k * u.unsqueeze(2)
        return S.flatten(1)

    def outputs(self, states: Tensor, drive: Tensor) -> Tensor:
        query = self.unit(self.parts(drive)[3]).unsqueeze(4)
        S = states.reshape(states.shape[0], -1, self.heads, self.key_size, self.value_size)
        return (query * S).sum(3).flatten(2)


class _Slstm(_Cell):
    """The state is h, y = c/n, and log n."""

    def __init__(self, file: Tensors, n: int, options: Options):
        super().__init__()
        self.input_rows, self.state_rows, self.output_rows = 4 * n, 3 * n, n
        self.heads, size = int(options["heads"]), n // int(options["heads"])
        gates = ("input", "forget", "candidate", "output")
        heads = [file.maps([f"{gate}_{head + 1}" for gate in gates], size).data for head in range(self.heads)]
        self.R = nn.Parameter(torch.stack(heads).transpose(1, 2))
        self.exponential = one_of(options, "forget_gate", "sigmoid", "exponential") == "exponential"
        file.constant(self, "smallest", 1e-30)

    def forward(self, state: Tensor, a: Tensor) -> Tensor:
        h, y, log_n = state.reshape(state.shape[0], 3, self.heads, -1).unbind(1)
        recurrent = torch.matmul(h.unsqueeze(2), self.R).squeeze(2)
        i, f, z, o = (a.reshape(a.shape[0], self.heads, -1) + recurrent).chunk(4, 2)
        if not self.exponential:
            f = -torch.relu(-f) - torch.log1p(torch.exp(-torch.abs(f)))
        kept, fresh = f + log_n, (y == 0) & (log_n == 0)
        y = y + torch.where(fresh, torch.ones_like(y), torch.sigmoid(i - kept)) * (torch.tanh(z) - y)
        log_sum = torch.maximum(i, kept) + torch.log1p(torch.exp(-torch.abs(i - kept)))
        log_n = torch.where(fresh, i, log_sum)
        log_n = torch.where(log_n == 0, self.smallest, log_n)
        return torch.stack([torch.sigmoid(o) * y, y, log_n], 1).flatten(1)


class _Lipschitz(_Cell):
    def __init__(self, file: Tensors, n: int, options: Options):
        super().__init__()
        self.input_rows = self.state_rows = self.output_rows = n
        self.W = file.maps(("nonlinear", "linear"), n)
        self.midpoint = one_of(options, "scheme", "euler", "rk2") == "rk2"
        file.constant(self, "step", options["step"])
        file.constant(self, "half_step", options["step"] / 2)

    def slope(self, h: Tensor, a: Tensor) -> Tensor:
        nonlinear, linear = functional.linear(h, self.W).chunk(2, 1)
        return linear + torch.tanh(nonlinear + a)

    def forward(self, h: Tensor, a: Tensor) -> Tensor:
        middle = h + self.half_step * self.slope(h, a) if self.midpoint else h
        return h + self.step * self.slope(middle, a)


CELLS: dict[str, Callable[[Tensors, int, Options], nn.Module]] = {
    "elman": _Elman,
    "lstm": _Lstm,
    "gru": _Gru,
    "goru": _Goru,
    "cornn": _Cornn,
    "lem": _Lem,
    "lru": _Lru,
    "mingru": _MinGru,
    "reflections": _Reflections,
    "delta_product": _DeltaProduct,
    "asrnn": _AsRnn,
    "slstm": _Slstm,
    "lipschitz": _Lipschitz,
}
