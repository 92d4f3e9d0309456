// All parameters of a network in one array, block after block, addressed by name.
#pragma once

#include <string>
#include <vector>

#include <stiefel/parametrisation.hpp>

namespace stiefel {

/// The names and offsets of all blocks. A component (input, a map, the cell, …) owns consecutive blocks.
class STIEFEL_API Layout {
 public:
  /// Consecutive blocks.
  struct Part {
    Index first = 0, count = 0;
    Index end() const { return first + count; }
  };
  /// Appends the blocks of a component, each named prefix + name.
  Part add(const std::string& prefix, const std::vector<BlockSpec>& blocks);

  Index count() const { return Index(blocks_.size()); }
  Index size() const { return offsets_.back(); }
  const BlockSpec& block(Index i) const { return blocks_[i]; }
  const std::vector<BlockSpec>& blocks() const { return blocks_; }
  Index offset(Index i) const { return offsets_[i]; }
  /// The index of a block, or −1 if there is none of this name.
  Index find(const std::string& name) const;
  /// "input.weight, input.bias, …"
  std::string names() const;

  /// The blocks of an array, which has `gap` numbers between two of them.
  template <class S> Blocks<S> all(S* data, Index gap = 0) const { return part(data, 0, count(), gap); }
  template <class S> Blocks<S> part(S* data, Part part) const { return this->part(data, part.first, part.count); }
  template <class S> Blocks<S> part(S* data, Index first, Index count, Index gap = 0) const {
    return {data + first * gap, offsets_.data() + first, count, gap};
  }

 private:
  std::vector<BlockSpec> blocks_;
  std::vector<Index> offsets_{0};
};

/// Whether a pattern with * and ? fits the name of a block, with or without its layer and direction.
STIEFEL_API bool matches_block(const std::string& pattern, const std::string& name);

}  // namespace stiefel
