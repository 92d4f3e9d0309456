// Orthogonal matrices as products of m Householder reflections (Mhammedi, Hellicar, Rahman & Bailey 2017).
//
//   W = H(U_0) H(U_1) … H(U_{r−1}) H₁        r = m and H₁ = I for m < n; r = n − 1 and H₁ = diag(1, …, 1, u₁) for m = n
//   compact WY (eq. 12, 13)                  T = striu(UᵀU) + ½diag(UᵀU),  P = T⁻¹Uᵀ,  R = T⁻ᵀUᵀ:
//                                            W = (I − UP)H₁,  Wᵀ = H₁(I − UR)
//   pullback (theorem 2), columns x, dy      h = P H₁x,  c = R dy:
//                                            Ū = U·K − Σ dy hᵀ − Σ H₁x cᵀ,  ū₁ = Σ x_n (dy − Uc)_n
//
// K is symmetric with the lower triangle of Σ h cᵀ. `apply: sequential` (algorithm 1) reflects one vector after another
// and needs no T. P and R are computed in double precision: their errors are then those of one rounding even for
// ill-conditioned T. From about 3n/8 reflections on, forming W and multiplying by it is less work than P and U; then h
// and c are found by solves with T.
#include <stiefel/linear_algebra.hpp>
#include <stiefel/parallel.hpp>
#include <stiefel/plugin.hpp>

#include <cmath>

#include "compact_wy.hpp"
#include "reflections.hpp"
#include "sequential_reflections.hpp"

namespace {

using namespace stiefel;

/// The orthogonal n × n matrix that `init` draws or `file` holds.
Matrix<double> orthogonal_matrix(Index n, const std::string& init, const std::string& file, Rng& rng) {
  Initialiser source(init);
  source.file = file;
  Matrix<double> Q(n, n);
  source.fill(view(Q), rng);
  const double defect = isometry_defect<double>(Q);
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
              "initial standard deviation of the entries of U without `normalise_columns`: the shorter a column, the "
              "faster its direction changes")
          .at_least(1e-6)
          .only_if(!normalise_columns, "`normalise_columns: false`");
      s.field("u1", u1,
              "for m = n, the sign u₁; projected: set to ±1 after each update; shadow: a trained number of which only "
              "the sign is used (its gradient is that of the sign, not a derivative, so `stiefel check` rejects it); "
              "soft: a number in [−1, 1]")
          .one_of({"projected", "shadow", "soft"});
      s.field("init", init,
              "random columns with Gaussian or uniform entries, or, for m = n, the reflections of a Haar-distributed "
              "matrix or of the one in "
              "`file`")
          .one_of({"gaussian", "uniform", "orthogonal", "file"});
      s.field("file", file, "orthogonal n × n matrix for `init: file`, a .npy of float32 or float64")
          .only_if(init == "file", "`init: file`");
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
        sequential_(options.apply == "sequential"),
        explicit_(!sequential_ && 8 * r_ > 3 * n_) {
    const std::string n = std::to_string(n_);
    if (n_ < 2) throw Error("householder needs at least 2 rows, but the map has " + n + "; raise `hidden`");
    if (options.reflections > n_)
      throw Error("householder: `reflections` is " + std::to_string(options.reflections) + ", but a map of " + n +
                  " rows has at most " + n + "; lower it");
    if (!random_columns(options) && !signed_)
      throw Error("householder: `init: " + options.init +
                  "` decomposes an orthogonal matrix into n reflections; set `reflections: " + n + "`");
  }

  std::vector<BlockSpec> blocks() const override {
    std::vector<BlockSpec> blocks{
        {.name = "U", .size = trapezoid_size(n_, r_), .constant_norm = options_.normalise_columns}};
    const bool sign = options_.u1 == "projected";
    if (signed_)
      blocks.push_back({.name = "u1", .size = 1, .constant_norm = sign, .takes_noise = options_.u1 == "shadow"});
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
    if (signed_) u1_ = options_.u1 == "shadow" ? (theta[1][0] <= 0 ? S(-1) : S(1)) : theta[1][0];
    if (!sequential_) return form_compact();
    const Vector<double> squares = U_.template cast<double>().colwise().squaredNorm().transpose();
    for (Index j = 0; j < r_; ++j) demand_reflection("householder", "U", j, squares[j]);
    twice_ = (2 / squares.array()).template cast<S>();
  }

  Index scratch(Index columns) const override { return sequential_ ? 2 * n_ + r_ : 2 * r_ * columns; }

  void apply(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const override {
    if (explicit_) return W_product_.multiply(X, Y);
    Y = X;
    if (signed_) Y.row(n_ - 1) *= u1_;
    if (sequential_) {
      for (Index c = 0; c < Y.cols(); ++c) one_by_one().apply(Y.col(c));
      return;
    }
    const Mat<S> h = scratch.take(r_, X.cols());
    P_product_.multiply(X, h);
    U_product_.subtract(h, Y);
  }

  void apply_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const override {
    if (explicit_) return W_adjoint_.multiply(dY, dX);
    dX = dY;
    if (sequential_) {
      for (Index c = 0; c < dX.cols(); ++c) one_by_one().apply_adjoint(dX.col(c));
    } else {
      const Mat<S> c = scratch.take(r_, dY.cols());
      R_product_.multiply(dY, c);
      U_product_.subtract(c, dX);
    }
    if (signed_) dX.row(n_ - 1) *= u1_;
  }

  void add(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const override {
    if (explicit_) return W_product_.add(X, Y);
    if (sequential_) return Parametrisation<S>::add(X, Y, scratch);
    const Mat<S> h = scratch.take(r_, X.cols());
    P_product_.multiply(X, h);
    Y += X;
    if (signed_) Y.row(n_ - 1) += (u1_ - 1) * X.row(n_ - 1);
    U_product_.subtract(h, Y);
  }

  Index accumulator() const override { return 2 * n_ * r_ + r_ * r_ + 1; }

  void accumulate(CMat<S> X, CMat<S> dY, std::span<S> sum, Scratch<S>& scratch) const override {
    Sums<S> sums = parts(sum);
    if (sequential_) return accumulate_sequentially(X, dY, sums, scratch);
    Mat<S> h = scratch.take(r_, X.cols()), c = scratch.take(r_, X.cols());
    if (explicit_) {
      for_each_block([&](Index first, Index end) {
        const auto U = U_.block(first, first, n_ - first, end - first);
        multiply<S>(transposed(U), X.bottomRows(n_ - first), h.middleRows(first, end - first));
        multiply<S>(transposed(U), dY.bottomRows(n_ - first), c.middleRows(first, end - first));
      });
      if (signed_) h.noalias() += last_row_ * ((u1_ - 1) * X.row(n_ - 1));
      const auto solve = [&](Index i) {
        if (i == 0) solve_triangular(Triangle::upper, T_, h);
        if (i == 1) solve_triangular(Triangle::upper, transposed(T_), c);
      };
      in_parallel(2, solve);
    } else {
      P_product_.multiply(X, h);
      R_product_.multiply(dY, c);
    }
    for_each_block([&](Index first, Index end) {
      const auto add_to = [&](auto& sum, const auto& A, const auto& B, Index rows) {
        add_outer(A.bottomRows(rows), B.middleRows(first, end - first),
                  view(sum.block(A.rows() - rows, first, rows, end - first)));
      };
      add_to(sums.hc, h, c, r_ - first);
      add_to(sums.left, dY, h, n_ - first);
      add_to(sums.right, X, c, n_ - first);
    });
    if (!signed_) return;
    for (Index k = 0; k < X.cols(); ++k) sums.u1 += X(n_ - 1, k) * (dY(n_ - 1, k) - last_row_.dot(c.col(k)));
  }

  void finish(CBlocks<S>, std::span<const S> sum, Blocks<S> dtheta) override {
    const Sums<const S> sums = parts(sum);
    Matrix<S> dU(n_, r_);
    if (sequential_) {
      dU = sums.left;
    } else {
      for_each_block([&](Index first, Index end) {
        dU.middleCols(first, end - first) =
            -sums.left.middleCols(first, end - first) - sums.right.middleCols(first, end - first);
      });
      dU.row(n_ - 1) += (1 - u1_) * sums.right.row(n_ - 1);  // H₁x in place of x
      visit_blocks_from_last(r_, [&](Index first, Index end) {
        dU.block(first, 0, rows_in(first, end), end).noalias() +=
            U_.block(first, 0, rows_in(first, end), end) *
            sums.hc.topLeftCorner(end, end).template selfadjointView<Eigen::Lower>();
      });
    }
    add_trapezoid(dtheta[0], dU);
    if (signed_) dtheta[1][0] += sums.u1;
  }

  void after_step(Blocks<S> theta) override {
    if (options_.normalise_columns) normalise_columns(theta[0], n_, r_);
    if (!signed_) return;
    S& u1 = theta[1][0];
    if (options_.u1 == "projected") u1 = u1 <= 0 ? S(-1) : S(1);
    if (options_.u1 == "soft") u1 = std::clamp(u1, S(-1), S(1));
  }

  bool materialises() const override { return true; }

  void materialise(CBlocks<S> theta, Mat<S> W) override {
    if (!explicit_) return Parametrisation<S>::materialise(theta, W);
    W = W_;
  }

  Claim claim() const override {
    if (signed_ && options_.u1 == "soft") return {Claim::bounded, 0, 1};
    return {Claim::orthogonal};
  }

  Cost cost(Index columns) const override {
    const double n = double(n_), r = double(r_), c = double(columns), stored = double(trapezoid_size(n_, r_));
    if (sequential_) {  // table 2 of the paper
      const double sign = signed_ ? 1 : 0, states = (4 * n - r + 2) * r, adjoint = (4 * n - 2 * r + 3) * r,
                   gradient = 3 * n * r + states;
      const double finish = stored + sign;
      return {2 * stored,
              (states + sign) * c,
              (adjoint + sign) * c,
              (gradient + 3 * sign) * c,
              finish,
              (states + sign) * n,
              (adjoint + gradient + 3 * sign) * n + finish};
    }
    const double square = n * r * r - r * r * r * 2 / 3, finish = 2 * square;
    if (explicit_) {
      const double gradient = 4 * stored + 4 * stored + 3 * r * r;
      const double form = 2 * square + 2 * n * n * r - n * r * r;
      return {form, 2 * n * n * c, 2 * n * n * c, gradient * c, finish, n * n, gradient * n + finish, 1};
    }
    const double product = 4 * n * r, gradient = 8 * n * r + 2 * r * r;
    return {2 * square + n * r * r, product * c, product * c, gradient * c, finish, product * n, gradient * n + finish};
  }

 private:
  static bool random_columns(const Options& options) { return options.init == "gaussian" || options.init == "uniform"; }
  /// The running sums Σ h cᵀ, Σ dy hᵀ, Σ x cᵀ and Σ x_n (dy − Uc)_n; sequentially, `left` is the gradient of U itself.
  template <class T> struct Sums {
    Eigen::Map<std::conditional_t<std::is_const_v<T>, const Matrix<S>, Matrix<S>>> hc, left, right;
    T& u1;
  };
  template <class T> Sums<T> parts(std::span<T> sum) const {
    T* first = sum.data();
    return {{first, r_, r_}, {first + r_ * r_, n_, r_}, {first + r_ * r_ + n_ * r_, n_, r_}, sum[sum.size() - 1]};
  }

  template <class F> void for_each_block(F visit) const { visit_blocks(r_, visit); }
  Index rows_in(Index first, Index end) const { return (end == r_ ? n_ : end) - first; }

  void form_compact() {
    CompactForm compact(U_, "householder", "U");
    if (signed_) compact.P.col(n_ - 1) *= u1_;
    last_row_ = U_.row(n_ - 1).transpose();
    if (explicit_) {
      T_ = compact.T.template cast<S>();
      W_.resize(n_, n_);
      visit_blocks_from_last(r_, [&](Index first, Index end) {
        const Matrix<S> P = compact.P.block(0, first, end, rows_in(first, end)).template cast<S>();
        auto W = W_.middleCols(first, rows_in(first, end));
        W.setZero();
        W.middleRows(first, W.cols()).diagonal().setOnes();
        if (signed_ && end == r_) W(n_ - 1, W.cols() - 1) = u1_;
        add_product<S>(U_.leftCols(end), P, W, -1);
      });
      in_parallel(2, [&](Index i) {
        if (i == 0) W_product_.pack(W_);
        if (i == 1) W_adjoint_.pack_transposed(W_);
      });
      return;
    }
    const Matrix<S> R = compact.R().template cast<S>();
    P_product_.pack(Matrix<S>(compact.P.template cast<S>()));
    R_product_.pack(R);
    U_product_.pack(U_);
  }

  SequentialReflections<S> one_by_one() const { return {U_, twice_}; }

  void accumulate_sequentially(CMat<S> X, CMat<S> dY, Sums<S>& sums, Scratch<S>& scratch) const {
    const auto vector = [&](Index length) { return Eigen::Map<Vector<S>>(scratch.take(length, 1).data(), length); };
    auto state = vector(n_), g = vector(n_), h = vector(r_);
    for (Index k = 0; k < X.cols(); ++k) {
      state = X.col(k);
      if (signed_) state(n_ - 1) *= u1_;
      g = dY.col(k);
      one_by_one().accumulate(state, g, h, sums.left);
      if (signed_) sums.u1 += X(n_ - 1, k) * g(n_ - 1);
    }
  }

  Options options_;
  Index n_, r_;
  bool signed_, sequential_, explicit_;
  Matrix<S> U_;                 // n × r
  Vector<S> twice_, last_row_;  // r: 2/‖u‖², and the last row of U
  S u1_ = 1;
  PackedProduct<S> P_product_, R_product_, U_product_;  // of P H₁, R and U
  Matrix<S> T_, W_;                                     // explicit
  PackedProduct<S> W_product_, W_adjoint_;
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::parametrisation<Householder>("householder",
                                                     "orthogonal matrix as a product of m Householder reflections"))
