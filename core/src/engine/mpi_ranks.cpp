// Ranks by Boost.MPI.
#include <sched.h>

#include <algorithm>
#include <boost/mpi.hpp>
#include <boost/mpi/collectives/all_gatherv.hpp>

#include "engine/ranks.hpp"

namespace stiefel {
namespace {

namespace mpi = boost::mpi;

class MpiRanks final : public Ranks {
 public:
  MpiRanks() {
    MPI_Comm shared;
    MPI_Comm_split_type(world_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);
    const mpi::communicator host(shared, mpi::comm_take_ownership);
    on_host_ = host.size();
    cpu_set_t own;
    CPU_ZERO(&own);
    sched_getaffinity(0, sizeof own, &own);
    std::vector<cpu_set_t> all(std::size_t(on_host_), own);
    MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, host);
    on_cores_ = int(std::ranges::count_if(all, [&](const cpu_set_t& other) {
      cpu_set_t common;
      CPU_AND(&common, &other, &own);
      return CPU_COUNT(&common) > 0;
    }));
  }
  int rank() const override { return world_.rank(); }
  int count() const override { return world_.size(); }
  void gather(std::span<const std::byte> own, std::span<std::byte> all, const std::vector<int>& sizes) override {
    mpi::all_gatherv(world_, reinterpret_cast<const char*>(own.data()), reinterpret_cast<char*>(all.data()), sizes);
  }
  int largest(int own) override { return mpi::all_reduce(world_, own, mpi::maximum<int>()); }
  int on_host() const override { return on_host_; }
  int on_cores() const override { return std::max(on_cores_, 1); }
  void abort(int exit_code) override { mpi::environment::abort(exit_code); }

 private:
  mpi::environment environment_{mpi::threading::funneled, /*abort_on_exception=*/false};
  mpi::communicator world_;
  int on_host_ = 1, on_cores_ = 1;
};

}  // namespace

std::unique_ptr<Ranks> mpi_ranks() { return std::make_unique<MpiRanks>(); }

}  // namespace stiefel
