#!/usr/bin/python3
"""Writes parametrisations.txt and npy/: maps, gradients and activations computed by definition, for the unit tests.

W is formed from its definition (products of explicit reflections; a linear solve), gradients of <G, W(theta)> by complex steps
through that definition, so nothing here shares a formula with the C++ code. One line each: name rows columns numbers (by columns).
"""
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
rng = np.random.RandomState(20240229)
lines = []


def write(name, array):
    array = np.atleast_2d(np.asarray(array, dtype=float))
    if array.shape[0] == 1 and name.endswith("theta"):
        array = array.T
    lines.append(" ".join([name, *map(str, array.shape), *(repr(float(x)) for x in array.flatten(order="F"))]))


def gradient(function, theta, G):
    """d <G, function(theta)> / d theta by complex steps."""
    out = np.zeros(len(theta))
    for k in range(len(theta)):
        shifted = theta.astype(complex)
        shifted[k] += 1e-30j
        out[k] = np.sum(G * function(shifted)).imag / 1e-30
    return out


def householder(n, m):
    def W(theta):
        reflections = min(m, n - 1)
        W, first = np.eye(n, dtype=theta.dtype), 0
        for j in range(reflections):
            u = np.concatenate([np.zeros(j, dtype=theta.dtype), theta[first:first + n - j]])
            W = W @ (np.eye(n) - 2 * np.outer(u, u) / (u @ u))
            first += n - j
        if m == n:
            W = W @ np.diag(np.concatenate([np.ones(n - 1), theta[first:]]))
        return W
    return W


def scaled_cayley(n, rho, last):
    D = np.ones(n)
    D[n - rho if last else 0:n if last else rho] = -1

    def W(theta):
        A, k = np.zeros((n, n), dtype=theta.dtype), 0
        for j in range(n):
            for i in range(j + 1, n):
                A[i, j], A[j, i], k = theta[k], -theta[k], k + 1
        return np.linalg.solve(np.eye(n) + A, np.eye(n) - A) * D
    return W


def kronecker(rows, columns, is_complex):
    """Real form of W_0 x W_1 x ...; theta holds each factor by columns, Re over Im."""
    def W(theta):
        A, B, first = np.ones((1, 1), dtype=theta.dtype), np.zeros((1, 1), dtype=theta.dtype), 0
        for P, Q in zip(rows, columns):
            height = 2 * P if is_complex else P
            block = theta[first:first + height * Q].reshape(Q, height).T
            first += height * Q
            C, D = block[:P], block[P:] if is_complex else np.zeros((P, Q))
            A, B = np.kron(A, C) - np.kron(B, D), np.kron(A, D) + np.kron(B, C)
        return np.block([[A, -B], [B, A]]) if is_complex else A
    return W


def svd_margin(n, spectrum):
    """U diag(s) V^T; theta holds U and V by columns, then the n parameters of s."""
    def W(theta):
        U, V = theta[:n * n].reshape(n, n).T, theta[n * n:2 * n * n].reshape(n, n).T
        return U @ np.diag(spectrum(theta[2 * n * n:])) @ V.T
    return W


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def orthogonal(n):
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


def real_form(A, B):
    return np.block([[A, -B], [B, A]])


# Complex steps need an analytic function of theta, so complex maps are products of real 2n x 2n matrices.
def phases(theta):
    return real_form(np.diag(np.cos(theta)), np.diag(np.sin(theta)))


def complex_reflection(v):
    """I - 2 v v^H / |v|^2 of v = re + i im, Re over Im: in real form, two orthogonal vectors are removed."""
    n = len(v) // 2
    u, w = v, np.concatenate([-v[n:], v[:n]])
    return np.eye(2 * n) - 2 * (np.outer(u, u) + np.outer(w, w)) / (v @ v)


def urnn(n, permutation):
    """D3 R2 F^-1 D2 P R1 F D1 with numpy.fft; theta_1, theta_2, theta_3, v_1, v_2."""
    F, P = np.fft.fft(np.eye(n), norm="ortho", axis=0), np.eye(n)[permutation]
    inverse = np.fft.ifft(np.eye(n), norm="ortho", axis=0)
    F, inverse, P = real_form(F.real, F.imag), real_form(inverse.real, inverse.imag), real_form(P, np.zeros((n, n)))

    def W(theta):
        t, v = theta[:3 * n].reshape(3, n), theta[3 * n:].reshape(2, 2 * n)
        return phases(t[2]) @ complex_reflection(v[1]) @ inverse @ phases(t[1]) @ P @ complex_reflection(v[0]) @ F @ phases(t[0])
    return W


def tunable_pairs(n, capacity):
    return [[(i, i + 1) for i in range(layer % 2, n - 1, 2)] for layer in range(capacity)]


def fft_pairs(n):
    """Each layer by the blocks of neighbouring pairs; below a distance of 4, by the position within a block."""
    layers, distance = [], n // 2
    while distance:
        pairs = [(b + r, b + r + distance) for b in range(0, n, 2 * distance) for r in range(distance)]
        layers.append(pairs if distance >= 4 else sorted(pairs, key=lambda pair: pair[0] % distance))
        distance //= 2
    return layers


def givens(n, layers, is_complex):
    """Explicit matrices of rotations; theta, phi, omega."""
    count = sum(map(len, layers))

    def W(theta):
        W, angles = np.eye(2 * n if is_complex else n, dtype=theta.dtype), iter(range(count))
        for i, j in (pair for layer in layers for pair in layer):
            k = next(angles)
            c, s = np.cos(theta[k]), np.sin(theta[k])
            A, B = np.eye(n, dtype=theta.dtype), np.zeros((n, n), dtype=theta.dtype)
            x, y = (np.cos(theta[count + k]), np.sin(theta[count + k])) if is_complex else (1, 0)
            A[i, i], A[j, i], A[i, j], A[j, j], B[i, j], B[j, j] = c, s, -x * s, x * c, -y * s, y * c
            W = (real_form(A, B) if is_complex else A) @ W
        return phases(theta[2 * count:]) @ W if is_complex else W
    return W


def case(name, function, theta):
    G = rng.normal(size=function(theta).shape)
    write(name + ".theta", theta)
    write(name + ".W", function(theta))
    write(name + ".G", G)
    write(name + ".gradient", gradient(function, theta, G).reshape(-1, 1))


for n, m in [(5, 1), (6, 3), (7, 6), (6, 6)]:
    size = n * m - m * (m - 1) // 2
    theta = rng.normal(size=size)
    if m == n:
        theta[-1] = -1
    case(f"householder_{n}_{m}", householder(n, m), theta)
for n, rho, last in [(5, 2, True), (6, 3, False), (4, 0, True)]:
    case(f"scaled_cayley_{n}_{rho}_{'last' if last else 'first'}", scaled_cayley(n, rho, last), rng.normal(size=n * (n - 1) // 2))

# Activations of a column of 6 numbers, biases of 6 or 3. Complex numbers are rows i and i + 3.
a = np.array([0.7, -1.1, 0.05, -0.02, 0.9, -0.4])
b6, b3 = np.array([0.3, -0.2, -0.1, 0.05, -1.2, 0.0]), np.array([-0.5, 0.4, -0.1])
write("activation.a", a.reshape(-1, 1))
write("activation.bias_real", b6.reshape(-1, 1))
write("activation.bias_complex", b3.reshape(-1, 1))
relu = lambda x: np.maximum(x, 0)
z = a[:3] + 1j * a[3:]
r = np.abs(z)
wis = np.sqrt(1e-5 + a[:3] ** 2 + a[3:] ** 2)
forms = {
    "identity": a, "tanh": np.tanh(a), "relu": relu(a), "leaky_relu": np.maximum(0.1 * a, a), "prelu": relu(a) + 0.25 * np.minimum(a, 0),
    "oplu_halves": np.concatenate([np.maximum(a[:3], a[3:]), np.minimum(a[:3], a[3:])]),
    "oplu_adjacent": np.stack([np.maximum(a[::2], a[1::2]), np.minimum(a[::2], a[1::2])], axis=1).ravel(),
    "modrelu_exact": np.sign(a) * relu(np.abs(a) + b6), "modrelu_eu": np.sign(a) * relu(np.abs(a) + 0.01 + b6),
    "modrelu_goru": np.sign(a) * relu(np.abs(a) + 0.001 + b6),
}
pairs = {"exact": z / r * relu(r + b3), "arj": z * relu(r + b3) / (r + 1e-5), "wis": z * relu(wis + b3) / (wis + 1e-5),
         "eu": z / (r + 0.01) * relu(r + 0.01 + b3), "squared": z * relu(r ** 2 + b3) / r ** 2}
forms |= {"pairs_" + name: np.concatenate([h.real, h.imag]) for name, h in pairs.items()}
for name, h in forms.items():
    write("activation." + name, h.reshape(-1, 1))

(HERE / "npy").mkdir(exist_ok=True)
matrix = np.arange(6, dtype="<f8").reshape(2, 3) / 4 - 0.5
np.save(HERE / "npy" / "c_float64.npy", matrix)
np.save(HERE / "npy" / "fortran_float64.npy", np.asfortranarray(matrix))
np.save(HERE / "npy" / "c_float32.npy", matrix.astype("<f4"))
np.save(HERE / "npy" / "vector_float32.npy", matrix.astype("<f4").ravel())
np.save(HERE / "npy" / "integers.npy", np.arange(3))
np.save(HERE / "npy" / "cube.npy", np.zeros((2, 2, 2)))
theta = rng.normal(size=(4, 4))
np.save(HERE / "npy" / "orthogonal_4.npy", np.linalg.qr(theta)[0])

for name, rows, columns, is_complex in [("complex", (3, 2, 2), (3, 2, 2), True), ("wide", (2, 3), (3, 4), True),
                                        ("real", (2, 2, 4), (2, 2, 4), False)]:
    size = (2 if is_complex else 1) * sum(P * Q for P, Q in zip(rows, columns))
    case("kronecker_" + name, kronecker(rows, columns, is_complex), rng.normal(size=size))

for name, spectrum in [("half", lambda p: 2 * 0.5 * (sigmoid(p) - 0.5) + 1), ("free", lambda s: s),
                       ("relu", lambda p: np.where((2 * 3 * (sigmoid(p) - 0.5) + 1).real > 0, 2 * 3 * (sigmoid(p) - 0.5) + 1, 0))]:
    case("svd_margin_" + name, svd_margin(5, spectrum),
         np.concatenate([orthogonal(5).ravel(), orthogonal(5).ravel(), 2 * rng.normal(size=5)]))

for permutation in [1, 0, 2, 4, 3], [5, 3, 4, 1, 0, 6, 7, 2]:  # those of permutation_seed 1
    n = len(permutation)
    case(f"urnn_{n}", urnn(n, permutation), rng.normal(size=7 * n))
for name, n, layers in [("tunable_6_3", 6, tunable_pairs(6, 3)), ("tunable_5_4", 5, tunable_pairs(5, 4)), ("fft_8", 8, fft_pairs(8)),
                        ("fft_16", 16, fft_pairs(16))]:
    count = sum(map(len, layers))
    case("givens_complex_" + name, givens(n, layers, True), rng.normal(size=2 * count + n))
    case("givens_real_" + name, givens(n, layers, False), rng.normal(size=count))


def real_form(C):
    return np.block([[C[0], -C[1]], [C[1], C[0]]])


def skew_table(n, is_complex, order, theta):
    """Real form of the skew-Hermitian (or the skew-symmetric) A, as a sum over the basis of its Lie algebra."""
    A, B, k = np.zeros((n, n), dtype=theta.dtype), np.zeros((n, n), dtype=theta.dtype), 0
    for slow in range(n):
        for fast in range(n):
            i, j = (slow, fast) if order == "rows" else (fast, slow)
            if i > j:
                A[i, j] += theta[k]
                A[j, i] -= theta[k]
            elif not is_complex:
                continue
            elif i < j:
                B[i, j] += theta[k]
                B[j, i] += theta[k]
            else:
                B[j, j] += theta[k]
            k += 1
    return real_form((A, B)) if is_complex else A


def taylor_exponential(A):
    """exp(A) by its series, after halving A until the series is short, and squaring."""
    halvings = max(0, int(np.ceil(np.log2(max(np.abs(A).sum(axis=0).max(), 1e-300)))) + 4)
    X, term = np.eye(len(A), dtype=A.dtype), np.eye(len(A), dtype=A.dtype)
    for k in range(1, 25):
        term = term @ A / 2.0 ** halvings / k
        X = X + term
    for _ in range(halvings):
        X = X @ X
    return X


def frechet(A, E, points=40):
    """The derivative of exp at A along E, as the integral over s of exp(sA) E exp((1 - s)A), by Gauss and Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return sum(w / 2 * taylor_exponential((1 + x) / 2 * A) @ E @ taylor_exponential((1 - x) / 2 * A) for x, w in zip(nodes, weights))


def lie_exponential(n, is_complex, order):
    return lambda theta: taylor_exponential(skew_table(n, is_complex, order, theta))


def scaled_cayley_unitary(n):
    def W(theta):
        A, I = skew_table(n, True, "columns", theta[:n * n]), np.eye(2 * n)
        D = real_form((np.diag(np.cos(theta[n * n:])), np.diag(np.sin(theta[n * n:]))))
        return np.linalg.inv(I + A) @ (I - A) @ D
    return W


def banded_cayley(n, bandwidth, rho):
    def W(theta):
        full, first = [], 0
        for j in range(n):
            count = min(bandwidth, n - 1 - j)
            full += [*theta[first:first + count], *([0] * (n - 1 - j - count))]
            first += count
        return scaled_cayley(n, rho, True)(np.array(full, dtype=theta.dtype))
    return W


def unitary_householder(n, m):
    """Each reflection in real form: I - 2 E E^T / |u|^2 with E = [[Re u, -Im u], [Im u, Re u]]."""
    def W(theta):
        W, first = np.eye(2 * n, dtype=theta.dtype), 0
        for j in range(m):
            re, im = np.zeros((n, 1), dtype=theta.dtype), np.zeros((n, 1), dtype=theta.dtype)
            re[j:, 0], im[j:, 0] = theta[first:first + n - j], theta[first + n - j:first + 2 * (n - j)]
            first += 2 * (n - j)
            E = real_form((re, im))
            W = W @ (np.eye(2 * n) - 2 * E @ E.T / np.sum(re * re + im * im))
        return W @ real_form((np.diag(np.cos(theta[first:])), np.diag(np.sin(theta[first:]))))
    return W


for name, n, is_complex, order in [("real_5", 5, False, "columns"), ("real_6", 6, False, "columns"), ("rows_5", 5, False, "rows"),
                                   ("complex_4", 4, True, "columns"), ("complex_rows_3", 3, True, "rows")]:
    theta = rng.normal(size=n * n if is_complex else n * (n - 1) // 2)
    case("lie_exponential_" + name, lie_exponential(n, is_complex, order), theta)
    # The gradients above are complex steps through exp; here the same by the integral.
    A, G = skew_table(n, is_complex, order, theta), np.array([float(x) for x in lines[-2].split()[3:]])
    G = G.reshape(A.shape, order="F")
    by_integral = [np.sum(G * frechet(A, skew_table(n, is_complex, order, e))) for e in np.eye(len(theta))]
    assert np.abs(by_integral - np.array([float(x) for x in lines[-1].split()[3:]])).max() < 1e-12
# Twice the eigenvalue i, four times 0.
theta = np.zeros(28)
theta[[0, 13]] = 1, -1
case("lie_exponential_degenerate_8", lie_exponential(8, False, "columns"), theta)
case("scaled_cayley_unitary_4", scaled_cayley_unitary(4), rng.normal(size=20))
case("scaled_cayley_band_6", banded_cayley(6, 2, 3), rng.normal(size=9))
for n, m in [(5, 1), (5, 3), (4, 3)]:
    case(f"unitary_householder_{n}_{m}", unitary_householder(n, m), rng.normal(size=2 * (n * m - m * (m - 1) // 2) + n))


def chain(n, m, theta):
    W, first = np.eye(n, dtype=theta.dtype), 0
    for j in range(m):
        u = np.concatenate([np.zeros(j, dtype=theta.dtype), theta[first:first + n - j]])
        W, first = W @ (np.eye(n) - 2 * np.outer(u, u) / (u @ u)), first + n - j
    return W, theta[first:]


def spectral_householder(n, m1, m2, centre, margin):
    def W(theta):
        P, rest = chain(n, m1, theta)
        s = centre + 2 * margin * (1 / (1 + np.exp(-rest[:n])) - 0.5)
        return P @ np.diag(s) @ chain(n, m2, rest[n:])[0].T
    return W


def nonnormal(n):
    def W(theta):
        skew, pairs = n * (n - 1) // 2, n // 2
        P = taylor_exponential(skew_table(n, False, "columns", theta[:skew]))
        gamma, angle, T = np.split(theta[skew:], [n - pairs, n])
        core, k = np.zeros((n, n), dtype=theta.dtype), 0
        for b in range(pairs):
            c, s = gamma[b] * np.cos(angle[b]), gamma[b] * np.sin(angle[b])
            core[2 * b:2 * b + 2, 2 * b:2 * b + 2] = np.array([[c, -s], [s, c]])
        if n % 2:
            core[-1, -1] = gamma[-1]
        for j in range(n):
            for i in range(j):
                if i // 2 != j // 2:
                    core[i, j], k = T[k], k + 1
        return P @ core @ P.T
    return W


case("spectral_householder_6", spectral_householder(6, 2, 4, 1, 0.3), rng.normal(size=11 + 6 + 18))
for n in (5, 6):
    case(f"nonnormal_{n}", nonnormal(n), rng.normal(size=n * (n - 1) + n - n // 2))
Q = np.linalg.qr(rng.normal(size=(4, 4)) + 1j * rng.normal(size=(4, 4)))[0]
np.save(HERE / "npy" / "unitary_4.npy", np.vstack([Q.real, Q.imag]))


def symmetric_skew(n, beta, gamma):
    def W(theta):
        M = theta.reshape(n, n).T
        return (1 - beta) * (M + M.T) + beta * (M - M.T) - gamma * np.eye(n)
    return W


case("symmetric_skew_5", symmetric_skew(5, 0.7, 0.3), rng.normal(size=25))
for name, is_complex in [("complex", True), ("real", False)]:
    case(f"kronecker_{name}_2_5", kronecker((2,) * 5, (2,) * 5, is_complex), rng.normal(size=(2 if is_complex else 1) * 20))

(HERE / "parametrisations.txt").write_text("\n".join(lines) + "\n")
