// Gradient descent with momentum, wrong in one way, as `fault` says.
//
//   saves_nothing   does not save its velocity
//   forgets         saves its velocity for 300 steps only
//   allocation      allocates in step()
//   constructor     cannot be made
//   shared          blocks share their working memory
//   columns         never moves blocks of one column
//   nan             writes NaN
//   half            moves the first half of each block only
//   panels          moves whole panels of 1,024 entries only, where a block has more than eight
//   decay           no fault: makes flat blocks shorter before each step whose gradient is not 0, as weight decay does
//   large           never moves orthogonal blocks of more than 8 rows
//   size            finds the velocity of a block by its size
//   late            halves the parameters at step 1,000
//   origin          has a rate in proportion to the norm of the parameters
//   first_rate      keeps the rate of its first step
//   refuses         refuses every block
#include <algorithm>
#include <limits>
#include <stdexcept>

#include <stiefel/linear_algebra.hpp>
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class HostileOptimizer final : public Optimizer<S> {
 public:
  struct Options {
    std::string fault = "saves_nothing";
    void describe(Schema& s) { s.field("fault", fault, "what is wrong"); }
  };
  explicit HostileOptimizer(const Options& options) : options_(options), working_(Vector<S>::Zero(20000)) {
    if (fault("constructor")) throw std::runtime_error("no optimizer today");
  }

  bool moves(Manifold m) const override { return m == Manifold::flat || (fault("large") && m == Manifold::orthogonal); }
  void attach(const std::vector<BlockSpec>& blocks) override {
    if (fault("refuses") && !blocks.empty()) throw Error("no block suits this optimizer");
    blocks_ = blocks;
    for (const BlockSpec& block : blocks) velocity_.push_back(Vector<S>::Zero(block.size));
    steps_.assign(blocks.size(), 0);
  }
  void step(Index block, double rate, std::span<S> theta, std::span<const S> gradient) override {
    const BlockSpec& spec = blocks_[std::size_t(block)];
    if (fault("nan")) return as_vector(theta).setConstant(std::numeric_limits<S>::quiet_NaN()), void();
    if (fault("columns") && spec.cols <= 1) return;
    if (spec.manifold == Manifold::orthogonal) {
      if (spec.rows > 8) return;
      Matrix<double> M = as_matrix(theta, spec.rows, spec.cols).template cast<double>();
      M -= rate * as_matrix(gradient, spec.rows, spec.cols).template cast<double>();
      polar_factor(view(M));
      as_matrix(theta, spec.rows, spec.cols) = M.template cast<S>();
      return;
    }
    const auto same_size = [&](const Vector<S>& v) { return v.size() == Index(theta.size()); };
    Vector<S>& v = fault("size") ? *std::ranges::find_if(velocity_, same_size) : velocity_[std::size_t(block)];
    if (first_rate_ == 0) first_rate_ = rate;
    if (fault("first_rate")) rate = first_rate_;
    if (++steps_[std::size_t(block)] == 1000 && fault("late")) as_vector(theta) /= S(2);
    if (fault("origin")) rate *= double(as_vector(theta).norm());
    if (fault("decay") && !as_vector(gradient).isZero(0)) as_vector(theta) *= S(1 - 0.1 * rate);
    v = S(0.9) * v - S(rate) * as_vector(gradient);
    if (fault("allocation")) {
      const Vector<S> copy = v;
      as_vector(theta) += copy;
    } else if (fault("shared")) {
      working_.head(v.size()) = v;
      as_vector(theta) += working_.head(v.size());
    } else {
      const Index whole_panels = v.size() / 1024 * 1024;
      const Index moved = fault("half")                                 ? (v.size() + 1) / 2
                          : fault("panels") && whole_panels >= 8 * 1024 ? whole_panels
                                                                        : v.size();
      as_vector(theta).head(moved) += v.head(moved);
    }
  }
  void serialise(Archive& archive) override {
    if (fault("saves_nothing")) return;
    archive.value("first_rate", first_rate_);
    for (std::size_t i = 0; i < velocity_.size(); ++i) {
      archive.value("steps_" + std::to_string(i), steps_[i]);
      if (!fault("forgets") || steps_[i] <= 300) archive.array("velocity_" + std::to_string(i), velocity_[i]);
    }
  }

 private:
  bool fault(const char* name) const { return options_.fault == name; }

  Options options_;
  std::vector<BlockSpec> blocks_;
  std::vector<Vector<S>> velocity_;
  std::vector<std::int64_t> steps_;
  Vector<S> working_;
  double first_rate_ = 0;
};
}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::optimizer<HostileOptimizer>("hostile_optimizer", "momentum that is wrong in a way to choose"))
