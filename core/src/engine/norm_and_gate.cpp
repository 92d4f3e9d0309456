#include "engine/norm_and_gate.hpp"

#include <cmath>
#include <stiefel/initialiser.hpp>
#include <stiefel/vector_math.hpp>

namespace stiefel {

template <class S> std::vector<BlockSpec> Norm<S>::blocks() const {
  std::vector<BlockSpec> blocks;
  if (present()) blocks.push_back({"weight", rows_});
  if (present() && centered_) blocks.push_back({"bias", rows_});
  return blocks;
}

template <class S> void Norm<S>::initialise(Blocks<S> theta) const {
  if (present()) as_vector(theta[0]).setOnes();
}

template <class S> std::pair<S, S> Norm<S>::statistics(const S* s) const {
  const Eigen::Map<const Vector<S>> x(s, rows_);
  const S mean = centered_ ? x.mean() : S(0);
  return {mean, 1 / std::sqrt((x.array() - mean).square().mean() + S(1e-5))};
}

template <class S> void Norm<S>::forward(CBlocks<S> theta, const S* s, S* u) const {
  const auto [mean, scale] = statistics(s);
  const S* weight = theta[0].data();
  for (Index i = 0; i < rows_; ++i) u[i] = (s[i] - mean) * scale * weight[i];
  if (centered_) Eigen::Map<Vector<S>>(u, rows_) += as_vector(theta[1]);
}

template <class S> void Norm<S>::backward(CBlocks<S> theta, const S* s, S* du, Blocks<S> dtheta) const {
  const auto [mean, scale] = statistics(s);
  const auto x = ((Eigen::Map<const Vector<S>>(s, rows_).array() - mean) * scale).eval();
  Eigen::Map<Eigen::Array<S, Eigen::Dynamic, 1>> d(du, rows_);
  if (dtheta.count() > 0) {
    as_vector(dtheta[0]).array() += d * x;
    if (centered_) as_vector(dtheta[1]).array() += d;
  }
  d *= as_vector(theta[0]).array();
  const S along = (d * x).mean(), shift = centered_ ? d.mean() : S(0);
  d = scale * (d - shift - along * x);
}

template <class S> std::vector<BlockSpec> Gate<S>::blocks() const {
  if (!present()) return {};
  return {{"weight", 2 * rows_ * rows_, 2 * rows_, rows_}, {"bias", 2 * rows_}};
}

template <class S> void Gate<S>::initialise(Blocks<S> theta, Rng& rng) const {
  if (present()) Initialiser{"glorot_uniform"}.fill(as_matrix(theta[0], 2 * rows_, rows_), rng);
}

template <class S> void Gate<S>::refresh(CBlocks<S> theta) {
  if (!present()) return;
  weight_.pack(as_matrix(theta[0], 2 * rows_, rows_));
  adjoint_.pack_transposed(as_matrix(theta[0], 2 * rows_, rows_));
}

template <class S> void Gate<S>::forward(CBlocks<S> theta, CMat<S> h, Mat<S> z, Mat<S> g) const {
  weight_.multiply(h, z);
  z.colwise() += as_vector(theta[1]);
  for (Index c = 0; c < z.cols(); ++c) {
    const std::span<S> open(z.col(c).data() + rows_, std::size_t(rows_));
    vector_sigmoid<S>(open, open);
  }
  g = z.topRows(rows_).cwiseProduct(z.bottomRows(rows_));
}

template <class S> void Gate<S>::backward(CMat<S> h, CMat<S> dg, Mat<S> z, Mat<S> dh, Blocks<S> dtheta) const {
  for (Index c = 0; c < z.cols(); ++c)
    for (Index i = 0; i < rows_; ++i) {
      const S open = z(rows_ + i, c), d = dg(i, c);
      z(rows_ + i, c) = d * z(i, c) * open * (1 - open);
      z(i, c) = d * open;
    }
  if (dtheta.count() > 0) {
    add_outer(CMat<S>(z), h, as_matrix(dtheta[0], 2 * rows_, rows_));
    as_vector(dtheta[1]) += z.rowwise().sum();
  }
  adjoint_.multiply(z, dh);
}

template class Norm<float>;
template class Norm<double>;
template class Gate<float>;
template class Gate<double>;

}  // namespace stiefel
