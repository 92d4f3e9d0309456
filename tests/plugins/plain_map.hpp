// W = θ, every entry free: a sound map that each hostile fixture spoils in one place.
#pragma once

#include <stiefel/plugin.hpp>

namespace {

template <class S> class PlainMap : public stiefel::Parametrisation<S> {
 public:
  using Index = stiefel::Index;
  struct Options {
    void describe(stiefel::Schema&) {}
  };
  PlainMap(const Options&, stiefel::Shape shape)
      : stiefel::Parametrisation<S>(shape), W_(stiefel::Matrix<S>::Zero(shape.rows, shape.cols)) {}

  std::vector<stiefel::BlockSpec> blocks() const override { return {{"W", W_.size(), W_.rows(), W_.cols()}}; }
  void initialise(stiefel::Blocks<S> theta, stiefel::Rng& rng) const override {
    for (S& entry : theta[0]) entry = S(0.2 * rng.normal());
  }
  void refresh(stiefel::CBlocks<S> theta) override { W_ = stiefel::as_matrix(theta[0], W_.rows(), W_.cols()); }
  void apply(stiefel::CMat<S> X, stiefel::Mat<S> Y, stiefel::Scratch<S>&) const override {
    Y.noalias() = W_.lazyProduct(X);
  }
  void apply_adjoint(stiefel::CMat<S> dY, stiefel::Mat<S> dX, stiefel::Scratch<S>&) const override {
    dX.noalias() = W_.transpose().lazyProduct(dY);
  }
  Index accumulator() const override { return W_.size(); }
  void accumulate(stiefel::CMat<S> X, stiefel::CMat<S> dY, std::span<S> sum, stiefel::Scratch<S>&) const override {
    stiefel::as_matrix(sum, W_.rows(), W_.cols()).noalias() += dY.lazyProduct(X.transpose());
  }
  void finish(stiefel::CBlocks<S>, std::span<const S> sum, stiefel::Blocks<S> dtheta) override {
    stiefel::as_vector(dtheta[0]) += stiefel::as_vector(sum);
  }

 private:
  stiefel::Matrix<S> W_;  // rows × cols
};

}  // namespace
