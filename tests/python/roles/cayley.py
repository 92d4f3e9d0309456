import numpy as np
import stiefel


class Cayley(stiefel.Map):
    claim = "orthogonal"
    scale: float = 1.0  # standard deviation of A

    def parameters(self, n):
        return {"A": (n, n)}

    def initial(self, rng):
        return {"A": rng.standard_normal((self.n, self.n)) * self.scale}

    def matrix(self, A):
        S = np.tril(A, -1)
        self.M = np.linalg.inv(np.eye(self.n, dtype=self.dtype) + S - S.T)
        return 2 * self.M - np.eye(self.n, dtype=self.dtype)

    def pullback(self, dW, A):
        dS = -2 * self.M.T @ dW @ self.M.T
        return {"A": np.tril(dS - dS.T, -1)}
