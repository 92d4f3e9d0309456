// A map whose gradient fails, in the second process of mpirun only.
#include <cstdlib>
#include <string_view>

#include "plain_map.hpp"

namespace {
template <class S> class HostileRank final : public PlainMap<S> {
 public:
  using PlainMap<S>::PlainMap;
  void accumulate(stiefel::CMat<S> X, stiefel::CMat<S> dY, std::span<S> sum,
                  stiefel::Scratch<S>& scratch) const override {
    const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
    if (rank && std::string_view(rank) == "1")
      throw stiefel::Error("the state has left the range", stiefel::Exit::diverged);
    PlainMap<S>::accumulate(X, dY, sum, scratch);
  }
};
}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::parametrisation<HostileRank>("hostile_rank", "dense map whose gradient fails in one process"))
