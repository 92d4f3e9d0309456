// checkpoints/: networks, and everything else that the rest of a run depends on, each in its own HDF5 file.
//
//   best.h5 last.h5 step_N.h5
//     /                   attributes format_version, step, float_type
//     /weights            an array per block of parameters, row-major
//     /state/<p>          what a map p ("recurrent", "recurrent.forget") keeps beyond its parameters
//   step_N.h5 also has
//     /best/weights …     the best network so far, in the same form
//     /run/<part>         state of trainer, optimizers and schedules
//     /rows               rows that results.h5 has in each group
//   diverged.h5           the network and the batch with which the numbers broke: also
//     /batch              lengths, inputs or symbols, targets or labels, weights, as in stiefel/task.hpp, a row for
//                         each column
//   index.json            bytes and SHA-256 of each step_N.h5, the newest last, of the other networks and of results.h5
//
// Numbers have the type that they have in the network: float32, float64 or int64. Files of format 1 hold float32 as
// float64 and no sums but those of step_N.h5. A file is written aside, closed, read back, synced and renamed before it
// enters the index, which is replaced in the same way: whatever kills the process, the index names intact files. A file
// whose name is always the same enters the index before it is renamed, next to the one that it replaces: one of the two
// is there. All are read only after their sums have been compared.
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

/// A file that is intact, but of another network or optimizer.
struct STIEFEL_API Misfit : Error {
  using Error::Error;
};

template <class S> struct Checkpoint {
  Index step = 0;
  NetworkState<S> network;
  NetworkState<S> best;                     // without values: there is none yet
  std::map<std::string, StateItems> parts;  // "trainer", "optimizer_0", "schedule_0", …
  Matrix<S> carried;                        // state rows × batch, or 0 × 0
  RowCounts rows;
};

/// Writes RunFolder{run}.network(which).
template <class S> STIEFEL_API void write_network(const std::filesystem::path& run, const std::string& which,
                                                  const Layout& layout, const NetworkState<S>& state, Index step);
/// The network with the batch that broke it.
template <class S> STIEFEL_API void write_diverged(const std::filesystem::path& run, const Layout& layout,
                                                   const NetworkState<S>& state, const Batch<S>& batch, Index step);
/// Loads the network from a run's file; returns the step. Error (Exit::damaged) when the file is not what was written,
/// or when blocks or sizes differ.
template <class S> STIEFEL_API Index read_network(const std::filesystem::path& path, Network<S>& network);
/// Loads the blocks that `selected` holds for, and the state of maps all of whose blocks it holds for. Misfit when the
/// file has not the same blocks of these, or not in the same shape, or not the same state.
template <class S> STIEFEL_API void read_blocks(const std::filesystem::path& path, Network<S>& network,
                                                const std::function<bool(const std::string& name)>& selected);

/// step_N.h5 and its entry in the index; of the entries the last `keep` stay, and those of steps that `every` divides
/// when it is not 0. From one thread; waits for the disk.
template <class S> STIEFEL_API void write_checkpoint(const std::filesystem::path& run, const Layout& layout,
                                                     const Checkpoint<S>& checkpoint, Index keep, Index every);
/// Removes every step_N.h5 that the index, if there is one, does not name: a process may be killed before it did.
STIEFEL_API void remove_unlisted_checkpoints(const std::filesystem::path& run);
/// Reads what write_checkpoint() wrote into `checkpoint`, whose network and parts say what is expected.
template <class S>
STIEFEL_API void read_checkpoint(const std::filesystem::path& path, const Layout& layout, Checkpoint<S>& checkpoint);

/// The newest entry of the index, of a step before `end`, whose file has its sum; `damaged` is called for every newer
/// one. None: it has no such entry. Error (Exit::damaged) if the index is missing or cannot be read, or none of these
/// files is intact.
STIEFEL_API std::optional<std::filesystem::path> newest_checkpoint(
    const std::filesystem::path& run, const std::function<void(const std::string&)>& damaged,
    Index end = std::numeric_limits<Index>::max());
/// Error (Exit::damaged) when the index of the run has another sum for the file: results.h5, config.yaml, or one in checkpoints/. A
/// file without a sum is of format 1: the first one is said on stderr.
STIEFEL_API void demand_whole(const std::filesystem::path& run, const std::string& file);
/// The same for a network anywhere: its sum is in the index of the run that it lies in, or else in the file itself. False: there is
/// no sum, and only a process of its own should open the file.
STIEFEL_API bool has_right_sum(const std::filesystem::path& network);

}  // namespace stiefel
