// Adam along the orthogonal or unitary matrices (Bécigneul & Ganea 2019; with the Cayley transform Li, Fuxin &
// Todorovic 2020).
//
// Tangents at M are −A M with A skew; A lives in the same space for every M, so that the running mean needs no
// transport. G is the gradient:
//
//   A = G Mᴴ − M Gᴴ     m ← β₁ m + (1 − β₁) A     v ← β₂ v + (1 − β₂) |A|²     m̂ = m/(1 − β₁ᵗ), v̂ = v/(1 − β₂ᵗ)
//   D = m̂ / (√v̂ + ε)    scaling block: |A|² is the mean of its squared entries, one number v a block; entries: v of
//                         each, Re and Im apart. The papers' v of a block is the sum: their η is ηn here
//
//   retraction cayley   M ← (I + η/2 D)⁻¹(I − η/2 D) M
//   retraction qr       M ← Q of (I − ηD) M = QR with a positive diagonal of R
//   retraction polar    M ← U Vᴴ of (I − ηD) M = U S Vᴴ
//
// |A_ij| = |A_ji|, so D is skew in both scalings; one v a block does not depend on the basis in which M is written.
// cayley keeps M on the manifold but for rounding, which the projection of every `reorthonormalise_every` steps
// removes; qr and polar need none.
#include <stiefel/linear_algebra.hpp>
#include <stiefel/manifold.hpp>
#include <stiefel/plugin.hpp>

#include <cmath>

namespace {
using namespace stiefel;

template <class S> class RiemannianAdam final : public Optimizer<S> {
 public:
  struct Options {
    double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    std::string retraction = "cayley", scaling = "block";
    Index reorthonormalise_every = 100;
    void describe(Schema& s) {
      s.field("beta1", beta1, "β₁ of the running mean of tangents").at_least(0).less_than(1);
      s.field("beta2", beta2, "β₂ of the running mean of squared tangents").at_least(0).less_than(1);
      s.field("epsilon", epsilon, "ε of the denominator").more_than(0);
      s.field("retraction", retraction, "how a step along the tangent returns to the manifold")
          .one_of({"cayley", "qr", "polar"});
      s.field(
           "scaling", scaling,
           "one mean square for the whole block, or one for each entry of the tangent; the papers sum the squares of a "
           "block, so divide their rate by n for n × n matrices")
          .one_of({"block", "entries"});
      s.field("reorthonormalise_every", reorthonormalise_every,
              "steps after which the block is replaced by the nearest orthogonal or unitary matrix, for `retraction: "
              "cayley`; 0: never")
          .at_least(0)
          .units("steps")
          .only_if(retraction == "cayley", "`retraction: cayley`");
    }
  };
  explicit RiemannianAdam(const Options& options) : options_(options) {}

  bool moves(Manifold manifold) const override { return manifold != Manifold::flat; }

  void attach(const std::vector<BlockSpec>& blocks) override {
    states_.clear();
    for (const BlockSpec& block : blocks)
      states_.push_back({block, Vector<double>::Zero(block.size),
                         Vector<double>::Zero(options_.scaling == "block" ? 1 : block.size)});
  }

  void step(Index block, double rate, std::span<S> theta, std::span<const S> gradient) override {
    State& state = states_[std::size_t(block)];
    manifold::with_numbers_of<double>(state.spec.manifold, [&]<class T>(T) {
      const Index n = state.spec.cols;
      Matrix<T> M = manifold::load<T, S>(theta, n);
      const Vector<double> D = direction(state, manifold::tangent<T>(manifold::load<T, S>(gradient, n), M));
      retract<T>(manifold::load<T, double>({D.data(), std::size_t(D.size())}, n), rate, state.steps, M);
      manifold::store<T, S>(M, theta);
    });
  }

  void serialise(Archive& archive) override {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const std::string number = std::to_string(i);
      archive.value("steps_" + number, states_[i].steps);
      archive.array("mean_" + number, states_[i].mean);
      archive.array("square_" + number, states_[i].square);
    }
  }

 private:
  struct State {
    BlockSpec spec;
    Vector<double> mean, square;  // m and v; Re over Im
    std::int64_t steps = 0;
  };

  template <class T> Vector<double> direction(State& state, const Matrix<T>& A) const {
    Vector<double> tangent(state.spec.size);
    manifold::store<T, double>(A, {tangent.data(), std::size_t(tangent.size())});
    state.mean = options_.beta1 * state.mean + (1 - options_.beta1) * tangent;
    const double entries = double(A.size());
    if (options_.scaling == "block")
      state.square[0] = options_.beta2 * state.square[0] + (1 - options_.beta2) * tangent.squaredNorm() / entries;
    else
      state.square = options_.beta2 * state.square + (1 - options_.beta2) * tangent.cwiseAbs2();

    const double t = double(++state.steps);
    const double first = 1 - std::pow(options_.beta1, t), second = std::sqrt(1 - std::pow(options_.beta2, t));
    if (options_.scaling == "block")
      return state.mean / (first * (std::sqrt(state.square[0]) / second + options_.epsilon));
    return (state.mean.array() / first / (state.square.array().sqrt() / second + options_.epsilon)).matrix();
  }

  template <class T> void retract(const Matrix<T>& D, double rate, std::int64_t step, Matrix<T>& M) const {
    if (options_.retraction == "cayley") {
      M += manifold::cayley_change<T>(D, rate, M);
      if (options_.reorthonormalise_every > 0 && step % options_.reorthonormalise_every == 0) manifold::project<T>(M);
      return;
    }
    M -= rate * product(D, M);
    if (options_.retraction == "qr")
      orthonormalise(view(M));
    else
      manifold::project<T>(M);
  }

  Options options_;
  std::vector<State> states_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::optimizer<RiemannianAdam>(
                          "riemannian_adam", "Adam along orthogonal and unitary matrices with a choice of retractions"))
