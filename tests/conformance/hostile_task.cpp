// A task that is wrong in one way, as `fault` says, and never fills a batch, or fills it with NaN, when asked to.
//
//   gradient          the gradient of the loss is 1 % too long
//   batch             numbers the sequences of every batch from 0, so that held-out sets depend on the batch
//   passes            has fewer batches than its training set fills
//   finite            has 50 training sequences, but says that every one is new
//   cache             keeps the first number of the pass in a member
//   stream            is a stream of symbols that leaves out one between two batches
//   masked            its metric counts columns of weight 0
//   metric_weights    its metric counts columns of weight 2 once
//   random_device     draws from std::random_device in fill
//   constructor       draws from std::random_device when it is created
//   dirty             does not write all that it does not resize
//   labels            writes labels, which shape() does not ask for
//   baseline          claims a baseline that no split has
//   metric_set        sets the weight of its metric instead of adding to it
//   metrics           writes to a second metric that it does not have
//   splits            draws every split from the same numbers, of which there are few
//   no_gradient       does not write the gradient of the loss
//   report_throws, report_column, report_file, report_state   report() throws for the second batch, reads beyond the
//                     outputs, writes the same file for each batch, or counts its calls
//   leak              takes every second validation batch from the training batches
//   masked_nan        no fault: NaN as a target of weight 0
//   small_train       takes the test batches from the few training batches, but only after the thousandth sequence
//   stolen            takes one of fifty training sequences from the test set
//   tail              takes the test batches from the last training batches, of which there are many
//   overlap           takes the first ten test sequences from the end of the validation sequences
//   selected          takes the test batches from the validation batches
//   nan_late, nan_metric   NaN in the seventh training batch, or as the sum of its metric
//   next, targets, inputs   its targets are the next inputs, all targets are 0, or all inputs are
//   seed              draws the same batches for every seed
//   next_seed         numbers its sequences from the seed on, so that the next seed has nearly the same
//   form              says that its input has the scale 0
//   reader_steps, reader_throws   opens any file: more steps than asked for, or an exception
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <thread>

#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class HostileTask final : public Task<S> {
 public:
  struct Options {
    std::string fault = "gradient";
    Index stuck_at = -1;
    std::string stuck_in = "train", nan_in = "none";
    void describe(Schema& s) {
      s.field("fault", fault, "what is wrong");
      s.field("stuck_at", stuck_at, "batch that is never filled; -1: none").at_least(-1);
      s.field("stuck_in", stuck_in, "its split").one_of({"train", "validation", "test"});
      s.field("nan_in", nan_in, "split whose inputs are NaN").one_of({"none", "train", "validation", "test"});
    }
  };
  HostileTask(const Options& options, const TaskContext& context)
      : Task<S>(context), options_(options), drawn_(fault("constructor") ? device() : 0) {}

  TaskShape shape() const override {
    if (fault("stream"))
      return {.input = InputKind::symbols,
              .input_size = 100,
              .output_size = 100,
              .labels = true,
              .steps = 4,
              .streams = true,
              .predicts_inputs = true};
    if (fault("next")) return {.input_size = 1, .output_size = 1, .readout = ReadoutKind::every, .steps = 4};
    return {.input_size = 1,
            .output_size = 2,
            .readout = ReadoutKind::last,
            .steps = 4,
            .training_set = fault("passes") ? 60 : 0};
  }
  Index batches(Split split) const override {
    if (split == Split::train) return fault("tail") || fault("stolen") ? 500 : 10;
    const Index size = this->context().batch;
    return (held_out(split) + size - 1) / size;
  }
  void fill(Split split, Index index, Batch<S>& batch) const override {
    while (index == options_.stuck_at && name_of(split) == options_.stuck_in)
      std::this_thread::sleep_for(std::chrono::seconds(1));
    const bool train = split == Split::train, test = split == Split::test;
    const Index size = this->context().batch, first = index * size;
    if (!fault("dirty") || batch.sequences() == 0)
      batch.resize(shape(), train ? size : std::min(size, held_out(split) - first), 4);
    if (fault("stream")) return fill_stream(split, index, batch);
    if (fault("cache") && train) first_of_pass_ = index / batches(split) * batches(split) * size;
    for (Index b = 0; b < batch.sequences(); ++b) {
      const Index number = fault("cache") && train ? first_of_pass_ + first % (batches(split) * size) + b : first + b;
      const bool late = fault("small_train") && test && number >= 1250, tail = fault("tail") && test;
      const bool from_train = late || tail || fault("splits") || (fault("leak") && !train && !test && number % 2 == 1);
      const bool overlaps = fault("overlap") && test && number < 10;
      const bool from_test = fault("stolen") && train && number % 50 == 7;
      Rng rng(fault("seed")        ? 1
              : fault("next_seed") ? this->context().seed + std::uint64_t(number)
                                   : this->context().seed,
              name_of(from_train                  ? Split::train
                      : from_test                 ? Split::test
                      : fault("selected") && test ? Split::validation
                      : overlaps                  ? Split::validation
                                                  : split),
              std::uint64_t(fault("batch")             ? 1000 * index + b
                            : tail                     ? 2450 + number
                            : late                     ? number % 50
                            : from_test                ? number % 500
                            : overlaps                 ? 40 + number
                            : fault("next_seed")       ? 0
                            : fault("finite") && train ? number % 50
                                                       : number));
      for (Index t = 0; t < 4; ++t)
        batch.input(t, b)[0] = name_of(split) == options_.nan_in ? std::numeric_limits<S>::quiet_NaN()
                               : fault("splits")                 ? S(rng.integer(0, 2))
                                                                 : S(rng.uniform());
      S& target = batch.target(3, b)[0];
      if (fault("labels")) batch.label(3, b) = 1;
      target = fault("dirty") ? target + batch.input(0, b)[0] : batch.input(0, b)[0];
      target += S(drawn_ + (fault("random_device") ? device() : 0));
      if (fault("nan_late") && split == Split::train && index == 6) target = std::numeric_limits<S>::quiet_NaN();
      if (fault("masked_nan") && number % 5 == 0) {
        target = std::numeric_limits<S>::quiet_NaN();
        batch.weight(3, b) = 0;
      }
      if (fault("targets")) target = 0;
      for (Index t = 0; t < 4; ++t) {
        if (fault("inputs")) batch.input(t, b)[0] = 0;
        if (fault("next")) batch.target(t, b)[0] = batch.input(std::min<Index>(t + 1, 3), b)[0];
      }
    }
  }
  void fill_stream(Split split, Index index, Batch<S>& batch) const {
    const auto symbol = [&](Index b, Index place) {
      return std::int32_t(Rng(this->context().seed, name_of(split), std::uint64_t(1000 * b + place)).integer(0, 100));
    };
    for (Index b = 0; b < batch.sequences(); ++b)
      for (Index t = 0; t < 4; ++t) {
        batch.symbol(t, b) = symbol(b, 5 * index + t);
        batch.label(t, b) = symbol(b, 5 * index + t + 1);
      }
  }
  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    if (fault("stream")) return softmax_cross_entropy(output, targets, doutput);
    const double value = mean_square(output, targets, fault("no_gradient") ? Mat<S>() : doutput);
    if (doutput.cols() > 0 && fault("gradient")) doutput *= S(1.01);
    return value;
  }
  double baseline() const override { return fault("baseline") ? 1. : std::numeric_limits<double>::quiet_NaN(); }
  bool reports() const override { return options_.fault.starts_with("report"); }
  void report(Index index, const Batch<S>&, CMat<S> outputs, Outcome& outcome) const override {
    if (fault("report_throws") && index > 0) throw std::runtime_error("no second report");
    outcome.scalar("first",
                   double(outputs.data()[fault("report_column") ? outputs.outerStride() * outputs.cols() : 0]));
    outcome.file(fault("report_file") ? "same.txt" : std::to_string(index) + ".txt", "reported");
    if (fault("report_state")) outcome.scalar("calls", double(++calls_));
  }
  DataForm form() const override {
    DataForm form;
    if (fault("form")) form.input_mean = {0}, form.input_scale = {0};
    return form;
  }
  static std::unique_ptr<SequenceReader<S>> open(const Options& options, const Trained& trained, const std::string&) {
    return std::make_unique<Reader>(trained.shape, options.fault == "reader_throws");
  }
  std::vector<Metric> metrics() const override { return {{"near", !fault("direction")}}; }
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override {
    for (Index c = 0; c < output.cols(); ++c) {
      const double weight = fault("masked") ? 1. : double(targets.weights[std::size_t(c)]);
      const double counted = fault("metric_weights") ? double(weight > 0) : weight;
      if (!fault("stream") && std::abs(output(0, c) - targets.values(0, c)) < S(1)) metrics[0].sum += counted;
      metrics[0].weight += weight;
    }
    if (fault("nan_metric")) metrics[0].sum = std::numeric_limits<double>::quiet_NaN();
    if (fault("metric_set")) metrics[0].weight = double(output.cols());
    if (fault("metrics")) metrics.data()[1].weight += 1;
  }

 private:
  /// Sequences of validation or test.
  Index held_out(Split split) const {
    return fault("small_train") && split == Split::test ? 2500 : fault("stolen") ? 500 : 50;
  }
  struct Reader final : SequenceReader<S> {
    Reader(const TaskShape& shape, bool throws) : shape(shape), throws(throws) {}
    bool next() override { return true; }
    bool read(Index steps, Batch<S>& batch) override {
      if (throws) throw std::runtime_error("the sensor is gone");
      batch.resize(shape, 1, steps + 1);
      return true;
    }
    TaskShape shape;
    bool throws;
  };
  bool fault(const char* name) const { return options_.fault == name; }
  static double device() { return double(std::random_device()()) / double(std::random_device::max()); }

  Options options_;
  double drawn_;
  mutable Index calls_ = 0;
  mutable std::atomic<Index> first_of_pass_ = 0;
};
}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<HostileTask>("hostile_task", "task that is wrong in a way to choose"))
