"""The exponential of the plugin lie_exponential: W = exp(A), A skew-symmetric by its strict lower triangle."""

import jax
import jax.numpy as jnp
import stiefel

jax.config.update("jax_enable_x64", True)


class Exponential(stiefel.Map):
    claim = "orthogonal"

    def parameters(self, n):
        return {"A": (n * (n - 1) // 2,)}

    def initial(self, rng):
        return {"A": rng.standard_normal(self.n * (self.n - 1) // 2)}

    def matrix(self, A):
        columns, rows = jnp.triu_indices(self.n, 1)  # below the diagonal, column after column
        L = jnp.zeros((self.n, self.n), A.dtype).at[rows, columns].set(A)
        return jax.scipy.linalg.expm(L - L.T)
