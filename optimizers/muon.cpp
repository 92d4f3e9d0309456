// Muon (Jordan, Jin, Boza, You, Cesista, Newhouse & Bernstein 2024): steps whose singular values are all about 1. g is
// the gradient, a matrix:
//
//   m ← μ m + (1 − μ) g     u = m, or with nesterov μ m + (1 − μ) g     X ← u / (‖u‖ + 1e-7)
//   five times               X ← aX + (bA + cA²)X, A = XXᵀ, (a, b, c) = (3.4445, −4.7750, 2.0315)
//   θ ← θ − η √max(1, rows/columns) X
//
// These Newton–Schulz steps map singular values in [0.01, 1] to [0.68, 1.14], smaller ones to less than that. A of a tall
// X is XᵀX. The length of a step does not depend on that of the gradient, so a schedule that lowers the rate is part of
// the method. Weight decay is decoupled.
#include <cmath>

#include <fmt/format.h>

#include <stiefel/linear_algebra.hpp>
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class Muon final : public Optimizer<S> {
 public:
  struct Options {
    double momentum = 0.95;
    bool nesterov = true;
    void describe(Schema& s) {
      s.field("momentum", momentum, "μ of the running mean of gradients").at_least(0).less_than(1);
      s.field("nesterov", nesterov, "the running mean is taken one step ahead");
    }
  };
  explicit Muon(const Options& options) : options_(options) {}

  bool decouples() const override { return true; }
  void attach(const std::vector<BlockSpec>& blocks) override {
    for (const BlockSpec& block : blocks)
      if (std::min(block.rows, block.cols) < 2)
        throw Error(fmt::format(
            "muon moves matrices, and the block {} is a vector of {} numbers, which has one singular value; "
            "give it another optimizer first, e.g. {{blocks: \"{}\", plugin: adam}}",
            block.name, block.size, block.name));
    states_.clear();
    for (const BlockSpec& block : blocks) {
      const Index smaller = std::min(block.rows, block.cols);
      const auto zero = [](Index rows, Index cols) { return Matrix<S>(Matrix<S>::Zero(rows, cols)); };
      states_.push_back({zero(block.rows, block.cols), zero(block.rows, block.cols), zero(block.rows, block.cols),
                         zero(smaller, smaller), zero(smaller, smaller)});
    }
  }

  void step(Index block, double rate, std::span<S> theta, std::span<const S> gradient) override {
    State& state = states_[std::size_t(block)];
    const Index rows = state.mean.rows(), cols = state.mean.cols();
    const auto g = as_matrix(gradient, rows, cols);
    const S mu = S(options_.momentum), rest = S(1 - options_.momentum);
    state.mean = mu * state.mean + rest * g;
    state.X = state.mean;
    if (options_.nesterov) state.X = mu * state.mean + rest * g;
    state.X /= S(state.X.template cast<double>().norm() + 1e-7);
    for (int k = 0; k < 5; ++k) state.newton_schulz();
    as_matrix(theta, rows, cols) -= S(rate * std::sqrt(std::max(1., double(rows) / double(cols)))) * state.X;
  }

  void serialise(Archive& archive) override {
    for (std::size_t i = 0; i < states_.size(); ++i) archive.array("mean_" + std::to_string(i), states_[i].mean);
  }

 private:
  struct State {
    Matrix<S> mean, X, next, A, B;  // all but `mean` are working memory

    void newton_schulz() {
      const bool tall = X.rows() > X.cols();
      if (tall)
        multiply(transposed(X), X, view(A));
      else
        multiply(X, transposed(X), view(A));
      multiply(A, A, view(B));
      B = S(-4.7750) * A + S(2.0315) * B;
      next = S(3.4445) * X;
      if (tall)
        add_product(X, B, view(next));
      else
        add_product(B, X, view(next));
      X.swap(next);
    }
  };

  Options options_;
  std::vector<State> states_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::optimizer<Muon>("muon", "steps of matrices with singular values of about 1"))
