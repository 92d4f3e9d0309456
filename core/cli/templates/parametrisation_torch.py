"""The Cayley transform W = (I + S)⁻¹(I − S) of a skew-symmetric matrix S = L − Lᵀ, L the strict lower triangle of A."""

import stiefel
import torch


class CLASS(stiefel.Map):
    claim = "orthogonal"
    scale: float = 1.0  # standard deviation of the entries of A at step 0

    def parameters(self, n):
        return {"A": (n, n)}

    def initial(self, rng):
        return {"A": self.scale * rng.standard_normal((self.n, self.n))}

    def matrix(self, A):  # autograd derives the pullback
        L = torch.tril(A, -1)
        I = torch.eye(self.n, dtype=A.dtype)
        return torch.linalg.solve(I + L - L.T, I - L + L.T)
