// The rules for names and axes of the result file.
#include "record/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include <stiefel/error.hpp>

namespace stiefel {
namespace {

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  if (text.empty() || !letter(text[0])) return false;
  for (char c : text)
    if (!letter(c) && !(c >= '0' && c <= '9')) return false;
  return true;
}

void check_group(const std::string& group) {
  std::size_t start = 0;
  do {
    if (group.empty() || group[start] != '/')
      throw Error(fmt::format("result group '{}' must be an absolute path such as /steps", group));
    const std::size_t stop = std::min(group.find('/', start + 1), group.size());
    const std::string part = group.substr(start + 1, stop - start - 1);
    if (!is_name(part))
      throw Error(
          fmt::format("result group '{}': '{}' is not a valid name; use lower-case letters, digits and _, starting "
                      "with a letter or _",
                      group, part));
    start = stop;
  } while (start < group.size());
}

}  // namespace

Axis count_axis(std::string name, Index length, std::string long_name) {
  Axis axis{.name = std::move(name), .long_name = std::move(long_name), .values = std::vector<double>(length)};
  std::iota(axis.values.begin(), axis.values.end(), 0.0);
  return axis;
}

const Axis& Table::axis(const std::string& name) const {
  for (const Axis& axis : axes)
    if (axis.name == name) return axis;
  throw Error(fmt::format("result group {} has no axis '{}'", group, name));
}

const Column& Table::column(const std::string& name) const {
  for (const Column& column : columns)
    if (column.name == name) return column;
  throw Error(fmt::format("result group {} has no column '{}'", group, name));
}

Index Table::width(const Column& column) const {
  Index count = column.type == ColumnType::complex ? 2 : 1;
  for (const std::string& name : column.axes) count *= axis(name).length();
  return count;
}

Index Table::width() const {
  Index count = 0;
  for (const Column& column : columns) count += width(column);
  return count;
}

void check(const Table& table) {
  check_group(table.group);
  std::set<std::string> taken;
  const auto claim = [&](const std::string& name) {
    if (!is_name(name))
      throw Error(fmt::format(
          "'{}' cannot be recorded in {}: use lower-case letters, digits and _, starting with a letter or _", name,
          table.group));
    if (!taken.insert(name).second)
      throw Error(fmt::format("'{}' is recorded twice in {}; rename one of them", name, table.group));
  };
  claim(table.row.name);
  for (const Axis& axis : table.axes) {
    claim(axis.name);
    if (axis.length() == 0) throw Error(fmt::format("axis '{}' of {} is empty", axis.name, table.group));
  }
  for (const Column& column : table.columns) {
    claim(column.name);
    for (const std::string& name : column.axes) table.axis(name);
  }
  for (const std::string& name : {table.plot.signal, table.plot.x})
    if (!name.empty()) table.column(name);
  if (table.chunk_rows < 1)
    throw Error(fmt::format("{} asks for chunks of {} rows; at least 1 is needed", table.group, table.chunk_rows));
}

double wall_seconds(const std::vector<Segment>& segments) {
  double seconds = 0;
  for (const Segment& segment : segments) seconds += std::max(0.0, segment.ended - segment.started);
  return seconds;
}

const std::string* RunHeader::find_provenance(const std::string& name) const {
  const auto found = std::ranges::find(provenance, name, &std::pair<std::string, std::string>::first);
  return found == provenance.end() ? nullptr : &found->second;
}

}  // namespace stiefel
