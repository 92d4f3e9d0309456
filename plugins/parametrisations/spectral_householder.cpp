// Singular value decompositions with bounded singular values, svdRNN (Zhang, Lei & Dhillon 2018, section 3): W = P_u
// diag(s) P_vᵀ.
//
//   P_u = H(U_0) … H(U_{m₁−1}),   P_v = H(V_0) … H(V_{m₂−1}),   H(u) = I − 2uuᵀ/‖u‖²
//   s_i = s* + 2r(σ(ŝ_i) − ½) = s* + r tanh(ŝ_i/2)
//
// n(m₁ + m₂) − m₁(m₁ − 1)/2 − m₂(m₂ − 1)/2 + n parameters. Each product is the compact WY form P = I − U(T⁻¹Uᵀ), Pᵀ = I
// − U(T⁻ᵀUᵀ) with T = striu(UᵀU) + ½diag(UᵀU). With z = P_vᵀx and g = P_uᵀdy, s̄ = Σ g ∘ z, U sees the pullback of
// P_u(s ∘ z) for dy, and V that of P_v(s ∘ g) for x.
#include <stiefel/linear_algebra.hpp>
#include <stiefel/plugin.hpp>

#include "compact_wy.hpp"
#include "reflections.hpp"

namespace {

using namespace stiefel;

/// A product of r reflections, with the sums over columns from which Ū = U·K − Σ dy hᵀ − Σ x cᵀ, K symmetric, lower
/// triangle Σ h cᵀ.
template <class S> class Chain {
 public:
  Chain(Index n, Index r) : n_(n), r_(r) {}

  Index size() const { return trapezoid_size(n_, r_); }
  Index sums() const { return 2 * n_ * r_ + r_ * r_; }
  Index reflections() const { return r_; }

  void refresh(std::span<const S> theta, const char* block) {
    U_.resize(n_, r_);
    unpack_trapezoid(theta, view(U_));
    const CompactForm form(U_, "spectral_householder", block);
    forward_.pack(Matrix<S>(form.P.template cast<S>()));
    adjoint_.pack(Matrix<S>(form.R().template cast<S>()));
    product_.pack(U_);
  }

  /// h = T⁻¹UᵀX or c = T⁻ᵀUᵀX, r × columns; then X −= U·h.
  void coefficients(bool transposed, CMat<S> X, Mat<S> h) const { (transposed ? adjoint_ : forward_).multiply(X, h); }
  void subtract(CMat<S> h, Mat<S> X) const { product_.subtract(h, X); }

  void accumulate(CMat<S> X, CMat<S> dY, CMat<S> h, CMat<S> c, std::span<S> sum) const {
    add_outer(dY, h, part(sum, 0, n_));
    add_outer(X, c, part(sum, n_ * r_, n_));
    add_outer(h, c, part(sum, 2 * n_ * r_, r_));
  }
  void finish(std::span<const S> sum, std::span<S> dtheta) const {
    Matrix<S> dU =
        -as_matrix(sum.subspan(0, std::size_t(n_ * r_)), n_, r_) - as_matrix(sum.subspan(std::size_t(n_ * r_)), n_, r_);
    const CMat<S> hc = as_matrix(sum.subspan(std::size_t(2 * n_ * r_)), r_, r_);
    dU.noalias() += U_ * hc.template selfadjointView<Eigen::Lower>();
    add_trapezoid(dtheta, dU);
  }

 private:
  Mat<S> part(std::span<S> sum, Index first, Index rows) const {
    return as_matrix(sum.subspan(std::size_t(first)), rows, r_);
  }

  Index n_, r_;
  Matrix<S> U_;  // n × r
  PackedProduct<S> forward_, adjoint_, product_;
};

template <class S> class SpectralHouseholder final : public Parametrisation<S> {
 public:
  struct Options {
    Index left = 16, right = 16;
    double margin = 0.01, centre = 1;
    bool normalise_columns = true;
    void describe(Schema& s) {
      s.field("left", left, "number m₁ of reflections of the left singular vectors, 1 … n − 1").at_least(1);
      s.field("right", right, "number m₂ of reflections of the right singular vectors, 1 … n − 1").at_least(1);
      s.field("margin", margin, "r: singular values lie in (s* − r, s* + r)").at_least(0);
      s.field("centre", centre, "s*, the singular values at the start").more_than(0);
      s.field("normalise_columns", normalise_columns,
              "scale every column of U and V to length 1 initially and after each update; W is the same, the effective "
              "rate is not");
      s.check(margin <= centre, "margin", "must not exceed `centre`, or singular values would change sign");
    }
  };

  SpectralHouseholder(const Options& options, Shape shape)
      : Parametrisation<S>(shape.square("spectral_householder")),
        options_(options),
        n_(shape.rows),
        left_(n_, options.left),
        right_(n_, options.right) {
    if (n_ < 2)
      throw Error("spectral_householder needs at least 2 rows, but the map has " + std::to_string(n_) +
                  "; raise `hidden`");
    for (const auto& [key, count] : {std::pair("left", options.left), std::pair("right", options.right)})
      if (count >= n_)
        throw Error(std::string("spectral_householder: `") + key + "` is " + std::to_string(count) + ", but a map of " +
                    std::to_string(n_) + " rows has at most " + std::to_string(n_ - 1) + " reflections; lower it");
  }

  std::vector<BlockSpec> blocks() const override {
    const bool units = options_.normalise_columns;
    return {{.name = "U", .size = left_.size(), .constant_norm = units},
            {"s", n_},
            {.name = "V", .size = right_.size(), .constant_norm = units}};
  }

  void initialise(Blocks<S> theta, Rng& rng) const override {
    for (const Index block : {0, 2})
      for_each_column(n_, count(block), [&](Index, Index first, Index length) {
        Vector<double> u(length);
        for (double& entry : u) entry = rng.normal();
        as_vector(theta[block]).segment(first, length) =
            (options_.normalise_columns ? u.normalized() : u).template cast<S>();
      });
  }

  void refresh(CBlocks<S> theta) override {
    left_.refresh(theta[0], "U");
    right_.refresh(theta[2], "V");
    const auto tanh = (as_vector(theta[1]).template cast<double>().array() / 2).tanh().eval();
    s_ = (options_.centre + options_.margin * tanh).template cast<S>();
    slope_ = (options_.margin / 2 * (1 - tanh.square())).template cast<S>();
  }

  Index scratch(Index columns) const override {
    return (4 * n_ + 2 * (left_.reflections() + right_.reflections())) * columns;
  }

  void apply(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const override { transform(right_, left_, X, Y, scratch); }
  void apply_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const override {
    transform(left_, right_, dY, dX, scratch);
  }

  Index accumulator() const override { return left_.sums() + right_.sums() + n_; }

  void accumulate(CMat<S> X, CMat<S> dY, std::span<S> sum, Scratch<S>& scratch) const override {
    const Index c = X.cols(), m1 = left_.reflections(), m2 = right_.reflections();
    Mat<S> z = scratch.take(n_, c), g = scratch.take(n_, c), sz = scratch.take(n_, c), sg = scratch.take(n_, c);
    const Mat<S> of_x = scratch.take(m2, c), of_dy = scratch.take(m1, c), of_sz = scratch.take(m1, c),
                 of_sg = scratch.take(m2, c);
    rotate_back(right_, X, z, of_x);
    rotate_back(left_, dY, g, of_dy);
    sz = s_.asDiagonal() * z;
    sg = s_.asDiagonal() * g;
    left_.coefficients(false, sz, of_sz);
    right_.coefficients(false, sg, of_sg);
    left_.accumulate(sz, dY, of_sz, of_dy, sum);
    right_.accumulate(sg, X, of_sg, of_x, sum.subspan(std::size_t(left_.sums())));
    as_vector(sum.last(std::size_t(n_))) += g.cwiseProduct(z).rowwise().sum();
  }

  void finish(CBlocks<S>, std::span<const S> sum, Blocks<S> dtheta) override {
    left_.finish(sum, dtheta[0]);
    right_.finish(sum.subspan(std::size_t(left_.sums())), dtheta[2]);
    as_vector(dtheta[1]) += slope_.cwiseProduct(as_vector(sum.last(std::size_t(n_))));
  }

  void after_step(Blocks<S> theta) override {
    if (!options_.normalise_columns) return;
    for (const Index block : {0, 2}) normalise_columns(theta[block], n_, count(block));
  }

  bool materialises() const override { return true; }

  Claim claim() const override {
    return {Claim::bounded, options_.centre - options_.margin, options_.centre + options_.margin};
  }

  Cost cost(Index columns) const override {
    const double n = double(n_), m = double(left_.reflections() + right_.reflections()), c = double(columns);
    const double squares = std::pow(double(left_.reflections()), 2) + std::pow(double(right_.reflections()), 2);
    const double product = 4 * n * m + n, gradient = 10 * n * m + 2 * squares, finish = 2 * n * squares;
    return {4 * n * squares, product * c, product * c, gradient * c, finish, product * n, gradient * n + finish};
  }

  void record(Recorder& recorder) const override {
    const Vector<double> s = s_.template cast<double>();
    recorder.scalar("s_mean", s.mean());
    recorder.scalar("s_min", s.minCoeff());
    recorder.scalar("s_max", s.maxCoeff());
  }

 private:
  Index count(Index block) const { return block == 0 ? left_.reflections() : right_.reflections(); }

  /// Z = PᵀX, with the coefficients of X.
  static void rotate_back(const Chain<S>& chain, CMat<S> X, Mat<S> Z, Mat<S> coefficients) {
    chain.coefficients(true, X, coefficients);
    Z = X;
    chain.subtract(coefficients, Z);
  }

  /// Y = P_second diag(s) P_firstᵀ X.
  void transform(const Chain<S>& first, const Chain<S>& second, CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const {
    rotate_back(first, X, Y, scratch.take(first.reflections(), X.cols()));
    for (Index k = 0; k < Y.cols(); ++k) Y.col(k).array() *= s_.array();
    const Mat<S> h = scratch.take(second.reflections(), X.cols());
    second.coefficients(false, Y, h);
    second.subtract(h, Y);
  }

  Options options_;
  Index n_;
  Chain<S> left_, right_;
  Vector<S> s_, slope_;  // n: s_i and ds_i/dŝ_i
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<SpectralHouseholder>(
                          "spectral_householder",
                          "bounded singular values between two products of Householder reflections (svdRNN)"))
