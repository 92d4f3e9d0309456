// Group word problems: the running product of elements of a finite group, the measure of how well a network tracks a
// state (Merrill et al. 2024; Grazzi et al. 2025).
//
//   input x_t uniform over the elements, or some of them      target y_t = x_1 x_2 ⋯ x_t      loss = −log softmax(o)[y]
//   The constant predictor knows the distribution p_t of y_t and nothing else: it costs the mean entropy of p_t, which
//   is ln |G| if all elements are inputs.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "generated.hpp"
#include "tasks/group.hpp"

namespace {
using namespace stiefel;

struct GroupWordOptions {
  std::string group = "S3", side = "right", inputs = "all", supervise = "every";
  Index length = 32, min_length = 0;
  std::vector<Index> elements;
  GeneratedOptions data;

  void describe(Schema& s) {
    s.field("group", group, "Z5 (cyclic), S4 (symmetric), A5 (alternating), or a direct product such as Z2xS3");
    s.field("length", length, "number of steps T").at_least(1).at_most(1e9);
    s.field("min_length", min_length,
            "each sequence has a random number of steps between this and `length`; 0: all have `length`")
        .at_least(0);
    s.field("side", side, "side on which the next element is multiplied; right: first the product so far, then x_t")
        .one_of({"right", "left"});
    s.field("inputs", inputs,
            "elements that occur; transpositions: those that move at most two points, the identity among them")
        .one_of({"all", "transpositions"});
    s.field("elements", elements, "numbers of the elements that occur, instead of `inputs`");
    s.field("supervise", supervise, "steps at which the product is asked for").one_of({"every", "last"});
    data.describe(s);
    std::string fault;
    try {
      const Group made(group);
      for (const Index element : elements)
        if (element < 0 || element >= made.order())
          s.check(false, "elements", fmt::format("must be from 0 to {} in {}", made.order() - 1, group));
      s.check(!elements.empty() || used(made).size() > 1 || made.order() == 1, "inputs",
              fmt::format("leaves only the identity of {}", group));
    } catch (const Error& error) {
      fault = error.what();
    }
    s.check(fault.empty(), "group", fault);
    s.check(min_length <= length, "min_length", "must be at most `length`");
  }

  /// The elements that occur.
  std::vector<std::int32_t> used(const Group& of) const {
    std::vector<std::int32_t> all(elements.begin(), elements.end());
    if (!all.empty()) return all;
    for (Index element = 0; element < of.order(); ++element)
      if (inputs == "all" || of.moved(element) <= 2) all.push_back(std::int32_t(element));
    return all;
  }
};

template <class S> class GroupWord final : public Generated<S> {
 public:
  using Options = GroupWordOptions;
  GroupWord(const Options& options, const TaskContext& context)
      : Generated<S>(options.data, context), options_(options), group_(options.group), used_(options.used(group_)) {}

  TaskShape shape() const override {
    return {.input = InputKind::symbols,
            .input_size = group_.order(),
            .output_size = group_.order(),
            .readout = every() ? ReadoutKind::every : ReadoutKind::last,
            .labels = true,
            .steps = options_.length,
            .training_set = this->training_set()};
  }

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    return softmax_cross_entropy(output, targets, doutput);
  }

  /// The share of right answers, at each step, too, and that of sequences without a wrong one.
  std::vector<Metric> metrics() const override {
    if (!every()) return {{"accuracy"}};
    return {{.name = "accuracy", .parts = options_.length, .by_step = true},
            {.name = "sequence_accuracy", .of_sequence = all_right}};
  }
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override {
    each_answer<S>(output, targets, [&](Index c, const Ratio& answer) {
      metrics[every() ? std::size_t(targets.steps[c]) : 0] += answer;
      if (every()) metrics[std::size_t(options_.length + targets.sequences[c])] += answer;
    });
  }

  double baseline() const override {
    double sum = 0, weight = 0;
    each_distribution(options_.length, [&](Index t, const std::vector<double>& p) {
      const Index shorter = options_.length - shortest() + 1;  // number of lengths
      const double of_step = every() ? double(std::min(options_.length - t, shorter)) : t + 1 >= shortest();
      for (const double x : p) sum -= x > 0 ? of_step * x * std::log(x) : 0;
      weight += of_step;
    });
    return sum / weight;
  }
  void trivial(Index t, std::span<S> output) const override {
    each_distribution(t + 1, [&](Index at, const std::vector<double>& p) {
      if (at < t) return;
      for (std::size_t i = 0; i < p.size(); ++i) output[i] = S(std::log(std::max(p[i], 1e-30)));
    });
  }

 protected:
  void make(Rng& rng, Batch<S>& batch, Index b) const override {
    const Index length = shortest() < options_.length ? rng.integer(shortest(), options_.length + 1) : options_.length;
    batch.length(b) = length;
    std::int32_t product = 0;
    for (Index t = 0; t < length; ++t) {
      const std::int32_t x = used_[std::size_t(rng.integer(0, Index(used_.size())))];
      product = next(product, x);
      batch.symbol(t, b) = x;
      if (every() || t + 1 == length) batch.label(t, b) = product;
    }
  }

 private:
  bool every() const { return options_.supervise == "every"; }
  Index shortest() const { return options_.min_length > 0 ? options_.min_length : options_.length; }
  std::int32_t next(std::int32_t product, std::int32_t x) const {
    return options_.side == "right" ? group_.product(product, x) : group_.product(x, product);
  }
  /// Calls visit(t, p_t) for the first `steps` steps. Once p_t no longer changes, it is not computed again.
  template <class F> void each_distribution(Index steps, F&& visit) const {
    std::vector<double> p(std::size_t(group_.order()), 0.), before;
    p[0] = 1;
    for (Index t = 0; t < steps; ++t) {
      if (p != before) {
        before = std::exchange(p, std::vector<double>(p.size(), 0.));
        for (std::size_t y = 0; y < p.size(); ++y)
          for (const std::int32_t x : used_)
            p[std::size_t(next(std::int32_t(y), x))] += before[y] / double(used_.size());
      }
      visit(t, p);
    }
  }

  Options options_;
  Group group_;
  std::vector<std::int32_t> used_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<GroupWord>("group_word", "running product of elements of a finite group"))
