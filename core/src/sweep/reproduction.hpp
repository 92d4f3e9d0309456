// Compares published results with measured ones: which runs belong to a row, their results, and how a row is judged.
//
// A run belongs to a row and a seed when its configuration has the row's hash. A run that was planned for the row also
// belongs to it, as long as it agrees with every setting that the row's file gives: a default has then changed since.
// Runs of any build count.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "sweep/published.hpp"
#include "sweep/sweep.hpp"
#include "sweep/verdict.hpp"

namespace stiefel {

/// Throws Error if a row's file is invalid, or if what is read is damaged or lacks what a row measures.
class STIEFEL_API Reproduction {
 public:
  /// `output`: the folder of runs, which need not exist yet. `timings`: what `tests/bench/run --json` wrote; empty or
  /// missing: none.
  Reproduction(const PublishedResults& published, std::filesystem::path output, std::filesystem::path timings,
               Registry& registry)
      : published_(published), output_(std::move(output)), timings_(std::move(timings)), registry_(registry) {}

  /// What the runs of the folder came to. `record`: what record_of() wrote earlier, perhaps on another machine; it
  /// counts for a seed where the folder has no run that tells more, as long as the row's file gives the same settings.
  std::vector<ReproducedRow> look(const std::vector<const PublishedRow*>& rows,
                                  const std::filesystem::path& record = {}) const;

  /// The runs that rows still need with this part of the published budget, each once, except finished runs with this
  /// part or more.
  Sweep missing(const std::vector<const PublishedRow*>& rows, double budget) const;

 private:
  struct Planned;
  Planned plan(const PublishedRow& row, Index seed, double budget) const;
  std::vector<Measurement> measurements_of(const std::vector<std::pair<const PublishedRow*, Index>>& wanted) const;

  const PublishedResults& published_;
  std::filesystem::path output_, timings_;
  Registry& registry_;
};

/// Every run of these rows, as JSON with one line for each. For whoever reads it later, what is running has stopped.
STIEFEL_API std::string record_of(const std::vector<ReproducedRow>& rows);

}  // namespace stiefel
