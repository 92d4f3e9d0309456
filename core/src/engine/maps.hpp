// The recurrent maps of one network. Each has a route (structured or dense), packed products and gradient sums.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <stiefel/cell.hpp>
#include <stiefel/product.hpp>

#include "host/plugin_call.hpp"

namespace stiefel {

/// Sizes of the work, for choosing a route.
struct RouteContext {
  std::string wanted = "auto";  // auto, structured or dense
  Index columns = 1;            // of a product in the time loop
  double total_columns = 1;     // T·B of a training step
};

/// One map behind its plugin.
template <class S> class STIEFEL_API NetworkMap {
 public:
  NetworkMap(Plugged<Parametrisation<S>> map, const RouteContext& context);

  const Plugged<Parametrisation<S>>& plugin() const { return map_; }
  bool dense() const { return dense_; }
  /// Whether no block of the map is trained. The gradient of a frozen map is neither accumulated nor finished.
  bool frozen() const { return frozen_; }
  void freeze() { frozen_ = true; }
  Index rows() const { return map_->rows(); }
  Index cols() const { return map_->cols(); }
  CMat<S> matrix() const;  // dense route only

  void refresh(CBlocks<S> theta);
  Index scratch(Index columns) const;
  void apply(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const;
  void add(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const;
  void apply_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const;
  void add_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const;
  Index accumulator() const { return dense_ ? rows() * cols() : map_->accumulator(); }
  void accumulate(CMat<S> X, CMat<S> dY, std::span<S> sum, Scratch<S>& scratch) const;
  /// Adds the gradient of decay·‖W‖_F² to the sum.
  void decay(double decay, std::span<S> sum) const;
  void finish(CBlocks<S> theta, std::span<const S> sum, Blocks<S> dtheta);

 private:
  Plugged<Parametrisation<S>> map_;
  bool dense_, frozen_ = false;
  Matrix<S> W_;  // dense route of a structured map
  PackedProduct<S> forward_, adjoint_;
};

/// All maps of a cell. Consecutive maps with the same operand are multiplied as one if all of them are dense.
template <class S> class STIEFEL_API NetworkMaps final : public Maps<S> {
 public:
  NetworkMaps(std::vector<MapSpec> specs, std::vector<NetworkMap<S>> maps);

  Index count() const { return Index(maps_.size()); }
  NetworkMap<S>& operator[](Index i) { return maps_[i]; }
  const NetworkMap<S>& operator[](Index i) const { return maps_[i]; }
  const MapSpec& spec(Index i) const { return specs_[i]; }
  Index scratch(Index columns) const;

  /// Packs the fused products. Must be called after every map has been refreshed.
  void pack();

  void apply(Index map, CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const override;
  void add(Index first, Index count, CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const override;
  void apply_adjoint(Index map, CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const override;
  void add_adjoint(Index first, Index count, CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const override;

 private:
  struct Fused {
    Index first, count;
    PackedProduct<S> forward, adjoint;
  };
  const Fused* fused(Index first, Index count) const;

  std::vector<MapSpec> specs_;
  std::vector<NetworkMap<S>> maps_;
  std::vector<Fused> fused_;
};

}  // namespace stiefel
