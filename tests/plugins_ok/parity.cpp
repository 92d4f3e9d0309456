// The parity of random bits, as in tests/python/roles/parity.py: bit t of a sequence is the highest bit of splitmix64 of a
// counter, so that both languages make the same bits.
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class Parity final : public Task<S> {
 public:
  struct Options {
    Index length = 30;
    void describe(Schema& s) { s.field("length", length, "number of bits").at_least(1); }
  };
  Parity(const Options& options, const TaskContext& context) : Task<S>(context), length_(options.length) {}

  TaskShape shape() const override {
    return {.input_size = 1, .output_size = 2, .readout = ReadoutKind::last, .labels = true, .steps = length_};
  }
  Index batches(Split split) const override { return split == Split::train ? 100 : 4; }
  void fill(Split split, Index index, Batch<S>& batch) const override {
    batch.resize(shape(), 50, length_);
    for (Index b = 0; b < 50; ++b) {
      bool odd = false;
      for (Index t = 0; t < length_; ++t) {
        const bool bit = random(std::uint64_t(((index * 3 + Index(split)) * 50 + b) * length_ + t)) >> 63;
        batch.input(t, b)[0] = bit ? S(1) : S(-1);
        odd ^= bit;
      }
      batch.label(length_ - 1, b) = odd;
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

 private:
  std::uint64_t random(std::uint64_t counter) const {
    std::uint64_t x = this->context().seed * 0xd1342543de82ef95 + (counter + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  Index length_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<Parity>("parity", "the parity of random bits"))
