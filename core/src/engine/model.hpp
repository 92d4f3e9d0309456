// A network as the time loop sees it: layers and readout. It is constant between two refreshes.
#pragma once

#include <memory>
#include <optional>

#include <stiefel/cell.hpp>

#include "config/experiment.hpp"
#include "engine/input_and_readout.hpp"
#include "engine/maps.hpp"
#include "engine/norm_and_gate.hpp"
#include "host/registry.hpp"

namespace stiefel {

/// A cell with its input, its maps and its initial state.
template <class S> struct Recurrence {
  Plugged<Cell<S>> cell;
  std::unique_ptr<NetworkMaps<S>> maps;
  std::optional<InputLayer<S>> input;
  Layout::Part input_blocks, cell_blocks, state_block;
  Index first_map = 0;      // index of its first map in Model::maps
  Index state = 0;          // its first row among the state rows of the network
  bool reversed = false;    // reads sequences from their ends
  std::string prefix = {};  // of block names: "", "layers.1.", "layers.1.reverse."
};

/// s' = dropout(gate(h)), plus s with `residual`, where h are the outputs of the recurrences for the input norm(s). The
/// first layer reads the task's input x, without norm and residual.
template <class S> struct Layer {
  Index rows = 0;  // of its outputs
  Index hidden = 0;
  InitialStateOptions initial;
  double dropout = 0;
  bool residual = false;
  Norm<S> norm{"none", 0};
  Gate<S> gate{"none", 0};
  Layout::Part norm_blocks, gate_blocks;
  std::vector<Recurrence<S>> recurrences;  // one, or forward and reverse

  bool learned_state() const { return initial.kind == "learned"; }
  /// Whether its outputs are those of its only cell.
  bool plain() const { return recurrences.size() == 1 && !residual && dropout == 0 && !gate.present(); }
};

template <class S> struct STIEFEL_API Model {
  Model(const Experiment& experiment, const Registry& registry, const TaskShape& task);

  /// A recurrent map of any layer.
  struct Map {
    std::string name;  // recurrent, recurrent.forget, layers.1.recurrent
    NetworkMap<S>& map;
    Layout::Part blocks;
    NetworkMap<S>* operator->() const { return &map; }
  };

  void initialise(S* theta, std::uint64_t seed) const;
  /// Prepares the model for `theta`, which must stay valid until the next refresh. Until then, the model is constant
  /// and may be used from any thread.
  void refresh(const S* theta);

  CBlocks<S> part(Layout::Part blocks) const { return layout.part(theta, blocks); }
  bool carried_state() const { return layers[0].initial.kind == "carried"; }
  bool bidirectional() const;
  /// f(layer, recurrence) for all recurrences, from the input to the readout.
  template <class F> void each_recurrence(F&& f) const {
    for (const Layer<S>& layer : layers)
      for (const Recurrence<S>& recurrence : layer.recurrences) f(layer, recurrence);
  }

  Layout layout;
  std::vector<Layer<S>> layers;
  std::vector<Map> maps;
  std::optional<Readout<S>> readout;
  Index state_rows = 0;  // of all cells
  TaskShape task;
  S message_clip = 0;
  Index chunk = 0;         // steps of a chunk; 0: derived from the shape
  bool recompute = false;  // whether the backward pass computes again what a chunk saves
  Layout::Part readout_blocks;
  const S* theta = nullptr;

 private:
  void add_layer(const Experiment& experiment, const Registry& registry, Index number, InputKind kind, Index size);
  Recurrence<S> recurrence(const Experiment& experiment, const Registry& registry, const LayerOptions& options,
                           InputKind kind, Index size) const;
};

}  // namespace stiefel
