// The exponential of a skew-symmetric or skew-Hermitian matrix: W = exp(A) ∈ SO(n) or U(n) (Hyland & Rätsch 2017), with
// a base W = B exp(A).
//
//   base: static   W = exp(A), expRNN (Lezcano-Casado & Martínez-Rubio 2019)
//   base: moving   W = B exp(A); every K steps B ← B exp(A), A ← 0, dtriv (Lezcano-Casado 2019). B is projected to the
//                  group by its singular vectors, B = UΣVᴴ ← UVᴴ, at every M-th of these changes. Neither changes W;
//                  the state of the optimizer is kept, as in the released code.
//   pullback       Ā = L_exp(Aᴴ, BᴴW̄), of which θ sees the derivatives along the basis elements of the Lie algebra
//
// The formulas of exp and of Ā, and why the eigenvalue form divides by no eigenvalue gap, stand in
// skew_exponential.hpp; all of it is double precision. Coordinates `hyland_ratsch` are those of `skew` in the order of
// that paper's basis, e = n·i + j.
#include "skew_exponential.hpp"

#include <stiefel/linear_algebra.hpp>
#include <stiefel/plugin.hpp>
#include <variant>

#include "skew_hermitian.hpp"

namespace {

using namespace stiefel;

/// A, B and what exp(A) needs, for the field of T.
template <class T> struct Point {
  Matrix<T> A, base;  // base: 0 × 0 when it is static
  SkewExponential<T> exponential;

  void compute(bool by_eigenvalues) {
    if (by_eigenvalues) exponential.compute(A);
  }
  Matrix<T> value(bool by_eigenvalues) const {
    Matrix<T> W = by_eigenvalues ? exponential.value() : pade_exponential(A);
    if (base.size()) W = product(base, W);
    return W;
  }
  Matrix<T> adjoint(bool by_eigenvalues, Matrix<T> dW) const {
    if (base.size()) dW = product(stiefel::adjoint(base), dW);
    return by_eigenvalues ? exponential.adjoint(dW) : block_adjoint(A, dW);
  }
};

template <class S> class LieExponential final : public Dense<S> {
 public:
  struct Options {
    std::string field = "real", coordinates = "skew", init = "henaff", pullback = "eigen", base = "static";
    double scale = 0.1;
    Index rebase_every = 100, project_every = 100;
    void describe(Schema& s) {
      s.field("field", field, "type of the numbers in W").one_of({"real", "complex"});
      s.field("coordinates", coordinates,
              "order of the numbers of A: column after column, or that of Hyland and Rätsch's basis")
          .one_of({"skew", "hyland_ratsch"});
      s.field("init", init,
              "A at the start: real blocks [0, s; −s, 0] with s ~ U(−π, π) (henaff) or s = tan(t/2), t ~ U(0, π/2) "
              "(cayley); all numbers "
              "U(±scale) (uniform); zero")
          .one_of({"henaff", "cayley", "uniform", "zero"});
      s.field("scale", scale, "bound of the initial values `uniform`")
          .at_least(0)
          .only_if(init == "uniform", "`init: uniform`");
      s.field("pullback", pullback,
              "how exp(A) and its derivative are computed: from the eigenvalues of A (eigen), or by Padé approximants, "
              "the derivative from a 2n × 2n block matrix (block)")
          .one_of({"eigen", "block"});
      s.field("base", base,
              "W = exp(A) (expRNN), or W = B exp(A) with a base B that absorbs A every `rebase_every` steps (dtriv)")
          .one_of({"static", "moving"});
      s.field("rebase_every", rebase_every, "K: steps between updates B ← B exp(A), A ← 0, for `base: moving`")
          .at_least(1)
          .units("steps")
          .only_if(base == "moving", "`base: moving`");
      s.field("project_every", project_every,
              "M: changes of base between projections of B to the group, for `base: moving`")
          .at_least(1)
          .only_if(base == "moving", "`base: moving`");
    }
  };
  static bool complex_pairs(const Options& options) { return options.field == "complex"; }

  LieExponential(const Options& options, Shape shape)
      : Dense<S>(shape.square("lie_exponential")),
        options_(options),
        n_(shape.complex ? shape.rows / 2 : shape.rows),
        order_(options.coordinates == "skew" ? Order::columns : Order::rows),
        complex_(shape.complex),
        eigen_(options.pullback == "eigen") {
    if (shape.complex) point_.template emplace<Point<std::complex<double>>>();
  }

  std::vector<BlockSpec> blocks() const override {
    if (complex_) return {{"A", n_ * n_, n_, n_}};
    return {{"A", n_ * (n_ - 1) / 2}};
  }

  void initialise(Blocks<S> theta, Rng& rng) const override {
    std::visit(
        [&]<class T>(const Point<T>&) { initialise_skew<T>(theta[0], n_, order_, options_.init, options_.scale, rng); },
        point_);
  }

  void materialise(CBlocks<S> theta, Mat<S> W) override {
    start_base();
    visit([&]<class T>(Point<T>& point) {
      point.A = skew_matrix<T>(theta[0], n_, order_);
      point.compute(eigen_);
      write_real_form(point.value(eigen_), W);
    });
  }

  void pullback(CBlocks<S>, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override {
    visit([&]<class T>(Point<T>& point) {
      add_skew_gradient(dtheta[0], point.adjoint(eigen_, gradient_of_form<T>(dW)), order_);
    });
  }

  void after_step(Blocks<S> theta) override {
    if (options_.base == "static" || ++steps_ % options_.rebase_every != 0) return;
    visit([&]<class T>(Point<T>& point) {
      point.A = skew_matrix<T>(std::span<const S>(theta[0]), n_, order_);
      point.compute(eigen_);
      point.base = point.value(eigen_);
      if (++rebases_ % options_.project_every == 0) polar_factor(view(point.base));
    });
    as_vector(theta[0]).setZero();
  }

  Claim claim() const override { return {complex_ ? Claim::unitary : Claim::orthogonal}; }

  Cost cost(Index columns) const override {
    Cost cost = Dense<S>::cost(columns);
    const double cube = (complex_ ? 4 : 1) * std::pow(double(n_), 3), base = options_.base == "moving" ? 2 : 0;
    cost.refresh = ((eigen_ ? (complex_ ? 12 : 9) : 18) + base) * cube;
    cost.pullback = ((eigen_ ? 8 : 8 * 18) + base) * cube;
    return cost;
  }

  void record(Recorder& recorder) const override {
    std::visit([&]<class T>(const Point<T>& point) { recorder.scalar("a_norm", norm_of(point)); }, point_);
  }

  void serialise(Archive& archive) override {
    if (options_.base == "static") return;
    start_base();
    archive.value("steps", steps_);
    archive.value("rebases", rebases_);
    visit([&]<class T>(Point<T>& point) {
      // A complex number is two doubles, real part first.
      archive.array("base", std::span(reinterpret_cast<double*>(point.base.data()),
                                      std::size_t(point.base.size()) * sizeof(T) / sizeof(double)));
    });
  }

 private:
  template <class F> void visit(F f) { std::visit(f, point_); }

  void start_base() {
    visit([this]<class T>(Point<T>& point) {
      if (options_.base == "moving" && point.base.size() == 0) point.base = Matrix<T>::Identity(n_, n_);
    });
  }

  /// ‖A‖₂, the largest angle of exp(A): beyond π the exponential is no longer one-to-one.
  template <class T> double norm_of(const Point<T>& point) const {
    if (eigen_) return point.exponential.largest_angle();
    Complex square = -product(point.A, point.A).template cast<std::complex<double>>();
    std::vector<double> values(static_cast<std::size_t>(n_));
    hermitian_eigenvalues(view(square), values);
    return std::sqrt(std::max(values.back(), 0.0));
  }

  Options options_;
  Index n_;  // complex numbers counted once
  Order order_;
  bool complex_, eigen_;
  std::variant<Point<double>, Point<std::complex<double>>> point_;
  std::int64_t steps_ = 0, rebases_ = 0;
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::parametrisation<LieExponential>(
                   "lie_exponential", "orthogonal or unitary matrix exp(A) of a skew-symmetric or skew-Hermitian A"))
