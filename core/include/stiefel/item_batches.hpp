/// Batches of a finite set of items, for tasks with data sets. Training passes through the items again and again,
/// shuffled anew each pass, in full batches; other splits are in order, with a shorter last batch.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include <stiefel/error.hpp>
#include <stiefel/task.hpp>

namespace stiefel {

/// Thread-safe: what Task::batches and Task::fill need.
class ItemBatches {
 public:
  /// `batch` ≥ 1: sequences of a batch, TaskContext::batch; `training` ≥ 1: items of the training set; `seed`: of the
  /// order; `evaluation`: sequences of a batch of other splits, 0: as many.
  ItemBatches(Index batch, Index training, std::uint64_t seed, Index evaluation = 0)
      : batch_(batch), evaluation_(evaluation > 0 ? evaluation : batch), shuffle_(training, seed) {}

  /// Batches of a split with this many items; in training those of one pass.
  Index count(Split split, Index items) const {
    return split == Split::train ? std::max<Index>(items / batch_, 1) : (items + evaluation_ - 1) / evaluation_;
  }

  /// Batch `index` of `items`, those of the split: an item has steps(item) steps, and write(item, b) makes it sequence b
  /// of the resized batch. `index` runs on over the passes in training; elsewhere it is below count().
  template <class S, class Item, class Steps, class Write>
  void fill(Batch<S>& batch, const TaskShape& shape, Split split, Index index, const std::vector<Item>& items,
            Steps steps, Write write) const {
    const bool training = split == Split::train;
    const Index size = training ? batch_ : evaluation_, first = index * size,
                count = training ? size : std::min(size, Index(items.size()) - first);
    STIEFEL_ASSERT(index >= 0 && count > 0);
    const auto item = [&](Index b) -> const Item& {
      return items[std::size_t(training ? shuffle_.item(std::uint64_t(first + b)) : first + b)];
    };
    Index longest = 0;
    for (Index b = 0; b < count; ++b) longest = std::max(longest, std::invoke(steps, item(b)));
    batch.resize(shape, count, longest);
    for (Index b = 0; b < count; ++b) write(item(b), b);
  }

 private:
  Index batch_, evaluation_;
  Shuffle shuffle_;
};

/// The test split, or where it has no batches the last one that has some.
template <class S> Split last_split(const Task<S>& task) {
  return task.batches(Split::test) > 0         ? Split::test
         : task.batches(Split::validation) > 0 ? Split::validation
                                               : Split::train;
}

}  // namespace stiefel
