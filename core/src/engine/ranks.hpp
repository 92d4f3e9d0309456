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

/// A single process. The ranks of MPI override the virtual functions. All ranks must call gather(), largest() and
/// texts() in the same order, from the thread that made the object.
class STIEFEL_API Ranks {
 public:
  virtual ~Ranks();
  virtual int rank() const { return 0; }
  virtual int count() const { return 1; }
  bool first() const { return rank() == 0; }
  /// Concatenates `own` of every rank into `all`, in the order of the ranks; `sizes` are their bytes.
  virtual void gather(std::span<const std::byte> own, std::span<std::byte> all, const std::vector<int>& sizes);
  /// The maximum over the ranks; also a barrier.
  virtual int largest(int own) { return own; }
  /// Returns `own` of every rank, in the order of the ranks.
  std::vector<std::string> texts(const std::string& own);
  /// on_host(): ranks on this host. on_cores(): those of them that may run on a core of this process.
  virtual int on_host() const { return 1; }
  virtual int on_cores() const { return 1; }
  /// Ends the processes of all ranks.
  virtual void abort(int exit_code);
};

/// The ranks that mpirun has started; throws Error if this library was built without MPI.
STIEFEL_API std::unique_ptr<Ranks> mpi_ranks();

}  // namespace stiefel
