// What a map owes between two refreshes: one linear operator, seen alike by apply, apply_adjoint, both routes, claim
// and spectrum.
#include <fmt/format.h>

#include <stiefel/linear_algebra.hpp>

#include "conformance/map_probe.hpp"

namespace stiefel::conformance {

namespace {

constexpr Index identity_columns = 5;

// W of a complex map in complex form, from the first half of its columns.
Eigen::MatrixXcd complex_form(const Real& W) {
  const Index n = W.rows() / 2, m = W.cols() / 2;
  Eigen::MatrixXcd C(n, m);
  C.real() = W.topLeftCorner(n, m);
  C.imag() = W.bottomLeftCorner(n, m);
  return C;
}

std::vector<double> singular_values(const Real& W, bool complex) {
  std::vector<double> values(std::size_t(std::min(W.rows(), W.cols()) / (complex ? 2 : 1)));
  Real destroyed = W;
  Eigen::MatrixXcd form = complex_form(W);
  complex ? stiefel::singular_values(view(form), values) : stiefel::singular_values(view(destroyed), values);
  return values;
}

template <class S> void check_complex_structure(MapProbe<S>& probe, CheckReport& report, const Real& W) {
  report.require("complex pairs", probe.map().complex_pairs() == probe.shape.complex,
                 "complex_pairs() differs from the Shape it was made for");
  if (!probe.shape.complex) return;
  // W J = J W with J = [[0, −I], [I, 0]], i.e. W = [[A, −B], [B, A]].
  const Index n = W.rows() / 2, m = W.cols() / 2;
  Comparison comparison;
  comparison.matrices("A", W.bottomRightCorner(n, m), W.topLeftCorner(n, m));
  comparison.matrices("B", -W.topRightCorner(n, m), W.bottomLeftCorner(n, m));
  report.measure("complex pairs", comparison, rounding<S>(W.rows()) * std::max(1., W.norm()));
}

template <class S> void check_routes(MapProbe<S>& probe, CheckReport& report, const Real& W, std::uint64_t seed) {
  auto& map = probe.map();
  const double bound = rounding<S>(W.rows()) * std::max(1., W.norm());
  const CMat<S> kept = probe.subject().call("matrix", [&] { return map.matrix(); });
  if (kept.size()) {
    Comparison comparison;
    report.require("matrix()", kept.rows() == W.rows() && kept.cols() == W.cols(),
                   "the shape of matrix() differs from that of the map");
    if (kept.rows() == W.rows() && kept.cols() == W.cols()) comparison.matrices("W", kept.template cast<double>(), W);
    report.measure("matrix()", comparison, bound);
  }
  if (!probe.subject().call("materialises", [&] { return map.materialises(); })) {
    report.skip("routes agree", "the map has one route");
    return;
  }
  Panel<S> dense(W.rows(), W.cols(), std::numeric_limits<S>::quiet_NaN());
  probe.subject().call("materialise", [&] { map.materialise(probe.parameters(), dense.whole()); });
  probe.keep("materialise", "W", dense.intact());
  Comparison matrices;
  matrices.matrices("W", dense.read().template cast<double>(), W);
  report.measure("routes agree", matrices, bound);

  Rng rng(seed, "routes");
  const Real X = random_matrix(rng, W.cols(), identity_columns), dY = random_matrix(rng, W.rows(), identity_columns);
  const auto structured = [&](double c) { return probe.gradient(c * X, dY); };
  const auto pulled = [&](double c) {
    const Panel<S> dW(c * product(dY, transposed(X)));
    GuardedBlocks<S> dtheta = probe.gradient_buffer();
    probe.subject().call("pullback", [&] { map.pullback(probe.parameters(), dense.read(), dW.read(), dtheta.all()); });
    probe.keep("pullback", "block of dθ", dtheta.intact());
    return dtheta.numbers();
  };
  const std::vector<double> got = pulled(1), expected = structured(1),
                            of_structured = gradient_rounding(report, probe.layout(),
                                                              double(std::numeric_limits<S>::epsilon()), structured),
                            of_pulled = gradient_rounding(report, probe.layout(),
                                                          double(std::numeric_limits<S>::epsilon()), pulled);
  for (Index b = 0; b < probe.layout().count(); ++b) {
    Comparison gradients;
    compare_gradients(gradients, probe.layout(), b, got, expected);
    report.measure("routes agree", gradients,
                   20 * rounding<S>(W.rows()) * std::max(gradients.scale(), 1e-3 * product(dY, transposed(X)).norm()) +
                       10 * (of_structured[std::size_t(b)] + of_pulled[std::size_t(b)]));
  }
}

}  // namespace

template <class S> void check_identities(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed) {
  Rng rng(seed, "identities");
  const Index rows = probe.map().rows(), cols = probe.map().cols();
  const Real W = probe.matrix();
  report.demand("finite", W.allFinite(), "apply(I) has NaN or Inf, or was not written: outputs arrive filled with NaN");
  const double norm = std::max(1., W.norm());

  const Real X = random_matrix(rng, cols, identity_columns), Z = random_matrix(rng, cols, identity_columns),
             dY = random_matrix(rng, rows, identity_columns);
  const double input = X.colwise().norm().maxCoeff() + Z.colwise().norm().maxCoeff(),
               gradient = dY.colwise().norm().maxCoeff();
  Comparison columns_of_W, linear, adjoint, adjoint_matrix;
  columns_of_W.matrices("W X", probe.apply(X), product(W, X));
  if (!report.measure("apply is W", columns_of_W, rounding<S>(cols) * norm * input)) report.stop();
  linear.matrices("W (2X − Z/4)", probe.apply(2 * X - Z / 4), 2 * probe.apply(X) - probe.apply(Z) / 4);
  if (!report.measure("linear", linear, 3 * rounding<S>(cols) * norm * input)) report.stop();
  adjoint_matrix.matrices("W transposed", probe.adjoint(Real::Identity(rows, rows)), W.transpose());
  report.measure("adjoint", adjoint_matrix, rounding<S>(cols) * norm);
  adjoint.matrices("Wᵀ dY", probe.adjoint(dY), product(transposed(W), dY));
  report.measure("adjoint", adjoint, rounding<S>(rows) * norm * gradient);

  Comparison sum, adjoint_sum;
  sum.matrices("Y + W X", probe.add(X, dY), dY + product(W, X));
  report.measure("add is W", sum, rounding<S>(cols) * (norm * input + gradient));
  adjoint_sum.matrices("dX + Wᵀ dY", probe.add_adjoint(dY, X), X + product(transposed(W), dY));
  report.measure("add is W", adjoint_sum, rounding<S>(rows) * (norm * gradient + input));

  const Real extreme = Real::Constant(cols, 1, 1e6), zero = Real::Zero(cols, 1);
  report.demand("finite", probe.apply(extreme).allFinite() && probe.adjoint(Real::Constant(rows, 1, 1e6)).allFinite(),
                "an input of 1e6 gave NaN or Inf");
  report.require("finite", (probe.apply(zero).array() == 0).all(), "apply(0) is not 0");
  check_complex_structure(probe, report, W);
  check_routes(probe, report, W, seed);
}

template <class S> void check_claim(MapProbe<S>& probe, CheckReport& report, double factor, const std::string& at) {
  const Claim claim = probe.subject().call("claim", [&] { return probe.map().claim(); });
  const Real W = probe.matrix();
  const double n = double(std::max<Index>(W.rows(), 4)), unit = n * double(std::numeric_limits<S>::epsilon());
  const double largest_c = 20 * factor;
  if (claim.kind == Claim::none) {
    report.skip("claim", "the map claims nothing");
  } else if (claim.kind == Claim::bounded) {
    report.demand("claim", claim.low >= 0 && claim.low <= claim.high,
                  fmt::format("[{}, {}] is not an interval of singular values", claim.low, claim.high));
    double outside = 0, furthest = claim.low;
    for (const double s : singular_values(W, probe.shape.complex))
      if (const double by = std::max(claim.low - s, s - claim.high); by > outside) outside = by, furthest = s;
    const bool within = outside <= largest_c * unit * std::max(1., claim.high);
    report.measure("claim", outside, largest_c * unit * std::max(1., claim.high), {},
                   within
                       ? fmt::format("singular values in [{:g}, {:g}]", claim.low, claim.high)
                       : fmt::format("W has the singular value {:.7g}{}, but claim() says that all are in [{:g}, {:g}]",
                                     furthest, at, claim.low, claim.high));
  } else {
    const Real gram = W.rows() >= W.cols() ? product(transposed(W), W) : product(W, transposed(W));
    Comparison comparison;
    comparison.matrices("WᵀW", gram, Real::Identity(gram.rows(), gram.cols()));
    const double defect = (gram - Real::Identity(gram.rows(), gram.cols())).norm();
    std::string note = fmt::format("‖WᵀW − I‖ = {:.2g} n ε{}", defect / unit, at);
    if (!(defect <= largest_c * unit)) {
      const std::vector<double> s = singular_values(W, probe.shape.complex);
      note = fmt::format("the singular values of W are in [{:.7g}, {:.7g}]{}, but claim() says that all are 1",
                         s.back(), s.front(), at);
    }
    report.measure("claim", defect, largest_c * unit, comparison.worst(), note);
  }
}

template <class S> void check_spectrum(MapProbe<S>& probe, CheckReport& report) {
  const Spectrum spectrum = probe.subject().call("spectrum", [&] { return probe.map().spectrum(); });
  const Real W = probe.matrix();
  const bool complex = probe.shape.complex;
  const double norm = std::max(1e-30, W.norm());
  const std::vector<double> expected = singular_values(W, complex);
  Comparison comparison;
  report.require("spectrum", spectrum.singular_values.size() == expected.size(),
                 fmt::format("{} singular values, {} expected", spectrum.singular_values.size(), expected.size()));
  if (spectrum.singular_values.size() != expected.size()) return;
  for (std::size_t i = 0; i < expected.size(); ++i)
    comparison.add("singular_values", Index(i), spectrum.singular_values[i], expected[i]);
  report.measure("spectrum", comparison, 4 * rounding<S>(W.rows()) * norm);

  const bool square = W.rows() == W.cols();
  const std::size_t count = square ? expected.size() : 0;
  report.require("spectrum", spectrum.eigenvalues.size() == count,
                 fmt::format("{} eigenvalues, {} expected", spectrum.eigenvalues.size(), count));
  if (!square || spectrum.eigenvalues.size() != count) return;
  Eigen::MatrixXcd form = complex ? complex_form(W) : Eigen::MatrixXcd(W.cast<std::complex<double>>());
  std::vector<std::complex<double>> left(count);
  eigenvalues(view(form), left);
  Comparison distances;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = spectrum.eigenvalues[i];
    const auto nearest = std::min_element(left.begin(), left.end(),
                                          [&](auto a, auto b) { return std::abs(a - value) < std::abs(b - value); });
    distances.add("eigenvalues (distance to the nearest)", Index(i), std::abs(*nearest - value), 0);
    left.erase(nearest);
    if (i > 0)
      report.require("spectrum",
                     std::abs(value) <= std::abs(spectrum.eigenvalues[i - 1]) + rounding<S>(W.rows()) * norm,
                     "eigenvalues are not in the order of descending modulus");
  }
  // Eigenvalues of a matrix far from normal are ill-conditioned: the root of the rounding is what a double eigenvalue
  // may lose.
  report.measure("spectrum", distances, 4 * std::sqrt(rounding<S>(W.rows())) * norm);
}

template void check_identities<float>(MapProbe<float>&, CheckReport&, std::uint64_t);
template void check_identities<double>(MapProbe<double>&, CheckReport&, std::uint64_t);
template void check_claim<float>(MapProbe<float>&, CheckReport&, double, const std::string&);
template void check_claim<double>(MapProbe<double>&, CheckReport&, double, const std::string&);
template void check_spectrum<float>(MapProbe<float>&, CheckReport&);
template void check_spectrum<double>(MapProbe<double>&, CheckReport&);

}  // namespace stiefel::conformance
