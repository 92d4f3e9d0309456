// Finds plugin files, takes each method from the first that offers its name, and reports why a name is unavailable.
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/algorithm/string/case_conv.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <sstream>

#include <stiefel/error.hpp>
#include "base/printable.hpp"
#include "base/suggestion.hpp"
#include "host/loader/load.hpp"
#include "host/registry.hpp"

namespace fs = std::filesystem;

namespace stiefel {
namespace {

std::vector<fs::path> folders_of_environment() {
  const char* text = std::getenv("STIEFEL_PLUGIN_PATH");
  std::vector<fs::path> places;
  std::istringstream stream(text ? text : "");
  for (std::string place; std::getline(stream, place, ':');)
    if (!place.empty()) places.emplace_back(place);
  return places;
}

fs::path built_in_folder() { return library_folder() / "stiefel/plugins"; }

std::vector<fs::path> default_folders() {
  std::vector<fs::path> places;
  if (const fs::path user = user_data_folder(); !user.empty()) places.push_back(user / "plugins");
  places.push_back(built_in_folder());
  return places;
}

/// Who may change a file or folder besides this user and root.
struct Access {
  explicit Access(const fs::path& place) {
    struct stat status {};
    if (stat(place.c_str(), &status) != 0) return;
    if (status.st_uid != 0 && status.st_uid != geteuid()) owner = status.st_uid;
    anybody = (status.st_mode & S_IWOTH) != 0;
    sticky = (status.st_mode & S_ISVTX) != 0;
  }
  std::optional<uid_t> owner;  // if it is another user
  bool anybody = false;
  bool sticky = false;  // anybody may add to the folder, but not rename what is in it
};

/// The name that a method from the literature has here, if it is a known one; other names in lower case.
std::string usual_name(const std::string& name, const std::vector<std::string>& known) {
  static const std::map<std::string, std::string> names = {
      {"cayley", "scaled_cayley"},   {"dtriv", "lie_exponential"},
      {"eurnn", "givens"},           {"expm", "lie_exponential"},
      {"exprnn", "lie_exponential"}, {"kru", "kronecker"},
      {"mnist", "pixel_mnist"},      {"nnrnn", "nonnormal"},
      {"ornn", "householder"},       {"orthogonal", "householder"},
      {"pmnist", "pixel_mnist"},     {"projunn", "low_rank_projection"},
      {"ptb", "characters"},         {"rnn", "elman"},
      {"scornn", "scaled_cayley"},   {"scurnn", "scaled_cayley_unitary"},
      {"unitary", "full_unitary"},   {"vanilla", "elman"}};
  const std::string lower = boost::to_lower_copy(name);
  const auto found = names.find(lower);
  const bool here = std::ranges::find(known, lower) == known.end() && found != names.end() &&
                    std::ranges::find(known, found->second) != known.end();
  return here ? found->second : lower;
}

std::string user_name(uid_t user) {
  const passwd* entry = getpwuid(user);
  return entry ? entry->pw_name : std::to_string(user);
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

bool is_built_in(const fs::path& file) {
  std::error_code ignored;
  return fs::equivalent(file.parent_path(), built_in_folder(), ignored);
}

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

std::vector<fs::path> plugin_files_in(const fs::path& folder, std::error_code& failure) {
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure))
    if (entry->path().extension() == ".so") found.push_back(entry->path());
  std::sort(found.begin(), found.end());
  return found;
}

namespace {

/// What to do if NAME.cpp has changed since CMake built the plugin NAME.so from it; else empty.
std::string outdated(const fs::path& plugin) {
  static constexpr std::string_view key = "CMAKE_HOME_DIRECTORY:INTERNAL=";
  std::error_code failure;
  std::ifstream cache(plugin.parent_path() / "CMakeCache.txt");
  for (std::string line; std::getline(cache, line);) {
    if (!line.starts_with(key)) continue;
    const fs::path source = fs::path(line.substr(key.size())) / plugin.stem().concat(".cpp");
    const auto changed = fs::last_write_time(source, failure);
    if (failure || changed <= fs::last_write_time(plugin, failure) || failure) return {};
    return fmt::format("{} has changed since {} was built; build it again with cmake --build {}", source.string(),
                       plugin.string(), shell_word(plugin.parent_path().string()));
  }
  return {};
}

}  // namespace

std::vector<std::string> warnings_about(const fs::path& place) {
  struct Place {
    fs::path path;
    std::string what, runs;
  };
  std::error_code failure;
  fs::path absolute = fs::absolute(place, failure), target = fs::weakly_canonical(place, failure);
  if (!absolute.has_filename()) absolute = absolute.parent_path();  // the folder's name ended with a slash
  std::set<fs::path> folders = {absolute}, above;
  std::vector<Place> places;
  if (!fs::is_directory(place, failure)) {
    places.push_back({absolute, "plugin", "it runs"});
    folders = {absolute.parent_path(), target.parent_path()};
  }
  for (const fs::path& folder : folders) places.push_back({folder, "plugin folder", "its plugins run"});

  std::vector<std::string> sentences;
  if (std::string sentence = outdated(place); !sentence.empty()) sentences.push_back(std::move(sentence));
  const auto add = [&](const std::string& fault, const Place& at, const std::string& mend) {
    sentences.push_back(
        fmt::format("{} the {} {}, and {} with your rights; {}", fault, at.what, at.path.string(), at.runs, mend));
  };
  const auto refuse_writing = [&](const Place& at) {
    add("anybody can write to", at, fmt::format("fix this with chmod o-w '{}'", at.path.string()));
  };
  for (const Place& at : places) {
    const Access access(at.path);
    if (access.anybody) refuse_writing(at);
    const bool as_its_folder = at.what == "plugin" && Access(absolute.parent_path()).owner == access.owner;
    if (access.owner && !as_its_folder)
      add(fmt::format("the user {} owns", user_name(*access.owner)), at, "use a copy that you or root own");
  }
  for (fs::path below : {absolute, target})
    while (below.has_relative_path()) above.insert(below = below.parent_path());
  for (const fs::path& folder : above)
    if (const Access access(folder); access.anybody && !access.sticky && !folders.contains(folder))
      refuse_writing({folder, "parent folder of plugins", "these run"});
  return sentences;
}

Registry::Registry(const std::vector<fs::path>& extra, std::function<void(const std::string&)> warn)
    : warn_(std::move(warn)) {
  for (const fs::path& place : extra) add_place(place, Place::named);
  for (const fs::path& place : folders_of_environment()) add_place(place, Place::demanded);
  for (const fs::path& place : default_folders()) add_place(place, Place::optional);
}

void Registry::warn(const std::string& sentence) const {
  if (warn_ && !sentence.empty() && warned_of_.insert(sentence).second) warn_(sentence);
}

void Registry::warn_of(const fs::path& place) {
  if (!warn_) return;
  for (const std::string& sentence : warnings_about(place)) warn(sentence);
}

void Registry::add_place(const fs::path& place, Place kind) {
  std::error_code failure;
  const bool exists = fs::exists(place, failure), named = kind == Place::named;
  if (!exists && kind == Place::optional) return;
  if (!fs::is_directory(place, failure) || place.extension() == ".so") {
    add(place, named);
    return;
  }
  const std::vector<fs::path> found = plugin_files_in(place, failure);
  if (failure) {
    PluginFile& file = files_.emplace_back();
    file.path = place;
    file.named = named;
    file.unusable = fmt::format("it is a folder that cannot be listed ({}); check its permissions with ls -ld '{}'",
                                failure.message(), place.string());
    return;
  }
  if (named && found.empty())
    warn(fmt::format(
        "there is no plugin in {}: it has no file that ends in .so; build one there, or name another folder",
        place.string()));
  warn_of(place);
  for (const fs::path& file : found) add(file, named);
}

void Registry::add_named(const fs::path& place) {
  const std::size_t before = files_.size();
  add_place(place, Place::named);
  for (std::size_t i = before; i < files_.size(); ++i)
    if (!files_[i].unusable.empty())
      warn(fmt::format("{} is not used: {}", files_[i].path.string(), files_[i].unusable));
}

void Registry::add_builtin(const Entry& entry) {
  PluginFile& file = files_.emplace_back();
  file.path = "built in";
  file.entries.push_back(&entry);
}

const PluginFile& Registry::add(const fs::path& path, bool named) {
  std::error_code failure;
  for (PluginFile& known : files_)
    if (fs::equivalent(known.path, path, failure)) {
      known.named = known.named || named;
      return known;
    }
  warn_of(path);
  PluginFile file = load_plugin(path);
  file.named = named;
  std::set<std::pair<Role, std::string>> own;
  for (const Entry* entry : file.entries)
    if (!own.emplace(entry->role, entry->name).second)
      file.unusable =
          fmt::format("it lists the {} '{}' twice, but names must be unique; rename one in STIEFEL_PLUGIN(...)",
                      name_of(entry->role), entry->name);
  if (!file.unusable.empty()) file.entries.clear();
  return files_.emplace_back(std::move(file));
}

std::vector<const Entry*> Registry::lookup(Role role, const std::string& name) const {
  std::vector<const Entry*> found;
  for (const bool named : {true, false})
    for (const PluginFile& file : files_)
      for (const Entry* entry : file.entries)
        if (file.named == named && entry->role == role && entry->name == name) found.push_back(entry);
  return found;
}

const Entry& Registry::find(Role role, const std::string& name) const {
  if (const std::vector<const Entry*> found = lookup(role, name); !found.empty()) {
    warn(rivals_of(*found[0]));
    return *found[0];
  }
  for (const PluginFile& file : files_)
    if (!file.unusable.empty() && may_hold(file, name))
      throw Error(fmt::format("cannot load {} '{}': {} is unusable: {}", name_of(role), name, file.path.string(),
                              file.unusable),
                  Exit::plugin);
  for (const Role other : roles)
    if (!lookup(other, name).empty())
      throw Error(fmt::format("'{}' is {} {}, but {} {} is needed here; `stiefel list` shows the names of each", name,
                              article(other), name_of(other), article(role), name_of(role)),
                  Exit::plugin);
  const std::vector<std::string> known = names(role);
  const std::string close = suggestion(usual_name(name, known), known);
  const std::string have = known.empty() ? "none was found" : fmt::format("choose from {}", fmt::join(known, ", "));
  const bool names_files = std::ranges::any_of(files_, &PluginFile::named);
  const char* const own = names_files ? "add a folder to STIEFEL_PLUGIN_PATH" : "name its file under `plugins:`";
  throw Error(fmt::format("there is no {} '{}'{}", name_of(role), name,
                          close.empty() ? fmt::format("; {}, or {}", have, own) : close),
              Exit::plugin);
}

const PluginFile& Registry::file_of(const Entry& entry) const {
  for (const PluginFile& file : files_)
    if (std::find(file.entries.begin(), file.entries.end(), &entry) != file.entries.end()) return file;
  throw Error(fmt::format("the {} '{}' does not come from a plugin of this registry", name_of(entry.role), entry.name),
              Exit::internal);
}

std::string Registry::rivals_of(const Entry& entry) const {
  const std::vector<const Entry*> found = lookup(entry.role, entry.name);
  if (found.size() < 2) return {};
  std::vector<std::string> others;
  for (const Entry* other : std::span(found).subspan(1)) others.push_back(file_of(*other).path.string());
  const PluginFile& used = file_of(*found[0]);
  return fmt::format("the {} '{}' is taken from {}{}, not from {}", name_of(entry.role), entry.name, used.path.string(),
                     used.named ? ", which is named" : "", fmt::join(others, ", "));
}

std::vector<std::string> Registry::names(Role role) const {
  std::vector<std::string> found;
  for (const PluginFile& file : files_)
    for (const Entry* entry : file.entries)
      if (entry->role == role) found.emplace_back(entry->name);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace stiefel
