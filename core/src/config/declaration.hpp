// What describe() declares for a key and what was read for it: the source of errors, resolved YAML, explanations and
// the JSON schema.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <stiefel/schema.hpp>

#include "config/scalars.hpp"
#include "host/registry.hpp"

namespace stiefel {

class ConfigSchema;

struct Declaration {
  enum class Kind {
    field,    ///< a scalar or a list of scalars
    section,  ///< a mapping with its own keys: inner[0]
    plugin,   ///< {plugin: name, …options}: inner[0], or in a description of everything one for each plugin
    list,     ///< a list of mappings: inner
    groups,   ///< one plugin node or a list of them: inner
    named,    ///< a mapping from free names to plugin nodes: names, inner
    periods,  ///< a mapping from free names to integers: names, values
  };
  Kind kind = Kind::field;
  std::string key, meaning, units;
  Value fallback, value;  ///< of a field: its default, its effective value
  std::optional<double> low, high;
  bool low_excluded = false, high_excluded = false;
  std::vector<std::string> one_of;
  bool required = false;
  std::string only_where;          ///< where it would have an effect, if it has none here
  bool affects_results = true;     ///< whether a bit of a result may depend on it, or on the keys below it
  bool in_id_at_default = true;    ///< whether it is part of a run's ID when it has its default
  std::string fixed_because = {};  ///< why it cannot change in a run that has begun; empty: it can
  bool part = false;               ///< whether it is the path of a file that belongs to a method
  std::string works_with;          ///< of a part: versions of what it needs

  bool given = false;
  bool sound = true;  ///< false once an error was found in it
  const Node* node = nullptr;
  Location where;  ///< place of the given value

  std::vector<std::unique_ptr<ConfigSchema>> inner;
  std::vector<std::string> names;
  std::vector<Index> values;

  /// "integer, at least 1", "one of a, b", …
  std::string constraint() const;  // in field_check.cpp
};

/// State shared by all sections while reading one configuration.
struct Reading {
  const Registry* registry = nullptr;
  Problems* problems = nullptr;                 ///< null: nothing is read, keys are only described
  bool alternatives = false;                    ///< describe every plugin wherever one is allowed
  std::vector<std::string>* remarks = nullptr;  ///< on values without effect
  const ConfigSchema* root = nullptr;           ///< the first section
};

struct detail::Section {
  Reading* reading = nullptr;
  std::string path;            ///< "model.recurrent"; empty at the top
  std::string noun;            ///< describes keys in errors: "an option of the cell elman"
  std::string shorthand;       ///< key that a bare scalar abbreviates
  std::string only_where;      ///< where the keys that are now declared have an effect; empty: here
  std::string plugin;          ///< name of the plugin whose options these are
  std::string meaning;         ///< of that plugin
  const Node* node = nullptr;  ///< null when absent
  std::unique_ptr<Node> bare;  ///< the scalar that abbreviates the mapping, if any
  Location where;              ///< of the node, or of the nearest one around it
  bool open = false;           ///< accept unknown keys, because the known ones could not be determined
  std::vector<std::unique_ptr<Declaration>> declarations;
  std::size_t checked = 0;  ///< declarations before this one have been checked against their constraints

  std::string path_of(std::string_view key) const {
    return path.empty() ? std::string(key) : path + "." + std::string(key);
  }
  bool sound() const;  // in field_check.cpp
};

}  // namespace stiefel
