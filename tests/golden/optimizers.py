"""Ten steps of every variant of the optimizers on a recorded sequence of gradients, twenty on matrix manifolds, in float64 by NumPy alone.

python3 tests/golden/optimizers.py > tests/golden/optimizers.json writes what optimizer_test.cpp compares with.
"""
import json

import numpy as np

STEPS, RATE = 10, 0.05
START = np.array([0.5, -1.25, 2.0, 0.0, -0.03])
# Ordinary, large, tiny and changing gradients; the fourth is always zero.
t = np.arange(1, STEPS + 1)[:, None]
GRADIENTS = np.round(np.sin(1.7 * t + np.arange(5)) * np.array([1.0, 30.0, 1e-4, 0.0, 0.3]), 7)


def sgd(momentum=0.0, nesterov=False):
    x, v = START.copy(), np.zeros(5)
    for g in GRADIENTS:
        v = momentum * v - RATE * g
        x = x + (momentum * v - RATE * g if nesterov else v)
        yield x


def rmsprop(decay=0.9, epsilon=1e-8, epsilon_inside=False, accumulator_init=0.0):
    x, r = START.copy(), np.full(5, accumulator_init)
    for g in GRADIENTS:
        r = decay * r + (1 - decay) * g * g
        denominator = np.sqrt(r + epsilon) if epsilon_inside else np.sqrt(r) + epsilon
        x = x - RATE * np.divide(g, denominator, out=np.zeros(5), where=denominator > 0)
        yield x


def adam(beta1=0.9, beta2=0.999, epsilon=1e-8, form="bias_corrected"):
    x, m, v = START.copy(), np.zeros(5), np.zeros(5)
    for k, g in enumerate(GRADIENTS, start=1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        if form == "bias_corrected":
            rate, numerator = RATE, m / (1 - beta1**k)
            denominator = np.sqrt(v / (1 - beta2**k)) + epsilon
        else:
            rate, numerator = RATE * np.sqrt(1 - beta2**k) / (1 - beta1**k), m
            denominator = np.sqrt(v) + epsilon
        x = x - rate * np.divide(numerator, denominator, out=np.zeros(5), where=denominator > 0)
        yield x


VARIANTS = [
    (sgd, {}),
    (sgd, {"momentum": 0.9}),
    (sgd, {"momentum": 0.9, "nesterov": True}),
    (rmsprop, {}),
    (rmsprop, {"epsilon": 1e-10, "epsilon_inside": True, "accumulator_init": 1.0}),  # TensorFlow 1
    (rmsprop, {"epsilon": 1e-6, "epsilon_inside": True}),  # Lasagne
    (rmsprop, {"epsilon": 0.0, "accumulator_init": 1e-3}),  # uRNN
    (rmsprop, {"epsilon": 0.0}),  # 0/0 is no move
    (rmsprop, {"decay": 0.99}),  # PyTorch
    (rmsprop, {"decay": 0.5}),
    (rmsprop, {"epsilon_inside": True}),  # scuRNN
    (adam, {}),
    (adam, {"form": "epsilon_hat"}),
    (adam, {"beta1": 0.5, "beta2": 0.9, "epsilon": 1e-3}),
    (adam, {"beta1": 0.5, "beta2": 0.9, "epsilon": 1e-3, "form": "epsilon_hat"}),
    (adam, {"epsilon": 0.0}),
]


def complex_of(block, n):
    return block[:n] + 1j * block[n:] if len(block) == 2 * n else block


def geodesic_cayley(M, gradients, rate, preconditioner="none", decay=0.9, epsilon=1e-8, **drift_control):
    """Steps along the orthogonal or unitary matrices; M and the gradients are Re over Im for unitary ones."""
    n, r = M.shape[1], np.zeros(M.shape)
    M, I = complex_of(M, n), np.eye(n)
    for g in gradients:
        if preconditioner == "rms":
            r = decay * r + (1 - decay) * g * g
            g = g / (np.sqrt(r) + epsilon)
        G = complex_of(g, n)
        A = G @ M.conj().T - M @ G.conj().T
        M = np.linalg.inv(I + rate / 2 * A) @ (I - rate / 2 * A) @ M
        yield M if M.dtype == float else np.concatenate([M.real, M.imag])


def riemannian_adam(M, gradients, rate, retraction="cayley", scaling="block", beta1=0.9, beta2=0.999, epsilon=1e-8):
    n = M.shape[1]
    M, I = complex_of(M, n), np.eye(n)
    m, v = np.zeros_like(M), np.zeros((n, n)) * (0 if M.dtype == float else 0j)
    for t, g in enumerate(gradients, start=1):
        G = complex_of(g, n)
        A = G @ M.conj().T - M @ G.conj().T
        m = beta1 * m + (1 - beta1) * A
        square = np.mean(np.abs(A) ** 2) if scaling == "block" else A.real ** 2 + (0 if M.dtype == float else 1j * A.imag ** 2)
        v = beta2 * v + (1 - beta2) * square
        mean, square = m / (1 - beta1**t), v / (1 - beta2**t)
        if scaling == "block" or M.dtype == float:
            D = mean / (np.sqrt(square) + epsilon)
        else:
            D = mean.real / (np.sqrt(square.real) + epsilon) + 1j * mean.imag / (np.sqrt(square.imag) + epsilon)
        if retraction == "cayley":
            M = np.linalg.inv(I + rate / 2 * D) @ (I - rate / 2 * D) @ M
        elif retraction == "qr":
            Q, R = np.linalg.qr(M - rate * D @ M)
            M = Q * (np.diag(R) / np.abs(np.diag(R)))
        else:
            U, _, Vh = np.linalg.svd(M - rate * D @ M)
            M = U @ Vh
        yield M if M.dtype == float else np.concatenate([M.real, M.imag])


def manifold_runs():
    rng = np.random.RandomState(20170725)
    cases = [(geodesic_cayley, "orthogonal", 5, {}), (geodesic_cayley, "orthogonal", 5, {"preconditioner": "rms"}),
             (geodesic_cayley, "unitary", 4, {}),
             (geodesic_cayley, "unitary", 4, {"preconditioner": "rms", "reorthonormalise_every": 7})]
    for retraction in ["cayley", "qr", "polar"]:
        cases += [(riemannian_adam, manifold, n, {"retraction": retraction}) for manifold, n in [("orthogonal", 4), ("unitary", 3)]]
    cases += [(riemannian_adam, manifold, 3, {"scaling": "entries"}) for manifold in ["orthogonal", "unitary"]]
    for function, manifold, n, options in cases:
        start = np.linalg.qr(rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if manifold == "unitary" else 0))[0]
        if manifold == "unitary":
            start = np.concatenate([start.real, start.imag])
        gradients = np.round(rng.normal(size=(20, *start.shape)), 7)
        by_columns = lambda matrix: matrix.flatten(order="F").tolist()
        yield {"plugin": function.__name__, "options": options, "manifold": manifold, "n": n, "rate": RATE, "start": by_columns(start),
               "gradients": [by_columns(g) for g in gradients],
               "theta": [by_columns(M) for M in function(start, gradients, RATE, **options)]}


runs = [{"plugin": f.__name__, "options": options, "theta": [x.tolist() for x in f(**options)]} for f, options in VARIANTS]
head = json.dumps({"rate": RATE, "start": START.tolist(), "gradients": GRADIENTS.tolist()})
print(head[:-1] + ', "runs": [\n' + ",\n".join(json.dumps(run) for run in runs) + '], "manifold_runs": [\n' +
      ",\n".join(json.dumps(run) for run in manifold_runs()) + "]}")
