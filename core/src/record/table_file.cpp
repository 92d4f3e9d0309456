// Tables in an open HDF5 file: every axis is a dimension scale, and rows are appended along the first one.
#include "record/table_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <stiefel/error.hpp>

namespace stiefel {
namespace {

// A chunk that is not full is rewritten at each publish, which small chunks keep cheap.
constexpr std::uint64_t largest_chunk_bytes = std::uint64_t(1) << 17;

std::uint64_t chunk_rows(const Table& table, const Column& column) {
  const std::uint64_t row_bytes = 8 * std::uint64_t(table.width(column));
  return std::clamp<std::uint64_t>(largest_chunk_bytes / row_bytes, 1, std::uint64_t(table.chunk_rows));
}

hdf5::Shape chunk_shape(const Table& table, const Column& column) {
  hdf5::Shape chunk = {chunk_rows(table, column)};
  for (const std::string& name : column.axes) chunk.push_back(std::uint64_t(table.axis(name).length()));
  while (8 * hdf5::element_count(chunk) > 64 * largest_chunk_bytes) {  // one very long row
    auto longest = std::max_element(chunk.begin(), chunk.end());
    *longest = (*longest + 1) / 2;
  }
  return chunk;
}

hdf5::Shape shape_of(const Table& table, const Column& column, std::uint64_t rows) {
  hdf5::Shape shape = {rows};
  for (const std::string& name : column.axes) shape.push_back(std::uint64_t(table.axis(name).length()));
  return shape;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Creates a column with `rows` rows of its fill value: NaN, or 0 if it has integers or booleans.
void create_column(const hdf5::Group& group, const Table& table, const Column& column, const hdf5::Dataset& row,
                   std::uint64_t rows) {
  hdf5::Dataset dataset =
      group.create_dataset(column.name, {column.type, shape_of(table, column, 0), chunk_shape(table, column)});
  describe(dataset, column.units, column.long_name.empty() ? column.name : column.long_name, column.description);
  dataset.attach_scale(0, row);
  for (std::size_t i = 0; i < column.axes.size(); ++i) {
    hdf5::Dataset scale = group.dataset(column.axes[i]);
    dataset.attach_scale(unsigned(i + 1), scale);
    scale.close();
  }
  dataset.resize(shape_of(table, column, rows));
  dataset.close();
}

/// Writes the plot of a table as attributes of NeXus. The group above gets the plot of its first table.
void write_plot(const hdf5::Group& root, const Table& table) {
  const Plot& plot = table.plot;
  if (plot.signal.empty()) return;
  const Column& signal = table.column(plot.signal);
  std::vector<std::string> axes = signal.axes;
  axes.insert(axes.begin(), plot.x.empty() ? table.row.name : plot.x);
  hdf5::Group group = root.group(table.group);
  group.set_text("NX_class", "NXdata");
  group.set_text("signal", plot.signal);
  group.set_texts("axes", axes);
  if (plot.logarithmic) group.set_text("SILX_style", R"({"signal_scale_type": "log"})");
  if (plot.curves) {
    hdf5::Dataset dataset = group.dataset(plot.signal);
    dataset.set_text("interpretation", "spectrum");
    dataset.close();
  }
  group.close();
  const std::size_t slash = table.group.rfind('/');
  hdf5::Group above = root.group(slash == 0 ? "/" : table.group.substr(0, slash));
  if (slash == 0 ? plot.of_file : !above.has_attribute("default"))
    above.set_text("default", table.group.substr(slash + 1));
  above.close();
}

void append(const hdf5::Group& group, const Table& table, const Column& column, std::span<const double> values,
            std::uint64_t count) {
  hdf5::Dataset dataset = group.dataset(column.name);
  const std::uint64_t before = dataset.shape().at(0);
  dataset.resize(shape_of(table, column, before + count));
  dataset.write(before, values);
  dataset.close();
}

}  // namespace

void PendingRows::clear() {
  row.clear();
  for (auto& column : columns) column.clear();
}

void describe(hdf5::Object& object, const std::string& units, const std::string& long_name,
              const std::string& description) {
  object.set_text("units", units);
  object.set_text("long_name", long_name);
  if (!description.empty()) object.set_text("description", description);
}

void write_axis(const hdf5::Group& group, const Axis& axis) {
  const hdf5::Shape shape = {std::uint64_t(axis.length())};
  const bool texts = axis.values.empty();
  const hdf5::Type type = texts ? hdf5::Type::text : hdf5::Type::i8;
  hdf5::Dataset scale = group.create_dataset(axis.name, {type, shape, {}});
  if (texts)
    scale.write(0, axis.labels);
  else
    scale.write(0, axis.values);
  describe(scale, "1", axis.long_name.empty() ? axis.name : axis.long_name);
  scale.make_scale(axis.name);
  scale.close();
}

void create_table(const hdf5::Group& root, const Table& table) {
  hdf5::Group group = root.make_group(table.group);
  hdf5::Dataset row = group.create_dataset(table.row.name, {table.row.type, {0}, chunk_shape(table, table.row)});
  describe(row, table.row.units, table.row.long_name.empty() ? table.row.name : table.row.long_name,
           table.row.description);
  row.make_scale(table.row.name);
  for (const Axis& axis : table.axes) write_axis(group, axis);
  for (const Column& column : table.columns) create_column(group, table, column, row, 0);
  row.close();
  group.close();
  write_plot(root, table);
}

void complete_table(const hdf5::Group& root, const Table& table, std::uint64_t rows) {
  hdf5::Group group = root.group(table.group);
  hdf5::Dataset row = group.dataset(table.row.name);
  for (const Axis& axis : table.axes)
    if (!group.exists(axis.name)) write_axis(group, axis);
  for (const Column& column : table.columns)
    if (!group.exists(column.name)) create_column(group, table, column, row, rows);
  row.close();
  group.close();
  write_plot(root, table);
}

void append_rows(const hdf5::Group& root, const Table& table, const PendingRows& rows) {
  if (rows.count() == 0) return;
  hdf5::Group group = root.group(table.group);
  append(group, table, table.row, rows.row, rows.count());
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    append(group, table, table.columns[i], rows.columns[i], rows.count());
  group.close();
}

std::uint64_t row_count(const hdf5::Group& root, const std::string& group) {
  const hdf5::Group table = root.group(group);
  return table.dataset(table.children().at(0)).shape().at(0);  // the row axis is made first
}

double row_value(const hdf5::Group& root, const std::string& group, std::uint64_t row) {
  const hdf5::Group table = root.group(group);
  return table.dataset(table.children().at(0)).read(row, 1).at(0);
}

void require_sizes(const hdf5::Group& root, const Table& table) {
  const hdf5::Group group = root.group(table.group);
  for (const Axis& axis : table.axes)
    if (!group.exists(axis.name))
      continue;
    else if (const std::uint64_t length = group.dataset(axis.name).shape().at(0);
             length != std::uint64_t(axis.length()))
      throw Error(
          fmt::format("{} has {} entries, and this change would make it {}; start another run with `stiefel run`, or "
                      "turn off this part of `record`",
                      group.dataset(axis.name).where(), length, axis.length()));
}

void take_sizes(const hdf5::Group& root, Table& table) {
  const hdf5::Group group = root.group(table.group);
  for (Axis& axis : table.axes)
    if (axis.labels.empty() && group.exists(axis.name)) axis.values = group.dataset(axis.name).read();
}

void cut_rows(const hdf5::Group& root, const Table& table, std::uint64_t rows) {
  hdf5::Group group = root.group(table.group);
  const auto cut = [&](const Column& column) {
    hdf5::Dataset dataset = group.dataset(column.name);
    if (dataset.shape().at(0) > rows) dataset.resize(shape_of(table, column, rows));
    dataset.close();
  };
  cut(table.row);
  for (const Column& column : table.columns) cut(column);
  group.close();
}

void copy_rows(const hdf5::Group& from, const hdf5::Group& to, const Table& table, std::uint64_t rows) {
  hdf5::Group source = from.group(table.group), target = to.group(table.group);
  const auto copy = [&](const Column& column) {
    const hdf5::Dataset dataset = source.dataset(column.name);
    const std::uint64_t step = chunk_rows(table, column);
    for (std::uint64_t first = 0; first < rows; first += step) {
      const std::uint64_t count = std::min(step, rows - first);
      append(target, table, column, dataset.read(first, count), count);
    }
  };
  copy(table.row);
  for (const Column& column : table.columns) copy(column);
  target.close();
}

void verify_table(const hdf5::Group& root, const Table& table, std::uint64_t rows, const PendingRows& pending) {
  const hdf5::Group group = root.group(table.group);
  const auto verify = [&](const Column& column, const std::vector<double>& written) {
    const hdf5::Dataset dataset = group.dataset(column.name);
    const std::uint64_t stored_rows = dataset.shape().at(0);
    if (stored_rows != rows)
      throw Error(
          fmt::format("{} has {} rows right after {} were written; the disk or its file system cannot be trusted",
                      dataset.where(), stored_rows, rows),
          Exit::damaged);
    if (pending.count() == 0) return;
    const std::vector<double> last = dataset.read(rows - 1, 1);
    if (!std::equal(last.begin(), last.end(), written.end() - std::ptrdiff_t(last.size()), written.end(), same))
      throw Error(
          fmt::format(
              "{} does not read back the numbers that were written; the disk or its file system cannot be trusted",
              dataset.where()),
          Exit::damaged);
  };
  verify(table.row, pending.row);
  for (std::size_t i = 0; i < table.columns.size(); ++i) verify(table.columns[i], pending.columns[i]);
}

std::uint64_t bytes_of_rows(const Table& table, std::uint64_t rows, bool created) {
  // Per dataset: object header, attributes, references between scales and columns. Per chunk: an entry of the index.
  constexpr std::uint64_t dataset_bytes = 8192, chunk_bytes = 256;
  std::uint64_t bytes = 0;
  const auto add = [&](const Column& column) {
    if (!created) bytes += dataset_bytes;
    if (rows == 0) return;
    const std::uint64_t width = 8 * std::uint64_t(table.width(column)), per_chunk = chunk_rows(table, column);
    bytes += (rows + per_chunk) * (width + width / 64) + (rows / per_chunk + 2) * chunk_bytes + dataset_bytes;
  };
  add(table.row);
  for (const Column& column : table.columns) add(column);
  if (!table.plot.signal.empty()) bytes += dataset_bytes;
  if (!created)
    for (const Axis& axis : table.axes) {
      bytes += 2 * dataset_bytes + 8 * std::uint64_t(axis.length());
      for (const std::string& label : axis.labels) bytes += 64 + label.size();
    }
  return bytes;
}

std::uint64_t stored_bytes(const hdf5::Group& root, const Table& table) {
  const hdf5::Group group = root.group(table.group);
  std::uint64_t bytes = group.dataset(table.row.name).stored_bytes();
  for (const Column& column : table.columns) bytes += group.dataset(column.name).stored_bytes();
  return bytes;
}

}  // namespace stiefel
