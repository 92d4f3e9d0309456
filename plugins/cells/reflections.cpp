// A vector state that each input reflects r times, an orthogonal step that depends on the input; one layer can track the
// state of any finite group, because permutations are products of reflections.
//
//   rows of V x + b: k̃_1 … k̃_r (n each), b̃ (r, unless β is 2), u (n, if additive)
//   k = k̃/ν, ν = √(‖k̃‖² + 10⁻³⁰)      β = 2σ(b̃), or 2      y_0 = h₋, or W h₋ with `map`
//   y_j = y_{j−1} − β_j k_j (k_jᵀ y_{j−1})      h = φ(y_r + u)
//
//   backward   g = ∂L/∂y_r = ∂L/∂h ∘ φ', which is also δ_u; then for j = r … 1, with s = k_jᵀ y_{j−1} and w = k_jᵀ g:
//     γ = −β_j (s g + w y_{j−1})      δ_k = (γ − k_j (k_jᵀ γ))/ν      δ_b = −s w β_j (1 − β_j/2)      g ← g − β_j w k_j
//
// Saved rows: those of V x + b, y_0 with `map`, h. Delta rows: those of V x + b, ∂L/∂y_0 with `map`.
#include <cmath>
#include <stiefel/plugin.hpp>

namespace {

using namespace stiefel;

template <class S> class Reflections final : public Cell<S> {
 public:
  struct Options {
    Index reflections = 2;
    std::string beta = "input", nonlinearity = "identity";
    bool additive = false, map = false;
    void describe(Schema& s) {
      s.field("reflections", reflections, "number r of reflections in a step").at_least(1).at_most(1e6);
      s.field("beta", beta, "strength of a reflection: 2σ(b̃), chosen by the input, or 2 (orthogonal)")
          .one_of({"input", "2"});
      s.field("additive", additive,
              "the input is also added to the state; without it, the initial state must not be 0");
      s.field("nonlinearity", nonlinearity, "φ").one_of({"identity", "tanh"});
      s.field("map", map, "a recurrent map acts on the state before the reflections");
    }
  };

  Reflections(const Options& options, CellContext context)
      : Cell<S>(context),
        n_(context.rows()),
        r_(options.reflections),
        chosen_(options.beta == "input"),
        additive_(options.additive),
        tanh_(options.nonlinearity == "tanh"),
        map_(options.map) {}

  std::vector<MapSpec> maps() const override {
    return map_ ? std::vector<MapSpec>{{"", n_, n_, 0}} : std::vector<MapSpec>();
  }
  Index input_rows() const override { return r_ * n_ + (chosen_ ? r_ : 0) + (additive_ ? n_ : 0); }
  Index saved_rows() const override { return output_row() + n_; }
  Index output_row() const override { return input_rows() + (map_ ? n_ : 0); }
  Index delta_rows() const override { return output_row(); }
  Index scratch(Index) const override { return (r_ + 1) * n_; }
  /// β begins near 2, where a step keeps the norm of the state.
  void initialise_bias(std::span<S> bias) const override {
    if (chosen_ && !bias.empty())
      for (S& b : bias.subspan(std::size_t(r_ * n_), std::size_t(r_))) b += S(4);
  }

  void forward(Chunk<S>& chunk, const Maps<S>& maps, CBlocks<S>, Scratch<S>& scratch) const override {
    Mat<S> y = scratch.take(n_, r_ + 1);
    for (Index t = 0; t < chunk.steps; ++t) {
      Mat<S> saved = chunk.at(t);
      const CMat<S> last = rows_of(chunk.before(t), output_row(), n_);
      Mat<S> start = rows_of(saved, map_ ? input_rows() : output_row(), n_);
      if (map_)
        maps.apply(0, last, start, scratch);
      else
        start = last;
      for (Index c = 0; c < saved.cols(); ++c) {
        y.col(0) = start.col(c);
        reflect(saved.col(c), y);
        auto h = saved.col(c).segment(output_row(), n_);
        h = y.col(r_);
        if (additive_) h += saved.col(c).segment(input_rows() - n_, n_);
        if (tanh_) h = h.array().tanh();
      }
    }
  }

  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S>, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    Mat<S> y = scratch.take(n_, r_ + 1);
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      chunk.prefetch(t - 2);
      const Mat<S> saved = chunk.at(t);
      Mat<S> delta = chunk.step(chunk.delta, t), g = chunk.receive(t, doutput);
      const CMat<S> start =
          map_ ? CMat<S>(rows_of(saved, input_rows(), n_)) : rows_of(chunk.before(t), output_row(), n_);
      for (Index c = 0; c < saved.cols(); ++c) {
        y.col(0) = start.col(c);
        reflect(saved.col(c), y);
        if (tanh_) g.col(c).array() *= 1 - saved.col(c).segment(output_row(), n_).array().square();
        if (additive_) delta.col(c).segment(input_rows() - n_, n_) = g.col(c);
        for (Index j = r_ - 1; j >= 0; --j) reflect_back(saved.col(c), y, j, g.col(c), delta.col(c));
      }
      if (map_) rows_of(delta, input_rows(), n_) = g;
      if (const S bound = chunk.message_clip; bound > 0)
        delta = delta.unaryExpr([bound](S x) { return clipped(x, bound); });
      if (map_) maps.apply_adjoint(0, rows_of(delta, input_rows(), n_), g, scratch);
    }
    if (map_) sink.map(0, 1, rows_of(chunk.all_before(), output_row(), n_), rows_of(chunk.delta, input_rows(), n_));
  }

 private:
  static constexpr S tiny = S(1e-30);

  template <class Column> S beta(const Column& saved, Index j) const {
    return chosen_ ? 2 / (1 + std::exp(-saved(r_ * n_ + j))) : S(2);
  }
  /// y_1 … y_r from y_0 in column 0.
  template <class Column> void reflect(const Column& saved, Mat<S> y) const {
    for (Index j = 0; j < r_; ++j) {
      const auto k = saved.segment(j * n_, n_);
      const S factor = beta(saved, j) * k.dot(y.col(j)) / (k.squaredNorm() + tiny);
      y.col(j + 1) = y.col(j) - factor * k;
    }
  }
  template <class Column, class Gradient, class Delta>
  void reflect_back(const Column& saved, CMat<S> y, Index j, Gradient g, Delta delta) const {
    const auto raw = saved.segment(j * n_, n_);
    const S norm = std::sqrt(raw.squaredNorm() + tiny), b = beta(saved, j), s = raw.dot(y.col(j)) / norm,
            w = raw.dot(g) / norm;
    auto out = delta.segment(j * n_, n_);
    out = -b * (s * g + w * y.col(j));
    out = (out - raw * (raw.dot(out) / (norm * norm))) / norm;
    if (chosen_) delta(r_ * n_ + j) = -s * w * b * (1 - b / 2);
    g -= (b * w / norm) * raw;
  }

  Index n_, r_;
  bool chosen_, additive_, tanh_, map_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<Reflections>("reflections", "vector state that each input reflects several times"))
