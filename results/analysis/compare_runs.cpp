#include "results/analysis/compare_runs.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <stiefel/error.hpp>

#include "results/record/reader.hpp"
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

/// Numbers as they are, NaN included.
bool same(const Array& a, const Array& b) {
  return a.shape == b.shape && (a.values.empty() || std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(double)) == 0);
}

void compare_group(const ResultReader& a, const ResultReader& b, const std::string& group, const std::string& file,
                   std::vector<std::string>& found) {
  std::vector<std::string> names = a.children(group.empty() ? "/" : group), others = b.children(group.empty() ? "/" : group);
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
    else if (a.shape(path) != b.shape(path) || a.is_text(path) != b.is_text(path) ||
             (a.is_text(path) ? a.texts(path) != b.texts(path) : !same(a.read(path), b.read(path))))
      found.push_back(file + " " + path);
  }
}

}  // namespace

std::vector<std::string> differing(const fs::path& run, const fs::path& other) {
  std::vector<std::string> found;
  for (const fs::path& file : {fs::path("results.h5"), network_path("", "best"), network_path("", "last")}) {
    const bool here = fs::exists(run / file), there = fs::exists(other / file);
    if (here != there) found.push_back(file.string());
    if (here && there) compare_group(ResultReader(run / file), ResultReader(other / file), "", file.string(), found);
  }
  return found;
}

}  // namespace stiefel
