// The adding problem: the sum of the two marked numbers among T, asked for at the last step (Hochreiter & Schmidhuber
// 1997).
//
//   input (value ~ U[0, 1), mark ∈ {0, 1})      target = scale · (value₁ + value₂)      loss = (o − target)²
//   Predicting the mean `scale` costs scale² Var(value₁ + value₂) = scale² / 6.
#include <cmath>
#include <string>
#include <utility>

#include "generated.hpp"

namespace {
using namespace stiefel;

struct AddingOptions {
  Index length = 100;
  std::string positions = "halves";
  double target_scale = 1;
  GeneratedOptions data;

  void describe(Schema& s) {
    s.field("length", length, "number of steps T").at_least(2).at_most(1e9);
    s.field(
         "positions", positions,
         "steps of the two marks; halves: [0, T/2) and [T/2, T); sco: [0, (T−1)/2) and [(T−1)/2, T), as in the code of "
         "the "
         "scaled Cayley paper; any: two steps drawn from [0, T−2], the second moved one step later if they are equal, "
         "as in the code of "
         "the oRNN paper")
        .one_of({"halves", "sco", "any"});
    s.field("target_scale", target_scale, "ratio of the target to the sum; 0.5 in the code of Vorontsov et al.")
        .more_than(0);
    data.describe(s);
    s.check(positions != "sco" || length >= 3, "length",
            "must be at least 3 with `positions: sco`, so that the first part is not empty");
  }
};

template <class S> class Adding final : public Generated<S> {
 public:
  using Options = AddingOptions;
  Adding(const Options& options, const TaskContext& context) : Generated<S>(options.data, context), options_(options) {}

  TaskShape shape() const override {
    return {.input = InputKind::dense,
            .input_size = 2,
            .output_size = 1,
            .readout = ReadoutKind::last,
            .steps = options_.length,
            .training_set = this->training_set()};
  }

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    return mean_square(output, targets, doutput);
  }

  std::vector<Metric> metrics() const override { return {{"accuracy"}}; }
  /// An answer is right when it is within 0.04 of the target.
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override {
    for (Index c = 0; c < output.cols(); ++c) {
      const double weight = double(targets.weights[c]);
      if (std::abs(output(0, c) - targets.values(0, c)) < S(0.04)) metrics[0].sum += weight;
      metrics[0].weight += weight;
    }
  }

  double baseline() const override { return options_.target_scale * options_.target_scale / 6; }
  void trivial(Index, std::span<S> output) const override { output[0] = S(options_.target_scale); }

 protected:
  void make(Rng& rng, Batch<S>& batch, Index b) const override {
    const auto [first, second] = marks(rng);
    double sum = 0;
    for (Index t = 0; t < options_.length; ++t) {
      const bool marked = t == first || t == second;
      const double value = rng.uniform();
      const std::span<S> input = batch.input(t, b);
      input[0] = S(value);
      input[1] = S(marked);
      if (marked) sum += value;
    }
    batch.target(options_.length - 1, b)[0] = S(options_.target_scale * sum);
  }

 private:
  std::pair<Index, Index> marks(Rng& rng) const {
    const Index T = options_.length;
    if (options_.positions == "any") {
      const Index first = rng.integer(0, T - 1), second = rng.integer(0, T - 1);
      return {first, first == second ? second + 1 : second};
    }
    const Index middle = options_.positions == "sco" ? (T - 1) / 2 : T / 2;
    const Index first = rng.integer(0, middle);
    return {first, rng.integer(middle, T)};
  }

  Options options_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<Adding>("adding", "adding problem: sum of two marked numbers far apart"))
