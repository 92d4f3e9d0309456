/// An optimizer: updates blocks of parameters along their gradients.
#pragma once

#include <span>
#include <vector>

#include <stiefel/archive.hpp>
#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>
#include <stiefel/parametrisation.hpp>
#include <stiefel/schema.hpp>

namespace stiefel {

/// One object serves all blocks that its group matches. The engine handles rates, schedules, weight decay and clipping:
/// `rate` is already η · schedule · rate_scale of the block, `gradient` is clipped and includes the weight decay unless
/// decouples(). It is the Euclidean gradient, the derivatives with respect to the numbers of the block (for `unitary`,
/// Re over Im), not projected to the tangent space of a manifold.
template <class S> class STIEFEL_API Optimizer {
 public:
  Optimizer() = default;
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Which blocks it can update; a block on another manifold is a configuration error. Default: flat only.
  virtual bool moves(Manifold manifold) const;
  /// Whether `weight_decay: λ` shrinks the parameters, θ ← (1 − η · schedule · λ)θ just before each step, instead of
  /// adding 2λθ to the gradient. The engine does either. Default: false.
  virtual bool decouples() const;
  /// Called once, before the first step: creates the state of each block.
  virtual void attach(const std::vector<BlockSpec>& blocks) = 0;
  /// One step of block number `block` of attach(). Different blocks may be updated concurrently, so a step must not
  /// change anything that blocks share, not even a counter. No allocation for flat blocks.
  virtual void step(Index block, double rate, std::span<S> theta, std::span<const S> gradient) = 0;
  /// Saves or restores all state: moments, counters.
  virtual void serialise(Archive& archive) = 0;
};

}  // namespace stiefel
