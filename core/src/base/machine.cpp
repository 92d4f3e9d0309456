#include "base/machine.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "base/number_from.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::ranges::find(list, word) != list.end();
}

/// A control group of this process, by its path in the hierarchy and its folder.
struct Group {
  std::string path;
  fs::path folder;
};

/// The groups of one hierarchy, the innermost first: `mounted` is the group at `mount`, `path` that of the process.
/// Groups above `mounted`, and others that a container does not see, have no folder.
void add_groups(const fs::path& mount, const std::string& mounted, const std::string& path,
                std::vector<Group>& groups) {
  const std::string prefix = mounted == "/" ? "" : mounted;
  const bool visible = path.find("/..") == path.npos && (path + "/").starts_with(prefix + "/");
  std::string inside = visible ? path.substr(prefix.size()) : "";
  while (true) {
    const fs::path relative = fs::path(inside).relative_path();
    groups.push_back({prefix + (inside.empty() ? "/" : inside), relative.empty() ? mount : mount / relative});
    if (relative.empty()) return;
    inside = relative.has_parent_path() ? "/" + relative.parent_path().string() : "";
  }
}

/// Lines of /proc/self/mountinfo are `id parent device mounted mount … - type source options`, those of
/// /proc/self/cgroup are `number:controllers:path`, with number 0 and no controllers for version 2.
std::vector<Group> control_groups(const fs::path& root, const std::string& controller) {
  std::vector<Group> groups;
  std::ifstream mounts(root / "proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const std::vector<std::string> fields = split(line, ' ');
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 6 || fields.end() - dash < 4) continue;
    const bool second = dash[1] == "cgroup2";
    if (!second && !(dash[1] == "cgroup" && contains(split(dash[3], ','), controller))) continue;
    std::ifstream own(root / "proc/self/cgroup");
    for (std::string entry; std::getline(own, entry);) {
      const std::size_t first = entry.find(':'), last = entry.find(':', first + 1);
      if (last == entry.npos) continue;
      const std::string controllers = entry.substr(first + 1, last - first - 1);
      if (second ? entry.starts_with("0::") : contains(split(controllers, ','), controller))
        add_groups(root / fs::path(fields[4]).relative_path(), fields[3], entry.substr(last + 1), groups);
    }
  }
  return groups;
}

/// The numbers in a file of a control group; nothing for `max`, −1 and what is missing.
std::optional<double> number_in(const fs::path& file) {
  std::string word;
  if (!(std::ifstream(file) >> word)) return std::nullopt;
  const std::optional<double> number = number_from<double>(word);
  return number && *number >= 0 ? number : std::nullopt;
}

/// Cores that the quota of a group amounts to.
std::optional<double> quota_of(const fs::path& folder) {
  std::string quota, period;
  if (std::ifstream(folder / "cpu.max") >> quota >> period) {
    const auto time = number_from<double>(quota), of = number_from<double>(period);
    return time && of && *of > 0 ? std::optional(*time / *of) : std::nullopt;
  }
  const auto time = number_in(folder / "cpu.cfs_quota_us"), of = number_in(folder / "cpu.cfs_period_us");
  return time && of && *of > 0 ? std::optional(*time / *of) : std::nullopt;
}

}  // namespace

MemoryLimit memory_limit(const fs::path& root, int processes) {
  MemoryLimit limit{double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE)), "this machine has"};
  const auto lower = [&limit](double bytes, const std::string& source) {
    if (bytes < limit.bytes) limit = {bytes, source};
  };
  for (const Group& group : control_groups(root, "memory"))
    for (const char* file : {"memory.max", "memory.limit_in_bytes"})
      if (const auto bytes = number_in(group.folder / file))
        lower(*bytes, "the control group " + group.path + " allows");
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY &&
      processes * double(space.rlim_cur) < limit.bytes)
    limit = {double(space.rlim_cur), "ulimit -v allows", true};
  return limit;
}

int usable_cores(const fs::path& root) {
  cpu_set_t affinity;
  int cores = sched_getaffinity(0, sizeof affinity, &affinity) == 0 ? CPU_COUNT(&affinity)
                                                                    : int(std::thread::hardware_concurrency());
  for (const Group& group : control_groups(root, "cpu"))
    if (const auto quota = quota_of(group.folder)) cores = std::min(cores, int(std::ceil(std::min(*quota, 1e6))));
  return std::max(cores, 1);
}

std::string bytes_text(double bytes) {
  const bool large = bytes >= 1e9;
  const double number = bytes / (large ? 1e9 : 1e6);
  return fmt::format("{:.{}f} {}", number, number < 10 ? 1 : 0, large ? "GB" : "MB");
}

}  // namespace stiefel
