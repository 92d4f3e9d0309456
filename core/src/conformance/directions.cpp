// Directions on flat, orthogonal and unitary blocks, and derivatives along them.
#include "conformance/directions.hpp"

#include <algorithm>
#include <cmath>

#include <stiefel/linear_algebra.hpp>

namespace stiefel::conformance {

namespace {

double root_mean_square(std::span<const double> block) {
  return block.empty() ? 0 : as_vector(block).norm() / std::sqrt(double(block.size()));
}

// The complex matrix M = R + iI of a unitary block, Re over Im.
using Complex = std::complex<double>;
struct UnitaryRow {
  std::span<double> block;
  Index n;
  Complex get(Index i, Index c) const {
    return {block[std::size_t(c * 2 * n + i)], block[std::size_t(c * 2 * n + n + i)]};
  }
  void set(Index i, Index c, Complex z) const {
    block[std::size_t(c * 2 * n + i)] = z.real();
    block[std::size_t(c * 2 * n + n + i)] = z.imag();
  }
};

void turn_unitary(std::span<double> block, Index n, const Direction& d, double t) {
  const UnitaryRow M{block, n};
  const Complex turn = std::polar(1., t), sine = d.imaginary ? Complex(0, turn.imag()) : Complex(turn.imag(), 0);
  for (Index c = 0; c < n; ++c) {
    const Complex a = M.get(d.i, c), b = M.get(d.j, c);
    if (d.i == d.j) {
      M.set(d.i, c, turn * a);
      continue;
    }
    M.set(d.i, c, turn.real() * a - std::conj(sine) * b);
    M.set(d.j, c, sine * a + turn.real() * b);
  }
}

std::vector<Direction> all_directions(const BlockSpec& spec, Index number) {
  std::vector<Direction> all;
  if (spec.manifold == Manifold::flat) {
    for (Index i = 0; i < spec.size; ++i) all.push_back({number, i, 0, false});
    return all;
  }
  for (Index j = 0; j < spec.cols; ++j) {
    for (Index i = j + 1; i < spec.cols; ++i) {
      all.push_back({number, i, j, false});
      if (spec.manifold == Manifold::unitary) all.push_back({number, i, j, true});
    }
    if (spec.manifold == Manifold::unitary) all.push_back({number, j, j, true});
  }
  return all;
}

}  // namespace

void compare_block(Comparison& comparison, const BlockSpec& spec, std::span<const double> got,
                   std::span<const double> expected) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    comparison.add(spec.name, place_of(spec, Index(i)), got[i], expected[i]);
}

std::vector<Direction> directions_of(const std::vector<BlockSpec>& blocks, Index limit, std::uint64_t seed) {
  std::vector<Direction> chosen;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const std::vector<Direction> all = all_directions(blocks[b], Index(b));
    if (Index(all.size()) <= limit) {
      chosen.insert(chosen.end(), all.begin(), all.end());
      continue;
    }
    Rng rng(seed, "directions", b);
    std::vector<std::int64_t> order = rng.permutation(std::int64_t(all.size()) - 2);
    order.resize(std::size_t(limit - 2));
    for (std::int64_t& k : order) ++k;
    order.push_back(0);
    order.push_back(std::int64_t(all.size()) - 1);
    std::sort(order.begin(), order.end());
    for (const std::int64_t k : order) chosen.push_back(all[std::size_t(k)]);
  }
  return chosen;
}

void move(std::span<double> block, const BlockSpec& spec, const Direction& d, double t) {
  if (spec.manifold == Manifold::flat) {
    block[std::size_t(d.i)] += t;
  } else if (spec.manifold == Manifold::unitary) {
    turn_unitary(block, spec.cols, d, t);
  } else {
    auto M = as_matrix(block, spec.rows, spec.cols);
    const Eigen::RowVectorXd a = M.row(d.i), b = M.row(d.j);
    M.row(d.i) = std::cos(t) * a - std::sin(t) * b;
    M.row(d.j) = std::sin(t) * a + std::cos(t) * b;
  }
}

double slope(std::span<const double> block, std::span<const double> gradient, const BlockSpec& spec,
             const Direction& d) {
  if (spec.manifold == Manifold::flat) return gradient[std::size_t(d.i)];
  if (spec.manifold == Manifold::orthogonal) {
    const auto M = as_matrix(block, spec.rows, spec.cols), G = as_matrix(gradient, spec.rows, spec.cols);
    return G.row(d.j).dot(M.row(d.i)) - G.row(d.i).dot(M.row(d.j));
  }
  // The curve is linear in M for a fixed t: its velocity is the difference of the curve at the right angle and at zero
  // cosine.
  std::vector<double> velocity(block.begin(), block.end());
  const Index n = spec.cols;
  const UnitaryRow V{velocity, n};
  for (Index c = 0; c < n; ++c) {
    const Complex a = V.get(d.i, c), b = V.get(d.j, c);
    for (Index i = 0; i < n; ++i) V.set(i, c, 0);
    if (d.i == d.j) {
      V.set(d.i, c, Complex(0, 1) * a);
      continue;
    }
    const Complex unit = d.imaginary ? Complex(0, 1) : Complex(1, 0);
    V.set(d.i, c, -std::conj(unit) * b);
    V.set(d.j, c, unit * a);
  }
  return as_vector(std::span<const double>(velocity)).dot(as_vector(gradient));
}

double defect(std::span<const double> block, const BlockSpec& spec) {
  const CMat<double> M = as_matrix(block, spec.rows, spec.cols);
  const Index n = spec.cols;
  if (spec.manifold == Manifold::orthogonal) return isometry_defect<double>(M);
  Eigen::MatrixXcd C(n, n);
  C.real() = M.topRows(n);
  C.imag() = M.bottomRows(n);
  return isometry_defect<std::complex<double>>(C);
}

void scatter(Blocks<double> theta, const std::vector<BlockSpec>& blocks, double amount, Rng& rng) {
  for (Index b = 0; b < theta.count(); ++b) {
    const BlockSpec& spec = blocks[std::size_t(b)];
    const double size = root_mean_square(theta[b]);
    if (spec.manifold == Manifold::flat) {
      for (double& x : theta[b]) x += amount * (size > 0 ? std::min(size, 1.) : 1.) * rng.normal();
      continue;
    }
    for (const Direction& d : all_directions(spec, b)) move(theta[b], spec, d, amount * rng.normal());
  }
}

}  // namespace stiefel::conformance
