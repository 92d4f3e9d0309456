// The text "abcäabcä…" from a random place on: a task with an alphabet, and with a report of what a network writes.
#include <algorithm>
#include <array>
#include <cmath>

#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

const std::array<const char*, 4> characters{"a", "b", "c", "ä"};

template <class S> class RoundText final : public Task<S> {
 public:
  struct Options {
    Index length = 12, batches = 3;
    void describe(Schema& s) {
      s.field("length", length, "steps of a sequence; every second one is a step shorter").at_least(2);
      s.field("batches", batches, "batches in a training pass").at_least(1);
    }
  };
  RoundText(const Options& options, const TaskContext& context) : Task<S>(context), options_(options) {}

  TaskShape shape() const override {
    return {.input = InputKind::symbols,
            .input_size = 4,
            .output_size = 4,
            .labels = true,
            .steps = options_.length,
            .predicts_inputs = true};
  }
  Index batches(Split split) const override {
    const Index size = this->context().batch;
    return split == Split::train ? options_.batches : (held_out + size - 1) / size;
  }
  void fill(Split split, Index index, Batch<S>& batch) const override {
    const Index size = this->context().batch, first = index * size;
    batch.resize(shape(), split == Split::train ? size : std::min(size, held_out - first), options_.length);
    for (Index b = 0; b < batch.sequences(); ++b) {
      Rng rng(this->context().seed, std::string("round ") + name_of(split), std::uint64_t(first + b));
      const std::int64_t place = rng.integer(0, 4);
      batch.length(b) = options_.length - (first + b) % 2;
      for (Index t = 0; t < options_.length; ++t) {
        batch.symbol(t, b) = std::int32_t((place + t) % 4);
        batch.label(t, b) = std::int32_t((place + t + 1) % 4);
      }
    }
  }
  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    return softmax_cross_entropy(output, targets, doutput);
  }
  double baseline() const override { return std::log(4.0); }
  std::vector<std::string> alphabet() const override { return {characters.begin(), characters.end()}; }

  bool reports() const override { return true; }
  void report(Index index, const Batch<S>& batch, CMat<S> outputs, Outcome& outcome) const override {
    std::string text;
    for (Index b = 0; b < batch.sequences(); ++b) {
      for (Index t = 0; t < batch.length(b); ++t) {
        Index likeliest;
        outputs.col(batch.scored(t, b)).maxCoeff(&likeliest);
        text += characters[std::size_t(likeliest)];
        outcome.scalar("right", likeliest == (batch.symbols()[std::size_t(t * batch.sequences() + b)] + 1) % 4);
      }
      for (Index t = batch.length(b); t < batch.steps(); ++t)
        outcome.scalar("padding", double(outputs.col(batch.scored(t, b)).norm()));
      text += "\n";
    }
    outcome.file("written_" + std::to_string(index) + ".txt", text);
  }

 private:
  static constexpr Index held_out = 10;  // sequences of validation and of test
  Options options_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<RoundText>("round_text", "four characters in turn"))
