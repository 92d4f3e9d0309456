/// Fourier transform of a real frame: X[k] = Σ_n x[n] exp(−2πi kn/N), k = 0 … N/2.
#pragma once

#include <complex>
#include <Eigen/Core>

#include <unsupported/Eigen/FFT>

namespace stiefel {

/// For one thread at a time.
class RealFourier {
 public:
  /// N, even.
  explicit RealFourier(Eigen::Index size) : size_(size) { transform_.SetFlag(Eigen::FFT<double>::HalfSpectrum); }

  Eigen::Index bins() const { return size_ / 2 + 1; }
  void forward(const double* x, std::complex<double>* X) { transform_.fwd(X, x, size_); }
  /// x[n] = 1/N Σ over all N bins.
  void inverse(const std::complex<double>* X, double* x) { transform_.inv(x, X, size_); }

 private:
  Eigen::Index size_;
  Eigen::FFT<double> transform_;
};

}  // namespace stiefel
