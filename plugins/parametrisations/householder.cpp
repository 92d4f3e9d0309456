// Orthogonal matrices as products of m Householder reflections (Mhammedi, Hellicar, Rahman & Bailey 2017).
//
//   W = H(U_0) H(U_1) … H(U_{r−1}) H₁        r = m and H₁ = I for m < n; r = n − 1 and H₁ = diag(1, …, 1, u₁) for m = n
//   compact WY (eq. 12, 13)                  T = striu(UᵀU) + ½diag(UᵀU),  P = T⁻¹Uᵀ,  R = T⁻ᵀUᵀ:  W = (I − UP)H₁,  Wᵀ
//   = H₁(I − UR) pullback (theorem 2), columns x, dy      h = P H₁x,  c = R dy:  Ū = U·K − Σ dy hᵀ − Σ H₁x cᵀ,  ū₁ = Σ
//   x_n (dy − Uc)_n
//
// K is symmetric with the lower triangle of Σ h cᵀ. `apply: sequential` (algorithm 1) reflects one vector after another
// and needs no T. P and R are computed in double precision: their errors are then those of one rounding even for
// ill-conditioned T.
#include <stiefel/plugin.hpp>

#include <cmath>

#include "reflections.hpp"
#include "sequential_reflections.hpp"

namespace {

using namespace stiefel;

/// Calls visit(first, end) for blocks of the r columns of U: U is zero above row `first` there, and rows first … end −
/// 1, or to n − 1 for the last block, are zero right of column end − 1.
template <class F> void visit_blocks(Index r, F visit) {
  constexpr Index width = 64;
  for (Index first = 0; first < r; first += width) visit(first, std::min(first + width, r));
}

/// T, r × r, and P = T⁻¹Uᵀ, r × n, of U, n × r.
struct CompactForm {
  Matrix<double> U, T, P;

  explicit CompactForm(Matrix<double> columns)
      : U(std::move(columns)), T(U.cols(), U.cols()), P(Matrix<double>::Zero(U.cols(), U.rows())) {
    const Index n = U.rows(), r = U.cols();
    visit_blocks(r, [&](Index first, Index end) {
      T.block(0, first, end, end - first).noalias() =
          U.bottomLeftCorner(n - first, end).transpose() * U.block(first, first, n - first, end - first);
    });
    T.diagonal() /= 2;
    visit_blocks(r, [&](Index first, Index end) {
      const Index rows = (end == r ? n : end) - first;
      auto part = P.block(0, first, end, rows);
      part = U.block(first, 0, rows, end).transpose();
      T.topLeftCorner(end, end).triangularView<Eigen::Upper>().solveInPlace(part);
    });
  }

  Matrix<double> R() const { return T.transpose().triangularView<Eigen::Lower>().solve(U.transpose()); }
};

/// The orthogonal n × n matrix that `init` draws or `file` holds.
Matrix<double> orthogonal_matrix(Index n, const std::string& init, const std::string& file, Rng& rng) {
  Initialiser source(init);
  source.file = file;
  Matrix<double> Q(n, n);
  source.fill(view(Q), rng);
  const double defect = (Q.transpose() * Q - Matrix<double>::Identity(n, n)).norm();
  if (!(defect < 1e-3))
    throw Error("householder: the matrix Q in " + file + " is not orthogonal: ‖QᵀQ − I‖ = " + std::to_string(defect),
                Exit::data);
  return Q;
}

template <class S> class Householder final : public Parametrisation<S> {
 public:
  struct Options {
    Index reflections = 16;
    bool normalise_columns = true;
    double std = 0.01;
    std::string u1 = "projected", init = "gaussian", file, apply = "wy";
    void describe(Schema& s) {
      s.field("reflections", reflections, "number m of reflections, 1 … n").at_least(1);
      s.field("normalise_columns", normalise_columns,
              "scale every column of U to length 1 initially and after each update; W is the same, the effective rate "
              "is not");
      s.field("std", std,
              "initial standard deviation of the entries of U without `normalise_columns`: small columns turn fast")
          .at_least(1e-6);
      s.field("u1", u1,
              "for m = n, the sign u₁: set to ±1 after each update, a trained number whose sign alone is used, or a "
              "number in [−1, 1]")
          .one_of({"projected", "shadow", "soft"});
      s.field("init", init,
              "random columns with Gaussian or uniform entries, or, for m = n, the reflections of a Haar-distributed "
              "matrix or of the one in "
              "`file`")
          .one_of({"gaussian", "uniform", "orthogonal", "file"});
      s.field("file", file, "orthogonal n × n matrix for `init: file`, a .npy of float32 or float64");
      s.field("apply", apply, "products by the compact WY form or by one reflection after another")
          .one_of({"wy", "sequential"});
      s.check(init != "file" || !file.empty(), "file", "names the .npy file that `init: file` reads");
    }
  };

  Householder(const Options& options, Shape shape)
      : Parametrisation<S>(shape.square("householder")),
        options_(options),
        n_(shape.rows),
        r_(std::min(options.reflections, n_ - 1)),
        signed_(options.reflections == n_),
        sequential_(options.apply == "sequential") {
    const std::string n = std::to_string(n_);
    if (n_ < 2) throw Error("householder needs at least 2 rows, but the map has " + n);
    if (options.reflections > n_)
      throw Error("householder: `reflections` is " + std::to_string(options.reflections) + ", but a map of " + n +
                  " rows has at most " + n + "; lower it");
    if (!random_columns(options) && !signed_)
      throw Error("householder: `init: " + options.init +
                  "` decomposes an orthogonal matrix into n reflections; set `reflections: " + n + "`");
  }

  std::vector<BlockSpec> blocks() const override {
    std::vector<BlockSpec> blocks{{"U", trapezoid_size(n_, r_)}};
    if (signed_) blocks.push_back({"u1", 1});
    return blocks;
  }

  void initialise(Blocks<S> theta, Rng& rng) const override {
    Reflections initial{Matrix<double>::Zero(n_, r_), 1};
    if (random_columns(options_)) {
      const auto entry = [&] {
        return options_.init == "uniform" ? rng.uniform(-std::sqrt(3.0), std::sqrt(3.0)) : rng.normal();
      };
      for_each_column(n_, r_, [&](Index j, Index, Index length) {
        for (Index i = n_ - length; i < n_; ++i) initial.U(i, j) = options_.std * entry();
      });
      if (options_.normalise_columns) initial.U.colwise().normalize();
      if (signed_) initial.u1 = rng.normal() < 0 ? -1 : 1;
    } else {
      initial = reflections_of(orthogonal_matrix(n_, options_.init, options_.file, rng));
    }
    add_trapezoid<S>(theta[0], initial.U.template cast<S>());
    if (signed_) theta[1][0] = S(initial.u1);
  }

  void refresh(CBlocks<S> theta) override {
    U_.resize(n_, r_);
    unpack_trapezoid(theta[0], view(U_));
    const Vector<double> squares = U_.template cast<double>().colwise().squaredNorm().transpose();
    for (Index j = 0; j < r_; ++j)
      if (squares[j] == 0)
        throw Error("householder: column " + std::to_string(j) +
                        " of U is zero and defines no reflection; lower the rate, or set `normalise_columns: true`",
                    Exit::diverged);
    twice_ = (2 / squares.array()).template cast<S>();
    if (signed_) u1_ = options_.u1 == "shadow" ? (theta[1][0] < 0 ? S(-1) : S(1)) : theta[1][0];
    if (!sequential_) form_compact();
  }

  Index scratch(Index columns) const override { return sequential_ ? 2 * n_ + r_ : 2 * r_ * columns; }

  void apply(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const override {
    Y = X;
    if (signed_) Y.row(n_ - 1) *= u1_;
    if (sequential_) {
      for (Index j = 0; j < Y.cols(); ++j) one_by_one().apply(Y.col(j));
      return;
    }
    const Mat<S> h = scratch.take(r_, X.cols());
    P_product_.multiply(X, h);
    U_product_.subtract(cview(h), Y);
  }

  void apply_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const override {
    dX = dY;
    if (sequential_) {
      for (Index j = 0; j < dX.cols(); ++j) one_by_one().apply_adjoint(dX.col(j));
    } else {
      const Mat<S> c = scratch.take(r_, dY.cols());
      R_product_.multiply(dY, c);
      U_product_.subtract(cview(c), dX);
    }
    if (signed_) dX.row(n_ - 1) *= u1_;
  }

  void add(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const override {
    if (sequential_) return Parametrisation<S>::add(X, Y, scratch);
    const Mat<S> h = scratch.take(r_, X.cols());
    P_product_.multiply(X, h);
    Y += X;
    if (signed_) Y.row(n_ - 1) += (u1_ - 1) * X.row(n_ - 1);
    U_product_.subtract(cview(h), Y);
  }

  Index accumulator() const override { return 2 * n_ * r_ + r_ * r_ + 1; }

  void accumulate(CMat<S> X, CMat<S> dY, std::span<S> sum, Scratch<S>& scratch) const override {
    Sums<S> sums = parts(sum);
    if (sequential_) return accumulate_sequentially(X, dY, sums, scratch);
    const Mat<S> h = scratch.take(r_, X.cols()), c = scratch.take(r_, X.cols());
    P_product_.multiply(X, h);
    R_product_.multiply(dY, c);
    add_lower(sums.hc, cview(h), cview(c));
    add_lower(sums.left, dY, cview(h));
    add_lower(sums.right, X, cview(c));
    if (!signed_) return;
    for (Index j = 0; j < X.cols(); ++j)
      sums.u1 += X(n_ - 1, j) * (dY(n_ - 1, j) - U_.row(n_ - 1).transpose().dot(c.col(j)));
  }

  void finish(CBlocks<S>, std::span<const S> sum, Blocks<S> dtheta) override {
    const Sums<const S> sums = parts(sum);
    Matrix<S> dU = sums.left;
    if (!sequential_) {
      dU = -sums.left - sums.right;
      dU.row(n_ - 1) += (1 - u1_) * sums.right.row(n_ - 1);  // H₁x in place of x
      for_each_block([&](Index first, Index end) {
        dU.block(first, 0, rows_in(first, end), end).noalias() +=
            U_.block(first, 0, rows_in(first, end), end) *
            sums.hc.topLeftCorner(end, end).template selfadjointView<Eigen::Lower>();
      });
    }
    add_trapezoid(dtheta[0], dU);
    if (signed_) dtheta[1][0] += sums.u1;
  }

  void after_step(Blocks<S> theta) override {
    if (options_.normalise_columns)
      for_each_column(n_, r_, [&](Index, Index first, Index length) {
        auto column = as_vector(theta[0]).segment(first, length);
        const double norm = column.template cast<double>().norm();
        if (norm > 0) column = (column.template cast<double>() / norm).template cast<S>();
      });
    if (!signed_) return;
    S& u1 = theta[1][0];
    if (options_.u1 == "projected") u1 = u1 < 0 ? S(-1) : S(1);
    if (options_.u1 == "soft") u1 = std::clamp(u1, S(-1), S(1));
  }

  bool materialises() const override { return true; }

  void materialise(CBlocks<S>, Mat<S> W) override {
    W.setIdentity();
    if (!sequential_) {
      if (signed_) W(n_ - 1, n_ - 1) = u1_;
      return U_product_.subtract(cview(P_), W);
    }
    std::vector<S> memory(std::size_t(scratch(n_)));
    Scratch<S> working(memory);
    apply(cview(Matrix<S>(W)), W, working);
  }

  void pullback(CBlocks<S> theta, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override {
    std::vector<S> sum(static_cast<std::size_t>(accumulator()));
    if (sequential_) {
      std::vector<S> memory(static_cast<std::size_t>(scratch(n_)));
      Scratch<S> working(memory);
      accumulate(cview(Matrix<S>(Matrix<S>::Identity(n_, n_))), dW, sum, working);
    } else {  // accumulate() for X = I, so that h = P
      Sums<S> sums = parts(std::span<S>(sum));
      Matrix<S> c(r_, n_);
      R_product_.multiply(dW, view(c));
      add_lower(sums.hc, cview(P_), cview(c));
      add_lower(sums.left, dW, cview(P_));
      sums.right = c.transpose();
      if (signed_) sums.u1 = dW(n_ - 1, n_ - 1) - U_.row(n_ - 1).transpose().dot(c.col(n_ - 1));
    }
    finish(theta, sum, dtheta);
  }

  Claim claim() const override {
    if (signed_ && options_.u1 == "soft") return {Claim::bounded, 0, 1};
    return {Claim::orthogonal};
  }

  Cost cost(Index columns) const override {
    const double n = double(n_), r = double(r_), count = double(columns), stored = double(trapezoid_size(n_, r_));
    if (sequential_) {  // table 2 of the paper
      const double sign = signed_ ? 1 : 0, states = (4 * n - r + 2) * r, adjoint = (4 * n - 2 * r + 3) * r,
                   gradient = 3 * n * r + states;
      const double finish = stored + sign;
      return {2 * stored,
              (states + sign) * count,
              (adjoint + sign) * count,
              (gradient + 3 * sign) * count,
              finish,
              (states + sign) * n,
              (adjoint + gradient + 3 * sign) * n + finish};
    }
    const double square = n * r * r - r * r * r * 2 / 3, finish = 2 * square;
    const double product = 4 * n * r, gradient = 8 * n * r + 2 * r * r;
    return {2 * square + n * r * r, product * count,     product * count, gradient * count, finish,
            product * n / 2,        product * n + finish};
  }

 private:
  static bool random_columns(const Options& options) { return options.init == "gaussian" || options.init == "uniform"; }
  /// The running sums Σ h cᵀ, r × r, Σ dy hᵀ and Σ x cᵀ, n × r, and Σ x_n (dy − Uc)_n; sequentially, `left` is the
  /// gradient of U itself.
  template <class T> struct Sums {
    Eigen::Map<std::conditional_t<std::is_const_v<T>, const Matrix<S>, Matrix<S>>> hc, left, right;
    T& u1;
  };
  template <class T> Sums<T> parts(std::span<T> sum) const {
    T* first = sum.data();
    return {{first, r_, r_}, {first + r_ * r_, n_, r_}, {first + r_ * r_ + n_ * r_, n_, r_}, sum[sum.size() - 1]};
  }

  /// sum += A·Bᵀ on and below the diagonal, and on some entries above.
  template <class M> void add_lower(M& sum, CMat<S> A, CMat<S> B) const {
    for_each_block([&](Index first, Index end) {
      const Index rows = sum.rows() - first;
      add_outer(cview(A.bottomRows(rows)), cview(B.middleRows(first, end - first)),
                view(sum.block(first, first, rows, end - first)));
    });
  }
  template <class F> void for_each_block(F visit) const { visit_blocks(r_, visit); }
  Index rows_in(Index first, Index end) const { return (end == r_ ? n_ : end) - first; }

  void form_compact() {
    CompactForm compact(U_.template cast<double>());
    if (signed_) compact.P.col(n_ - 1) *= u1_;
    P_ = compact.P.template cast<S>();
    P_product_.pack(cview(P_));
    R_product_.pack(cview(Matrix<S>(compact.R().template cast<S>())));
    U_product_.pack(cview(U_));
  }

  SequentialReflections<S> one_by_one() const { return {U_, twice_}; }

  void accumulate_sequentially(CMat<S> X, CMat<S> dY, Sums<S>& sums, Scratch<S>& scratch) const {
    const auto vector = [&](Index length) { return Eigen::Map<Vector<S>>(scratch.take(length, 1).data(), length); };
    auto state = vector(n_), g = vector(n_), h = vector(r_);
    for (Index j = 0; j < X.cols(); ++j) {
      state = X.col(j);
      if (signed_) state(n_ - 1) *= u1_;
      g = dY.col(j);
      one_by_one().accumulate(state, g, h, sums.left);
      if (signed_) sums.u1 += X(n_ - 1, j) * g(n_ - 1);
    }
  }

  Options options_;
  Index n_, r_;
  bool signed_, sequential_;
  Matrix<S> U_, P_;  // n × r, and P H₁, r × n
  Vector<S> twice_;  // r: 2/‖u‖² of each column
  S u1_ = 1;
  PackedProduct<S> P_product_, R_product_, U_product_;  // R: r × n
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::parametrisation<Householder>("householder",
                                                     "orthogonal matrix as a product of m Householder reflections"))
