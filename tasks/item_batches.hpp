/// Batches of a finite set of items. Training passes through the items again and again, shuffled anew each pass, in
/// full batches; other splits are in order, with a shorter last batch.
#pragma once

#include <algorithm>
#include <vector>

#include <stiefel/plugin.hpp>

namespace stiefel {

class ItemBatches {
 public:
  /// `batch`: sequences of a batch; `training`: items of the training set; `evaluation`: sequences of a batch of other
  /// splits, 0: as many.
  ItemBatches(Index batch, Index training, std::uint64_t seed, Index evaluation = 0)
      : batch_(batch), evaluation_(evaluation > 0 ? evaluation : batch), shuffle_(training, seed) {}

  /// Batches of a split with this many items; in training those of one pass.
  Index count(Split split, Index items) const {
    return split == Split::train ? std::max<Index>(items / batch_, 1) : (items + evaluation_ - 1) / evaluation_;
  }

  /// The items of batch `index`.
  std::vector<std::size_t> at(Split split, Index index, Index items) const {
    const bool training = split == Split::train;
    const Index size = training ? batch_ : evaluation_, first = index * size,
                end = training ? first + size : std::min(first + size, items);
    STIEFEL_ASSERT(index >= 0 && end > first);
    std::vector<std::size_t> chosen;
    for (Index i = first; i < end; ++i)
      chosen.push_back(std::size_t(training ? shuffle_.item(std::uint64_t(i)) : std::int64_t(i)));
    return chosen;
  }

 private:
  Index batch_, evaluation_;
  Shuffle shuffle_;
};

}  // namespace stiefel
