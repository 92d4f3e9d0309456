// The plugins that can be had: found on the search path, checked, loaded once, never unloaded.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <stiefel/plugin.hpp>

namespace stiefel {

struct PluginFile {
  std::filesystem::path path;
  std::string version;             // of the plugin, when usable
  std::string unusable;            // a sentence; empty when usable
  std::vector<const Entry*> entries;
};

class STIEFEL_API Registry {
 public:
  /// Search order: `extra` (files or folders), STIEFEL_PLUGIN_PATH, $XDG_DATA_HOME/stiefel/plugins, the installation's plugins.
  explicit Registry(const std::vector<std::filesystem::path>& extra = {});

  /// A method of a role by name, or an Error (Exit::plugin): unknown with suggestions, or unusable with the reason.
  const Entry& find(Role role, const std::string& name) const;
  /// The file that a method comes from.
  const PluginFile& file_of(const Entry& entry) const;
  const std::vector<PluginFile>& files() const { return files_; }
  /// Names of all usable methods of a role, sorted.
  std::vector<std::string> names(Role role) const;
  /// Loads one more file, for `stiefel check FILE.so`.
  const PluginFile& add(const std::filesystem::path& file);

 private:
  std::vector<PluginFile> files_;
};

}  // namespace stiefel
