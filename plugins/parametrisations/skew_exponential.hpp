// exp(A) of a skew-symmetric or skew-Hermitian A, and the adjoint of its Fréchet derivative: dA = L_exp(Aᴴ, dW) for W =
// exp(A).
//
//   eigenvalues iμ of A = Q diag(iμ) Qᴴ     W = Q diag(e^{iμ}) Qᴴ     dA = Q[conj(Φ) ∘ (Qᴴ dW Q)]Qᴴ
//   Φ_jk = e^{i(μ_j + μ_k)/2} sinc((μ_j − μ_k)/2)      without a division by close eigenvalues
//   block form                              exp([[Aᴴ, dW], [0, Aᴴ]]) has dA in its upper right block
//
// A real A needs no complex number. PᵀAP is tridiagonal and couples even with odd places only, by a bidiagonal K = UΣVᵀ
// (Ward & Gray 1978): with E = P_even V and O = P_odd U, A = OΣEᵀ − EΣOᵀ, the eigenvectors are (e ∓ io)/√2 and μ = ±σ.
// An odd n is made even by a zero row.
#pragma once

#include <complex>
#include <vector>

#include "complex_form.hpp"

namespace stiefel {

template <class T> class SkewExponential;

template <> class SkewExponential<std::complex<double>> {
 public:
  void compute(const Complex& A);
  Complex value() const;
  Complex adjoint(const Complex& dW) const;
  double largest_angle() const { return mu_.size() ? mu_.cwiseAbs().maxCoeff() : 0; }

 private:
  Complex Q_;          // n × n
  Vector<double> mu_;  // n
};

template <> class SkewExponential<double> {
 public:
  void compute(const Matrix<double>& A);
  Matrix<double> value() const;
  Matrix<double> adjoint(const Matrix<double>& dW) const;
  double largest_angle() const { return sigma_.size() ? sigma_.maxCoeff() : 0; }

 private:
  /// T ← PᵀTP with numbers on two diagonals only, of which the lower one is kept, above the vectors of the reflections
  /// in P.
  static Vector<double> tridiagonalise(Matrix<double>& T);

  Matrix<double> frame_;  // n × 2⌈n/2⌉, E next to O
  Vector<double> sigma_;  // ⌈n/2⌉
};

/// exp(A) of any square A by scaling and squaring of the Padé approximant of degree 13 (Higham 2005, algorithm 2.3).
template <class T> Matrix<T> pade_exponential(Matrix<T> A);

/// L_exp(Aᴴ, dW) by the block form; dW is scaled to length 1 first, so that it needs few additional squarings.
template <class T> Matrix<T> block_adjoint(const Matrix<T>& A, const Matrix<T>& dW);

}  // namespace stiefel
