// The roles' names, and what the SDK's base classes do when a plugin does not say otherwise.
#include <stiefel/plugin.hpp>

#include <fmt/format.h>

namespace stiefel {

const char* name_of(Role role) {
  switch (role) {
    case Role::parametrisation:
      return "parametrisation";
    case Role::cell:
      return "cell";
    case Role::task:
      return "task";
    case Role::optimizer:
      return "optimizer";
  }
  return "unknown role";
}

Archive::~Archive() = default;
Recorder::~Recorder() = default;

CellContext CellContext::real(const char* plugin, const char* what, const char* or_else) const {
  if (!complex) return *this;
  throw Error(
      fmt::format("{} has {} and cannot use a complex map; choose real maps in model.recurrent and model.maps{}",
                  plugin, what, or_else));
}

template <class S> Maps<S>::~Maps() = default;
template <class S> GradientSink<S>::~GradientSink() = default;

template <class S> Cell<S>::~Cell() = default;
template <class S> Index Cell<S>::delta_rows() const { return input_rows(); }
template <class S> Index Cell<S>::output_rows() const { return context_.rows(); }
template <class S> Index Cell<S>::state_row() const { return output_row(); }
template <class S> Index Cell<S>::state_rows() const { return output_rows(); }
template <class S> std::vector<BlockSpec> Cell<S>::blocks() const { return {}; }
template <class S> void Cell<S>::initialise(Blocks<S>, Rng&) const {}
template <class S> bool Cell<S>::test_point(Blocks<S>, Rng&) const { return false; }
template <class S> void Cell<S>::initialise_bias(std::span<S>) const {}
template <class S> Index Cell<S>::scratch(Index) const { return 0; }
template <class S> void Cell<S>::after_step(Blocks<S>) const {}

template <class S> Optimizer<S>::~Optimizer() = default;
template <class S> bool Optimizer<S>::moves(Manifold manifold) const { return manifold == Manifold::flat; }
template <class S> bool Optimizer<S>::decouples() const { return false; }

void detail::scratch_used_up(Index rows, Index cols, Index left) {
  throw Error(
      fmt::format("{} × {} numbers of working memory are needed, but only {} are left; correct scratch(columns), "
                  "which says how many one call takes",
                  rows, cols, left),
      Exit::plugin);
}

void detail::no_step(Index step, Index steps) {
  throw Error(fmt::format("chunk.at({0}) and chunk.before({0}) do not exist: the chunk has {1} steps, counted from 0; "
                          "chunk.before(0) is the state before its first step",
                          step, steps),
              Exit::plugin);
}

void detail::no_block(Index block, Index count) {
  throw Error(
      fmt::format("there is no block {}: the number of blocks is {}; correct the index or blocks(){}", block, count,
                  count == 0 ? ", and ask for count() first: there is no gradient of parameters at every call" : ""),
      Exit::plugin);
}

void detail::block_too_small(Index rows, Index cols, Index size) {
  throw Error(fmt::format("a matrix of {} × {} does not fit into {} numbers; correct the sizes in blocks() or "
                          "accumulator(), or the part",
                          rows, cols, size),
              Exit::plugin);
}

template class Maps<float>;
template class Maps<double>;
template class GradientSink<float>;
template class GradientSink<double>;
template class Cell<float>;
template class Cell<double>;
template class Optimizer<float>;
template class Optimizer<double>;

}  // namespace stiefel
