// `stiefel evaluate`: the quality of a trained network on a split of its task, or of the task with other options.
#pragma once

#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <stiefel/task.hpp>

#include "config/load.hpp"
#include "training/run.hpp"

namespace stiefel {

struct Evaluated {
  std::string task;
  Index step = 0;                                              // of the network
  Index batches = 0;                                           // of the split
  std::vector<std::pair<std::string, double>> values;          // loss and metrics, weighted means over the split
  double baseline = std::numeric_limits<double>::quiet_NaN();  // NaN if unknown, and for other splits than test
  std::vector<Baseline> baselines = {};                        // further ones, also of the test split only
};

/// How a network whose file does not tell was trained, when it is evaluated with other options of the task.
struct TrainedAs {
  LoadedExperiment loaded;
  RunOptions options;
};

/// Evaluates a network on a split. Throws Error if it does not fit the task, the split has no batch, or a loss is not
/// finite; also if the task normalizes or names inputs and outputs differently than in training.
STIEFEL_API Evaluated evaluate(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
                               const std::filesystem::path& network, Split split,
                               const std::optional<TrainedAs>& trained = {});

}  // namespace stiefel
