// A user's own sequences, from CSV files or NumPy arrays.
#include "tasks/formats/csv_stream.hpp"
#include "tasks/own_sequences.hpp"

namespace {
using namespace stiefel;

struct SequenceCsvOptions : OwnOptions {
  void describe(Schema& s) {
    s.section("data", data, "one file with all sequences, which are randomly assigned to the splits");
    s.section("train", train, "training sequences (instead of `data`)");
    s.section("validation", validation, "validation sequences (with `train`)");
    s.section("test", test,
              "test sequences; with `data`, instead of those of `test_fraction`, which are then not used");
    describe_split(s, "sequences");
    s.field("sequence", sequence,
            "CSV: column that names the sequence, whose rows are its steps; empty: the file is one sequence");
    s.field("features", features, "CSV: columns of the input; empty: all that are neither `sequence` nor targets");
    s.field("targets", targets, "CSV: columns of the target");
    s.field("categories", categories,
            "CSV: columns of the input that hold names or numbers of categories; each becomes an input for each of "
            "its values in the training sequences, 1 where the column has it")
        .not_in_id_at_default();
    s.field("separator", separator, "CSV: separator between fields").one_of({",", ";", "\t", "|", " "});
    s.field(
         "sample_weights", sample_weights,
         "training weights: a column of a CSV file, an array in an .npz or HDF5 file, or a .npy file; N, or N × T with "
         "`readout: every`; empty: all weigh the same")
        .not_in_id_at_default();
    s.field("kind", kind, "whether targets are numbers or classes").one_of({"regression", "classification"});
    s.field("readout", readout, "which steps have a target").one_of({"last", "every"});
    s.field("normalisation", normalisation,
            "standardize the inputs by mean and standard deviation of the training sequences")
        .one_of({"none", "standard"});
    s.field("target_normalisation", target_normalisation, "regression: also standardize the targets")
        .one_of({"none", "standard"});
    s.field("missing", missing,
            "missing inputs: refuse them, or fill each with the last number before it, or 0 after `normalisation`; "
            "mask also adds an input for each column with gaps, 1 where it was filled")
        .one_of({"refuse", "forward", "mask"})
        .not_in_id_at_default();
    describe_scores(s, "mae of numbers, accuracy of classes");
    s.field("season", season,
            "forecasts: steps of a season, after which seasonal persistence, a baseline, repeats the series; 0: none")
        .at_least(0)
        .at_most(1e9)
        .units("steps")
        .not_in_id_at_default();
    const std::string& first = data.file.empty() ? train.file : data.file;
    s.check(first.empty() || is_array(first) || is_foreign(first) || !targets.empty(), "targets",
            "must name the columns of the target in a CSV file: `targets: [NAME]`");
    s.check(kind == "regression" || target_normalisation == "none", "target_normalisation",
            "is for `kind: regression`");
    for (const std::string& target : targets)
      s.check(std::ranges::find(features, target) == features.end(), "features",
              "holds the target " + target + ", which the network would read instead of predicting it");
    s.check(std::ranges::find(targets, sequence) == targets.end(), "targets", "holds the column of `sequence`");
    for (const std::string& name : categories)
      s.check(features.empty() || std::ranges::find(features, name) != features.end(), "categories",
              "holds " + name + ", which is not one of `features`");
    for (const auto* names : {&features, &targets})
      s.check(std::set<std::string>(names->begin(), names->end()).size() == names->size(),
              names == &features ? "features" : "targets", "names a column twice");
    s.check(kind == "regression" || targets.size() <= 1, "targets", "must be one column for `kind: classification`");
  }
};

/// Features of new sequences in a CSV file, for `predict` only. The rows of a sequence must be consecutive here, while
/// load_sequences() joins those that are not.
template <class S> class PredictionInputs final : public SequenceReader<S> {
 public:
  PredictionInputs(const std::string& file, const SequenceCsvOptions& options, const Trained& trained)
      : rows_(file, options.separator[0]),
        shape_(trained.shape),
        scaling_{trained.form.input_mean, trained.form.input_scale},
        gaps_(options.missing != "refuse"),
        mask_(options.missing == "mask") {
    if (!options.sequence.empty()) sequence_ = rows_.reader().column(options.sequence);
    const std::vector<std::string>& header = rows_.reader().header();
    const auto other = [&](const std::string& name) {
      return name != options.sequence && std::ranges::find(options.targets, name) == options.targets.end();
    };
    InputNames names = InputNames::of(trained.form.inputs, mask_);
    if (names.columns.empty()) std::ranges::copy_if(header, std::back_inserter(names.columns), other);
    marked_ = names.marked;
    values_ = categories_of(options.categories, names.columns);
    for (const std::string& name : names.columns) {
      const auto category = std::ranges::find_if(
          options.categories, [&](const std::string& category) { return name.starts_with(category + "="); });
      const bool one = category != options.categories.end();
      columns_.push_back(rows_.reader().column(one ? *category : name));
      places_.push_back(one ? values_.at(*category).number(name.substr(category->size() + 1)) : -1);
    }
    if (Index(columns_.size() + marked_.size()) != shape_.input_size)
      rows_.reader().refuse(0, fmt::format("{} columns are left for the features, but the network was trained with {}",
                                           columns_.size(), shape_.input_size));
    waiting_ = rows_.next(row_);
  }

  bool next() override {
    while (waiting_ && started_ && current() == name_) waiting_ = rows_.next(row_);
    if (!waiting_) return false;
    started_ = true;
    filling_.emplace(columns_.size(), marked_);
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
    std::vector<double> numbers(columns_.size());
    for (; count < steps && waiting_ && current() == name_; ++count, waiting_ = rows_.next(row_)) {
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        const CsvField& field = row_[columns_[i]];
        const CsvReader& reader = rows_.reader();
        const double x = places_[i] < 0 ? reader.input(field, columns_[i], gaps_)
                                        : category_of(reader, field, columns_[i],
                                                      values_.at(reader.header()[columns_[i]])) == places_[i];
        numbers[i] = scaling_.mean.empty() ? x : (x - scaling_.mean[i]) / scaling_.deviation[i];
        if (std::isinf(S(numbers[i])))
          rows_.reader().refuse(field.offset, fmt::format("{} is too large for the numbers of the network", x));
        if (std::isnan(x) && mask_ && std::ranges::find(marked_, i) == marked_.end())
          rows_.reader().refuse(field.offset, no_mark(shown(rows_.reader().header()[columns_[i]])));
      }
      filling_->append(std::span<const double>(numbers), inputs);
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
  std::vector<std::size_t> columns_, marked_;
  std::map<std::string, Classes> values_;  // of the categories
  std::vector<Index> places_;              // of the category whose input this is among these; −1: a number
  bool gaps_, mask_;
  std::optional<Filling> filling_;  // of the sequence
  std::vector<CsvField> row_;       // the next one, when `waiting_`
  bool waiting_ = false, started_ = false;
  std::string name_;
  std::set<std::string> seen_;
};

template <class S> class SequenceCsv final : public OwnSequences<S> {
 public:
  using Options = SequenceCsvOptions;
  SequenceCsv(const Options& options, const TaskContext& context)
      : OwnSequences<S>(options, context, {"sequence_csv", "FILE.csv", load_sequences}) {}

  static std::unique_ptr<SequenceReader<S>> open(const Options& options, const Trained& trained,
                                                 const std::string& file) {
    if (is_foreign(file) || is_array(file)) return nullptr;
    return std::make_unique<PredictionInputs<S>>(file, options, trained);
  }
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<SequenceCsv>("sequence_csv", "your own sequences, from CSV files or NumPy arrays"))
