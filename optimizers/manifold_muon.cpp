// Muon along the orthogonal or unitary matrices (Bernstein 2025), in closed form for square blocks. M is the block, G its
// gradient, ∂L/∂Re M + i ∂L/∂Im M:
//
//   A = G Mᴴ − M Gᴴ     m ← μ m + (1 − μ) A     u = m, or with nesterov μ m + (1 − μ) A     K = U Vᴴ of u = U S Vᴴ
//   M ← (I − P + (P − ηK)/√(1 + η²)) M, P = KᴴK
//
// Tangents at M are KM with K skew, and ‖KM‖₂ = ‖K‖₂. So −KM with this K is the direction in which the loss falls most
// among those of spectral norm 1, where the paper's iteration for n × p matrices ends, too. Singular values below 1e-12
// of the largest, or 1e-5 where blocks are float, are rounding and count as 0: their planes do not turn. K is skew, so
// P = −K² is the projection on the other planes, and the step is the closest matrix of the manifold to (I − ηK)M: each
// plane turns by the angle atan η. A lives in the same space for every M, so that the running mean needs no transport.
//
// The length of a step does not depend on that of the gradient, so a schedule that lowers the rate is part of the method.
// A float block drifts from the manifold by rounding, as with geodesic_cayley, which says why `reorthonormalise_every` is
// 100.
#include <cmath>

#include <stiefel/linear_algebra.hpp>
#include <stiefel/manifold.hpp>
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class ManifoldMuon final : public Optimizer<S> {
 public:
  struct Options {
    double momentum = 0.95;
    bool nesterov = true;
    Index reorthonormalise_every = 100;
    void describe(Schema& s) {
      s.field("momentum", momentum, "μ of the running mean of tangents").at_least(0).less_than(1);
      s.field("nesterov", nesterov, "the running mean is taken one step ahead");
      s.field("reorthonormalise_every", reorthonormalise_every,
              "steps after which the block is replaced by the nearest orthogonal or unitary matrix; 0: never")
          .at_least(0)
          .units("steps");
    }
  };
  explicit ManifoldMuon(const Options& options) : options_(options) {}

  bool moves(Manifold manifold) const override { return manifold != Manifold::flat; }

  void attach(const std::vector<BlockSpec>& blocks) override {
    states_.clear();
    for (const BlockSpec& block : blocks) states_.push_back({block, Vector<double>::Zero(block.size)});
  }

  void step(Index block, double rate, std::span<S> theta, std::span<const S> gradient) override {
    State& state = states_[std::size_t(block)];
    manifold::with_numbers_of<double>(state.spec.manifold, [&]<class T>(T) {
      const Index n = state.spec.cols;
      Matrix<T> M = manifold::load<T, S>(theta, n);
      const Matrix<T> K = sign(mean(state, manifold::tangent<T>(manifold::load<T, S>(gradient, n), M)));
      const Matrix<T> KM = product(K, M);
      const double shrunk = 1 / std::sqrt(1 + rate * rate);
      M -= (rate * shrunk) * KM;
      add_product<T>(K, KM, view(M), T(rate * rate * shrunk / (1 + 1 / shrunk)));  // 1 − shrunk, without cancellation
      if (options_.reorthonormalise_every > 0 && ++state.steps % options_.reorthonormalise_every == 0)
        manifold::project<T>(M);
      manifold::store<T, S>(M, theta);
    });
  }

  void serialise(Archive& archive) override {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      archive.value("steps_" + std::to_string(i), states_[i].steps);
      archive.array("mean_" + std::to_string(i), states_[i].mean);
    }
  }

 private:
  struct State {
    BlockSpec spec;
    Vector<double> mean;  // m; Re over Im
    std::int64_t steps = 0;
  };

  /// The u of the tangent A, which moves the running mean.
  template <class T> Matrix<T> mean(State& state, const Matrix<T>& A) const {
    const std::span<double> m{state.mean.data(), std::size_t(state.mean.size())};
    const double mu = options_.momentum;
    const Matrix<T> moved = mu * Matrix<T>(manifold::load<T, double>(m, A.cols())) + (1 - mu) * A;
    manifold::store<T, double>(moved, m);
    return options_.nesterov ? Matrix<T>(mu * moved + (1 - mu) * A) : moved;
  }

  /// U Vᴴ of u = U S Vᴴ without the singular values that are 0, as skew as u is.
  template <class T> static Matrix<T> sign(Matrix<T> u) {
    const Index n = u.cols();
    Matrix<T> U(n, n), Vh(n, n);
    std::vector<double> s(std::size_t(n), 0.);
    singular_value_decomposition<T>(view(u), view(U), s, view(Vh));
    const double cut = (std::is_same_v<S, float> ? 1e-5 : 1e-12) * s[0];
    const Index rank = std::ranges::count_if(s, [&](double value) { return value > cut; });
    const Matrix<T> K = product(U.leftCols(rank), Vh.topRows(rank));
    return (K - K.adjoint()) / 2;
  }

  Options options_;
  std::vector<State> states_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::optimizer<ManifoldMuon>("manifold_muon",
                                                       "Muon along orthogonal and unitary matrices, in closed form"))
