/// Sequences of a user's own: features and targets at every step, from a CSV file or from NumPy arrays.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <stiefel/task.hpp>

#include "tasks/formats/csv.hpp"

namespace stiefel {

/// A CSV file, or arrays: inputs N × T × d or N × T, targets N × T × k, N × T, N × k or N, lengths N. `inputs` is the name
/// of an array in a file of named arrays, and so are `targets` and `lengths` with one.
struct SequenceSource {
  std::string file, inputs, targets, lengths;
};
/// Whether the name is that of a .npy file or of a file of named arrays.
bool is_array(const std::string& file);
/// Whether the name ends like that of another format, such as .xlsx.
bool is_foreign(const std::string& file);
/// What to do with such a file.
std::string advice_on_foreign(const std::string& file);

class Classes;
struct SequenceRules {
  std::string sequence;                        ///< CSV: column that names the sequence; empty: the file is one
  std::vector<std::string> features, targets;  ///< CSV: columns; no features: all other columns
  char separator = ',';
  bool classes = false;  ///< the target is a class
  bool last = false;     ///< only the last step of a sequence has one
  bool gaps = false;     ///< inputs may be missing
  /// CSV: columns that become an input NAME=VALUE for each value, and the values; those of the first file count.
  std::map<std::string, Classes>* categories = nullptr;
  std::string weights;   ///< CSV: column, no feature; named arrays: array; .npy: file; empty: none
  bool training = true;  ///< weights are read
};

struct Sequence {
  Index steps = 0;
  std::vector<double> inputs;   ///< d × steps; NaN where there is none
  std::vector<double> targets;  ///< k × steps, or k if `last`; a class number if `classes`; NaN where there is none
  std::vector<double> weights;  ///< steps, or 1 if `last`; empty: all weigh 1
};

/// Names of classes by number, ordered as numbers if all of them are. One number written in two ways is refused.
class Classes {
 public:
  Classes() = default;
  /// Those of a trained network; no further ones are let in.
  explicit Classes(std::vector<std::string> names);
  /// Number of a class; −1 for one that is not let in.
  Index number(const std::string& name);
  /// Orders the classes and lets no further ones in: new number of each old one.
  std::vector<Index> order();
  const std::vector<std::string>& names() const { return names_; }
  /// For the message on a class that is not there: whether one that is there is the same number.
  std::string hint(const std::string& name) const;

 private:
  std::map<std::string, Index, std::less<>> numbers_;
  std::vector<std::string> names_;
  bool closed_ = false;
};

/// Number of the category in a field; refuses a missing one, and one that is not let in.
Index category_of(const CsvReader& reader, const CsvField& field, std::size_t column, Classes& values);

struct SequenceSet {
  Index features = 0, targets = 0;   ///< d, k (1 for classes)
  std::vector<std::string> columns;  ///< CSV: names of the features
  std::vector<Sequence> sequences;
};

/// Reads a source whose files are looked for from the current folder and then in the data directory. Error(Exit::data)
/// names file:line:column, or the array and the index. Adds what was read to `files`.
SequenceSet load_sequences(const SequenceSource& source, const SequenceRules& rules, const std::string& directory,
                           Classes& classes, std::vector<DataFile>& files);

/// From bytes, for `file` in messages.
SequenceSet parse_csv_sequences(std::string_view bytes, const std::string& file, const SequenceRules& rules,
                                Classes& classes);

}  // namespace stiefel
