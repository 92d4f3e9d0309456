"""The scaled Cayley transform of the plugin scaled_cayley: W = (I + A)⁻¹(I − A)D, A by its strict lower triangle."""

import stiefel
import torch


class ScaledCayley(stiefel.Map):
    claim = "orthogonal"
    rho: int = 0  # number of entries −1 of D, which come last

    def parameters(self, n):
        return {"A": (n * (n - 1) // 2,)}

    def initial(self, rng):
        return {"A": rng.standard_normal(self.n * (self.n - 1) // 2)}

    def matrix(self, A):
        rows, columns = torch.triu_indices(self.n, self.n, 1).flip(0)  # below the diagonal, column after column
        L = torch.zeros(self.n, self.n, dtype=A.dtype).index_put((rows, columns), A)
        I = torch.eye(self.n, dtype=A.dtype)
        D = torch.ones(self.n, dtype=A.dtype)
        D[self.n - self.rho :] = -1
        return torch.linalg.solve(I + L - L.T, I - L + L.T) * D
