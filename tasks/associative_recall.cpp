// Associative recall of several queries (MQAR; Arora et al. 2023): pairs of a key and a value, then keys whose values are
// asked for.
//
//   Symbols: 0 blank, 1 … V/2 − 1 keys, V/2 … V − 1 values. T steps, P pairs.
//   input   key value key value …, P different keys and values, then each key once more, blanks elsewhere
//   target  the value of a key, at the step of its query; no other step is scored
//
// A query may stand at every second step after the pairs: at place i = 1, 2, … with a probability in proportion to
// i^(a − 1) among the free places. `fillers: random` puts any symbols in the place of the blanks, keys and values, too.
// The published code does so by default, and its published settings have blanks. A predictor without memory costs
// ln(V − V/2).
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "recall.hpp"

namespace {
using namespace stiefel;

struct AssociativeRecallOptions {
  Index length = 64, pairs = 4, vocabulary = 256;
  double power = 0.01;
  std::string fillers = "blanks";
  GeneratedOptions data;

  void describe(Schema& s) {
    s.field("length", length, "number of steps T").at_least(4).at_most(1e9);
    s.field("pairs", pairs, "number of pairs P").at_least(1).at_most(1e6);
    s.field("vocabulary", vocabulary,
            "number of symbols V: the blank, V/2 − 1 keys, and values; 8192 in the literature")
        .at_least(4)
        .at_most(1e6);
    s.field("power", power, "exponent a of the places of queries; 1: all places are equally likely")
        .more_than(0)
        .at_most(10);
    s.field("fillers", fillers, "what stands at other steps after the pairs").one_of({"blanks", "random"});
    data.describe(s);
    s.check(length >= 4 * pairs, "length",
            "must be at least 4 · `pairs`: two steps for each pair, and two for each query");
    s.check(vocabulary / 2 > pairs, "vocabulary",
            "must be above 2 · `pairs` + 1, so that there are keys for all pairs");
  }
};

template <class S> class AssociativeRecall final : public Recall<S> {
 public:
  using Options = AssociativeRecallOptions;
  AssociativeRecall(const Options& options, const TaskContext& context)
      : Recall<S>(options.data, context, options.vocabulary / 2, options.vocabulary), options_(options) {}

  TaskShape shape() const override {
    return {.input = InputKind::symbols,
            .input_size = options_.vocabulary,
            .output_size = options_.vocabulary,
            .readout = ReadoutKind::every,
            .labels = true,
            .steps = options_.length,
            .training_set = this->training_set()};
  }

 protected:
  void make(Rng& rng, Batch<S>& batch, Index b) const override {
    this->mask(batch, b);
    const Index pairs = options_.pairs, half = options_.vocabulary / 2;
    const auto keys = rng.permutation(half - 1), values = rng.permutation(options_.vocabulary - half);
    if (options_.fillers == "random")
      for (Index t = 2 * pairs; t < options_.length; ++t)
        batch.symbol(t, b) = std::int32_t(rng.integer(0, options_.vocabulary));
    const std::vector<Index> places = draw_places(rng);
    for (Index p = 0; p < pairs; ++p) {
      const auto key = std::int32_t(1 + keys[std::size_t(p)]), value = std::int32_t(half + values[std::size_t(p)]);
      const Index query = 2 * (pairs + places[std::size_t(p)]);
      batch.symbol(2 * p, b) = batch.symbol(query, b) = key;
      batch.symbol(2 * p + 1, b) = value;
      this->ask(batch, query, b, value);
    }
  }

 private:
  /// Different places of the queries, in the order in which they are drawn: the one with the least −ln(u)/weight first
  /// (Efraimidis & Spirakis 2006).
  std::vector<Index> draw_places(Rng& rng) const {
    std::vector<std::pair<double, Index>> waits;
    for (Index i = 0; i < (options_.length - 2 * options_.pairs) / 2; ++i)
      waits.push_back({-std::log(1 - rng.uniform()) * std::pow(double(i + 1), 1 - options_.power), i});
    std::ranges::partial_sort(waits, waits.begin() + options_.pairs);
    std::vector<Index> places;
    for (Index p = 0; p < options_.pairs; ++p) places.push_back(waits[std::size_t(p)].second);
    return places;
  }

  Options options_;
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::task<AssociativeRecall>("associative_recall", "recall the values of keys from pairs (MQAR)"))
