// Copy memory: S symbols of an alphabet of K, T steps later to be repeated (Hochreiter & Schmidhuber 1997; Arjovsky et
// al. 2016).
//
//   Symbols: 0 blank, 1 … K data, K + 1 delimiter. T + 2S steps; S = 10, K = 8 in the literature. s: the data.
//   A         input s, 0 × (T − 1), delimiter, 0 × S          target 0 × (T + S), s: recall a step after the delimiter
//   B         input s, 0 × T, delimiter, 0 × (S − 1)          target the same: recall begins at the delimiter
//   C         input s, 0 × (T − 1), delimiter × (S + 1)       target the same
//   variable  A with the delimiter at a random step of S + 1 … T + S − 1, recall right after it, 0 from then on
//
// A predictor that knows the step but not the past meets a blank with probability 1 − q_t, each datum with q_t / K; its
// loss
//   1/(T + 2S) Σ_t [−q_t ln(q_t / K) − (1 − q_t) ln(1 − q_t)]  is  S ln K / (T + 2S) where the delimiter stands still.
#include <algorithm>
#include <cmath>
#include <string>

#include "generated.hpp"

namespace {
using namespace stiefel;

struct CopyOptions {
  Index length = 100, symbols = 10, alphabet = 8;
  std::string variant = "A", encoding = "onehot";
  bool delimiter_output = false;
  GeneratedOptions data;

  void describe(Schema& s) {
    s.field("length", length, "steps T between the data and their recall").at_least(1).at_most(1e9);
    s.field("symbols", symbols, "number of symbols to remember").at_least(1).at_most(1e9);
    s.field("alphabet", alphabet, "number of different symbols").at_least(2).at_most(1e9);
    s.field("variant", variant,
            "A: recall begins one step after the delimiter; B: at the delimiter; C: the delimiter is shown during the "
            "whole recall; "
            "variable: A with the delimiter at a random step")
        .one_of({"A", "B", "C", "variable"});
    s.field("encoding", encoding,
            "onehot: a unit vector per step; scalar: one number, data 1, 2, …, blank 0, delimiter −1")
        .one_of({"onehot", "scalar"});
    s.field("delimiter_output", delimiter_output,
            "whether there is also an output for the delimiter, which is never a target (10 outputs, not 9)");
    data.describe(s);
    s.check(variant != "variable" || length >= 2, "length", "must be at least 2 with `variant: variable`");
  }
};

template <class S> class Copy final : public Generated<S> {
 public:
  using Options = CopyOptions;
  Copy(const Options& options, const TaskContext& context) : Generated<S>(options.data, context), options_(options) {}

  TaskShape shape() const override {
    const bool scalar = options_.encoding == "scalar";
    return {.input = scalar ? InputKind::dense : InputKind::symbols,
            .input_size = scalar ? 1 : options_.alphabet + 2,
            .output_size = options_.alphabet + 1 + Index(options_.delimiter_output),
            .readout = ReadoutKind::every,
            .labels = true,
            .steps = options_.length + 2 * options_.symbols,
            .training_set = this->training_set()};
  }

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    return softmax_cross_entropy(output, targets, doutput);
  }

  std::vector<Metric> metrics() const override { return {{"accuracy"}}; }
  /// Over the steps of the recall only, which are those whose target is not blank.
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override {
    each_answer<S>(output, targets, [&](Index c, const Ratio& answer) {
      if (targets.labels[c] != 0) metrics[0] += answer;
    });
  }

  double baseline() const override {
    const auto information = [](double p) { return p > 0 ? -p * std::log(p) : 0; };
    const Index steps = shape().steps;
    double sum = 0;
    for (Index t = 0; t < steps; ++t) {
      const double q = recalled(t), K = double(options_.alphabet);
      sum += information(1 - q) + K * information(q / K);
    }
    return sum / double(steps);
  }

  void trivial(Index t, std::span<S> output) const override {
    const auto logit = [](double p) { return S(std::log(std::max(p, 1e-30))); };
    const double q = recalled(t);
    std::fill(output.begin(), output.end(), logit(0));
    output[0] = logit(1 - q);
    std::fill_n(output.begin() + 1, options_.alphabet, logit(q / double(options_.alphabet)));
  }

 protected:
  void make(Rng& rng, Batch<S>& batch, Index b) const override {
    const Index S0 = options_.symbols, T = options_.length;
    const bool random = options_.variant == "variable";
    const Index delimiter = random ? rng.integer(S0 + 1, T + S0) : options_.variant == "B" ? T + S0 : T + S0 - 1;
    const Index recall = random ? delimiter + 1 : T + S0;
    for (Index i = 0; i < S0; ++i) {
      const auto symbol = static_cast<std::int32_t>(rng.integer(1, options_.alphabet + 1));
      show(batch, i, b, symbol);
      batch.label(recall + i, b) = symbol;
    }
    const Index delimiters = options_.variant == "C" ? S0 + 1 : 1;
    for (Index i = 0; i < delimiters; ++i)
      show(batch, delimiter + i, b, static_cast<std::int32_t>(options_.alphabet + 1));
  }

 private:
  void show(Batch<S>& batch, Index t, Index b, std::int32_t symbol) const {
    if (options_.encoding == "onehot")
      batch.symbol(t, b) = symbol;
    else
      batch.input(t, b)[0] = symbol > options_.alphabet ? S(-1) : S(symbol);
  }

  /// q_t, the probability that step t is one of the recall.
  double recalled(Index t) const {
    const Index S0 = options_.symbols, T = options_.length;
    if (options_.variant != "variable") return t >= T + S0 ? 1 : 0;
    const Index earliest = std::max(t - S0, S0 + 1),
                latest = std::min(t - 1, T + S0 - 1);  // delimiters that put t into the recall
    return double(std::max<Index>(latest - earliest + 1, 0)) / double(T - 1);
  }

  Options options_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<Copy>("copy", "copy memory: repeat symbols after a long delay"))
