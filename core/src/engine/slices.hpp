// How a batch is split: by its size and the lengths but not by the machine, so that sums over sequences have one order.
#pragma once

#include <vector>

#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>

namespace stiefel {

/// The largest of 1, 2, 4, 8 not above max(1, ⌊B/6⌋).
STIEFEL_API Index slice_count(Index batch);

/// Steps in a chunk, at most `steps`: `chosen` unless that is 0, else as many as make about 512 columns.
STIEFEL_API Index chunk_steps(Index columns, Index steps, Index chosen);

/// The sequences of one slice, longest first.
struct Slice {
  std::vector<Index> sequences;  // numbers in the batch
  std::vector<Index> lengths;
  std::vector<Index> active;  // at each step, how many columns are active; these come first
  Index columns() const { return Index(sequences.size()); }
  Index steps() const { return Index(active.size()); }
};

/// Sequences sorted longest first (ties by number) and assigned to slice_count() slices in turn.
STIEFEL_API std::vector<Slice> deal(const std::vector<Index>& lengths);

}  // namespace stiefel
