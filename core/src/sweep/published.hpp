// Published results as data: experiments/papers/published.yaml, whose first lines explain its keys.
#pragma once

#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>

#include "config/problems.hpp"

namespace stiefel {

/// The criterion by which a curve is judged.
struct Criterion {
  enum class Kind { reaches, never, returns, better_than, faster_than, within };
  Kind kind = Kind::reaches;
  double value = std::numeric_limits<double>::quiet_NaN();  ///< of the metric: all kinds but better_than and within
  Index by = 0;                                             ///< reaches: the last step at which that counts
  double low = value, high = value;                         ///< within
  std::vector<std::string> rows;                            ///< better_than and faster_than: of the same item
  bool after_runs = false;                                  ///< whether it was written after the row had been run
};

struct STIEFEL_API PublishedRow {
  std::string paper, item, title, row;
  std::string panel, label;  ///< in the item's figure: the part of the name that a panel has in common, and the rest
  std::string against;       ///< x of the figure instead of steps: NAME of the part "NAME = NUMBER" of the name
  double at = std::numeric_limits<double>::quiet_NaN();  ///< this NUMBER
  std::string file;                    ///< file of the experiment, relative to the folder above that of the list
  std::vector<std::string> overrides;  ///< merged over the file
  std::vector<Index> seeds{1};
  std::string metric, kind, certainty = "printed", budget = "published", needs, unit, bench, explanation;
  std::string item_note, note;  ///< of the whole item, and of this row
  std::string measured_as;      ///< the kind of the rows that it is compared with by better_than, else its own
  double value = std::numeric_limits<double>::quiet_NaN();
  std::optional<Criterion> judge;
  Location where;

  bool timing() const { return kind == "seconds"; }
  /// Whether its value is a printed result, not one that is remembered or quoted from another row of the list.
  bool printed() const { return certainty == "printed"; }
  /// Whether the paper does not say how long it trained.
  bool own_budget() const { return budget == "ours"; }
  /// Accuracy is the only metric of the papers that is better when higher.
  bool higher_is_better() const { return metric == "accuracy"; }
  /// "scornn/table-1": what `stiefel reproduce` calls the item.
  std::string item_name() const;
};

struct PublishedPaper {
  std::string authors, title;
  std::string outcome;  ///< what reproduces, what does not, and how sure that is
  Index year = 0;
};

struct STIEFEL_API PublishedResults {
  std::filesystem::path folder;
  std::map<std::string, PublishedPaper> papers;
  std::map<std::string, double> tolerances;  ///< by metric: how much worse a measured value may be
  std::vector<PublishedRow> rows;            ///< in the order of the file

  /// Returns the rows of papers ("scornn"), items ("scornn/table-1") or experiments ("scornn/mnist_170"), or of all
  /// papers if no names are given. Of these, chooses the one named `text`, or else all whose names contain it. Throws
  /// Error for an unknown name, or if none is left.
  std::vector<const PublishedRow*> choose(const std::vector<std::string>& names, const std::string& text = "") const;
};

/// Reads FOLDER/papers/published.yaml. A single Error contains all problems, one line each.
STIEFEL_API PublishedResults read_published(const std::filesystem::path& folder);

}  // namespace stiefel
