/// The tables of a run for other programs: CSV files, event files of TensorBoard.
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
  std::string name;  ///< of an array with further axes a column for each entry: "singular_values_0",
                     ///< "eigenvalues_0_re", "seconds_forward"
  const double* first;
  std::size_t stride;
  bool numbered = false;  ///< one of many entries, of which only the number tells it apart
  double operator[](std::size_t row) const { return first[row * stride]; }
};

/// A group whose datasets have one number of rows.
struct RunTable {
  std::string group;  ///< "/spectrum/recurrent"
  std::size_t rows = 0;
  std::vector<RunColumn> columns;     ///< the row axis first
  std::vector<std::string> left_out;  ///< paths of datasets with too many entries per row
};

/// What read_runs() should read: everything that was recorded.
STIEFEL_API RunRequest export_request();
/// The tables refer to `run`, which must outlive them.
STIEFEL_API std::vector<RunTable> tables_of(const RunData& run);

/// A file for each table, "spectrum_recurrent.csv" and so on; returns their paths.
STIEFEL_API std::vector<std::filesystem::path> export_csv(const std::vector<RunTable>& tables,
                                                          const std::filesystem::path& folder);
/// Every column that has one number per step, as scalars named by the path of the dataset.
STIEFEL_API void export_tensorboard(const RunData& run, const std::filesystem::path& file);

/// One cell as it is, in quotes if needed (RFC 4180).
STIEFEL_API std::string csv_quoted(const std::string& text);
/// One cell, printable, with quotes if needed; an apostrophe goes before a text that a spreadsheet would take for a
/// formula: one that begins with =, +, - or @ and is not a number.
STIEFEL_API std::string csv_field(const std::string& text);

}  // namespace stiefel
