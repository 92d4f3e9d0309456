// Ranks by Boost.MPI.
#include <boost/mpi.hpp>
#include <boost/mpi/collectives/all_gatherv.hpp>

#include "engine/ranks.hpp"

namespace stiefel {
namespace {

namespace mpi = boost::mpi;

class MpiRanks final : public Ranks {
 public:
  int rank() const override { return world_.rank(); }
  int count() const override { return world_.size(); }
  void gather(std::span<const std::byte> own, std::span<std::byte> all, const std::vector<int>& sizes) override {
    mpi::all_gatherv(world_, reinterpret_cast<const char*>(own.data()), reinterpret_cast<char*>(all.data()), sizes);
  }
  int largest(int own) override { return mpi::all_reduce(world_, own, mpi::maximum<int>()); }
  void abort(int exit_code) override { mpi::environment::abort(exit_code); }

 private:
  mpi::environment environment_{mpi::threading::funneled, /*abort_on_exception=*/false};
  mpi::communicator world_;
};

}  // namespace

std::unique_ptr<Ranks> mpi_ranks() { return std::make_unique<MpiRanks>(); }

}  // namespace stiefel
