// The gradient of a map: accumulate and finish against differences, additivity over columns, float against double, the
// penalty.
#include "conformance/map_probe.hpp"

namespace stiefel::conformance {

namespace {
constexpr Index gradient_columns = 7;
constexpr Index map_differences = 96;
constexpr double map_tolerance = 1e-7;

double largest(std::span<const double> values) {
  return values.empty() ? 0 : as_vector(values).template lpNorm<Eigen::Infinity>();
}

double step_of(std::span<const double> block, const BlockSpec& spec) {
  constexpr double relative = 0.02;
  if (spec.manifold != Manifold::flat || block.empty()) return relative;
  const double size = as_vector(block).norm() / std::sqrt(double(block.size()));
  return relative * (size > 0 ? std::clamp(size, 1e-4, 1e4) : 1.);
}

// Compares differences of f(θ) along every direction with the slopes from `gradient`, block by block.
void compare_slopes(MapProbe<double>& probe, CheckReport& report, std::string_view check,
                    const std::vector<double>& gradient, double floor, std::uint64_t seed,
                    const std::function<double()>& f) {
  const std::vector<double> theta = probe.theta();
  const Blocks<const double> g = probe.layout().all(gradient.data());
  std::vector<Comparison> comparisons(probe.blocks().size());
  for (const Direction& d : directions_of(probe.blocks(), map_differences, seed)) {
    const BlockSpec& spec = probe.blocks()[std::size_t(d.block)];
    const Blocks<const double> at = probe.layout().all(theta.data());
    const auto along = [&](double t) {
      std::vector<double> moved = theta;
      move(probe.layout().all(moved.data())[d.block], spec, d, t);
      probe.set_theta(moved);
      return f();
    };
    const double expected = derivative(along, step_of(at[d.block], spec));
    const bool flat = spec.manifold == Manifold::flat;
    comparisons[std::size_t(d.block)].add(flat ? spec.name : spec.name + " (rotation of rows)",
                                          flat ? d.i : d.i + d.j * spec.cols, slope(at[d.block], g[d.block], spec, d),
                                          expected);
  }
  probe.set_theta(theta);
  for (const Comparison& c : comparisons) report.measure(check, c, map_tolerance * c.scale() + floor);
}

}  // namespace

void compare_gradients(Comparison& comparison, const std::vector<BlockSpec>& blocks, Index block,
                       std::span<const double> got, std::span<const double> expected) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    comparison.add(blocks[std::size_t(block)].name, Index(i), got[i], expected[i]);
}

void check_differences(MapProbe<double>& probe, CheckReport& report, std::uint64_t seed) {
  Rng rng(seed, "gradient");
  const Real X = random_matrix(rng, probe.map().cols(), gradient_columns),
             dY = random_matrix(rng, probe.map().rows(), gradient_columns);
  probe.refresh();
  const double size = X.norm() * dY.norm();
  const std::vector<double> gradient = probe.gradient(X, dY);
  compare_slopes(probe, report, "gradient", gradient, 1e-10 * size, seed, [&] {
    probe.refresh();
    return probe.apply(X).cwiseProduct(dY).sum();
  });

  probe.refresh();
  std::vector<double> penalty_gradient;
  const double value = probe.penalty(&penalty_gradient);
  if (!std::isfinite(value)) {
    report.fail("penalty", "the penalty is NaN or Inf");
  } else if (value == 0 && largest(penalty_gradient) == 0) {
    report.skip("penalty", "the map has none");
  } else {
    compare_slopes(probe, report, "penalty", penalty_gradient, 1e-10 * std::max(1., std::abs(value)), seed, [&] {
      probe.refresh();
      return probe.penalty();
    });
  }
  probe.refresh();
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
  for (Index b = 0; b < single.layout().count(); ++b) {
    Comparison comparison;
    compare_gradients(comparison, single.blocks(), b, single.layout().all(got.data())[b],
                      single.layout().all(expected.data())[b]);
    report.measure("float as double", comparison, bound * comparison.scale() + 10 * epsilon * X.norm() * dY.norm());
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

  // finish() adds to what dθ holds.
  const std::vector<double> fresh = probe.finish(whole);
  std::vector<double> before(fresh.size());
  for (double& x : before) x = std::round(16 * rng.normal()) / 16;
  const std::vector<double> added = probe.finish(whole, before);
  Comparison sums;
  for (std::size_t i = 0; i < fresh.size(); ++i) sums.add("dθ", Index(i), added[i], before[i] + fresh[i]);
  report.measure("finish adds", sums, bound * (sums.scale() + 1e-3 * X.norm() * dY.norm()));
}

template void check_sums<float>(MapProbe<float>&, CheckReport&, std::uint64_t);
template void check_sums<double>(MapProbe<double>&, CheckReport&, std::uint64_t);

}  // namespace stiefel::conformance
