"""Gradient descent with momentum: v ← μ v + g, θ ← θ − η v."""

import numpy as np
import stiefel


class CLASS(stiefel.Optimizer):
    momentum: float = 0.9  # μ

    def attach(self, blocks):
        self.velocity = [np.zeros(block.shape, self.dtype) for block in blocks]

    def step(self, block, rate, theta, gradient):
        v = self.velocity[block]
        v *= self.momentum
        v += gradient
        theta -= self.dtype.type(rate) * v

    def state(self):
        return {f"velocity_{i}": v for i, v in enumerate(self.velocity)}

    def load(self, state):
        self.velocity = [np.array(state[f"velocity_{i}"]) for i in range(len(self.velocity))]
