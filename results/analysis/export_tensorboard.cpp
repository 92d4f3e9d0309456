// Writes TensorBoard's event files: records of a length, its checksum, a message and its checksum.
//
//   Event {1: double wall_time, 2: int64 step, 3: string file_version, 5: Summary}
//   Summary {1: Value…}   Value {1: string tag, 2: float}
#include <boost/crc.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <list>
#include <map>
#include <utility>

#include "base/atomic_file.hpp"
#include "results/analysis/run_tables.hpp"

namespace stiefel {
namespace {

static_assert(std::endian::native == std::endian::little);

template <class T> std::string plain(T value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

/// TensorBoard's masked CRC-32C: rotated and offset, because the CRC of data that contain a CRC is weak.
std::string checksum(const std::string& bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return plain(std::rotr(std::uint32_t(crc.checksum()), 15) + 0xA282EAD8U);
}

std::string record(const std::string& message) {
  const std::string length = plain(std::uint64_t(message.size()));
  return length + checksum(length) + message + checksum(message);
}

// Fields of a protocol buffer: a key, which consists of number and kind, then the value.
enum Kind { varint = 0, eight_bytes = 1, counted = 2, four_bytes = 5 };

std::string varint_text(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += char(value | 0x80);
  return bytes + char(value);
}
std::string key(unsigned number, Kind kind) { return varint_text(number << 3 | kind); }
std::string field(unsigned number, double value) { return key(number, eight_bytes) + plain(value); }
std::string field(unsigned number, float value) { return key(number, four_bytes) + plain(value); }
std::string field(unsigned number, std::int64_t value) {
  return key(number, varint) + varint_text(std::uint64_t(value));
}
std::string field(unsigned number, const std::string& bytes) {
  return key(number, counted) + varint_text(bytes.size()) + bytes;
}

constexpr std::size_t event_bytes_at_once = 1 << 20;

/// A table whose rows have steps, and its scalars with their tags.
struct Curves {
  const RunColumn* steps = nullptr;
  std::vector<std::pair<std::string, const RunColumn*>> scalars;
};

Curves curves_of(const RunTable& table) {
  Curves curves;
  for (const char* name : {"snapshot", "step"})
    for (const RunColumn& column : table.columns)
      if (column.name == name) curves.steps = &column;
  for (const RunColumn& column : table.columns) {
    // The axis is not a curve, and numbered entries would be too many. Wall time is left out because an event has it
    // exactly, while float32 has only multiples of 128 s.
    if (&column == curves.steps || &column == &table.columns[0] || column.numbered || column.name == "wall_time")
      continue;
    curves.scalars.emplace_back(table.group.substr(1) + "/" + column.name, &column);
  }
  return curves;
}

struct Row {
  std::int64_t step;
  const Curves* curves;
  std::size_t number;
};

std::string values_of(const Row& row) {
  std::string values;
  for (const auto& [tag, column] : row.curves->scalars)
    if (const double value = (*column)[row.number]; !std::isnan(value))
      values += field(1, field(1, tag) + field(2, float(value)));
  return values;
}

/// The wall time of steps, as far as it was recorded.
class RunClock {
 public:
  explicit RunClock(const RunData& run) : start_(run.header.segments.empty() ? 0 : run.header.segments[0].started) {
    const std::vector<double>&steps = run.column("/steps/step"), &times = run.column("/steps/wall_time");
    for (std::size_t i = 0; i < std::min(steps.size(), times.size()); ++i) times_[steps[i]] = times[i];
  }
  double at(double step) const {
    const auto after = times_.upper_bound(step);
    return after == times_.begin() ? start_ : std::prev(after)->second;
  }

 private:
  double start_;
  std::map<double, double> times_;
};

}  // namespace

void export_tensorboard(const RunData& run, const std::filesystem::path& file) {
  const std::vector<RunTable> tables = tables_of(run);
  std::list<Curves> all;
  std::vector<Row> rows;
  for (const RunTable& table : tables) {
    const Curves& curves = all.emplace_back(curves_of(table));
    for (std::size_t i = 0; curves.steps && i < table.rows; ++i)
      if (const double step = (*curves.steps)[i]; std::abs(step) < 0x1p53)
        rows.push_back({std::int64_t(step), &curves, i});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.step < b.step; });

  const RunClock clock(run);
  AtomicFile events(file);
  std::string bytes = record(field(1, clock.at(0)) + field(3, std::string("brain.Event:2")));
  for (auto row = rows.begin(); row != rows.end();) {
    const std::int64_t step = row->step;
    std::string summary;
    for (; row != rows.end() && row->step == step; ++row) summary += values_of(*row);
    if (!summary.empty()) bytes += record(field(1, clock.at(double(step))) + field(2, step) + field(5, summary));
    if (bytes.size() < event_bytes_at_once) continue;
    events.write(bytes);
    bytes.clear();
  }
  events.write(bytes);
  events.replace();
  events.sync_directory();
}

}  // namespace stiefel
