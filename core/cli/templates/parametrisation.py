"""The Cayley transform W = (I + S)⁻¹(I − S) of a skew-symmetric matrix S = L − Lᵀ, L the strict lower triangle of A."""

import numpy as np
import stiefel


class CLASS(stiefel.Map):
    claim = "orthogonal"
    scale: float = 1.0  # standard deviation of the entries of A at step 0

    def parameters(self, n):
        return {"A": (n, n)}

    def initial(self, rng):
        return {"A": self.scale * rng.standard_normal((self.n, self.n))}

    def matrix(self, A):
        L = np.tril(A, -1)
        self.M = np.linalg.inv(np.eye(self.n, dtype=self.dtype) + L - L.T)
        return 2 * self.M - np.eye(self.n, dtype=self.dtype)

    def pullback(self, dW, A):
        dS = -2 * self.M.T @ dW @ self.M.T  # M = (I + S)⁻¹ of the last call of matrix
        return {"A": np.tril(dS - dS.T, -1)}
