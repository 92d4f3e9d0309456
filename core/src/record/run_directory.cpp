// runs/<name>/<id>: the directory of one run, locked while a process works in it.
#include "record/run_directory.hpp"

#include <fmt/format.h>

#include <climits>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/file_error.hpp"
#include "base/file_name.hpp"
#include "base/printable.hpp"
#include "record/reader.hpp"
#include "record/run_folder.hpp"
#include "record/run_lock.hpp"

namespace stiefel {
namespace {

/// Throws Error if the folder, its parent or a file in it is a symbolic link, which would lead the run elsewhere, or if
/// the path leaves no room for names of files.
void refuse_place(const std::filesystem::path& root, const std::filesystem::path& path) {
  constexpr std::size_t longest = PATH_MAX - 96;
  std::vector<std::filesystem::path> places = {path.parent_path(), path};
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(path, ignored)) places.push_back(file.path());
  for (const std::filesystem::path& place : places)
    if (std::filesystem::is_symlink(place, ignored))
      throw Error(
          fmt::format("{} is a link, but a run must stay in {}: remove the link, or name its target with --output",
                      place.string(), root.string()));
  if (path.native().size() > longest)
    throw Error(
        fmt::format("the path of the run has {} bytes, but at most {} are allowed; choose a folder with a shorter path "
                    "with --output",
                    path.native().size(), longest));
}

/// The folders that create_directories() would make, the innermost first.
std::vector<std::filesystem::path> missing_folders(std::filesystem::path path) {
  std::vector<std::filesystem::path> missing;
  for (std::error_code ignored; !path.empty() && !std::filesystem::exists(path, ignored); path = path.parent_path())
    missing.push_back(path);
  return missing;
}

}  // namespace

std::filesystem::path run_path(const std::filesystem::path& root, std::string_view name, std::string_view id) {
  const auto require = [](const char* what, std::string_view text) {
    const std::string fault = file_name_fault(text);
    if (fault.empty()) return;
    throw Error(fmt::format("the {} '{}' of a run {}", what, printable(text), fault));
  };
  require("name", name);
  require("id", id);
  return root / name / id;
}

bool is_finished(const std::filesystem::path& directory) {
  const std::filesystem::path results = RunFolder{directory}.results();
  return std::filesystem::exists(results) && ResultReader(results).text_attribute("/", "state") == "finished";
}

RunState run_state(const std::filesystem::path& directory) {
  if (!std::filesystem::exists(directory)) return RunState::none;
  if (!living_owner(RunFolder{directory}.lock()).empty()) return RunState::running;
  if (is_finished(directory)) return RunState::finished;
  // A process that died between making the directory and writing config.yaml left nothing worth keeping.
  const bool begun =
      std::filesystem::exists(RunFolder{directory}.config()) || std::filesystem::exists(RunFolder{directory}.results());
  return begun ? RunState::unfinished : RunState::none;
}

bool has_saved(const std::filesystem::path& directory) {
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(RunFolder{directory}.checkpoints(), ignored))
    if (file.path().extension() == ".h5") return true;
  const std::filesystem::path results = RunFolder{directory}.results();
  try {
    return std::filesystem::exists(results) && ResultReader(results).number_attribute("/", "committed_step") > 0;
  } catch (const Error&) {
    return true;
  }
}

void start_again(const std::filesystem::path& directory) {
  const RunLock lock(directory);
  if (has_saved(directory)) return;  // another process has just done so
  std::filesystem::remove_all(RunFolder{directory}.checkpoints());
  for (const char* file : {"results.h5", "progress.jsonl", "config.yaml"}) std::filesystem::remove(directory / file);
}

/// Removes temporary files that a killed process left: a file gets its name only when it is complete.
RunDirectory::RunDirectory(std::filesystem::path path, RunLock lock) : path_(std::move(path)), lock_(std::move(lock)) {
  constexpr auto readable = std::filesystem::directory_options::skip_permission_denied;
  std::error_code ignored;
  for (std::filesystem::recursive_directory_iterator place(path_, readable, ignored), end; place != end;
       place.increment(ignored))
    if (place->path().extension() == ".tmp" && place->is_regular_file(ignored))
      std::filesystem::remove(place->path(), ignored);
}

RunDirectory RunDirectory::create(const std::filesystem::path& root, std::string_view name, std::string_view id,
                                  std::string_view config_yaml,
                                  const std::function<void(const std::filesystem::path&)>& before) {
  std::filesystem::path path = run_path(root, name, id);
  refuse_place(root, path);
  const std::vector<std::filesystem::path> missing = missing_folders(path);
  try {
    make_folder(path);
    RunLock lock(path);
    for (const char* file : {"config.yaml", "results.h5"})
      if (std::filesystem::exists(path / file))
        throw Error(fmt::format("{} already holds a run, and nothing is overwritten", path.string()));
    try {
      before(path);
      replace_file(RunFolder{path}.config(), config_yaml);
    } catch (...) {
      std::error_code ignored;
      std::filesystem::remove(path / "checkpoints/index.json", ignored);
      std::filesystem::remove(RunFolder{path}.checkpoints(), ignored);
      throw;
    }
    return {std::move(path), std::move(lock)};
  } catch (...) {
    std::error_code ignored;
    for (const auto& folder : missing) std::filesystem::remove(folder, ignored);
    throw;
  }
}

RunDirectory RunDirectory::open(const std::filesystem::path& directory) {
  if (!std::filesystem::exists(RunFolder{directory}.config()))
    throw Error(fmt::format("{} is not a run directory: it has no config.yaml; name a run, such as runs/NAME/ID",
                            directory.string()));
  return {directory, RunLock(directory)};
}

void RunDirectory::require_lock() const {
  if (lock_.held()) return;
  const std::string owner = living_owner(RunFolder{path_}.lock());
  throw Error(fmt::format("{} is no longer held by this process: its lock was {}; nothing more is written here",
                          path_.string(), owner.empty() ? "removed" : "taken over by " + owner),
              Exit::in_use);
}

}  // namespace stiefel
