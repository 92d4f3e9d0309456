// Unitary matrices as products of m complex reflections and a diagonal of phases (Mhammedi, Hellicar, Rahman & Bailey
// 2017, corollary 1).
//
//   W = H(U_0) H(U_1) … H(U_{m−1}) D     H(u) = I − 2uuᴴ/‖u‖²     D = diag(e^{iθ})
//   m ≤ n − 1; every unitary matrix for m = n − 1
//   compact WY     T = striu(UᴴU) + ½diag(UᴴU),  P = T⁻¹UᴴD,  R = T⁻ᴴUᴴ:   W = D − UP,  Wᴴ = Dᴴ(I − UR)
//   pullback, columns x, dy     h = Px,  c = R dy:   Ū = U·K − Σ dy hᴴ − Σ Dx cᴴ,   θ̄ = Im Σ conj(Dx) ∘ (dy − Uc)
//
// K is Hermitian with the upper triangle of Σ c hᴴ and the real part of its diagonal. This is the whole gradient of
// each reflection C = h − αu, −conj(α)g − conj(β)h + Re(conj(α)β)u with α = 2uᴴh/‖u‖², β = 2uᴴg/‖u‖². The paper's
// algorithm 1 taken over to complex numbers lacks a part along iu: W does not change in that direction, but the moments
// of an adaptive optimizer would see it.
//
// U and W act on Re over Im as real matrices, so the products and the sums over columns are real ones. P and R are
// computed in double precision.
#include <stiefel/plugin.hpp>

#include <numbers>
#include <stiefel/linear_algebra.hpp>

#include "complex_form.hpp"
#include "reflections.hpp"

namespace {

using namespace stiefel;
using T = std::complex<double>;

struct UnitaryFactors {
  Complex U;              // n × (n − 1), columns of unit length
  Vector<double> phases;  // n
};

/// Algorithm 2 for a unitary Q: column x is reflected to −e^{iφ}‖x‖e₁, φ = arg x₁, by u = x + e^{iφ}‖x‖e₁; what is left
/// of Q is D.
UnitaryFactors factors_of(Complex Q) {
  const Index n = Q.rows();
  UnitaryFactors result{Complex::Zero(n, n - 1), Vector<double>(n)};
  for (Index j = 0; j + 1 < n; ++j) {
    const Index length = n - j;
    Eigen::VectorXcd u = Q.col(j).tail(length);
    u[0] += std::polar(u.norm(), std::arg(u[0]));
    u.normalize();
    add_product<T>(u, product(adjoint(u), Q.bottomRows(length)), Q.bottomRows(length), -2);
    result.U.col(j).tail(length) = u;
  }
  for (Index j = 0; j < n; ++j) result.phases[j] = std::arg(Q(j, j));
  return result;
}

template <class S> class UnitaryHouseholder final : public Parametrisation<S> {
 public:
  struct Options {
    Index reflections = 16;
    bool normalise_columns = true;
    double std = 0.01;
    std::string init = "gaussian", phases = "uniform", file;
    void describe(Schema& s) {
      s.field("reflections", reflections, "number m of reflections, 1 … n − 1").at_least(1);
      s.field("normalise_columns", normalise_columns,
              "scale every column of U to length 1 initially and after each update; W is the same, the effective rate "
              "is not");
      s.field("std", std,
              "initial standard deviation of the parts of the entries of U, for `init: gaussian` without "
              "`normalise_columns`")
          .at_least(1e-6)
          .only_if(!normalise_columns, "`normalise_columns: false`");
      s.field("init", init,
              "random Gaussian columns, or, for m = n − 1, the factors of a Haar-distributed matrix or of the one in "
              "`file`")
          .one_of({"gaussian", "unitary", "file"});
      s.field("phases", phases, "θ at the start for `init: gaussian`: U(−π, π), or 0")
          .one_of({"uniform", "zero"})
          .only_if(init == "gaussian", "`init: gaussian`");
      s.field("file", file, "unitary n × n matrix for `init: file`, a .npy of 2n × n numbers, Re over Im")
          .only_if(init == "file", "`init: file`");
      s.check(init != "file" || !file.empty(), "file", "names the .npy file that `init: file` reads");
    }
  };
  static bool complex_pairs(const Options&) { return true; }

  UnitaryHouseholder(const Options& options, Shape shape)
      : Parametrisation<S>(shape.square("unitary_householder")),
        options_(options),
        n_(shape.rows / 2),
        m_(options.reflections) {
    if (n_ < 2)
      throw Error("unitary_householder needs at least 2 complex rows, but the map has " + std::to_string(n_) +
                  "; raise `hidden`");
    const std::string most = std::to_string(n_ - 1);
    if (m_ >= n_)
      throw Error("unitary_householder: `reflections` is " + std::to_string(m_) + ", but " + most +
                  " and the phases give every unitary " + "matrix of " + std::to_string(n_) + " rows; choose 1 … " +
                  most);
    if (options.init != "gaussian" && m_ != n_ - 1)
      throw Error("unitary_householder: `init: " + options.init +
                  "` decomposes a unitary matrix into n − 1 reflections and phases; set " + "`reflections: " + most +
                  "`");
  }

  /// Column after column of U, the real parts of one and then its imaginary parts.
  std::vector<BlockSpec> blocks() const override {
    return {{.name = "U", .size = 2 * trapezoid_size(n_, m_), .constant_norm = options_.normalise_columns},
            {"theta", n_}};
  }

  void initialise(Blocks<S> theta, Rng& rng) const override {
    UnitaryFactors initial{Complex::Zero(n_, m_), Vector<double>::Zero(n_)};
    if (options_.init == "gaussian") {
      for (Index j = 0; j < m_; ++j)
        for (T& entry : initial.U.col(j).tail(n_ - j))
          entry = {options_.std * rng.normal(), options_.std * rng.normal()};
      if (options_.normalise_columns) initial.U.colwise().normalize();
      if (options_.phases == "uniform")
        for (double& phase : initial.phases) phase = rng.uniform(-std::numbers::pi, std::numbers::pi);
    } else {
      initial = factors_of(given_matrix(rng));
    }
    add_columns(theta[0], initial.U);
    as_vector(theta[1]) = initial.phases.template cast<S>();
  }

  void refresh(CBlocks<S> theta) override {
    U_.setZero(n_, m_);
    for_each_part([&](Index j, Index first, Index length) {
      U_.col(j).tail(length).real() = as_vector(theta[0]).segment(first, length).template cast<double>();
      U_.col(j).tail(length).imag() = as_vector(theta[0]).segment(first + length, length).template cast<double>();
    });
    D_.resize(n_);
    for (Index j = 0; j < n_; ++j) D_[j] = std::polar(1.0, double(theta[1][std::size_t(j)]));
    cosines_ = D_.real().template cast<S>();
    sines_ = D_.imag().template cast<S>();

    Complex triangle = product(adjoint(U_), U_);
    for (Index j = 0; j < m_; ++j) demand_reflection("unitary_householder", "U", j, triangle(j, j).real());
    triangle.diagonal() /= 2;
    Complex P = U_.adjoint() * D_.asDiagonal(), R = U_.adjoint();
    solve_triangular(Triangle::upper, triangle, view(P));
    solve_triangular(Triangle::upper, adjoint(triangle), view(R));
    pack(P_product_, P);
    pack(R_product_, R);
    pack(U_product_, U_);
  }

  Index scratch(Index columns) const override { return 4 * m_ * columns; }

  void apply(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const override {
    const Mat<S> h = scratch.take(2 * m_, X.cols());
    P_product_.multiply(X, h);
    turn(X, Y, S(1));
    U_product_.subtract(h, Y);
  }
  void add(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const override {
    const Mat<S> h = scratch.take(2 * m_, X.cols());
    P_product_.multiply(X, h);
    turn<true>(X, Y, S(1));
    U_product_.subtract(h, Y);
  }
  void apply_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const override {
    const Mat<S> c = scratch.take(2 * m_, dY.cols());
    R_product_.multiply(dY, c);
    dX = dY;
    U_product_.subtract(c, dX);
    turn(dX, dX, S(-1));
  }

  /// Σ dy hᴴ, Σ x cᴴ and Σ c hᴴ as products of real parts with real parts, and Σ dy ∘ conj(x), Re over Im.
  Index accumulator() const override { return 8 * n_ * m_ + 4 * m_ * m_ + 2 * n_; }

  void accumulate(CMat<S> X, CMat<S> dY, std::span<S> sum, Scratch<S>& scratch) const override {
    const Mat<S> h = scratch.take(2 * m_, X.cols()), c = scratch.take(2 * m_, X.cols());
    P_product_.multiply(X, h);
    R_product_.multiply(dY, c);
    const Sums<S> sums = parts(sum);
    add_outer(dY, h, sums.left);
    add_outer(X, c, sums.right);
    add_outer(c, h, sums.ch);
    S* phases = sums.phases;
    for (Index k = 0; k < X.cols(); ++k)
      for (Index j = 0; j < n_; ++j) {
        phases[j] += dY(j, k) * X(j, k) + dY(n_ + j, k) * X(n_ + j, k);
        phases[n_ + j] += dY(n_ + j, k) * X(j, k) - dY(j, k) * X(n_ + j, k);
      }
  }

  void finish(CBlocks<S>, std::span<const S> sum, Blocks<S> dtheta) override {
    const Sums<const S> sums = parts(sum);
    const Complex right = D_.asDiagonal() * complex_sum(sums.right);
    Complex K = complex_sum(sums.ch).template triangularView<Eigen::StrictlyUpper>();
    K += K.adjoint().eval();
    K.diagonal() = complex_sum(sums.ch).diagonal().real().template cast<T>();
    Complex dU = U_ * K;
    dU -= complex_sum(sums.left) + right;
    add_columns(dtheta[0], dU);
    for (Index j = 0; j < n_; ++j) {
      const T direct = std::conj(D_[j]) * T(double(sums.phases[j]), double(sums.phases[n_ + j])),
              through = right.row(j).dot(U_.row(j));
      dtheta[1][std::size_t(j)] += S((direct - through).imag());
    }
  }

  void after_step(Blocks<S> theta) override {
    if (options_.normalise_columns) normalise_columns(theta[0], n_, m_, 2);
  }

  bool materialises() const override { return true; }

  Claim claim() const override { return {Claim::unitary}; }

  Cost cost(Index columns) const override {
    const double n = double(n_), m = double(m_), c = double(columns), product = 16 * n * m,
                 gradient = 32 * n * m + 8 * m * m;
    const double refresh = 16 * n * m * m, finish = 8 * n * m * m;
    return {refresh, product * c, product * c, gradient * c, finish, n * product, n * gradient + finish};
  }

 private:
  template <class V> struct Sums {
    std::conditional_t<std::is_const_v<V>, CMat<S>, Mat<S>> left, right, ch;
    V* phases;
  };
  template <class V> Sums<V> parts(std::span<V> sum) const {
    const Index N = 2 * n_, M = 2 * m_;
    const auto at = [&](Index first) { return sum.subspan(std::size_t(first)); };
    return {as_matrix(at(0), N, M), as_matrix(at(N * M), N, M), as_matrix(at(2 * N * M), M, M),
            at(2 * N * M + M * M).data()};
  }

  /// Σ a bᴴ from Σ (Re a over Im a)(Re b over Im b)ᵀ.
  template <class D> static Complex complex_sum(const Eigen::MatrixBase<D>& sum) { return gradient_of_form<T>(sum); }

  /// Calls visit(j, first, length): the real parts of column j are at `first` of θ, the imaginary ones at first +
  /// length.
  template <class F> void for_each_part(F visit) const {
    for_each_column(n_, m_, [&](Index j, Index first, Index length) { visit(j, 2 * first, length); });
  }
  void add_columns(std::span<S> theta, const Complex& U) const {
    for_each_part([&](Index j, Index first, Index length) {
      as_vector(theta).segment(first, length) += U.col(j).tail(length).real().template cast<S>();
      as_vector(theta).segment(first + length, length) += U.col(j).tail(length).imag().template cast<S>();
    });
  }

  static void pack(PackedProduct<S>& product, const Complex& A) {
    Matrix<S> form(2 * A.rows(), 2 * A.cols());
    write_real_form(A, view(form));
    product.pack(form);
  }

  /// Y = DX or Y += DX, with Dᴴ for `sign` −1; Y may be X.
  template <bool add = false> void turn(CMat<S> X, Mat<S> Y, S sign) const {
    for (Index k = 0; k < X.cols(); ++k)
      for (Index j = 0; j < n_; ++j) {
        const S re = X(j, k), im = X(n_ + j, k), sine = sign * sines_[j];
        Y(j, k) = (add ? Y(j, k) : S(0)) + (cosines_[j] * re - sine * im);
        Y(n_ + j, k) = (add ? Y(n_ + j, k) : S(0)) + (sine * re + cosines_[j] * im);
      }
  }

  Complex given_matrix(Rng& rng) const {
    Complex Q(n_, n_);
    if (options_.init == "unitary") {
      for (T& entry : Q.reshaped()) entry = {rng.normal(), rng.normal()};
      orthonormalise(view(Q));
      return Q;
    }
    Initialiser source("file");
    source.file = options_.file;
    Matrix<double> rows(2 * n_, n_);
    source.fill(view(rows), rng);
    Q = from_re_over_im(rows);
    const double defect = isometry_defect<T>(Q);
    if (!(defect < 1e-3))
      throw Error("unitary_householder: the matrix Q in " + options_.file +
                      " is not unitary: ‖QᴴQ − I‖ = " + std::to_string(defect),
                  Exit::data);
    return Q;
  }

  Options options_;
  Index n_, m_;                                         // complex rows
  Complex U_;                                           // n × m
  Eigen::VectorXcd D_;                                  // n
  Vector<S> cosines_, sines_;                           // n: of θ
  PackedProduct<S> P_product_, R_product_, U_product_;  // real forms
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<UnitaryHouseholder>(
                          "unitary_householder", "unitary matrix as a product of m complex reflections and phases"))
