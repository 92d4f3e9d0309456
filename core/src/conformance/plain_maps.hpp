// Maps of a cell as plain matrices, for networks that are made for checks, not for speed.
#pragma once

#include <utility>
#include <vector>

#include <stiefel/cell.hpp>

namespace stiefel::conformance {

/// Products by plain loops: the bits of a column do not depend on its neighbours.
template <class S> class PlainMaps final : public Maps<S> {
 public:
  /// The matrices must outlive it.
  explicit PlainMaps(std::vector<CMat<S>> matrices) : matrices_(std::move(matrices)) {}
  void apply(Index map, CMat<S> X, Mat<S> Y, Scratch<S>&) const override;
  void add(Index first, Index count, CMat<S> X, Mat<S> Y, Scratch<S>&) const override;
  void apply_adjoint(Index map, CMat<S> dY, Mat<S> dX, Scratch<S>&) const override;
  void add_adjoint(Index first, Index count, CMat<S> dY, Mat<S> dX, Scratch<S>&) const override;
  /// The largest entry of a dY since the last call of this function.
  double take_largest() const { return std::exchange(largest_, 0.); }

 private:
  void note(CMat<S> dY) const;
  mutable double largest_ = 0;
  std::vector<CMat<S>> matrices_;
};

}  // namespace stiefel::conformance
