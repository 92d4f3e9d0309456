// One object of a parametrisation with its parameters and guarded buffers, for either scalar; numbers go in and out in
// double.
#pragma once

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
        theta_(make_layout()) {}

  const Shape shape;
  Parametrisation<S>& map() const { return *map_; }
  const std::vector<BlockSpec>& blocks() const { return blocks_; }
  const Layout& layout() const { return layout_; }
  const Subject& subject() const { return subject_; }

  void initialise(std::uint64_t seed) {
    std::fill_n(theta_.data(), theta_.size(), S(0));
    Rng rng(seed, "initialise");
    subject_.call("initialise", [&] { map_->initialise(layout_.all(theta_.data()), rng); });
    keep("initialise", "θ", theta_.intact());
  }
  std::vector<double> theta() const { return {theta_.data(), theta_.data() + theta_.size()}; }
  void set_theta(const std::vector<double>& values) { std::copy(values.begin(), values.end(), theta_.data()); }
  CBlocks<S> parameters() const { return layout_.all(theta_.data()); }

  void refresh() {
    subject_.call("refresh", [&] { map_->refresh(parameters()); });
  }
  void after_step() {
    subject_.call("after_step", [&] { map_->after_step(layout_.all(theta_.data())); });
    keep("after_step", "θ", theta_.intact());
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
    Guarded<S> dtheta = gradient_buffer(before);
    subject_.call("finish", [&] { map_->finish(parameters(), sum.span(), layout_.all(dtheta.data())); });
    keep("finish", "dθ", dtheta.intact());
    return {dtheta.data(), dtheta.data() + dtheta.size()};
  }
  /// ∂⟨dY, W X⟩/∂θ at the θ of the last refresh.
  std::vector<double> gradient(const Real& X, const Real& dY) {
    Guarded<S> total = sum();
    accumulate(X, dY, total);
    return finish(total);
  }
  double penalty(std::vector<double>* gradient = nullptr) {
    Guarded<S> dtheta = gradient_buffer({});
    const double value =
        subject_.call("penalty", [&] { return map_->penalty(parameters(), layout_.all(dtheta.data())); });
    keep("penalty", "dθ", dtheta.intact());
    if (gradient) gradient->assign(dtheta.data(), dtheta.data() + dtheta.size());
    return value;
  }
  Index scratch_size(Index columns) const {
    return subject_.call("scratch", [&] { return map_->scratch(columns); });
  }
  Guarded<S> gradient_buffer(const std::vector<double>& before) const {
    Guarded<S> dtheta(layout_.size());
    std::copy(before.begin(), before.end(), dtheta.data());
    return dtheta;
  }

  /// Reported under "memory".
  void keep(const char* verb, const char* what, bool intact) const {
    report_.require("memory", intact, std::string(verb) + " wrote outside the " + what + " that it was given");
  }

 private:
  Index make_layout() {
    layout_.add("", blocks_);
    return layout_.size();
  }

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
  Guarded<S> theta_;
};

/// Rounding that sums of n terms may show, with room for chains of reflections and solves.
template <class S> double rounding(Index n) {
  return 16 * double(std::max<Index>(n, 4)) * double(std::numeric_limits<S>::epsilon());
}

/// Gradients block by block.
void compare_gradients(Comparison& comparison, const std::vector<BlockSpec>& blocks, Index block,
                       std::span<const double> got, std::span<const double> expected);

// Parts of check_parametrisation, each for one object at one seed.
/// False if W has NaN or Inf: nothing else can then be checked.
template <class S> bool check_identities(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed);
template <class S> void check_claim(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed);
template <class S> void check_sums(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed);
template <class S> void check_state(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed);
template <class S> void check_spectrum(MapProbe<S>& probe, CheckReport& report);
template <class S> void check_threads(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed);
void check_differences(MapProbe<double>& probe, CheckReport& report, std::uint64_t seed);
void check_float_gradient(MapProbe<float>& single, MapProbe<double>& reference, CheckReport& report,
                          std::uint64_t seed);

}  // namespace stiefel::conformance
