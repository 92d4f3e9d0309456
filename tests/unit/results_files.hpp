// What the tests of the result file share: a folder of their own, a small header, two tables with values that can be
// told again.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "record/layout.hpp"
#include "record/reader.hpp"
#include "record/writer.hpp"
#include "scratch.hpp"

namespace stiefel {

/// A new folder, removed at the end.
class Folder {
 public:
  const std::filesystem::path& path() const { return folder_.path; }
  std::filesystem::path results() const { return path() / "results.h5"; }
  /// Whether a file is being replaced.
  bool has_temporary_file() const {
    return std::ranges::any_of(std::filesystem::directory_iterator(path()),
                               [](const auto& entry) { return entry.path().extension() == ".tmp"; });
  }

 private:
  scratch::Folder folder_;
};

inline std::string bytes_of(const std::filesystem::path& path) { return scratch::read(path); }

inline RunHeader small_header() {
  RunHeader header;
  header.title = "adding, größer";
  header.run_id = "0123abcd";
  header.yaml = "name: adding\n";
  header.source = "name: adding # ∂L/∂h\n";
  header.overrides = {"seed=1", ""};
  header.hash = "ff";
  header.origins = {"name=adding.yaml:1"};
  header.provenance = {{"git_commit", "abc"}, {"hostname", ""}};
  header.plugins = {{"householder", "parametrisation", "/lib/h.so", "1.0", "b1", "aa"}};
  header.datasets = {{"train", "/data/train.gz", 9912422, "cc"}};
  header.segments = {{.host = "here"}};
  return header;
}

/// /steps with a loss, /spectrum/recurrent with n numbers, n complex numbers and a boolean.
inline Table steps_table() {
  return {.group = "/steps",
          .row = {.name = "step", .long_name = "optimizer step", .type = ColumnType::i8},
          .columns = {{.name = "loss", .long_name = "training loss", .description = "mean over the batch"},
                      {.name = "rss_bytes", .units = "byte", .type = ColumnType::i8}}};
}
inline Table spectrum_table(Index n) {
  Axis k{.name = "k", .long_name = "index"};
  for (Index i = 0; i < n; ++i) k.values.push_back(double(i));
  return {.group = "/spectrum/recurrent",
          .row = {.name = "snapshot", .type = ColumnType::i8},
          .axes = {k},
          .columns = {{.name = "singular_values", .axes = {"k"}},
                      {.name = "eigenvalues", .type = ColumnType::complex, .axes = {"k"}},
                      {.name = "is_best", .type = ColumnType::u1}},
          .chunk_rows = 16};
}

/// Not compressible, and a pure function of place and row.
inline double told(Index place, double row) { return std::sin(1e3 * row + 17.0 * double(place)); }

inline void append_step(ResultWriter& writer, int table, double step) {
  const double values[] = {told(0, step), 1e9 + step};
  writer.append(table, step, values);
}
inline void append_spectrum(ResultWriter& writer, int table, Index n, double row) {
  std::vector<double> values;
  for (Index i = 0; i < 3 * n; ++i) values.push_back(told(i, row));
  values.push_back(std::fmod(row, 2));
  writer.append(table, row, values);
}

/// Number of entries that are not what append_step and append_spectrum wrote for rows 1, 2, …, count; or -1 for a wrong
/// shape.
inline Index wrong_entries(const std::filesystem::path& path, Index count, Index n) {
  const ResultReader reader(path);
  const Array loss = reader.read("/steps/loss"), step = reader.read("/steps/step"),
              rss = reader.read("/steps/rss_bytes");
  const Array values = reader.read("/spectrum/recurrent/singular_values"),
              pairs = reader.read("/spectrum/recurrent/eigenvalues");
  const Array best = reader.read("/spectrum/recurrent/is_best");
  using Shape = std::vector<std::uint64_t>;
  const auto rows = std::uint64_t(count), width = std::uint64_t(n);
  if (loss.shape != Shape{rows} || step.shape != Shape{rows} || rss.shape != Shape{rows} || best.shape != Shape{rows} ||
      values.shape != Shape{rows, width} || pairs.shape != Shape{rows, width, 2})
    return -1;
  Index wrong = 0;
  for (Index i = 0; i < count; ++i) {
    const double row = double(i + 1);
    const auto at = std::size_t(i);
    wrong += step.values[at] != row || loss.values[at] != told(0, row) || rss.values[at] != 1e9 + row ||
             best.values[at] != std::fmod(row, 2);
    for (Index j = 0; j < n; ++j) wrong += values.values[std::size_t(i * n + j)] != told(j, row);
    for (Index j = 0; j < 2 * n; ++j) wrong += pairs.values[std::size_t(i * 2 * n + j)] != told(n + j, row);
  }
  return wrong;
}

}  // namespace stiefel
