import numpy as np
import stiefel


class Householder(stiefel.Map):
    claim = "orthogonal"
    reflections: int = 4  # number of reflections m

    def parameters(self, n):
        if self.reflections > n:
            raise stiefel.Error(f"{self.reflections} reflections need {self.reflections} rows, but the map has {n}")
        return {"U": (n, self.reflections)}

    def initial(self, rng):
        return {"U": rng.standard_normal((self.n, self.reflections))}

    def matrix(self, U):
        self.parts = [np.eye(self.n, dtype=self.dtype)]  # I, H(u_m), H(u_{m-1}) H(u_m), …
        for u in U.T[::-1]:
            self.parts.append(self.parts[-1] - np.outer(u, 2 * (u @ self.parts[-1]) / (u @ u)))
        return self.parts[-1]

    def pullback(self, dW, U):
        dU = np.zeros_like(U)
        left = dW
        for k, u in enumerate(U.T):
            X, s = self.parts[-2 - k], u @ u  # H X with H = I − 2 u uᵀ / s
            v, w = X.T @ u, left.T @ u
            dU[:, k] = -2 / s * (left @ v + X @ w - 2 * (v @ w) / s * u)
            left = left - np.outer(u, 2 / s * w)
        return {"U": dU}
