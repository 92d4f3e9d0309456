// Tasks of cognitive neuroscience. Times are in steps of `dt` ms, rounded down; noise is normal with the standard deviation
// noise/√dt at each step: its mean over a time has the same deviation for every dt.
//
//   flip_flop            (Sussillo & Barak 2013) `bits` channels with pulses ±1, all at the first step; targets: the last
//                        pulse of each channel. Squared error; 0 costs 1.
//   perceptual_decision  (Britten et al. 1992) fixation 100, stimulus 2000, response 100 ms. Inputs: fixation, two
//                        evidences 0.5 ± c/200 of a random coherence c; classes: fixate, first, second.
//   delayed_match        (Miller, Erickson & Desimone 1996) fixation 300, sample 500, delay 1000, test 500, response
//                        900 ms. Inputs: fixation, two stimuli; classes: fixate, match, no match.
//   context              (Mante et al. 2013) fixation 300, stimulus 750, delay 300 to 3000, response 100 ms. Inputs:
//                        fixation, two evidences of each of two modalities, a cue for each; classes: fixate, first,
//                        second of the modality with the cue. The delay is exponential with mean 600 ms, cut to its range.
//
// Durations, inputs and noise of the last three are those of NeuroGym (Molano-Mazón et al. 2022), with its explicit
// context; only stimuli have noise here. The fixation input and the cue are on until the response, in which all inputs are
// 0. The class is "fixate" until the response. The loss is cross-entropy with the weight 1 at each step and
// `response_weight` in the response. The constant predictor knows the step.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "generated.hpp"

namespace {
using namespace stiefel;

struct CognitiveOptions {
  std::string kind = "flip_flop";
  Index length = 64, bits = 3;
  double pulses = 0.5, dt = 100, noise = 1, response_weight = 1;
  std::vector<double> coherences;
  bool mask_first = false;
  GeneratedOptions data;

  bool flip_flop() const { return kind == "flip_flop"; }
  bool coherent() const { return kind == "perceptual_decision" || kind == "context"; }

  void describe(Schema& s) {
    constexpr const char* others = "another `kind` than flip_flop";
    s.field("kind", kind, "which task").one_of({"flip_flop", "perceptual_decision", "delayed_match", "context"});
    s.field("length", length, "number of steps").at_least(1).at_most(1e9).only_if(flip_flop(), "`kind: flip_flop`");
    s.field("bits", bits, "number of channels").at_least(1).at_most(1e4).only_if(flip_flop(), "`kind: flip_flop`");
    s.field("pulses", pulses, "probability of a pulse in a channel at a step")
        .more_than(0)
        .at_most(1)
        .only_if(flip_flop(), "`kind: flip_flop`");
    s.field("dt", dt, "duration of a step").more_than(0).at_most(100).units("ms").only_if(!flip_flop(), others);
    s.field("noise", noise, "standard deviation of the noise of the stimuli, times √dt")
        .at_least(0)
        .only_if(!flip_flop(), others);
    s.field("coherences", coherences,
            "percentages that the coherence is drawn from; empty: 0, 6.4, 12.8, 25.6, 51.2, or 5, 15, 50 in `context`")
        .at_least(0)
        .at_most(100)
        .only_if(coherent(), "`kind: perceptual_decision` or `context`");
    s.field("response_weight", response_weight, "weight of the steps of the response; others weigh 1")
        .more_than(0)
        .only_if(!flip_flop(), others);
    s.field("mask_first", mask_first, "leave out the first step of the response").only_if(!flip_flop(), others);
    data.describe(s);
    s.check(!mask_first || kind == "delayed_match" || dt <= 50, "mask_first",
            "leaves no step of a response of 100 ms; choose a `dt` of 50 ms or less");
  }
};

/// The steps of a trial. Stimuli last `sample`, and `test` after the delay.
struct Trial {
  Index fixation, sample, least_delay, most_delay, test, response;
  Index steps(Index delay) const { return fixation + sample + delay + test + response; }
};

template <class S> class Cognitive final : public Generated<S> {
 public:
  using Options = CognitiveOptions;
  Cognitive(const Options& options, const TaskContext& context)
      : Generated<S>(options.data, context), options_(options), trial_(trial()) {
    if (options_.coherences.empty())
      options_.coherences =
          context_kind() ? std::vector<double>{5, 15, 50} : std::vector<double>{0, 6.4, 12.8, 25.6, 51.2};
  }

  TaskShape shape() const override {
    const bool values = options_.flip_flop();
    return {.input = InputKind::dense,
            .input_size = values           ? options_.bits
                          : context_kind() ? 7
                                           : 3,
            .output_size = values ? options_.bits : 3,
            .readout = ReadoutKind::every,
            .labels = !values,
            .steps = values ? options_.length : trial_.steps(trial_.most_delay),
            .training_set = this->training_set()};
  }

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    return options_.flip_flop() ? mean_square(output, targets, doutput)
                                : softmax_cross_entropy(output, targets, doutput);
  }

  std::vector<Metric> metrics() const override { return {{"accuracy"}}; }
  /// Of flip_flop the share of numbers with the right sign, else that of right answers in the response.
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override {
    if (!options_.flip_flop())
      return each_answer<S>(output, targets, [&](Index c, const Ratio& answer) {
        if (targets.labels[std::size_t(c)] != fixate) metrics[0] += answer;
      });
    for (Index c = 0; c < output.cols(); ++c) {
      const double weight = double(targets.weights[std::size_t(c)]);
      if (weight == 0) continue;
      const auto right = output.col(c).array() * targets.values.col(c).array() > S(0);
      metrics[0] += {weight * double(right.count()), weight * double(right.size())};
    }
  }

  double baseline() const override {
    if (options_.flip_flop()) return 1;
    const auto information = [](double part, double of) { return part > 0 ? -part * std::log(part / of) : 0; };
    double sum = 0, weight = 0;
    for (const auto& [waits, responds] : masses()) {
      const double both = waits + responds;
      sum += information(waits, both) + 2 * information(responds / 2, both);
      weight += both;
    }
    return sum / weight;
  }
  void trivial(Index t, std::span<S> output) const override {
    std::ranges::fill(output, S(0));
    if (options_.flip_flop()) return;
    const Mass mass = masses()[std::size_t(t)];
    const auto logit = [](double p) { return S(std::log(std::max(p, 1e-30))); };
    output[0] = logit(mass.waits);
    output[1] = output[2] = logit(mass.responds / 2);
  }

 protected:
  void make(Rng& rng, Batch<S>& batch, Index b) const override {
    if (options_.flip_flop()) return flip_flop(rng, batch, b);
    const Index delay = draw_delay(rng);
    const Index length = batch.length(b) = trial_.steps(delay);
    const bool match = options_.kind == "delayed_match";
    show(batch, b, 0, length - trial_.response, 0);
    const Index first = trial_.fixation, second = first + trial_.sample + delay;
    std::int32_t answer = 0;
    if (match) {
      const Index sample = rng.integer(0, 2), test = rng.integer(0, 2);
      show(batch, b, first, first + trial_.sample, 1 + sample);
      show(batch, b, second, second + trial_.test, 1 + test);
      blur(rng, batch, b, first, first + trial_.sample, 3);
      blur(rng, batch, b, second, second + trial_.test, 3);
      answer = sample == test ? 1 : 2;
    } else {
      const Index modalities = context_kind() ? 2 : 1, cue = rng.integer(0, modalities);
      for (Index modality = 0; modality < modalities; ++modality) {
        const Index choice = rng.integer(0, 2);
        const double coherence =
            options_.coherences[std::size_t(rng.integer(0, Index(options_.coherences.size())))] / 200;
        for (const Index side : {0, 1})
          show(batch, b, first, first + trial_.sample, 1 + 2 * modality + side,
               0.5 + (side == choice ? coherence : -coherence));
        if (modality == cue) answer = std::int32_t(1 + choice);
      }
      blur(rng, batch, b, first, first + trial_.sample, 1 + 2 * modalities);
      if (context_kind()) show(batch, b, 0, length - trial_.response, 5 + cue);
    }
    for (Index t = length - trial_.response; t < length; ++t) {
      batch.label(t, b) = answer;
      batch.weight(t, b) = response_weight(t, length);
    }
  }

 private:
  static constexpr std::int32_t fixate = 0;
  /// Expected weights at a step of a class that is "fixate", and of one that is not.
  struct Mass {
    double waits = 0, responds = 0;
  };

  bool context_kind() const { return options_.kind == "context"; }
  Trial trial() const {
    const auto steps = [&](double ms) { return Index(ms / options_.dt); };
    if (options_.kind == "delayed_match")
      return {steps(300), steps(500), steps(1000), steps(1000), steps(500), steps(900)};
    if (context_kind()) return {steps(300), steps(750), steps(300), steps(3000), 0, steps(100)};
    return {steps(100), steps(2000), 0, 0, 0, steps(100)};
  }
  S response_weight(Index t, Index length) const {
    return S(options_.mask_first && t == length - trial_.response ? 0 : options_.response_weight);
  }

  /// The share of delays below this many steps.
  double shorter(Index delay) const {
    const double ms = std::clamp(double(delay) * options_.dt, 300., 3000.);
    return (std::exp(-0.5) - std::exp(-ms / 600)) / (std::exp(-0.5) - std::exp(-5.));
  }
  Index draw_delay(Rng& rng) const {
    if (!context_kind()) return trial_.least_delay;
    const double u = rng.uniform(), ms = -600 * std::log(std::exp(-0.5) - u * (std::exp(-0.5) - std::exp(-5.)));
    return std::clamp(Index(ms / options_.dt), trial_.least_delay, trial_.most_delay);
  }
  std::vector<Mass> masses() const {
    std::vector<Mass> all(std::size_t(trial_.steps(trial_.most_delay)));
    for (Index delay = trial_.least_delay; delay <= trial_.most_delay; ++delay) {
      const double share = context_kind() ? shorter(delay + 1) - shorter(delay) : 1;
      const Index length = trial_.steps(delay);
      for (Index t = 0; t < length; ++t)
        if (t < length - trial_.response)
          all[std::size_t(t)].waits += share;
        else
          all[std::size_t(t)].responds += share * double(response_weight(t, length));
    }
    return all;
  }

  /// Input `row` from step `first` to `end` − 1.
  static void show(Batch<S>& batch, Index b, Index first, Index end, Index row, double value = 1) {
    for (Index t = first; t < end; ++t) batch.input(t, b)[std::size_t(row)] = S(value);
  }
  /// Noise on the inputs 1 … rows − 1.
  void blur(Rng& rng, Batch<S>& batch, Index b, Index first, Index end, Index rows) const {
    const double deviation = options_.noise / std::sqrt(options_.dt);
    for (Index t = first; t < end; ++t)
      for (S& x : batch.input(t, b).subspan(1, std::size_t(rows - 1))) x += S(deviation * rng.normal());
  }
  void flip_flop(Rng& rng, Batch<S>& batch, Index b) const {
    for (Index t = 0; t < options_.length; ++t)
      for (std::size_t bit = 0; bit < std::size_t(options_.bits); ++bit) {
        const bool pulse = rng.uniform() < options_.pulses || t == 0;
        S& x = batch.input(t, b)[bit];
        if (pulse) x = S(rng.integer(0, 2) == 1 ? 1 : -1);
        batch.target(t, b)[bit] = pulse ? x : batch.target(t - 1, b)[bit];
      }
  }

  Options options_;
  Trial trial_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<Cognitive>("cognitive", "flip-flop, perceptual decision, delayed match, context"))
