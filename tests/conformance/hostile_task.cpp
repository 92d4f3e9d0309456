// A task whose loss has a gradient that is 1 % too long, and which never fills a batch, or fills it with NaN, when
// asked to.
#include <chrono>
#include <limits>
#include <thread>

#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class HostileTask final : public Task<S> {
 public:
  struct Options {
    Index stuck_at = -1;
    std::string stuck_in = "train", nan_in = "none";
    void describe(Schema& s) {
      s.field("stuck_at", stuck_at, "batch that is never filled; -1: none").at_least(-1);
      s.field("stuck_in", stuck_in, "its split").one_of({"train", "validation", "test"});
      s.field("nan_in", nan_in, "split whose inputs are NaN").one_of({"none", "train", "validation", "test"});
    }
  };
  HostileTask(const Options& options, const TaskContext& context) : Task<S>(context), options_(options) {}

  TaskShape shape() const override {
    return {.input_size = 1, .output_size = 2, .readout = ReadoutKind::last, .steps = 4};
  }
  Index batches(Split) const override { return 10; }
  void fill(Split split, Index index, Batch<S>& batch) const override {
    while (index == options_.stuck_at && name_of(split) == options_.stuck_in)
      std::this_thread::sleep_for(std::chrono::seconds(1));
    Rng rng(this->context().seed, name_of(split), std::uint64_t(index));
    batch.resize(shape(), this->context().batch, 4);
    for (Index b = 0; b < batch.sequences(); ++b) {
      for (Index t = 0; t < 4; ++t)
        batch.input(t, b)[0] =
            name_of(split) == options_.nan_in ? std::numeric_limits<S>::quiet_NaN() : S(rng.uniform());
      batch.target(3, b)[0] = batch.input(0, b)[0];
    }
  }
  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    const double value = mean_square(output, targets, doutput);
    if (doutput.cols() > 0) doutput *= S(1.01);
    return value;
  }

 private:
  Options options_;
};
}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<HostileTask>("hostile_task", "task with a wrong gradient of the loss"))
