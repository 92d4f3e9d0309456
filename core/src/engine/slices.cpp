// Sequences are sorted and then dealt, so that every slice has sequences of all lengths.
#include "engine/slices.hpp"

#include <algorithm>
#include <numeric>

namespace stiefel {

Index slice_count(Index batch) {
  const Index limit = std::max<Index>(1, batch / 6);
  Index slices = 1;
  while (slices < 8 && 2 * slices <= limit) slices *= 2;
  return slices;
}

Index chunk_steps(Index columns, Index steps, Index chosen) {
  const Index wanted = chosen > 0 ? chosen : std::max<Index>(1, 512 / columns);
  return std::min(wanted, steps);
}

std::vector<Slice> deal(const std::vector<Index>& lengths) {
  std::vector<Index> order(lengths.size());
  std::iota(order.begin(), order.end(), Index(0));
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return lengths[a] > lengths[b]; });

  std::vector<Slice> slices(slice_count(Index(lengths.size())));
  for (std::size_t i = 0; i < order.size(); ++i) {
    Slice& slice = slices[i % slices.size()];
    slice.sequences.push_back(order[i]);
    slice.lengths.push_back(lengths[order[i]]);
  }
  for (Slice& slice : slices) {
    slice.active.assign(slice.lengths.front(), 0);
    for (Index length : slice.lengths)
      for (Index t = 0; t < length; ++t) ++slice.active[t];
  }
  return slices;
}

}  // namespace stiefel
