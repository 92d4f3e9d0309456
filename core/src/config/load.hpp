// Makes an Experiment from a file and the command line: composes, checks, chooses the plugins and creates their
// options.
//
// The way of a key such as optimizer.rate:
//
//   parse_yaml            config/tree.cpp         makes a tree of a file, in which each value knows its line and column
//   compose_file          config/compose.cpp      merges the file and all that it extends into a tree
//   apply_overrides       config/overrides.cpp    sets the values from the command line, called by compose_file
//   Experiment::describe  config/experiment.cpp   declares all keys; this one is in OptimizerGroup::describe
//   Schema::declare       config/schema.cpp       reads the value from the tree
//   check_fields          config/field_check.cpp  checks it against the constraints, called by ConfigSchema::finish
//   Problems::raise       config/problems.cpp     throws all errors of the file at once
//   id_yaml               config/resolved.cpp     writes it into the text whose SHA-256 is the run's ID
//   Updater               training/updater.cpp    uses it as the rate of its group
//
// An option of a plugin, such as model.recurrent.reflections, takes the same way but for two stations:
//
//   describe_plugin       config/plugin_node.cpp  declares the keys of the plugin's Options, which the plugin describes
//   PluginChoice::make    config/experiment.hpp   calls the plugin's constructor with these Options
//
// When a run is resumed, allowed_changes (training/changes.cpp) compares the values with those of the run.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/compose.hpp"
#include "config/experiment.hpp"
#include "host/registry.hpp"

namespace stiefel {

/// Why keys cannot change in a run that has begun, as Field::fixed_once_begun declares it.
class STIEFEL_API FixedKeys {
 public:
  FixedKeys() = default;
  explicit FixedKeys(const ConfigSchema& schema);
  /// Empty if the key can change. The number of an entry in a list does not count.
  std::string reason(const std::string& path) const;

 private:
  std::map<std::string, std::string> reasons_;  // by path
};

struct LoadedExperiment {
  Experiment experiment;
  std::vector<SourceFile> sources;     ///< the experiment's own file and all it extends, in the order of reading
  std::string resolved_yaml;           ///< every key with its effective value; can be read again
  std::string hash;                    ///< SHA-256 of id_yaml(), 64 hexadecimal digits
  std::string id;                      ///< its first 10 digits, the name of the run's folder
  std::vector<std::string> origins;    ///< "key=file:line", "key=command line" or "key=default"
  std::vector<std::string> overrides;  ///< as typed
  std::vector<std::string> remarks;    ///< on keys without effect
  FixedKeys fixed;                     ///< why some keys cannot change in a run that has begun
};

/// Reads, checks and resolves; the plugins that `plugins:` names are added to the registry, which must outlive the
/// result. A single Error contains all problems, one line each.
STIEFEL_API LoadedExperiment load_experiment(const std::filesystem::path& file,
                                             const std::vector<std::string>& overrides, Registry& registry);
/// The same from text; `name` is used as the file in messages, and its folder for relative paths.
STIEFEL_API LoadedExperiment load_experiment_text(std::string text, const std::string& name,
                                                  const std::vector<std::string>& overrides, Registry& registry);

/// The same from a composed tree: returns nothing and adds to the problems if there are errors.
STIEFEL_API std::optional<LoadedExperiment> load_composed(Composed composed, const std::vector<std::string>& overrides,
                                                          Registry& registry, Problems& problems);

/// A key whose value is an integer.
struct WholeNumber {
  std::string path;
  Index value = 0, fallback = 0;  ///< effective value and default
};
STIEFEL_API std::vector<WholeNumber> whole_numbers(const LoadedExperiment& loaded, const Registry& registry);

}  // namespace stiefel
