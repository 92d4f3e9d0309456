// TensorBoard's event files: records of a length, its checksum, a message and its checksum.
//
//   Event {1: double wall_time, 2: int64 step, 3: string file_version, 5: Summary}   Summary {1: Value…}   Value {1: string tag, 2: float}
#include <boost/crc.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "results/atomic_file.hpp"
#include "results/run_tables.hpp"

namespace stiefel {
namespace {

static_assert(std::endian::native == std::endian::little);

template <class T> std::string plain(T value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

/// CRC-32C, turned and shifted, since checksums of checksums are not good ones.
std::string checksum(const std::string& bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return plain(std::rotr(std::uint32_t(crc.checksum()), 15) + 0xA282EAD8U);
}

std::string record(const std::string& message) {
  const std::string length = plain(std::uint64_t(message.size()));
  return length + checksum(length) + message + checksum(message);
}

// Fields of a message in Google's encoding: a key, that is number and kind, then the value.
enum Kind { varint = 0, eight_bytes = 1, counted = 2, four_bytes = 5 };

std::string whole(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += char(value | 0x80);
  return bytes + char(value);
}
std::string key(unsigned number, Kind kind) { return whole(number << 3 | kind); }
std::string field(unsigned number, double value) { return key(number, eight_bytes) + plain(value); }
std::string field(unsigned number, float value) { return key(number, four_bytes) + plain(value); }
std::string field(unsigned number, std::int64_t value) { return key(number, varint) + whole(std::uint64_t(value)); }
std::string field(unsigned number, const std::string& bytes) { return key(number, counted) + whole(bytes.size()) + bytes; }

const RunColumn* column_of(const RunTable& table, const std::string& name) {
  for (const RunColumn& column : table.columns)
    if (column.name == name) return &column;
  return nullptr;
}

/// When steps were done, as far as it was recorded.
class Clock {
 public:
  explicit Clock(const RunData& run) : start_(run.header.segments.empty() ? 0 : run.header.segments[0].started) {
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
  std::map<std::int64_t, std::string> summaries;  // by step
  for (const RunTable& table : tables_of(run)) {
    const RunColumn* steps = column_of(table, "step");
    if (!steps) steps = column_of(table, "snapshot");
    if (!steps) continue;
    for (const RunColumn& column : table.columns) {
      // Entries of arrays would be a curve each.
      if (&column == steps || &column == &table.columns[0] || !run.find(table.group + "/" + column.name)) continue;
      const std::string tag = table.group.substr(1) + "/" + column.name;
      for (std::size_t i = 0; i < column.values.size(); ++i)
        if (!std::isnan(column.values[i]) && std::abs(steps->values[i]) < 0x1p53)
          summaries[std::int64_t(steps->values[i])] += field(1, field(1, tag) + field(2, float(column.values[i])));
    }
  }
  const Clock clock(run);
  std::string bytes = record(field(1, clock.at(0)) + field(3, std::string("brain.Event:2")));
  for (const auto& [step, summary] : summaries) bytes += record(field(1, clock.at(double(step))) + field(2, step) + field(5, summary));
  replace_file(file, bytes);
}

}  // namespace stiefel
