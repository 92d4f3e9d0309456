#!/usr/bin/python3
"""Prints the numbers that tests/unit/random_test.cpp expects, from a second implementation of the random streams and from NumPy."""

import hashlib
import math

import numpy as np

MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1


def philox(counter, key):
    """Philox4x32-10, from the paper (Salmon et al., SC 2011)."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & MASK32, (a >> 32) ^ c[3] ^ k[1], a & MASK32]
        k = [(k[0] + 0x9E3779B9) & MASK32, (k[1] + 0xBB67AE85) & MASK32]
    return c


def mixed(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK64
    return x ^ (x >> 31)


def key_of(seed, name):
    h = 0xCBF29CE484222325
    for c in name.encode():
        h = ((h ^ c) * 0x100000001B3) & MASK64
    return mixed(mixed(seed) ^ mixed(h))


def stream(seed, name, index, count):
    """The first `count` numbers of 32 bits."""
    key, numbers = key_of(seed, name), []
    for block in range((count + 3) // 4):
        numbers += philox([block & MASK32, block >> 32, index & MASK32, index >> 32], [key & MASK32, key >> 32])
    return numbers[:count]


def uniforms(numbers):
    return [((low | high << 32) >> 11) * 2.0**-53 for low, high in zip(numbers[::2], numbers[1::2])]


def polynomial(coefficients, x):
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def natural_logarithm(x):
    m, e = math.frexp(x)
    if m < math.sqrt(2) / 2:
        m, e = 2 * m, e - 1
    s = (m - 1) / (m + 1)
    return e * math.log(2) + 2 * s * polynomial([1 / (2 * k + 1) for k in range(11)], s * s)


def cosine_of_turns(u):
    quarter = int(4 * u + 0.5)
    x = 2 * math.pi * (u - 0.25 * quarter)
    cosine = polynomial([(-1) ** k / math.factorial(2 * k) for k in range(9)], x * x)
    sine = polynomial([(-1) ** k / math.factorial(2 * k + 1) for k in range(9)], x * x)
    return (cosine, -x * sine, -cosine, x * sine)[quarter % 4]


def normals(numbers):
    """Exactly rounded as in core/src/sdk/random.cpp; not math.log and math.cos, whose last bits differ between machines."""
    u = uniforms(numbers)
    return [math.sqrt(-2 * natural_logarithm(1 - a)) * cosine_of_turns(b) for a, b in zip(u[::2], u[1::2])]


if __name__ == "__main__":
    for arguments in ((0, "", 0), (1, "train", 7), (MASK64, "initialise", 1 << 40)):
        print(arguments, [f"{x:#010x}" for x in stream(*arguments, 6)])
    print("uniform", [x.hex() for x in uniforms(stream(5, "u", 0, 6))])
    print("normal", [x.hex() for x in normals(stream(5, "n", 0, 24))])
    for seed in (92916, 1, 1234):
        order = np.random.RandomState(seed).permutation(784)
        print(seed, order[:5].tolist(), order[-5:].tolist(), hashlib.sha256(",".join(map(str, order)).encode()).hexdigest())
    r = np.random.RandomState(5544)
    print([x.hex() for x in r.random_sample(3).tolist()], r.randint(0, 10, 12).tolist(), r.randint(-5, 1000, 5).tolist(),
          r.random_sample().hex(), r.randint(0, 1), r.randint(0, 2**32, 3).tolist(), r.permutation(10).tolist())
