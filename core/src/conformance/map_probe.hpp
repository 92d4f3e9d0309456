// One object of a parametrisation with its parameters and guarded buffers, for either scalar; numbers go in and out in
// double.
#pragma once

#include <functional>

#include "conformance/directions.hpp"
#include "conformance/memory.hpp"
#include "conformance/subject.hpp"
#include "engine/parameters.hpp"

namespace stiefel::conformance {

using Real = Matrix<double>;

template <class S> class MapProbe {
 public:
  MapProbe(const Subject& subject, CheckReport& report, Shape shape)
      : shape(shape),
        subject_(subject),
        report_(report),
        map_(subject.create<Parametrisation<S>>(shape)),
        blocks_(subject.call("blocks", [&] { return map_->blocks(); })),
        layout_(layout_of(blocks_)),
        theta_(layout_) {}

  const Shape shape;
  Parametrisation<S>& map() const { return *map_; }
  const std::vector<BlockSpec>& blocks() const { return blocks_; }
  const Layout& layout() const { return layout_; }
  const Subject& subject() const { return subject_; }
  /// Whether the author wrote materialise() and pullback(), from which the library makes refresh() and finish().
  bool is_formed() const { return dynamic_cast<const Dense<S>*>(map_.get()); }

  void initialise(std::uint64_t seed) {
    theta_.fill(0);
    Rng rng(seed, "initialise");
    subject_.call("initialise", [&] { map_->initialise(theta_.all(), rng); });
    keep("initialise", "θ", theta_.intact());
    demand_manifolds("initialise");
  }
  std::vector<double> theta() const { return theta_.numbers(); }
  void set_theta(const std::vector<double>& values) { theta_.set(values); }
  CBlocks<S> parameters() const { return theta_.all(); }

  void refresh() {
    subject_.call(is_formed() ? "materialise" : "refresh", [&] { map_->refresh(parameters()); });
  }
  void after_step() {
    subject_.call("after_step", [&] { map_->after_step(theta_.all()); });
    keep("after_step", "θ", theta_.intact());
    demand_manifolds("after_step");
  }

  /// W X of the last refresh; the result is read from a buffer that held NaN.
  Real apply(const Real& X) const {
    return product("apply", X, unset(map_->rows(), X.cols()), &Parametrisation<S>::apply, 0);
  }
  Real adjoint(const Real& dY) const {
    return product("apply_adjoint", dY, unset(map_->cols(), dY.cols()), &Parametrisation<S>::apply_adjoint, 0);
  }
  /// Y + W X, dX + Wᵀ dY.
  Real add(const Real& X, const Real& Y) const {
    return product("add", X, Y, &Parametrisation<S>::add, largest() * X.cols());
  }
  Real add_adjoint(const Real& dY, const Real& dX) const {
    return product("add_adjoint", dY, dX, &Parametrisation<S>::add_adjoint, largest() * dY.cols());
  }
  Real matrix() const { return apply(Real::Identity(map_->cols(), map_->cols())); }

  /// Adds to `sum`, which has accumulator() entries.
  void accumulate(const Real& X, const Real& dY, Guarded<S>& sum) const {
    const Panel<S> x(X), dy(dY);
    Guarded<S> memory(scratch_size(X.cols()));
    Scratch<S> scratch(memory.span());
    subject_.call("accumulate", [&] { map_->accumulate(x.read(), dy.read(), sum.span(), scratch); });
    keep("accumulate", "sum", sum.intact());
    keep("accumulate", "scratch", memory.intact());
  }
  Guarded<S> sum() const {
    return Guarded<S>(subject_.call("accumulator", [&] { return map_->accumulator(); }));
  }
  /// dθ + the gradient of the sum.
  std::vector<double> finish(const Guarded<S>& sum, const std::vector<double>& before = {}) {
    GuardedBlocks<S> dtheta = gradient_buffer(before);
    subject_.call(is_formed() ? "pullback" : "finish", [&] { map_->finish(parameters(), sum.span(), dtheta.all()); });
    keep("finish", "block of dθ", dtheta.intact());
    return dtheta.numbers();
  }
  /// ∂⟨dY, W X⟩/∂θ at the θ of the last refresh.
  std::vector<double> gradient(const Real& X, const Real& dY) {
    Guarded<S> total = sum();
    accumulate(X, dY, total);
    return finish(total);
  }
  double penalty(std::vector<double>* gradient = nullptr, const std::vector<double>& before = {}) {
    GuardedBlocks<S> dtheta = gradient_buffer(before);
    const double value = subject_.call("penalty", [&] { return map_->penalty(parameters(), dtheta.all()); });
    keep("penalty", "block of dθ", dtheta.intact());
    if (gradient) *gradient = dtheta.numbers();
    return value;
  }
  Index scratch_size(Index columns) const {
    return subject_.call("scratch", [&] { return map_->scratch(columns); });
  }
  GuardedBlocks<S> gradient_buffer(const std::vector<double>& before = {}) const {
    return before.empty() ? GuardedBlocks<S>(layout_) : GuardedBlocks<S>(layout_, before);
  }

  /// Reported under "memory".
  void keep(const char* verb, const char* what, bool intact) const {
    report_.demand("memory", intact, std::string(verb) + " wrote outside the " + what + " that it was given");
  }

 private:
  /// Named as those of a cell's only map.
  static Layout layout_of(const std::vector<BlockSpec>& blocks) {
    Layout layout;
    layout.add("recurrent.", blocks);
    return layout;
  }

  void demand_manifolds(const char* verb) const;

  using Product = void (Parametrisation<S>::*)(CMat<S>, Mat<S>, Scratch<S>&) const;
  static Real unset(Index rows, Index cols) {
    return Real::Constant(rows, cols, std::numeric_limits<double>::quiet_NaN());
  }
  Index largest() const { return std::max(map_->rows(), map_->cols()); }
  Real product(const char* verb, const Real& X, const Real& before, Product call, Index more_scratch) const {
    const Panel<S> x(X);
    Panel<S> y(before);
    Guarded<S> memory(scratch_size(X.cols()) + more_scratch, std::numeric_limits<S>::quiet_NaN());
    Scratch<S> scratch(memory.span());
    subject_.call(verb, [&] { (map_.get()->*call)(x.read(), y.whole(), scratch); });
    keep(verb, "result", y.intact());
    keep(verb, "scratch", memory.intact());
    return y.read().template cast<double>();
  }

  const Subject& subject_;
  CheckReport& report_;
  std::unique_ptr<Parametrisation<S>> map_;
  std::vector<BlockSpec> blocks_;
  Layout layout_;
  GuardedBlocks<S> theta_;
};

/// Rounding that sums of n terms may show, with room for chains of reflections and solves.
template <class S> double rounding(Index n) {
  return 16 * double(std::max<Index>(n, 4)) * double(std::numeric_limits<S>::epsilon());
}

template <class S> void MapProbe<S>::demand_manifolds(const char* verb) const {
  const std::vector<double> numbers = theta();
  for (Index b = 0; b < layout_.count(); ++b) {
    const BlockSpec& spec = layout_.block(b);
    if (spec.manifold == Manifold::flat) continue;
    const double distance = defect(layout_.all(numbers.data())[b], spec);
    report_.demand(
        verb, distance <= rounding<S>(spec.cols),
        fmt::format("{0}() leaves the block `{1}` off its manifold: ‖MᴴM − I‖ is {2:.2g}; it must hold {3}", verb,
                    spec.name, distance,
                    spec.manifold == Manifold::unitary ? "a unitary matrix, Re over Im" : "an orthogonal matrix"));
  }
}

/// Gradients block by block.
void compare_gradients(Comparison& comparison, const Layout& layout, Index block, const std::vector<double>& got,
                       const std::vector<double>& expected);

/// Rounding error of each block of a gradient, measured: `gradient(c)` is that at cX, in which it is linear, so that it
/// differs from c·gradient(1) by rounding alone, and for c = 2 not even by that, which is checked.
std::vector<double> gradient_rounding(CheckReport& report, const Layout& layout, double epsilon,
                                      const std::function<std::vector<double>(double)>& gradient);

// Parts of check_parametrisation, each for one object at one seed.
template <class S> void check_identities(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed);
template <class S> void check_reads(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed);
template <class S> void check_allocation(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed);
/// At θ, or `factor` times as far, where rounding is so many times as large.
template <class S>
void check_claim(MapProbe<S>& probe, CheckReport& report, double factor = 1, const std::string& at = "");
template <class S> void check_sums(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed);
/// With numbers of columns that fill no block of 2, 4, 8, …, so that the last ones are on their own.
template <class S> void check_many_columns(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed);
template <class S> void check_state(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed);
template <class S> void check_spectrum(MapProbe<S>& probe, CheckReport& report);
/// `thorough`: also with calls that are stopped midway by others.
template <class S> void check_threads(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed, bool thorough);
/// A step of one map that is stopped midway by that of another.
template <class S> void check_maps_apart(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed);
void check_differences(MapProbe<double>& probe, CheckReport& report, std::uint64_t seed);
/// Along one random direction of θ, with many columns.
void check_direction(MapProbe<double>& probe, CheckReport& report, Index columns, std::uint64_t seed);
void check_float_gradient(MapProbe<float>& single, MapProbe<double>& reference, CheckReport& report,
                          std::uint64_t seed);

}  // namespace stiefel::conformance
