// sLSTM (Beck, Pöppel, Spanring, Auer, Prudnikova, Kopp, Klambauer, Brandstetter & Hochreiter 2024): an LSTM with an
// exponential input gate, whose cell state is divided by the sum of the gates. ã = V x + b + R h₋ in the order input,
// forget, candidate, output, for each head with maps of its own:
//
//   i = e^ĩ   f = σ(f̃), or e^f̃   z = tanh z̃   o = σ(õ)   c = f∘c₋ + i∘z   n = f∘n₋ + i   h = o∘c/n     c_0 = n_0 = 0
//
// The state holds y = c/n and ℓ = log n in place of c and n, which would overflow, or need the paper's stabilizer:
//
//   λ = log f + ℓ₋   p = σ(ĩ − λ) = i/n   y = y₋ + p∘(z − y₋)   ℓ = log(e^ĩ + e^λ)   h = o∘y
//
// A state y = ℓ = 0 stands for c = n = 0, with p = 1 and ℓ = ĩ, as at the start of a sequence. A step that arrives at
// ℓ = 0 leaves 10⁻³⁰.
//
//   backward   g_h, g_y, g_ℓ = ∂L/∂h, ∂L/∂y, ∂L/∂ℓ, each δ clipped before it is used:
//     G = g_y + g_h∘o   P = G∘(z − y₋)∘p∘(1 − p)   Λ = g_ℓ∘(1 − p) − P
//     δ_i = g_ℓ∘p + P   δ_f = Λ∘(1 − σ(f̃)), or Λ   δ_z = G∘p∘(1 − z²)   δ_o = g_h∘y∘o∘(1 − o)
//     ∂L/∂y₋ = G∘(1 − p)   ∂L/∂ℓ₋ = Λ   ∂L/∂h₋ = Rᵀδ
//
// Saved rows: for each head p, ∂log f/∂f̃, z, o; then h, y, ℓ of all heads.
#include <cmath>
#include <stiefel/plugin.hpp>

namespace {

using namespace stiefel;

template <class S> class Slstm final : public Cell<S> {
 public:
  struct Options {
    Index heads = 1;
    std::string forget_gate = "sigmoid";
    double forget_bias_exponent = 0.3;
    void describe(Schema& s) {
      s.field("heads", heads, "number of heads, between which R has no entries; `hidden` is a multiple of it")
          .at_least(1);
      s.field("forget_gate", forget_gate, "σ(f̃) (sigmoid), or e^f̃ (exponential)").one_of({"sigmoid", "exponential"});
      s.field(
           "forget_bias_exponent", forget_bias_exponent,
           "κ: the forget biases of a head of d units start with 5 − 12 (j/(d − 1))^κ, j = 0 … d − 1; the paper's κ is "
           "0.3 + 1.3 ℓ/(L − 1) in layer ℓ = 0 … L − 1")
          .more_than(0);
    }
  };

  Slstm(const Options& options, CellContext context)
      : Cell<S>(context.real("slstm", "real gates", ", or the cell elman")),
        n_(context.rows()),
        heads_(options.heads),
        size_(n_ / heads_),
        exponential_(options.forget_gate == "exponential"),
        exponent_(options.forget_bias_exponent) {
    if (n_ % heads_ != 0)
      throw Error("slstm needs `hidden`, " + std::to_string(n_) + ", to be a multiple of `heads`, " +
                  std::to_string(heads_) + "; change one of them");
  }

  std::vector<MapSpec> maps() const override {
    std::vector<MapSpec> maps;
    for (Index head = 0; head < heads_; ++head)
      for (const char* gate : {"input_", "forget_", "candidate_", "output_"})
        maps.push_back({gate + std::to_string(head + 1), size_, size_, int(head)});
    return maps;
  }
  Index input_rows() const override { return 4 * n_; }
  Index saved_rows() const override { return 7 * n_; }
  Index output_row() const override { return 4 * n_; }
  Index state_rows() const override { return 3 * n_; }
  void initialise_bias(std::span<S> bias) const override {
    if (bias.empty()) return;
    for (Index head = 0; head < heads_; ++head)
      for (Index j = 0; j < size_; ++j)
        bias[std::size_t((4 * head + 1) * size_ + j)] +=
            S(5 - 12 * std::pow(double(j) / double(std::max<Index>(size_ - 1, 1)), exponent_));
  }

  void forward(Chunk<S>& chunk, const Maps<S>& maps, CBlocks<S>, Scratch<S>& scratch) const override {
    for (Index t = 0; t < chunk.steps; ++t) {
      Mat<S> saved = chunk.at(t);
      const CMat<S> last = chunk.before(t);
      for (Index head = 0; head < heads_; ++head) {
        maps.add(4 * head, 4, hidden(last, head), gates(saved, head), scratch);
        for (Index c = 0; c < saved.cols(); ++c)
          move(gates(saved, head).col(c).data(), hidden(saved, head).col(c).data(), hidden(last, head).col(c).data());
      }
    }
  }

  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S>, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      chunk.prefetch(t - 2);
      const Mat<S> saved = chunk.at(t);
      const CMat<S> last = chunk.before(t);
      Mat<S> delta = chunk.step(chunk.delta, t), g = chunk.receive(t, doutput);
      for (Index head = 0; head < heads_; ++head) {
        Mat<S> g_h = rows_of(g, head * size_, size_), d = gates(delta, head);
        for (Index c = 0; c < saved.cols(); ++c)
          move_back(gates(saved, head).col(c).data(), hidden(saved, head).col(c).data(),
                    hidden(last, head).col(c).data(), g_h.col(c).data(), d.col(c).data(), chunk.bound());
        g_h.setZero();
        maps.add_adjoint(4 * head, 4, d, g_h, scratch);
      }
    }
    for (Index head = 0; head < heads_; ++head)
      sink.map(4 * head, 4, hidden(chunk.all_before(), head), gates(chunk.delta, head));
  }

 private:
  template <class P> P gates(const P& panel, Index head) const { return rows_of(panel, 4 * head * size_, 4 * size_); }
  /// h of a head; y and ℓ follow after n and 2n rows.
  template <class P> P hidden(const P& saved, Index head) const {
    return rows_of(saved, output_row() + head * size_, size_);
  }

  // One head of one column each: its gates, h of the step, h of the step before.

  STIEFEL_SIMD_CLONES void move(S* column, S* h, const S* last) const {
    S *i = column, *f = i + size_, *z = f + size_, *o = z + size_, *y = h + n_, *l = h + 2 * n_;
    const S *last_y = last + n_, *last_l = last + 2 * n_;
    const auto span = [this](S* numbers) { return std::span<S>(numbers, std::size_t(size_)); };
    vector_tanh<S>(span(z), span(z));
    vector_sigmoid<S>(span(o), span(o));
    for (Index k = 0; k < size_; ++k) l[k] = -std::abs(f[k]);
    vector_exp<S>(span(l), span(l));
    for (Index k = 0; k < size_; ++k) {
      const bool fresh = last_y[k] == 0 && last_l[k] == 0;
      const S log_f = exponential_ ? f[k] : std::min(f[k], S(0)) - std::log1p(l[k]);
      const S lambda = fresh ? -std::numeric_limits<S>::infinity() : log_f + last_l[k];
      f[k] = exponential_ ? 1 : (f[k] < 0 ? 1 : l[k]) / (1 + l[k]);
      l[k] = std::max(i[k], lambda);
      i[k] -= lambda;
      y[k] = -std::abs(i[k]);
    }
    vector_exp<S>(span(y), span(y));
    for (Index k = 0; k < size_; ++k) {
      l[k] += std::log1p(y[k]);
      if (l[k] == 0) l[k] = S(1e-30);
      i[k] = (i[k] < 0 ? y[k] : 1) / (1 + y[k]);
      y[k] = last_y[k] + i[k] * (z[k] - last_y[k]);
      h[k] = o[k] * y[k];
    }
  }

  STIEFEL_SIMD_CLONES void move_back(const S* column, const S* h, const S* last, S* g, S* delta, S bound) const {
    const S *p = column, *slope = p + size_, *z = slope + size_, *o = z + size_, *y = h + n_, *last_y = last + n_;
    S *delta_i = delta, *delta_f = delta_i + size_, *delta_z = delta_f + size_, *delta_o = delta_z + size_;
    S *g_y = g + n_, *g_l = g + 2 * n_;
#pragma GCC ivdep
    for (Index k = 0; k < size_; ++k) {
      const S G = g_y[k] + g[k] * o[k], P = G * (z[k] - last_y[k]) * p[k] * (1 - p[k]);
      const S Lambda = g_l[k] * (1 - p[k]) - P;
      delta_i[k] = clipped(g_l[k] * p[k] + P, bound);
      delta_f[k] = clipped(Lambda * slope[k], bound);
      delta_z[k] = clipped(G * p[k] * (1 - z[k] * z[k]), bound);
      delta_o[k] = clipped(g[k] * y[k] * o[k] * (1 - o[k]), bound);
      g_y[k] = G * (1 - p[k]);
      g_l[k] = Lambda;
    }
  }

  Index n_, heads_, size_;
  bool exponential_;
  double exponent_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<Slstm>("slstm", "LSTM with an exponential input gate and a normalized state"))
