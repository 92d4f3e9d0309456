"""The reflections of the plugin householder: W = H(u_0) H(u_1) …, the first j numbers of u_j are 0 and no parameters."""

import numpy as np
import stiefel


class Householder(stiefel.Map):
    claim = "orthogonal"
    reflections: int = 1  # number of reflections m

    def parameters(self, n):
        if self.reflections > n:
            raise stiefel.Error(f"{self.reflections} reflections need as many rows, but the map has {n}")
        rows, columns = np.indices((n, self.reflections))
        self.entries = np.nonzero((rows >= columns).T)  # column after column
        return {"U": (len(self.entries[0]),)}

    def initial(self, rng):
        return {"U": rng.standard_normal(len(self.entries[0]))}

    def vectors(self, U):
        vectors = np.zeros((self.reflections, self.n), self.dtype)
        vectors[self.entries] = U
        return vectors

    def matrix(self, U):
        self.products = [np.eye(self.n, dtype=self.dtype)]  # I, H(u_m), H(u_{m−1}) H(u_m), …
        for u in self.vectors(U)[::-1]:
            self.products.append(self.products[-1] - np.outer(u, 2 / (u @ u) * (u @ self.products[-1])))
        return self.products[-1]

    def pullback(self, dW, U):
        vectors = self.vectors(U)
        gradients = np.zeros_like(vectors)
        for k, u in enumerate(vectors):
            X, s = self.products[-2 - k], u @ u  # H X with H = I − 2 u uᵀ / s
            v, w = X.T @ u, dW.T @ u
            gradients[k] = -2 / s * (dW @ v + X @ w - 2 * (v @ w) / s * u)
            dW = dW - np.outer(u, 2 / s * w)
        return {"U": gradients[self.entries]}
