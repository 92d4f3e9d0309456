// Which checks a method gets, and those that every method gets: names, options.
#include "conformance/check.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "config/config_schema.hpp"
#include "config/explain.hpp"
#include "config/overrides.hpp"
#include "config/resolved.hpp"
#include "conformance/subject.hpp"

namespace stiefel::conformance {

namespace {

// The method's options as read from a tree of YAML; all errors at once.
class ReadOptions {
 public:
  ReadOptions(const Registry& registry, const Entry& entry, Node root) : root_(std::move(root)) {
    reading_.registry = &registry;
    reading_.problems = &problems_;
    schema_.emplace(reading_, "", &root_, Location{});
    choice.plugin = entry.name;
    choice.entry = &entry;
    schema_->describe_options(choice, entry);
    schema_->finish();
    problems_.raise();
  }
  std::string yaml() const { return resolved_yaml(*schema_); }
  PluginChoice choice;

 private:
  Node root_;
  Problems problems_;
  Reading reading_;
  std::optional<ConfigSchema> schema_;
};

Node tree_of(const std::vector<std::string>& overrides) {
  Problems problems;
  Node root;
  root.kind = Node::Kind::map;
  apply_overrides(root, overrides, problems);
  problems.raise();
  return root;
}

Node parsed(const std::string& text, const std::string& name) {
  Problems problems;
  std::optional<Node> node = parse_yaml(text, name, problems);
  problems.raise();
  return node ? *node : tree_of({});
}

void check_documented(const ConfigSchema& schema, CheckReport& report) {
  for (const auto& declaration : schema.own_section().declarations) {
    const std::string& key = declaration->key;
    report.require("options", plain_name(key), fmt::format("the key `{}` must be made of a–z, 0–9 and _", key));
    report.require("options", !declaration->meaning.empty(), fmt::format("the option `{}` has no meaning", key));
    for (const auto& inner : declaration->inner) check_documented(*inner, report);
  }
}

/// The key of a file that belongs to the method, if there is one that the options do not name; else empty.
std::string missing_part(const Registry& registry, const Entry& entry, const std::vector<std::string>& options) {
  Reading described;
  described.registry = &registry;
  ConfigSchema schema(described, "", nullptr, {});
  PluginChoice choice;
  schema.describe_options(choice, entry);
  for (const auto& declaration : schema.own_section().declarations)
    if (declaration->part && std::ranges::none_of(options, [&](const std::string& option) {
          return option.starts_with(declaration->key + "=");
        }))
      return declaration->key;
  return "";
}

}  // namespace

void check_options(const Subject& subject, CheckReport& report, const Registry& registry) {
  attempt(subject, report, "options", [&] {
    const Entry& entry = subject.entry;
    report.require("options", plain_name(entry.name) && entry.name[0] >= 'a',
                   fmt::format("the method's name `{}` must be [a-z][a-z0-9_]*", entry.name));
    report.require("options", entry.meaning && *entry.meaning, "the method has no meaning");
    Reading described;
    described.registry = &registry;
    ConfigSchema schema(described, "", nullptr, {});
    PluginChoice choice;
    choice.plugin = entry.name;
    choice.entry = &entry;
    subject.call("describe", [&] { schema.describe_options(choice, entry); });
    check_documented(schema, report);
    report.note("options", fmt::format("{} documented", schema.own_section().declarations.size()));

    // What a run archives reads back as itself, and what `stiefel describe` prints is YAML.
    const std::string archived = ReadOptions(registry, entry, tree_of(subject.settings.options)).yaml();
    const std::string again =
        archived.empty() ? archived : ReadOptions(registry, entry, parsed(archived, "resolved options")).yaml();
    report.require("options", again == archived,
                   fmt::format("the options read back differently:\n{}instead of\n{}", again, archived));
    parsed(explain_plugin(registry, entry), "stiefel describe");
  });
}

bool takes_options(const Registry& registry, const Entry& entry, const std::vector<std::string>& options) {
  try {
    ReadOptions(registry, entry, tree_of(options));
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

bool has_method(const Registry& registry, const Entry& entry, const std::vector<std::string>& options) {
  Problems problems;
  Reading reading{&registry, &problems};
  const Node root = tree_of(options);
  ConfigSchema schema(reading, "", &root, {});
  PluginChoice choice;
  schema.describe_options(choice, entry);
  return std::ranges::none_of(schema.own_section().declarations,
                              [](const auto& declaration) { return declaration->part && !declaration->sound; });
}

CheckReport check_method(const Registry& registry, const Entry& entry, const CheckSettings& settings,
                         Progress& progress) {
  const std::string file = registry.file_of(entry).path.string();
  CheckReport report(entry.name, name_of(entry.role), file);
  Effects effects(report);
  Subject subject(entry, file, settings, progress, &effects);
  subject.enter("options");
  if (const std::string key = subject.call("describe", [&] { return missing_part(registry, entry, settings.options); });
      !key.empty()) {
    report.leave("options", fmt::format("a file belongs to the method; check it with `{}=FILE`", key));
    return report;
  }
  PluginChoice choice =
      subject.call("describe", [&] { return ReadOptions(registry, entry, tree_of(settings.options)).choice; });
  subject.file = choice.file_of_method(registry);
  subject.options = std::move(choice.options);
  for (const PluginPart& part : choice.parts) report.of(part.path);
  if (const std::string rivals = registry.rivals_of(entry); !rivals.empty()) report.remark("name", rivals);
  if (settings.rows > 0 && entry.role != Role::parametrisation)
    report.remark("--shape", "has no effect: it is for parametrisations");
  try {
    check_options(subject, report, registry);
    switch (entry.role) {
      case Role::parametrisation:
        check_parametrisation(subject, report);
        break;
      case Role::cell:
        check_cell(subject, report);
        break;
      case Role::task:
        check_task(subject, report);
        break;
      case Role::optimizer:
        check_optimizer(subject, report);
        break;
    }
    if (!subject.wants<double>() && entry.role != Role::optimizer)
      report.skip(entry.role == Role::task ? "loss gradient" : "gradient", "is tested in float64 only");
    if (settings.scalars.size() == 1) report.skip("float as double", "needs both number types");
  } catch (const Stopped&) {  // the report says why
  }
  subject.options.reset();
  effects.finish();
  return report;
}

}  // namespace stiefel::conformance
