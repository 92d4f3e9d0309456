// n-back: at every step from the n-th on, the symbol of n steps before is asked for.
//
//   x_t uniform of k symbols      label_t = x_{t−n}, the first n outputs masked      without memory the loss is ln k
#include <cmath>

#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class NBack final : public Task<S> {
 public:
  struct Options {
    Index back = 2, symbols = 4, length = 20;
    void describe(Schema& s) {
      s.field("back", back, "number n of steps to look back").at_least(1);
      s.field("symbols", symbols, "number k of symbols").at_least(2);
      s.field("length", length, "number of steps T").at_least(2);
      s.check(back < length, "back", "must be below `length`");
    }
  };
  NBack(const Options& options, const TaskContext& context) : Task<S>(context), options_(options) {}

  TaskShape shape() const override {
    return {.input = InputKind::symbols,
            .input_size = options_.symbols,
            .output_size = options_.symbols,
            .labels = true,
            .steps = options_.length};
  }
  Index batches(Split split) const override {
    return split == Split::train ? 1000 : (held_out + this->context().batch - 1) / this->context().batch;
  }
  void fill(Split split, Index index, Batch<S>& batch) const override {
    const Index size = this->context().batch, first = index * size;
    batch.resize(shape(), split == Split::train ? size : std::min(size, held_out - first), options_.length);
    for (Index b = 0; b < batch.sequences(); ++b) {
      Rng rng(this->context().seed, name_of(split), std::uint64_t(first + b));
      for (Index t = 0; t < options_.length; ++t) {
        batch.symbol(t, b) = std::int32_t(rng.integer(0, options_.symbols));
        if (t >= options_.back)
          batch.label(t, b) = batch.symbol(t - options_.back, b);
        else
          batch.weight(t, b) = 0;
      }
    }
  }

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    return softmax_cross_entropy(output, targets, doutput);
  }
  std::vector<Metric> metrics() const override { return {{"accuracy"}}; }
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override {
    metrics[0].sum += correct(output, targets);
    metrics[0].weight += total_weight(targets);
  }
  double baseline() const override { return std::log(double(options_.symbols)); }
  void trivial(Index, std::span<S> output) const override { std::ranges::fill(output, S(0)); }

 private:
  static constexpr Index held_out = 500;  // sequences of validation and of test
  Options options_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<NBack>("nback", "which symbol was shown n steps ago"))
