import numpy as np
import stiefel


class Adam(stiefel.Optimizer):
    beta1: float = 0.9  # of the running mean of gradients
    beta2: float = 0.999  # of the running mean of squared gradients
    epsilon: float = 1e-8

    def attach(self, blocks):
        self.m = [np.zeros(b.shape, self.dtype) for b in blocks]
        self.v = [np.zeros(b.shape, self.dtype) for b in blocks]
        self.t = [0] * len(blocks)

    def step(self, block, rate, theta, gradient):
        self.t[block] += 1
        m, v, t = self.m[block], self.v[block], self.t[block]
        m += (1 - self.beta1) * (gradient - m)
        v += (1 - self.beta2) * (gradient * gradient - v)
        theta -= (rate / (1 - self.beta1**t) * m / (np.sqrt(v / (1 - self.beta2**t)) + self.epsilon)).astype(self.dtype)

    def state(self):
        each = range(len(self.m))
        return {f"{k}_{i}": getattr(self, k)[i] for k in "mvt" for i in each}

    def load(self, state):
        for i in range(len(self.m)):
            self.m[i], self.v[i], self.t[i] = state[f"m_{i}"], state[f"v_{i}"], int(state[f"t_{i}"])
