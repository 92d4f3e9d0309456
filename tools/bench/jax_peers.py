"""JAX's side of tools/bench/run: the training steps of peers.py, one compiled function each, by the protocol described there.

`jax_peers.py variants WORKLOAD` lists the variants. `jax_peers.py check` compares outputs, loss, all gradients and moved matrices with
PyTorch's eager and hand-written variants, in double precision at small sizes; it needs an interpreter with both.

Variants: scan* is lax.scan with automatic differentiation; hand* has a custom_vjp whose backward scan computes only what the next step
needs, and which takes the gradient of a map as one product over all time steps. wy, grouped and dense mean the same as in peers.py.
"""
import functools
import json
import math
import os
import sys
from types import SimpleNamespace
from typing import NamedTuple

PROGRAM = __name__ == "__main__"
if PROGRAM and len(sys.argv) == 4:  # XLA takes as many threads as it finds CPUs when it is loaded
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(sys.argv[3])])
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # pylint: disable=wrong-import-position
import jax.numpy as jnp  # pylint: disable=wrong-import-position
import numpy as np  # pylint: disable=wrong-import-position
from jax import lax  # pylint: disable=wrong-import-position

import peer_process  # pylint: disable=wrong-import-position


def variants(work):
    """Names of the variants of a workload; those that begin with hand are an expert's."""
    own = {"kronecker": ["scan-grouped", "hand-grouped"], "urnn": ["scan-dense", "hand-dense"], "householder": ["scan-wy"]}
    return ["scan", "hand", *own.get(work.recurrent, [])]


class Batch(NamedTuple):
    """As in peers.py's Task."""
    x: jax.Array
    y: jax.Array


class Start(NamedTuple):
    """What a model begins with. Parameters are those of peers.py in its order: the map, the bias of the activation or of the gates, V, C,
    bias of the readout, W, bias and V of each further LSTM layer, and then the matrices that are moved along the orthogonal or unitary ones."""
    parameters: list
    moved: int  # how many of the parameters, the last ones
    batch: Batch
    order: np.ndarray  # the permutation of a restricted uRNN


# ---- tasks

def projected(work, V, batch, bias):
    """V x of all time steps, before the loop."""
    if work.task == "symbols":
        return (V if bias is None else V + bias)[batch.x]
    inputs = batch.x * V if batch.x.shape[2] == 1 else batch.x @ V
    return inputs if bias is None else inputs + bias


def scored(states, C, bias, y):
    """Loss and outputs of all states, T x B x n, or of the last one."""
    output = states.reshape(-1, states.shape[-1]) @ C.T + bias
    if jnp.issubdtype(y.dtype, jnp.integer):
        return -jnp.take_along_axis(jax.nn.log_softmax(output), y[:, None], 1).mean(), output
    return jnp.square(output - y).mean(), output


# ---- real Elman cells

def triangular_factor(U):
    """S with H(u_1) ... H(u_m) = I - U S U^T."""
    G = U.T @ U
    return jax.scipy.linalg.solve_triangular(jnp.triu(G, 1) + jnp.diag(jnp.diagonal(G) / 2), jnp.eye(len(G), dtype=U.dtype))


def recurrent_matrix(work, parameters):
    if work.recurrent == "householder":
        U, = parameters
        return jnp.eye(len(U), dtype=U.dtype) - U @ (triangular_factor(U) @ U.T)
    if work.recurrent == "svd_margin":
        p, U, V = parameters
        return (U * (1 + work.margin * jnp.tanh(p / 2))) @ V.T
    if work.recurrent == "dense":
        return parameters[0]
    lower = jnp.tril(parameters[0], -1)
    skew, eye = lower - lower.T, jnp.eye(work.hidden, dtype=lower.dtype)
    if work.recurrent == "lie_exponential":
        return jax.scipy.linalg.expm(skew)
    return jnp.linalg.solve(eye + skew, eye - skew) * jnp.where(jnp.arange(work.hidden) < work.rho, -1, 1)


def activate(z, bias, kind):
    if kind == "modrelu":
        return jnp.sign(z) * jax.nn.relu(jnp.abs(z) + bias)
    if kind == "leaky_relu":
        return jnp.where(z > 0, z, 0.1 * z)
    return jnp.tanh(z)


def parts(parameters, moved):
    """Those of the map, and the bias, V, C and the bias of the readout."""
    end = len(parameters) - moved
    return parameters[:end - 4] + parameters[end:], parameters[end - 4:end]


def unroll(step, inputs, start, every):
    """step(h, x) is the next state."""
    def both(h, x):
        h = step(h, x)
        return h, h if every else None
    last, states = lax.scan(both, start, inputs)
    return states if every else last


def zeros(inputs, columns):
    return jnp.zeros((inputs.shape[1], columns), inputs.dtype)


def reversed_deltas(back, gradient, every, kept):
    """back(g, kept of a time step) is (delta, the gradient of the state before); deltas of all time steps."""
    def step(g, at):
        if every:
            kept_here, gradient_here = at
            delta, g = back(g + gradient_here, kept_here)
        else:
            delta, g = back(g, at)
        return g, delta
    if every:
        return lax.scan(step, jnp.zeros_like(gradient[0]), (kept, gradient), reverse=True)[1]
    return lax.scan(step, gradient, kept, reverse=True)[1]


def product_over_time(deltas, states):
    """Sum over t of delta_t^T h_(t-1), where the first state is zero."""
    return lax.dot_general(deltas[1:], states[:-1], (((0, 1), (0, 1)), ((), ())))


def hand_elman(kind, every):
    def states_of(inputs, W, bias):
        Wt = W.T
        return unroll(lambda h, x: activate(h @ Wt + x, bias, kind), inputs, zeros(inputs, len(W)), True)

    @jax.custom_vjp
    def run(inputs, W, bias):
        states = states_of(inputs, W, bias)
        return states if every else states[-1]

    def forward(inputs, W, bias):
        states = states_of(inputs, W, bias)
        return states if every else states[-1], (states, W)

    def backward(kept, gradient):
        states, W = kept

        def back(g, h):
            if kind == "modrelu":
                delta = jnp.where(h == 0, 0, g)
            elif kind == "leaky_relu":
                delta = jnp.where(h > 0, g, 0.1 * g)
            else:
                delta = g * (1 - h * h)
            return delta, delta @ W
        deltas = reversed_deltas(back, gradient, every, states)
        dbias = jnp.sum(jnp.sign(states) * deltas, (0, 1)) if kind == "modrelu" else jnp.zeros(len(W), W.dtype)
        return deltas, product_over_time(deltas, states), dbias
    run.defvjp(forward, backward)
    return run


def elman(work, variant, _):
    modrelu, every = work.activation == "modrelu", work.task == "symbols"

    def loss(parameters, batch):
        own, (bias, V, C, c) = parts(parameters, 2 if work.recurrent == "svd_margin" else 0)
        inputs = projected(work, V, batch, None if modrelu else bias)
        start = zeros(inputs, work.hidden)
        if variant == "scan-wy":
            U, = own
            US = U @ triangular_factor(U).T
            states = unroll(lambda h, x: activate(h + x - (h @ US) @ U.T, bias, work.activation), inputs, start, every)
        elif variant == "scan":
            Wt = recurrent_matrix(work, own).T
            states = unroll(lambda h, x: activate(h @ Wt + x, bias, work.activation), inputs, start, every)
        else:
            states = hand_elman(work.activation, every)(inputs, recurrent_matrix(work, own), bias)
        return scored(states, C, c, batch.y)
    return loss


# ---- LSTM; gates in the order input, forget, output, candidate

def lstm_gates(h, x, Wt):
    a, n = h @ Wt + x, h.shape[1]
    return jax.nn.sigmoid(a[:, :3 * n]), jnp.tanh(a[:, 3 * n:])


def lstm_states(gates, candidate, c):
    i, f, o = jnp.split(gates, 3, 1)
    c = f * c + i * candidate
    return o * jnp.tanh(c), c


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def hand_lstm(inputs, W, every):
    return hand_lstm_forward(inputs, W, every)[0]


def hand_lstm_forward(inputs, W, every):
    Wt, start = W.T, zeros(inputs, W.shape[1])

    def step(state, x):
        gates, candidate = lstm_gates(state[0], x, Wt)
        h, c = lstm_states(gates, candidate, state[1])
        return (h, c), (gates, candidate, h, c)
    (last, _), kept = lax.scan(step, (start, start), inputs)
    return kept[2] if every else last, (W, kept)


def hand_lstm_backward(every, kept, gradient):
    W, (gates, candidates, h, c) = kept
    before = jnp.concatenate([jnp.zeros_like(c[:1]), c[:-1]])

    def step(state, at):
        g, dc = state
        gates, candidate, c, before, own = at
        i, f, o = jnp.split(gates, 3, 1)
        g = g + own if every else g
        squashed = jnp.tanh(c)
        dc = dc + g * o * (1 - squashed * squashed)
        dgates = jnp.concatenate([dc * candidate, dc * before, g * squashed], 1) * gates * (1 - gates)
        delta = jnp.concatenate([dgates, dc * i * (1 - candidate * candidate)], 1)
        return (delta @ W, dc * f), delta
    zero = jnp.zeros_like(h[0])
    start, own = (zero, gradient) if every else (gradient, None)
    deltas = lax.scan(step, (start, zero), (gates, candidates, c, before, own), reverse=True)[1]
    return deltas, product_over_time(deltas, h)


hand_lstm.defvjp(hand_lstm_forward, hand_lstm_backward)


def scanned_lstm(inputs, W, every):
    Wt, start = W.T, zeros(inputs, W.shape[1])

    def step(state, x):
        state = lstm_states(*lstm_gates(state[0], x, Wt), state[1])
        return state, state[0] if every else None
    (last, _), states = lax.scan(step, (start, start), inputs)
    return states if every else last


def lstm(work, variant, _):
    layer = hand_lstm if variant == "hand" else scanned_lstm

    def loss(parameters, batch):
        W, bias, V, C, c, *upper = parameters
        inputs = projected(work, V, batch, bias)
        for above, bias, V in zip(*[iter(upper)] * 3):
            inputs, W = layer(inputs, W, True) @ V + bias, above
        return scored(layer(inputs, W, False), C, c, batch.y)
    return loss


# ---- complex Elman cells; the gradient of a complex number is the conjugate of PyTorch's

TINY = 1e-12


def complex_modrelu(z, bias):
    size = jnp.abs(z) + TINY
    return z * (jax.nn.relu(size + bias) / size)


def hand_complex(apply, adjoint, gradient_of_map):
    """run(inputs, bias, map) gives the states of all time steps. apply(map, h) is W h by rows; adjoint(map, delta) the gradient of h, and
    gradient_of_map(map, deltas, states before) that of the map, both by JAX's convention."""
    def forward(inputs, bias, M):
        def step(h, x):
            z = apply(M, h) + x
            h = complex_modrelu(z, bias)
            return h, (z, h)
        _, (z, states) = lax.scan(step, zeros(inputs, inputs.shape[2]), inputs)
        return states, (z, states, bias, M)

    def backward(kept, gradient):
        z, states, bias, M = kept
        size = jnp.abs(z) + TINY
        unit, active = z / size, size + bias > 0
        scale = jnp.where(active, 1 + bias / size, 0)
        rest = jnp.where(active, -bias / size, 0)  # what the direction of z gets in addition to the scale

        def back(g, at):
            unit, scale, rest = at
            along = jnp.real(g * unit)
            delta = g * scale + jnp.conj(unit) * (along * rest)
            return (delta, along), adjoint(M, delta)
        deltas, along = reversed_deltas(back, gradient, True, (unit, scale, rest))
        before = jnp.concatenate([jnp.zeros_like(states[:1]), states[:-1]])
        return deltas, jnp.sum(jnp.where(active, along, 0), (0, 1)), gradient_of_map(M, deltas, before)

    @jax.custom_vjp
    def run(inputs, bias, M):
        return forward(inputs, bias, M)[0]
    run.defvjp(forward, backward)
    return run


def complex_elman(work, run):
    """run(map's parameters, inputs, bias) gives the states of all time steps."""
    def loss(parameters, batch):
        own, (bias, V, C, c) = parts(parameters, 1 if work.recurrent == "full_unitary" else 0)
        inputs = projected(work, V, batch, None)
        pairs = inputs.reshape(*inputs.shape[:2], work.hidden, 2)
        states = run(own, lax.complex(pairs[..., 0], pairs[..., 1]), bias)
        rows = jnp.stack([states.real, states.imag], -1).reshape(inputs.shape)
        return scored(rows, C, c, batch.y)
    return loss


def real_rows(h):
    return jnp.concatenate([h.real, h.imag], -1)


def complex_product(h, M):
    """h M of complex numbers by one real product: XLA's products of complex numbers take twice the time."""
    n = M.shape[1]
    real = real_rows(h) @ jnp.block([[M.real, M.imag], [-M.imag, M.real]])
    return lax.complex(real[..., :n], real[..., n:])


def complex_outer(deltas, before):
    """The sum of delta^T h over all but the last axis."""
    axes, n, m = tuple(range(deltas.ndim - 1)), deltas.shape[-1], before.shape[-1]
    P = lax.dot_general(real_rows(deltas), real_rows(before), ((axes, axes), ((), ())))
    return lax.complex(P[:n, :m] - P[n:, m:], P[:n, m:] + P[n:, :m])


def run_dense(variant, matrix):
    """The run with a matrix that is formed once a step."""
    hand = hand_complex(lambda W, h: complex_product(h, W.T), lambda W, delta: complex_product(delta, W),
                        lambda W, deltas, before: complex_outer(deltas, before))

    def run(own, inputs, bias):
        W = matrix(own)
        if variant.startswith("hand"):
            return hand(inputs, bias, W)
        Wt = W.T
        return unroll(lambda h, x: complex_modrelu(h @ Wt + x, bias), inputs, zeros(inputs, len(W)), True)
    return run


def full_unitary(work, variant, _):
    return complex_elman(work, run_dense(variant, lambda own: own[0]))


# ---- with a Kronecker product of 2 x 2 factors

def product_of(factors):
    product = factors[0]
    for factor in factors[1:]:
        product = jnp.kron(product, factor)
    return product


def apply_two(M, h):
    """Rows (A x Q) h."""
    A, Q = M
    p, q = len(A), len(Q)
    half = (h.reshape(-1, q) @ Q.T).reshape(-1, p, q)
    return jnp.einsum("ij,bjk->bik", A, half).reshape(h.shape)


def hand_apply_two(M, h):
    A, Q = M
    p, q = len(A), len(Q)
    half = complex_product(h.reshape(-1, q), Q.T).reshape(-1, p, q).swapaxes(1, 2)
    return complex_product(half.reshape(-1, p), A.T).reshape(-1, q, p).swapaxes(1, 2).reshape(h.shape)


def adjoint_of_two(M, delta):
    A, Q = M
    return hand_apply_two((A.T, Q.T), delta)


def gradient_of_two(M, deltas, before):
    A, Q = M
    D, H = deltas.reshape(-1, len(A), len(Q)), before.reshape(-1, len(A), len(Q))
    turned = D.swapaxes(1, 2)
    dA = complex_outer(turned, complex_product(H, Q.T).swapaxes(1, 2))
    dQ = complex_outer(complex_product(turned, A).swapaxes(1, 2), H)
    return dA, dQ


def kronecker(work, variant, _):
    if "grouped" not in variant:
        return complex_elman(work, run_dense(variant, product_of))
    hand = hand_complex(hand_apply_two, adjoint_of_two, gradient_of_two)

    def run(own, inputs, bias):
        M = product_of(own[:len(own) // 2]), product_of(own[len(own) // 2:])
        if variant.startswith("hand"):
            return hand(inputs, bias, M)
        return unroll(lambda h, x: complex_modrelu(apply_two(M, h) + x, bias), inputs, zeros(inputs, work.hidden), True)
    return complex_elman(work, run)


# ---- with the restricted-capacity map D3 R2 F^-1 D2 P R1 F D1, of rows

def urnn_factors(own):
    """Diagonals, reflection vectors v, and 2 conj(v) / |v|^2."""
    v = own[3:]
    return [jnp.exp(1j * phase) for phase in own[:3]], v, [2 * w.conj() / jnp.sum(jnp.square(jnp.abs(w))) for w in v]


def apply_urnn(factors, order, h):
    D, v, u = factors
    h = jnp.fft.fft(h * D[0], norm="ortho")
    h = h - jnp.outer(h @ u[0], v[0])
    h = jnp.fft.ifft(h[:, order] * D[1], norm="ortho")
    return (h - jnp.outer(h @ u[1], v[1])) * D[2]


def adjoint_of_urnn(factors, back, delta):
    """The transposed map; a Fourier transform is its own."""
    D, v, u = factors
    delta = delta * D[2]
    delta = jnp.fft.ifft(delta - jnp.outer(delta @ v[1], u[1]), norm="ortho") * D[1]
    delta = delta[:, back]
    return jnp.fft.fft(delta - jnp.outer(delta @ v[0], u[0]), norm="ortho") * D[0]


def gradient_of_urnn(factors, order, deltas, before):
    """By one application to the states of a chunk of time steps after the other: these stay in the cache."""
    T, _, n = deltas.shape
    steps = max(count for count in range(1, 33) if T % count == 0)

    def add(total, at):
        delta, h = at
        found = jax.vjp(lambda factors: apply_urnn(factors, order, h), factors)[1](delta)[0]
        return jax.tree.map(jnp.add, total, found), None
    chunks = [states.reshape(T // steps, -1, n) for states in (deltas, before)]
    return lax.scan(add, jax.tree.map(jnp.zeros_like, factors), chunks)[0]


def urnn(work, variant, order):
    back = np.argsort(order)
    if "dense" in variant:
        def matrix(own):
            return apply_urnn(urnn_factors(own), order, jnp.eye(work.hidden, dtype=own[3].dtype)).T
        return complex_elman(work, run_dense(variant, matrix))
    hand = hand_complex(lambda factors, h: apply_urnn(factors, order, h), lambda factors, delta: adjoint_of_urnn(factors, back, delta),
                        lambda factors, deltas, before: gradient_of_urnn(factors, order, deltas, before))

    def run(own, inputs, bias):
        factors = urnn_factors(own)
        if variant == "hand":
            return hand(inputs, bias, factors)
        return unroll(lambda h, x: complex_modrelu(apply_urnn(factors, order, h) + x, bias), inputs, zeros(inputs, work.hidden), True)
    return complex_elman(work, run)


# ---- the training step

def geodesic_step(M, G, rate, hand):
    """M <- (1 + rate/2 A)^-1 (1 - rate/2 A) M with A = G M^H - M G^H. By hand as 2 (1 + rate/2 A)^-1 M - M: a product less."""
    P = G @ M.conj().T
    A = (P - P.conj().T) * (rate / 2)
    I = jnp.eye(len(M), dtype=M.dtype)
    return 2 * jnp.linalg.solve(I + A, M) - M if hand else jnp.linalg.solve(I + A, M - A @ M)


def adam(parameters, gradients, first, second, step, rate=1e-4):
    """PyTorch's defaults; the gradient of a complex number counts as two."""
    def one(p, g, m, v):
        m, v = 0.9 * m + 0.1 * g, jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b, v, squares(g))
        size = jax.tree.map(lambda x: jnp.sqrt(x / (1 - 0.999 ** step)) + 1e-8, v)
        scaled = lax.complex(m.real / size[0], m.imag / size[1]) if jnp.iscomplexobj(g) else m / size[0]
        return p - rate / (1 - 0.9 ** step) * scaled, m, v
    return map(list, zip(*map(one, parameters, gradients, first, second)))


def squares(g):
    return [g.real ** 2, g.imag ** 2] if jnp.iscomplexobj(g) else [g * g]


def loss_of(work, variant, order):
    """loss(parameters, batch) gives the loss and the outputs."""
    makers = {"kronecker": kronecker, "full_unitary": full_unitary, "urnn": urnn}
    return (lstm if work.cell == "lstm" else makers.get(work.recurrent, elman))(work, variant, order)


def pass_and_move(work, variant, start):
    """A function of parameters and batch: outputs, loss, gradients by PyTorch's convention for complex numbers, moved matrices."""
    loss_and_gradients = jax.value_and_grad(loss_of(work, variant, start.order), has_aux=True)
    first = len(start.parameters) - start.moved

    def run(parameters, batch):
        (loss, output), gradients = loss_and_gradients(parameters, batch)
        gradients = [g.conj() for g in gradients]
        moved = [geodesic_step(M, G, work.geodesic, variant.startswith("hand")) for M, G in zip(parameters[first:], gradients[first:])]
        return output, loss, gradients, moved
    return run


def training_step(work, variant, start):
    trained = len(start.parameters) - start.moved
    run = pass_and_move(work, variant, start)

    def update(parameters, first, second, step, batch):
        _, loss, gradients, moved = run(parameters, batch)
        new, first, second = adam(parameters[:trained], gradients[:trained], first, second, step)
        return (new + moved, first, second, step + 1), loss

    compiled = jax.jit(update, donate_argnums=(0, 1, 2, 3))
    parameters = [jnp.asarray(p) for p in start.parameters]
    first = [jnp.zeros_like(p) for p in parameters[:trained]]
    state = parameters, first, [squares(m) for m in first], jnp.asarray(1.0, jnp.float32)

    def step():
        nonlocal state
        state, loss = compiled(*state, start.batch)
        loss.block_until_ready()
    return step


# ---- measuring

def start_of(work):
    """Parameters and batch in the shapes and sizes of peers.py."""
    numbers = np.random.default_rng(1)
    n, T, B, every = work.hidden, work.length, work.batch, work.task == "symbols"

    def draw(*shape, scale=0.1):
        return scale * numbers.standard_normal(shape)

    def complex_draw(*shape):
        return draw(*shape, scale=1) + 1j * draw(*shape, scale=1)

    def orthonormal(M):
        return np.linalg.qr(M)[0]

    rows, outputs = n, n
    own, moved = [], []
    if work.cell == "lstm":
        rows, own = 4 * n, [draw(4 * n, n, scale=1 / math.sqrt(n))]
    elif work.recurrent == "householder":
        own = [np.tril(draw(n, work.reflections, scale=1))]
    elif work.recurrent == "svd_margin":
        own, moved = [np.zeros(n)], [orthonormal(draw(n, n)) for _ in range(2)]
    elif work.recurrent == "kronecker":
        own = [orthonormal(complex_draw(2, 2)) for _ in range(n.bit_length() - 1)]
    elif work.recurrent == "urnn":
        own = [*((2 * numbers.random(n) - 1) * math.pi for _ in range(3)), complex_draw(n), complex_draw(n)]
    elif work.recurrent == "full_unitary":
        moved = [orthonormal(complex_draw(n, n))]
    else:
        own = [draw(n, n, scale=1 / math.sqrt(n) if work.recurrent == "dense" else 0.1)]
    if any(np.iscomplexobj(p) for p in own + moved):
        rows = outputs = 2 * n
    inputs, classes = {"adding": (2, 1), "pixels": (1, 10), "symbols": (work.classes + 1, work.classes)}[work.task]
    x = numbers.integers(0, inputs, (T, B)) if every else numbers.random((T, B, inputs))
    y = numbers.random((B, 1)) if work.task == "adding" else numbers.integers(0, classes, T * B if every else B)
    bias = draw(rows) if work.cell == "lstm" else draw(n, scale=0.01)
    upper = [p for _ in range(work.layers - 1) for p in (draw(rows, n, scale=1 / math.sqrt(n)), draw(rows), draw(n, rows))]
    parameters = [*own, bias, draw(inputs, rows), draw(classes, outputs), np.zeros(classes), *upper, *moved]
    return Start(parameters, len(moved), Batch(jnp.asarray(x), jnp.asarray(y)), numbers.permutation(n))


def serve(work, variant):
    peer_process.serve(training_step(work, variant, start_of(work)),
                       lambda: {"framework": "JAX", "version": jax.__version__, "libraries": []})


def check():
    import peers  # pylint: disable=import-outside-toplevel
    jax.config.update("jax_enable_x64", True)
    import torch  # pylint: disable=import-outside-toplevel
    errors = []
    for work in peers.small_works():
        drawn = peers.prepare(work, "hand")
        parameters = [jnp.asarray(p.detach().numpy()) for p in (*drawn.parameters, *drawn.moved)]
        batch = Batch(jnp.asarray(drawn.task.x.numpy()), jnp.asarray(drawn.task.y.numpy()))
        order = None if drawn.order is None else drawn.order.numpy()
        for reference in (name for name in peers.variants(work) if name in ("eager", "hand")):
            expected = peers.results(work, reference)
            for variant in variants(work):
                run = pass_and_move(work, variant, Start(parameters, len(drawn.moved), batch, order))
                output, loss, gradients, moved = run(parameters, batch)
                assert output.dtype == np.float64
                found = [torch.from_numpy(np.array(f)) for f in (output, loss, *gradients, *moved)]
                errors.append(peers.difference(found, expected))
                print(f"{work.cell:<6}{work.recurrent:<16}{work.task:<9}{variant:<13}against PyTorch's {reference:<6}{errors[-1]:.1e}")
    return 0 if all(error < 1e-9 for error in errors) else 1


def main(words):
    if words == ["check"]:
        return check()
    if words[0] == "variants":
        print(json.dumps(variants(SimpleNamespace(**json.loads(words[1])))))
    else:
        serve(SimpleNamespace(**json.loads(words[0])), words[1])
    return 0


if PROGRAM:
    sys.exit(main(sys.argv[1:]))
