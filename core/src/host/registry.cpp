// Finds plugin files, keeps one owner for each name, and reports why a name is unavailable.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include <stiefel/error.hpp>
#include "base/suggestion.hpp"
#include "host/loader/load.hpp"
#include "host/registry.hpp"

namespace fs = std::filesystem;

namespace stiefel {
namespace {

const char* article(Role role) { return role == Role::optimizer ? "an" : "a"; }

std::vector<fs::path> folders_of_environment() {
  const char* text = std::getenv("STIEFEL_PLUGIN_PATH");
  std::vector<fs::path> places;
  std::istringstream stream(text ? text : "");
  for (std::string place; std::getline(stream, place, ':');)
    if (!place.empty()) places.emplace_back(place);
  return places;
}

std::vector<fs::path> default_folders() {
  std::vector<fs::path> places;
  if (const fs::path user = user_data_folder(); !user.empty()) places.push_back(user / "plugins");
  places.push_back(library_folder() / "stiefel/plugins");
  return places;
}

/// The *.so in a folder, of any kind, sorted: what is not a regular file is refused with a reason later, not skipped.
std::vector<fs::path> candidates(const fs::path& folder, std::error_code& failure) {
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure))
    if (entry->path().extension() == ".so") found.push_back(entry->path());
  std::sort(found.begin(), found.end());
  return found;
}

/// The sticky bit does not help: anybody may still add a plugin to such a folder.
bool writable_by_anybody(const fs::path& place) {
  struct stat status {};
  return stat(place.c_str(), &status) == 0 && (status.st_mode & S_IWOTH) != 0;
}

/// Whether an unusable file seems to hold a method: by its file name, or because its bytes hold the name as a whole C
/// string.
bool may_hold(const PluginFile& file, const std::string& name) {
  if (file.path.stem() == name || file.path.stem() == "lib" + name) return true;
  std::error_code failure;
  if (!fs::is_regular_file(file.path, failure)) return false;
  std::ifstream stream(file.path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  return bytes.find('\0' + name + '\0') != bytes.npos;
}

}  // namespace

fs::path user_data_folder() {
  const char* data = std::getenv("XDG_DATA_HOME");
  if (data && *data == '/') return fs::path(data) / "stiefel";
  const char* home = std::getenv("HOME");
  return home && *home ? fs::path(home) / ".local/share/stiefel" : fs::path();
}

std::vector<fs::path> plugin_search_path() {
  std::vector<fs::path> places = folders_of_environment();
  for (fs::path& place : default_folders()) places.push_back(std::move(place));
  return places;
}

std::vector<std::string> warnings_about(const fs::path& place) {
  std::error_code failure;
  const bool is_folder = fs::is_directory(place, failure);
  const fs::path absolute = fs::absolute(place, failure), target = fs::weakly_canonical(place, failure);
  std::vector<fs::path> looked_at = {absolute};
  if (!is_folder) looked_at.insert(looked_at.end(), {absolute.parent_path(), target.parent_path()});
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < looked_at.size(); ++i)
    if (writable_by_anybody(looked_at[i]))
      sentences.push_back(
          fmt::format("anybody can write to the plugin {0}, and {1} with your rights; fix this with chmod o-w '{2}'",
                      (is_folder || i > 0 ? "folder " : "") + looked_at[i].string(),
                      is_folder || i > 0 ? "its plugins run" : "it runs", looked_at[i].string()));
  return sentences;
}

Registry::Registry(const std::vector<fs::path>& extra, std::function<void(const std::string&)> warn)
    : warn_(std::move(warn)) {
  for (const fs::path& place : extra) add_place(place, true);
  for (const fs::path& place : folders_of_environment()) add_place(place, true);
  for (const fs::path& place : default_folders()) add_place(place, false);
}

void Registry::warn(const std::string& sentence) const {
  if (warn_ && !sentence.empty() && warned_of_.insert(sentence).second) warn_(sentence);
}

void Registry::warn_of(const fs::path& place) {
  if (!warn_) return;
  for (const std::string& sentence : warnings_about(place)) warn(sentence);
}

void Registry::add_place(const fs::path& place, bool demanded) {
  std::error_code failure;
  const bool exists = fs::exists(place, failure);
  if (!exists && !demanded) return;
  if (!fs::is_directory(place, failure) || place.extension() == ".so") {
    add(place);
    return;
  }
  const std::vector<fs::path> found = candidates(place, failure);
  if (failure) {
    PluginFile& file = files_.emplace_back();
    file.path = place;
    file.unusable = fmt::format("it is a folder that cannot be listed ({}); check its permissions with ls -ld '{}'",
                                failure.message(), place.string());
    return;
  }
  warn_of(place);
  for (const fs::path& file : found) add(file);
}

void Registry::add_builtin(const Entry& entry) {
  PluginFile& file = files_.emplace_back();
  file.path = "built in";
  file.entries.push_back(&entry);
}

const PluginFile& Registry::add(const fs::path& path) {
  std::error_code failure;
  for (const PluginFile& known : files_)
    if (fs::equivalent(known.path, path, failure)) return known;
  warn_of(path);
  PluginFile loaded = load_plugin(path);
  std::vector<const Entry*> taken;
  if (loaded.unusable.empty()) taken = refuse_taken_names(loaded);
  const PluginFile& file = files_.emplace_back(std::move(loaded));
  for (const Entry* entry : taken) rivals_.push_back({entry, &file});
  return file;
}

void Registry::warn_if_unusable(const PluginFile& file) const {
  if (file.unusable.empty() || std::ranges::find(rivals_, &file, &Rival::refused) != rivals_.end()) return;
  warn(fmt::format("{} is not used: {}", file.path.string(), file.unusable));
}

std::vector<const Entry*> Registry::refuse_taken_names(PluginFile& file) const {
  std::vector<const Entry*> taken;
  std::set<std::pair<Role, std::string>> own;
  for (const Entry* entry : file.entries) {
    if (!own.emplace(entry->role, entry->name).second)
      file.unusable =
          fmt::format("it lists the {} '{}' twice, but names must be unique; rename one in STIEFEL_PLUGIN(...)",
                      name_of(entry->role), entry->name);
    const Entry* owner = lookup(entry->role, entry->name);
    if (!owner) continue;
    taken.push_back(owner);
    if (file.unusable.empty())
      file.unusable = fmt::format(
          "it offers the {} '{}', which {} also offers and which is taken from there; rename one or remove one of the "
          "files",
          name_of(entry->role), entry->name, file_of(*owner).path.string());
  }
  if (!file.unusable.empty()) file.entries.clear();
  return taken;
}

const Entry* Registry::lookup(Role role, const std::string& name) const {
  for (const PluginFile& file : files_)
    for (const Entry* entry : file.entries)
      if (entry->role == role && entry->name == name) return entry;
  return nullptr;
}

const Entry& Registry::find(Role role, const std::string& name) const {
  if (const Entry* entry = lookup(role, name)) {
    warn(rivals_of(*entry));
    return *entry;
  }
  for (const PluginFile& file : files_)
    if (!file.unusable.empty() && may_hold(file, name))
      throw Error(fmt::format("cannot load {} '{}': {} is unusable: {}", name_of(role), name, file.path.string(),
                              file.unusable),
                  Exit::plugin);
  for (const Role other : {Role::parametrisation, Role::cell, Role::task, Role::optimizer})
    if (lookup(other, name))
      throw Error(fmt::format("'{}' is {} {}, but {} {} is needed here; `stiefel list` shows the names of each", name,
                              article(other), name_of(other), article(role), name_of(role)),
                  Exit::plugin);
  const std::vector<std::string> known = names(role);
  const std::string close = suggestion(name, known);
  const std::string have = known.empty() ? "none was found" : fmt::format("choose from {}", fmt::join(known, ", "));
  throw Error(fmt::format("there is no {} '{}'{}", name_of(role), name,
                          close.empty() ? fmt::format("; {}, or add a folder to STIEFEL_PLUGIN_PATH", have) : close),
              Exit::plugin);
}

const PluginFile& Registry::file_of(const Entry& entry) const {
  for (const PluginFile& file : files_)
    if (std::find(file.entries.begin(), file.entries.end(), &entry) != file.entries.end()) return file;
  throw Error(fmt::format("the {} '{}' does not come from a plugin of this registry", name_of(entry.role), entry.name),
              Exit::internal);
}

std::string Registry::rivals_of(const Entry& entry) const {
  std::vector<std::string> refused;
  for (const Rival& rival : rivals_)
    if (rival.used == &entry) refused.push_back(rival.refused->path.string());
  if (refused.empty()) return {};
  return fmt::format("the {} '{}' is taken from {}; {} {} it as well and {} not used", name_of(entry.role), entry.name,
                     file_of(entry).path.string(), fmt::join(refused, ", "), refused.size() == 1 ? "offers" : "offer",
                     refused.size() == 1 ? "is" : "are");
}

std::vector<std::string> Registry::names(Role role) const {
  std::vector<std::string> found;
  for (const PluginFile& file : files_)
    for (const Entry* entry : file.entries)
      if (entry->role == role) found.emplace_back(entry->name);
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace stiefel
