// The available plugins: found on the search path, checked, loaded once, never unloaded.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <stiefel/entry.hpp>

namespace stiefel {

struct PluginFile {
  std::filesystem::path path;
  std::string version;                // the plugin's version, if usable
  std::string build_id;               // the linker's build id, hexadecimal; may be empty
  std::string unusable;               // "it …", a sentence with values and a remedy; empty if usable
  std::vector<const Entry*> entries;  // empty for an unusable file
};

/// $XDG_DATA_HOME/stiefel, or ~/.local/share/stiefel; empty without a home.
STIEFEL_API std::filesystem::path user_data_folder();

class STIEFEL_API Registry {
 public:
  /// Search order: `extra` (files or folders), STIEFEL_PLUGIN_PATH, $XDG_DATA_HOME/stiefel/plugins, the installation's
  /// plugins. A folder is searched for *.so, in the order of the names. Never throws for a bad plugin: it is kept as
  /// unusable. `warn` gets the warnings_about() every file and folder that is searched, now and later, each once.
  explicit Registry(const std::vector<std::filesystem::path>& extra = {},
                    std::function<void(const std::string&)> warn = {});

  /// A registry without files, for add_builtin().
  static Registry without_files() { return Registry(NoSearch()); }
  /// A method that is part of the program itself, not of a file.
  void add_builtin(const Entry& entry);

  /// A method of a role by name, or an Error (Exit::plugin): unknown with suggestions, or unusable with the reason.
  /// Warns about rivals_of().
  const Entry& find(Role role, const std::string& name) const;
  /// The file that a method comes from.
  const PluginFile& file_of(const Entry& entry) const;
  /// Which file a method comes from, and which unused files also offer its name; empty if there are none.
  std::string rivals_of(const Entry& entry) const;
  /// The files in search order; references stay valid.
  const std::deque<PluginFile>& files() const { return files_; }
  /// Names of all usable methods of a role, sorted.
  std::vector<std::string> names(Role role) const;
  /// Loads one more file, for `stiefel check FILE.so`; a file that is already known is returned unchanged.
  const PluginFile& add(const std::filesystem::path& file);
  /// Warns about a file that was named and is unusable, unless it is one of rivals_of().
  void warn_if_unusable(const PluginFile& file) const;

 private:
  struct NoSearch {};
  explicit Registry(NoSearch) {}
  struct Rival {
    const Entry* used;
    const PluginFile* refused;
  };
  void warn(const std::string& sentence) const;
  void warn_of(const std::filesystem::path& place);
  void add_place(const std::filesystem::path& place, bool demanded);
  std::vector<const Entry*> refuse_taken_names(PluginFile& file) const;
  const Entry* lookup(Role role, const std::string& name) const;

  std::deque<PluginFile> files_;
  std::vector<Rival> rivals_;
  std::function<void(const std::string&)> warn_;
  mutable std::set<std::string> warned_of_;
};

/// Where plugins are searched for in addition to the places in a configuration, in order; folders that need not exist
/// come last.
STIEFEL_API std::vector<std::filesystem::path> plugin_search_path();

/// Warnings about a plugin file or folder that anybody can write to; for a file, its folder also counts.
STIEFEL_API std::vector<std::string> warnings_about(const std::filesystem::path& place);

}  // namespace stiefel
