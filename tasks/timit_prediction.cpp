// Prediction of speech frame by frame: the levels of the next frame of a TIMIT utterance from those up to now (Wisdom
// et al. 2016; Helfrich et al. 2018).
//
//   16 kHz sound → 8 kHz, 16 bit (signal/resample.hpp) → X[k, t], k = 0 … 128, 62.5 frames a second (signal/stft.hpp)
//   x[k, t] = 10 log₁₀(10⁻⁵ + |X[k, t]|²) dB, not normalised; input x[·, t], target x[·, t + 1], t = 0 … frames − 2
//   loss = mean over the 129 bins and all steps of (o − y)²; the constant predictor is the mean of the training
//   targets. On the test speakers of NLTK's sample it has 124.8 dB², the frame before 47.5 and a first-order
//   autoregression of each bin 42.7 (tests/golden/timit_ar1.py)
//
// At the end the test utterances are put together again from the predicted levels and the phases of the true frames:
// /outcome holds the means of segsnr, stoi and, with an external program, pesq (signal/*.hpp); the first `waveforms`
// are written, next to the true sound.
//
// What released code does instead:
//   mask_average: padded   every sequence counts as long as the longest one of its set, padding with no error: the loss
//                          is diluted (Wisdom et al.; the longest of all test utterances there, of the split here)
//   last_target: silence   one more step, from the last frame to a frame of −50 dB (Wisdom et al.: shifted after
//                          padding)
//   mode: recall_previous  input x[·, t + 1], target x[·, t], no prediction at all (Lezcano-Casado & Martínez-Rubio's
//                          instructions)
#include <cmath>
#include <limits>
#include <mutex>

#include "tasks/signal/levels.hpp"
#include "tasks/signal/pesq.hpp"
#include "tasks/signal/resample.hpp"
#include "tasks/signal/segsnr.hpp"
#include "tasks/signal/stft.hpp"
#include "tasks/signal/stoi.hpp"
#include "timit_task.hpp"

namespace {
using namespace stiefel;

struct PredictionOptions {
  std::string mode = "predict_next", mask_average = "valid", last_target = "none";
  Index waveforms = 4;
  TimitOptions timit;

  void describe(Schema& s) {
    s.field(
         "mode", mode,
         "predict_next: the next frame; recall_previous: the previous frame, as in the instructions of expRNN's code")
        .one_of({"predict_next", "recall_previous"});
    s.field("mask_average", mask_average,
            "steps over which the loss is averaged; valid: those of each utterance; padded: every utterance counts as "
            "long as the longest one of its split, with zero error past its end, as in the code of the full-capacity "
            "uRNN")
        .one_of({"valid", "padded"});
    s.field("last_target", last_target,
            "what follows the last frame; none: it has no target; silence: a frame of −50 dB, as in the code of the "
            "full-capacity uRNN")
        .one_of({"none", "silence"});
    s.field("waveforms", waveforms, "number of test utterances to write as WAV files at the end, predicted and true")
        .at_least(0);
    timit.describe(s);
  }
};

constexpr int rate = 8000;
constexpr double silence = -50, padding = -1000;  // dB; no level is below −50, so −1000 marks a target that is none

template <class S> class TimitPrediction final : public TimitTask<S> {
 public:
  using Options = PredictionOptions;
  TimitPrediction(const Options& options, const TaskContext& context)
      : TimitTask<S>(options.timit, context, "timit_prediction"),
        options_(options),
        sounds_(this->corpus().utterances.size()) {
    check_pesq();
    for (const std::size_t i : this->used()) sounds_[i] = telephone(this->sound(i));
    for (const Split split : {Split::train, Split::validation, Split::test})
      longest_[int(split)] = this->longest(this->places(split));
  }

  TaskShape shape() const override {
    return {.input_size = stft_bins,
            .output_size = stft_bins,
            .steps = *std::max_element(std::begin(longest_), std::end(longest_)),
            .training_set = Index(this->places(Split::train).size()),
            .predicts_inputs = options_.mode == "predict_next"};
  }

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    if (!padded()) return mean_square(output, targets, doutput);
    const std::vector<S> weights = valid_weights(targets);
    return mean_square(output, {targets.values, targets.labels, weights}, doutput);
  }

  /// The metric counts only valid frames; its column for the validation split is valid_valid_loss.
  std::vector<Metric> metrics() const override {
    if (!padded()) return {};
    return {{"valid_loss", false}};
  }
  /// The loss as it is with `mask_average: valid`.
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override {
    if (!padded()) return;
    const std::vector<S> weights = valid_weights(targets);
    const Targets<S> valid{targets.values, targets.labels, weights};
    metrics[0].sum += mean_square(output, valid, {});
    metrics[0].weight += total_weight(valid);
  }

  double baseline() const override { return statistics().loss; }
  void trivial(Index, std::span<S> output) const override {
    const Eigen::VectorXd& mean = statistics().mean;
    for (std::size_t k = 0; k < output.size(); ++k) output[k] = S(mean(Index(k)));
  }

  static std::unique_ptr<SequenceReader<S>> open(const Options&, const Trained& trained, const std::string& file) {
    const Eigen::MatrixXd inputs = levels(stft(samples_of(telephone(TimitTask<S>::sound_of(file, "")))));
    return TimitTask<S>::reader_of(inputs.template cast<S>(), trained.shape);
  }

  bool reports() const override { return options_.mode == "predict_next"; }
  void report(Index index, const Batch<S>& batch, CMat<S> outputs, Outcome& outcome) const override {
    for (Index b = 0; b < batch.sequences(); ++b) {
      const Index place = index * this->context().batch + b;
      const std::size_t utterance = this->places(Split::test)[std::size_t(place)];
      const std::vector<double> clean = samples_of(utterance);
      const Eigen::MatrixXcd truth = stft(clean);
      Eigen::MatrixXd predicted(stft_bins, truth.cols() - 1);
      for (Index t = 0; t < predicted.cols(); ++t)
        predicted.col(t) = outputs.col(batch.scored(t, b)).template cast<double>();
      const std::vector<double> sound = sound_of_levels(predicted, truth, Index(clean.size()));
      outcome.scalar("segsnr", segmental_snr(clean, sound, rate));
      if (const double score = stoi(clean, sound, rate); std::isfinite(score)) outcome.scalar("stoi", score);
      if (const auto score = pesq(clean, sound, rate)) outcome.scalar("pesq", *score);
      if (place >= options_.waveforms) continue;
      const Utterance& u = this->corpus().utterances[utterance];
      outcome.file(fmt::format("{}_{}_predicted.wav", u.speaker, u.sentence), wav_of(sound, rate));
      outcome.file(fmt::format("{}_{}_true.wav", u.speaker, u.sentence), wav_of(clean, rate));
    }
  }

 protected:
  bool reads_phones() const override { return false; }

  Index steps_of(std::size_t utterance) const override {
    return stft_frames(Index(sounds_[utterance].size())) - (options_.last_target == "none" ? 1 : 0);
  }

  Index batch_steps(Split split, Index longest) const override { return padded() ? longest_[int(split)] : longest; }

  void write(std::size_t utterance, Batch<S>& batch, Index b) const override {
    const Eigen::MatrixXd x = levels_of(utterance);
    const Index steps = steps_of(utterance);
    batch.length(b) = padded() ? batch.steps() : steps;
    const bool ahead = options_.mode == "predict_next";
    for (Index t = 0; t < batch.length(b); ++t) {
      const std::span<S> input = batch.input(t, b), target = batch.target(t, b);
      for (Index k = 0; k < stft_bins; ++k) {
        const double now = t < x.cols() ? x(k, t) : silence, next = t + 1 < x.cols() ? x(k, t + 1) : silence;
        input[std::size_t(k)] = S(ahead ? now : next);
        target[std::size_t(k)] = S(t >= steps ? padding : ahead ? next : now);
      }
    }
  }

 private:
  struct Statistics {
    Eigen::VectorXd mean = Eigen::VectorXd::Zero(stft_bins);
    double loss = 0;
    std::once_flag once;
  };
  struct Sums {
    Eigen::VectorXd values = Eigen::VectorXd::Zero(stft_bins), squares = values;
    double steps = 0;
  };

  bool padded() const { return options_.mask_average == "padded"; }

  static std::vector<S> valid_weights(const Targets<S>& targets) {
    std::vector<S> weights(targets.weights.begin(), targets.weights.end());
    for (std::size_t c = 0; c < weights.size(); ++c)
      if (targets.values(0, Index(c)) < S(padding / 2)) weights[c] = 0;
    return weights;
  }

  /// 8 kHz, 16 bit.
  static std::vector<std::int16_t> telephone(const std::vector<double>& sound) {
    std::vector<std::int16_t> samples;
    for (const double x : resample(sound, 1, 2))
      samples.push_back(std::int16_t(std::lround(std::clamp(x * 32768, -32768., 32767.))));
    return samples;
  }
  std::vector<double> samples_of(std::size_t utterance) const { return samples_of(sounds_[utterance]); }
  static std::vector<double> samples_of(const std::vector<std::int16_t>& sound) {
    std::vector<double> samples(sound.size());
    std::transform(sound.begin(), sound.end(), samples.begin(), [](std::int16_t s) { return double(s) / 32768; });
    return samples;
  }
  Eigen::MatrixXd levels_of(std::size_t utterance) const { return levels(stft(samples_of(utterance))); }

  Sums sums_of_targets(Split split) const {
    Sums sums;
    for (const std::size_t i : this->places(split)) {
      Eigen::MatrixXd x = levels_of(i);
      const Index first = options_.mode == "predict_next" ? 1 : 0, count = steps_of(i),
                  there = std::min(count, x.cols() - first);
      const auto y = x.middleCols(first, there);
      const double beyond = double(count - there);
      sums.values += y.rowwise().sum() + Eigen::VectorXd::Constant(stft_bins, beyond * silence);
      sums.squares += y.rowwise().squaredNorm() + Eigen::VectorXd::Constant(stft_bins, beyond * silence * silence);
      sums.steps += double(count);
    }
    return sums;
  }

  /// Mean of the training targets, and the loss of predicting it on the test split.
  const Statistics& statistics() const {
    std::call_once(statistics_.once, [&] {
      const Split last = last_split(*this);
      const Sums training = sums_of_targets(Split::train), judged = sums_of_targets(last);
      Eigen::VectorXd& mean = statistics_.mean;
      mean = training.values / training.steps;
      statistics_.loss =
          ((judged.squares - 2 * mean.cwiseProduct(judged.values)) / judged.steps + mean.cwiseAbs2()).mean();
      if (padded())
        statistics_.loss *= judged.steps / (double(this->places(last).size()) * double(longest_[int(last)]));
    });
    return statistics_;
  }

  Options options_;
  std::vector<std::vector<std::int16_t>> sounds_;  // at 8 kHz, of the utterances that are used
  Index longest_[3] = {};
  mutable Statistics statistics_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<TimitPrediction>("timit_prediction",
                                                     "TIMIT: levels of the next short-time spectrum of speech"))
