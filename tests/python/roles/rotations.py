"""Rotations of neighboring rows by the angles base + θ. Every `period` steps: base ← base + θ, θ ← 0. Penalty λ‖θ‖²."""

import numpy as np
import stiefel


class Rotations(stiefel.Map):
    claim = "orthogonal"
    period: int = 2  # steps between changes of the base
    strength: float = 0.1  # λ

    def parameters(self, n):
        if n % 2:
            raise stiefel.Error(f"rotations need an even number of rows, but the map has {n}")
        self.base, self.steps = np.zeros(n // 2, self.dtype), 0
        return {"theta": (n // 2,)}

    def initial(self, rng):
        return {"theta": rng.uniform(0, np.pi / 2, self.n // 2)}

    def matrix(self, theta):
        self.cos, self.sin = np.cos(self.base + theta), np.sin(self.base + theta)
        W = np.zeros((self.n, self.n), self.dtype)
        even = np.arange(0, self.n, 2)
        W[even, even] = W[even + 1, even + 1] = self.cos
        W[even, even + 1], W[even + 1, even] = -self.sin, self.sin
        return W

    def pullback(self, dW, theta):
        even = np.arange(0, self.n, 2)
        same, other = dW[even, even] + dW[even + 1, even + 1], dW[even + 1, even] - dW[even, even + 1]
        return {"theta": -self.sin * same + self.cos * other}

    def penalty(self, theta):
        return self.strength * float(theta @ theta), {"theta": (2 * self.strength * theta).astype(self.dtype)}

    def after_step(self, theta):
        self.steps += 1
        if self.steps % self.period:
            return None
        self.base = self.base + theta
        return {"theta": np.zeros_like(theta)}

    def record(self):
        return {"base": float(np.abs(self.base).max(initial=0))}

    def state(self):
        return {"base": self.base, "steps": self.steps}

    def load(self, state):
        self.base, self.steps = np.array(state["base"]), int(state["steps"])
