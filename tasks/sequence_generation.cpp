// Generation of a waveform: without any input, a network puts out an excerpt of a recording sample by sample (Koutník
// et al. 2014; Mhammedi et al. 2017, section 5.1).
//
//   excerpt e: samples start + e·length … start + (e + 1)·length − 1 of the mean of the channels, scaled to [−1, 1]
//   loss = mean of (o − y)²      NMSE = Σ(o − y)² / Σ(y − ȳ)²: predicting the mean has 1
//
// A network without input puts out the same in every sequence of a batch, so one network learns one excerpt. Train,
// validation and test are all that excerpt: what is measured is how well it is stored. The authors take five excerpts
// of 800 samples of a song at 44.1 kHz.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <stiefel/plugin.hpp>
#include "tasks/formats/audio.hpp"
#include "tasks/formats/data_path.hpp"

namespace {
using namespace stiefel;

struct GenerationOptions {
  std::string file, scale = "excerpt";
  Index start = 0, length = 800, excerpt = 0;

  void describe(Schema& s) {
    s.field("file", file, "recording (WAV, FLAC, OGG or SPHERE), a path, or one below the data directory");
    s.field("start", start, "where excerpt 0 begins").at_least(0).units("samples");
    s.field("length", length, "samples per excerpt, one per step").at_least(2).units("samples");
    s.field("excerpt", excerpt, "number of the excerpt, counted from `start`").at_least(0);
    s.field("scale", scale, "what is scaled to [−1, 1]: the excerpt, the whole file, or nothing")
        .one_of({"excerpt", "file", "none"});
  }
};

constexpr const char* mend = "Name another recording with task.file.";

double largest(std::span<const double> x) {
  double most = 0;
  for (const double value : x) most = std::max(most, std::abs(value));
  return most;
}

template <class S> class SequenceGeneration final : public Task<S> {
 public:
  using Options = GenerationOptions;
  SequenceGeneration(const Options& options, const TaskContext& context)
      : Task<S>(context), options_(options), path_(find()) {
    const Audio audio = read_audio(path_, mend);
    const Index held = Index(audio.samples.size());
    rate_ = int(audio.rate);
    if (options_.start >= held || options_.excerpt >= (held - options_.start) / options_.length)
      throw Error(
          fmt::format(
              "{}: {} samples, too few for excerpt {} of {} samples from sample {} on. Choose a smaller task.excerpt, "
              "task.start or task.length.",
              path_, held, options_.excerpt, options_.length, options_.start),
          Exit::data);
    const auto first = audio.samples.begin() + options_.start + options_.excerpt * options_.length;
    excerpt_.assign(first, first + options_.length);
    scale_and_measure(options_.scale == "file" ? largest(audio.samples) : largest(excerpt_));
  }

  TaskShape shape() const override { return {.input = InputKind::none, .output_size = 1, .steps = options_.length}; }

  Index batches(Split) const override { return 1; }

  /// Training has the excerpt as often as a batch has sequences.
  void fill(Split split, Index, Batch<S>& batch) const override {
    batch.resize(shape(), split == Split::train ? this->context().batch : 1, options_.length);
    for (Index b = 0; b < batch.sequences(); ++b)
      for (Index t = 0; t < options_.length; ++t) batch.target(t, b)[0] = S(excerpt_[std::size_t(t)]);
  }

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    return mean_square(output, targets, doutput);
  }

  std::vector<Metric> metrics() const override { return {{"nmse", false}}; }
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override {
    for (Index c = 0; c < output.cols(); ++c) {
      const double weight = double(targets.weights[std::size_t(c)]), y = double(targets.values(0, c));
      if (weight == 0) continue;
      metrics[0].sum += weight * (double(output(0, c)) - y) * (double(output(0, c)) - y);
      metrics[0].weight += weight * (y - mean_) * (y - mean_);
    }
  }

  double baseline() const override { return variance_; }
  void trivial(Index, std::span<S> output) const override { output[0] = S(mean_); }

  /// The excerpt as the network puts it out, and as it was.
  bool reports() const override { return true; }
  void report(Index, const Batch<S>& batch, CMat<S> outputs, Outcome& outcome) const override {
    std::vector<double> generated;
    for (Index t = 0; t < options_.length; ++t) generated.push_back(double(outputs(0, batch.scored(t, 0))));
    outcome.file("generated.wav", wav_of(generated, rate_));
    outcome.file("excerpt.wav", wav_of(excerpt_, rate_));
  }

  std::vector<DataFile> files() const override {
    return {{std::filesystem::path(options_.file).filename().string(), path_}};
  }

 private:
  std::string find() const {
    if (options_.file.empty())
      throw Error::missing(
          "sequence_generation needs a recording: set task.file to the path of a WAV, FLAC, OGG or SPHERE file.");
    return find_own_data(this->context().data_directory, "sequence_generation", options_.file);
  }

  void scale_and_measure(double most) {
    if (options_.scale != "none" && most > 0)
      for (double& x : excerpt_) x /= most;
    for (const double x : excerpt_) mean_ += x / double(options_.length);
    for (const double x : excerpt_) variance_ += (x - mean_) * (x - mean_) / double(options_.length);
    if (const auto [low, high] = std::minmax_element(excerpt_.begin(), excerpt_.end()); *low == *high)
      throw Error(fmt::format("{}: excerpt {} of {} samples from sample {} on is constant, for example silence. Choose "
                              "another task.excerpt or task.start.",
                              path_, options_.excerpt, options_.length, options_.start),
                  Exit::data);
  }

  Options options_;
  std::string path_;
  std::vector<double> excerpt_;
  int rate_ = 0;
  double mean_ = 0, variance_ = 0;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<SequenceGeneration>("sequence_generation",
                                                        "generate part of a recording sample by sample, without input"))
