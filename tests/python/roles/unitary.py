import numpy as np
import stiefel


class Unitary(stiefel.Map):
    """The Cayley transform of A − Aᴴ."""

    claim = "orthogonal"
    complex = True

    def parameters(self, n):
        return {"re": (n, n), "im": (n, n)}

    def initial(self, rng):
        return {name: rng.standard_normal((self.n, self.n)) for name in ("re", "im")}

    def matrix(self, re, im):
        A = re + 1j * im
        I = np.eye(self.n, dtype=A.dtype)
        self.M = np.linalg.inv(I + A - A.conj().T)
        return 2 * self.M - I

    def pullback(self, dW, re, im):
        adjoint = self.M.conj().T
        dS = -2 * adjoint @ dW @ adjoint
        dA = dS - dS.conj().T
        return {"re": dA.real, "im": dA.imag}
