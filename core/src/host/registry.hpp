// The available plugins: found on the search path, checked, loaded once, never unloaded.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include <stiefel/entry.hpp>

namespace stiefel {

/// In the order of lists for users.
inline constexpr Role roles[] = {Role::task, Role::cell, Role::parametrisation, Role::optimizer};

/// "a" or "an", before the name of a role.
inline const char* article(Role role) { return role == Role::optimizer ? "an" : "a"; }

struct PluginFile {
  std::filesystem::path path;
  bool named = false;                 // by `plugins:` or on the command line, not found by a search
  std::string version;                // the plugin's version, if usable
  std::string build_id;               // the linker's build id, hexadecimal; may be empty
  std::string unusable;               // "it …", a sentence with values and a remedy; empty if usable
  std::vector<const Entry*> entries;  // empty for an unusable file
};

/// Whether a plugin file came with stiefel.
STIEFEL_API bool is_built_in(const std::filesystem::path& file);

/// $XDG_DATA_HOME/stiefel, or ~/.local/share/stiefel; empty without a home.
STIEFEL_API std::filesystem::path user_data_folder();

class STIEFEL_API Registry {
 public:
  /// Search order: STIEFEL_PLUGIN_PATH, $XDG_DATA_HOME/stiefel/plugins, the installation's plugins; named ones, `extra`
  /// and those of add(), come before all that. A method is taken from the first file that offers its name. Never throws
  /// for a bad plugin: it is kept as unusable. `warn` gets the warnings_about() every file and folder that is searched,
  /// now and later, and rivals_of() every method that is asked for, each once.
  explicit Registry(const std::vector<std::filesystem::path>& extra = {},
                    std::function<void(const std::string&)> warn = {});

  /// A registry without files, for add_builtin().
  static Registry without_files() { return Registry(NoSearch()); }
  /// A method that is part of the program itself, not of a file.
  void add_builtin(const Entry& entry);

  /// A method of a role by name, or an Error (Exit::plugin): unknown with suggestions, or unusable with the reason.
  const Entry& find(Role role, const std::string& name) const;
  /// The file that a method comes from.
  const PluginFile& file_of(const Entry& entry) const;
  /// Which file the method of this name is taken from, and which others offer it; empty if there are none.
  std::string rivals_of(const Entry& entry) const;
  /// The files in the order in which they were found; references stay valid.
  const std::deque<PluginFile>& files() const { return files_; }
  /// Names of all usable methods of a role, sorted.
  std::vector<std::string> names(Role role) const;
  /// Loads a file that is named, or makes one that was found a named one.
  const PluginFile& add(const std::filesystem::path& file) { return add(file, true); }
  /// The files of a folder, or the one file: *.so in the order of their names. Warns about those that are unusable, and
  /// about a folder without any.
  void add_named(const std::filesystem::path& place);

 private:
  struct NoSearch {};
  explicit Registry(NoSearch) {}
  void warn(const std::string& sentence) const;
  void warn_of(const std::filesystem::path& place);
  enum class Place { named, demanded, optional };
  void add_place(const std::filesystem::path& place, Place kind);
  const PluginFile& add(const std::filesystem::path& file, bool named);
  /// The entries of a name, the one that is used first.
  std::vector<const Entry*> lookup(Role role, const std::string& name) const;

  std::deque<PluginFile> files_;
  std::function<void(const std::string&)> warn_;
  mutable std::set<std::string> warned_of_;
};

/// Where plugins are searched for in addition to the places in a configuration, in order; folders that need not exist
/// come last.
STIEFEL_API std::vector<std::filesystem::path> plugin_search_path();

/// The *.so in a folder, of any kind, sorted: what is not a regular file is refused with a reason when it is loaded.
STIEFEL_API std::vector<std::filesystem::path> plugin_files_in(const std::filesystem::path& folder,
                                                               std::error_code& failure);

/// Warnings about a plugin file or folder that others can change: everybody, or a user that owns it and is neither this
/// one nor root. For a file, its folder also counts, and folders above in which anybody can rename. And about a file in
/// the folder of a CMake build whose source has changed since.
STIEFEL_API std::vector<std::string> warnings_about(const std::filesystem::path& place);

}  // namespace stiefel
