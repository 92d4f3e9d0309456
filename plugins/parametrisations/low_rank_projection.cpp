// Orthogonal or unitary W itself as the parameter, moved by projected updates of low rank, projUNN (Kiani, Balestriero,
// LeCun & Lloyd 2022).
//
//   Δ = what the optimizer added to W     Δ_k = XYᴴ, its best approximation of rank k
//   I + WᴴΔ_k = I + ZYᴴ, Z = WᴴX, differs from I only on span B, B (n × 2k) orthonormal columns of [Z, Y]:
//   projection (projUNN-D)  W ← the polar factor of W + Δ_k = W(I + B(Q − I)Bᴴ),  Q the polar factor of I + BᴴZYᴴB
//   tangent (projUNN-T)     W ← W exp(½(ZYᴴ − YZᴴ)) = W(I + B(exp(ω) − I)Bᴴ),      ω = ½Bᴴ(ZYᴴ − YZᴴ)B
//
// O(kn²) a step in addition to the gradient. The parameter is a flat block and the projection is after_step(), which
// sees the optimizer's step as the difference from the W of the last refresh(): any optimizer's step is projected, and
// that of plain SGD is the paper's, a gradient of rank k. The paper samples columns at random; here two subspace
// iterations start from a fixed Gaussian matrix of k + 4 columns, unless `truncation` is exact. Rounding errors of W
// are removed by a polar decomposition every `project_every` steps.
#include <stiefel/linear_algebra.hpp>
#include <stiefel/plugin.hpp>

#include <variant>

#include "skew_exponential.hpp"
#include "skew_hermitian.hpp"

namespace {

using namespace stiefel;

template <class T> Matrix<T> gaussian_matrix(Index rows, Index cols, Rng& rng) {
  Matrix<T> values(rows, cols);
  for (T& entry : values.reshaped())
    if constexpr (is_complex<T>)
      entry = T{rng.normal(), rng.normal()};
    else
      entry = rng.normal();
  return values;
}

/// Whether WᴴW leaves a Gaussian vector where it is, to 1 part in 1000.
template <class T> bool in_group(const Matrix<T>& W) {
  Rng rng(1, "low_rank_projection");
  const Matrix<T> v = gaussian_matrix<T>(W.cols(), 1, rng), turned = product(W, v);
  return (product(adjoint(W), turned) - v).norm() < 1e-3 * v.norm();
}

/// X, Y with k columns: XYᴴ is A's truncation to its k largest singular values, or is close to it.
template <class T> struct LowRank {
  Matrix<T> X, Y;

  LowRank(const Matrix<T>& A, Index k, bool exact) {
    constexpr Index oversampling = 4, iterations = 2;
    const Index n = A.rows(), width = exact ? n : std::min(n, k + oversampling);
    Rng rng(0, "low_rank_projection");
    Matrix<T> range = product(A, gaussian_matrix<T>(n, width, rng));
    for (Index i = 0; i < iterations; ++i) {
      orthonormalise(view(range));
      Matrix<T> other = product(adjoint(A), range);
      orthonormalise(view(other));
      range = product(A, other);
    }
    orthonormalise(view(range));
    Matrix<T> inside = product(adjoint(range), A), U(width, width), Vh(width, n);
    std::vector<double> values(static_cast<std::size_t>(width));
    singular_value_decomposition(view(inside), view(U), values, view(Vh));
    X = product(range, Matrix<T>(U.leftCols(k) * Eigen::Map<const Vector<double>>(values.data(), k).asDiagonal()));
    Y = Vh.topRows(k).adjoint();
  }
};

template <class T> Matrix<T> moved(const Matrix<T>& W, const Matrix<T>& step, Index k, bool tangent, bool exact) {
  const Index n = W.rows();
  const LowRank<T> low(step, std::min(k, n), exact);
  const Matrix<T> Z = product(adjoint(W), low.X);
  Matrix<T> B(n, std::min(2 * Z.cols(), n));
  if (B.cols() == n) {
    B.setIdentity();
  } else {
    for (Index i = 0; i < Z.cols(); ++i) B.col(i) = Z.col(i).normalized();  // also where it is zero
    B.rightCols(Z.cols()) = low.Y;
    orthonormalise(view(B));
  }
  const Matrix<T> inside = product(product(adjoint(B), Z), product(adjoint(low.Y), B)),
                  I = Matrix<T>::Identity(B.cols(), B.cols());
  Matrix<T> turn;
  if (tangent) {
    SkewExponential<T> exponential;
    exponential.compute((inside - inside.adjoint()) / 2);
    turn = exponential.value();
  } else {
    turn = I + inside;
    polar_factor(view(turn));
  }
  turn -= I;
  return W + product(product(W, B), product(turn, adjoint(B)));
}

template <class S> class LowRankProjection final : public Dense<S> {
 public:
  struct Options {
    std::string field = "real", init = "orthogonal", update = "projection", truncation = "approximate";
    Index rank = 1, project_every = 100;
    void describe(Schema& s) {
      s.field("field", field, "type of the numbers in W").one_of({"real", "complex"});
      s.field("init", init,
              "W at the start: Haar-distributed orthogonal or unitary, identity, or exp of blocks [0, s; −s, 0] with s "
              "~ U(−π, π) (henaff)")
          .one_of({"orthogonal", "identity", "henaff"});
      s.field("update", update,
              "nearest orthogonal matrix (projUNN-D), or a geodesic along the tangent part of the step (projUNN-T)")
          .one_of({"projection", "tangent"});
      s.field("rank", rank, "rank k of the approximation of the optimizer's step").at_least(1);
      s.field("truncation", truncation,
              "how the step is approximated: by subspace iterations, which differ from its truncated singular value "
              "decomposition if n > k + 4, or by that decomposition, in O(n³) a step")
          .one_of({"approximate", "exact"});
      s.field("project_every", project_every, "steps between projections of all of W, which limit rounding errors")
          .at_least(1)
          .units("steps");
    }
  };
  static bool complex_pairs(const Options& options) { return options.field == "complex"; }

  LowRankProjection(const Options& options, Shape shape)
      : Dense<S>(shape.square("low_rank_projection")),
        options_(options),
        complex_(shape.complex),
        n_(shape.complex ? shape.rows / 2 : shape.rows) {
    if (complex_) W_.template emplace<Complex>();
  }

  std::vector<BlockSpec> blocks() const override {
    const Index rows = this->rows();
    return {{.name = "W", .size = rows * n_, .rows = rows, .cols = n_, .constant_norm = true, .takes_noise = false}};
  }

  void initialise(Blocks<S> theta, Rng& rng) const override {
    std::visit(
        [&]<class T>(const Matrix<T>&) {
          Matrix<T> W = Matrix<T>::Identity(n_, n_);
          if (options_.init == "orthogonal") {
            W = gaussian_matrix<T>(n_, n_, rng);
            orthonormalise(view(W));
          } else if (options_.init == "henaff") {
            std::vector<double> numbers(static_cast<std::size_t>(skew_size<T>(n_)));
            initialise_skew<T>(std::span(numbers), n_, Order::columns, "henaff", 0, rng);
            SkewExponential<T> exponential;
            exponential.compute(skew_matrix<T>(std::span<const double>(numbers), n_));
            W = exponential.value();
          }
          store(W, theta);
        },
        W_);
  }

  void materialise(CBlocks<S> theta, Mat<S> W) override {
    visit([&]<class T>(Matrix<T>& current) {
      current = load<T>(theta);
      write_real_form(current, W);
    });
  }
  void pullback(CBlocks<S>, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override {
    visit([&]<class T>(Matrix<T>&) { as_matrix(dtheta[0], this->rows(), n_) += numbers_of(gradient_of_form<T>(dW)); });
  }

  void after_step(Blocks<S> theta) override {
    ++steps_;
    visit([&]<class T>(Matrix<T>& current) {
      const Matrix<T> wanted = load<T>(theta);
      const bool known = current.size() != 0;
      if (known && wanted == current && in_group(current)) return;
      const bool begins = !known || wanted == current;
      current = begins ? wanted
                       : moved<T>(current, wanted - current, options_.rank, options_.update == "tangent",
                                  options_.truncation == "exact");
      if (begins || steps_ % options_.project_every == 0) polar_factor(view(current));
      store(current, theta);
      current = load<T>(theta);
    });
  }

  Claim claim() const override { return {complex_ ? Claim::unitary : Claim::orthogonal}; }
  void serialise(Archive& archive) override { archive.value("steps", steps_); }

  void record(Recorder& recorder) const override {
    std::visit([&]<class T>(const Matrix<T>& W) { recorder.scalar("defect", isometry_defect<T>(W)); }, W_);
  }

 private:
  template <class F> void visit(F f) { std::visit(f, W_); }

  template <class T> Matrix<T> load(CBlocks<S> theta) const {
    if constexpr (is_complex<T>)
      return from_re_over_im(as_matrix(theta[0], 2 * n_, n_));
    else
      return as_matrix(theta[0], n_, n_).template cast<double>();
  }
  template <class T> void store(const Matrix<T>& W, Blocks<S> theta) const {
    as_matrix(theta[0], this->rows(), n_) = numbers_of(W);
  }
  template <class T> Matrix<S> numbers_of(const Matrix<T>& W) const {
    if constexpr (is_complex<T>)
      return re_over_im<S>(W);
    else
      return W.template cast<S>();
  }

  Options options_;
  bool complex_;
  Index n_;  // complex numbers counted once
  std::variant<Matrix<double>, Complex> W_;
  std::int64_t steps_ = 0;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<LowRankProjection>(
                          "low_rank_projection",
                          "orthogonal or unitary matrix moved by projected updates of low rank (projUNN)"))
