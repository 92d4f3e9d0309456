// Job scripts for SLURM: arrays whose elements are workers for one run each.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sweep/sweep.hpp"

namespace stiefel {

struct SlurmOptions {
  Index array_limit = 500;           ///< maximum number of elements of an array: the site's MaxArraySize
  Index jobs = 0;                    ///< array elements that run concurrently; 0: as many as the site allows
  std::string time;                  ///< time limit of an element; empty: the site's
  int threads = 0;                   ///< cores per element; 0: the site's
  std::string data_directory;        ///< given to the workers, if not empty
  std::vector<std::string> further;  ///< options of sbatch
};

/// Writes slurm/*.sh for all runs that must be started or resumed. Returns scripts that can be submitted together and,
/// with halving, for each later rung, scripts that must wait until the previous ones have ended: their elements take
/// the runs that rungs/STEP.tsv lists by then.
STIEFEL_API std::vector<std::vector<std::filesystem::path>> write_slurm_scripts(const SweepFolder& folder,
                                                                                const SlurmOptions& options);

}  // namespace stiefel
