#!/usr/bin/python3
"""The experiments of experiments/methods that do not learn the adding problem, again in PyTorch: adding T = 100, n = 128, batches of 50
new sequences, 10,000 steps, the mean square on 1,000 others every 100 steps. Nothing of stiefel is used; only the settings are the same.

  elman_linear         h ← Wh + Vx + b, W orthogonal by a Cayley transform
  lru                  x ← λ∘x + γ∘(Vu + b), complex, |λ| < 1

usage: torch_adding.py NAME... [--seed 1] [--steps 10000] [--threads 1]
"""
import argparse
import json
import math

import torch

N, T, BATCH, PERIOD = 128, 100, 50, 100


def adding(count, generator):
    """Values and marks, count × T × 2, and the sums of the two marked values, one of each half."""
    values = torch.rand(count, T, generator=generator)
    marks = torch.zeros(count, T)
    rows = torch.arange(count)
    for low in (0, T // 2):
        marks[rows, torch.randint(low, low + T // 2, (count,), generator=generator)] = 1
    return torch.stack([values, marks], 2), (values * marks).sum(1)


def glorot(rows, columns):
    bound = math.sqrt(6 / (rows + columns))
    return torch.nn.Parameter(torch.empty(rows, columns).uniform_(-bound, bound))


def cayley_start(n):
    """The skew matrix of Henaff's form whose Cayley transform begins scoRNN: blocks of angles t, √((1 − cos t)/(1 + cos t))."""
    A = torch.zeros(n, n)
    angle = torch.rand(n // 2) * math.pi / 2
    s = torch.sqrt((1 - torch.cos(angle)) / (1 + torch.cos(angle)))
    index = torch.arange(0, n, 2)
    A[index, index + 1], A[index + 1, index] = s, -s
    return A


class Base(torch.nn.Module):
    """Input and readout."""
    rows = N

    def __init__(self):
        super().__init__()
        self.V = glorot(self.rows, 2)
        self.U = glorot(1, self.rows)
        self.c = torch.nn.Parameter(torch.zeros(1))

    def read(self, h):
        return (h @ self.U.t() + self.c).squeeze(1)


class LinearElman(Base):
    def __init__(self):
        super().__init__()
        self.b = torch.nn.Parameter(torch.zeros(N))
        self.A = torch.nn.Parameter(cayley_start(N))
        self.D = torch.ones(N)
        self.D[N // 2:] = -1

    def optimizers(self):
        rest = [p for p in self.parameters() if p is not self.A]
        return [torch.optim.RMSprop([self.A], lr=1e-3, alpha=0.9), torch.optim.Adam(rest, lr=3e-3)]

    def forward(self, x):
        A = self.A.tril(-1) - self.A.tril(-1).t()
        I = torch.eye(N)
        W = torch.linalg.solve(I + A, I - A) * self.D
        h = torch.zeros(len(x), N)
        inputs = x @ self.V.t() + self.b
        for t in range(T):
            h = h @ W.t() + inputs[:, t]
        return self.read(h)


class Lru(Base):
    rows = 2 * N

    def __init__(self):
        super().__init__()
        square = torch.empty(N).uniform_(0.9 ** 2, 0.999 ** 2)
        self.b = torch.nn.Parameter(torch.zeros(2 * N))
        self.nu = torch.nn.Parameter(torch.log(-0.5 * torch.log(square)))
        self.phi = torch.nn.Parameter(torch.log(6.28 * torch.rand(N).clamp(min=1e-6)))
        self.log_gamma = torch.nn.Parameter(0.5 * torch.log(1 - square))

    def optimizers(self):
        return [torch.optim.Adam(self.parameters(), lr=1e-3)]

    def forward(self, x):
        u = x @ self.V.t() + self.b
        inputs = torch.exp(self.log_gamma) * torch.complex(u[..., :N], u[..., N:])
        after = torch.arange(T - 1, -1, -1).unsqueeze(1)  # steps to the end, at which λ^after of an input is left
        powers = torch.polar(torch.exp(-torch.exp(self.nu) * after), torch.exp(self.phi) * after)
        h = (powers * inputs).sum(1)
        return self.read(torch.cat([h.real, h.imag], 1))


METHODS = {"elman_linear": LinearElman, "lru": Lru}


def train(name, seed, steps):
    """Steps and mean squares on the validation set."""
    torch.manual_seed(seed)
    model = METHODS[name]()
    fresh, fixed = torch.Generator().manual_seed(1000 + seed), torch.Generator().manual_seed(2000 + seed)
    inputs, targets = adding(1000, fixed)
    optimizers = model.optimizers()
    curve = []
    for step in range(1, steps + 1):
        x, y = adding(BATCH, fresh)
        for optimizer in optimizers:
            optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        for optimizer in optimizers:
            optimizer.step()
        if step % PERIOD == 0:
            with torch.no_grad():
                curve.append((step, float(((model(inputs) - targets) ** 2).mean())))
    return curve


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=METHODS, metavar="NAME")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", help="write the curves")
    settings = parser.parse_args()
    torch.set_num_threads(settings.threads)
    curves = {}
    for name in settings.names:
        curve = curves[name] = train(name, settings.seed, settings.steps)
        below = next((step for step, loss in curve if loss < 0.02), None)
        shown = ", ".join(f"{step}: {loss:.4f}" for step, loss in curve[len(curve) // 5 - 1::max(len(curve) // 5, 1)])
        print(f"{name}, seed {settings.seed}: smallest {min((loss for _, loss in curve), default=math.nan):.4f}, below 0.02 at step {below}; {shown}", flush=True)
    if settings.json:
        with open(settings.json, "w", encoding="utf-8") as file:
            json.dump(curves, file)


if __name__ == "__main__":
    main()
