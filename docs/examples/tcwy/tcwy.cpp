// T-CWY (Likhosherstov, Davis, Choromanski & Weller 2021): the first columns of a product of m Householder reflections.
//
//   W = (I − U S⁻¹ Uᵀ)E      u_j = v_j/‖v_j‖      S = I/2 + strict upper triangle of UᵀU      E: the first cols of I
//
// With a = (UᵀE)X, b = UᵀdY, P = Σ dY aᵀ and Q = Σ X bᵀ, where E on the left adds rows of zeros:
//
//   U̅ = −P S⁻ᵀ − E Q S⁻¹ + U(T + Tᵀ)      T = strict upper triangle of S⁻ᵀ(UᵀP)S⁻ᵀ      v̅_j = (u̅_j − u_j u_jᵀu̅_j)/‖v_j‖
#include <stiefel/linear_algebra.hpp>
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class Tcwy final : public Parametrisation<S> {
 public:
  struct Options {
    Index reflections = 8;
    void describe(Schema& s) { s.field("reflections", reflections, "number m of reflections").at_least(1); }
  };
  Tcwy(const Options& options, Shape shape)
      : Parametrisation<S>(shape), n_(shape.rows), cols_(shape.cols), m_(options.reflections) {
    if (cols_ > n_) throw Error("tcwy needs at least as many rows as columns");
    if (m_ > n_) throw Error("tcwy needs `reflections` of at most " + std::to_string(n_) + ", the number of rows");
  }

  std::vector<BlockSpec> blocks() const override { return {{"V", n_ * m_, n_, m_}}; }
  void initialise(Blocks<S> theta, Rng& rng) const override {
    for (S& entry : theta[0]) entry = S(rng.normal());
  }
  void refresh(CBlocks<S> theta) override {
    const CMat<S> V = as_matrix(theta[0], n_, m_);
    norms_ = V.colwise().norm();
    U_ = V * norms_.cwiseInverse().asDiagonal();
    S_.resize(m_, m_);
    multiply(transposed(U_), U_, view(S_));
    S_.diagonal().setConstant(S(0.5));
  }

  Index scratch(Index columns) const override { return m_ * columns; }
  void apply(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const override {
    Mat<S> a = scratch.take(m_, X.cols());
    multiply(transposed(top()), X, a);
    solve_triangular(Triangle::upper, S_, a);
    Y.topRows(cols_) = X;
    Y.bottomRows(n_ - cols_).setZero();
    add_product(U_, a, Y, -1);
  }
  void apply_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const override {
    Mat<S> b = scratch.take(m_, dY.cols());
    multiply(transposed(U_), dY, b);
    solve_triangular(Triangle::upper, transposed(S_), b);
    dX = dY.topRows(cols_);
    add_product(top(), b, dX, -1);
  }

  Index accumulator() const override { return (n_ + cols_) * m_; }
  void accumulate(CMat<S> X, CMat<S> dY, std::span<S> sum, Scratch<S>& scratch) const override {
    Mat<S> product = scratch.take(m_, X.cols());
    multiply(transposed(top()), X, product);  // a
    add_outer(dY, product, as_matrix(sum.first(std::size_t(n_ * m_)), n_, m_));
    multiply(transposed(U_), dY, product);  // b
    add_outer(X, product, as_matrix(sum.subspan(std::size_t(n_ * m_)), cols_, m_));
  }
  void finish(CBlocks<S>, std::span<const S> sum, Blocks<S> dtheta) override {
    Matrix<S> P = as_matrix(sum.first(std::size_t(n_ * m_)), n_, m_), T(m_, m_);
    Matrix<S> Q = as_matrix(sum.subspan(std::size_t(n_ * m_)), cols_, m_);
    solve_triangular_right(Triangle::upper, transposed(S_), view(P));
    solve_triangular_right(Triangle::upper, S_, view(Q));
    multiply(transposed(U_), P, view(T));
    solve_triangular(Triangle::upper, transposed(S_), view(T));
    T.template triangularView<Eigen::Lower>().setZero();
    Matrix<S> dU = -P;
    dU.topRows(cols_) -= Q;
    add_product(U_, T, view(dU));
    add_product(U_, transposed(T), view(dU));
    Mat<S> dV = as_matrix(dtheta[0], n_, m_);
    for (Index j = 0; j < m_; ++j) dV.col(j) += (dU.col(j) - U_.col(j) * U_.col(j).dot(dU.col(j))) / norms_[j];
  }
  Claim claim() const override { return {Claim::orthogonal}; }

 private:
  CMat<S> top() const { return U_.topRows(cols_); }  // UᵀE, transposed

  Index n_, cols_, m_;
  Matrix<S> U_, S_;                            // n × m, m × m
  Eigen::Matrix<S, 1, Eigen::Dynamic> norms_;  // ‖v_j‖
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<Tcwy>("tcwy", "orthonormal columns by m reflections in compact form"))
