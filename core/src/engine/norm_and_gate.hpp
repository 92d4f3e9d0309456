// What may stand between two layers: a norm before a layer, a gate after its outputs. Columns are sequences at a step.
#pragma once

#include <string>
#include <vector>

#include <stiefel/matrix.hpp>
#include <stiefel/parametrisation.hpp>
#include <stiefel/product.hpp>
#include <stiefel/random.hpp>

namespace stiefel {

/// u = x̂ ∘ w + b, x̂ = (s − mean s)·(var s + ε)^−½ over the rows of a column (Ba et al. 2016), or
/// u = x̂ ∘ w, x̂ = s·(mean s² + ε)^−½ (Zhang and Sennrich 2019); ε = 1e-5, initially w = 1 and b = 0.
template <class S> class Norm {
 public:
  /// `kind` is none, layer or rms.
  Norm(const std::string& kind, Index rows) : centered_(kind == "layer"), rows_(kind == "none" ? 0 : rows) {}

  bool present() const { return rows_ > 0; }
  std::vector<BlockSpec> blocks() const;
  void initialise(Blocks<S> theta) const;
  /// Computes the column `u` from the column `s`.
  void forward(CBlocks<S> theta, const S* s, S* u) const;
  /// du becomes ds; the gradients of the blocks are added to dtheta unless it is empty.
  void backward(CBlocks<S> theta, const S* s, S* du, Blocks<S> dtheta) const;

 private:
  /// Mean and inverse standard deviation.
  std::pair<S, S> statistics(const S* s) const;

  bool centered_;
  Index rows_;
};

/// g = (G₁ h + c₁) ∘ σ(G₂ h + c₂), a gated linear unit (Dauphin et al. 2017); weight = [G₁; G₂], bias = [c₁; c₂].
template <class S> class Gate {
 public:
  /// `kind` is none or glu.
  Gate(const std::string& kind, Index rows) : rows_(kind == "none" ? 0 : rows) {}

  bool present() const { return rows_ > 0; }
  std::vector<BlockSpec> blocks() const;
  void initialise(Blocks<S> theta, Rng& rng) const;
  void refresh(CBlocks<S> theta);
  /// Computes g for all columns. `z` becomes [G₁ h + c₁; σ(G₂ h + c₂)], which backward() needs.
  void forward(CBlocks<S> theta, CMat<S> h, Mat<S> z, Mat<S> g) const;
  /// z becomes dz; the gradients of the blocks are added to dtheta unless it is empty.
  void backward(CMat<S> h, CMat<S> dg, Mat<S> z, Mat<S> dh, Blocks<S> dtheta) const;

 private:
  Index rows_;
  PackedProduct<S> weight_, adjoint_;
};

}  // namespace stiefel
