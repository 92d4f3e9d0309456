// A network as the time loop sees it: cell, maps, input, readout, initial state; constant between two refreshes.
#pragma once

#include <memory>
#include <optional>

#include <stiefel/cell.hpp>

#include "config/experiment.hpp"
#include "engine/layers.hpp"
#include "engine/maps.hpp"
#include "host/registry.hpp"

namespace stiefel {

template <class S> struct STIEFEL_API Model {
  Model(const Experiment& experiment, const Registry& registry, const TaskShape& task);

  void initialise(S* theta, std::uint64_t seed) const;
  /// Prepares for θ: after this and until the next refresh the model is constant and may be used from any thread.
  void refresh(const S* theta);

  Blocks<S> part(S* data, Index first, Index count) const { return layout.part(data, first, count); }
  CBlocks<S> part(const S* data, Index first, Index count) const { return layout.part(data, first, count); }
  CBlocks<S> input_theta() const { return part(theta, 0, input_count); }
  CBlocks<S> cell_theta() const { return part(theta, cell_first, cell_count); }
  CBlocks<S> readout_theta() const { return part(theta, readout_first, readout_count); }
  CBlocks<S> map_theta(Index map) const { return part(theta, map_first[map], map_count[map]); }
  bool learned_state() const { return initial.kind == "learned"; }
  bool carried_state() const { return initial.kind == "carried"; }

  Layout layout;
  Plugged<Cell<S>> cell;
  std::unique_ptr<NetworkMaps<S>> maps;
  std::optional<InputLayer<S>> input;
  std::optional<Readout<S>> readout;
  InitialStateOptions initial;
  Index hidden = 0;
  TaskShape task;
  S message_clip = 0;
  Index chunk = 0;         // chosen steps of a chunk, 0: from the shape
  bool recompute = false;  // what a chunk saves is computed again for the backward pass

  Index input_count = 0, cell_first = 0, cell_count = 0, readout_first = 0, readout_count = 0, state_block = -1;
  std::vector<Index> map_first, map_count;
  const S* theta = nullptr;
};

}  // namespace stiefel
