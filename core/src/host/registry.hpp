// The available plugins. They are found on the search path, checked, loaded once and never unloaded.
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

/// All roles, in the order in which users see them.
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
  /// Searches STIEFEL_PLUGIN_PATH, $XDG_DATA_HOME/stiefel/plugins and the installation's plugins, in this order. Named
  /// files (`extra` and those of add()) come before all of them. A method is taken from the first file that offers its
  /// name. A bad plugin is kept as unusable. `warn` gets the warnings_about() every file and folder that is searched,
  /// now and later, and the rivals_of() every method that is requested, each once.
  explicit Registry(const std::vector<std::filesystem::path>& extra = {},
                    std::function<void(const std::string&)> warn = {});

  /// A registry without files, for add_builtin().
  static Registry without_files() { return Registry(NoSearch()); }
  /// A method that is part of the program itself, not of a file.
  void add_builtin(const Entry& entry);

  /// The method of a role by name. Throws Error (Exit::plugin) if it is unknown, with suggestions, or unusable, with
  /// the reason.
  const Entry& find(Role role, const std::string& name) const;
  /// The file that a method comes from.
  const PluginFile& file_of(const Entry& entry) const;
  /// A sentence that says which file the method is taken from and which others offer it; empty if no other does.
  std::string rivals_of(const Entry& entry) const;
  /// The files in the order in which they were found; references stay valid.
  const std::deque<PluginFile>& files() const { return files_; }
  /// Names of all usable methods of a role, sorted.
  std::vector<std::string> names(Role role) const;
  /// Loads a file as a named one. If a search has already found it, it becomes a named one.
  const PluginFile& add(const std::filesystem::path& file) { return add(file, true); }
  /// Adds a file, or every *.so in a folder by name, as named ones. Warns about unusable files, and about a folder
  /// without any.
  void add_named(const std::filesystem::path& place);

 private:
  struct NoSearch {};
  explicit Registry(NoSearch) {}
  void warn(const std::string& sentence) const;
  void warn_of(const std::filesystem::path& place);
  enum class Place { named, demanded, optional };
  void add_place(const std::filesystem::path& place, Place kind);
  const PluginFile& add(const std::filesystem::path& file, bool named);
  /// The entries with this name. The one that is used comes first.
  std::vector<const Entry*> lookup(Role role, const std::string& name) const;

  std::deque<PluginFile> files_;
  std::function<void(const std::string&)> warn_;
  mutable std::set<std::string> warned_of_;
};

/// The places that are searched for plugins in addition to those in a configuration, in order. The default folders,
/// which need not exist, come last.
STIEFEL_API std::vector<std::filesystem::path> plugin_search_path();

/// The *.so in a folder, sorted. They may be of any kind: loading refuses those that are not regular files, with a
/// reason.
STIEFEL_API std::vector<std::filesystem::path> plugin_files_in(const std::filesystem::path& folder,
                                                               std::error_code& failure);

/// Warnings about a plugin file or folder that others can change: anybody, or an owner who is neither this user nor
/// root. For a file, its folder counts too, and so do folders above in which anybody can rename. Also warns about a
/// file in the folder of a CMake build whose source has changed since it was built.
STIEFEL_API std::vector<std::string> warnings_about(const std::filesystem::path& place);

}  // namespace stiefel
