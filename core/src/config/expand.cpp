// Reading of `seeds:` and `sweep:`, and the product of everything in them.
#include "config/expand.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/number_from.hpp"
#include "config/config_schema.hpp"
#include "config/distribution.hpp"

namespace stiefel {
namespace {

constexpr std::size_t most_runs = 10'000;

/// A key and what it runs through: a list, or a distribution.
struct SweptAxis {
  Override key;  // without a value
  std::vector<Node> values;
  std::optional<Distribution> distribution;

  SweptAxis(const Member& member, const std::string& path) {
    key.text = member.key;
    key.path = path;
    key.keys = keys_of_path(path);
    key.where = member.where;
  }
};

struct Axes {
  std::vector<SweptAxis> list;
  Index samples = 0;
  Location samples_where;
  std::optional<HalvingOptions> halving;
};

std::string dotted(const std::vector<std::string>& keys) { return fmt::format("{}", fmt::join(keys, ".")); }

/// 0..9 as the nodes 0 to 9.
std::vector<Node> range(const Node& node) {
  const std::string_view text = node.text;
  const std::size_t dots = text.find("..");
  if (dots == text.npos) return {};
  const auto first = number_from<std::uint64_t>(text.substr(0, dots)),
             last = number_from<std::uint64_t>(text.substr(dots + 2));
  if (!first || !last || *last < *first || *last - *first >= most_runs) return {};
  std::vector<Node> values;
  for (std::uint64_t i = 0; i <= *last - *first; ++i) {
    values.push_back(node);
    values.back().text = std::to_string(*first + i);
  }
  return values;
}

void read_seeds(const Member& seeds, Axes& axes, Problems& problems) {
  SweptAxis axis(seeds, "seed");
  const Node& value = seeds.value;
  if (value.kind == Node::Kind::sequence) axis.values = value.items;
  if (value.kind == Node::Kind::scalar && !value.quoted) axis.values = range(value);
  if (axis.values.empty()) {
    problems.add(value.where,
                 fmt::format("seeds must be a list or a range of at most {} seeds, such as [1, 2, 3] or 0..9, got {}",
                             most_runs, shown(value)));
    return;
  }
  axes.list.push_back(std::move(axis));
}

std::string shown_list(const Node& node) { return node.kind == Node::Kind::sequence ? "an empty list" : shown(node); }

/// Keys that must be the same for the whole sweep.
bool may_differ(const std::string& key) {
  return key != "name" && key != "plugins" && key != "seeds" && key != "sweep";
}

void read_axis(const Member& member, Axes& axes, Problems& problems) {
  SweptAxis axis(member, member.key);
  if (axis.key.keys.empty()) {
    problems.add(member.where,
                 fmt::format("sweep: '{}' is not the path of a key such as model.cell.hidden", shortened(member.key)));
    return;
  }
  if (!may_differ(axis.key.keys.front())) {
    problems.add(member.where,
                 fmt::format("sweep: '{}' cannot differ between the runs of a sweep", shortened(member.key)));
    return;
  }
  if (member.value.kind == Node::Kind::map) {
    axis.distribution = read_distribution(member.value, member.key, problems);
    if (!axis.distribution) return;
  } else if (member.value.kind == Node::Kind::sequence && !member.value.items.empty()) {
    axis.values = member.value.items;
  } else {
    problems.add(
        member.value.where,
        fmt::format(
            "sweep.{} must be a list or a distribution, such as [1e-5, 1e-3] or {{log_uniform: [1e-5, 1e-3]}}, got {}",
            member.key, shown_list(member.value)));
    return;
  }
  axes.list.push_back(std::move(axis));
}

void read_sweep(const Member& sweep, Axes& axes, Problems& problems) {
  if (sweep.value.kind != Node::Kind::map || sweep.value.abbreviated) {
    problems.add(sweep.value.where, fmt::format("sweep must be a mapping from keys to lists or distributions, got {}",
                                                shown(sweep.value)));
    return;
  }
  for (const Member& member : sweep.value.members) {
    if (member.key == "samples") {
      Value value = Index(0);
      std::vector<Fault> faults;
      if (read_value(member.value, value, faults) && std::get<Index>(value) < 1)
        faults.push_back({member.value.where, fmt::format("must be at least 1, got {}", std::get<Index>(value))});
      for (const Fault& fault : faults) problems.add(fault.where, "sweep.samples " + fault.sentence);
      axes.samples = std::get<Index>(value);
      axes.samples_where = member.where;
    } else if (member.key == "halving") {
      Reading reading{nullptr, &problems};
      ConfigSchema schema(reading, "sweep.halving", &member.value, member.where);
      axes.halving.emplace();
      axes.halving->describe(schema);
      schema.finish();
    } else {
      read_axis(member, axes, problems);
    }
  }
}

/// A key that lies inside another would be overwritten by it, or overwrite a part of it.
bool refuse_overlaps(const Axes& axes, Problems& problems) {
  bool overlap = false;
  for (const SweptAxis& outer : axes.list)
    for (const SweptAxis& inner : axes.list) {
      const bool same = outer.key.keys == inner.key.keys;
      if (&outer == &inner || !is_within(inner.key, outer.key) || (same && &outer > &inner)) continue;
      overlap = true;
      problems.add(inner.key.where,
                   same ? fmt::format("{} and {} are the same key; give only one", outer.key.text, inner.key.text)
                        : fmt::format("sweep: {} is inside {}, which also varies; write it into the nodes there",
                                      inner.key.path, outer.key.path));
    }
  return overlap;
}

void check_samples(const Axes& axes, const Location& sweep, Problems& problems) {
  const bool drawn =
      std::ranges::any_of(axes.list, [](const SweptAxis& axis) { return axis.distribution.has_value(); });
  if (drawn && axes.samples == 0)
    problems.add(
        sweep,
        "sweep: keys are drawn from distributions; add the number of draws inside `sweep:`, such as samples: 20");
  if (!drawn && axes.samples > 0)
    problems.add(axes.samples_where,
                 "sweep.samples: no key is drawn from a distribution, such as {log_uniform: [1e-5, 1e-2]}");
}

/// Draw i of a key follows from the seed, the key and i alone.
Node drawn(const SweptAxis& axis, std::uint64_t seed, Index i) {
  Rng rng(seed, "sweep " + dotted(axis.key.keys), std::uint64_t(i));
  return axis.distribution->draw(rng);
}

std::uint64_t seed_of(const Node& root) {
  Value seed = Index(1);
  std::vector<Fault> faults;
  if (const Member* member = root.find("seed")) read_value(member->value, seed, faults);
  return std::uint64_t(std::get<Index>(seed));
}

/// Lists are nested in the order of the file, the draws within them, seeds within the draws.
std::vector<std::vector<Override>> product(std::vector<SweptAxis> axes, Index samples, std::uint64_t seed,
                                           Problems& problems) {
  const auto is_seed = [](const SweptAxis& axis) { return axis.key.text == "seeds"; };
  double count = double(std::max<Index>(samples, 1));
  for (const SweptAxis& axis : axes) count *= double(std::max<std::size_t>(axis.values.size(), 1));
  if (count > double(most_runs)) {
    problems.add(axes.front().key.where,
                 fmt::format("the sweep has {:.0f} runs; at most {} are allowed", count, most_runs));
    return {};
  }
  std::vector<std::vector<Override>> runs(1);
  const auto multiply = [&](std::size_t times, const auto& extend) {
    std::vector<std::vector<Override>> longer;
    for (const auto& run : runs)
      for (std::size_t i = 0; i < times; ++i) extend(longer.emplace_back(run), i);
    runs = std::move(longer);
  };
  const auto append = [](std::vector<Override>& run, const SweptAxis& axis, Node value) {
    run.push_back(axis.key);
    run.back().value = std::move(value);
  };
  const auto list = [&](const SweptAxis& axis) {
    multiply(axis.values.size(), [&](std::vector<Override>& run, std::size_t i) { append(run, axis, axis.values[i]); });
  };
  for (const SweptAxis& axis : axes)
    if (!axis.distribution && !is_seed(axis)) list(axis);
  if (samples > 0)
    multiply(std::size_t(samples), [&](std::vector<Override>& run, std::size_t i) {
      for (const SweptAxis& axis : axes)
        if (axis.distribution) append(run, axis, drawn(axis, seed, Index(i)));
    });
  for (const SweptAxis& axis : axes)
    if (is_seed(axis)) list(axis);
  return runs;
}

}  // namespace

void HalvingOptions::describe(Schema& s) {
  s.field("metric", metric,
          "metric that ranks the settings, by the mean of their seeds: a column of /epochs in results.h5, at their "
          "last evaluation up to the rung");
  s.field("first", first, "steps of the first rung").at_least(1).required().units("steps");
  s.field("factor", factor, "one in this many settings continues to the next rung, which is this many times as long")
      .at_least(2);
}

SweepDescription describe_sweep(const Composed& composed, Problems& problems) {
  Axes axes;
  Location where;
  for (const Member& member : composed.many) {
    if (member.key == "sweep") where = member.where;
    (member.key == "sweep" ? read_sweep : read_seeds)(member, axes, problems);
  }
  const bool overlap = refuse_overlaps(axes, problems);
  if (problems.empty()) check_samples(axes, where, problems);
  SweepDescription description;
  if (overlap || axes.list.empty()) {
    if (problems.empty() && !composed.many.empty())
      problems.add(composed.many.front().where, "sweep must name at least one key that differs between runs");
    return description;
  }
  if (problems.empty()) description.halving = axes.halving;
  description.runs = product(std::move(axes.list), axes.samples, seed_of(composed.root), problems);
  return description;
}

std::string flow_text(const Node& node) {
  std::string text;
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::scalar: {
      const bool plain = !node.quoted && !node.text.empty() &&
                         node.text.find_first_not_of(
                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-/") == node.text.npos;
      return plain ? node.text : quoted_text(node.text);
    }
    case Node::Kind::sequence:
      for (const Node& item : node.items) text += (text.empty() ? "" : ", ") + flow_text(item);
      return "[" + text + "]";
    case Node::Kind::map:
      for (const Member& member : node.members)
        text += (text.empty() ? "" : ", ") + quoted_text(member.key) + ": " + flow_text(member.value);
      return "{" + text + "}";
  }
  return text;
}

}  // namespace stiefel
