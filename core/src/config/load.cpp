// Loading: compose, add the plugins that the file names, describe the experiment over the tree, write it out resolved.
#include "config/load.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.hpp"
#include "base/sha256.hpp"
#include "base/suggestion.hpp"
#include "config/config_schema.hpp"
#include "config/expand.hpp"
#include "config/resolved.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

/// Makes the entries of `plugins:` absolute, seen from the file that names them, and loads them.
void add_named_plugins(Node& root, Registry& registry, Problems& problems) {
  Member* plugins = root.find("plugins");
  if (!plugins || plugins->value.kind != Node::Kind::sequence) return;
  for (Node& entry : plugins->value.items) {
    if (entry.kind != Node::Kind::scalar) continue;
    const fs::path place = fs::absolute(fs::path(entry.where.file).parent_path() / entry.text).lexically_normal();
    std::error_code code;
    if (!fs::exists(place, code)) {
      problems.add(entry.where,
                   fmt::format("plugins: there is no file or folder {}{}", place.string(), home_hint(entry.text)),
                   Exit::plugin);
      continue;
    }
    try {
      registry.add_named(place);
      entry.text = place.string();
    } catch (const std::exception& error) {
      problems.add(entry.where, fmt::format("plugins: {}", error.what()), Exit::plugin);
    }
  }
}

void refuse_many(const Composed& composed, Problems& problems) {
  if (composed.many.empty()) return;
  const SweepDescription sweep = describe_sweep(composed, problems);
  problems.raise();
  const Member& first = composed.many.front();
  problems.add(first.where, fmt::format("{}: this describes a sweep of {}; run it with `stiefel sweep run FILE`",
                                        first.key, counted(std::int64_t(sweep.runs.size()), "run")));
  problems.raise();
}

LoadedExperiment resolve(std::optional<Composed> composed, const std::vector<std::string>& overrides,
                         Registry& registry, Problems& problems) {
  if (!composed) problems.raise();
  refuse_many(*composed, problems);
  std::optional<LoadedExperiment> loaded = load_composed(std::move(*composed), overrides, registry, problems);
  problems.raise();
  return std::move(*loaded);
}

/// The path without the numbers of entries in lists.
std::string without_numbers(const std::string& path) {
  std::string text;
  for (std::size_t begin = 0, end = 0; begin <= path.size(); begin = end + 1) {
    end = std::min(path.find('.', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (part.find_first_not_of("0123456789") != part.npos) text += (text.empty() ? "" : ".") + part;
  }
  return text;
}

}  // namespace

FixedKeys::FixedKeys(const ConfigSchema& schema) {
  for_each_key(schema, [&](const std::string& path, const Declaration& declaration) {
    if (!declaration.fixed_because.empty()) reasons_[without_numbers(path)] = declaration.fixed_because;
  });
}

std::string FixedKeys::reason(const std::string& path) const {
  const auto found = reasons_.find(without_numbers(path));
  return found == reasons_.end() ? "" : found->second;
}

std::optional<LoadedExperiment> load_composed(Composed composed, const std::vector<std::string>& overrides,
                                              Registry& registry, Problems& problems) {
  remove_nulls(composed.root);
  add_named_plugins(composed.root, registry, problems);

  LoadedExperiment loaded;
  Reading reading{&registry, &problems, false, &loaded.remarks};
  ConfigSchema schema(reading, "", &composed.root, {composed.sources.front().path, 1, 1});
  loaded.experiment.describe(schema);
  schema.finish();
  if (!problems.empty()) return std::nullopt;

  loaded.resolved_yaml = resolved_yaml(schema);
  loaded.hash = sha256(id_yaml(schema));
  loaded.id = loaded.hash.substr(0, 10);
  loaded.origins = origins_of(schema);
  loaded.fixed = FixedKeys(schema);
  loaded.experiment.places = places_of(schema);
  if (loaded.resolved_yaml.size() > largest_configuration)
    throw Error(fmt::format(
        "{}model.layers: with all its keys the experiment has {} bytes, and a configuration can have at most {}; use "
        "fewer layers",
        loaded.experiment.place_of("model.layers"), loaded.resolved_yaml.size(), largest_configuration));
  loaded.overrides = overrides;
  loaded.sources = std::move(composed.sources);
  return loaded;
}

LoadedExperiment load_experiment(const fs::path& file, const std::vector<std::string>& overrides, Registry& registry) {
  Problems problems;
  std::optional<Composed> composed = compose_file(file, overrides, problems);
  return resolve(std::move(composed), overrides, registry, problems);
}

LoadedExperiment load_experiment_text(std::string text, const std::string& name,
                                      const std::vector<std::string>& overrides, Registry& registry) {
  Problems problems;
  std::optional<Composed> composed = compose_text(std::move(text), name, overrides, problems);
  return resolve(std::move(composed), overrides, registry, problems);
}

std::vector<WholeNumber> whole_numbers(const LoadedExperiment& loaded, const Registry& registry) {
  Problems problems;
  const std::optional<Node> tree = parse_yaml(loaded.resolved_yaml, "", problems);
  problems.raise();
  Reading reading{&registry, &problems};
  ConfigSchema schema(reading, "", &*tree, {});
  Experiment experiment;
  experiment.describe(schema);
  std::vector<WholeNumber> numbers;
  for_each_key(schema, [&](const std::string& path, const Declaration& declaration) {
    if (const Index* value = std::get_if<Index>(&declaration.value))
      numbers.push_back({path, *value, std::get<Index>(declaration.fallback)});
  });
  return numbers;
}

}  // namespace stiefel
