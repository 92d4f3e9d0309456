// Kronecker products (Jose, Cissé & Fleuret 2018): W = W_0 ⊗ W_1 ⊗ … ⊗ W_{F−1}, factor 0 the slowest index, applied
// without forming W.
//
//   forward    Z_0 = x, Z_{f+1} = W_f applied to one index of Z_f, y = Z_F
//   pullback   G_F = ȳ, W̄_f = Σ G_{f+1} Z_fᴴ over the other indices, G_f = W_fᴴ applied to that index of G_{f+1}, x̄ =
//              G_0
//
// These are the paper's algorithms 1 and 2 with their indices put right. With 2 × 2 factors alone, each works in place
// (kronecker_butterflies.hpp). With others, the indices of a column rotate by one place at each factor, so that all
// numbers of a stage are contiguous (kronecker_stages.hpp). Singular values and eigenvalues of W are all products of
// those of the factors: a factor that is off by ε puts W off by (1 + ε)^F. The soft constraint is λ Σ_f ‖W_fᴴW_f − I‖_F²
// (eq. 7), with the gradient 4λ W_f(W_fᴴW_f − I).
#include "complex_form.hpp"
#include "kronecker_butterflies.hpp"
#include "kronecker_stages.hpp"

#include <stiefel/plugin.hpp>

#include <algorithm>
#include <numeric>
#include <stiefel/linear_algebra.hpp>

namespace {

using namespace stiefel;

std::vector<Index> prime_factors(Index n) {
  std::vector<Index> factors;
  for (Index p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) factors.push_back(p);
  if (n > 1 || factors.empty()) factors.push_back(n);
  std::reverse(factors.begin(), factors.end());
  return factors;
}

/// As floating point, since it may be more than an Index holds.
double product_of(const std::vector<Index>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 1.0, std::multiplies<>());
}

/// Every product of one number of each list.
template <class T> std::vector<T> all_products(const std::vector<std::vector<T>>& lists) {
  std::vector<T> products{T(1)};
  for (const auto& list : lists) {
    std::vector<T> next;
    for (const T& a : products)
      for (const T& b : list) next.push_back(a * b);
    products = std::move(next);
  }
  std::stable_sort(products.begin(), products.end(), [](const T& a, const T& b) { return std::abs(a) > std::abs(b); });
  return products;
}

template <class S> class Kronecker final : public Parametrisation<S> {
 public:
  struct Options {
    std::vector<Index> factors, columns;
    std::string field = "complex", init = "unitary";
    double soft_unitary = 0;
    void describe(Schema& s) {
      s.field("factors", factors,
              "rows of each factor, the slowest index first; their product is n; empty: the prime factors of n")
          .at_least(1)
          .at_most(1e8);
      s.field("columns", columns, "columns of each factor; empty: all factors are square").at_least(1).at_most(1e8);
      s.field("field", field, "type of the numbers in W").one_of({"complex", "real"});
      s.field("init", init, "factors at the start: Haar-distributed unitary (orthogonal for real ones), or identity")
          .one_of({"unitary", "identity"});
      s.field("soft_unitary", soft_unitary, "λ of the penalty λ Σ_f ‖W_fᴴW_f − I‖_F² that is added to the loss")
          .at_least(0);
    }
  };
  static bool complex_pairs(const Options& options) { return options.field == "complex"; }

  Kronecker(const Options& options, Shape shape)
      : Parametrisation<S>(shape),
        options_(options),
        complex_(shape.complex),
        N_(shape.rows / parts()),
        K_(shape.cols / parts()) {
    const std::vector<Index> P = options.factors.empty() ? prime_factors(N_) : options.factors;
    const std::vector<Index> Q = options.columns.empty() ? P : options.columns;
    if (Q.size() != P.size())
      throw Error("kronecker: `columns` has " + std::to_string(Q.size()) + " sizes and `factors` " +
                  std::to_string(P.size()) + "; give one for each factor");
    demand_product("factors", P, N_, "rows");
    demand_product("columns", Q, K_, "columns");
    Index length = K_;
    longest_ = K_;
    for (std::size_t f = 0; f < P.size(); ++f) {
      Stage stage;
      stage.factor.P = P[f], stage.factor.Q = Q[f];
      stage.M = length / Q[f];
      stage.first = kept_;
      length = stage.M * P[f];
      kept_ += f + 1 < P.size() ? parts() * length : 0;
      longest_ = std::max(longest_, length);
      lanes_ += parts() * P[f] * Q[f] * kronecker_lanes<S>;
      stages_.push_back(std::move(stage));
    }
    butterflies_ = N_ >= kronecker_lanes<S> &&
                   std::ranges::all_of(stages_, [](const Stage& s) { return s.factor.P == 2 && s.factor.Q == 2; });
  }

  std::vector<BlockSpec> blocks() const override {
    std::vector<BlockSpec> blocks;
    for (const Stage& s : stages_) {
      const Index rows = parts() * s.factor.P, cols = s.factor.Q;
      blocks.push_back({"factor_" + std::to_string(blocks.size()), rows * cols, rows, cols});
    }
    return blocks;
  }

  void initialise(Blocks<S> theta, Rng& rng) const override {
    for (std::size_t f = 0; f < stages_.size(); ++f) {
      const auto [P, Q, W] = stages_[f].factor;
      Complex value = Complex::Identity(P, Q);
      if (options_.init == "unitary") {
        Complex tall(std::max(P, Q), std::min(P, Q));
        for (auto& entry : tall.reshaped()) entry = {rng.normal(), complex_ ? rng.normal() : 0};
        orthonormalise(view(tall));
        value = P >= Q ? tall : Complex(tall.adjoint());
      }
      as_matrix(theta[Index(f)], parts() * P, Q) = as_parameter<S>(value, complex_);
    }
  }

  void refresh(CBlocks<S> theta) override {
    for (std::size_t f = 0; f < stages_.size(); ++f) {
      auto& [factor, M, first, by_rows] = stages_[f];
      const auto block = as_matrix(theta[Index(f)], parts() * factor.P, factor.Q);
      by_rows.resize(block.rows(), block.cols());
      by_rows = block;
      factor.W = {by_rows.data(), complex_ ? by_rows.data() + factor.P * factor.Q : nullptr};
    }
    if (butterflies_) pack_butterflies();
  }

  Index scratch(Index) const override { return 2 * parts() * longest_ + kept_ + lanes_; }

  void apply(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const override {
    if (butterflies_) return apply_butterflies<S>(forward_, X, Y, nullptr);
    Mat<S> memory = scratch.take(parts() * longest_, 2);
    for (Index c = 0; c < X.cols(); ++c) {
      Parts<const S> in = split(X.col(c).data(), K_);
      for (std::size_t f = 0; f < stages_.size(); ++f) {
        const bool last = f + 1 == stages_.size();
        const Parts<S> out = last ? split(Y.col(c).data(), N_) : split(memory.col(Index(f % 2)).data(), longest_);
        kronecker_stage(stages_[f].factor, stages_[f].M, in, out);
        in = out;
      }
    }
  }

  void apply_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const override {
    if (butterflies_) return apply_butterflies<S>(adjoint_, dY, dX, nullptr);
    Mat<S> memory = scratch.take(parts() * longest_, 2);
    for (Index c = 0; c < dY.cols(); ++c) {
      Parts<const S> g = split(dY.col(c).data(), N_);
      for (std::size_t f = stages_.size(); f-- > 0;) {
        const Parts<S> out = f == 0 ? split(dX.col(c).data(), K_) : split(memory.col(Index(f % 2)).data(), longest_);
        kronecker_adjoint(stages_[f].factor, stages_[f].M, g, out);
        g = out;
      }
    }
  }

  void add(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const override {
    if (!butterflies_) return Parametrisation<S>::add(X, Y, scratch);
    apply_butterflies(forward_, X, Y, scratch.take(parts() * longest_, 1).data());
  }

  void add_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const override {
    if (!butterflies_) return Parametrisation<S>::add_adjoint(dY, dX, scratch);
    apply_butterflies(adjoint_, dY, dX, scratch.take(parts() * longest_, 1).data());
  }

  Index accumulator() const override {
    return std::accumulate(stages_.begin(), stages_.end(), Index(0),
                           [&](Index sum, const Stage& s) { return sum + parts() * s.factor.P * s.factor.Q; });
  }

  void accumulate(CMat<S> X, CMat<S> dY, std::span<S> sum, Scratch<S>& scratch) const override {
    S* memory = scratch.take(2 * parts() * longest_ + kept_, 1).data();
    Mat<S> lanes = scratch.take(lanes_, 1);
    lanes.setZero();
    if (butterflies_)
      pull_back_butterflies(forward_, adjoint_, X, dY, memory, lanes.data());
    else
      pull_back_stages(X, dY, memory, memory + 2 * parts() * longest_, lanes.data());
    const auto partial = mat(lanes.data(), kronecker_lanes<S>, lanes_ / kronecker_lanes<S>, kronecker_lanes<S>);
    for (Index i = 0; i < partial.cols(); ++i) sum[std::size_t(i)] += partial.col(i).sum();
  }

  void finish(CBlocks<S>, std::span<const S> sum, Blocks<S> dtheta) override {
    const S* first = sum.data();
    for (std::size_t f = 0; f < stages_.size(); ++f) {
      const Index rows = parts() * stages_[f].factor.P, cols = stages_[f].factor.Q;
      as_matrix(dtheta[Index(f)], rows, cols) += Eigen::Map<const ByRows>(first, rows, cols);
      first += rows * cols;
    }
  }

  double penalty(CBlocks<S> theta, Blocks<S> dtheta) override {
    const double strength = options_.soft_unitary;
    if (strength == 0) return 0;
    double value = 0;
    for (Index f = 0; f < Index(stages_.size()); ++f) {
      const Complex W = factor(theta, f), defect = defect_of(W), gradient = 4 * strength * product(W, defect);
      as_matrix(dtheta[f], parts() * W.rows(), W.cols()) += as_parameter<S>(gradient, complex_);
      value += strength * defect.squaredNorm();
    }
    return value;
  }

  bool materialises() const override { return true; }

  Spectrum spectrum() const override {
    const bool square =
        std::all_of(stages_.begin(), stages_.end(), [](const Stage& s) { return s.factor.P == s.factor.Q; });
    if (!square) return Parametrisation<S>::spectrum();
    std::vector<std::vector<double>> singular;
    std::vector<std::vector<std::complex<double>>> eigen;
    for (const Stage& s : stages_) {
      const Index P = s.factor.P;
      Complex first = current(s), second = first;
      singular_values(view(first), singular.emplace_back(P));
      eigenvalues(view(second), eigen.emplace_back(P));
    }
    return {all_products(singular), all_products(eigen)};
  }

  Cost cost(Index columns) const override {
    double flops = 0;
    for (const Stage& s : stages_)
      flops += (complex_ ? 8.0 : 2.0) * double(s.factor.P * s.factor.Q * s.M) * double(columns);
    const double whole = flops * double(this->cols() / (complex_ ? 2 : 1)) / double(columns);
    return {0, flops, flops, 3 * flops, 0, whole, 3 * whole, butterflies_ ? 0.5 : 0.15};
  }

  void record(Recorder& recorder) const override {
    double worst = 0;
    for (const Stage& s : stages_) worst = std::max(worst, isometry_defect<std::complex<double>>(current(s)));
    recorder.scalar("largest_factor_defect", worst);
  }

 private:
  using ByRows = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  struct Stage {
    KroneckerFactor<S> factor;
    Index M = 0;      // numbers of the other indices
    Index first = 0;  // where the result is kept for the pullback
    ByRows by_rows;   // Re over Im
  };

  Index parts() const { return complex_ ? 2 : 1; }

  void pull_back_stages(CMat<S> X, CMat<S> dY, S* memory, S* kept, S* lanes) const {
    for (Index c = 0; c < X.cols(); ++c) {
      const auto kept_after = [&](std::size_t f) {  // stage f
        return split(kept + stages_[f].first, stages_[f].factor.P * stages_[f].M);
      };
      const auto operand = [&](std::size_t f) {
        return f == 0 ? split(X.col(c).data(), K_) : Parts<const S>(kept_after(f - 1));
      };
      for (std::size_t f = 0; f + 1 < stages_.size(); ++f)
        kronecker_stage(stages_[f].factor, stages_[f].M, operand(f), kept_after(f));
      Parts<const S> g = split(dY.col(c).data(), N_);
      S* dW = lanes + lanes_;
      for (std::size_t f = stages_.size(); f-- > 0;) {
        const auto& factor = stages_[f].factor;
        dW -= parts() * factor.P * factor.Q * kronecker_lanes<S>;
        const Parts<S> out = f == 0 ? Parts<S>{} : split(memory + Index(f % 2) * parts() * longest_, longest_);
        kronecker_pullback(factor, stages_[f].M, operand(f), g, out, dW);
        g = out;
      }
    }
  }

  void pack_butterflies() {
    constexpr Index L = kronecker_lanes<S>;
    const Index count = Index(stages_.size());
    packed_ = Matrix<S>::Zero(Butterflies<S>::numbers, 2 * count);
    for (Index k = 0; k < count; ++k) {
      const S* W = stages_[std::size_t(k)].by_rows.data();
      for (Index entry = 0; entry < 4; ++entry) {
        const Index turned = entry == 1 ? 2 : entry == 2 ? 1 : entry;
        packed_(entry, k) = packed_(turned, count + k) = W[entry];
        if (complex_) packed_(4 + entry, k) = W[4 + entry], packed_(4 + turned, count + k) = -W[4 + entry];
      }
      for (Index column : {k, count + k})
        for (Index part = 0; part < 4; ++part)  // x_0: Re, Im; x_1: Re, Im
          for (Index lane = 0; lane < L; ++lane)
            packed_(8 + part * L + lane, column) =
                packed_(4 * (part % 2) + part / 2 + (lane & (N_ >> (k + 1)) ? 2 : 0), column);
    }
    forward_ = {complex_, false, N_, count, packed_.data()};
    adjoint_ = {complex_, true, N_, count, packed_.col(count).data()};
  }

  Parts<S> split(S* numbers, Index length) const { return {numbers, complex_ ? numbers + length : nullptr}; }
  Parts<const S> split(const S* numbers, Index length) const {
    return {numbers, complex_ ? numbers + length : nullptr};
  }

  void demand_product(const char* key, const std::vector<Index>& sizes, Index wanted, const char* what) const {
    const double found = product_of(sizes);
    if (found != double(wanted))
      throw Error(std::string("kronecker: the product of `") + key + "` is " +
                  (found < 1e15 ? std::to_string(Index(found)) : "above 1e15") + ", but W has " +
                  std::to_string(wanted) + " " + what + "; choose sizes whose product is " + std::to_string(wanted));
  }

  Complex factor(CBlocks<S> theta, Index f) const {
    const auto& shape = stages_[std::size_t(f)].factor;
    return from_parameter(as_matrix(theta[f], parts() * shape.P, shape.Q), complex_);
  }
  Complex current(const Stage& s) const { return from_parameter(s.by_rows, complex_); }
  static Complex defect_of(const Complex& W) { return product(adjoint(W), W) - Complex::Identity(W.cols(), W.cols()); }

  Options options_;
  bool complex_;
  Index N_, K_;  // rows and columns, complex ones counted once
  std::vector<Stage> stages_;
  Index longest_ = 0, kept_ = 0, lanes_ = 0;
  bool butterflies_ = false;          // all factors are 2 × 2, and a column fills a vector
  Matrix<S> packed_;                  // of forward_ and adjoint_
  Butterflies<S> forward_, adjoint_;  // W and Wᴴ
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::parametrisation<Kronecker>("kronecker", "Kronecker product of small complex or real factors"))
