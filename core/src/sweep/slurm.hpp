// Job scripts for SLURM: an array whose elements are workers for one run each.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sweep/sweep.hpp"

namespace stiefel {

struct SlurmOptions {
  Index array_limit = 500;           ///< most elements of an array: the site's MaxArraySize
  std::string time;                  ///< limit of an element; empty: the site's
  int threads = 0;                   ///< cores of an element; 0: the site's
  std::string data_directory;        ///< given to the workers, if not empty
  std::vector<std::string> further;  ///< options of sbatch
};

/// Writes slurm/array_N.sh for all runs that are to be begun or to go on now; the scripts, in order. With halving these are the runs of
/// the present rung.
STIEFEL_API std::vector<std::filesystem::path> write_slurm_scripts(const SweepFolder& folder, const SlurmOptions& options);

}  // namespace stiefel
