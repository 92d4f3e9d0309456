// Factorised map with a bounded spectrum (Vorontsov, Trabelsi, Kadoury & Pal 2017): W = U diag(s) Vᵀ, U and V
// orthogonal.
//
//   spectrum sigmoidal   s_i = 2m(σ(p_i) − ½) + 1 = 1 + m tanh(p_i/2)  (eq. 10): within the margin m of 1
//   spectrum free        s_i are parameters: no margin
//   pullback             s̄ = diag(UᵀW̄V), p̄_i = m/2 (1 − tanh²(p_i/2)) s̄_i, Ū = W̄V diag(s), V̄ = W̄ᵀU diag(s)
//
// U and V are blocks on the orthogonal manifold, moved by geodesic_cayley (equation 9, of which the sign + is a
// misprint). The rate of p is multiplied by 1/(2m), so that an optimizer with steps of constant size moves s as fast
// for every margin; for m = 0, s = 1 and p rests. `prior` adds λ Σ (s_i − 1)² to the loss: a Gaussian prior of variance
// 1/(2λ) on the singular values, free or sigmoidal. `soft_orthogonality` adds λ‖WᵀW − I‖_F², which is λ Σ (s_i² − 1)².
// The start is the singular value decomposition of a random W₀; its singular values are taken over by a free spectrum
// alone.
//
// What the released code does otherwise: W = U diag(max(s, 0)) Vᵀ, which matters for m > 1 (`relu: true`), and bases
// that never leave their initial value, since their update starts from a constant (freeze the blocks U and V: an
// optimizer entry with `plugin: frozen`).
#include <stiefel/plugin.hpp>

#include <algorithm>
#include <cmath>
#include <stiefel/linear_algebra.hpp>
#include <stiefel/parallel.hpp>

namespace {

using namespace stiefel;

template <class S> class SvdMargin final : public Dense<S> {
 public:
  struct Options {
    double margin = 0.1, prior = 0, soft_orthogonality = 0;
    std::string spectrum = "sigmoidal", init = "orthogonal";
    bool relu = false;
    void describe(Schema& s) {
      s.field("spectrum", spectrum,
              "singular values within `margin` of 1 (sigmoidal), or parameters without a bound (free)")
          .one_of({"sigmoidal", "free"});
      s.field("margin", margin,
              "m, for `spectrum: sigmoidal`, where the learning rate of p is multiplied by 1/(2m); 0: all singular "
              "values are 1")
          .at_least(0)
          .only_if(spectrum == "sigmoidal", "`spectrum: sigmoidal`");
      s.field("prior", prior, "λ of the penalty λ Σ (s_i − 1)² that is added to the loss").at_least(0);
      s.field("soft_orthogonality", soft_orthogonality,
              "λ of the penalty λ‖WᵀW − I‖_F² = λ Σ (s_i² − 1)² that is added to the loss")
          .at_least(0);
      s.field("init", init,
              "W₀ whose singular vectors are the initial U and V; a free spectrum also starts with its singular values")
          .one_of({"orthogonal", "glorot_normal", "identity"});
      s.field("relu", relu, "use max(s, 0) for s, as the released code does");
    }
  };

  SvdMargin(const Options& options, Shape shape)
      : Dense<S>(shape.square("svd_margin")), options_(options), free_(options.spectrum == "free"), n_(shape.rows) {}

  std::vector<BlockSpec> blocks() const override {
    const double scale = options_.margin > 0 && !free_ ? 1 / (2 * options_.margin) : 1;
    return {{"U", n_ * n_, n_, n_, Manifold::orthogonal},
            {"V", n_ * n_, n_, n_, Manifold::orthogonal},
            {free_ ? "s" : "p", n_, 0, 0, Manifold::flat, scale}};
  }

  void initialise(Blocks<S> theta, Rng& rng) const override {
    Matrix<double> W(n_, n_), U = Matrix<double>::Identity(n_, n_), Vt = U;
    Vector<double> s = Vector<double>::Ones(n_);
    if (options_.init != "identity") {
      Initialiser(options_.init).fill(view(W), rng);
      singular_value_decomposition(view(W), view(U), {s.data(), std::size_t(n_)}, view(Vt));
    }
    square(theta[0]) = U.cast<S>();
    square(theta[1]) = Vt.transpose().cast<S>();
    if (free_) as_vector(theta[2]) = s.cast<S>();
  }

  void materialise(CBlocks<S> theta, Mat<S> W) override {
    const auto parameter = as_vector(theta[2]).array();
    if (free_) {
      s_ = parameter;
      slope_.setOnes(n_);
    } else {
      const auto t = (parameter / 2).tanh().eval();
      s_ = 1 + S(options_.margin) * t;
      slope_ = S(options_.margin / 2) * (1 - t.square());
    }
    if (options_.relu) {
      slope_ = (s_.array() > 0).select(slope_, S(0));
      s_ = s_.cwiseMax(S(0));
    }
    for (Matrix<S>* M : {&U_, &V_, &scaled_}) M->resize(n_, n_);
    for_each_panel(n_, [&](Index first, Index width) {
      const auto panel = [&](auto&& M) { return M.middleCols(first, width); };
      panel(U_) = panel(square(theta[0]));
      panel(V_) = panel(square(theta[1]));
      panel(scaled_) = panel(U_) * s_.segment(first, width).asDiagonal();
    });
    for_each_panel(n_, [&](Index first, Index width) {
      multiply<S>(scaled_, transposed(V_.middleRows(first, width)), W.middleCols(first, width));
    });
  }

  void pullback(CBlocks<S> theta, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override {
    for_each_panel(n_, [&](Index first, Index width) {
      const auto panel = [&](const auto& M) { return M.middleCols(first, width); };
      const Matrix<S> P = product(dW, panel(square(theta[1])));
      as_vector(dtheta[2]).segment(first, width) +=
          slope_.segment(first, width)
              .cwiseProduct(panel(square(theta[0])).cwiseProduct(P).colwise().sum().transpose());
      square(dtheta[0]).middleCols(first, width) += P * s_.segment(first, width).asDiagonal();
      add_product<S>(transposed(dW), panel(scaled_), square(dtheta[1]).middleCols(first, width));
    });
  }

  double penalty(CBlocks<S>, Blocks<S> dtheta) override {
    const double prior = options_.prior, soft = options_.soft_orthogonality;
    if (prior == 0 && soft == 0) return 0;
    const auto s = s_.template cast<double>().array();
    const Eigen::ArrayXd excess = s - 1, defect = s.square() - 1;
    as_vector(dtheta[2]).array() +=
        ((2 * prior * excess + 4 * soft * s * defect) * slope_.template cast<double>().array()).template cast<S>();
    return prior * excess.square().sum() + soft * defect.square().sum();
  }

  Claim claim() const override {
    if (free_) return {Claim::none};
    if (options_.margin == 0) return {Claim::orthogonal};
    return {Claim::bounded, std::max(0.0, 1 - options_.margin), 1 + options_.margin};
  }

  Cost cost(Index columns) const override {
    Cost cost = Dense<S>::cost(columns);
    const double cube = std::pow(double(n_), 3);
    cost.refresh = 2 * cube;
    cost.pullback = 4 * cube;
    return cost;
  }

  void record(Recorder& recorder) const override {
    const auto s = s_.template cast<double>().array();
    recorder.scalar("s_mean", s.mean());
    recorder.scalar("s_std", std::sqrt((s - s.mean()).square().mean()));
    recorder.scalar("s_min", s.minCoeff());
    recorder.scalar("s_max", s.maxCoeff());
    recorder.scalar("u_defect", defect(U_));
    recorder.scalar("v_defect", defect(V_));
  }

 private:
  template <class T> auto square(std::span<T> block) const { return as_matrix(block, n_, n_); }
  static double defect(const Matrix<S>& M) {
    return isometry_defect<double>(Matrix<double>(M.template cast<double>()));
  }

  Options options_;
  bool free_;
  Index n_;
  Vector<S> s_, slope_;       // s of the last refresh, ds/dp
  Matrix<S> scaled_, U_, V_;  // U diag(s)
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::parametrisation<SvdMargin>("svd_margin",
                                                   "U diag(s) Vᵀ with singular values within a margin of 1, or free"))
