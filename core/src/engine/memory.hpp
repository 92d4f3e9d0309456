// Estimates the memory that training takes from sizes alone, without allocating any.
#pragma once

#include "engine/model.hpp"

namespace stiefel {

/// Bytes that a run of the experiment takes in one rank: parameters, maps, batches, and the panels and sums of all its
/// slices. Memory that plugins allocate is not included, because it is unknown.
template <class S> STIEFEL_API double training_bytes(const Model<S>& model, const Experiment& experiment, int ranks);

/// The part of training_bytes() for rows of traced blocks, at most: they are held until they are published and queued
/// for the disk.
STIEFEL_API double recorded_bytes(const Layout& layout, const Experiment& experiment);

}  // namespace stiefel
