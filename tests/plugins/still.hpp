// An optimizer that never moves: the smallest plugin there is, for tests of the handshake.
#pragma once

#include <stiefel/plugin.hpp>

namespace {

template <class S> class Still final : public stiefel::Optimizer<S> {
 public:
  struct Options {
    void describe(stiefel::Schema&) {}
  };
  explicit Still(const Options&) {}
  void attach(const std::vector<stiefel::BlockSpec>&) override {}
  void step(stiefel::Index, double, std::span<S>, std::span<const S>) override {}
  void serialise(stiefel::Archive&) override {}
};

}  // namespace
