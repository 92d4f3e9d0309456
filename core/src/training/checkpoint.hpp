// checkpoints/: networks, and checkpoints from which a run resumes, each in its own HDF5 file.
//
//   best.h5 last.h5 step_N.h5
//     /                   attributes format_version, step, float_type
//     /weights            an array per block of parameters, row-major
//     /state/<p>          what a map p ("recurrent", "recurrent.forget") keeps beyond its parameters
//     /task               what the network keeps of its task, as in stiefel/task.hpp: sizes, names and scales; files of
//                         earlier builds lack it
//   step_N.h5 also has
//     /best/weights …     the best network so far, in the same form
//     /run/<part>         state of trainer, optimizers and schedules
//     /rows               rows that results.h5 has in each group
//   diverged.h5           the network and the batch at which the run diverged; also has
//     /batch              lengths, inputs or symbols, targets or labels, weights, as in stiefel/task.hpp, a row for
//                         each column
//   index.json            bytes and SHA-256 of each step_N.h5, the newest last, of the other networks and of results.h5
//
// Numbers have the same type as in the network: float32, float64 or int64. Format 1 stores float32 as float64, and has
// checksums of step_N.h5 only.
//
// A file is written under a temporary name, closed, read back, synced and renamed. step_N.h5 enters the index after
// that, so the index names intact files, whatever kills the process. A file that replaces another enters it before it
// is renamed, and the old entry stays, so that one of the two matches. Checksums are compared before a file is read.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/network.hpp"
#include "record/layout.hpp"
#include "record/run_folder.hpp"

namespace stiefel {

/// Thrown for a file that is intact but belongs to another network or optimizer.
struct STIEFEL_API Misfit : Error {
  using Error::Error;
};

template <class S> struct Checkpoint {
  Index step = 0;
  NetworkState<S> network;
  NetworkState<S> best;                     // no values: there is none yet
  std::map<std::string, StateItems> parts;  // "trainer", "optimizer_0", "schedule_0", …
  Matrix<S> carried;                        // state rows × batch, or 0 × 0
  RowCounts rows;
};

/// Writes RunFolder{run}.network(which).
template <class S> STIEFEL_API void write_network(const std::filesystem::path& run, const std::string& which,
                                                  const Layout& layout, const NetworkState<S>& state, Index step,
                                                  const Trained& trained = {});
/// Writes diverged.h5: the network and the batch at which the run diverged.
template <class S> STIEFEL_API void write_diverged(const std::filesystem::path& run, const Layout& layout,
                                                   const NetworkState<S>& state, const Batch<S>& batch, Index step);
/// Loads the network from a run's file and returns its step. Throws Error (Exit::damaged) if the file is damaged, or if
/// its blocks or sizes are not those of the network.
template <class S> STIEFEL_API Index read_network(const std::filesystem::path& path, Network<S>& network);
/// Loads the blocks whose names are `selected`, and the state of each map all of whose blocks are. Throws Misfit if the
/// file and the network differ in these blocks, their shapes or the state.
template <class S> STIEFEL_API void read_blocks(const std::filesystem::path& path, Network<S>& network,
                                                const std::function<bool(const std::string& name)>& selected);

/// Writes step_N.h5 and its entry in the index; waits for the disk. Removes other checkpoints, except the last `keep`
/// and those of steps that `every`, unless 0, divides. Not thread-safe.
template <class S> STIEFEL_API void write_checkpoint(const std::filesystem::path& run, const Layout& layout,
                                                     const Checkpoint<S>& checkpoint, Index keep, Index every,
                                                     const Trained& trained = {});
/// Removes every step_N.h5 that the index does not name, such as a killed process may leave. Does nothing without an
/// index.
STIEFEL_API void remove_unlisted_checkpoints(const std::filesystem::path& run);
/// Reads a file of write_checkpoint() into `checkpoint`, whose network and parts give the names, types and sizes to
/// expect. Throws Misfit if the file has others.
template <class S>
STIEFEL_API void read_checkpoint(const std::filesystem::path& path, const Layout& layout, Checkpoint<S>& checkpoint);

/// Returns the newest intact checkpoint of a step before `end`, and calls damaged(sentence) for each newer one. Returns
/// nothing if the index lists none. Throws Error (Exit::damaged) if the index is damaged or lost, or if none is intact.
STIEFEL_API std::optional<std::filesystem::path> newest_checkpoint(
    const std::filesystem::path& run, const std::function<void(const std::string&)>& damaged,
    Index end = std::numeric_limits<Index>::max());
/// Throws Error (Exit::damaged) if `file` (results.h5, config.yaml, or a name in checkpoints/) does not have its
/// checksum in the index of the run, or if the index is missing. A file without one, of format 1, passes; the first
/// causes a warning on stderr.
STIEFEL_API void demand_whole(const std::filesystem::path& run, const std::string& file);
/// Does the same for a network file anywhere. Its checksum is in the index of the run that it is in, or else in the
/// file itself. Returns false for a file that has none, which should be opened only in a separate process.
STIEFEL_API bool has_right_sum(const std::filesystem::path& network);

}  // namespace stiefel
