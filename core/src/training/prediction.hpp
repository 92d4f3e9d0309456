// Outputs of a trained network for new sequences.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "training/run.hpp"

namespace stiefel {

struct PredictionOptions {
  std::filesystem::path network = {};  // file of write_network()
  std::string input = {};              // file of sequences in a format of the task, or .npy
  std::string lengths = {};            // for .npy: file with N numbers of steps; empty: each has T
  bool raw = false;                    // the network's own outputs: no softmax, sigmoid or denormalisation
  bool states = false;                 // also the state after each step
  bool every_step = false;             // a row for each step, as if the sequence ended there
};

using RowWriter = std::function<void(const std::vector<std::string>& fields)>;

/// Calls write(fields) for a header, then for every output. The fields are the sequence, if it has a name, and the
/// step; for classes the likeliest one and the probability of each, else the values or probabilities; with `states` the
/// state's numbers. Text and CSV are read piece by piece, other files as a whole. Throws Error (Exit::data) if the file
/// does not have the inputs of the task.
STIEFEL_API void predict(const LoadedExperiment& loaded, Registry& registry, const RunOptions& run,
                         const PredictionOptions& options, const RowWriter& write);

}  // namespace stiefel
