#include "results/analysis/compare_bits.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <stiefel/error.hpp>

#include "record/hdf5.hpp"
#include "record/reader.hpp"
#include "record/run_folder.hpp"
#include "training/checkpoint.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

bool depends_on_the_moment(const std::string& path) {
  static constexpr std::array groups = {"/config", "/provenance", "/timing", "/status"};
  static constexpr std::array columns = {"/wall_time", "/step_seconds", "/rss_bytes", "/seconds"};
  return std::any_of(groups.begin(), groups.end(), [&](const char* group) { return path.starts_with(group); }) ||
         std::any_of(columns.begin(), columns.end(), [&](const char* column) { return path.ends_with(column); });
}

template <class T> bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Whether two datasets have the same bits, NaN included. A float may be stored as float or, as in format 1, as double.
bool same(const hdf5::Dataset& a, const hdf5::Dataset& b) {
  using hdf5::Type;
  const Type type = a.type(), other = b.type();
  if (a.shape() != b.shape() || (type == Type::text) != (other == Type::text) ||
      (type == Type::complex) != (other == Type::complex))
    return false;
  if (type == Type::text) return a.read_text() == b.read_text();
  if (type == Type::i8 && other == Type::i8) return same_bits(a.read<std::int64_t>(), b.read<std::int64_t>());
  return same_bits(a.read(), b.read());
}

void compare_group(const ResultReader& a, const ResultReader& b, const std::string& group, const std::string& file,
                   std::vector<std::string>& found) {
  std::vector<std::string> names = a.children(group.empty() ? "/" : group),
                           others = b.children(group.empty() ? "/" : group);
  std::sort(names.begin(), names.end());
  std::sort(others.begin(), others.end());
  std::vector<std::string> all;
  std::set_union(names.begin(), names.end(), others.begin(), others.end(), std::back_inserter(all));
  for (const std::string& name : all) {
    const std::string path = group + "/" + name;
    if (depends_on_the_moment(path)) continue;
    if (!a.exists(path) || !b.exists(path) || a.is_group(path) != b.is_group(path))
      found.push_back(file + " " + path);
    else if (a.is_group(path))
      compare_group(a, b, path, file, found);
    else if (!same(a.root().dataset(path), b.root().dataset(path)))
      found.push_back(file + " " + path);
  }
}

}  // namespace

std::vector<std::string> differing(const fs::path& run, const fs::path& other) {
  std::vector<std::string> found;
  for (const fs::path& file : {fs::path("results.h5"), RunFolder{""}.network("best"), RunFolder{""}.network("last")}) {
    const bool here = fs::exists(run / file), there = fs::exists(other / file);
    if (here != there) found.push_back(file.string());
    if (here && there) compare_group(ResultReader(run / file), ResultReader(other / file), "", file.string(), found);
  }
  return found;
}

}  // namespace stiefel
