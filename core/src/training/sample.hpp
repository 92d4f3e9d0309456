// Text from a trained network: each symbol is drawn from the network's own prediction and becomes its next input.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "config/load.hpp"
#include "training/run.hpp"

namespace stiefel {

struct SampleOptions {
  std::filesystem::path network = {};     // file of write_network()
  Index length = 500;                     // symbols after the prime
  double temperature = 1;                 // logits are divided by it; 0: the likeliest symbol
  std::optional<std::string> prime = {};  // UTF-8 text that the network reads first; none: a blank or a line break
  std::uint64_t seed = 1;
};

/// Calls write with the prime and then with each symbol's text. Throws Error if the task has no alphabet, or if a
/// character or word of the prime is not in it.
STIEFEL_API void sample(const LoadedExperiment& loaded, Registry& registry, const RunOptions& run,
                        const SampleOptions& options, const std::function<void(std::string_view)>& write);

}  // namespace stiefel
