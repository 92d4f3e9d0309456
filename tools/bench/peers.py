"""PyTorch's side of tools/bench/run: the same training steps, as a PyTorch user writes them and as an expert does.

One process measures one variant of one workload: `peers.py WORKLOAD VARIANT THREADS`, where WORKLOAD is run's Workload as a JSON object.
It says `{"framework": "PyTorch", "version": ...}` when it is warm; then each line read from standard input is a number of seconds, answered by one line
`{"seconds": [...]}`, the time of each training step that fitted. Between lines it only waits, so that nothing else is disturbed.

`peers.py variants WORKLOAD` lists the variants. `peers.py check` compares outputs, loss and gradients of all in double precision at
small sizes.

Variants: nn.RNN and nn.LSTM are PyTorch's own; eager and script are loops over time for autograd and TorchScript; wy applies reflections in
compact form at each step; grouped applies a Kronecker product as two; dense forms the matrix of a restricted uRNN; hand* are
autograd.Functions that fill buffers allocated once per step and take the gradient of a map as one product over all time steps.
"""
import json
import math
import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Callable, List, Optional

import torch
import torch.nn.functional as F
from torch import Tensor

import peer_process

aten = torch.ops.aten


def variants(work):
    """Names of the variants of a workload; those that begin with hand are an expert's."""
    if work.cell == "lstm":
        return ["nn.LSTM", "hand"]
    if work.recurrent == "kronecker":
        return ["eager", "grouped", "hand", "hand-grouped"]
    if work.recurrent == "urnn":
        return ["eager", "dense", "hand", "hand-dense"]
    if work.recurrent == "full_unitary":
        return ["eager", "hand"]
    own = {"householder": ["wy"], "dense": ["nn.RNN"]}
    return ["eager", "script", *own.get(work.recurrent, []), "hand"]


@dataclass
class Model:
    loss: Callable
    parameters: List[Tensor]  # of Adam
    task: "Task"
    moved: List[Tensor] = field(default_factory=list)  # along the orthogonal or unitary matrices
    order: Optional[Tensor] = None  # the permutation of a restricted uRNN


def parameter(*shape, scale=0.1, dtype=None):
    return (torch.randn(*shape, dtype=dtype) * scale).requires_grad_()


# ---- tasks: the batch, what is projected into the time loop, and the loss

class Task:
    """A fixed random batch. adding: two numbers a step, a number at the end; pixels: one number a step, a class of ten at the end;
    symbols: a symbol a step and a class each step."""

    def __init__(self, work, rows, outputs):
        T, B = work.length, work.batch
        self.every = work.task == "symbols"
        inputs, classes = {"adding": (2, 1), "pixels": (1, 10), "symbols": (work.classes + 1, work.classes)}[work.task]
        self.V, self.C, self.bias = parameter(inputs, rows), parameter(classes, outputs), torch.zeros(classes, requires_grad=True)
        self.parameters = [self.V, self.C, self.bias]
        self.x = torch.randint(0, inputs, (T, B)) if self.every else torch.rand(T, B, inputs)
        self.y = torch.rand(B, 1) if work.task == "adding" else torch.randint(0, classes, (T * B if self.every else B,))

    def projected(self, bias):
        """V x of all time steps, before the loop."""
        if self.every:
            table = self.V if bias is None else self.V + bias
            return F.embedding(self.x, table)
        if self.x.shape[2] == 1 and bias is None:
            return self.x * self.V
        return F.linear(self.x, self.V.t(), bias)

    def loss(self, states):
        """Of all states, T x B x n, or of the last one."""
        self.output = F.linear(states.reshape(-1, states.shape[-1]), self.C, self.bias)
        return F.cross_entropy(self.output, self.y) if self.y.dtype == torch.int64 else F.mse_loss(self.output, self.y)


# ---- real Elman cells

def triangular_factor(U):
    """S with H(u_1) ... H(u_m) = I - U S U^T."""
    G = U.t() @ U
    return torch.linalg.inv(torch.triu(G, 1) + torch.diag(torch.diagonal(G) / 2))


def random_unitary(n, dtype=None):
    return torch.linalg.qr(torch.randn(n, n, dtype=dtype))[0].contiguous().requires_grad_()


def recurrent_matrix(work):
    """Parameters, and a function that forms W from them. A factorisation has its spectrum first and then the bases, which are moved."""
    n = work.hidden
    if work.recurrent == "householder":
        U = torch.randn(n, work.reflections).tril().requires_grad_()
        return [U], lambda: torch.eye(n) - U @ (triangular_factor(U) @ U.t())
    if work.recurrent == "svd_margin":
        U, V, p = random_unitary(n), random_unitary(n), torch.zeros(n, requires_grad=True)
        return [p, U, V], lambda: (U * (1 + work.margin * torch.tanh(p / 2))) @ V.t()
    if work.recurrent == "lie_exponential":
        A = parameter(n, n)

        def exponential():
            lower = A.tril(-1)
            return torch.matrix_exp(lower - lower.t())
        return [A], exponential
    if work.recurrent == "scaled_cayley":
        A = parameter(n, n)
        scale = torch.ones(n)
        scale[:work.rho] = -1

        def cayley():
            lower = A.tril(-1)
            skew = lower - lower.t()
            return torch.linalg.solve(torch.eye(n) + skew, torch.eye(n) - skew) * scale
        return [A], cayley
    W = parameter(n, n, scale=1 / math.sqrt(n))
    return [W], lambda: W


def activate(z: Tensor, bias: Tensor, kind: str) -> Tensor:
    if kind == "modrelu":
        return torch.sign(z) * F.relu(torch.abs(z) + bias)
    if kind == "leaky_relu":
        return F.leaky_relu(z, 0.1)
    return torch.tanh(z)


def unroll(inputs: Tensor, h: Tensor, Wt: Tensor, bias: Tensor, kind: str, every: bool) -> Tensor:
    states: List[Tensor] = []
    for x in inputs.unbind(0):
        h = activate(torch.addmm(x, h, Wt), bias, kind)
        if every:
            states.append(h)
    return torch.stack(states) if every else h


def unroll_wy(inputs, h, U, S, kind, every):
    """W = I - U S U^T is never formed."""
    US, Ut, none, states = U @ S.t(), U.t(), None, []
    for x in inputs.unbind(0):
        h = activate(torch.addmm(h + x, h @ US, Ut, alpha=-1), none, kind)
        if every:
            states.append(h)
    return torch.stack(states) if every else h


class HandElman(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inputs, W, bias, kind, every):
        T, B, n = inputs.shape
        states = inputs.new_zeros(T + 1, B, n)
        size, Wt = inputs.new_empty(B, n), W.t()
        steps = states.unbind(0)
        for t, x in enumerate(inputs.unbind(0)):
            z = steps[t + 1]
            torch.addmm(x, steps[t], Wt, out=z)
            if kind == "modrelu":
                torch.abs(z, out=size).add_(bias).relu_()
                torch.copysign(size, z, out=z)
            elif kind == "leaky_relu":
                F.leaky_relu_(z, 0.1)
            else:
                z.tanh_()
        ctx.states, ctx.W, ctx.kind, ctx.every = states, W, kind, every
        return states[1:] if every else states[T]

    @staticmethod
    def backward(ctx, gradient):
        states, W, kind = ctx.states, ctx.W, ctx.kind
        T, B, n = states.shape[0] - 1, states.shape[1], states.shape[2]
        deltas = states.new_empty(T, B, n)
        size = states.new_empty(B, n)
        steps, delta = states.unbind(0), deltas.unbind(0)
        at = gradient.contiguous().unbind(0) if ctx.every else None
        g = (at[T - 1] if ctx.every else gradient).clone()
        for t in range(T - 1, -1, -1):
            h, d = steps[t + 1], delta[t]
            if kind == "modrelu":
                aten.threshold_backward.grad_input(g, torch.abs(h, out=size), 0, grad_input=d)
            elif kind == "leaky_relu":
                aten.leaky_relu_backward.grad_input(g, h, 0.1, True, grad_input=d)
            else:
                aten.tanh_backward.grad_input(g, h, grad_input=d)
            if t > 0 and ctx.every:
                torch.addmm(at[t - 1], d, W, out=g)
            elif t > 0:
                torch.mm(d, W, out=g)
        dW = deltas.view(T * B, n).t() @ states[:T].view(T * B, n)
        dbias = (torch.sign(states[1:]).mul_(deltas)).sum((0, 1)) if kind == "modrelu" else None
        return deltas, dW, dbias, None, None


def elman(work, variant):
    n, B = work.hidden, work.batch
    task = Task(work, n, n)
    if variant == "nn.RNN":
        cell = torch.nn.RNN(task.x.shape[2], n)
        return Model(lambda: task.loss(cell(task.x)[0][-1]), [*cell.parameters(), task.C, task.bias], task)
    matrix_parameters, matrix = recurrent_matrix(work)
    bias = parameter(n, scale=0.01)
    modrelu = work.activation == "modrelu"
    start = torch.zeros(B, n)
    loop = torch.jit.script(unroll) if variant == "script" else unroll

    def loss():
        inputs = task.projected(None if modrelu else bias)
        if variant == "wy":
            U, = matrix_parameters
            return task.loss(unroll_wy(inputs, start, U, triangular_factor(U), work.activation, task.every))
        if variant == "hand":
            return task.loss(HandElman.apply(inputs, matrix(), bias, work.activation, task.every))
        return task.loss(loop(inputs, start, matrix().t(), bias, work.activation, task.every))
    moved = matrix_parameters[1:] if work.recurrent == "svd_margin" else []
    return Model(loss, [*matrix_parameters[:len(matrix_parameters) - len(moved)], bias, *task.parameters], task, moved)


# ---- LSTM; gates in the order input, forget, output, candidate, so that three share one sigmoid

class HandLstm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inputs, W, every):
        T, B, n = inputs.shape[0], inputs.shape[1], W.shape[1]
        gates = torch.empty_like(inputs)
        h, c = inputs.new_zeros(T + 1, B, n), inputs.new_zeros(T + 1, B, n)
        squashed, Wt = inputs.new_empty(T, B, n), W.t()
        for t, x in enumerate(inputs.unbind(0)):
            a = gates[t]
            torch.addmm(x, h[t], Wt, out=a)
            a[:, :3 * n].sigmoid_()
            a[:, 3 * n:].tanh_()
            i, f, o, candidate = a.chunk(4, 1)
            torch.mul(f, c[t], out=c[t + 1]).addcmul_(i, candidate)
            torch.mul(o, torch.tanh(c[t + 1], out=squashed[t]), out=h[t + 1])
        ctx.kept, ctx.every = (W, gates, h, c, squashed), every
        return h[1:] if every else h[T]

    @staticmethod
    def backward(ctx, gradient):
        W, gates, h, c, squashed = ctx.kept
        T, B, n = squashed.shape
        deltas = torch.empty_like(gates)
        g = (gradient[T - 1] if ctx.every else gradient).clone()
        dc, product = gradient.new_zeros(B, n), gradient.new_empty(B, 4 * n)
        for t in range(T - 1, -1, -1):
            a, d = gates[t], deltas[t]
            i, f, o, candidate = a.chunk(4, 1)
            torch.mul(g, squashed[t], out=product[:, 2 * n:3 * n])
            dc += aten.tanh_backward(g * o, squashed[t])
            torch.mul(dc, candidate, out=product[:, :n])
            torch.mul(dc, c[t], out=product[:, n:2 * n])
            torch.mul(dc, i, out=product[:, 3 * n:])
            d[:, :3 * n] = aten.sigmoid_backward(product[:, :3 * n], a[:, :3 * n])
            d[:, 3 * n:] = aten.tanh_backward(product[:, 3 * n:], candidate)
            dc *= f
            if t > 0 and ctx.every:
                torch.addmm(gradient[t - 1], d, W, out=g)
            elif t > 0:
                torch.mm(d, W, out=g)
        return deltas, deltas.view(T * B, 4 * n).t() @ h[:T].view(T * B, n), None


def hand_lstm(inputs, W, upper):
    """The last state of the top layer; `upper` has W, bias and V of each layer above the first."""
    for above, bias, V in upper:
        inputs, W = F.linear(HandLstm.apply(inputs, W, True), V.t(), bias), above
    return HandLstm.apply(inputs, W, False)


def lstm(work, variant):
    n = work.hidden
    task = Task(work, 4 * n, n)
    if variant == "nn.LSTM":
        cell = torch.nn.LSTM(task.x.shape[2], n, work.layers)
        return Model(lambda: task.loss(cell(task.x)[0][-1]), [*cell.parameters(), task.C, task.bias], task)
    layers = [(parameter(4 * n, n, scale=1 / math.sqrt(n)), parameter(4 * n)) for _ in range(work.layers)]
    (W, bias), upper = layers[0], [(*layer, parameter(n, 4 * n)) for layer in layers[1:]]
    return Model(lambda: task.loss(hand_lstm(task.projected(bias), W, upper)),
                 [W, bias, *task.parameters, *(p for layer in upper for p in layer)], task)


# ---- complex Elman cells; a complex number is Re beside Im in the input projection and the readout

TINY = 1e-12


def complex_modrelu(z, bias):
    """Not for TorchScript, whose derivative of the modulus is wrong for complex numbers once it has optimised the loop."""
    size = torch.abs(z) + TINY
    return z * (F.relu(size + bias) / size)


class HandModrelu:
    """modReLU of all time steps. Backward works on a chunk of time steps at once, few calls that stay in the cache."""
    CHUNK = 32

    def __init__(self, inputs, bias):
        self.z, self.bias = torch.empty_like(inputs), bias
        self.size, self.scale = bias.new_empty(inputs.shape), bias.new_empty(inputs.shape[1:])

    def forward(self, t, state):
        """Of z[t], which is filled."""
        torch.abs(self.z[t], out=self.size[t]).add_(TINY)
        torch.add(self.size[t], self.bias, out=self.scale).relu_().div_(self.size[t])
        torch.mul(self.z[t], self.scale, out=state)

    def chunks(self):
        """First and last time step of each, from the end, when backward may go through it."""
        T = len(self.z)
        self.bias_gradient, self.product = torch.zeros_like(self.bias), torch.empty_like(self.z[0])
        for first in range((T - 1) // self.CHUNK * self.CHUNK, -1, -self.CHUNK):
            part = slice(first, min(first + self.CHUNK, T))
            self.first, size = first, self.size[part]
            self.unit = self.z[part] / size
            total = size + self.bias
            self.scales = F.relu(total) / size
            active = (total > 0).to(total.dtype)
            self.rest = active - self.scales  # what the direction of z gets beside the scale
            self.along = torch.empty_like(size)
            yield part.start, part.stop - 1
            self.bias_gradient += self.along.mul_(active).sum((0, 1))

    def backward(self, t, g, delta):
        """delta, of z[t], from the gradient g of the state."""
        k = t - self.first
        unit = self.unit[k]
        torch.mul(g.real, unit.real, out=self.along[k]).addcmul_(g.imag, unit.imag)
        torch.mul(unit, self.along[k] * self.rest[k], out=self.product)
        torch.add(torch.mul(g, self.scales[k], out=delta), self.product, out=delta)


class HandKronecker(torch.autograd.Function):
    """W = A x Q; for A = 1 the second product is left out."""

    @staticmethod
    def forward(ctx, inputs, A, Q, bias):
        T, B, n = inputs.shape
        p, q = A.shape[0], Q.shape[0]
        At, Qt = A.t().contiguous(), Q.t().contiguous()
        states, modrelu = inputs.new_zeros(T + 1, B, n), HandModrelu(inputs, bias)
        half = inputs.new_empty(T, B, q, p) if p > 1 else None
        narrow = inputs.new_empty(B * p, q)
        wide = inputs.new_empty(B * q, p)
        for t, x in enumerate(inputs.unbind(0)):
            z = modrelu.z[t]
            if p == 1:
                torch.addmm(x, states[t], Qt, out=z)
            else:
                torch.mm(states[t].view(B * p, q), Qt, out=narrow)
                half[t].copy_(narrow.view(B, p, q).transpose(1, 2))
                torch.mm(half[t].view(B * q, p), At, out=wide)
                torch.add(x.view(B, p, q), wide.view(B, q, p).transpose(1, 2), out=z.view(B, p, q))
            modrelu.forward(t, states[t + 1])
        ctx.kept = A, Q, states, half, modrelu
        return states[1:]

    @staticmethod
    def backward(ctx, gradient):
        A, Q, states, half, modrelu = ctx.kept
        T, B, n = gradient.shape
        p, q = A.shape[0], Q.shape[0]
        Ac, Qc = A.conj().resolve_conj(), Q.conj().resolve_conj()
        deltas, dhalf = torch.empty_like(gradient), torch.empty_like(half) if p > 1 else None
        product = gradient.new_empty(B * p, q)
        g = gradient[T - 1].clone()
        dturned = gradient.new_empty(T, B, q, p) if p > 1 else None
        for t in (t for first, last in modrelu.chunks() for t in range(last, first - 1, -1)):
            modrelu.backward(t, g, deltas[t])
            if p > 1:
                dturned[t].copy_(deltas[t].view(B, p, q).transpose(1, 2))
                torch.mm(dturned[t].view(B * q, p), Ac, out=dhalf[t].view(B * q, p))
            if t > 0:
                source = deltas[t] if p == 1 else product.view(B, p, q).copy_(dhalf[t].transpose(1, 2)).view(B * p, q)
                torch.addmm(gradient[t - 1].reshape(B * p, q), source, Qc, out=g.view(B * p, q))
        before = states[:T].reshape(T * B * p, q)
        if p == 1:
            dA, dQ = None, deltas.view(T * B, n).t() @ before.conj()
        else:
            dA = dturned.view(T * B * q, p).t() @ half.view(T * B * q, p).conj()
            dQ = dhalf.transpose(2, 3).reshape(T * B * p, q).t() @ before.conj()
        return deltas, dA, dQ, modrelu.bias_gradient


def complex_number():
    return torch.complex128 if torch.get_default_dtype() == torch.float64 else torch.complex64


def complex_elman(work, run, parameters, moved=(), order=None):
    """run(inputs, start, bias) gives the states of all time steps."""
    n, B, T = work.hidden, work.batch, work.length
    task, bias = Task(work, 2 * n, 2 * n), parameter(n, scale=0.01)
    start = torch.zeros(B, n, dtype=complex_number())

    def loss():
        states = run(torch.view_as_complex(task.projected(None).view(T, B, n, 2)), start, bias)
        return task.loss(torch.view_as_real(states).reshape(T, B, 2 * n))
    return Model(loss, [*parameters, bias, *task.parameters], task, list(moved), order)


def unroll_complex(inputs, h, Wt, bias):
    states = []
    for x in inputs.unbind(0):
        h = complex_modrelu(torch.addmm(x, h, Wt), bias)
        states.append(h)
    return torch.stack(states)


def run_dense(variant, matrix):
    """The run with a matrix that is formed once a step."""
    if variant.startswith("hand"):
        return lambda inputs, start, bias: HandKronecker.apply(inputs, torch.ones(1, 1, dtype=inputs.dtype), matrix(), bias)
    return lambda inputs, start, bias: unroll_complex(inputs, start, matrix().t(), bias)


def full_unitary(work, variant):
    W = random_unitary(work.hidden, complex_number())
    return complex_elman(work, run_dense(variant, lambda: W), [], [W])


# ---- with a Kronecker product of 2 x 2 factors

def product_of(factors):
    product = factors[0]
    for factor in factors[1:]:
        product = torch.kron(product, factor)
    return product


def apply_two(h, At, Qt):
    """Rows (A x Q) h by two plain products; PyTorch's batched products of complex numbers are slow."""
    p, q, B = At.shape[0], Qt.shape[0], h.shape[0]
    half = (h.reshape(B * p, q) @ Qt).view(B, p, q).transpose(1, 2).reshape(B * q, p)
    return (half @ At).view(B, q, p).transpose(1, 2).reshape(B, p * q)


def kronecker(work, variant):
    factors = [random_unitary(2, complex_number()) for _ in range(work.hidden.bit_length() - 1)]
    if "grouped" not in variant:
        return complex_elman(work, run_dense(variant, lambda: product_of(factors)), factors)
    left = len(factors) // 2

    def run(inputs, start, bias):
        A, Q = product_of(factors[:left]), product_of(factors[left:])
        if variant.startswith("hand"):
            return HandKronecker.apply(inputs, A, Q, bias)
        At, Qt, h, states = A.t(), Q.t(), start, []
        for x in inputs.unbind(0):
            h = complex_modrelu(apply_two(h, At, Qt) + x, bias)
            states.append(h)
        return torch.stack(states)
    return complex_elman(work, run, factors)


# ---- with the restricted-capacity map D3 R2 F^-1 D2 P R1 F D1, of rows

def diagonals(phases):
    return [torch.polar(torch.ones_like(phase), phase) for phase in phases]


def apply_urnn(h, D, v, u, order):
    """u = 2 conj(v) / |v|^2."""
    h = torch.fft.fft(h * D[0], norm="ortho")
    h = h - torch.outer(torch.mv(h, u[0]), v[0])
    h = torch.fft.ifft(h.index_select(1, order) * D[1], norm="ortho")
    return (h - torch.outer(torch.mv(h, u[1]), v[1])) * D[2]


def unroll_urnn(inputs, h, D, v, u, order, bias):
    states = []
    for x in inputs.unbind(0):
        h = complex_modrelu(apply_urnn(h, D, v, u, order) + x, bias)
        states.append(h)
    return torch.stack(states)


def duals(v):
    return [2 * w.conj() / torch.view_as_real(w).square().sum() for w in v]


class HandUrnn(torch.autograd.Function):
    """The loops in buffers; the gradient of the map by one application to the states of a chunk of time steps."""

    @staticmethod
    def forward(ctx, inputs, order, bias, *parameters):
        T, B, n = inputs.shape
        D, v, u = diagonals(parameters[:3]), parameters[3:], [w.resolve_conj() for w in duals(parameters[3:])]
        states, modrelu = inputs.new_zeros(T + 1, B, n), HandModrelu(inputs, bias)
        a, b = inputs.new_empty(B, n), inputs.new_empty(B, n)
        for t, x in enumerate(inputs.unbind(0)):
            torch.fft.fft(torch.mul(states[t], D[0], out=a), norm="ortho", out=b)
            b.addr_(torch.mv(b, u[0]), v[0], alpha=-1)
            torch.index_select(b, 1, order, out=a)
            torch.fft.ifft(a.mul_(D[1]), norm="ortho", out=b)
            b.addr_(torch.mv(b, u[1]), v[1], alpha=-1)
            torch.addcmul(x, b, D[2], out=modrelu.z[t])
            modrelu.forward(t, states[t + 1])
        ctx.kept = parameters, D, v, u, order, states, modrelu
        return states[1:]

    @staticmethod
    def backward(ctx, gradient):
        parameters, D, v, u, order, states, modrelu = ctx.kept
        T, B, n = gradient.shape
        back = torch.argsort(order)
        Dc = [d.conj().resolve_conj() for d in D]
        deltas, g = torch.empty_like(gradient), gradient[T - 1].clone()
        a, b = torch.empty_like(g), torch.empty_like(g)
        found = [torch.zeros_like(p) for p in parameters]
        for first, last in modrelu.chunks():
            for t in range(last, first - 1, -1):
                modrelu.backward(t, g, deltas[t])
                if t > 0:
                    torch.mul(deltas[t], Dc[2], out=a)
                    a.addr_(torch.mv(a, u[1]), v[1], alpha=-1)
                    torch.fft.fft(a, norm="ortho", out=b)
                    torch.index_select(b.mul_(Dc[1]), 1, back, out=a)
                    a.addr_(torch.mv(a, u[0]), v[0], alpha=-1)
                    torch.fft.ifft(a, norm="ortho", out=b)
                    torch.addcmul(gradient[t - 1], b, Dc[0], out=g)
            with torch.enable_grad():
                copies = [p.detach().requires_grad_() for p in parameters]
                rows = apply_urnn(states[first:last + 1].view(-1, n), diagonals(copies[:3]), copies[3:], duals(copies[3:]), order)
                parts = torch.autograd.grad(rows, copies, deltas[first:last + 1].view(-1, n))
            for total, part in zip(found, parts):
                total += part
        return (deltas, None, modrelu.bias_gradient, *found)


def urnn(work, variant):
    n = work.hidden
    phases = [((2 * torch.rand(n) - 1) * math.pi).requires_grad_() for _ in range(3)]
    v = [torch.randn(n, dtype=complex_number()).requires_grad_() for _ in range(2)]
    order = torch.randperm(n)

    def matrix():
        return apply_urnn(torch.eye(n, dtype=complex_number()), diagonals(phases), v, duals(v), order).t()

    def run(inputs, start, bias):
        if variant == "hand":
            return HandUrnn.apply(inputs, order, bias, *phases, *v)
        return unroll_urnn(inputs, start, diagonals(phases), v, duals(v), order, bias)
    return complex_elman(work, run_dense(variant, matrix) if "dense" in variant else run, [*phases, *v], order=order)


# ---- geodesic steps

def geodesic_step(M, rate, hand):
    """M <- (1 + rate/2 A)^-1 (1 - rate/2 A) M with A = G M^H - M G^H. By hand as 2 (1 + rate/2 A)^-1 M - M: a product less."""
    with torch.no_grad():
        P = M.grad @ M.conj().t()
        A = (P - P.conj().t()).mul_(rate / 2)
        I = torch.eye(len(M), dtype=M.dtype)
        if hand:
            A.diagonal().add_(1)
            M.add_(torch.linalg.solve(A, M), alpha=-2).neg_()
        else:
            M.copy_(torch.linalg.solve(I + A, M - A @ M))


# ---- measuring

def prepare(work, variant):
    """The model, which has the same parameters in each variant."""
    torch.manual_seed(1)
    complex_models = {"kronecker": kronecker, "full_unitary": full_unitary, "urnn": urnn}
    make = lstm if work.cell == "lstm" else complex_models.get(work.recurrent, elman)
    return make(work, variant)


def results(work, variant):
    """Outputs, loss, gradients, and the matrices that were moved, after their step."""
    model = prepare(work, variant)
    value = model.loss()
    value.backward()
    for M in model.moved:
        geodesic_step(M, work.geodesic, variant.startswith("hand"))
    return [model.task.output.detach(), value.detach(), *(p.grad for p in (*model.parameters, *model.moved)), *(M.detach() for M in model.moved)]


def training_step(work, variant):
    model = prepare(work, variant)
    optimizer = torch.optim.Adam(model.parameters, lr=1e-4)

    def step():
        optimizer.zero_grad(set_to_none=True)
        for M in model.moved:
            M.grad = None
        model.loss().backward()
        optimizer.step()
        for M in model.moved:
            geodesic_step(M, work.geodesic, variant.startswith("hand"))
    return step


def blas_in_use():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split()[-1] for line in maps if "blas" in line or "blis" in line or "mkl_rt" in line or "mkl_core" in line}
    return sorted(path for path in paths if path.startswith("/"))


def serve(work, variant, threads):
    torch.set_flush_denormal(True)
    torch.set_num_threads(threads)
    peer_process.serve(training_step(work, variant),
                       lambda: {"framework": "PyTorch", "version": torch.__version__, "libraries": blas_in_use()})


def small_works():
    """One of each kind of workload, in double precision from now on."""
    torch.set_default_dtype(torch.float64)
    common = {"length": 37, "batch": 3, "hidden": 8, "classes": 5, "reflections": 4, "rho": 3, "margin": 0.5, "geodesic": 0.1,
              "layers": 1}
    cases = [("householder", "leaky_relu", "adding"), ("householder", "leaky_relu", "symbols"), ("scaled_cayley", "modrelu", "pixels"),
             ("dense", "tanh", "pixels"), ("kronecker", "modrelu", "symbols"), ("urnn", "modrelu", "symbols"),
             ("full_unitary", "modrelu", "symbols"), ("svd_margin", "tanh", "symbols"), ("lie_exponential", "modrelu", "pixels")]
    works = [SimpleNamespace(**common, cell="elman", recurrent=r, activation=a, task=t) for r, a, t in cases]
    lstm_work = {**common, "cell": "lstm", "recurrent": "dense", "activation": "tanh", "task": "pixels"}
    return [*works, SimpleNamespace(**lstm_work), SimpleNamespace(**{**lstm_work, "layers": 2})]


def difference(found, expected):
    """The largest of all relative differences; not a number if one of them is not."""
    return float(torch.stack([(f - e).abs().max() / (e.abs().max() + 1e-30) for f, e in zip(found, expected, strict=True)]).max())


def check():
    errors = [check_lstm()]
    for work in small_works():
        comparable = [v for v in variants(work) if not v.startswith("nn.")]  # those draw other parameters
        reference = results(work, comparable[0])
        for variant in comparable:
            errors.append(difference(results(work, variant), reference))
            print(f"{work.cell:<6}{work.recurrent:<16}{work.task:<9}{variant:<13}{errors[-1]:.1e}")
    return 0 if all(error < 1e-9 for error in errors) else 1


def check_lstm():
    """Two layers against nn.LSTM's, with the gates in its order."""
    torch.set_default_dtype(torch.float64)
    T, B, n = 6, 3, 5
    cell = torch.nn.LSTM(2, n, 2)
    x = torch.randn(T, B, 2)
    order = torch.cat([torch.arange(k * n, (k + 1) * n) for k in (0, 1, 3, 2)])  # nn.LSTM: input, forget, candidate, output
    own = [getattr(cell, f"weight_{which}_l{layer}") for layer in range(2) for which in ("ih", "hh")]
    V, W, V1, W1 = (weight.detach()[order].requires_grad_() for weight in own)
    bias, bias1 = ((getattr(cell, f"bias_ih_l{layer}") + getattr(cell, f"bias_hh_l{layer}")).detach()[order] for layer in range(2))
    last, expected = hand_lstm(F.linear(x, V, bias), W, [(W1, bias1, V1.t())]), cell(x)[0][-1]
    weights = torch.randn(B, n)
    (last * weights).sum().backward()
    (expected * weights).sum().backward()
    error = difference([last.detach(), V.grad, W.grad, V1.grad, W1.grad], [expected.detach(), *(weight.grad[order] for weight in own)])
    print(f"{'two layers against nn.LSTM':<31}{'hand':<13}{error:.1e}")
    return error


def main(words):
    if words == ["check"]:
        return check()
    if words[0] == "variants":
        print(json.dumps(variants(SimpleNamespace(**json.loads(words[1])))))
    else:
        serve(SimpleNamespace(**json.loads(words[0])), words[1], int(words[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
