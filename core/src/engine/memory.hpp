// How much memory training takes, from sizes alone: nothing is allocated.
#pragma once

#include "engine/model.hpp"

namespace stiefel {

/// Bytes that every run of the experiment takes: parameters, maps, the panels and sums of all slices, batches. What
/// plugins keep of their own is not known. With several ranks, of one of them.
template <class S> STIEFEL_API double training_bytes(const Model<S>& model, const Experiment& experiment, int ranks);

/// Of these, at most: rows of traced blocks, which are held until they are published, and in the queue of the disk.
STIEFEL_API double recorded_bytes(const Layout& layout, const Experiment& experiment);

}  // namespace stiefel
