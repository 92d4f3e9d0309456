// Writes what was read: every key with its effective value, and the origin of each.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/config_schema.hpp"

namespace stiefel {

/// Calls use(path, declaration) for each key, those of sections before the keys in them.
template <class Use> void for_each_key(const ConfigSchema& schema, const Use& use) {
  for (const auto& declaration : schema.own_section().declarations) {
    use(schema.own_section().path_of(declaration->key), *declaration);
    for (const auto& inner : declaration->inner) for_each_key(*inner, use);
  }
}

/// YAML of all keys in the order of their declaration; read again it gives the same values and the same text.
std::string resolved_yaml(const ConfigSchema& schema);

/// The text whose SHA-256 is the run's ID: resolved_yaml() without the keys that change no bit of a result
/// (no_effect_on_results), and without keys at their defaults that are declared not_in_id_at_default(). A key without effect
/// by only_if() still counts. Renaming or reordering keys changes the ID of every run that has them; so does a new
/// section, or a new field without not_in_id_at_default().
std::string id_yaml(const ConfigSchema& schema);

/// The leaves of a YAML document by their path, such as "model.recurrent.plugin". Entries of a list are called by their
/// number; a list of scalars is one leaf. Throws Error (Exit::damaged), which names `file`, if the text is not YAML.
STIEFEL_API std::map<std::string, std::string> flat_configuration(const std::string& yaml, const std::string& file);

/// Whether a result may depend on the key, a path such as "train.batch"; keys below a key count like that key.
bool affects_results(const std::string& key);

/// "key=file:line", "key=command line" or "key=default" for each value of resolved_yaml().
std::vector<std::string> origins_of(const ConfigSchema& schema);

/// "file:line:column" or "command line" of every key that was given.
std::map<std::string, std::string> places_of(const ConfigSchema& schema);

}  // namespace stiefel
