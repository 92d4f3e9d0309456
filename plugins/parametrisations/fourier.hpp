/// The Fourier transform of n complex numbers, for any n.
#pragma once

#include <stiefel/matrix.hpp>

#include <vector>

namespace stiefel {

/// X_j = Σ_k x_k e^{−2πi jk/n}, and the inverse without its factor 1/n. A column holds n numbers Re over n numbers Im, and
/// the three columns of a transform do not overlap. Transforms are thread-safe.
template <class S> class Fourier {
 public:
  explicit Fourier(Index n);

  Index scratch() const;  ///< how many numbers `work` holds
  void forward(const S* in, S* out, S* work) const { transform(in, in + n_, out, out + n_, work); }
  void inverse(const S* in, S* out, S* work) const { transform(in + n_, in, out + n_, out, work); }

  /// A pass combines `radix` numbers at a time. The passes before it have left `stride` transforms of radix·rest numbers.
  struct Pass {
    Index radix, rest, stride;
    std::vector<S>
        turns;  ///< for j = 1 … radix − 1 the cosines of −2πpj/(radix·rest), p = 0 … rest − 1, then the sines
    std::vector<S> roots;  ///< for k = 0 … radix − 1 the cosines of 2πk/radix, then the sines
  };

 private:
  void transform(const S* re, const S* im, S* out_re, S* out_im, S* work) const;

  Index n_;
  std::vector<Pass> passes_;
};

}  // namespace stiefel
