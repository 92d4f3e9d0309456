/// A table in an open HDF5 file: creates its group, appends, copies, cuts and verifies its rows.
#pragma once

#include <span>
#include <vector>

#include "record/hdf5.hpp"
#include "record/layout.hpp"

namespace stiefel {

/// Rows that wait for the next publish: the row axis, and the values of each column, row after row.
struct PendingRows {
  std::vector<double> row;
  std::vector<std::vector<double>> columns;
  std::uint64_t count() const { return row.size(); }
  void clear();
};

/// Creates the group of a table with its axes, an empty row axis and empty columns that are attached to their scales.
void create_table(const hdf5::Group& root, const Table& table);
/// Adds axes, columns and the plot that the stored table lacks because an older version made it. Its `rows` rows have NaN
/// in these columns, or 0 for integers and booleans.
void complete_table(const hdf5::Group& root, const Table& table, std::uint64_t rows);
void append_rows(const hdf5::Group& root, const Table& table, const PendingRows& rows);
/// How many rows the table of a group has, by its row axis.
std::uint64_t row_count(const hdf5::Group& root, const std::string& group);
/// The step, snapshot or epoch of a row: its value on the row axis.
double row_value(const hdf5::Group& root, const std::string& group, std::uint64_t row);
/// Throws Error if an axis is stored with another length. Axes that the file lacks are not compared.
void require_sizes(const hdf5::Group& root, const Table& table);
/// Gives the numeric axes of the table the coordinates with which they are stored.
void take_sizes(const hdf5::Group& root, Table& table);
/// Cuts off all rows but the first `rows`.
void cut_rows(const hdf5::Group& root, const Table& table, std::uint64_t rows);
/// Copies the first `rows` rows of a table to another file, chunk by chunk.
void copy_rows(const hdf5::Group& from, const hdf5::Group& to, const Table& table, std::uint64_t rows);
/// Throws Error (Exit::damaged) unless the table has `rows` rows in every column and ends with the last of `pending`.
void verify_table(const hdf5::Group& root, const Table& table, std::uint64_t rows, const PendingRows& pending);

/// Upper bound of the bytes that `rows` more rows add to the file, and the table itself unless it is `created`.
std::uint64_t bytes_of_rows(const Table& table, std::uint64_t rows, bool created);
/// Bytes of the compressed rows on the disk.
std::uint64_t stored_bytes(const hdf5::Group& root, const Table& table);

void write_axis(const hdf5::Group& group, const Axis& axis);
void describe(hdf5::Object& object, const std::string& units, const std::string& long_name,
              const std::string& description = "");

}  // namespace stiefel
