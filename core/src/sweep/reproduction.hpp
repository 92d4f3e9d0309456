// Compares published results with measured ones: which runs belong to a row, their results, and how a row is judged.
//
// A run belongs to a row and a seed if its configuration has the row's hash. A run that was planned for the row also
// belongs to it if it agrees with every setting that the row's file gives, since only defaults have changed then. Runs
// of any build count.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "sweep/published.hpp"
#include "sweep/sweep.hpp"
#include "sweep/verdict.hpp"

namespace stiefel {

/// Finds the runs of published rows. Throws Error if a row's file is invalid, or if what is read is damaged or lacks
/// what a row measures.
class STIEFEL_API Reproduction {
 public:
  /// `output`: the folder of runs, which need not exist yet. `timings`: what `tools/bench/run --json` wrote; empty or
  /// missing: none.
  Reproduction(const PublishedResults& published, std::filesystem::path output, std::filesystem::path timings,
               Registry& registry)
      : published_(published), output_(std::move(output)), timings_(std::move(timings)), registry_(registry) {}

  /// Measures and judges the rows by the runs of the folder. `record`: what record_of() wrote earlier, perhaps on
  /// another machine. It counts for a seed if it tells more than the folder and the row's file gives the same settings.
  std::vector<ReproducedRow> look(const std::vector<const PublishedRow*>& rows,
                                  const std::filesystem::path& record = {}) const;

  /// Returns the runs that rows still need with this part of the published budget, each once. A seed needs none if it
  /// has finished or diverged with this part or more.
  Sweep missing(const std::vector<const PublishedRow*>& rows, double budget) const;

 private:
  struct Planned;
  Planned plan(const PublishedRow& row, Index seed, double budget) const;
  std::vector<Measurement> measurements_of(const std::vector<std::pair<const PublishedRow*, Index>>& wanted) const;

  const PublishedResults& published_;
  std::filesystem::path output_, timings_;
  Registry& registry_;
};

/// Returns the measurements of these rows as JSON, one per line. Runs in progress are recorded as stopped.
STIEFEL_API std::string record_of(const std::vector<ReproducedRow>& rows);

}  // namespace stiefel
