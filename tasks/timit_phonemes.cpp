// Framewise phoneme classification on TIMIT (Graves & Schmidhuber 2005; Jose et al. 2018).
//
//   input   12 MFCC, log energy and their derivatives, every 10 ms from 25 ms (signal/mfcc.hpp), each of the 26 with the
//           mean 0 and the variance 1 over the training set
//   target  the phone at the middle of the window, of TIMIT's 61 or folded to 39 (formats/phones.hpp)
//   loss    softmax cross-entropy; the constant predictor knows how often each class occurs in the training set
//
// Without weight are windows in a gap of the transcription and, among the 39, the glottal stop q, which is dropped.
#include <cmath>
#include <numeric>

#include "tasks/formats/phones.hpp"
#include "tasks/signal/mfcc.hpp"
#include "timit_task.hpp"

namespace {
using namespace stiefel;

constexpr std::int64_t rate = 16000;

struct PhonemesOptions {
  std::string classes = "61";
  TimitOptions timit;
  PhonemesOptions() {
    timit.test = "complete";
    timit.validation = "held_out";
  }

  void describe(Schema& s) {
    s.field("classes", classes, "61: TIMIT's labels; 39: the usual folding, without the glottal stop q")
        .one_of({"61", "39"});
    timit.describe(s);
  }
};

/// Features of an utterance, 26 a window, and a label each, −1 where none counts.
struct Windows {
  std::vector<float> features;
  std::vector<std::int32_t> labels;

  Index count() const { return Index(labels.size()); }
  float* at(Index window) { return features.data() + window * mfcc_features; }
  const float* at(Index window) const { return features.data() + window * mfcc_features; }
};

template <class S> class TimitPhonemes final : public TimitTask<S> {
 public:
  using Options = PhonemesOptions;
  TimitPhonemes(const Options& options, const TaskContext& context)
      : TimitTask<S>(options.timit, context, "timit_phonemes"),
        options_(options),
        windows_(this->corpus().utterances.size()) {
    for (const std::size_t i : this->used()) windows_[i] = windows_of(this->corpus().utterances[i], this->sound(i));
    normalise();
    count_labels();
    longest_ = this->longest(this->used());
  }

  TaskShape shape() const override {
    return {.input_size = mfcc_features,
            .output_size = classes(),
            .labels = true,
            .steps = longest_,
            .training_set = Index(this->places(Split::train).size())};
  }

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    return softmax_cross_entropy(output, targets, doutput);
  }

  std::vector<Metric> metrics() const override { return {{"frame_error_rate", false}}; }
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override {
    const double weight = total_weight(targets);
    metrics[0].sum += weight - correct(output, targets);
    metrics[0].weight += weight;
  }

  double baseline() const override { return baseline_; }
  void trivial(Index, std::span<S> output) const override {
    std::copy(log_share_.begin(), log_share_.end(), output.begin());
  }

  DataForm form() const override {
    DataForm form;
    form.output = DataForm::Output::softmax;
    if (options_.classes == "61")
      form.outputs.assign(phone_labels.begin(), phone_labels.end());
    else
      form.outputs.assign(folded_phone_labels.begin(), folded_phone_labels.end());
    form.input_mean.assign(mean_.begin(), mean_.end());
    form.input_scale.assign(deviation_.begin(), deviation_.end());
    return form;
  }
  static std::unique_ptr<SequenceReader<S>> open(const Options&, const Trained& trained, const std::string& file) {
    const Eigen::MatrixXd features = features_of(TimitTask<S>::sound_of(file, ""), file, "").template cast<double>();
    const Eigen::ArrayXd mean = array_of(trained.form.input_mean), deviation = array_of(trained.form.input_scale);
    const Eigen::MatrixXd scaled = ((features.colwise() - mean.matrix()).array().colwise() / deviation).matrix();
    return TimitTask<S>::reader_of(scaled.cast<float>().template cast<S>(), trained.shape);
  }

 protected:
  bool reads_phones() const override { return true; }
  Index steps_of(std::size_t utterance) const override { return windows_[utterance].count(); }

  void write(std::size_t utterance, Batch<S>& batch, Index b) const override {
    const Windows& windows = windows_[utterance];
    batch.length(b) = windows.count();
    for (Index t = 0; t < windows.count(); ++t) {
      std::copy_n(windows.at(t), mfcc_features, batch.input(t, b).begin());
      const std::int32_t label = windows.labels[std::size_t(t)];
      batch.label(t, b) = std::max(label, 0);
      if (label < 0) batch.weight(t, b) = 0;
    }
  }

 private:
  Index classes() const {
    return options_.classes == "61" ? Index(phone_labels.size()) : Index(folded_phone_labels.size());
  }

  static Eigen::MatrixXf features_of(const std::vector<double>& sound, const std::string& path,
                                     const std::string& mend) {
    const Eigen::MatrixXf features = mfcc(sound, rate).cast<float>();
    if (features.cols() == 0) NamedFile{path, mend}.refuse("shorter than a window of 25 ms");
    return features;
  }

  Windows windows_of(const Utterance& utterance, const std::vector<double>& sound) const {
    if (utterance.phones.empty())
      throw Error(fmt::format("{}: there is no transcription {}.phn next to it. {}", utterance.audio,
                              utterance.sentence, this->mend()),
                  Exit::data);
    const std::vector<Phone> phones = read_phones(utterance.phones, this->mend());
    // Some of TIMIT's transcriptions end a little behind the sound.
    if (phones.back().end > std::int64_t(sound.size()) + rate / 10)
      throw Error(fmt::format("{}: the transcription ends at sample {}, but {} has only {}. {}", utterance.phones,
                              phones.back().end, utterance.audio, sound.size(), this->mend()),
                  Exit::data);
    const Eigen::MatrixXf features = features_of(sound, utterance.audio, this->mend());
    Windows windows{{features.data(), features.data() + features.size()}, {}};
    for (Index t = 0; t < features.cols(); ++t) {
      const std::int32_t label = phone_at(phones, mfcc_centre(t, rate));
      windows.labels.push_back(label < 0 || options_.classes == "61" ? label : folded_phone(label));
    }
    return windows;
  }

  static Eigen::ArrayXd array_of(const std::vector<double>& numbers) {
    return Eigen::Map<const Eigen::ArrayXd>(numbers.data(), Index(numbers.size()));
  }

  /// Mean 0 and variance 1 of each feature over the training set.
  void normalise() {
    Eigen::ArrayXd sum = Eigen::ArrayXd::Zero(mfcc_features), squares = sum;
    double count = 0;
    const auto array = [](Windows& w, Index t) { return Eigen::Map<Eigen::ArrayXf>(w.at(t), mfcc_features); };
    const auto every = [&](const std::vector<std::size_t>& utterances, auto act) {
      for (const std::size_t i : utterances)
        for (Index t = 0; t < windows_[i].count(); ++t) act(array(windows_[i], t));
    };
    every(this->places(Split::train), [&](auto x) { sum += x.template cast<double>(), ++count; });
    mean_ = sum / count;
    every(this->places(Split::train), [&](auto x) { squares += (x.template cast<double>() - mean_).square(); });
    deviation_ = (squares / count).sqrt().max(1e-8);
    if (const auto& trained = this->context().trained; trained && trained->form.input_mean.size() == mfcc_features)
      mean_ = array_of(trained->form.input_mean), deviation_ = array_of(trained->form.input_scale);
    every(this->used(), [&](auto x) { x = ((x.template cast<double>() - mean_) / deviation_).template cast<float>(); });
  }

  std::vector<double> counts_of_labels(Split split) const {
    std::vector<double> counts(std::size_t(classes()), 0.);
    for (const std::size_t i : this->places(split))
      for (const std::int32_t label : windows_[i].labels)
        if (label >= 0) ++counts[std::size_t(label)];
    return counts;
  }

  /// Logarithms of the classes' shares of the training windows, one window added to each class, and their loss on the
  /// test split.
  void count_labels() {
    const auto sum = [](const std::vector<double>& counts) {
      return std::accumulate(counts.begin(), counts.end(), 0.);
    };
    const std::vector<double> training = counts_of_labels(Split::train), judged = counts_of_labels(last_split(*this));
    for (std::size_t k = 0; k < training.size(); ++k) {
      const double log_share = std::log((training[k] + 1) / (sum(training) + double(training.size())));
      log_share_.push_back(S(log_share));
      baseline_ -= judged[k] * log_share / sum(judged);
    }
  }

  Options options_;
  std::vector<Windows> windows_;     // of the utterances that are used
  Eigen::ArrayXd mean_, deviation_;  // of the features of the training set
  std::vector<S> log_share_;
  double baseline_ = 0;
  Index longest_ = 0;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<TimitPhonemes>("timit_phonemes", "TIMIT: the phoneme of each 10 ms of speech"))
