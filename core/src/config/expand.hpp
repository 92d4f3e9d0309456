// Many runs from one file: `seeds: 0..9`, and `sweep:` from a key of the experiment to a list of values or to a
// distribution.
//
//   sweep:
//     model.recurrent: [{plugin: householder, reflections: 16}, scaled_cayley]
//     extends: [householder.yaml, lstm.yaml]
//     optimizer.rate: {log_uniform: [1e-5, 1e-2]}
//     samples: 20
//     halving: {metric: valid_loss, first: 500, factor: 3}
//
// Lists make a grid; files of `extends` are merged beneath this one. Keys are drawn by log_uniform, uniform, integer or
// choice, all of them `samples` times at each point of the grid. With halving the better third continues at steps 500,
// 1500, 4500, …
//
// Draw i of a key is a function of the experiment's `seed`, of the key and of i: more samples leave the first ones as
// they are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <stiefel/schema.hpp>

#include "config/compose.hpp"
#include "config/overrides.hpp"

namespace stiefel {

/// Successive halving: the best settings at a rung continue to the next.
struct HalvingOptions {
  std::string metric = "valid_loss";
  Index first = 0, factor = 3;

  void describe(Schema& s);
};

struct SweepDescription {
  std::vector<std::vector<Override>> runs;  ///< the values of a run: of keys as in the file, then of `seed`
  std::optional<HalvingOptions> halving;
};

/// Expands `seeds:` and `sweep:`. Reports problems; the runs, if any, are then those of the keys that are valid.
STIEFEL_API SweepDescription describe_sweep(const Composed& composed, Problems& problems);

/// A node as YAML in one line.
STIEFEL_API std::string flow_text(const Node& node);

}  // namespace stiefel
