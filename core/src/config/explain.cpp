// The declarations of a description, without a tree, as commented YAML.
#include "config/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/printable.hpp"
#include "config/config_schema.hpp"
#include "config/field_check.hpp"
#include "config/overrides.hpp"
#include "config/resolved.hpp"

namespace stiefel {
namespace {

/// A value that a required field accepts, as near to nothing as its constraints allow.
struct Sample {
  const Declaration& field;

  double number() const {
    if (field.low) return *field.low + (field.low_excluded ? 1 : 0);
    if (field.high) return *field.high - (field.high_excluded ? 1 : 0);
    return 1;
  }
  std::string text() const { return field.one_of.empty() ? "text" : field.one_of.front(); }

  Value operator()(bool value) const { return value; }
  Value operator()(Index) const { return Index(number()); }
  Value operator()(double) const {
    const bool narrow = field.low && field.high && (field.low_excluded || field.high_excluded);
    return narrow ? (*field.low + *field.high) / 2 : number();
  }
  Value operator()(const std::string&) const { return text(); }
  Value operator()(const std::vector<Index>&) const { return std::vector<Index>{Index(number())}; }
  Value operator()(const std::vector<double>&) const { return std::vector<double>{number()}; }
  Value operator()(const std::vector<std::string>&) const { return std::vector<std::string>{text()}; }
};

bool empty(const Value& value) {
  return std::visit(
      [](const auto& v) {
        if constexpr (requires { v.empty(); }) return v.empty();
        return false;
      },
      value);
}

Value shown_value(const Declaration& field) {
  if (field.given) return field.value;
  if (!field.required || (acceptable(field, field.fallback) && !empty(field.fallback))) return field.fallback;
  return std::visit(Sample{field}, field.fallback);
}

void add_line(std::string& out, std::string line, std::string comment) {
  constexpr std::size_t column = 36;
  std::ranges::replace(comment, '\n', ' ');
  if (!comment.empty()) {
    line.resize(std::max(line.size() + 2, column), ' ');
    line += "# " + comment;
  }
  out += line + "\n";
}

void write(const ConfigSchema& schema, const std::string& indent, std::string& out);

void write(const ConfigSchema& schema, const Declaration& declaration, const std::string& indent, std::string& out) {
  const std::string key = indent + declaration.key + ":";
  if (declaration.kind == Declaration::Kind::field) {
    const bool is_name = declaration.key == "plugin" && !schema.own_section().plugin.empty();
    const std::string comment = is_name ? schema.own_section().meaning
                                        : fmt::format("{} ({}{})", declaration.meaning, declaration.constraint(),
                                                      !declaration.required ? ""
                                                      : declaration.given   ? "; required"
                                                                            : "; required, this is an example");
    add_line(out, fmt::format("{} {}", key, yaml_text(shown_value(declaration))), comment);
  } else if (declaration.inner.empty()) {
    add_line(out, key + " {}", declaration.meaning);
  } else {
    const std::string& shorthand = declaration.inner[0]->own_section().shorthand;
    const bool section = declaration.kind == Declaration::Kind::section && !shorthand.empty();
    add_line(
        out, key,
        declaration.meaning + (declaration.required ? " (required)" : "") +
            (section ? fmt::format(" (`{} x` is short for `{{{}: x}}`)", key.substr(indent.size()), shorthand) : ""));
    write(*declaration.inner[0], indent + "  ", out);
  }
}

void write(const ConfigSchema& schema, const std::string& indent, std::string& out) {
  for (const auto& declaration : schema.own_section().declarations) write(schema, *declaration, indent, out);
}

/// The key at `path`, below its parents; nothing if there is none.
std::string part(const ConfigSchema& schema, std::string_view path, const std::string& indent) {
  const std::size_t end = path.find('.');
  std::string text;
  for (const auto& declaration : schema.own_section().declarations) {
    if (declaration->key != path.substr(0, end)) continue;
    if (end == path.npos)
      write(schema, *declaration, indent, text);
    else if (!declaration->inner.empty())
      text = part(*declaration->inner[0], path.substr(end + 1), indent + "  ");
    if (end != path.npos && !text.empty()) text.insert(0, indent + declaration->key + ":\n");
  }
  return text;
}

/// An experiment with the values that only a person can give.
Experiment sample() {
  Experiment experiment;
  experiment.name = "my-experiment";
  experiment.model.layers[0].hidden = 128;
  experiment.train.steps = 5000;
  return experiment;
}

/// All keys, with one plugin of each role.
struct Described {
  explicit Described(const Registry& registry, bool alternatives = false) : reading{&registry, nullptr, alternatives} {
    experiment.describe(schema);
  }

  Reading reading;
  ConfigSchema schema{reading, "", nullptr, {}};
  Experiment experiment = sample();
};

/// Where a role's plugin stands.
std::vector<std::string> place_of(Role role) {
  switch (role) {
    case Role::parametrisation:
      return {"model", "recurrent"};
    case Role::cell:
      return {"model", "cell"};
    case Role::task:
      return {"task"};
    case Role::optimizer:
      return {"optimizer"};
  }
  return {};
}

/// Adds the values that the key at `path` of a section takes, or a plugin's key in any plugin.
void add_values(const ConfigSchema& schema, std::string_view path, std::set<std::string>& values) {
  const auto next = [&path] {
    const std::string_view key = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), key.size() + 1));
    return key;
  };
  const std::string_view key = next();
  for (const auto& declaration : schema.own_section().declarations) {
    if (declaration->key != key) continue;
    if (declaration->kind == Declaration::Kind::named) next();
    if (declaration->kind == Declaration::Kind::field) {
      values.insert(declaration->one_of.begin(), declaration->one_of.end());
      if (std::holds_alternative<bool>(declaration->value)) values.insert({"false", "true"});
    } else if (declaration->kind == Declaration::Kind::section) {
      const ConfigSchema& inner = *declaration->inner[0];
      add_values(inner, path.empty() ? inner.own_section().shorthand : path, values);
    } else {
      for (const auto& inner : declaration->inner)
        if (path.empty() || path == "plugin")
          values.insert(inner->own_section().plugin);
        else
          add_values(*inner, path, values);
    }
  }
}

void describe_role(ConfigSchema& schema, Experiment& experiment, const Entry& entry) {
  PluginChoice choice;
  LayerOptions& layer = experiment.model.layers[0];
  switch (entry.role) {
    case Role::parametrisation:
      return schema.describe_plugin(layer.recurrent, entry.role, entry.name,
                                    [&](ConfigSchema& s) { layer.recurrent.describe(s); });
    case Role::cell:
      return schema.describe_plugin(choice, entry.role, entry.name, [&](ConfigSchema& s) { layer.describe_size(s); });
    case Role::task:
      return schema.describe_plugin(choice, entry.role, entry.name, {});
    case Role::optimizer:
      return schema.group(experiment.optimizer.emplace_back(), entry.name);
  }
}

}  // namespace

std::string explain_experiment(const Registry& registry) {
  std::string text =
      "# A complete experiment to start from. Where a key is not required, its default is shown, and it can be "
      "omitted.\n";
  write(Described(registry).schema, "", text);
  return text;
}

std::string explain_key(const Registry& registry, const std::string& path) {
  return part(Described(registry).schema, path, "");
}

std::string explain_plugin(const Registry& registry, const Entry& entry, const std::vector<std::string>& options) {
  Problems problems;
  Node given;
  given.kind = Node::Kind::map;
  std::vector<std::string> all = options;
  all.push_back(std::string("plugin=") + entry.name);
  apply_overrides(given, all, problems);
  Reading reading{&registry, options.empty() ? nullptr : &problems};
  ConfigSchema schema(reading, "", &given, {});
  Experiment experiment = sample();
  describe_role(schema, experiment, entry);
  const auto faulty = [](const auto& declaration) { return declaration->part && !declaration->sound; };
  if (std::ranges::any_of(schema.own_section().declarations, faulty)) problems.raise();  // else options are missing
  const PluginFile& file = registry.file_of(entry);
  std::string text = fmt::format("# {} {}: {}\n", name_of(entry.role), entry.name, entry.meaning);
  text += file.version.empty() ? fmt::format("# {}\n", printable(file.path.string()))
                               : fmt::format("# version {}, {}\n", file.version, printable(file.path.string()));
  std::string indent;
  for (const std::string& key : place_of(entry.role)) {
    text += indent + key + ":\n";
    indent += "  ";
  }
  write(schema, indent, text);
  return text;
}

std::vector<std::string> experiment_keys(const Registry& registry) {
  std::vector<std::string> keys = origins_of(Described(registry).schema);
  for (std::string& key : keys) key.erase(key.rfind('='));
  return keys;
}

std::vector<std::string> experiment_values(const Registry& registry, const std::string& path) {
  std::set<std::string> values;
  add_values(Described(registry, true).schema, path, values);
  return {values.begin(), values.end()};
}

}  // namespace stiefel
