// W = H₁ H₂ … H_m with H_i = I − 2 v_i v_iᵀ / v_iᵀv_i and Gaussian columns v_i, as they are drawn: some are very short, and W
// is far from linear in them along any step of the size of the others.
#include <cmath>

#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class GaussianColumns final : public Dense<S> {
 public:
  struct Options {
    Index columns = 3;
    double shortest = 1e-4;
    void describe(Schema& s) {
      s.field("columns", columns, "number of reflections").at_least(1);
      s.field("shortest", shortest, "length of the last column relative to the first").more_than(0);
    }
  };
  GaussianColumns(const Options& options, Shape shape)
      : Dense<S>(shape.square("gaussian_columns")), n_(shape.rows), options_(options) {}

  std::vector<BlockSpec> blocks() const override { return {{"V", n_ * options_.columns, n_, options_.columns}}; }
  void initialise(Blocks<S> theta, Rng& rng) const override {
    Mat<S> V = columns(theta);
    for (Index i = 0; i < V.cols(); ++i)
      for (Index k = 0; k < n_; ++k)
        V(k, i) = S(rng.normal() * std::pow(options_.shortest, double(i) / double(std::max<Index>(1, V.cols() - 1))));
  }
  void materialise(CBlocks<S> theta, Mat<S> W) override {
    const CMat<S> V = columns(theta);
    W.setIdentity();
    for (Index i = V.cols() - 1; i >= 0; --i) reflect(V, i, W);
  }
  // With W = A H_i B, P = Aᵀ dW Bᵀ and v = v_i: ∂⟨dW, W⟩/∂v = −2 (P + Pᵀ) v / vᵀv + 4 (vᵀPv) v / (vᵀv)².
  void pullback(CBlocks<S> theta, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override {
    const CMat<S> V = columns(theta);
    Mat<S> dV = columns(dtheta);
    for (Index i = 0; i < V.cols(); ++i) {
      Matrix<S> P = dW, B = Matrix<S>::Identity(n_, n_);
      for (Index k = 0; k < i; ++k) reflect(V, k, view(P));
      for (Index k = V.cols() - 1; k > i; --k) reflect(V, k, view(B));
      P = P * B.transpose().eval();
      const Vector<S> v = V.col(i), Pv = P * v, Ptv = P.transpose() * v;
      const S square = v.squaredNorm();
      dV.col(i) += S(-2) / square * (Pv + Ptv) + S(4) * v.dot(Pv) / (square * square) * v;
    }
  }
  Claim claim() const override { return {Claim::orthogonal}; }

 private:
  template <class T> auto columns(Blocks<T> theta) const { return as_matrix(theta[0], n_, options_.columns); }
  static void reflect(CMat<S> V, Index i, Mat<S> M) {
    const Vector<S> u = V.col(i).normalized();
    const Eigen::Matrix<S, 1, Eigen::Dynamic> row = u.transpose() * M;
    M -= S(2) * u * row;
  }

  Index n_;
  Options options_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<GaussianColumns>("gaussian_columns",
                                                                "reflections at Gaussian columns of any length"))
