/// A table in an open HDF5 file: creating its group, appending rows, reading them back.
#pragma once

#include <span>
#include <vector>

#include "record/hdf5.hpp"
#include "record/layout.hpp"

namespace stiefel {

/// Rows waiting for the next publish: the row axis, and each column's values one row after another.
struct PendingRows {
  std::vector<double> row;
  std::vector<std::vector<double>> columns;
  std::uint64_t count() const { return row.size(); }
  void clear();
};

/// The group with its axes, an empty row axis and empty columns, every axis attached to its scale.
void create_table(const hdf5::Group& root, const Table& table);
/// Adds the axes and columns that the stored table lacks because an older version made it: its `rows` rows have NaN there.
void complete_table(const hdf5::Group& root, const Table& table, std::uint64_t rows);
void append_rows(const hdf5::Group& root, const Table& table, const PendingRows& rows);
/// Rows of the table of a group, by the scale that names its row axis.
std::uint64_t row_count(const hdf5::Group& root, const std::string& group);
/// What this scale has for one of the rows.
double row_value(const hdf5::Group& root, const std::string& group, std::uint64_t row);
/// Throws Error when the table is stored with axes of other lengths; one that it lacks is not compared.
void require_sizes(const hdf5::Group& root, const Table& table);
/// Gives the table the lengths with which it is stored.
void take_sizes(const hdf5::Group& root, Table& table);
/// Cuts off all rows but the first `rows`.
void cut_rows(const hdf5::Group& root, const Table& table, std::uint64_t rows);
/// Copies the first `rows` rows of a table to another file, chunk by chunk.
void copy_rows(const hdf5::Group& from, const hdf5::Group& to, const Table& table, std::uint64_t rows);
/// Throws Error (Exit::damaged) unless the table has `rows` rows in every column and ends with the last of `pending`.
void verify_table(const hdf5::Group& root, const Table& table, std::uint64_t rows, const PendingRows& pending);

/// Upper bound of the bytes that a table adds to the file by `rows` more rows, `created` or not.
std::uint64_t bytes_of_rows(const Table& table, std::uint64_t rows, bool created);
/// Bytes of the compressed rows on the disk.
std::uint64_t stored_bytes(const hdf5::Group& root, const Table& table);

void write_axis(const hdf5::Group& group, const Axis& axis);
void describe(hdf5::Object& object, const std::string& units, const std::string& long_name,
              const std::string& description = "");

}  // namespace stiefel
