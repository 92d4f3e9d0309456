// Gradient descent along the orthogonal or unitary matrices by Cayley transforms (Tagare 2011; Wisdom, Powers, Hershey,
// Le Roux & Atlas 2016; Vorontsov, Trabelsi, Kadoury & Pal 2017, eq. 8 and 9). M is the block, G its gradient, ∂L/∂Re M
// + i ∂L/∂Im M:
//
//   A = G Mᴴ − M Gᴴ     M ← (I + η/2 A)⁻¹(I − η/2 A) M     dL = −η/2 ‖A‖² to first order
//
// Vorontsov's equation 9 prints a sum, M + (…), which leaves the manifold; the product is meant. The form that
// multiplies from the right, with A = MᴴG − GᴴM, is the same map for a square M. `preconditioner: rms` (natGradRMS of
// the code of Wisdom et al.) divides every entry of G by the root of its running mean square, r ← ρ r + (1 − ρ) g², g /
// (√r + ε), Re and Im apart, before A is formed. Their code divides the four blocks of the gradient of the real 2n × 2n
// form one by one, before they are added to G = G₁₁ + G₂₂ + i(G₂₁ − G₁₂); here G is divided.
//
// At rates such as 1e-6 a step changes most entries of a float block by less than half a unit in the last place.
// `compensated` keeps what rounding takes away, for the next step (Kahan 1965), so that the block moves as one in
// double precision. Published code does not.
//
// A float block drifts from the manifold by rounding, as a random walk of some 4e-8 √n a step: every
// `reorthonormalise_every` steps the nearest matrix of the manifold, found in double precision, takes its place. 100
// steps keep the defect within ten times that of one step and cost less than 1% of the steps; 0 shows the drift as
// published.
#include <stiefel/manifold.hpp>
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class GeodesicCayley final : public Optimizer<S> {
 public:
  struct Options {
    std::string preconditioner = "none";
    double decay = 0.9, epsilon = 1e-8;
    bool compensated = true;
    Index reorthonormalise_every = 100;
    void describe(Schema& s) {
      s.field("preconditioner", preconditioner,
              "none; rms: divide each entry of the gradient by the root of its running mean square")
          .one_of({"none", "rms"});
      s.field("decay", decay, "ρ of the running mean of squares, for `preconditioner: rms`")
          .at_least(0)
          .less_than(1)
          .only_if(preconditioner == "rms", "`preconditioner: rms`");
      s.field("epsilon", epsilon, "ε added to the root, for `preconditioner: rms`")
          .more_than(0)
          .only_if(preconditioner == "rms", "`preconditioner: rms`");
      s.field("compensated", compensated, "carry the rounding error of float blocks over to the next step");
      s.field("reorthonormalise_every", reorthonormalise_every,
              "steps after which the block is replaced by the nearest orthogonal or unitary matrix; 0: never")
          .at_least(0)
          .units("steps");
    }
  };
  explicit GeodesicCayley(const Options& options) : options_(options), rms_(options.preconditioner == "rms") {}

  bool moves(Manifold manifold) const override { return manifold != Manifold::flat; }

  void attach(const std::vector<BlockSpec>& blocks) override {
    blocks_ = blocks;
    steps_.assign(blocks.size(), 0);
    squares_.clear();
    lost_.clear();
    for (const BlockSpec& block : blocks) {
      squares_.push_back(Vector<double>::Zero(rms_ ? block.size : 0));
      lost_.push_back(Vector<S>::Zero(compensates() ? block.size : 0));
    }
  }

  void step(Index block, double rate, std::span<S> theta, std::span<const S> gradient) override {
    const std::size_t i = std::size_t(block);
    const BlockSpec& spec = blocks_[i];
    Vector<S> scaled;
    if (rms_) {
      auto r = squares_[i].array();
      const auto g64 = as_vector(gradient).template cast<double>().array();
      r = options_.decay * r + (1 - options_.decay) * g64.square();
      scaled = (g64 / (r.sqrt() + options_.epsilon)).template cast<S>();
      gradient = {scaled.data(), std::size_t(scaled.size())};
    }
    Vector<S> change(spec.size);
    manifold::with_numbers_of<S>(spec.manifold, [&]<class T>(T) {
      const auto M = manifold::load<T, S>(theta, spec.cols), G = manifold::load<T, S>(gradient, spec.cols);
      manifold::store<T, S>(manifold::cayley_change<T>(manifold::tangent<T>(G, M), rate, M),
                            {change.data(), std::size_t(change.size())});
    });
    add(change, i, theta);
    if (options_.reorthonormalise_every > 0 && ++steps_[i] % options_.reorthonormalise_every == 0)
      manifold::with_numbers_of<double>(spec.manifold, [&]<class T>(T) {
        Vector<double> exact = as_vector(std::span<const S>(theta)).template cast<double>();
        if (compensates()) exact += lost_[i].template cast<double>();
        Matrix<T> M = manifold::load<T, double>({exact.data(), std::size_t(exact.size())}, spec.cols);
        manifold::project<T>(M);
        manifold::store<T, double>(M, {exact.data(), std::size_t(exact.size())});
        as_vector(theta) = exact.template cast<S>();
        if (compensates()) lost_[i] = (exact - as_vector(theta).template cast<double>()).template cast<S>();
      });
  }

  void serialise(Archive& archive) override {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const std::string number = std::to_string(i);
      archive.value("steps_" + number, steps_[i]);
      if (rms_) archive.array("square_" + number, squares_[i]);
      if (compensates()) archive.array("lost_" + number, lost_[i]);
    }
  }

 private:
  bool compensates() const { return options_.compensated && std::is_same_v<S, float>; }

  /// θ + lost + change = θ_new + lost_new, as exactly as S allows.
  void add(const Vector<S>& change, std::size_t block, std::span<S> theta) {
    if (!compensates()) {
      as_vector(theta) += change;
      return;
    }
    Vector<S>& lost = lost_[block];
    for (Index k = 0; k < change.size(); ++k) {
      S& x = theta[std::size_t(k)];
      const S wanted = change[k] + lost[k], before = x;
      x = before + wanted;
      lost[k] = wanted - (x - before);
    }
  }

  Options options_;
  bool rms_;
  std::vector<BlockSpec> blocks_;
  std::vector<std::int64_t> steps_;
  std::vector<Vector<double>> squares_;  // r of each block
  std::vector<Vector<S>> lost_;          // by rounding, of each block
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::optimizer<GeodesicCayley>(
                   "geodesic_cayley", "gradient descent along orthogonal and unitary matrices by Cayley transforms"))
