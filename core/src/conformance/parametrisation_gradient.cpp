// The gradient of a map: accumulate and finish against differences, additivity over columns, float against double, the
// penalty.
#include <fmt/format.h>

#include "conformance/difference.hpp"
#include "conformance/map_probe.hpp"

namespace stiefel::conformance {

namespace {
constexpr Index gradient_columns = 7;
constexpr Index map_differences = 96;

double largest(std::span<const double> values) {
  return values.empty() ? 0 : as_vector(values).template lpNorm<Eigen::Infinity>();
}

double step_of(std::span<const double> block, const BlockSpec& spec) {
  constexpr double relative = 0.02;
  if (spec.manifold != Manifold::flat || block.empty()) return relative;
  const double size = as_vector(block).norm() / std::sqrt(double(block.size()));
  return relative * (size > 0 ? std::clamp(size, 1e-4, 1e4) : 1.);
}

// Compares differences of f(θ) along every direction with the slopes from `gradient`. `scale`: of the terms of f;
// `rounding`: of the blocks of the gradient.
void compare_slopes(MapProbe<double>& probe, CheckReport& report, std::string_view check,
                    const std::vector<double>& gradient, const std::vector<double>& rounding, double scale,
                    std::uint64_t seed, const std::function<double()>& f) {
  const std::vector<double> theta = probe.theta();
  const Layout& layout = probe.layout();
  GradientComparison comparison({.absolute = 1e-10 * scale});
  for (const Direction& d : directions_of(probe.blocks(), map_differences, seed)) {
    const BlockSpec& spec = probe.blocks()[std::size_t(d.block)];
    const std::span<const double> at = layout.all(theta.data())[d.block], g = layout.all(gradient.data())[d.block];
    const auto along = [&probe, &theta, &layout, &spec, &f, d](double t) {
      std::vector<double> moved = theta;
      move(layout.all(moved.data())[d.block], spec, d, t);
      probe.set_theta(moved);
      return f();
    };
    const bool flat = spec.manifold == Manifold::flat;
    const std::string name = layout.block(d.block).name;
    const double step = step_of(at, spec), last_digit = std::numeric_limits<double>::epsilon() * scale;
    comparison.add(flat ? name : name + " (rotation of rows)",
                   flat ? place_of(spec, d.i) : Place(d.i + d.j * spec.cols, spec.cols), slope(at, g, spec, d), along,
                   step, last_digit, 10 * (rounding[std::size_t(d.block)] + last_digit / step));
  }
  comparison.report(report, check);
  probe.set_theta(theta);
}

// A call must add to what dθ holds: `after(before)` is dθ after it, `fresh` what it adds to zeros.
template <class F> void check_adds(CheckReport& report, std::string_view check, const std::string& place,
                                   const std::vector<double>& fresh, double bound, double scale, Rng& rng, F after) {
  std::vector<double> before(fresh.size());
  for (double& x : before) x = std::round(16 * rng.normal()) / 16;
  const std::vector<double> added = after(before);
  Comparison sums;
  for (std::size_t i = 0; i < fresh.size(); ++i) sums.add("dθ", Index(i), added[i], before[i] + fresh[i]);
  report.measure(check, sums, bound * (sums.scale() + scale), {},
                 added == fresh ? "dθ is set, but must be added to with +=, in " + place : "");
}

}  // namespace

void compare_gradients(Comparison& comparison, const Layout& layout, Index block, const std::vector<double>& got,
                       const std::vector<double>& expected) {
  compare_block(comparison, layout.block(block), layout.all(got.data())[block], layout.all(expected.data())[block]);
}

std::vector<double> gradient_rounding(CheckReport& report, const Layout& layout, double epsilon,
                                      const std::function<std::vector<double>(double)>& gradient) {
  const std::vector<double> expected = gradient(1);
  Comparison doubled;
  std::vector<double> half = gradient(2);
  for (double& g : half) g /= 2;
  for (Index b = 0; b < layout.count(); ++b) compare_gradients(doubled, layout, b, half, expected);
  report.measure("additive", doubled, 1000 * epsilon * doubled.scale(), {},
                 "twice X must give exactly twice the gradient: does it have a term without X?");
  std::vector<double> rounding(std::size_t(layout.count()));
  for (const double c : {1.1, 1.2, 1.3, 1.4, 1.6, 1.7, 1.8, 1.9}) {
    std::vector<double> scaled = gradient(c);
    for (double& g : scaled) g /= c;
    for (std::size_t b = 0; b < rounding.size(); ++b) {
      Comparison same;
      compare_gradients(same, layout, Index(b), scaled, expected);
      rounding[b] = std::max(rounding[b], same.largest());
    }
  }
  return rounding;
}

void check_differences(MapProbe<double>& probe, CheckReport& report, std::uint64_t seed) {
  Rng rng(seed, "gradient");
  const Real X = random_matrix(rng, probe.map().cols(), gradient_columns),
             dY = random_matrix(rng, probe.map().rows(), gradient_columns);
  probe.refresh();
  const double size = X.norm() * dY.norm();
  const std::vector<double> gradient = probe.gradient(X, dY);
  const auto rounding = gradient_rounding(report, probe.layout(), std::numeric_limits<double>::epsilon(),
                                          [&](double c) { return probe.gradient(c * X, dY); });
  compare_slopes(probe, report, "gradient", gradient, rounding, size, seed, [&] {
    probe.refresh();
    return probe.apply(X).cwiseProduct(dY).sum();
  });

  probe.refresh();
  std::vector<double> penalty_gradient;
  const double value = probe.penalty(&penalty_gradient);
  std::vector<double> again_gradient;
  const double again = probe.penalty(&again_gradient);
  if (!std::isfinite(value)) {
    report.demand("penalty", false, "the penalty is NaN or Inf");
  } else if (again != value || again_gradient != penalty_gradient) {
    report.fail(
        "penalty",
        fmt::format("penalty() returns {:.7g}, and {:.7g} with another gradient when it is called again: it must "
                    "depend on θ alone, since `train.accumulate` calls it in every pass",
                    value, again));
  } else if (value == 0 && largest(penalty_gradient) == 0) {
    report.skip("penalty", "the map has none");
  } else {
    const std::vector<double> exact(probe.blocks().size());
    compare_slopes(probe, report, "penalty", penalty_gradient, exact, std::max(1., std::abs(value)), seed, [&] {
      probe.refresh();
      return probe.penalty();
    });
    probe.refresh();
    check_adds(report, "penalty adds", "penalty()", penalty_gradient, 1e-12, 0, rng,
               [&](const std::vector<double>& before) {
                 std::vector<double> after;
                 probe.penalty(&after, before);
                 return after;
               });
  }
  probe.refresh();
}

void check_direction(MapProbe<double>& probe, CheckReport& report, Index columns, std::uint64_t seed) {
  Rng rng(seed, "gradient");
  const Real X = random_matrix(rng, probe.map().cols(), columns), dY = random_matrix(rng, probe.map().rows(), columns);
  const double size = X.norm() * dY.norm();
  const auto along = [&probe, &X, &dY](const std::vector<double>& theta) {
    probe.set_theta(theta);
    probe.refresh();
    return probe.apply(X).cwiseProduct(dY).sum();
  };
  GradientComparison comparison({.block = 1e-6, .absolute = 1e-8 * size});
  add_direction(comparison, probe.layout(), probe.theta(), probe.gradient(X, dY), along, 0.02,
                std::numeric_limits<double>::epsilon() * size, seed);
  comparison.report(report, "gradient");
}

void check_float_gradient(MapProbe<float>& single, MapProbe<double>& reference, CheckReport& report,
                          std::uint64_t seed) {
  Rng rng(seed, "gradient");
  const Real X = random_matrix(rng, single.map().cols(), gradient_columns),
             dY = random_matrix(rng, single.map().rows(), gradient_columns);
  reference.set_theta(single.theta());
  single.refresh();
  reference.refresh();
  const double epsilon = double(std::numeric_limits<float>::epsilon());
  const double bound = 200 * double(single.map().rows() + 8) * epsilon;
  const std::vector<double> got = single.gradient(X, dY), expected = reference.gradient(X, dY);
  const std::vector<double> rounding =
      gradient_rounding(report, single.layout(), epsilon, [&](double c) { return single.gradient(c * X, dY); });
  for (Index b = 0; b < single.layout().count(); ++b) {
    Comparison comparison;
    compare_gradients(comparison, single.layout(), b, got, expected);
    report.measure("float as double", comparison,
                   bound * comparison.scale() + 10 * epsilon * X.norm() * dY.norm() + 10 * rounding[std::size_t(b)]);
  }
}

template <class S> void check_many_columns(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed) {
  Rng rng(seed, "many columns");
  const Real W = probe.matrix();
  const double norm = std::max(1., W.norm());
  constexpr Index most = 257;
  const Real all_X = random_matrix(rng, W.cols(), most), all_dY = random_matrix(rng, W.rows(), most);
  for (const Index columns : {Index(17), Index(31), Index(67), most}) {
    const Real X = all_X.leftCols(columns), dY = all_dY.leftCols(columns);
    const std::string note = fmt::format("{} columns at once", columns);
    Comparison products, adjoint_products;
    products.matrices("W X", probe.apply(X), product(W, X));
    report.measure("apply is W", products, rounding<S>(W.cols()) * norm * X.colwise().norm().maxCoeff(), note);
    adjoint_products.matrices("Wᵀ dY", probe.adjoint(dY), product(transposed(W), dY));
    report.measure("adjoint", adjoint_products, rounding<S>(W.rows()) * norm * dY.colwise().norm().maxCoeff(), note);

    Guarded<S> whole = probe.sum(), singles = probe.sum();
    probe.accumulate(X, dY, whole);
    for (Index j = 0; j < columns; ++j) probe.accumulate(X.col(j), dY.col(j), singles);
    Comparison comparison;
    for (Index i = 0; i < whole.size(); ++i)
      comparison.add("sum", i, double(whole.data()[i]), double(singles.data()[i]));
    report.measure("additive", comparison,
                   rounding<S>(columns + X.rows()) * std::max(comparison.scale(), 1e-3 * X.norm() * dY.norm()),
                   note + " as one at a time");
  }
}

template <class S> void check_sums(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed) {
  Rng rng(seed, "sums");
  const Real X = random_matrix(rng, probe.map().cols(), gradient_columns),
             dY = random_matrix(rng, probe.map().rows(), gradient_columns);
  Guarded<S> whole = probe.sum(), parts = probe.sum(), with_zeros = probe.sum();
  probe.accumulate(X, dY, whole);
  probe.accumulate(X.leftCols(1), dY.leftCols(1), parts);
  probe.accumulate(X.middleCols(1, 4), dY.middleCols(1, 4), parts);
  probe.accumulate(X.rightCols(2), dY.rightCols(2), parts);

  Real longer_X = random_matrix(rng, X.rows(), gradient_columns + 2),
       longer_dY = Real::Zero(dY.rows(), gradient_columns + 2);
  longer_X.leftCols(gradient_columns) = X;
  longer_dY.leftCols(gradient_columns) = dY;
  probe.accumulate(longer_X, longer_dY, with_zeros);

  Comparison comparison;
  for (Index i = 0; i < whole.size(); ++i) {
    comparison.add("sum", i, double(parts.data()[i]), double(whole.data()[i]));
    comparison.add("sum, with columns of dY = 0", i, double(with_zeros.data()[i]), double(whole.data()[i]));
  }
  const double bound = rounding<S>(gradient_columns + X.rows());
  report.measure("additive", comparison, bound * std::max(comparison.scale(), 1e-3 * X.norm() * dY.norm()));

  check_adds(report, "finish adds", "finish() or pullback()", probe.finish(whole), bound, 1e-3 * X.norm() * dY.norm(),
             rng, [&](const std::vector<double>& before) { return probe.finish(whole, before); });
}

template void check_many_columns<float>(MapProbe<float>&, CheckReport&, std::uint64_t);
template void check_many_columns<double>(MapProbe<double>&, CheckReport&, std::uint64_t);
template void check_sums<float>(MapProbe<float>&, CheckReport&, std::uint64_t);
template void check_sums<double>(MapProbe<double>&, CheckReport&, std::uint64_t);

}  // namespace stiefel::conformance
