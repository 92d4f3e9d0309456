// PackedProduct against a plain sum in long double: every SIMD target of this CPU, shapes, strides, guards, bits and
// threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <stiefel/error.hpp>
#include <stiefel/product.hpp>
#include <stiefel/random.hpp>

using namespace stiefel;

namespace {

/// Runs `body` on every target of this CPU, then frees the choice again.
template <class Body> void on_every_target(Body body) {
  const std::vector<const char*> targets = product_targets();
  REQUIRE(!targets.empty());
  for (const char* name : targets) {
    REQUIRE(select_product_target(name));
    CAPTURE(std::string(name));
    REQUIRE(product_target() == std::string(name));
    body();
  }
  REQUIRE(select_product_target(""));
}

/// rows × cols numbers inside memory that ends with them; what lies between the columns is NaN.
template <class S> struct Guarded {
  Guarded(Index rows, Index cols, Index stride) : rows(rows), cols(cols), stride(stride) {
    numbers.assign(std::size_t(rows * cols == 0 ? 0 : (cols - 1) * stride + rows), std::numeric_limits<S>::quiet_NaN());
  }
  Guarded(Rng& rng, Index rows, Index cols) : Guarded(rows, cols, rows + rng.integer(0, 9)) {
    for (Index j = 0; j < cols; ++j)
      for (Index i = 0; i < rows; ++i) at(i, j) = S(rng.uniform(-1, 1));
  }
  S& at(Index i, Index j) { return numbers[std::size_t(j * stride + i)]; }
  S at(Index i, Index j) const { return numbers[std::size_t(j * stride + i)]; }
  Mat<S> view() { return mat(numbers.data(), rows, cols, stride); }
  CMat<S> view() const { return cmat(numbers.data(), rows, cols, stride); }
  CMat<S> columns(Index first, Index count) const { return cmat(numbers.data() + first * stride, rows, count, stride); }
  Mat<S> columns(Index first, Index count) { return mat(numbers.data() + first * stride, rows, count, stride); }
  bool guards_untouched() const {
    for (std::size_t p = 0; p < numbers.size(); ++p)
      if (Index(p) % stride >= rows && !std::isnan(numbers[p])) return false;
    return true;
  }

  Index rows, cols, stride;
  std::vector<S> numbers;
};

template <class S> bool same_bits(const Guarded<S>& a, const Guarded<S>& b) {
  for (Index j = 0; j < a.cols; ++j)
    if (std::memcmp(&a.numbers[std::size_t(j * a.stride)], &b.numbers[std::size_t(j * b.stride)],
                    std::size_t(a.rows) * sizeof(S)) != 0)
      return false;
  return true;
}

/// Largest |Y − (old + sign·W·X)| over the bound (depth + 2)·ε·(|old| + |W|·|X|).
template <class S>
double excess(const Guarded<S>& W, const Guarded<S>& X, const Guarded<S>* old, int sign, const Guarded<S>& Y) {
  double worst = 0;
  for (Index j = 0; j < Y.cols; ++j) {
    for (Index i = 0; i < Y.rows; ++i) {
      long double sum = 0, size = 0;
      for (Index k = 0; k < X.rows; ++k) {
        const long double term = static_cast<long double>(W.at(i, k)) * X.at(k, j);
        sum += term;
        size += std::abs(term);
      }
      const long double before = old ? static_cast<long double>(old->at(i, j)) : 0;
      const long double bound =
          (X.rows + 2) * static_cast<long double>(std::numeric_limits<S>::epsilon()) * (size + std::abs(before));
      const long double error = std::abs(Y.at(i, j) - (before + sign * sum));
      if (!(error <= bound))
        worst = std::max(worst, std::isnan(error) ? 1e30 : double(error / std::max(bound, 1e-300L)));
    }
  }
  return worst;
}

template <class S> void check_shape(Rng& rng, PackedProduct<S>& product, Index rows, Index depth, Index columns) {
  CAPTURE(rows);
  CAPTURE(depth);
  CAPTURE(columns);
  const Guarded<S> W(rng, rows, depth), X(rng, depth, columns), old(rng, rows, columns);
  product.pack(W.view());
  CHECK(product.rows() == rows);
  CHECK(product.cols() == depth);

  Guarded<S> Y(rows, columns, rows + rng.integer(0, 9));
  product.multiply(X.view(), Y.view());
  CHECK(excess<S>(W, X, nullptr, 1, Y) == 0);
  CHECK(Y.guards_untouched());

  Guarded<S> sum = old, difference = old;
  product.add(X.view(), sum.view());
  product.subtract(X.view(), difference.view());
  CHECK(excess<S>(W, X, &old, 1, sum) == 0);
  CHECK(excess<S>(W, X, &old, -1, difference) == 0);
  CHECK(sum.guards_untouched());
  CHECK(difference.guards_untouched());
  Guarded<S> rounded_once = old;
  rounded_once.view() += Y.view();
  CHECK(same_bits(sum, rounded_once));
  rounded_once.view() = Matrix<S>(old.view()) - Matrix<S>(Y.view());
  CHECK(same_bits(difference, rounded_once));

  Guarded<S> transposed(depth, rows, depth + rng.integer(0, 9)), again(rows, columns, rows);
  transposed.view() = W.view().transpose();
  product.pack_transposed(std::as_const(transposed).view());
  CHECK(product.rows() == rows);
  product.multiply(X.view(), again.view());
  CHECK(same_bits(Y, again));
}

}  // namespace

TEST_CASE_TEMPLATE("products of every small shape are right and stay inside their rows", S, float, double) {
  on_every_target([] {
    Rng rng(1, "shapes");
    PackedProduct<S> product;
    for (Index n = 1; n <= 40; ++n) {
      check_shape<S>(rng, product, n, rng.integer(1, 40), rng.integer(1, 40));
      check_shape<S>(rng, product, rng.integer(1, 40), n, rng.integer(1, 40));
      check_shape<S>(rng, product, rng.integer(1, 40), rng.integer(1, 40), n);
    }
  });
}

TEST_CASE_TEMPLATE("products of the sizes in use are right", S, float, double) {
  on_every_target([] {
    Rng rng(2, "sizes");
    PackedProduct<S> product;
    for (const Index rows : {64, 100, 170, 257})
      for (const Index columns : {1, 2, 3, 7, 17, 50})
        check_shape<S>(rng, product, rows, rows == 100 ? 16 : 170, columns);
  });
}

TEST_CASE_TEMPLATE("C += A·Bᵀ is right, stays inside its rows and keeps its bits, whichever of the two has few rows", S,
                   float, double) {
  on_every_target([] {
    Rng rng(8, "outer");
    const auto check = [&](Index rows, Index cols, Index columns) {
      CAPTURE(rows);
      CAPTURE(cols);
      CAPTURE(columns);
      const Guarded<S> A(rng, rows, columns), B(rng, cols, columns), old(rng, rows, cols);
      Guarded<S> Bt(columns, cols, columns), C = old, again = old;
      Bt.view() = B.view().transpose();
      add_outer(A.view(), B.view(), C.view());
      CHECK(excess<S>(A, Bt, &old, 1, C) == 0);
      CHECK(C.guards_untouched());
      add_outer(A.view(), B.view(), again.view());
      CHECK(same_bits(C, again));
    };
    for (Index n = 1; n <= 40; ++n) {
      check(n, rng.integer(1, 40), rng.integer(1, 40));
      check(rng.integer(1, 40), n, rng.integer(1, 40));
      check(rng.integer(1, 40), rng.integer(1, 40), n);
    }
    check(170, 10, 300);
    check(10, 170, 300);
    check(128, 16, 511);
    check(100, 90, 77);
  });
}

TEST_CASE_TEMPLATE("a column's bits depend neither on the other columns nor on strides", S, float, double) {
  on_every_target([] {
    Rng rng(3, "bits");
    for (const Index rows : {5, 37, 128, 170}) {
      const Guarded<S> W(rng, rows, 61), X(rng, 61, 64);
      PackedProduct<S> product;
      product.pack(W.view());
      Guarded<S> whole(rows, 64, rows);
      product.multiply(X.view(), whole.view());
      for (Index width = 1; width <= 25; ++width) {
        Guarded<S> parts(rows, 64, rows + 3);
        for (Index first = 0; first < 64; first += width) {
          const Index count = std::min<Index>(width, 64 - first);
          product.multiply(X.columns(first, count), parts.columns(first, count));
        }
        CAPTURE(rows);
        CAPTURE(width);
        CHECK(same_bits(whole, parts));
      }
    }
  });
}

TEST_CASE_TEMPLATE("a NaN or infinity stays in its row and column", S, float, double) {
  on_every_target([] {
    Rng rng(4, "infinite");
    Guarded<S> W(rng, 21, 13), X(rng, 13, 9), Y(21, 9, 21);
    W.at(20, 3) = std::numeric_limits<S>::quiet_NaN();
    X.at(5, 8) = std::numeric_limits<S>::infinity();
    PackedProduct<S> product;
    product.pack(std::as_const(W).view());
    product.multiply(std::as_const(X).view(), Y.view());
    for (Index j = 0; j < 9; ++j)
      for (Index i = 0; i < 21; ++i) CHECK(std::isfinite(Y.at(i, j)) == (i != 20 && j != 8));
  });
}

TEST_CASE_TEMPLATE("empty matrices", S, float, double) {
  PackedProduct<S> product;
  CHECK(product.rows() == 0);
  Matrix<S> W(7, 0), X(0, 3), Y = Matrix<S>::Ones(7, 3);
  product.pack(W);
  product.add(X, view(Y));
  CHECK(Y == Matrix<S>::Ones(7, 3));
  product.multiply(X, view(Y));
  CHECK(Y == Matrix<S>::Zero(7, 3));
  Matrix<S> flat(0, 5), five = Matrix<S>::Ones(5, 2), none(0, 2), no_columns(5, 0), nothing(0, 0);
  product.pack(flat);
  product.multiply(five, view(none));
  product.multiply(no_columns, view(nothing));
  CHECK(product.cols() == 5);
}

TEST_CASE_TEMPLATE("wrong shapes are refused", S, float, double) {
  PackedProduct<S> product;
  Matrix<S> W = Matrix<S>::Ones(4, 3), X = Matrix<S>::Ones(3, 2), Y(4, 2), high(5, 2), wide(4, 3);
  product.pack(W);
  CHECK_THROWS_AS(product.multiply(X, view(high)), Error);
  CHECK_THROWS_AS(product.multiply(X, view(wide)), Error);
  CHECK_THROWS_AS(product.add(W, view(Y)), Error);
}

TEST_CASE_TEMPLATE("several threads multiply by one matrix", S, float, double) {
  Rng rng(5, "threads");
  const Guarded<S> W(rng, 170, 170), X(rng, 170, 48);
  PackedProduct<S> product;
  product.pack(W.view());
  Guarded<S> serial(170, 48, 170), parallel(170, 48, 170);
  product.multiply(X.view(), serial.view());
  std::vector<std::thread> threads;
  for (Index t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int repeat = 0; repeat < 50; ++repeat) product.multiply(X.columns(6 * t, 6), parallel.columns(6 * t, 6));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(same_bits(serial, parallel));
}

TEST_CASE("a packed matrix keeps its target and survives a move") {
  Rng rng(6, "targets");
  const Guarded<float> W(rng, 33, 29), X(rng, 29, 5);
  const std::vector<const char*> targets = product_targets();
  REQUIRE(select_product_target(targets.back()));
  PackedProduct<float> first;
  first.pack(W.view());
  Guarded<float> before(33, 5, 33), after(33, 5, 33);
  first.multiply(X.view(), before.view());
  REQUIRE(select_product_target(""));
  CHECK(product_target() == std::string(targets.front()));
  const PackedProduct<float> second = std::move(first);
  second.multiply(X.view(), after.view());
  CHECK(same_bits(before, after));
  CHECK_FALSE(select_product_target("no such target"));
  CHECK(product_target() == std::string(targets.front()));
}
