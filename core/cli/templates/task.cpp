// Recall: a sequence of random numbers; the target at the last step is the first one.
//
//   x_t ~ U[0, 1)      target = x_1      loss = (o − target)²      predicting 1/2 costs Var(x_1) = 1/12
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class CLASS final : public Task<S> {
 public:
  struct Options {
    Index length = 20;
    void describe(Schema& s) { s.field("length", length, "number of steps T").at_least(1); }
  };
  CLASS(const Options& options, const TaskContext& context) : Task<S>(context), length_(options.length) {}

  TaskShape shape() const override {
    return {
        .input = InputKind::dense, .input_size = 1, .output_size = 1, .readout = ReadoutKind::last, .steps = length_};
  }
  Index batches(Split split) const override {
    return split == Split::train ? 1000 : (held_out + this->context().batch - 1) / this->context().batch;
  }
  // One random stream for each split and sequence: validation and test sets do not depend on the size of a batch.
  void fill(Split split, Index index, Batch<S>& batch) const override {
    const Index size = this->context().batch, first = index * size;
    batch.resize(shape(), split == Split::train ? size : std::min(size, held_out - first), length_);
    for (Index b = 0; b < batch.sequences(); ++b) {
      Rng rng(this->context().seed, name_of(split), std::uint64_t(first + b));
      for (Index t = 0; t < length_; ++t) batch.input(t, b)[0] = S(rng.uniform());
      batch.target(length_ - 1, b)[0] = batch.input(0, b)[0];
    }
  }

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    return mean_square(output, targets, doutput);
  }
  double baseline() const override { return 1.0 / 12; }
  void trivial(Index, std::span<S> output) const override { output[0] = S(0.5); }

 private:
  static constexpr Index held_out = 500;  // sequences of validation and of test
  Index length_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<CLASS>("NAME", "recall the first of many random numbers"))
