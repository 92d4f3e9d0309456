// The processes that train one network together: each computes some slices of every batch, and all do the rest
// identically, in the same order and with the same bits.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <stiefel/export.hpp>

namespace stiefel {

/// One process alone; the ranks of MPI override the virtual functions. All ranks must call gather(), largest() and
/// texts() in the same order, from the thread that made the object.
class STIEFEL_API Ranks {
 public:
  virtual ~Ranks();
  virtual int rank() const { return 0; }
  virtual int count() const { return 1; }
  bool first() const { return rank() == 0; }
  /// What every rank has in `own` becomes `all`, rank after rank; `sizes` are the bytes of each.
  virtual void gather(std::span<const std::byte> own, std::span<std::byte> all, const std::vector<int>& sizes);
  /// The maximum over the ranks; also a barrier.
  virtual int largest(int own) { return own; }
  /// The text of every rank.
  std::vector<std::string> texts(const std::string& own);
  /// How many of the ranks are on this host, and how many of these can run on a core of this process.
  virtual int on_host() const { return 1; }
  virtual int on_cores() const { return 1; }
  /// Ends the processes of all ranks.
  virtual void abort(int exit_code);
};

/// The ranks that mpirun has started; throws Error if this library was built without MPI.
STIEFEL_API std::unique_ptr<Ranks> mpi_ranks();

}  // namespace stiefel
