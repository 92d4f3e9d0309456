// runs/<name>/<id>: the directory of one run, locked while a process works in it.
#include "results/run_directory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/run_name.hpp"
#include "results/atomic_file.hpp"
#include "results/file_error.hpp"
#include "results/reader.hpp"
#include "results/run_lock.hpp"

namespace stiefel {

std::filesystem::path run_path(const std::filesystem::path& root, std::string_view name, std::string_view id) {
  const auto require = [](const char* what, std::string_view text) {
    const std::string fault = run_name_fault(text);
    if (fault.empty()) return;
    std::string shown(text);
    std::ranges::replace_if(
        shown, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
    throw Error(fmt::format("the {} '{}' of a run {}", what, shown, fault));
  };
  require("name", name);
  require("id", id);
  return root / name / id;
}

RunState run_state(const std::filesystem::path& directory) {
  if (!std::filesystem::exists(directory)) return RunState::none;
  if (!living_owner(directory / "lock").empty()) return RunState::running;
  const std::filesystem::path results = directory / "results.h5";
  if (std::filesystem::exists(results))
    return ResultReader(results).text_attribute("/", "state") == "finished" ? RunState::finished : RunState::unfinished;
  // A process that died between making the directory and writing config.yaml left nothing worth keeping.
  return std::filesystem::exists(directory / "config.yaml") ? RunState::unfinished : RunState::none;
}

/// Files get their names when they are whole.
RunDirectory::RunDirectory(std::filesystem::path path, RunLock lock) : path_(std::move(path)), lock_(std::move(lock)) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_, ignored))
    if (entry.path().extension() == ".tmp" && entry.is_regular_file(ignored)) std::filesystem::remove(entry.path(), ignored);
}

RunDirectory RunDirectory::create(const std::filesystem::path& root, std::string_view name, std::string_view id,
                                  std::string_view config_yaml) {
  std::filesystem::path path = run_path(root, name, id);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw file_error("making the run directory", path, error.value());
  RunLock lock(path);
  for (const char* file : {"config.yaml", "results.h5"})
    if (std::filesystem::exists(path / file)) throw Error(fmt::format("{} holds a run already, and nothing is overwritten", path.string()));
  replace_file(path / "config.yaml", config_yaml);
  return {std::move(path), std::move(lock)};
}

RunDirectory RunDirectory::open(const std::filesystem::path& directory) {
  if (!std::filesystem::exists(directory / "config.yaml"))
    throw Error(fmt::format("{} is not the directory of a run: it has no config.yaml", directory.string()));
  return {directory, RunLock(directory)};
}

}  // namespace stiefel
