// DeltaNet (Yang, Wang, Zhang, Shen & Kim 2024), DeltaProduct and Gated DeltaProduct (Siems, Carstensen, Zela, Hutter,
// Pontil & Grazzi 2025): the state of a head is a matrix S that maps keys to values. Each step corrects it r times, by
// the delta rule, and then reads it.
//
//   rows of V x + b, for each head: k̃_1 … k̃_r (d_k each), v_1 … v_r (d_v each), b̃ (r), q̃ (d_k), with `gate` ã (1)
//   k = φ(k̃)/‖φ(k̃)‖, q likewise, ‖x‖ = √(xᵀx + 10⁻¹²)     φ(x) = x σ(x), or x
//   β = 2σ(b̃), or σ(b̃) for eigenvalues in [0, 1]     α = exp(−e^A softplus(ã + c)), or 1
//   S_0 = α S₋     u_j = β_j (v_j − S_{j−1} k_j)     S_j = S_{j−1} + u_j k_jᵀ     h = S_r q
//
// S is d_v × d_k here, the transpose of the papers' matrix. S_{j−1} is multiplied by I − β_j k_j k_jᵀ, with the
// eigenvalue 1 − β_j. The short convolutions, the norm and the output gate of the papers' layers are left out.
//
//   backward   g = ∂L/∂h, D = ∂L/∂S_r + g qᵀ, q̄ = S_rᵀ g; then for j = r … 1, with w = D k_j and e = v_j − S_{j−1} k_j:
//     k̄_j = Dᵀ u_j − β_j S_{j−1}ᵀ w    δ_v = β_j w    δ_b = wᵀe β_j (1 − β_j/β_max)    D ← D − β_j w k_jᵀ
//     unit vectors y = x/‖x‖: x̄ = (ȳ − y yᵀȳ)/‖x‖     m = ⟨D, S_0⟩ e^A, δ_a = −m σ(ã + c), Ā = −m softplus(ã + c)
//     ∂L/∂S₋ = α D
//
// Saved rows: those of V x + b, S of each head by columns, h. The state is S.
#include <cmath>
#include <stiefel/plugin.hpp>

namespace {

using namespace stiefel;

template <class S> class DeltaProduct final : public Cell<S> {
 public:
  struct Options {
    Index heads = 1, key_size = 8, reflections = 2;
    bool gate = false;
    std::vector<Index> eigenvalues = {-1, 1};
    std::string key_activation = "silu";
    void describe(Schema& s) {
      s.field("heads", heads, "number of heads, each with its own matrix; `hidden` is a multiple of it").at_least(1);
      s.field("key_size", key_size, "length of a key; the length of a value is hidden/heads").at_least(1).at_most(1e4);
      s.field("reflections", reflections, "corrections of the state in a step; 1 is DeltaNet").at_least(1).at_most(1e4);
      s.field("gate", gate, "the state decays before the corrections of a step (Gated DeltaProduct)");
      s.field("eigenvalues", eigenvalues, "range of the eigenvalues of a correction: [0, 1] or [-1, 1]");
      s.check(eigenvalues == std::vector<Index>{0, 1} || eigenvalues == std::vector<Index>{-1, 1}, "eigenvalues",
              "must be [0, 1] or [-1, 1]");
      s.field("key_activation", key_activation, "φ, of keys and queries before they get length 1")
          .one_of({"silu", "identity"});
    }
  };

  DeltaProduct(const Options& options, CellContext context)
      : Cell<S>(context.real("delta_product", "a real state")),
        n_(context.rows()),
        heads_(options.heads),
        key_(options.key_size),
        value_(n_ / heads_),
        r_(options.reflections),
        gate_(options.gate),
        silu_(options.key_activation == "silu"),
        largest_beta_(options.eigenvalues.front() < 0 ? S(2) : S(1)) {
    if (n_ % heads_ != 0)
      throw Error("delta_product needs `hidden`, " + std::to_string(n_) + ", to be a multiple of `heads`, " +
                  std::to_string(heads_) + "; change one of them");
  }

  std::vector<MapSpec> maps() const override { return {}; }
  Index input_rows() const override { return heads_ * head_rows(); }
  Index saved_rows() const override { return output_row() + n_; }
  Index output_row() const override { return state_row() + state_rows(); }
  Index state_row() const override { return input_rows(); }
  Index state_rows() const override { return n_ * key_; }
  Index scratch(Index) const override { return (r_ + 1) * (key_ + value_ + value_ * key_) + 2 * key_; }

  std::vector<BlockSpec> blocks() const override {
    if (!gate_) return {};
    return {{"gate.log_rate", heads_}, {"gate.bias", heads_}};
  }
  /// e^A is uniform up to 16, and softplus(c) log-uniform from 0.001 to 0.1.
  void initialise(Blocks<S> theta, Rng& rng) const override {
    for (std::size_t head = 0; gate_ && head < std::size_t(heads_); ++head) {
      theta[0][head] = S(std::log(16 * (1 - rng.uniform())));
      const double width = std::exp(rng.uniform(std::log(0.001), std::log(0.1)));
      theta[1][head] = S(std::log(std::expm1(width)));
    }
  }

  void forward(Chunk<S>& chunk, const Maps<S>&, CBlocks<S> theta, Scratch<S>& scratch) const override {
    Work work = working_memory(scratch);
    for (Index t = 0; t < chunk.steps; ++t) {
      Mat<S> saved = chunk.at(t);
      const CMat<S> last = chunk.before(t);
      for (Index c = 0; c < saved.cols(); ++c)
        for (Index head = 0; head < heads_; ++head) {
          correct(input_of(saved, c, head), state_of(last, c, head), gate_of(theta, saved, c, head), work);
          Mat<S> state = state_of(saved, c, head);
          state = state_after(work, r_);
          saved.col(c).segment(output_row() + head * value_, value_) = state.lazyProduct(work.keys.col(r_));
        }
    }
  }

  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>&, CBlocks<S> theta, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    Work work = working_memory(scratch);
    const Blocks<S> dtheta = sink.blocks();
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      const Mat<S> saved = chunk.at(t);
      const CMat<S> last = chunk.before(t), g = doutput.cols() > 0 ? chunk.step(doutput, t) : CMat<S>();
      Mat<S> delta = chunk.step(chunk.delta, t);
      if (chunk.dhidden.cols() > 0) {
        Mat<S> hidden = chunk.step(chunk.dhidden, t);
        if (g.cols() > 0)
          hidden = g;
        else
          hidden.setZero();
      }
      for (Index c = 0; c < saved.cols(); ++c)
        for (Index head = 0; head < heads_; ++head) {
          const Gate gate = gate_of(theta, saved, c, head);
          Mat<S> D(chunk.dstate.col(c).data() + head * value_ * key_, value_, key_, value_);
          auto x = input_of(saved, c, head);
          auto out = delta.col(c).segment(head * head_rows(), head_rows());
          correct(x, state_of(last, c, head), gate, work);
          if (g.cols() > 0) {
            const auto read = g.col(c).segment(head * value_, value_);
            work.gradient = state_of(saved, c, head).transpose().lazyProduct(read);
            D += read.lazyProduct(work.keys.col(r_).transpose());
          } else {
            work.gradient.setZero();
          }
          unit_back(x, r_, work, out);
          for (Index j = r_ - 1; j >= 0; --j) correct_back(x, j, D, work, out);
          if (gate_) {
            const S m = clipped(D.cwiseProduct(state_after(work, 0)).sum() * gate.rate, chunk.bound());
            out(head_rows() - 1) = -m * gate.slope;
            if (dtheta.count() > 0) {
              dtheta[0][std::size_t(head)] -= m * gate.width;
              dtheta[1][std::size_t(head)] -= m * gate.slope;
            }
            D *= gate.alpha;
          }
          out = out.unaryExpr([bound = chunk.bound()](S value) { return clipped(value, bound); });
        }
    }
  }

 private:
  struct Gate {
    S alpha = 1, rate = 0, width = 0, slope = 0;  // e^A, softplus(ã + c), σ(ã + c)
  };
  /// keys: k_1 … k_r, q; errors: e_1 … e_r and w; states: S_0 … S_r, a column each.
  struct Work {
    Mat<S> keys, errors, states, gradient, factor;
  };
  Work working_memory(Scratch<S>& scratch) const {
    return {scratch.take(key_, r_ + 1), scratch.take(value_, r_ + 1), scratch.take(value_ * key_, r_ + 1),
            scratch.take(key_, 1), scratch.take(key_, 1)};
  }

  // Rows of a head: keys, values, strengths, query, gate.
  Index value_row(Index j) const { return r_ * key_ + j * value_; }
  Index strength_row(Index j) const { return value_row(r_) + j; }
  /// Of key j, or of the query for j = r.
  Index key_row(Index j) const { return j < r_ ? j * key_ : strength_row(r_); }
  Index head_rows() const { return strength_row(r_) + key_ + (gate_ ? 1 : 0); }

  template <class P> auto input_of(const P& saved, Index c, Index head) const {
    return saved.col(c).segment(head * head_rows(), head_rows());
  }
  template <class P> P state_of(const P& saved, Index c, Index head) const {
    return P(saved.data() + c * saved.outerStride() + state_row() + head * value_ * key_, value_, key_, value_);
  }
  Mat<S> state_after(const Work& work, Index j) const {
    return Mat<S>(work.states.data() + j * work.states.outerStride(), value_, key_, value_);
  }
  template <class P> Gate gate_of(CBlocks<S> theta, const P& saved, Index c, Index head) const {
    if (!gate_) return {};
    const S z = saved(head * head_rows() + head_rows() - 1, c) + theta[1][std::size_t(head)],
            rate = std::exp(theta[0][std::size_t(head)]),
            width = std::max(z, S(0)) + std::log1p(std::exp(-std::abs(z)));
    return {std::exp(-rate * width), rate, width, 1 / (1 + std::exp(-z))};
  }
  template <class Column> S beta(const Column& x, Index j) const {
    return largest_beta_ / (1 + std::exp(-x(strength_row(j))));
  }
  /// φ(x) = factor∘x, for key j or the query.
  template <class Column> void factor_of(const Column& x, Index j, Mat<S> factor) const {
    if (silu_)
      vector_sigmoid<S>(std::span<const S>(x.data() + key_row(j), std::size_t(key_)),
                        std::span<S>(factor.data(), std::size_t(key_)));
    else
      factor.setOnes();
  }
  S length(const Mat<S>& vector) const { return std::sqrt(vector.squaredNorm() + S(1e-12)); }

  /// Keys, errors and states of a step.
  template <class Column, class State> void correct(const Column& x, const State& last, Gate gate, Work& work) const {
    for (Index j = 0; j <= r_; ++j) {
      factor_of(x, j, work.factor);
      auto k = work.keys.col(j);
      k = work.factor.cwiseProduct(x.segment(key_row(j), key_));
      k /= length(view(k));
    }
    state_after(work, 0) = gate.alpha * last;
    for (Index j = 0; j < r_; ++j) {
      const auto k = work.keys.col(j);
      const Mat<S> before = state_after(work, j);
      auto e = work.errors.col(j);
      e = x.segment(value_row(j), value_) - before.lazyProduct(k);
      state_after(work, j + 1) = before + beta(x, j) * e.lazyProduct(k.transpose());
    }
  }

  /// δ of correction j, and D before it.
  template <class Column, class Delta>
  void correct_back(const Column& x, Index j, Mat<S> D, Work& work, Delta& out) const {
    const S b = beta(x, j);
    const auto k = work.keys.col(j), e = work.errors.col(j);
    auto w = work.errors.col(r_);
    w = D.lazyProduct(k);
    work.gradient = b * (D.transpose().lazyProduct(e) - state_after(work, j).transpose().lazyProduct(w));
    out.segment(value_row(j), value_) = b * w;
    out(strength_row(j)) = w.dot(e) * b * (1 - b / largest_beta_);
    D -= b * w.lazyProduct(k.transpose());
    unit_back(x, j, work, out);
  }

  /// δ of key j, or of the query, from `work.gradient`.
  template <class Column, class Delta> void unit_back(const Column& x, Index j, Work& work, Delta& out) const {
    const auto k = work.keys.col(j), raw = x.segment(key_row(j), key_);
    factor_of(x, j, work.factor);
    auto result = out.segment(key_row(j), key_);
    result = work.factor.cwiseProduct(raw);
    const S norm = length(view(result));
    result = (work.gradient - k * k.dot(work.gradient.col(0))) / norm;
    result.array() *= work.factor.array() * (1 + raw.array() * (1 - work.factor.array()));
  }

  Index n_, heads_, key_, value_, r_;
  bool gate_, silu_;
  S largest_beta_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<DeltaProduct>("delta_product",
                                                  "matrix state that the delta rule corrects several times in a step"))
