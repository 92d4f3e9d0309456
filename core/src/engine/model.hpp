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

  CBlocks<S> input_theta() const { return layout.part(theta, input_blocks); }
  CBlocks<S> cell_theta() const { return layout.part(theta, cell_blocks); }
  CBlocks<S> readout_theta() const { return layout.part(theta, readout_blocks); }
  CBlocks<S> map_theta(Index map) const { return layout.part(theta, map_blocks[std::size_t(map)]); }
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

  Layout::Part input_blocks, cell_blocks, readout_blocks, state_block;
  std::vector<Layout::Part> map_blocks;
  const S* theta = nullptr;
};

}  // namespace stiefel
