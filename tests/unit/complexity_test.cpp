// Operations counted by a number that counts: algorithm 1 as published gives the polynomials of its paper's table 2
// (Mhammedi et al. 2017), which cost() of `householder` gives, and the reflections of this library, which compute the
// same, differ from them as said here.
#include <doctest/doctest.h>

#include <vector>

#include "map_plugins.hpp"
#include "plugins/parametrisations/sequential_reflections.hpp"

using namespace map_plugins;

namespace {

/// A double that counts the operations made with it.
struct Counted {
  double value = 0;
  static inline Index operations = 0;

  Counted() = default;
  Counted(double x) : value(x) {}
  Counted& operator+=(Counted x) { return *this = *this + x; }
  Counted& operator-=(Counted x) { return *this = *this - x; }
  friend Counted operator+(Counted a, Counted b) { return made(a.value + b.value); }
  friend Counted operator-(Counted a, Counted b) { return made(a.value - b.value); }
  friend Counted operator*(Counted a, Counted b) { return made(a.value * b.value); }
  friend Counted operator/(Counted a, Counted b) { return made(a.value / b.value); }
  friend Counted operator-(Counted a) { return a.value * -1; }
  static Counted made(double x) {
    ++operations;
    return x;
  }
};

template <class F> Index operations_of(F work) {
  Counted::operations = 0;
  work();
  return Counted::operations;
}

}  // namespace

template <> struct Eigen::NumTraits<Counted> : Eigen::NumTraits<double> {
  using Real = Counted;
  using NonInteger = Counted;
  using Nested = Counted;
  enum { RequireInitialization = 1 };
};

namespace {

using Numbers = std::vector<Counted>;

/// Algorithm 1 as printed, for one sample and step: vectors of n rows, ‖U_k‖² known. Products UᵀH leave out the zeros
/// of U; of the backward pass, whose table gives the sum alone, so does the difference for g.
struct Algorithm1 {
  Index n, m;
  std::vector<Numbers> U;       // m columns, column k zero above row k
  Numbers squares;              // m
  std::vector<Numbers> states;  // m + 1: H_1 … H_{m+1}
  Numbers factors;              // m: of the forward pass

  Algorithm1(const Matrix<double>& vectors)
      : n(vectors.rows()), m(vectors.cols()), states(std::size_t(m + 1)), factors(std::size_t(m)) {
    for (Index k = 0; k < m; ++k) {
      U.emplace_back(vectors.col(k).begin(), vectors.col(k).end());
      squares.emplace_back(vectors.col(k).squaredNorm());
    }
  }

  Counted factor(Index k, const Numbers& y) const {
    Counted sum = U[k][k] * y[k];
    for (Index i = k + 1; i < n; ++i) sum += U[k][i] * y[i];
    return Counted(2) * sum / squares[k];
  }

  void forward(const Numbers& h) {
    states[m] = h;
    for (Index k = m - 1; k >= 0; --k) {
      factors[k] = factor(k, states[k + 1]);
      states[k] = states[k + 1];
      for (Index i = 0; i < n; ++i) states[k][i] -= factors[k] * U[k][i];
    }
  }

  /// The gradient of U, whose rows above the diagonal are not parameters; g becomes that of h.
  std::vector<Numbers> backward(Numbers& g) const {
    std::vector<Numbers> dU(U.size(), Numbers(U[0].size()));
    for (Index k = 0; k < m; ++k) {
      const Counted c = factor(k, g);
      for (Index i = k; i < n; ++i) g[i] -= c * U[k][i];
      for (Index i = 0; i < n; ++i) dU[k][i] = -(factors[k] * g[i] + c * states[k + 1][i]);
    }
    return dU;
  }
};

Matrix<double> trapezoid(Index n, Index m) {
  Matrix<double> U = gaussian<double>(n, m, 1);
  U.template triangularView<Eigen::StrictlyUpper>().setZero();
  return U;
}

Numbers numbers(const Matrix<double>& x) { return {x.data(), x.data() + x.size()}; }

const std::vector<std::pair<Index, Index>> sizes{{2, 1}, {5, 1}, {5, 3}, {8, 7}, {33, 16}, {64, 63}, {128, 16}};

}  // namespace

TEST_CASE(
    "algorithm 1 as published: (4n − m + 2)m operations forward, (7n − 2m + 3)m backward, (11n − 3m + 5)m with the "
    "states made again") {
  std::vector<std::pair<Index, Index>> all = sizes;
  all.insert(all.end(), {{4, 4}, {32, 32}});
  for (const auto& [n, m] : all) {
    Algorithm1 published(trapezoid(n, m));
    const Numbers h = numbers(gaussian<double>(n, 1, 2));
    Numbers g = numbers(gaussian<double>(n, 1, 3));
    const Index forward = operations_of([&] { published.forward(h); }),
                backward = operations_of([&] { published.backward(g); });
    CHECK(forward == (4 * n - m + 2) * m);
    CHECK(backward == (7 * n - 2 * m + 3) * m);
    CHECK(forward + backward == (11 * n - 3 * m + 5) * m);
  }
}

TEST_CASE("householder one by one computes what algorithm 1 computes") {
  for (const auto& [n, m] : sizes) {
    Sample<double> sample("householder",
                          "{apply: sequential, normalise_columns: false, reflections: " + std::to_string(m) + "}", n);
    Matrix<double> U = Matrix<double>::Zero(n, m);
    for (Index j = 0, first = 0; j < m; first += n - j, ++j)
      U.col(j).tail(n - j) = as_vector(sample.theta.blocks()[0]).segment(first, n - j);
    const Matrix<double> x = gaussian<double>(n, 1, 2), dy = gaussian<double>(n, 1, 3);
    Algorithm1 published(U);
    published.forward(numbers(x));
    Numbers g = numbers(dy);
    const std::vector<Numbers> dU = published.backward(g);
    const Matrix<double> y = sample.apply(x), dx = sample.adjoint(dy);
    const std::vector<double> gradient = sample.gradient(x, dy);
    double of_vectors = 0, of_gradient = 0, largest = 0;
    for (Index i = 0; i < n; ++i)
      of_vectors = std::max({of_vectors, std::abs(y(i) - published.states[0][i].value), std::abs(dx(i) - g[i].value)});
    for (Index j = 0, k = 0; j < m; ++j)
      for (Index i = j; i < n; ++i, ++k) {
        of_gradient = std::max(of_gradient, std::abs(gradient[k] - dU[j][i].value));
        largest = std::max(largest, std::abs(gradient[k]));
      }
    CHECK(of_vectors < 1e-13 * double(n));
    CHECK(of_gradient < 1e-13 * double(n) * largest);
  }
}

TEST_CASE("cost() of householder one by one is the published count, and how what is computed differs from it") {
  for (const auto& [n, m] : sizes) {
    const std::string options = "{apply: sequential, reflections: " + std::to_string(m) + "}";
    const Cost cost = make_map<float>("householder", options, n, n)->cost(1),
               three = make_map<float>("householder", options, n, n)->cost(3);
    Matrix<Counted> U = trapezoid(n, m).cast<Counted>(), dU = U;
    Vector<Counted> twice(m), x = gaussian<double>(n, 1, 2).cast<Counted>(),
                              g = gaussian<double>(n, 1, 3).cast<Counted>(), h(m);

    Algorithm1 published(trapezoid(n, m));
    Numbers gradient = numbers(gaussian<double>(n, 1, 3));
    const Index forward = operations_of([&] { published.forward(numbers(gaussian<double>(n, 1, 2))); }),
                backward = operations_of([&] { published.backward(gradient); });
    CHECK(cost.apply == forward);
    CHECK(cost.apply_adjoint + cost.accumulate == forward + backward);
    CHECK(cost.apply == (4 * n - m + 2) * m);
    CHECK(cost.apply_adjoint + cost.accumulate == (11 * n - 3 * m + 5) * m);
    CHECK(cost.apply_adjoint + cost.accumulate - cost.apply == (7 * n - 2 * m + 3) * m);
    CHECK(three.apply + three.apply_adjoint + three.accumulate ==
          3 * (cost.apply + cost.apply_adjoint + cost.accumulate));

    const SequentialReflections<Counted> reflections{U, twice};
    CHECK(cost.refresh == operations_of([&] {
            for (Index j = 0; j < m; ++j) twice[j] = Counted(2) / U.col(j).tail(n - j).squaredNorm();
          }));
    const Index apply = operations_of([&] { reflections.apply(x); }),
                adjoint = operations_of([&] { reflections.apply_adjoint(g); }),
                accumulate = operations_of([&] { reflections.accumulate(x, g, h, dU); });
    // Forward the published count has n rows in each difference, ours n − k, and two operations for 2/‖u‖², ours one.
    const Index zeros = m * (m - 1) / 2, stored = n * m - zeros;
    CHECK(apply == forward - 2 * zeros - m);
    // Backward Wᵀ is applied in the time loop and again behind it (4 for each number of U), reflections of the state
    // are undone (2), Ū is added to a sum (1); five operations on each zero and a factor of 2 twice in each reflection
    // are saved.
    CHECK(adjoint + accumulate == forward + backward + 7 * stored - 5 * zeros - 2 * m);
  }
}

TEST_CASE("cost() of n reflections has the sign u₁ beside those of n − 1") {
  for (const Index n : {2, 5, 16}) {
    const auto cost = [&](Index m) {
      return make_map<double>("householder", "{apply: sequential, reflections: " + std::to_string(m) + "}", n, n)
          ->cost(1);
    };
    CHECK(cost(n).apply == cost(n - 1).apply + 1);
    CHECK(cost(n).apply_adjoint == cost(n - 1).apply_adjoint + 1);
    CHECK(cost(n).accumulate == cost(n - 1).accumulate + 3);
    CHECK(cost(n).finish == cost(n - 1).finish + 1);
  }
}

TEST_CASE("cost() of dense: 2n² − n operations forward, 3n² − n backward and n² more for adding δhᵀ to a sum") {
  for (const Index n : {1, 2, 7, 128}) {
    const Cost cost = make_map<float>("dense", "{}", n, n)->cost(1);
    CHECK(cost.apply == 2 * n * n - n);
    CHECK(cost.apply_adjoint + cost.accumulate - double(n * n) == 3 * n * n - n);
  }
}
