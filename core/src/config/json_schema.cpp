// Declarations as JSON schema. It is milder than the reader in one way: what may come from a file named in extends: is
// not demanded.
#include "config/json_schema.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "base/json_text.hpp"
#include "config/config_schema.hpp"
#include "config/expand.hpp"

namespace stiefel {
namespace {

using Json = nlohmann::ordered_json;

Json object_schema(const ConfigSchema& schema);

Json json_value(const Value& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

/// The text, and the number or truth value that YAML takes it for when it has no quotes: "61", 61.
void add_forms(const std::string& text, Json& forms) {
  forms.push_back(text);
  Node node;
  node.kind = Node::Kind::scalar;
  node.text = text;
  for (Value value : {Value(false), Value(Index(0)), Value(0.0)})
    if (std::vector<Fault> faults; read_value(node, value, faults)) return forms.push_back(json_value(value));
}

/// Type and constraints of one scalar. Where text is wanted, every scalar is text.
void constrain(const Declaration& field, std::size_t type, Json& json) {
  static const Json text = {"string", "number", "boolean"};
  static const Json names[] = {"boolean", "integer", "number", text, "integer", "number", text};
  if (field.one_of.empty()) json["type"] = names[type];
  for (const std::string& choice : field.one_of) add_forms(choice, json["enum"]);
  const auto bound = [](double value) {
    return value == std::floor(value) && std::abs(value) < 1e15 ? Json(Index(value)) : Json(value);
  };
  if (field.low) json[field.low_excluded ? "exclusiveMinimum" : "minimum"] = bound(*field.low);
  if (field.high) json[field.high_excluded ? "exclusiveMaximum" : "maximum"] = bound(*field.high);
}

Json field_schema(const Declaration& field, const detail::Section& section) {
  if (field.key == "plugin" && !section.plugin.empty())
    return {{"const", section.plugin}, {"description", section.meaning}};
  Json json;
  json["description"] = field.meaning + " (" + field.constraint() + ")";
  if (json_value(field.value).is_array()) {
    json["type"] = "array";
    constrain(field, field.value.index(), json["items"]);
  } else {
    constrain(field, field.value.index(), json);
  }
  if (!field.required) json["default"] = json_value(field.fallback);
  return json;
}

/// A name alone, one object for each plugin, or an object whose plugin is named in a file that this one extends.
Json plugin_schema(const Declaration& declaration) {
  Json names = Json::array(), choices = Json::array();
  for (const auto& inner : declaration.inner) names.push_back(inner->own_section().plugin);
  if (!names.empty()) choices.push_back({{"type", "string"}, {"enum", names}});
  for (const auto& inner : declaration.inner) {
    Json choice = object_schema(*inner);
    choice["title"] = inner->own_section().plugin;
    choice["description"] = inner->own_section().meaning;
    choice["required"] = {"plugin"};
    choices.push_back(std::move(choice));
  }
  choices.push_back({{"type", "object"}, {"not", {{"required", {"plugin"}}}}});
  return {{"description", declaration.meaning}, {"oneOf", choices}};
}

Json section_schema(const Declaration& declaration) {
  const ConfigSchema& inner = *declaration.inner.at(0);
  Json object = object_schema(inner);
  object["description"] = declaration.meaning;
  const std::string& shorthand = inner.own_section().shorthand;
  if (shorthand.empty()) return object;
  return {{"description", declaration.meaning}, {"anyOf", {object["properties"][shorthand], object}}};
}

Json declaration_schema(const Declaration& declaration, const detail::Section& section) {
  switch (declaration.kind) {
    case Declaration::Kind::field:
      return field_schema(declaration, section);
    case Declaration::Kind::section:
      return section_schema(declaration);
    case Declaration::Kind::plugin:
      return plugin_schema(declaration);
    case Declaration::Kind::list:
      break;  // only what is read has one
    case Declaration::Kind::groups: {
      const Json one = plugin_schema(declaration);
      return {{"description", declaration.meaning},
              {"anyOf", {one, {{"type", "array"}, {"items", one}, {"minItems", 1}}}}};
    }
    case Declaration::Kind::named:
      return {{"description", declaration.meaning},
              {"type", "object"},
              {"additionalProperties", plugin_schema(declaration)}};
    case Declaration::Kind::periods:
      return {{"description", declaration.meaning},
              {"type", "object"},
              {"additionalProperties", {{"type", "integer"}, {"minimum", 0}}}};
  }
  return {};
}

Json object_schema(const ConfigSchema& schema) {
  const bool extended = std::ranges::any_of(schema.own_section().declarations, [](const auto& d) { return d->part; });
  Json json = {{"type", "object"}, {"additionalProperties", extended}};
  Json& properties = json["properties"] = Json::object();
  for (const auto& declaration : schema.own_section().declarations)
    properties[declaration->key] = declaration_schema(*declaration, schema.own_section());
  return json;
}

bool demanded(const Declaration& declaration) {
  if (declaration.required || declaration.kind != Declaration::Kind::section) return declaration.required;
  return std::ranges::any_of(declaration.inner[0]->own_section().declarations,
                             [](const auto& inner) { return demanded(*inner); });
}

/// `seeds:` and `sweep:`, which are not keys of one run.
Json seeds_schema() {
  return {{"description", "seeds of many runs: a list, or first..last"},
          {"anyOf",
           {{{"type", "array"}, {"items", {{"type", "integer"}, {"minimum", 0}}}},
            {{"type", "string"}, {"pattern", "^[0-9]+\\.\\.[0-9]+$"}}}}};
}

Json sweep_schema() {
  Reading reading;
  ConfigSchema schema(reading, "", nullptr, {});
  HalvingOptions halving;
  halving.describe(schema);
  const Json bounds = {{"type", "array"}, {"items", {{"type", "number"}}}, {"minItems", 2}, {"maxItems", 2}};
  Json distribution = {{"type", "object"}, {"minProperties", 1}, {"maxProperties", 1}, {"additionalProperties", false}};
  for (const char* kind : {"uniform", "log_uniform", "integer"}) distribution["properties"][kind] = bounds;
  distribution["properties"]["choice"] = {{"type", "array"}, {"minItems", 1}};
  return {
      {"description", "several runs: lists of values or distributions, by the paths of their keys"},
      {"type", "object"},
      {"properties",
       {{"samples", {{"description", "number of draws from the distributions"}, {"type", "integer"}, {"minimum", 1}}},
        {"halving", object_schema(schema)}}},
      {"additionalProperties", {{"anyOf", {{{"type", "array"}, {"minItems", 1}}, distribution}}}}};
}

}  // namespace

std::string json_schema(const Registry& registry) {
  Reading reading{&registry, nullptr, true};
  ConfigSchema schema(reading, "", nullptr, {});
  Experiment experiment;
  experiment.describe(schema);

  Json json = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "stiefel experiment"}};
  json.update(object_schema(schema));
  Json& model = json["properties"]["model"]["properties"];
  Json layer = {{"type", "object"}, {"additionalProperties", false}, {"properties", model}};
  for (const char* key : {"layers", "readout"}) layer["properties"].erase(key);
  model["layers"] = {{"description", model["layers"]["description"]},
                     {"anyOf", {model["layers"], {{"type", "array"}, {"items", layer}, {"minItems", 1}}}}};
  const Json file = {{"type", "string"}};
  json["properties"]["extends"] = {{"description",
                                    "files, or names of experiments that come with stiefel, whose keys apply unless "
                                    "they are given here; the later file wins"},
                                   {"anyOf", {file, {{"type", "array"}, {"items", file}}}}};
  json["properties"]["seeds"] = seeds_schema();
  json["properties"]["sweep"] = sweep_schema();
  Json required = Json::array();
  for (const auto& declaration : schema.own_section().declarations)
    if (demanded(*declaration)) required.push_back(declaration->key);
  const Json extends = {{"required", {"extends"}}};
  const Json sweep_extends = {{"required", {"sweep"}}, {"properties", {{"sweep", extends}}}};
  json["if"] = {{"not", {{"anyOf", {extends, sweep_extends}}}}};
  json["then"] = {{"required", required}};
  return json_text(json, 2) + "\n";
}

}  // namespace stiefel
