// A map that throws what is no exception class.
#include "plain_map.hpp"

namespace {
template <class S> class HostileThrowInt final : public PlainMap<S> {
 public:
  using PlainMap<S>::PlainMap;
  void apply(stiefel::CMat<S>, stiefel::Mat<S>, stiefel::Scratch<S>&) const override { throw 42; }
};
}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::parametrisation<HostileThrowInt>("hostile_throw_int", "dense map whose product throws an int"))
