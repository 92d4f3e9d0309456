/// The tables of a run for other programs: CSV files and event files of TensorBoard.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <stiefel/export.hpp>

#include "results/analysis/run_data.hpp"

namespace stiefel {

/// One entry of each row of a dataset.
struct RunColumn {
  std::string name;  ///< an array with further axes has a column for each entry: "singular_values_0",
                     ///< "eigenvalues_0_re", "seconds_forward"
  const double* first;
  std::size_t stride;
  bool numbered = false;  ///< whether it is one of several entries and only its number distinguishes it
  double operator[](std::size_t row) const { return first[row * stride]; }
};

/// A group whose datasets all have the same number of rows.
struct RunTable {
  std::string group;  ///< "/spectrum/recurrent"
  std::size_t rows = 0;
  std::vector<RunColumn> columns;     ///< the row axis first
  std::vector<std::string> left_out;  ///< paths of datasets with too many entries per row
};

/// A request for everything that a run recorded.
STIEFEL_API RunRequest export_request();
/// The tables of a run. They refer to `run`, which must outlive them.
STIEFEL_API std::vector<RunTable> tables_of(const RunData& run);

/// Writes a file for each table, "spectrum_recurrent.csv" and so on. Returns their paths.
STIEFEL_API std::vector<std::filesystem::path> export_csv(const std::vector<RunTable>& tables,
                                                          const std::filesystem::path& folder);
/// Writes every column that has one number per step as scalars, which are named by the path of the dataset.
STIEFEL_API void export_tensorboard(const RunData& run, const std::filesystem::path& file);

/// A cell of CSV, unchanged, in quotes if needed (RFC 4180).
STIEFEL_API std::string csv_quoted(const std::string& text);
/// A cell of CSV, made printable, in quotes if needed. A text that a spreadsheet would take for a formula, because it
/// begins with =, +, - or @ and is not a number, gets an apostrophe in front.
STIEFEL_API std::string csv_field(const std::string& text);

}  // namespace stiefel
