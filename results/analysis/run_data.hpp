/// A run as plain data. Commands that read many runs work with this and never open a result file themselves.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <stiefel/export.hpp>

#include "record/layout.hpp"

namespace stiefel {

/// Separates the values of a key that was changed when the run was resumed.
inline constexpr std::string_view changed_to = " → ";

/// A dataset with its description. It has numbers in row-major order, or texts.
struct RunDataset {
  std::string path;  ///< "/epochs/valid_loss"
  std::vector<double> values;
  std::vector<std::string> texts;
  std::vector<std::uint64_t> shape;  ///< complex numbers add a last axis of length 2
  bool is_text = false, complex = false;
  bool scale = false;  ///< whether it is an axis of other datasets
  std::string units, description;

  /// Whether it has one real number per row.
  bool is_column() const { return !is_text && !complex && (shape.size() == 1 || (shape.size() == 2 && shape[1] == 1)); }
};

struct STIEFEL_API RunData {
  std::filesystem::path path;  ///< the run's folder, or a result file that stands alone
  std::string unreadable;      ///< why nothing below is known; empty if it could be read
  RunHeader header;
  /// The published state; "stopped" for a preempted run and for an unfinished one that no process works on.
  Status status;
  std::int64_t committed_step = 0;
  /// flat_configuration() of the resolved experiment. A key that was changed when the run was resumed has all its
  /// values: "0.003 → 0.001".
  std::map<std::string, std::string> configuration;
  std::vector<RunDataset> datasets;  ///< the requested ones, in the order of the file

  std::vector<std::string> differing;  ///< places whose bits are not those of RunRequest::other

  /// The dataset at this path; null if the run has none.
  STIEFEL_API const RunDataset* find(const std::string& path) const;
  /// The numbers of a dataset; empty if the run has no such dataset.
  STIEFEL_API const std::vector<double>& column(const std::string& path) const;
};

/// What to read of each run in addition to its header, and how much one run may cost.
struct RunRequest {
  std::vector<std::string> paths = {};   ///< datasets, or groups with everything below them
  std::vector<std::string> except = {};  ///< names of datasets that are not read
  bool provenance = true;  ///< also where the run came from: provenance, plugins, data files, segments, the source of
                           ///< the configuration
  bool network = false;    ///< whether the path is a network, of which only `paths` are read
  std::string other = {};  ///< folder of a run that is compared bit by bit; empty: none
  std::uint64_t most_values = 1 << 22;            ///< numbers, or bytes of text, of one run
  std::uint64_t memory = std::uint64_t(1) << 30;  ///< bytes that reading one run may take
};

/// Folders of runs (with config.yaml or results.h5) below each path, in order of their names. A path may be such a
/// folder or a result file itself. Symbolic links below a path are not followed, and folders inside a run are not
/// searched. A folder that this user may not search is returned too, and reading it reports the fault. Throws Error if
/// a path does not exist or is another file.
STIEFEL_API std::vector<std::filesystem::path> find_runs(const std::vector<std::string>& paths);
/// The only run in the paths. Throws Error if there is none, or if there are several, which it names.
STIEFEL_API std::filesystem::path find_run(const std::vector<std::string>& paths);

/// Reads a run in this process with libhdf5. Only for results that are trusted, and for the child of read_runs().
/// Throws Error if it cannot be read.
STIEFEL_API RunData read_run(const std::filesystem::path& path, const RunRequest& request);

}  // namespace stiefel
