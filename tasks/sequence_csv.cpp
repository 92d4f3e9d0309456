// A user's own sequences, from CSV files or NumPy arrays: numbers or classes to be predicted at every step or at the
// last one.
//
//   regression      mean square, 1/k Σ_j (o_j − y_j)² a mean over targets; mae: the mean of |o_j − y_j|, in the units
//                   of the file
//   classification  −ln softmax(o)[y], and accuracy; the classes are the different values of the training targets, in
//                   order
//   standard        (x − mean) / standard deviation of each column over the training steps; columns that never change
//                   are only shifted
//
// Steps without a target (an empty field, NaN) are not scored. A predictor without memory says the mean of the training
// targets, or the frequencies of the training classes.
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include <stiefel/item_batches.hpp>
#include <stiefel/plugin.hpp>
#include "tasks/formats/csv_stream.hpp"
#include "tasks/formats/fraction.hpp"
#include "tasks/formats/sequence_set.hpp"

namespace {
using namespace stiefel;

struct SourceOptions : SequenceSource {
  void describe(Schema& s) {
    s.shorthand("file");
    s.field("file", file, "a CSV file with a header, or a .npy array of inputs, N × T × d or N × T");
    s.field("targets", targets, "with a .npy file: array N × T × k or N × T, with `readout: last` N × k or N");
    s.field("lengths", lengths, "with a .npy file: array of the N lengths; empty: all have T steps");
    s.check(!file.empty() || (targets.empty() && lengths.empty()), "file",
            "must be given with `targets` and `lengths`");
    s.check(!is_foreign(file), "file",
            "must be a CSV or .npy file, got " + file + "; save each array with numpy.save, or the table as CSV");
  }
};

struct SequenceCsvOptions {
  SourceOptions data, train, validation, test;
  std::string sequence, separator = ",", kind = "regression", readout = "last", normalisation = "none",
                        target_normalisation = "none";
  std::vector<std::string> features, targets;
  double validation_fraction = 0.1, test_fraction = 0.1;
  Index split_seed = 1;

  void describe(Schema& s) {
    s.section("data", data, "one file with all sequences, which are randomly assigned to the splits");
    s.section("train", train, "training sequences (instead of `data`)");
    s.section("validation", validation, "validation sequences (with `train`)");
    s.section("test", test,
              "test sequences; with `data`, instead of those of `test_fraction`, which are then not used");
    s.field("validation_fraction", validation_fraction, "fraction of the sequences of `data` for validation")
        .at_least(0)
        .less_than(1)
        .only_if(train.file.empty(), "`data`");
    s.field("test_fraction", test_fraction, "fraction of the sequences of `data` for the test")
        .at_least(0)
        .less_than(1)
        .only_if(train.file.empty(), "`data`");
    s.field("split_seed", split_seed,
            "seed of the train/validation/test split of `data`, independent of the run's seed")
        .at_least(0)
        .only_if(train.file.empty(), "`data`");
    s.field("sequence", sequence,
            "CSV: column that names the sequence, whose rows are its steps; empty: the file is one sequence");
    s.field("features", features, "CSV: columns of the input; empty: all that are neither `sequence` nor targets");
    s.field("targets", targets, "CSV: columns of the target");
    s.field("separator", separator, "CSV: separator between fields").one_of({",", ";", "\t", "|", " "});
    s.field("kind", kind, "whether targets are numbers or classes").one_of({"regression", "classification"});
    s.field("readout", readout, "which steps have a target").one_of({"last", "every"});
    s.field("normalisation", normalisation,
            "standardize the inputs by mean and standard deviation of the training sequences")
        .one_of({"none", "standard"});
    s.field("target_normalisation", target_normalisation, "regression: also standardize the targets")
        .one_of({"none", "standard"});
    s.check(data.file.empty() || train.file.empty(), "train",
            "cannot be combined with `data`: name either one file or one for each split");
    s.check(!train.file.empty() || validation.file.empty(), "validation",
            "needs `train`; with `data`, set `validation_fraction` instead");
    s.check(!train.file.empty() || !data.file.empty() || test.file.empty(), "test", "needs `train` or `data`");
    const std::string& first = data.file.empty() ? train.file : data.file;
    s.check(first.empty() || is_npy(first) || is_foreign(first) || !targets.empty(), "targets",
            "must name the columns of the target in a CSV file: `targets: [NAME]`");
    s.check(!train.file.empty() || validation_fraction + test_fraction < 1, "test_fraction",
            "leaves nothing to train on together with `validation_fraction`");
    s.check(kind == "regression" || target_normalisation == "none", "target_normalisation",
            "is for `kind: regression`");
    for (const std::string& target : targets)
      s.check(std::ranges::find(features, target) == features.end(), "features",
              "holds the target " + target + ", which the network would read instead of predicting it");
    s.check(std::ranges::find(targets, sequence) == targets.end(), "targets", "holds the column of `sequence`");
    for (const auto* names : {&features, &targets})
      s.check(std::set<std::string>(names->begin(), names->end()).size() == names->size(),
              names == &features ? "features" : "targets", "names a column twice");
    s.check(kind == "regression" || targets.size() <= 1, "targets", "must be one column for `kind: classification`");
  }
};

/// x ↦ (x − mean) / deviation, row by row.
struct Scaling {
  std::vector<double> mean, deviation;

  /// Scaling by the numbers of `rows` rows in all sequences, without NaN; column(r) names row r in messages.
  template <class F, class G>
  static Scaling of(Index rows, const std::vector<Sequence>& sequences, F&& numbers, G&& column) {
    std::vector<double> count(rows, 0), first(rows, 0), mean(rows, 0), squares(rows, 0);
    std::vector<bool> differs(rows, false);
    for (const Sequence& s : sequences) {
      const std::vector<double>& x = numbers(s);
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (std::isnan(x[i])) continue;
        const std::size_t r = i % std::size_t(rows);
        if (count[r] == 0) first[r] = x[i];
        const double shifted = x[i] - first[r], before = shifted - mean[r];  // exact where the spread is small
        mean[r] += before / ++count[r];
        squares[r] += before * (shifted - mean[r]);
        differs[r] = differs[r] || shifted != 0;
      }
    }
    for (std::size_t r = 0; r < squares.size(); ++r) {
      const double deviation = std::sqrt(squares[r] / std::max(count[r], 1.0));
      if (!std::isfinite(deviation) || (differs[r] && deviation == 0))
        throw Error(
            fmt::format("sequence_csv: {} of the training sequences has numbers whose standard deviation is too "
                        "large or too small for a double; scale them, or correct them.",
                        column(r)),
            Exit::data);
      mean[r] += first[r];
      squares[r] = differs[r] ? deviation : 1;
    }
    return {mean, squares};
  }
  void apply(std::vector<double>& numbers) const {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = (numbers[i] - mean[i % mean.size()]) / deviation[i % mean.size()];
  }
};

/// Features of new sequences in a CSV file, for `predict` only. The rows of a sequence must be consecutive here, while
/// load_sequences() joins those that are not.
template <class S> class PredictionInputs final : public SequenceReader<S> {
 public:
  PredictionInputs(const std::string& file, const SequenceCsvOptions& options, const Trained& trained)
      : rows_(file, options.separator[0]),
        shape_(trained.shape),
        scaling_{trained.form.input_mean, trained.form.input_scale} {
    if (!options.sequence.empty()) sequence_ = rows_.reader().column(options.sequence);
    const std::vector<std::string>& header = rows_.reader().header();
    const auto other = [&](const std::string& name) {
      return name != options.sequence && std::ranges::find(options.targets, name) == options.targets.end();
    };
    std::vector<std::string> features = trained.form.inputs;
    if (features.empty()) std::ranges::copy_if(header, std::back_inserter(features), other);
    for (const std::string& name : features) columns_.push_back(rows_.reader().column(name));
    if (Index(columns_.size()) != shape_.input_size)
      rows_.reader().refuse(0, fmt::format("{} columns are left for the features, but the network was trained with {}",
                                           columns_.size(), shape_.input_size));
    waiting_ = rows_.next(row_);
  }

  bool next() override {
    while (waiting_ && started_ && current() == name_) waiting_ = rows_.next(row_);
    if (!waiting_) return false;
    started_ = true;
    name_ = current();
    if (!seen_.insert(name_).second)
      rows_.reader().refuse(
          row_.front().offset,
          fmt::format("the sequence {} continues here, but its rows must be consecutive", shown(name_)));
    return true;
  }
  std::string name() const override { return name_; }

  bool read(Index steps, Batch<S>& batch) override {
    std::vector<S> inputs;
    Index count = 0;
    for (; count < steps && waiting_ && current() == name_; ++count, waiting_ = rows_.next(row_))
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        const double x = rows_.reader().number(row_[columns_[i]], columns_[i]);
        inputs.push_back(S(scaling_.mean.empty() ? x : (x - scaling_.mean[i]) / scaling_.deviation[i]));
        if (!std::isfinite(inputs.back()))
          rows_.reader().refuse(row_[columns_[i]].offset,
                                fmt::format("{} is too large for the numbers of the network", x));
      }
    if (count == 0) return false;
    batch.resize(shape_, 1, count);
    for (Index t = 0; t < count; ++t)
      std::copy_n(inputs.data() + t * shape_.input_size, shape_.input_size, batch.input(t, 0).data());
    return true;
  }

 private:
  std::string current() const { return sequence_ ? rows_.reader().name(row_[*sequence_], *sequence_) : ""; }

  CsvStream rows_;
  TaskShape shape_;
  Scaling scaling_;
  std::optional<std::size_t> sequence_;
  std::vector<std::size_t> columns_;
  std::vector<CsvField> row_;  // the next one, when `waiting_`
  bool waiting_ = false, started_ = false;
  std::string name_;
  std::set<std::string> seen_;
};

template <class S> class SequenceCsv final : public Task<S> {
 public:
  using Options = SequenceCsvOptions;
  SequenceCsv(const Options& options, const TaskContext& context)
      : Task<S>(context),
        options_(options),
        classification_(options.kind == "classification"),
        every_(options.readout == "every") {
    if (context.trained && classification_) classes_ = Classes(context.trained->form.outputs);
    load();
    forecasts_ = forecasts();
    outputs_ = classification_ ? Index(classes_.names().size()) : parts_[0].targets;
    normalise();
    check_numbers();
    batches_ = std::make_unique<ItemBatches>(context.batch, std::max<Index>(training_set(), 1), context.seed);
    for (const SequenceSet& part : parts_)
      for (const Sequence& s : part.sequences) longest_ = std::max(longest_, s.steps);
  }

  TaskShape shape() const override {
    return {.input_size = parts_[0].features,
            .output_size = outputs_,
            .readout = every_ ? ReadoutKind::every : ReadoutKind::last,
            .labels = classification_,
            .steps = longest_,
            .training_set = training_set(),
            .predicts_inputs = forecasts_};
  }

  Index batches(Split split) const override {
    return part(split).sequences.empty() ? 0 : batches_->count(split, Index(part(split).sequences.size()));
  }

  void fill(Split split, Index index, Batch<S>& batch) const override {
    batches_->fill(batch, shape(), split, index, part(split).sequences, &Sequence::steps,
                   [&](const Sequence& s, Index b) { write(s, batch, b); });
  }

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    return classification_ ? softmax_cross_entropy(output, targets, doutput) : mean_square(output, targets, doutput);
  }

  std::vector<Metric> metrics() const override {
    return classification_ ? std::vector<Metric>{{"accuracy"}} : std::vector<Metric>{{"mae", false}};
  }
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override {
    metrics[0].weight += total_weight(targets);
    if (classification_) {
      metrics[0].sum += correct(output, targets);
      return;
    }
    for (Index c = 0; c < output.cols(); ++c) {
      double sum = 0;
      for (Index j = 0; j < output.rows(); ++j)
        sum += std::abs(double(output(j, c)) - double(targets.values(j, c))) * target_deviation(std::size_t(j));
      if (targets.weights[c] > S(0)) metrics[0].sum += double(targets.weights[c]) * sum / double(output.rows());
    }
  }

  double baseline() const override {
    if (training_set() == 0) return std::numeric_limits<double>::quiet_NaN();
    const Split split = last_split(*this);
    double sum = 0, count = 0;
    for (const Sequence& s : part(split).sequences)
      for (std::size_t i = 0; i < s.targets.size(); i += width())
        if (scored(s, i)) sum += loss_of_trivial(s.targets.data() + i), ++count;
    return sum / count;
  }
  void trivial(Index, std::span<S> output) const override {
    std::transform(guess_.begin(), guess_.end(), output.begin(), [](double x) { return S(x); });
  }

  std::vector<DataFile> files() const override { return files_; }

  DataForm form() const override {
    DataForm form;
    if (classification_) form.output = DataForm::Output::softmax;
    form.inputs = parts_[0].columns;
    form.outputs = classification_ ? classes_.names() : options_.targets;
    form.input_mean = input_scaling_.mean, form.input_scale = input_scaling_.deviation;
    form.output_mean = target_scaling_.mean, form.output_scale = target_scaling_.deviation;
    return form;
  }
  static std::unique_ptr<SequenceReader<S>> open(const Options& options, const Trained& trained,
                                                 const std::string& file) {
    if (is_foreign(file)) return nullptr;
    return std::make_unique<PredictionInputs<S>>(file, options, trained);
  }

 private:
  const SequenceSet& part(Split split) const { return parts_[std::size_t(split)]; }
  Index training_set() const { return Index(parts_[0].sequences.size()); }
  std::size_t width() const { return std::size_t(parts_[0].targets); }
  /// Whether the files are CSV, one sequence each, perhaps by mistake.
  bool without_names() const { return options_.sequence.empty() && !options_.targets.empty(); }

  void load() {
    const bool one = !options_.data.file.empty();
    if (!one && options_.train.file.empty())
      throw Error::missing("sequence_csv: no file is named; set `data: FILE.csv` or `train: FILE.csv`.");
    const SequenceRules rules{options_.sequence,     options_.features, options_.targets,
                              options_.separator[0], classification_,   !every_};
    const auto read = [&](const SequenceSource& source) {
      return load_sequences(source, rules, this->context().data_directory, classes_, files_);
    };
    const auto& trained = this->context().trained;
    try {
      parts_[0] = read(one ? options_.data : options_.train);
    } catch (const Error& error) {
      if (one || !trained || !error.is_missing()) throw;
      const Index targets = classification_ ? 1 : trained->shape.output_size;
      parts_[0] = {trained->shape.input_size, targets, trained->form.inputs, {}};
    }
    const std::vector<Index> rank = classes_.order();
    if (classification_ && rank.size() < 2) {
      const std::string one_sequence = fmt::format(" `sequence` is not set, so {} is one sequence of {} steps.",
                                                   files_.front().path, parts_[0].sequences.front().steps);
      throw Error("sequence_csv: the training targets are all of one class; classification needs two or more." +
                      (without_names() ? one_sequence : ""),
                  Exit::data);
    }
    for (Sequence& s : parts_[0].sequences)
      for (double& y : s.targets) y = classification_ && !std::isnan(y) ? double(rank[std::size_t(y)]) : y;
    if (one) deal();
    for (const Split split : {Split::validation, Split::test}) {
      const SequenceSource& source = split == Split::validation ? options_.validation : options_.test;
      if (source.file.empty()) continue;
      parts_[std::size_t(split)] = read(source);
      refuse_other(part(split), source.file, one ? options_.data.file : options_.train.file);
    }
  }

  /// Whether a column of the targets is a feature of the next step.
  bool forecasts() const {
    const std::size_t d = std::size_t(parts_[0].features), k = width();
    const auto same = [&](std::size_t target, std::size_t feature) {
      std::set<double> distinct;
      for (const Sequence& s : parts_[0].sequences)
        for (std::size_t t = 0; t + 1 < std::size_t(s.steps); ++t) {
          const double y = s.targets[t * k + target];
          if (std::isnan(y)) continue;
          if (y != s.inputs[(t + 1) * d + feature]) return false;
          if (distinct.size() < 2) distinct.insert(y);
        }
      return distinct.size() == 2;
    };
    if (!every_ || classification_) return false;
    for (std::size_t target = 0; target < k; ++target)
      for (std::size_t feature = 0; feature < d; ++feature)
        if (same(target, feature)) return true;
    return false;
  }

  void refuse_other(const SequenceSet& other, const std::string& file, const std::string& training) const {
    const SequenceSet& train = parts_[0];
    if (other.features != train.features || other.targets != train.targets)
      throw Error(fmt::format("sequence_csv: {} has {} features and {} targets, but {} has {} and {}; they must agree.",
                              file, other.features, other.targets, training, train.features, train.targets),
                  Exit::data);
    if (other.columns != train.columns)
      throw Error(
          fmt::format("sequence_csv: the columns of {} differ from those of {}; name the `features`.", file, training),
          Exit::data);
  }

  void deal() {
    std::vector<Sequence> all = std::move(parts_[0].sequences);
    const Index count = Index(all.size());
    const auto share = [&](const char* key, double fraction) {
      return share_of(count, fraction, key, files_.front().path, "sequence",
                      without_names() ? "set `sequence` to the column that names the sequences" : "add sequences");
    };
    const Index validation = share("validation_fraction", options_.validation_fraction),
                test = share("test_fraction", options_.test_fraction), train = count - test - validation;
    parts_[1] = parts_[2] = parts_[0] = {parts_[0].features, parts_[0].targets, parts_[0].columns, {}};
    const std::vector<std::int64_t> order =
        Rng(static_cast<std::uint64_t>(options_.split_seed), "split").permutation(count);
    for (Index i = 0; i < count; ++i)
      parts_[i < train                ? 0
             : i < train + validation ? 1
                                      : 2]
          .sequences.push_back(std::move(all[std::size_t(order[std::size_t(i)])]));
  }

  /// Scales what is to be scaled, and finds what a predictor without memory says.
  void normalise() {
    const std::vector<Sequence>& train = parts_[0].sequences;
    const auto targets = [](const Sequence& s) -> const std::vector<double>& { return s.targets; };
    const auto name = [](const char* kind, const std::vector<std::string>& names) {
      return [kind, &names](std::size_t r) {
        return r < names.size() ? fmt::format("the column \"{}\"", names[r]) : fmt::format("{} {}", kind, r);
      };
    };
    const auto name_of_target = name("target", options_.targets);
    const DataForm kept = this->context().trained ? this->context().trained->form : DataForm();
    if (options_.normalisation == "standard") {
      if (Index(kept.input_mean.size()) == parts_[0].features)
        input_scaling_ = {kept.input_mean, kept.input_scale};
      else
        input_scaling_ = Scaling::of(
            parts_[0].features, train, [](const Sequence& s) -> const std::vector<double>& { return s.inputs; },
            name("feature", parts_[0].columns));
      for (SequenceSet& part : parts_)
        for (Sequence& s : part.sequences) input_scaling_.apply(s.inputs);
    }
    if (options_.target_normalisation == "standard") {
      if (Index(kept.output_mean.size()) == parts_[0].targets)
        target_scaling_ = {kept.output_mean, kept.output_scale};
      else
        target_scaling_ = Scaling::of(parts_[0].targets, train, targets, name_of_target);
      for (SequenceSet& part : parts_)
        for (Sequence& s : part.sequences) target_scaling_.apply(s.targets);
    }
    if (!classification_) {
      guess_ = Scaling::of(parts_[0].targets, train, targets, name_of_target).mean;
      return;
    }
    guess_.assign(std::size_t(outputs_), 0);
    for (const Sequence& s : train)
      for (const double y : s.targets)
        if (!std::isnan(y)) ++guess_[std::size_t(y)];
    double all = 0;
    for (double& count : guess_) all += count = std::max(count, 1.0);  // a class may be in another split only
    for (double& count : guess_) count = std::log(count / all);
  }

  void check_numbers() const {
    const auto unfit = [](double x) { return !std::isnan(x) && !std::isfinite(S(x)); };
    for (const Split split : {Split::train, Split::validation, Split::test}) {
      Index targets = 0, number = 0;
      for (const Sequence& s : part(split).sequences) {
        ++number;
        for (const std::vector<double>* values : {&s.inputs, &s.targets})
          if (const auto found = std::ranges::find_if(*values, unfit); found != values->end())
            throw Error(
                fmt::format("sequence_csv: {} in sequence {} of the {} split is too large for `scalar: float32`; "
                            "scale the data down or use float64.",
                            *found, number, name_of(split)),
                Exit::data);
        for (std::size_t i = 0; i < s.targets.size(); i += width()) targets += Index(scored(s, i));
      }
      if (targets == 0 && !part(split).sequences.empty())
        throw Error(fmt::format("sequence_csv: no sequence of the {} split has a target.", name_of(split)), Exit::data);
    }
  }

  double target_deviation(std::size_t row) const {
    return target_scaling_.deviation.empty() ? 1 : target_scaling_.deviation[row];
  }

  bool scored(const Sequence& s, std::size_t first) const {
    return std::none_of(s.targets.begin() + std::ptrdiff_t(first), s.targets.begin() + std::ptrdiff_t(first + width()),
                        [](double y) { return std::isnan(y); });
  }

  double loss_of_trivial(const double* target) const {
    if (classification_) return -guess_[std::size_t(*target)];
    double sum = 0;
    for (std::size_t j = 0; j < width(); ++j) sum += (guess_[j] - target[j]) * (guess_[j] - target[j]);
    return sum / double(width());
  }

  void write(const Sequence& s, Batch<S>& batch, Index b) const {
    batch.length(b) = s.steps;
    const Index d = parts_[0].features;
    for (Index t = 0; t < s.steps; ++t)
      std::transform(s.inputs.begin() + t * d, s.inputs.begin() + (t + 1) * d, batch.input(t, b).begin(),
                     [](double x) { return S(x); });
    for (Index t = 0; t < (every_ ? s.steps : 1); ++t) {
      const std::size_t first = std::size_t(t) * width();
      if (!scored(s, first))
        batch.weight(t, b) = S(0);
      else if (classification_)
        batch.label(t, b) = std::int32_t(s.targets[first]);
      else
        std::transform(s.targets.begin() + std::ptrdiff_t(first), s.targets.begin() + std::ptrdiff_t(first + width()),
                       batch.target(t, b).begin(), [](double y) { return S(y); });
    }
  }

  Options options_;
  bool classification_, every_, forecasts_ = false;
  Classes classes_;
  std::vector<DataFile> files_;
  std::array<SequenceSet, 3> parts_;        // by Split
  Scaling input_scaling_, target_scaling_;  // empty: none
  std::vector<double> guess_;               // output of a predictor without memory
  Index outputs_ = 0, longest_ = 0;
  std::unique_ptr<ItemBatches> batches_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<SequenceCsv>("sequence_csv", "your own sequences, from CSV files or NumPy arrays"))
