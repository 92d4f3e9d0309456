/// A user's own sequences: numbers or classes to be predicted at every step or at the last one. Tasks differ in the
/// options that they have and in what reads their files.
///
///   regression      mean square, 1/k Σ_j (o_j − y_j)² a mean over targets
///   classification  −ln softmax(o)[y]; the classes are the different values of the training targets, in order
///   standard        (x − mean) / standard deviation of each column over the training steps; columns that never change
///                   are only shifted
///
/// A missing target (an empty field, NaN) is not scored: a step with n of its k targets has the weight n/k, and its
/// loss is the mean over them. Missing inputs become the last number before them or 0, after the inputs are scaled. The
/// constant predictor says the mean of the training targets, or the frequencies of the training classes.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <boost/algorithm/string/replace.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include <stiefel/item_batches.hpp>
#include <stiefel/plugin.hpp>
#include "tasks/formats/fraction.hpp"
#include "tasks/formats/named_arrays.hpp"
#include "tasks/formats/sequence_set.hpp"
#include "tasks/scores.hpp"

namespace stiefel {

constexpr Index most_classes = 20;  // that numbers are taken for by mistake, or that have shares in results.h5
constexpr Index most_examples = 5;

struct SourceOptions : SequenceSource {
  void describe(Schema& s) {
    s.shorthand("file");
    s.field(
        "file", file,
        "a CSV file with a header, a .npy array of inputs, N × T × d or N × T, or an .npz or HDF5 file of all arrays");
    s.field("inputs", inputs, "with an .npz or HDF5 file: name of the array of inputs; empty: inputs")
        .not_in_id_at_default();
    s.field("targets", targets, "with a .npy file: array N × T × k or N × T, with `readout: last` N × k or N");
    s.field("lengths", lengths, "with a .npy file: array of the N lengths; empty: all have T steps");
    s.check(!file.empty() || (targets.empty() && lengths.empty()), "file",
            "must be given with `targets` and `lengths`");
    s.check(inputs.empty() || has_named_arrays(file), "inputs",
            "is the name of an array in an .npz or HDF5 file, which `file` is not");
    s.check(!is_foreign(file), "file",
            fmt::format("must be a CSV, .npy, .npz or HDF5 file, got {}; {}", file, advice_on_foreign(file)));
  }
};

struct OwnOptions {
  SourceOptions data, train, validation, test;
  std::string sequence, separator = ",", kind = "regression", readout = "last", normalisation = "none",
                        target_normalisation = "none", missing = "refuse", class_weights = "none", sample_weights;
  std::vector<std::string> features, targets, metrics, categories;
  double validation_fraction = 0.1, test_fraction = 0.1;
  Index split_seed = 1, season = 0, folds = 0, fold = 0;

 protected:
  void describe_split(Schema& s, const char* items) {
    const std::string of_data = fmt::format("fraction of the {} of `data` for ", items);
    s.field("validation_fraction", validation_fraction, of_data + "validation")
        .at_least(0)
        .less_than(1)
        .only_if(train.file.empty(), "`data`");
    s.field("folds", folds,
            fmt::format("cross-validation: the {} of `data` are dealt to this many folds, one of which is the test "
                        "set instead of `test_fraction`; 0: none",
                        items))
        .at_least(0)
        .only_if(train.file.empty(), "`data`")
        .not_in_id_at_default();
    s.field("fold", fold, "number of the fold that is the test set, from 0")
        .at_least(0)
        .only_if(folds > 0, "`folds`")
        .not_in_id_at_default();
    s.field("test_fraction", test_fraction, of_data + "the test")
        .at_least(0)
        .less_than(1)
        .only_if(train.file.empty() && folds == 0, "`data` without `folds`");
    s.field("split_seed", split_seed,
            "seed of the train/validation/test split of `data`, independent of the run's seed")
        .at_least(0)
        .only_if(train.file.empty(), "`data`");
    s.check(data.file.empty() || train.file.empty(), "train",
            "cannot be combined with `data`: name either one file or one for each split");
    s.check(!train.file.empty() || validation.file.empty(), "validation",
            "needs `train`; with `data`, set `validation_fraction` instead");
    s.check(!train.file.empty() || !data.file.empty() || test.file.empty(), "test", "needs `train` or `data`");
    s.check(folds == 0 || test.file.empty(), "test", "cannot be combined with `folds`");
    s.check(folds != 1, "folds", "must be 2 or more, or 0");
    s.check(fold < std::max<Index>(folds, 1), "fold", "must be less than `folds`");
    s.check(!train.file.empty() || validation_fraction + (folds > 0 ? 1 / double(folds) : test_fraction) < 1,
            folds > 0 ? "validation_fraction" : "test_fraction",
            fmt::format("leaves nothing to train on together with `{}`", folds > 0 ? "folds" : "validation_fraction"));
  }

  void describe_scores(Schema& s, std::string_view default_ones) {
    s.field("metrics", metrics, fmt::format("what is measured besides the loss; empty: {}", default_ones))
        .one_of({"mae", "rmse", "r2", "nrmse", "accuracy", "macro_f1", "balanced_accuracy", "auroc", "confusion",
                 "examples"})
        .not_in_id_at_default();
    s.field("class_weights", class_weights,
            "in training, targets of a class with n of the N targets of K classes weigh N / (K n)")
        .one_of({"none", "balanced"})
        .only_if(kind == "classification", "`kind: classification`")
        .not_in_id_at_default();
    for (const std::string& metric : metrics)
      s.check(
          (std::ranges::find(scores::of_classes, metric) != std::end(scores::of_classes)) == (kind == "classification"),
          "metrics", "holds " + metric + ", which is not for `kind: " + kind + "`");
    s.check(std::set<std::string>(metrics.begin(), metrics.end()).size() == metrics.size(), "metrics",
            "names a metric twice");
  }
};

/// What a task is called, an example of its files, and what reads them.
struct OwnFiles {
  std::string task, example;
  std::function<SequenceSet(const SequenceSource&, const SequenceRules&, const std::string& directory, Classes&,
                            std::vector<DataFile>&)>
      load;
};

/// x ↦ (x − mean) / deviation, row by row.
struct Scaling {
  std::vector<double> mean, deviation;

  /// Scaling by the numbers of `rows` rows in all sequences, without NaN; refuse(r) is called for row r if its deviation
  /// is not a number.
  template <class F, class G>
  static Scaling of(Index rows, const std::vector<Sequence>& sequences, F&& numbers, G&& refuse) {
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
      if (!std::isfinite(deviation) || (differs[r] && deviation == 0)) refuse(r);
      mean[r] += first[r];
      squares[r] = differs[r] ? deviation : 1;
    }
    return {mean, squares};
  }
  void apply(std::vector<double>& numbers) const {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = (numbers[i] - mean[i % mean.size()]) / deviation[i % mean.size()];
  }
  /// The number of row r that is x after apply().
  double restored(double x, std::size_t r) const { return mean.empty() ? x : x * deviation[r] + mean[r]; }
};

/// The row that is furthest from numbers of order 1, and how many others are, as a sentence; empty if none is.
template <class F> std::string unscaled(const Scaling& found, F&& name) {
  const auto distance = [&](std::size_t r) {
    const double size = std::max(std::abs(found.mean[r]), found.deviation[r]);
    const bool same = found.deviation[r] == 1;  // all numbers are equal, or there is nothing to scale
    return same ? 0 : std::max(size / 10, 0.01 / std::max(size, 1e-300));
  };
  std::size_t worst = 0, count = 0;
  for (std::size_t r = 0; r < found.mean.size(); ++r) {
    if (distance(r) > distance(worst)) worst = r;
    count += distance(r) > 1;
  }
  if (count == 0) return {};
  return fmt::format(
      "{} of the training sequences has the mean {:.3g} and the standard deviation {:.3g}{}, but networks "
      "learn from numbers of order 1",
      name(worst), found.mean[worst], found.deviation[worst],
      count == 1 ? "" : fmt::format(", and {} more are not of order 1 either", count - 1));
}

/// Names of the inputs of a network: of the columns, and of those that are marked where they have gaps, by an input
/// NAME_missing behind all columns.
struct InputNames {
  std::vector<std::string> columns;
  std::vector<std::size_t> marked;

  static std::string mark(const std::string& column) { return column + "_missing"; }
  static InputNames of(const std::vector<std::string>& inputs, bool mask) {
    InputNames names;
    for (const std::string& name : inputs) {
      const auto column = std::ranges::find(names.columns, name, mark);
      if (mask && column != names.columns.end())
        names.marked.push_back(std::size_t(column - names.columns.begin()));
      else
        names.columns.push_back(name);
    }
    return names;
  }
};

/// The values of each column of categories, by the names NAME=VALUE of the inputs of a trained network.
inline std::map<std::string, Classes> categories_of(const std::vector<std::string>& categories,
                                                    const std::vector<std::string>& inputs) {
  std::map<std::string, Classes> all;
  for (const std::string& category : categories) {
    std::vector<std::string> values;
    for (const std::string& input : inputs)
      if (input.starts_with(category + "=")) values.push_back(input.substr(category.size() + 1));
    all.emplace(category, values);
  }
  return all;
}

/// Fills the gaps of the rows of a sequence, one after another.
class Filling {
 public:
  Filling(std::size_t columns, const std::vector<std::size_t>& marked) : last_(columns, 0.0), marked_(&marked) {}
  /// Appends the row with the last numbers in its gaps, and what marks these.
  template <class S> void append(std::span<const double> row, std::vector<S>& inputs) {
    for (std::size_t j = 0; j < row.size(); ++j) inputs.push_back(S(std::isnan(row[j]) ? last_[j] : last_[j] = row[j]));
    for (const std::size_t j : *marked_) inputs.push_back(S(std::isnan(row[j])));
  }

 private:
  std::vector<double> last_;
  const std::vector<std::size_t>* marked_;
};

inline std::string no_mark(const std::string& column) {
  return fmt::format(
      "column {} has a gap here, but none in the training sequences, so no input marks it; fill it first", column);
}

template <class S> class OwnSequences : public Task<S> {
 public:
  OwnSequences(const OwnOptions& options, const TaskContext& context, OwnFiles own)
      : Task<S>(context),
        options_(options),
        own_(std::move(own)),
        classification_(options.kind == "classification"),
        every_(options.readout == "every") {
    if (context.trained && classification_) classes_ = Classes(context.trained->form.outputs);
    load();
    find_sources();
    outputs_ = classification_ ? Index(classes_.names().size()) : parts_[0].targets;
    normalise();
    if (options.missing != "refuse") fill_gaps();
    check_numbers();
    choose_metrics();
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
            .predicts_inputs = std::ranges::any_of(sources_, [](Index source) { return source >= 0; })};
  }

  Index batches(Split split) const override {
    return part(split).sequences.empty() ? 0 : batches_->count(split, Index(part(split).sequences.size()));
  }

  void fill(Split split, Index index, Batch<S>& batch) const override {
    batches_->fill(batch, shape(), split, index, part(split).sequences, &Sequence::steps,
                   [&](const Sequence& s, Index b) {
                     write(s, batch, b);
                     if (split == Split::train) weigh(s, batch, b);
                   });
  }

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    if (classification_) return softmax_cross_entropy(output, targets, doutput);
    return partial_ ? mean_square_of_present(output, targets, doutput) : mean_square(output, targets, doutput);
  }

  std::vector<Metric> metrics() const override {
    return classification_ ? class_scores_->metrics() : number_scores_->metrics();
  }
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override {
    classification_ ? class_scores_->measure(output, targets, metrics)
                    : number_scores_->measure(output, targets, metrics);
  }

  double baseline() const override {
    return loss_of([&](const Sequence&, std::size_t, std::size_t j) { return guess_[j]; });
  }
  std::vector<Baseline> baselines() const override {
    if (sources_.empty() || std::ranges::find(sources_, -1) != sources_.end()) return {};
    std::vector<Baseline> all;
    for (const Index season : {Index(1), options_.season}) {
      if (season == 0) continue;
      const auto loss = loss_of([&](const Sequence& s, std::size_t t, std::size_t j) {
        const std::size_t before = std::size_t(season) - 1, source = std::size_t(sources_[j]),
                          step = t < before ? t : t - before;
        const double x = input_scaling_.restored(s.inputs[step * std::size_t(parts_[0].features) + source], source);
        return target_scaling_.mean.empty() ? x : (x - target_scaling_.mean[j]) / target_scaling_.deviation[j];
      });
      all.push_back({all.empty() ? "persistence" : "seasonal persistence", loss});
    }
    return all;
  }
  void trivial(Index, std::span<S> output) const override {
    std::transform(guess_.begin(), guess_.end(), output.begin(), [](double x) { return S(x); });
  }

  std::vector<DataFile> files() const override { return files_; }

  bool reports() const override { return confusion_ || examples_; }
  void report(Index index, const Batch<S>& batch, CMat<S> outputs, Outcome& outcome) const override {
    if (confusion_) report_confusion(index, batch, outputs, outcome);
    if (examples_) report_examples(index, batch, outputs, outcome);
  }

  DataForm form() const override {
    DataForm form;
    if (classification_) form.output = DataForm::Output::softmax;
    form.inputs = names_of_inputs();
    form.outputs = classification_ ? classes_.names() : options_.targets;
    form.input_mean = input_scaling_.mean, form.input_scale = input_scaling_.deviation;
    if (!form.input_mean.empty()) form.input_mean.resize(std::size_t(parts_[0].features), 0);
    if (!form.input_scale.empty()) form.input_scale.resize(std::size_t(parts_[0].features), 1);
    form.output_mean = target_scaling_.mean, form.output_scale = target_scaling_.deviation;
    return form;
  }

  std::vector<Remark> remarks() const override {
    std::vector<Remark> all;
    const auto add = [&](const char* option, const std::string& unscaled) {
      if (!unscaled.empty())
        all.push_back({option, unscaled + fmt::format("; write {}: standard, or none to keep it", option)});
    };
    if (options_.normalisation == "none") add("normalisation", unscaled_inputs_);
    if (classification_) return all;
    if (options_.target_normalisation == "none") add("target_normalisation", unscaled_targets_);
    std::set<double> distinct;
    std::size_t count = 0;
    for (const Sequence& s : parts_[0].sequences)
      for (const double y : s.targets)
        if (!std::isnan(y) && Index(distinct.size()) <= most_classes) {
          const double number = target_scaling_.restored(y, 0), near = std::round(number);
          distinct.insert(std::abs(number - near) < 1e-9 * std::max(1., std::abs(near)) ? near : number), ++count;
        }
    const auto whole = [](double y) { return y == std::floor(y); };
    if (width() == 1 && distinct.size() > 1 && Index(distinct.size()) <= most_classes && count >= 4 * distinct.size() &&
        std::ranges::all_of(distinct, whole))
      all.push_back({"kind", fmt::format("the targets are only the integers {}, which are learned as numbers: write "
                                         "kind: classification if they are classes, and kind: regression if not",
                                         fmt::join(distinct, ", "))});
    return all;
  }

  std::string summary() const override {
    std::vector<std::string> counts;
    for (const Split split : {Split::train, Split::validation, Split::test}) {
      std::size_t all = 0, present = 0;
      for (const Sequence& s : part(split).sequences) {
        all += s.targets.size();
        present += std::size_t(std::ranges::count_if(s.targets, [](double y) { return !std::isnan(y); }));
      }
      counts.push_back(present == all ? fmt::format("{} {}", all, name_of(split))
                                      : fmt::format("{} of {} {}", present, all, name_of(split)));
    }
    return fmt::format("{} targets", fmt::join(counts, ", "));
  }

 private:
  template <class... T> [[noreturn]] void refuse(fmt::format_string<T...> text, T&&... values) const {
    throw Error(own_.task + ": " + fmt::format(text, std::forward<T>(values)...), Exit::data);
  }
  const SequenceSet& part(Split split) const { return parts_[std::size_t(split)]; }
  Index training_set() const { return Index(parts_[0].sequences.size()); }
  std::size_t width() const { return std::size_t(parts_[0].targets); }
  /// Whether the files are CSV, one sequence each, perhaps by mistake.
  bool without_names() const { return options_.sequence.empty() && !options_.targets.empty(); }

  void load() {
    const bool one = !options_.data.file.empty();
    if (!one && options_.train.file.empty())
      throw Error::missing(
          fmt::format("{}: no file is named; set `data: {}` or `train: {}`.", own_.task, own_.example, own_.example));
    std::map<std::string, Classes> categories;
    if (this->context().trained)
      categories = categories_of(options_.categories, this->context().trained->form.inputs);
    else
      for (const std::string& name : options_.categories) categories[name];
    SequenceRules rules{options_.sequence,
                        options_.features,
                        options_.targets,
                        options_.separator[0],
                        classification_,
                        !every_,
                        options_.missing != "refuse",
                        &categories,
                        options_.sample_weights,
                        true};
    const auto read = [&](const SequenceSource& source) {
      return own_.load(source, rules, this->context().data_directory, classes_, files_);
    };
    const auto& trained = this->context().trained;
    try {
      parts_[0] = read(one ? options_.data : options_.train);
    } catch (const Error& error) {
      if (one || !trained || !error.is_missing()) throw;
      const Index targets = classification_ ? 1 : trained->shape.output_size;
      const InputNames names = InputNames::of(trained->form.inputs, options_.missing == "mask");
      parts_[0] = {trained->shape.input_size - Index(names.marked.size()), targets, {}, {}};
      if (!options_.targets.empty()) parts_[0].columns = names.columns;
    }
    const std::vector<Index> rank = classes_.order();
    if (classification_ && rank.size() < 2) {
      const std::string one_sequence = fmt::format(" `sequence` is not set, so {} is one sequence of {} steps.",
                                                   files_.front().path, parts_[0].sequences.front().steps);
      refuse("the training targets are all of one class; classification needs two or more.{}",
             without_names() ? one_sequence : "");
    }
    for (Sequence& s : parts_[0].sequences)
      for (double& y : s.targets) y = classification_ && !std::isnan(y) ? double(rank[std::size_t(y)]) : y;
    if (one) deal();
    rules.training = false;
    for (const Split split : {Split::validation, Split::test}) {
      const SequenceSource& source = split == Split::validation ? options_.validation : options_.test;
      if (source.file.empty()) continue;
      parts_[std::size_t(split)] = read(source);
      refuse_other(part(split), source.file, one ? options_.data.file : options_.train.file);
    }
  }

  /// For each column of the targets, the feature whose number at the next step it is, or −1.
  void find_sources() {
    const std::size_t d = std::size_t(parts_[0].features), k = width();
    const auto same = [&](std::size_t target, std::size_t feature) {
      std::set<double> distinct;
      for (const Sequence& s : parts_[0].sequences)
        for (std::size_t t = 0; t + 1 < std::size_t(s.steps); ++t) {
          const double y = s.targets[t * k + target], x = s.inputs[(t + 1) * d + feature];
          if (std::isnan(y) || std::isnan(x)) continue;
          if (y != x) return false;
          if (distinct.size() < 2) distinct.insert(y);
        }
      return distinct.size() == 2;
    };
    if (!every_ || classification_) return;
    sources_.assign(k, -1);
    for (std::size_t target = 0; target < k; ++target)
      for (std::size_t feature = 0; feature < d && sources_[target] < 0; ++feature)
        if (same(target, feature)) sources_[target] = Index(feature);
  }

  void refuse_other(const SequenceSet& other, const std::string& file, const std::string& training) const {
    const SequenceSet& train = parts_[0];
    if (other.features != train.features || other.targets != train.targets)
      refuse("{} has {} features and {} targets, but {} has {} and {}; they must agree.", file, other.features,
             other.targets, training, train.features, train.targets);
    if (other.columns != train.columns)
      refuse("the columns of {} differ from those of {}; name the `features`.", file, training);
  }

  void deal() {
    std::vector<Sequence> all = std::move(parts_[0].sequences);
    const Index count = Index(all.size());
    const auto share = [&](const char* key, double fraction) {
      return share_of(count, fraction, key, files_.front().path, "sequence",
                      without_names() ? "set `sequence` to the column that names the sequences" : "add sequences");
    };
    const Index folds = options_.folds, fold = options_.fold;
    if (folds > count) refuse("{} has {} sequences, too few for {} `folds`.", files_.front().path, count, folds);
    const Index validation = share("validation_fraction", options_.validation_fraction),
                test = folds > 0 ? count * (fold + 1) / folds - count * fold / folds
                                 : share("test_fraction", options_.test_fraction),
                train = count - test - validation, behind_test = folds > 0 ? count * (fold + 1) / folds : 0;
    parts_[1] = parts_[2] = parts_[0] = {parts_[0].features, parts_[0].targets, parts_[0].columns, {}};
    const std::vector<std::int64_t> order =
        Rng(static_cast<std::uint64_t>(options_.split_seed), "split").permutation(count);
    for (Index i = 0; i < count; ++i)
      parts_[i < train                ? 0
             : i < train + validation ? 1
                                      : 2]
          .sequences.push_back(std::move(all[std::size_t(order[std::size_t((behind_test + i) % count)])]));
  }

  /// Scales what is to be scaled, and finds what the constant predictor says.
  void normalise() {
    const std::vector<Sequence>& train = parts_[0].sequences;
    const auto targets = [](const Sequence& s) -> const std::vector<double>& { return s.targets; };
    const auto name = [](const char* kind, const std::vector<std::string>& names) {
      return [kind, &names](std::size_t r) {
        return r < names.size() ? fmt::format("the column \"{}\"", names[r]) : fmt::format("{} {}", kind, r);
      };
    };
    const auto unfit = [this](const auto& named) {
      return [this, named](std::size_t r) {
        refuse(
            "{} of the training sequences has numbers whose standard deviation is too large or too small for a double; "
            "scale them, or correct them.",
            named(r));
      };
    };
    const auto ignore = [](std::size_t) {};
    const auto name_of_input = name("feature", parts_[0].columns), name_of_target = name("target", options_.targets);
    const auto inputs = [](const Sequence& s) -> const std::vector<double>& { return s.inputs; };
    const DataForm kept = this->context().trained ? this->context().trained->form : DataForm();
    if (options_.normalisation == "standard") {
      if (Index(kept.input_mean.size()) >= parts_[0].features)
        input_scaling_ = {kept.input_mean, kept.input_scale};
      else
        input_scaling_ = Scaling::of(parts_[0].features, train, inputs, unfit(name_of_input));
      for (const std::string& category : options_.categories)
        for (std::size_t j = 0; j < parts_[0].columns.size(); ++j)
          if (parts_[0].columns[j].starts_with(category + "="))
            input_scaling_.mean[j] = 0, input_scaling_.deviation[j] = 1;
      input_scaling_.mean.resize(std::size_t(parts_[0].features));
      input_scaling_.deviation.resize(std::size_t(parts_[0].features));
      for (SequenceSet& part : parts_)
        for (Sequence& s : part.sequences) input_scaling_.apply(s.inputs);
    } else {
      unscaled_inputs_ = unscaled(Scaling::of(parts_[0].features, train, inputs, ignore), name_of_input);
    }
    if (options_.target_normalisation == "standard") {
      if (Index(kept.output_mean.size()) == parts_[0].targets)
        target_scaling_ = {kept.output_mean, kept.output_scale};
      else
        target_scaling_ = Scaling::of(parts_[0].targets, train, targets, unfit(name_of_target));
      for (SequenceSet& part : parts_)
        for (Sequence& s : part.sequences) target_scaling_.apply(s.targets);
    }
    if (!classification_) {
      const Scaling found = Scaling::of(parts_[0].targets, train, targets, unfit(name_of_target));
      guess_ = found.mean;
      unscaled_targets_ = unscaled(found, name_of_target);
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

  void fill_gaps() {
    const bool mask = options_.missing == "mask";
    const std::size_t d = std::size_t(parts_[0].features);
    const std::vector<std::string>& columns = parts_[0].columns;
    const auto name = [&](std::size_t j) { return columns.empty() ? std::to_string(j) : shown(columns[j]); };
    const auto each_gap = [&](Split split, auto&& gap) {
      for (const Sequence& s : part(split).sequences)
        for (std::size_t i = 0; i < s.inputs.size(); ++i)
          if (std::isnan(s.inputs[i])) gap(i % d);
    };
    if (const InputNames names = InputNames::of(columns, mask); !names.marked.empty())
      refuse(
          "the column {} has the name of the input that marks gaps in {}; rename it, or leave it out with `features`.",
          shown(InputNames::mark(columns[names.marked[0]])), name(names.marked[0]));
    std::set<std::size_t> marked;
    if (mask && this->context().trained) {
      const InputNames names = InputNames::of(this->context().trained->form.inputs, true);
      marked.insert(names.marked.begin(), names.marked.end());
    } else if (mask) {
      each_gap(Split::train, [&](std::size_t j) { marked.insert(j); });
    }
    for (const Split split : {Split::validation, Split::test})
      each_gap(split, [&](std::size_t j) {
        if (mask && !marked.contains(j)) refuse("{} split: {}.", name_of(split), no_mark(name(j)));
      });
    marked_.assign(marked.begin(), marked.end());
    for (SequenceSet& part : parts_) {
      for (Sequence& s : part.sequences) {
        std::vector<double> filled;
        Filling filling(d, marked_);
        for (std::size_t i = 0; i < s.inputs.size(); i += d) filling.append(std::span(s.inputs).subspan(i, d), filled);
        s.inputs = std::move(filled);
      }
      part.features = Index(d + marked_.size());
    }
  }

  static std::string quoted(const std::string& name) {
    return name.find_first_of(",\"\n") == name.npos ? name : '"' + boost::replace_all_copy(name, "\"", "\"\"") + '"';
  }

  /// The confusion matrix: shares of the targets of each class, and their numbers in a file.
  void report_confusion(Index index, const Batch<S>& batch, CMat<S> outputs, Outcome& outcome) const {
    if (index == 0) counts_.setZero(outputs_, outputs_);
    Matrix<Index> counts = Matrix<Index>::Zero(outputs_, outputs_);  // of this batch
    for (Index b = 0; b < batch.sequences(); ++b)
      for (Index t = every_ ? 0 : batch.length(b) - 1; t < batch.length(b); ++t) {
        const Index column = batch.scored(t, b), label = batch.labels()[std::size_t(column)];
        if (batch.weights()[std::size_t(column)] == S(0)) continue;
        Index guess = 0;
        outputs.col(column).maxCoeff(&guess);
        ++counts(label, guess);
      }
    for (Index label = 0; outputs_ <= most_classes && label < outputs_; ++label)
      if (const double all = double(counts.row(label).sum()); all > 0)
        for (Index guess = 0; guess < outputs_; ++guess)
          outcome.scalar(fmt::format("confusion_{}_{}", label, guess), double(counts(label, guess)) / all, all);
    counts_ += counts;
    if (index + 1 == batches(Split::test)) outcome.file("confusion.csv", confusion_text());
  }

  /// Targets and outputs at all steps of the first sequences, in the units of the file.
  void report_examples(Index index, const Batch<S>& batch, CMat<S> outputs, Outcome& outcome) const {
    if (index == 0) shown_ = 0, examples_text_ = "sequence,step,target,true,predicted\n";
    for (Index b = 0; b < batch.sequences() && shown_ < most_examples; ++b, ++shown_)
      for (std::size_t j = 0; j < width(); ++j)
        for (Index t = every_ ? 0 : batch.length(b) - 1; t < batch.length(b); ++t) {
          const Index column = batch.scored(t, b);
          const S y = batch.targets()(Index(j), column);
          const bool there = batch.weights()[std::size_t(column)] > S(0) && y != S(absent);
          examples_text_ +=
              fmt::format("{},{},{},{},{}\n", shown_, t,
                          j < options_.targets.size() ? quoted(options_.targets[j]) : std::to_string(j),
                          there ? fmt::format("{:.9g}", target_scaling_.restored(double(y), j)) : "",
                          fmt::format("{:.9g}", target_scaling_.restored(double(outputs(Index(j), column)), j)));
        }
    if (index + 1 == batches(Split::test)) outcome.file("examples.csv", examples_text_);
  }

  std::string confusion_text() const {
    std::string text = "target";
    for (const std::string& name : classes_.names()) text += "," + quoted(name);
    for (Index row = 0; row < outputs_; ++row) {
      text += "\n" + quoted(classes_.names()[std::size_t(row)]);
      for (Index column = 0; column < outputs_; ++column) text += fmt::format(",{}", counts_(row, column));
    }
    return text + "\n";
  }

  std::vector<std::string> names_of_inputs() const {
    std::vector<std::string> names = parts_[0].columns;
    if (marked_.empty()) return names;
    for (Index j = 0; names.empty() || j < parts_[0].features - Index(marked_.size()); ++j)
      if (j >= Index(names.size())) names.push_back(fmt::format("input_{}", j));
    for (const std::size_t j : marked_) names.push_back(InputNames::mark(names[j]));
    return names;
  }

  void choose_metrics() {
    std::vector<std::string> chosen = options_.metrics;
    confusion_ = std::erase(chosen, "confusion") > 0;
    examples_ = std::erase(chosen, "examples") > 0;
    if (options_.metrics.empty()) chosen = {classification_ ? "accuracy" : "mae"};
    if (!classification_) {
      std::vector<double> units = target_scaling_.deviation;
      units.resize(width(), 1);
      number_scores_.emplace(chosen, options_.targets, units, guess_);
      return;
    }
    if (outputs_ != 2 && std::ranges::find(chosen, "auroc") != chosen.end())
      refuse("`auroc` in `metrics` is for two classes, but the targets have {}.", outputs_);
    class_scores_.emplace(chosen, outputs_);
  }

  void check_numbers() {
    const auto unfit = [](double x) { return !std::isnan(x) && (!std::isfinite(S(x)) || S(x) == S(absent)); };
    for (const Split split : {Split::train, Split::validation, Split::test}) {
      Index targets = 0, number = 0;
      for (const Sequence& s : part(split).sequences) {
        ++number;
        for (const std::vector<double>* values : {&s.inputs, &s.targets})
          if (const auto found = std::ranges::find_if(*values, unfit); found != values->end())
            refuse(
                "{} in sequence {} of the {} split is too large for `scalar: float32`; scale the data down or use "
                "float64.",
                *found, number, name_of(split));
        for (std::size_t i = 0; i < s.targets.size(); i += width()) {
          const std::size_t count = present(s, i);
          targets += count > 0 && (s.weights.empty() || s.weights[i / width()] > 0);
          partial_ = partial_ || (count > 0 && count < width());
        }
      }
      if (targets == 0 && !part(split).sequences.empty())
        refuse("no sequence of the {} split has a target{}.", name_of(split),
               split == Split::train && !options_.sample_weights.empty() ? " of a weight above 0" : "");
    }
  }

  /// How many of the targets that begin at `first` are there.
  std::size_t present(const Sequence& s, std::size_t first) const {
    return std::size_t(std::count_if(s.targets.begin() + std::ptrdiff_t(first),
                                     s.targets.begin() + std::ptrdiff_t(first + width()),
                                     [](double y) { return !std::isnan(y); }));
  }

  /// The loss on the last split of a predictor that says value(sequence, step, target).
  template <class F> double loss_of(F&& value) const {
    if (training_set() == 0) return std::numeric_limits<double>::quiet_NaN();
    double sum = 0, weight = 0;
    for (const Sequence& s : part(last_split(*this)).sequences)
      for (std::size_t i = 0; i < s.targets.size(); i += width()) {
        const std::size_t count = present(s, i);
        if (count == 0) continue;
        const double* y = s.targets.data() + i;
        double loss = 0;
        for (std::size_t j = 0; !classification_ && j < width(); ++j)
          if (const double error = value(s, i / width(), j) - y[j]; !std::isnan(y[j])) loss += error * error;
        const double share = double(count) / double(width());
        sum += share * (classification_ ? -guess_[std::size_t(*y)] : loss / double(count));
        weight += share;
      }
    return sum / weight;
  }

  /// mean_square() over the targets of each column that are not `absent`.
  static double mean_square_of_present(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) {
    double sum = 0;
    for (Index c = 0; c < output.cols(); ++c) {
      const S weight = targets.weights[c];
      if (doutput.cols() > 0) doutput.col(c).setZero();
      if (weight == S(0)) continue;
      const auto y = targets.values.col(c);
      const Index count = (y.array() != S(absent)).count();
      double loss = 0;
      for (Index j = 0; j < y.size(); ++j) {
        if (y[j] == S(absent)) continue;
        const S error = output(j, c) - y[j];
        loss += double(error) * double(error);
        if (doutput.cols() > 0) doutput(j, c) = weight * (error * (S(2) / S(count)));
      }
      sum += double(weight) * loss / double(count);
    }
    return sum;
  }

  void write(const Sequence& s, Batch<S>& batch, Index b) const {
    batch.length(b) = s.steps;
    const Index d = parts_[0].features;
    for (Index t = 0; t < s.steps; ++t)
      std::transform(s.inputs.begin() + t * d, s.inputs.begin() + (t + 1) * d, batch.input(t, b).begin(),
                     [](double x) { return S(x); });
    for (Index t = 0; t < (every_ ? s.steps : 1); ++t) {
      const std::size_t first = std::size_t(t) * width();
      const std::size_t count = present(s, first);
      batch.weight(t, b) = S(count) / S(width());
      if (count == 0) continue;
      if (classification_)
        batch.label(t, b) = std::int32_t(s.targets[first]);
      else
        std::transform(s.targets.begin() + std::ptrdiff_t(first), s.targets.begin() + std::ptrdiff_t(first + width()),
                       batch.target(t, b).begin(), [](double y) { return std::isnan(y) ? S(absent) : S(y); });
    }
  }

  /// exp(guess_) is the share of a class.
  void weigh(const Sequence& s, Batch<S>& batch, Index b) const {
    const bool balanced = options_.class_weights == "balanced";
    for (Index t = 0; t < (every_ ? s.steps : 1); ++t) {
      const double y = s.targets[std::size_t(t) * width()];
      if (balanced && !std::isnan(y)) batch.weight(t, b) = S(std::exp(-guess_[std::size_t(y)]) / double(outputs_));
      if (!s.weights.empty()) batch.weight(t, b) *= S(s.weights[std::size_t(t)]);
    }
  }

  OwnOptions options_;
  OwnFiles own_;
  bool classification_, every_, partial_ = false;  // partial_: a step may have only some of its targets
  Classes classes_;
  std::vector<DataFile> files_;
  std::array<SequenceSet, 3> parts_;        // by Split
  Scaling input_scaling_, target_scaling_;  // empty: none
  std::vector<Index> sources_;              // find_sources()
  std::vector<std::size_t> marked_;         // columns of the inputs whose gaps are marked
  std::vector<double> guess_;               // output of the constant predictor
  std::string unscaled_inputs_, unscaled_targets_;
  std::optional<NumberScores> number_scores_;
  std::optional<ClassScores> class_scores_;
  bool confusion_ = false, examples_ = false;
  mutable std::string examples_text_;  // of report(), of the first sequences
  mutable Index shown_ = 0;            // how many
  mutable Matrix<Index> counts_;       // of report(): outputs of each class (columns) for targets of each (rows)
  Index outputs_ = 0, longest_ = 0;
  std::unique_ptr<ItemBatches> batches_;
};

}  // namespace stiefel
