// Adaptive-saturated RNN (Nguyen-Duy, Pham & Nguyen 2023): a tanh that acts in other coordinates, after a scaling that
// is learned. The smaller an entry of D, the more linear is the step.
//
//   z = V x + b + W h₋     p = D z     a = tanh(U p)     h = D⁻¹ Uᵀ a     D = diag(|s| + ε)
//
//   backward   g = ∂L/∂h; e and δ are clipped before they are used:
//     r = D⁻¹ g   e = (1 − a²)∘(U r)   q = Uᵀ e   δ = D q   s̄ = sign(s)∘Σ (q∘z − r∘h)
//     dU = Σ e pᵀ + a rᵀ   dW = Σ δ h₋ᵀ   ∂L/∂h₋ = Wᵀ δ
//
// W and U are the maps transition and saturation; the paper's are orthogonal, and U starts as I. Where s is 0, it stays 0:
// |s| has no slope there. Saved rows: p, a, h. Delta rows: δ, e, a, r.
#include <stiefel/plugin.hpp>

namespace {

using namespace stiefel;

template <class S> class AsRnn final : public Cell<S> {
 public:
  struct Options {
    double a = 0.02, b = 0.02, epsilon = 0.01;
    void describe(Schema& s) {
      s.field("a", a, "smallest initial s");
      s.field("b", b, "largest initial s");
      s.field("epsilon", epsilon, "ε, the smallest possible entry of D").at_least(1e-6);
      s.check(a <= b, "a", "must not be above b");
    }
  };

  AsRnn(const Options& options, CellContext context)
      : Cell<S>(context.real("asrnn", "a real state", ", or the cell elman")), options_(options), n_(context.rows()) {}

  std::vector<MapSpec> maps() const override { return {{"transition", n_, n_, 0}, {"saturation", n_, n_, 1}}; }
  Index input_rows() const override { return n_; }
  Index saved_rows() const override { return 3 * n_; }
  Index output_row() const override { return 2 * n_; }
  Index delta_rows() const override { return 4 * n_; }
  Index scratch(Index) const override { return n_; }

  std::vector<BlockSpec> blocks() const override { return {{"scale", n_}}; }
  void initialise(Blocks<S> theta, Rng& rng) const override {
    for (S& s : theta[0]) s = S(rng.uniform(options_.a, options_.b));
  }
  /// Away from the kink of |s|.
  bool test_point(Blocks<S> theta, Rng& rng) const override {
    for (S& s : theta[0]) s = S(rng.uniform(0.3, 1) * (rng.uniform() < 0.5 ? -1 : 1));
    return true;
  }

  void forward(Chunk<S>& chunk, const Maps<S>& maps, CBlocks<S> theta, Scratch<S>& scratch) const override {
    const Mat<S> D = scaling(theta, scratch);
    for (Index t = 0; t < chunk.steps; ++t) {
      Mat<S> saved = chunk.at(t), p = part(saved, 0), a = part(saved, 1), h = part(saved, 2);
      maps.add(0, 1, part(chunk.before(t), 2), p, scratch);
      p.array().colwise() *= D.col(0).array();
      maps.apply(1, p, a, scratch);
      for (Index j = 0; j < a.cols(); ++j) {
        const std::span<S> column(a.col(j).data(), std::size_t(n_));
        vector_tanh<S>(column, column);
      }
      maps.apply_adjoint(1, a, h, scratch);
      h.array().colwise() /= D.col(0).array();
    }
  }

  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S> theta, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    const Mat<S> D = scaling(theta, scratch);
    const Blocks<S> dtheta = sink.blocks();
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      chunk.prefetch(t - 2);
      const Mat<S> saved = chunk.at(t);
      Mat<S> all = chunk.step(chunk.delta, t), g = chunk.receive(t, doutput);
      Mat<S> delta = part(all, 0), e = part(all, 1), r = part(all, 3);
      part(all, 2) = part(saved, 1);
      r = g.array().colwise() / D.col(0).array();
      maps.apply(1, r, e, scratch);
      for (Index j = 0; j < saved.cols(); ++j) saturate_back(saved.col(j).data(), e.col(j).data(), chunk.bound());
      maps.apply_adjoint(1, e, delta, scratch);
      for (Index j = 0; j < saved.cols(); ++j)
        scale_back(D.data(), saved.col(j).data(), all.col(j).data(), chunk.bound(), theta, dtheta);
      maps.apply_adjoint(0, delta, g, scratch);
    }
    sink.map(0, 1, part(chunk.all_before(), 2), part(chunk.delta, 0));
    sink.map(1, 1, part(chunk.all(), 0), part(chunk.delta, 1));
    sink.map(1, 1, part(chunk.delta, 3), part(chunk.delta, 2));
  }

 private:
  template <class P> P part(const P& panel, Index number) const { return rows_of(panel, number * n_, n_); }

  Mat<S> scaling(CBlocks<S> theta, Scratch<S>& scratch) const {
    Mat<S> D = scratch.take(n_, 1);
    D = as_vector(theta[0]).cwiseAbs().array() + S(options_.epsilon);
    return D;
  }

  // One column each.

  /// e from U r.
  STIEFEL_SIMD_CLONES void saturate_back(const S* saved, S* e, S bound) const {
    const S* a = saved + n_;
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) e[k] = clipped(e[k] * (1 - a[k] * a[k]), bound);
  }

  /// δ from q.
  STIEFEL_SIMD_CLONES void scale_back(const S* D, const S* saved, S* delta, S bound, CBlocks<S> theta,
                                      Blocks<S> dtheta) const {
    const S *p = saved, *h = saved + 2 * n_, *r = delta + 3 * n_;
    if (dtheta.count() > 0) {
      const S* s = theta[0].data();
      S* ds = dtheta[0].data();
#pragma GCC ivdep
      for (Index k = 0; k < n_; ++k) {
        const S slope = delta[k] * p[k] / D[k] - r[k] * h[k];
        ds[k] += s[k] > 0 ? slope : s[k] < 0 ? -slope : 0;
      }
    }
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) delta[k] = clipped(delta[k] * D[k], bound);
  }

  Options options_;
  Index n_;
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::cell<AsRnn>("asrnn", "tanh network with a learned saturation, between two orthogonal maps"))
