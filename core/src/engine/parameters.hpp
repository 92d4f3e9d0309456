// All parameters of a network in one array, block after block, addressed by name.
#pragma once

#include <string>
#include <vector>

#include <stiefel/parametrisation.hpp>

namespace stiefel {

/// Names and places. Components (input, a map, the cell, …) own consecutive blocks.
class STIEFEL_API Layout {
 public:
  /// Appends the blocks of a component, each named prefix + name; returns the number of the first.
  Index add(const std::string& prefix, const std::vector<BlockSpec>& blocks);

  Index count() const { return Index(blocks_.size()); }
  Index size() const { return offsets_.back(); }
  const BlockSpec& block(Index i) const { return blocks_[i]; }
  const std::vector<BlockSpec>& blocks() const { return blocks_; }
  Index offset(Index i) const { return offsets_[i]; }
  /// −1 when there is none.
  Index find(const std::string& name) const;

  template <class S> Blocks<S> all(S* data) const { return {data, offsets_.data(), count()}; }
  template <class S> Blocks<S> part(S* data, Index first, Index count) const {
    return {data, offsets_.data() + first, count};
  }

 private:
  std::vector<BlockSpec> blocks_;
  std::vector<Index> offsets_{0};
};

}  // namespace stiefel
