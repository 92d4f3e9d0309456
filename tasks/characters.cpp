// Characters, or words: the next one of a text is asked for, or the one `ahead` steps on.
//
//   input c_t, target c_{t+s}; loss −ln p(c_{t+s} | c_1 … c_t) in nats, a mean over targets; bpc = loss / ln 2 in
//     bits per character. Of words, perplexity = exp(loss).
//   sentences  every line is a sequence of its characters but the last s; its end is left out, or is a symbol
//              (end_symbol).
//   stream     the text, line ends included, is cut into as many pieces as a batch has sequences, each into windows of
//              `bptt` steps; batch i + 1 continues batch i, so that the state can be carried. The training text is a
//              circle that begins at a random place.
//
// Penn Treebank: sentences as Mhammedi et al. 2017 (trim: end; average.validation: sentences; ahead: 1 or 5) and as
// Vorontsov et al. 2017 (unk: symbol, end_symbol: true, longest: 75 or 300); stream as Jose, Cissé & Fleuret 2018
// (trim: both).
//
// The constant predictor says the frequencies of the training targets.
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <numbers>

#include <stiefel/item_batches.hpp>
#include <stiefel/plugin.hpp>
#include "tasks/formats/corpus.hpp"

namespace {
using namespace stiefel;

struct AverageOptions {
  std::string train = "characters", validation = "characters", test = "characters";

  void describe(Schema& s) {
    const auto field = [&](const char* key, std::string& value, const char* meaning) {
      s.field(key, value, meaning).one_of({"characters", "sentences"});
    };
    field("train", train,
          "over all characters of a batch, or over its sentences, each with the mean of its characters");
    field("validation", validation,
          "over all characters of the split, or over its sentences, as in the code of the oRNN paper");
    field("test", test, "over all characters of the split, or over its sentences");
  }
};

struct CharacterOptions {
  CorpusOptions text;
  std::string mode = "sentences";
  Index ahead = 1, least_targets = 1, bptt = 30, evaluation_batch = 0;
  bool end_symbol = false;
  AverageOptions average;

  void describe(Schema& s) {
    text.describe(s);
    s.field("mode", mode, "every line a sequence, or contiguous streams over all lines")
        .one_of({"sentences", "stream"});
    s.field("ahead", ahead, "how many characters ahead the target is").at_least(1).at_most(1e9);
    s.field("end_symbol", end_symbol, "sentences: the end of a line is also a symbol; in streams it always is");
    s.field("least_targets", least_targets, "sentences: skip lines with fewer targets; 2 in the code of the oRNN paper")
        .at_least(1)
        .at_most(1e9)
        .only_if(mode == "sentences", "`mode: sentences`");
    s.section("average", average, "sentences: what losses and metrics are averaged over");
    s.field("bptt", bptt, "stream: steps per batch")
        .at_least(1)
        .at_most(1e9)
        .only_if(mode == "stream", "`mode: stream`");
    s.field("evaluation_batch", evaluation_batch, "sequences per batch in validation and test; 0: as in training")
        .at_least(0)
        .at_most(1e9);
    s.check(mode == "sentences" || !end_symbol, "end_symbol",
            "is for `mode: sentences`; in streams the end of a line is always a symbol");
    s.check(mode == "sentences" ||
                (average.train == "characters" && average.validation == "characters" && average.test == "characters"),
            "mode", "must be `sentences` for averages over sentences");
  }
};

/// Lines of a text, each a sequence, or one sequence of all.
template <class S> class TextInputs final : public SequenceReader<S> {
 public:
  TextInputs(const std::string& file, const CharacterOptions& options, const Trained& trained)
      : file_(file),
        options_(options),
        alphabet_(trained.form.outputs, options.text),
        shape_(trained.shape),
        stream_(options.mode == "stream"),
        rules_(line_rules(options.text, stream_ || options.end_symbol, !stream_)),
        text_(file, std::ios::binary) {
    text_.peek();  // of a folder it fails
    if (!text_.is_open() || text_.bad()) throw Error(fmt::format("{}: cannot be read", file), Exit::data);
    rules_.longest = 0;  // which chooses what to train on
  }

  bool next() override {
    if (stream_ && line_ > 0) return false;
    do {
      if (!refill()) return false;
    } while (codes_.empty());
    return true;
  }
  std::string name() const override { return stream_ ? "" : std::to_string(line_); }

  bool read(Index steps, Batch<S>& batch) override {
    while (stream_ && first_ == codes_.size())
      if (!refill()) return false;
    const Index count = std::min(steps, Index(codes_.size() - first_));
    if (count == 0) return false;
    batch.resize(shape_, 1, count);
    for (Index t = 0; t < count; ++t) batch.symbol(t, 0) = codes_[first_ + std::size_t(t)];
    first_ += std::size_t(count);
    return true;
  }

 private:
  /// The next line; false at the end of the text.
  bool refill() {
    std::string line;
    if (!std::getline(text_, line)) return false;
    if (!text_.eof()) line += '\n';
    const std::u32string points = decode_text(line, file_, {byte_, ++line_});
    byte_ += line.size();
    codes_.clear();
    const std::u32string unknown = alphabet_.encode(take_lines(points, rules_).points, codes_);
    if (!unknown.empty()) refuse_unknown(unknown, file_, line_, "");
    first_ = 0;
    return true;
  }

  std::string file_;
  CharacterOptions options_;
  Alphabet alphabet_;
  TaskShape shape_;
  bool stream_;
  LineRules rules_;
  std::ifstream text_;
  std::size_t byte_ = 0, line_ = 0, first_ = 0;
  std::vector<std::uint16_t> codes_;
};

template <class S> class Characters final : public Task<S> {
 public:
  using Options = CharacterOptions;
  Characters(const Options& options, const TaskContext& context)
      : Task<S>(context),
        options_(options),
        stream_(options.mode == "stream"),
        corpus_(load_corpus(options.text, context, stream_ || options.end_symbol, !stream_)) {
    for (const Split split : {Split::train, Split::validation, Split::test})
      stream_ ? arrange_stream(split) : arrange_sentences(split);
    if (!stream_)
      batches_ = std::make_unique<ItemBatches>(context.batch, Index(plan(Split::train).sentences.size()), context.seed,
                                               options.evaluation_batch);
    measure_frequencies();
  }

  TaskShape shape() const override {
    const Index classes = Index(corpus_.alphabet.size());
    return {.input = InputKind::symbols,
            .input_size = classes,
            .output_size = classes,
            .labels = true,
            .steps = longest_,
            .streams = stream_,
            .training_set = Index(plan(Split::train).sentences.size()),
            .predicts_inputs = true};
  }

  Index batches(Split split) const override {
    return stream_ ? (plan(split).piece + options_.bptt - 1) / options_.bptt
                   : batches_->count(split, Index(plan(split).sentences.size()));
  }

  void fill(Split split, Index index, Batch<S>& batch) const override {
    STIEFEL_ASSERT(index >= 0 && (split == Split::train || index < batches(split)));
    stream_ ? fill_stream(split, index, batch) : fill_sentences(split, index, batch);
  }

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    return softmax_cross_entropy(output, targets, doutput);
  }

  std::vector<Metric> metrics() const override {
    return {options_.text.words() ? Metric{"perplexity", false, "1", true} : Metric{"bpc", false, "bits"},
            {"accuracy"}};
  }
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override {
    const double weight = total_weight(targets);
    const double nats = softmax_cross_entropy(output, targets, {});
    metrics[0].sum += options_.text.words() ? nats : nats / std::numbers::ln2;
    metrics[1].sum += correct(output, targets);
    for (Ratio& ratio : metrics) ratio.weight += weight;
  }

  double baseline() const override {
    const Split split = last_split(*this);
    double sum = 0, weights = 0;
    for_targets(split, [&](std::uint16_t code, double weight) {
      sum -= weight * log_frequency_[code];
      weights += weight;
    });
    return sum / weights;
  }
  void trivial(Index, std::span<S> output) const override {
    std::transform(log_frequency_.begin(), log_frequency_.end(), output.begin(), [](double x) { return S(x); });
  }

  std::vector<DataFile> files() const override { return corpus_.files; }

  std::vector<std::string> alphabet() const override {
    return options_.ahead == 1 ? corpus_.alphabet.texts() : std::vector<std::string>();
  }
  DataForm form() const override {
    DataForm form = Task<S>::form();
    form.outputs = corpus_.alphabet.texts();
    if (options_.text.words())  // the blank that joins words is no part of a name
      for (std::string& word : form.outputs)
        if (word.size() > 1 && word.ends_with(' ')) word.pop_back();
    return form;
  }

  static std::unique_ptr<SequenceReader<S>> open(const Options& options, const Trained& trained,
                                                 const std::string& file) {
    return std::make_unique<TextInputs<S>>(file, options, trained);
  }

 private:
  struct Sentence {
    std::size_t begin;
    Index targets;
  };
  struct Plan {
    std::vector<Sentence> sentences;
    Index targets = 0, piece = 0, origin = 0;  // stream: on the whole, of a sequence, and where the text begins
  };

  /// Sequences in a batch.
  Index sequences(Split split) const {
    return split == Split::train || options_.evaluation_batch == 0 ? this->context().batch : options_.evaluation_batch;
  }
  const Plan& plan(Split split) const { return plans_[std::size_t(split)]; }
  const std::vector<std::uint16_t>& codes(Split split) const { return corpus_.parts[std::size_t(split)].codes; }

  void arrange_sentences(Split split) {
    const Corpus::Part& part = corpus_.parts[std::size_t(split)];
    std::vector<Sentence>& sentences = plans_[std::size_t(split)].sentences;
    for (std::size_t i = 0; i + 1 < part.begins.size(); ++i) {
      const Index targets = Index(part.begins[i + 1] - part.begins[i]) - options_.ahead;
      if (targets < options_.least_targets) continue;
      sentences.push_back({part.begins[i], targets});
      longest_ = std::max(longest_, targets);
    }
    refuse_empty(split, !sentences.empty());
  }

  void arrange_stream(Split split) {
    Plan& p = plans_[std::size_t(split)];
    const Index size = Index(codes(split).size()), batch = sequences(split);
    const bool training = split == Split::train;
    p.targets = training ? size : std::max<Index>(size - options_.ahead, 0);
    p.piece = (p.targets + batch - 1) / batch;
    refuse_empty(split, p.targets > 0);
    if (!training && options_.evaluation_batch > p.targets && p.targets > 0)
      throw Error(fmt::format("characters: `evaluation_batch` is {}, but the {} text has only {} targets; lower it.",
                              options_.evaluation_batch, name_of(split), p.targets),
                  Exit::data);
    if (training) p.origin = Rng(this->context().seed, "stream").integer(0, size);
    longest_ = std::max(longest_, std::min(options_.bptt, p.piece));
  }

  /// A split of no characters is one that was not given, but for training and for a part of one file.
  void refuse_empty(Split split, bool filled) const {
    const double fraction =
        split == Split::validation ? options_.text.validation_fraction : options_.text.test_fraction;
    const bool given = split == Split::train || !codes(split).empty() || (!options_.text.file.empty() && fraction > 0);
    if (filled || !given) return;
    throw Error(fmt::format("characters: the {} text has no character {} ahead of another{}; use a longer text.",
                            name_of(split), options_.ahead,
                            stream_ ? "" : " in any line that is kept (`longest`, `least_targets`)"),
                Exit::data);
  }

  void fill_sentences(Split split, Index index, Batch<S>& batch) const {
    const auto write = [&](const Sentence& sentence, Index b) {
      const std::uint16_t* c = codes(split).data() + sentence.begin;
      batch.length(b) = sentence.targets;
      for (Index t = 0; t < sentence.targets; ++t) {
        batch.symbol(t, b) = c[t];
        batch.label(t, b) = c[t + options_.ahead];
        batch.weight(t, b) = S(weight(split, sentence));
      }
    };
    batches_->fill(batch, shape(), split, index, plan(split).sentences, &Sentence::targets, write);
  }

  void fill_stream(Split split, Index index, Batch<S>& batch) const {
    const Plan& p = plan(split);
    const std::vector<std::uint16_t>& text = codes(split);
    const Index streams = sequences(split), size = Index(text.size());
    const Index begin = index % batches(split) * options_.bptt;
    const Index steps = std::min(options_.bptt, p.piece - begin);
    batch.resize(shape(), streams, steps);
    for (Index b = 0; b < streams; ++b)
      for (Index t = 0; t < steps; ++t) {
        const Index place = b * p.piece + begin + t;
        const bool inside = place < p.targets;
        batch.symbol(t, b) = inside ? text[(p.origin + place) % size] : -1;
        batch.label(t, b) = inside ? text[(p.origin + place + options_.ahead) % size] : 0;
        batch.weight(t, b) = S(inside);
      }
  }

  double weight(Split split, const Sentence& sentence) const {
    const AverageOptions& a = options_.average;
    const std::string& over = split == Split::train ? a.train : split == Split::validation ? a.validation : a.test;
    return over == "sentences" ? 1 / double(sentence.targets) : 1;
  }

  /// f(class, weight) for every target of a split.
  template <class F> void for_targets(Split split, F&& f) const {
    const std::vector<std::uint16_t>& text = codes(split);
    for (const Sentence& sentence : plan(split).sentences)
      for (Index t = 0; t < sentence.targets; ++t)
        f(text[sentence.begin + std::size_t(t + options_.ahead)], weight(split, sentence));
    for (Index place = 0; place < plan(split).targets; ++place)
      f(text[std::size_t(place + options_.ahead) % text.size()], 1.0);
  }

  /// Classes that are never a training target, but may be one of another split, count as one target.
  void measure_frequencies() {
    std::vector<double> counts(corpus_.alphabet.size(), 0);
    for_targets(Split::train, [&](std::uint16_t code, double) { counts[code] += 1; });
    double all = 0;
    for (double& count : counts) all += count = std::max(count, 1.0);
    for (const double count : counts) log_frequency_.push_back(std::log(count / all));
  }

  Options options_;
  bool stream_;
  Corpus corpus_;
  std::array<Plan, 3> plans_;
  Index longest_ = 0;
  std::unique_ptr<ItemBatches> batches_;
  std::vector<double> log_frequency_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<Characters>("characters",
                                                "the next character or word of a text, by sentences or in a stream"))
