// Rows of a CSV file, or slices of arrays, become sequences.
#include "tasks/formats/sequence_set.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>

#include <stiefel/error.hpp>
#include <stiefel/npy.hpp>

#include "tasks/formats/csv.hpp"
#include "tasks/formats/data_path.hpp"
#include "tasks/formats/inflate.hpp"
#include "tasks/formats/named_arrays.hpp"

namespace stiefel {

bool is_array(const std::string& file) { return has_named_arrays(file) || boost::iends_with(file, ".npy"); }

namespace {
bool ends_in(const std::string& file, std::initializer_list<const char*> endings) {
  return std::ranges::any_of(endings, [&](const char* ending) { return boost::iends_with(file, ending); });
}
bool is_table(const std::string& file) { return ends_in(file, {".parquet", ".feather", ".xlsx"}); }
bool is_matlab(const std::string& file) { return ends_in(file, {".mat"}); }
}  // namespace

bool is_foreign(const std::string& file) {
  return is_table(file) || is_matlab(file) ||
         ends_in(file, {".xls", ".ods", ".pkl", ".json", ".jsonl", ".pt", ".pth", ".wav", ".flac"});
}

std::string advice_on_foreign(const std::string& file) {
  const std::string name = file.substr(0, file.rfind('.'));
  if (is_table(file) || is_matlab(file))
    return fmt::format("convert it: python3 -m stiefel.convert {} {}.{}", file, name, is_table(file) ? "csv" : "npz");
  if (ends_in(file, {".wav", ".flac"})) return "the task labelled_sounds reads folders of sounds";
  return "save each array with numpy.save, or the table as CSV";
}

namespace {

/// The decimal number that a text is in one way of writing: its digits from the first to the last that is not 0, and the
/// power of ten of the last one; the text itself if it is no number.
std::string plain_number(const std::string& text) {
  double value = 0;
  if (!parse_number(text, value)) return text;
  if (value == 0) return "0";
  const std::size_t end = std::min(text.find_first_of("eE"), text.size()), sign = text.find_first_of("+-") == 0;
  std::int64_t power = end < text.size() ? std::strtoll(text.c_str() + end + 1, nullptr, 10) : 0;
  std::string digits = text.substr(sign, end - sign);
  if (const std::size_t point = digits.find('.'); point != digits.npos) {
    power -= std::int64_t(digits.size() - point - 1);
    digits.erase(point, 1);
  }
  digits.erase(0, digits.find_first_not_of('0'));
  for (; digits.ends_with('0'); ++power) digits.pop_back();
  return fmt::format("{}{}e{}", text[0] == '-' ? "-" : "", digits, power);
}

}  // namespace

std::string Classes::hint(const std::string& name) const {
  const std::string plain = plain_number(name);
  for (const std::string& other : names_)
    if (plain_number(other) == plain)
      return fmt::format("; training has {}, the same number: write it in one way", shown(other));
  return "";
}

Classes::Classes(std::vector<std::string> names) : names_(std::move(names)), closed_(true) {
  for (std::size_t i = 0; i < names_.size(); ++i) numbers_[names_[i]] = Index(i);
}

Index Classes::number(const std::string& name) {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  if (closed_) return -1;
  names_.push_back(name);
  return numbers_[name] = Index(names_.size()) - 1;
}

std::vector<Index> Classes::order() {
  std::vector<double> values(names_.size());
  bool numbers = true;
  for (std::size_t i = 0; i < names_.size(); ++i) numbers = numbers && parse_number(names_[i], values[i]);
  std::vector<Index> by_rank(names_.size()), rank_of(names_.size());
  std::iota(by_rank.begin(), by_rank.end(), Index(0));
  std::stable_sort(by_rank.begin(), by_rank.end(), [&](Index a, Index b) {
    const auto first = std::size_t(a), second = std::size_t(b);
    return numbers && values[first] != values[second] ? values[first] < values[second] : names_[first] < names_[second];
  });
  std::map<std::string, std::string> written;
  for (const std::string& name : names_)
    if (const auto [place, added] = written.emplace(plain_number(name), name); numbers && !added)
      throw Error(fmt::format("sequence_csv: the classes {} and {} are the same number; write it in one way.",
                              place->second, name),
                  Exit::data);
  std::vector<std::string> names;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    names.push_back(names_[std::size_t(by_rank[rank])]);
    rank_of[std::size_t(by_rank[rank])] = numbers_[names.back()] = Index(rank);
  }
  names_ = names;
  closed_ = true;
  return rank_of;
}

Index category_of(const CsvReader& reader, const CsvField& field, std::size_t column, Classes& values) {
  const std::string name = boost::trim_copy_if(std::string(field.text), boost::is_any_of(" \t"));
  const std::string& header = reader.header()[column];
  if (name.empty() || is_missing(name))
    reader.refuse(field.offset, fmt::format("column {} holds {}, a missing category; give it a name, such as unknown",
                                            shown(header), shown(field.text)));
  const Index number = values.number(name);
  if (number < 0)
    reader.refuse(field.offset, fmt::format("column {} holds the category {}, which no training sequence has{}",
                                            shown(header), shown(name), values.hint(name)));
  return number;
}

namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

bool all_missing(const std::vector<double>& targets) {
  return std::ranges::all_of(targets, [](double y) { return std::isnan(y); });
}

class CsvSequences {
 public:
  CsvSequences(std::string_view bytes, const std::string& file, const SequenceRules& rules, Classes& classes)
      : reader_(bytes, file, rules.separator), rules_(rules), classes_(classes) {
    for (const std::string& name : rules.targets) targets_.push_back(reader_.column(name));
    if (!rules.sequence.empty()) sequence_ = reader_.column(rules.sequence);
    if (rules.training && !rules.weights.empty()) weight_ = reader_.column(rules.weights);
    for (const std::string& name : rules.features) features_.push_back(reader_.column(name));
    for (std::size_t i = 0; rules.features.empty() && i < reader_.header().size(); ++i)
      if (i != sequence_ && std::find(targets_.begin(), targets_.end(), i) == targets_.end() &&
          (rules.weights.empty() || reader_.header()[i] != rules.weights))
        features_.push_back(i);
    if (features_.empty()) reader_.refuse(0, "no column is left for the features");
    if (rules.categories)
      for (const auto& [name, values] : *rules.categories)
        if (std::ranges::find(features_, reader_.column(name)) == features_.end())
          reader_.refuse(0, fmt::format("the column {} of `categories` is not an input", shown(name)));
    for (const std::size_t column : features_) {
      const std::string& name = reader_.header()[column];
      values_.push_back(rules.categories && rules.categories->contains(name) ? &rules.categories->at(name) : nullptr);
    }
  }

  SequenceSet read() {
    SequenceSet set{Index(features_.size()), Index(targets_.size()), {}, {}};
    for (const std::size_t column : features_) set.columns.push_back(reader_.header()[column]);
    std::map<std::string, std::size_t, std::less<>> places;
    std::vector<LastRow> last_rows;
    std::vector<CsvField> row;
    std::string name;
    std::size_t place = 0;
    while (reader_.next(row)) {
      if (set.sequences.empty() || (!rules_.sequence.empty() && row[sequence_].text != name)) {
        if (!rules_.sequence.empty()) name = reader_.name(row[sequence_], sequence_);
        place = places.try_emplace(name, set.sequences.size()).first->second;
        if (place == set.sequences.size()) set.sequences.emplace_back(), last_rows.emplace_back();
      }
      Sequence& sequence = set.sequences[place];
      ++sequence.steps;
      for (std::size_t i = 0; i < features_.size(); ++i) {
        const CsvField& field = row[features_[i]];
        sequence.inputs.push_back(values_[i] ? double(category_of(reader_, field, features_[i], *values_[i]))
                                             : reader_.input(field, features_[i], rules_.gaps));
      }
      if (weight_) {
        if (rules_.last) sequence.weights.clear();
        sequence.weights.push_back(weight(row[*weight_]));
      }
      if (rules_.last)
        last_rows[place] = LastRow(row, targets_);
      else
        for (const std::size_t column : targets_) sequence.targets.push_back(target(row[column], column));
    }
    if (set.sequences.empty()) reader_.refuse(0, "a header, but no rows");
    for (std::size_t i = 0; rules_.last && i < set.sequences.size(); ++i) add_last(last_rows[i], set.sequences[i]);
    if (rules_.categories && !rules_.categories->empty()) expand(set);
    return set;
  }

 private:
  /// An input for each value of a column of categories.
  void expand(SequenceSet& set) {
    std::vector<std::string> names;
    std::vector<std::vector<Index>> orders;
    for (std::size_t i = 0; i < features_.size(); ++i) {
      orders.push_back(values_[i] ? values_[i]->order() : std::vector<Index>());
      if (!values_[i]) names.push_back(set.columns[i]);
      for (std::size_t value = 0; value < orders[i].size(); ++value)
        names.push_back(set.columns[i] + "=" + values_[i]->names()[value]);
    }
    for (Sequence& s : set.sequences) {
      std::vector<double> inputs;
      for (std::size_t k = 0; k < s.inputs.size(); ++k) {
        const std::size_t i = k % features_.size();
        if (!values_[i]) inputs.push_back(s.inputs[k]);
        for (std::size_t value = 0; value < orders[i].size(); ++value)
          inputs.push_back(orders[i][std::size_t(s.inputs[k])] == Index(value));
      }
      s.inputs = std::move(inputs);
    }
    set.features = Index(names.size());
    set.columns = std::move(names);
  }

  /// The targets of a row as text.
  struct LastRow {
    LastRow() = default;
    LastRow(const std::vector<CsvField>& row, const std::vector<std::size_t>& columns) : offset(row.front().offset) {
      for (const std::size_t column : columns) targets.emplace_back(row[column].text, row[column].offset);
    }
    std::size_t offset = 0;
    std::vector<std::pair<std::string, std::size_t>> targets;
  };

  void add_last(const LastRow& row, Sequence& sequence) {
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const auto& [text, offset] = row.targets[i];
      sequence.targets.push_back(target({text, offset}, targets_[i]));
    }
    if (all_missing(sequence.targets))
      reader_.refuse(row.offset, "the last row of a sequence has no target; `readout: last` needs it");
  }

  double weight(const CsvField& field) const {
    const double value = reader_.number(field, *weight_);
    if (value < 0) reader_.refuse(field.offset, fmt::format("the weight {} is below 0", value));
    return value;
  }

  /// NaN for an empty field.
  double target(const CsvField& field, std::size_t column) {
    if (field.text.find_first_not_of(" \t") == field.text.npos) return none;
    if (is_missing(field.text))
      reader_.refuse(
          field.offset,
          fmt::format("column {} holds {}, a missing value; {}{}", shown(reader_.header()[column]), shown(field.text),
                      rules_.last && targets_.size() == 1
                          ? "`readout: last` needs a target here: add it, or remove the sequence"
                          : "leave missing targets empty",
                      rules_.classes ? "; rename the class if it is one" : ""));
    if (!rules_.classes) return reader_.number(field, column);
    if (double number; parse_number(field.text, number) && number != std::floor(number))
      reader_.refuse(field.offset,
                     fmt::format("column {} holds {}, but classes must be integers or words; numbers need "
                                 "`kind: regression`",
                                 shown(reader_.header()[column]), shown(field.text)));
    const std::string name = boost::trim_copy_if(std::string(field.text), boost::is_any_of(" \t"));
    const Index number = classes_.number(name);
    if (number < 0)
      reader_.refuse(field.offset,
                     fmt::format("column {} holds the class {}, which no training sequence has{}",
                                 shown(reader_.header()[column]), shown(field.text), classes_.hint(name)));
    return double(number);
  }

  CsvReader reader_;
  const SequenceRules& rules_;
  Classes& classes_;
  std::size_t sequence_ = std::numeric_limits<std::size_t>::max();
  std::optional<std::size_t> weight_;
  std::vector<std::size_t> features_, targets_;
  std::vector<Classes*> values_;  // of each feature that is a category
};

class NpySequences {
 public:
  NpySequences(const SequenceSource& source, const SequenceRules& rules, const std::string& directory, Classes& classes,
               std::vector<DataFile>& files)
      : rules_(rules), classes_(classes), directory_(directory), files_(files) {
    std::string targets = source.targets, lengths = source.lengths;
    if (has_named_arrays(source.file)) {
      archive_ = open_named_arrays(find(source.file));
      if (targets.empty()) targets = "targets";
      if (lengths.empty() && archive_->has("lengths")) lengths = "lengths";
      inputs_ = read(source.inputs.empty() ? "inputs" : source.inputs);
    } else {
      inputs_ = read(source.file);
      if (targets.empty())
        throw Error(fmt::format("{}: targets are missing; use {{file: {}, targets: FILE.npy}}", path_, source.file),
                    Exit::data);
    }
    const std::vector<std::size_t>& shape = inputs_.shape;
    if ((shape.size() != 2 && shape.size() != 3) || inputs_.values.empty())
      refuse(inputs_, "inputs must be N × T × d or N × T, with at least one number");
    count_ = shape[0], steps_ = shape[1], features_ = shape.size() == 3 ? shape[2] : 1;
    inputs_path_ = path_;
    read_targets(targets);
    targets_path_ = path_;
    if (rules.training && !rules.weights.empty()) read_weights(read(rules.weights));
    if (!lengths.empty()) read_lengths(read(lengths));
  }

  SequenceSet take() {
    SequenceSet set{Index(features_), Index(width_), {}, {}};
    for (std::size_t n = 0; n < count_; ++n) {
      const std::size_t steps = lengths_.empty() ? steps_ : lengths_[n];
      Sequence& s = set.sequences.emplace_back();
      s.steps = Index(steps);
      const double* x = inputs_.values.data() + n * steps_ * features_;
      s.inputs.assign(x, x + steps * features_);
      for (std::size_t i = 0; i < s.inputs.size(); ++i)
        if (const bool missing = std::isnan(x[i]); !std::isfinite(x[i]) && !(missing && rules_.gaps))
          throw Error(fmt::format("{}: the input [{}, {}, {}] is {}", inputs_path_, n, i / features_, i % features_,
                                  missing ? fmt::format("NaN; {}", gaps_advice) : "not finite"),
                      Exit::data);
      const std::size_t first = n * (rules_.last ? 1 : steps_) * width_, count = (rules_.last ? 1 : steps) * width_;
      for (std::size_t i = first; i < first + count; ++i) s.targets.push_back(target(i));
      if (const std::size_t each = rules_.last ? 1 : steps_; !weights_.empty())
        s.weights.assign(weights_.begin() + std::ptrdiff_t(n * each),
                         weights_.begin() + std::ptrdiff_t(n * each + (rules_.last ? 1 : steps)));
      if (rules_.last && all_missing(s.targets))
        throw Error(fmt::format("{}: the target [{}] is not finite; `readout: last` needs it", targets_path_, n),
                    Exit::data);
    }
    return set;
  }

 private:
  /// The array of a file, or that of this name in the archive.
  Npy read(const std::string& name) {
    if (!archive_) return read_npy(find(name));
    path_ = fmt::format("{}: {}", archive_path_, name);
    return archive_->read(name);
  }
  const std::string& find(const std::string& name) {
    path_ = find_own_data(directory_, "sequence_csv", name);
    files_.push_back({name, path_});
    archive_path_ = path_;
    return path_;
  }
  [[noreturn]] void refuse(const Npy& array, const std::string& what) const {
    const std::string shape =
        array.shape.empty() ? "one number" : fmt::format("an array of {}", fmt::join(array.shape, " × "));
    throw Error(fmt::format("{}: {}; {}", path_, shape, what), Exit::data);
  }

  void read_lengths(const Npy& array) {
    if (array.shape != std::vector<std::size_t>{count_})
      refuse(array, fmt::format("lengths must be {} numbers, one for each sequence", count_));
    for (const double length : array.values) {
      if (!(length >= 1 && length <= double(steps_)) || length != std::floor(length))
        throw Error(fmt::format("{}: the length {} is not an integer from 1 to {}", path_, length, steps_), Exit::data);
      lengths_.push_back(std::size_t(length));
    }
  }

  void read_weights(const Npy& array) {
    const std::size_t fixed = rules_.last ? 1 : 2;
    if (!std::equal(array.shape.begin(), array.shape.end(), targets_.shape.begin(), targets_.shape.begin() + fixed))
      refuse(array, rules_.last ? fmt::format("weights must be {}", count_)
                                : fmt::format("weights must be {} × {}", count_, steps_));
    for (const double weight : array.values)
      if (!(weight >= 0) || !std::isfinite(weight))
        throw Error(fmt::format("{}: the weight {} is not a finite number of at least 0", path_, weight), Exit::data);
    weights_ = array.values;
  }

  void read_targets(const std::string& name) {
    targets_ = read(name);
    const std::vector<std::size_t>& shape = targets_.shape;
    const std::size_t fixed = rules_.last ? 1 : 2;
    const bool fits = (shape.size() == fixed || shape.size() == fixed + 1) && shape[0] == count_ &&
                      (rules_.last || shape[1] == steps_);
    if (!fits || targets_.values.empty())
      refuse(targets_, rules_.last ? fmt::format("targets at the last step must be {} or {} × k", count_, count_)
                                   : fmt::format("targets at every step must be {} × {} or {} × {} × k", count_, steps_,
                                                 count_, steps_));
    width_ = shape.size() == fixed ? 1 : shape[fixed];
    if (rules_.classes && width_ != 1)
      refuse(targets_, "classes need one number per target; save targets.argmax(-1) if the largest one is the class");
  }
  /// The target at index `i` of the array.
  double target(std::size_t i) {
    const double value = targets_.values[i];
    const auto refuse = [&](const std::string& what) {
      std::vector<std::size_t> place = targets_.shape;
      for (std::size_t k = place.size(), rest = i; k-- > 0; rest /= targets_.shape[k])
        place[k] = rest % targets_.shape[k];
      throw Error(fmt::format("{}: the target [{}] is {}", targets_path_, fmt::join(place, ", "), what), Exit::data);
    };
    if (std::isnan(value)) return none;
    if (!std::isfinite(value)) refuse("not finite");
    if (!rules_.classes) return value;
    if (value != std::floor(value))
      refuse(fmt::format("{}, but classes must be integers; numbers need `kind: regression`", value));
    if (std::abs(value) >= std::ldexp(1, 53))
      refuse(
          "2^53 or more in size, where integers are no longer told apart; number the classes: "
          "numpy.unique(targets, return_inverse=True)[1].reshape(targets.shape)");
    const std::string name = fmt::format("{}", value + 0.0);  // −0 is 0
    const Index number = classes_.number(name);
    if (number < 0) refuse(fmt::format("the class {}, which no training sequence has{}", name, classes_.hint(name)));
    return double(number);
  }

  const SequenceRules& rules_;
  Classes& classes_;
  const std::string& directory_;
  std::vector<DataFile>& files_;
  std::unique_ptr<NamedArrays> archive_;
  std::string path_, archive_path_, inputs_path_, targets_path_;
  Npy inputs_, targets_;
  std::size_t count_ = 0, steps_ = 0, features_ = 0, width_ = 0;
  std::vector<std::size_t> lengths_;
  std::vector<double> weights_;
};

}  // namespace

SequenceSet parse_csv_sequences(std::string_view bytes, const std::string& file, const SequenceRules& rules,
                                Classes& classes) {
  return CsvSequences(bytes, file, rules, classes).read();
}

SequenceSet load_sequences(const SequenceSource& source, const SequenceRules& rules, const std::string& directory,
                           Classes& classes, std::vector<DataFile>& files) {
  if (is_array(source.file) && !(rules.sequence.empty() && rules.features.empty() && rules.targets.empty() &&
                                 (!rules.categories || rules.categories->empty())))
    throw Error(fmt::format(
        "{}: `sequence`, `features`, `categories` and `targets` of the task name columns of a CSV file, which a "
        "file of arrays does not have; remove them",
        source.file));
  if (is_array(source.file)) return NpySequences(source, rules, directory, classes, files).take();
  const std::string path = find_own_data(directory, "sequence_csv", source.file);
  if (rules.targets.empty()) throw Error(fmt::format("{}: no target column is named; set `targets: [NAME]`", path));
  if (!source.targets.empty() || !source.lengths.empty())
    throw Error(
        fmt::format("{}: `targets` and `lengths` go with .npy files; the columns of a CSV file are named in "
                    "the task's `targets`",
                    path));
  files.push_back({source.file, path});
  return parse_csv_sequences(text_of({path, ""}), path, rules, classes);
}

}  // namespace stiefel
