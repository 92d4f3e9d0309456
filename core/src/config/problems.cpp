// Ordering and joining of configuration errors.
#include "config/problems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace stiefel {
namespace {

constexpr std::size_t most_shown = 20;

}  // namespace

ConfigError::~ConfigError() = default;

std::string Location::text() const {
  if (file.empty()) return "command line";
  return line == 0 ? file : fmt::format("{}:{}:{}", file, line, column);
}

std::string Location::origin() const {
  if (file.empty()) return "command line";
  return line == 0 ? file : fmt::format("{}:{}", file, line);
}

void Problems::add(const Location& where, std::string sentence, Exit code) {
  if (seen_.insert(where.text() + ": " + sentence).second) list_.push_back({where, std::move(sentence), code});
}

std::string Problems::text() const {
  std::vector<std::string> files;
  for (const Problem& problem : list_)
    if (!problem.where.file.empty() && std::ranges::find(files, problem.where.file) == files.end())
      files.push_back(problem.where.file);
  files.emplace_back();  // the command line

  std::vector<const Problem*> sorted;
  for (const Problem& problem : list_) sorted.push_back(&problem);
  std::ranges::stable_sort(sorted, {}, [&](const Problem* problem) {
    return std::tuple(std::ranges::find(files, problem->where.file) - files.begin(), problem->where.line,
                      problem->where.column);
  });

  std::vector<std::string> lines;
  for (const Problem* problem : sorted) {
    if (lines.size() == most_shown) {
      lines.push_back(fmt::format("and {} more", sorted.size() - most_shown));
      break;
    }
    lines.push_back(problem->where.text() + ": " + problem->sentence);
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

void Problems::raise() const {
  if (list_.empty()) return;
  const bool plugins_only =
      std::ranges::all_of(list_, [](const Problem& problem) { return problem.code == Exit::plugin; });
  throw ConfigError(text(), plugins_only ? Exit::plugin : Exit::usage, count());
}

}  // namespace stiefel
