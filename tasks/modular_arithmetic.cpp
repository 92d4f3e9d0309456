// Modular arithmetic: the value of an expression modulo m, asked for at its "=" (Beck et al. 2024; Grazzi et al. 2025).
//
//   input 2 * 3 − 4 * 4 + 1 =      target −9 mod 5 = 1, after the last step      loss = −log softmax(o)[target]
//   with brackets ( ( − 3 ) + ( 2 − 4 ) ) =
//   Parity, which those papers have, too, is group_word with `group: Z2, supervise: last`.
//   The uniform guess costs ln m. With *, the value is 0 more often than another, so a guess can be right more often.
//
// Without brackets, a finite state is enough: the total, the product so far and its sign. With brackets, a stack is
// needed. A published length counts the answer and, with brackets, one symbol of padding, too: L of the papers is
// `length` + 1 without brackets and `length` + 2 with them.
#include <algorithm>
#include <cmath>
#include <string>

#include "generated.hpp"
#include "tasks/modular_expression.hpp"

namespace {
using namespace stiefel;

struct ModularArithmeticOptions {
  bool brackets = false;
  std::string operations = "+-*";
  Index modulus = 5, length = 40, min_length = 0;
  GeneratedOptions data;

  void describe(Schema& s) {
    s.field("brackets", brackets, "expressions with nested brackets");
    s.field("operations", operations, "operations that occur, of + - *; published files with brackets have only +-");
    s.field("modulus", modulus, "values are taken modulo this number m").at_least(2).at_most(1000);
    s.field("length", length, "number of steps T; the last is the symbol =").at_least(2).at_most(1e6);
    s.field("min_length", min_length,
            "each sequence has a random number of steps between this and `length`; 0: all have `length`")
        .at_least(0);
    data.describe(s);
    const bool known = operations.find_first_not_of("+-*") == std::string::npos;
    const auto twice = [&](char sign) { return std::ranges::count(operations, sign) > 1; };
    s.check(known && !operations.empty() && std::ranges::none_of(operations, twice), "operations",
            "must have one or more of + - *, each once, e.g. \"+-\"");
    s.check(min_length <= length, "min_length", "must be at most `length`");
    s.check(brackets || length % 2 == 0, "length",
            "must be even without brackets, where digits and operations alternate and = follows");
  }
};

template <class S> class ModularArithmeticTask final : public Generated<S> {
 public:
  using Options = ModularArithmeticOptions;
  ModularArithmeticTask(const Options& options, const TaskContext& context)
      : Generated<S>(options.data, context), options_(options), arithmetic_(options.modulus, options.operations) {}

  TaskShape shape() const override {
    return {.input = InputKind::symbols,
            .input_size = options_.modulus + (options_.brackets ? 6 : 4),
            .output_size = options_.modulus,
            .readout = ReadoutKind::last,
            .labels = true,
            .steps = options_.length,
            .training_set = this->training_set()};
  }

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    return softmax_cross_entropy(output, targets, doutput);
  }

  /// The scaled accuracy (a − 1/m)/(1 − 1/m) is 0 for a uniform guess: a right answer counts 1, a wrong one −1/(m − 1).
  std::vector<Metric> metrics() const override { return {{"accuracy"}, {"scaled_accuracy"}}; }
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override {
    const double right = correct(output, targets), all = total_weight(targets);
    metrics[0].sum += right;
    metrics[0].weight += all;
    metrics[1].sum += right - (all - right) / double(options_.modulus - 1);
    metrics[1].weight += all;
  }

  double baseline() const override { return std::log(double(options_.modulus)); }
  void trivial(Index, std::span<S> output) const override { std::ranges::fill(output, S(0)); }

 protected:
  void make(Rng& rng, Batch<S>& batch, Index b) const override {
    const Index shortest = options_.min_length > 0 ? std::max<Index>(options_.min_length, 2) : options_.length;
    const auto between = [&](Index low, Index high) { return low < high ? rng.integer(low, high + 1) : high; };
    ModularArithmetic::Expression expression =
        options_.brackets ? arithmetic_.nested(rng, between(shortest, options_.length) - 1)
                          : arithmetic_.flat(rng, between((shortest + 1) / 2, options_.length / 2));
    const std::int32_t value = arithmetic_.value(expression);
    expression.push_back(arithmetic_.symbol('='));
    batch.length(b) = Index(expression.size());
    for (Index t = 0; t < batch.length(b); ++t) batch.symbol(t, b) = expression[std::size_t(t)];
    batch.label(batch.length(b) - 1, b) = value;
  }

 private:
  Options options_;
  ModularArithmetic arithmetic_;
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::task<ModularArithmeticTask>("modular_arithmetic", "value of an expression modulo a number"))
