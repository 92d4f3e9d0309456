// Reading of distributions and drawing from them.
#include "config/distribution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/suggestion.hpp"
#include "config/expand.hpp"

namespace stiefel {
namespace {

const std::vector<std::string> distribution_kinds = {"uniform", "log_uniform", "integer", "choice"};

bool names_distribution(const Member& member) {
  return std::ranges::find(distribution_kinds, member.key) != distribution_kinds.end();
}

/// What to write instead of a mapping that is not a distribution.
std::string advice(const Node& node, std::string path) {
  const Node* inner = &node;
  while (!inner->members.empty() && !names_distribution(inner->members.front())) {
    path += "." + inner->members.front().key;
    inner = &inner->members.front().value;
  }
  if (node.find("plugin") || (inner->kind == Node::Kind::map && inner->members.empty()))
    return "write a single node in a list: [{…}]";
  const std::string text = flow_text(*inner), values = inner->kind == Node::Kind::scalar ? "[" + text + "]" : text;
  return "write a nested key with dots: " + (inner->where.file.empty() ? fmt::format("'sweep.\"{}\"={}'", path, values)
                                                                       : fmt::format("'{}: {}'", path, values));
}

/// [low, high] of the type that `kind` draws.
bool read_bounds(const Node& node, const std::string& path, Distribution& distribution, Problems& problems) {
  const bool whole = distribution.kind == "integer";
  Value value = whole ? Value(std::vector<Index>()) : Value(std::vector<double>());
  std::vector<Fault> faults;
  if (!read_value(node, value, faults)) {
    for (const Fault& fault : faults) problems.add(fault.where, fmt::format("{} {}", path, fault.sentence));
    return false;
  }
  std::vector<double> bounds;
  if (whole)
    bounds.assign(std::get<std::vector<Index>>(value).begin(), std::get<std::vector<Index>>(value).end());
  else
    bounds = std::get<std::vector<double>>(value);
  std::string fault;
  if (bounds.size() != 2)
    fault = fmt::format("must be [low, high], got {} numbers", bounds.size());
  else if (!(bounds[0] < bounds[1]))
    fault = "must be [low, high] with low below high";
  else if (distribution.kind == "log_uniform" && !(bounds[0] > 0))
    fault = "must be [low, high] with low above 0";
  else if (std::max(std::abs(bounds[0]), std::abs(bounds[1])) > 1e15 && whole)
    fault = "must lie within ±1e15";
  if (!fault.empty()) {
    problems.add(node.where, fmt::format("{} {}", path, fault));
    return false;
  }
  distribution.low = bounds[0], distribution.high = bounds[1];
  return true;
}

}  // namespace

std::optional<Distribution> read_distribution(const Node& node, const std::string& key, Problems& problems) {
  if (node.members.empty() || (node.members.size() > 1 && names_distribution(node.members.front()))) {
    problems.add(
        node.where,
        fmt::format("sweep.{} must be a list of values or one distribution, such as {{log_uniform: [1e-5, 1e-2]}}",
                    key));
    return std::nullopt;
  }
  const Member& member = node.members.front();
  const std::string path = fmt::format("sweep.{}.{}", key, member.key);
  if (!names_distribution(member)) {
    const std::string close = suggestion(member.key, distribution_kinds);
    problems.add(member.where,
                 fmt::format("{} is not a distribution{}", path,
                             close.empty() ? fmt::format("; choose from {}, or {}", fmt::join(distribution_kinds, ", "),
                                                         advice(node, key))
                                           : close));
    return std::nullopt;
  }
  Distribution distribution;
  distribution.kind = member.key;
  distribution.where = member.value.where;
  if (distribution.kind != "choice") {
    if (!read_bounds(member.value, path, distribution, problems)) return std::nullopt;
    return distribution;
  }
  if (member.value.kind != Node::Kind::sequence || member.value.items.empty()) {
    problems.add(member.value.where,
                 fmt::format("{} must be a list of values, got {}", path,
                             member.value.kind == Node::Kind::sequence ? "an empty list" : shown(member.value)));
    return std::nullopt;
  }
  distribution.choices = member.value.items;
  return distribution;
}

Node Distribution::draw(Rng& rng) const {
  if (kind == "choice") return choices[std::size_t(rng.integer(0, std::int64_t(choices.size())))];
  Node node;
  node.kind = Node::Kind::scalar;
  node.where = where;
  if (kind == "integer") {
    node.text = std::to_string(rng.integer(std::int64_t(low), std::int64_t(high) + 1));
  } else if (kind == "uniform") {
    node.text = number_text(rng.uniform(low, high));
  } else {
    const double drawn = std::exp(std::log(low) + (std::log(high) - std::log(low)) * rng.uniform());
    const std::string digits = fmt::format("{:.5e}", drawn);
    double rounded = drawn;
    std::from_chars(digits.data(), digits.data() + digits.size(), rounded);
    node.text = number_text(std::clamp(rounded, low, high));
  }
  return node;
}

}  // namespace stiefel
