// Every run of a sweep is an ordinary experiment: the file with the swept values laid over it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sweep/sweep.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t enough_problems = 10;

std::optional<Halving> halving_of(const HalvingOptions& options, const Experiment& experiment, const Location& where,
                                  Problems& problems) {
  Halving halving{options.metric, options.factor, {}};
  const TrainOptions& train = experiment.train;
  if (train.steps == 0)
    problems.add(where, "sweep.halving: rungs are counted in steps; give train.steps instead of train.epochs");
  else if (options.first >= train.steps)
    problems.add(where,
                 fmt::format("sweep.halving.first must be below train.steps = {}, got {}", train.steps, options.first));
  else if (train.evaluate_every == 0 || train.evaluate_every > options.first)
    problems.add(
        where,
        fmt::format(
            "sweep.halving: runs are ranked by their evaluations; give a train.evaluate_every from 1 to first = {}",
            options.first));
  else
    for (Index rung = options.first;; rung *= options.factor) {
      halving.rungs.push_back(rung);
      if (rung > (train.steps - 1) / options.factor) break;
    }
  return halving;
}

const Member* in_sweep(const Composed& composed, const char* key) {
  for (const Member& member : composed.many)
    if (const Member* found = member.value.find(key)) return found;
  return nullptr;
}

/// Lays the sweep's file over the files that `sweep.extends` names, once for each choice of them.
class Bases {
 public:
  Bases(const fs::path& file, const std::vector<std::string>& overrides, const Composed& alone)
      : file_(file), overrides_(overrides), alone_(alone) {}

  /// Returns what the values of a run are laid over, and removes `extends` from them. Null if a file is not valid.
  const Composed* beneath(std::vector<Override>& values, Problems& problems) {
    const auto extends = std::ranges::find(values, "extends", &Override::path);
    if (extends == values.end()) return &alone_;
    const Node files = std::move(extends->value);
    values.erase(extends);
    return over(files, problems);
  }

 private:
  const Composed* over(const Node& files, Problems& problems) {
    const auto [place, is_new] = composed_.try_emplace(flow_text(files));
    std::optional<Composed>& composed = place->second;
    if (is_new) {
      composed = compose_file(file_, overrides_, problems,
                              files.kind == Node::Kind::sequence ? files.items : std::vector{files});
      if (composed && !same(composed->many, alone_.many))
        problems.add(files.where,
                     fmt::format("sweep.extends: {} has its own seeds: or sweep:; only the sweep's file can have them",
                                 flow_text(files)));
    }
    return composed ? &*composed : nullptr;
  }

  static bool same(const std::vector<Member>& a, const std::vector<Member>& b) {
    const auto text = [](const Member& member) { return member.key + flow_text(member.value); };
    return std::ranges::equal(a, b, {}, text, text);
  }

  const fs::path& file_;
  const std::vector<std::string>& overrides_;
  const Composed& alone_;
  std::map<std::string, std::optional<Composed>> composed_;
};

/// Whether a setting affects a run despite the run's values. It may, because a plugin's name keeps some keys.
bool is_left(const Override& setting, const Node& root, const std::vector<Override>& values) {
  Override other = setting;
  other.value.kind = Node::Kind::sequence;
  other.value.items = {setting.value};
  Problems ignored;
  Node with_setting = root, with_other = root;
  apply_overrides(with_other, std::vector{other}, ignored);
  for (Node* run : {&with_setting, &with_other}) apply_overrides(*run, values, ignored);
  return flow_text(with_setting) != flow_text(with_other);
}

/// Says why a setting of the command line has no effect, because every run has other values there; else empty.
std::string overruled(const Override& setting, const Composed& composed, Bases& bases,
                      const SweepDescription& description, Problems& problems) {
  const std::vector<Override>& keys = description.runs.front();
  const auto key = std::ranges::find_if(keys, [&](const Override& swept) { return is_within(setting, swept); });
  const bool draws = in_sweep(composed, "samples") && setting.path == "seed";
  if (key == keys.end() || draws) return {};
  const bool same = key->keys == setting.keys;
  if (!same || setting.value.kind == Node::Kind::map)
    for (std::vector<Override> values : description.runs)
      if (const Composed* base = bases.beneath(values, problems); !base || is_left(setting, base->root, values))
        return {};
  const std::string value = flow_text(setting.value);
  if (key->text == "seeds")
    return fmt::format("seed has no effect, because seeds: sets it ({}); use seeds=[{}]", key->where.text(), value);
  const Member* axis = in_sweep(composed, key->text.c_str());
  const bool drawn = axis && axis->value.kind == Node::Kind::map;
  return fmt::format("{} has no effect, because sweep: varies {} ({}); leave it out, or {}", setting.path,
                     same ? "it" : key->path, key->where.text(),
                     same ? fmt::format("replace the values there with 'sweep.\"{}\"={}'", key->text,
                                        drawn ? "{choice: [" + value + "]}" : "[" + value + "]")
                          : "write it into the nodes there");
}

Sweep load_runs(const Composed& composed, Bases& bases, const SweepDescription& description, Registry& registry,
                const SweepVisitor& visit, Problems& problems) {
  Sweep sweep;
  sweep.source = composed.sources.front().text;
  for (const Override& value : description.runs.front()) sweep.keys.push_back(value.path);
  sweep.combinations = description.runs.size();
  std::set<std::string> ids;
  for (const std::vector<Override>& values : description.runs) {
    if (problems.count() >= enough_problems) break;
    std::vector<Override> keys = values;
    const Composed* base = bases.beneath(keys, problems);
    if (!base) continue;
    Composed one{base->root, {}, base->sources};
    apply_overrides(one.root, keys, problems);
    const std::optional<LoadedExperiment> loaded = load_composed(std::move(one), {}, registry, problems);
    if (!loaded) continue;
    if (!sweep.name.empty() && sweep.name != loaded->experiment.name)
      problems.add({composed.sources.front().path, 1, 1},
                   "the files of sweep.extends have different names; give the sweep a name");
    sweep.name = loaded->experiment.name;
    if (description.halving) {
      std::optional<Halving> halving =
          halving_of(*description.halving, loaded->experiment, in_sweep(composed, "halving")->where, problems);
      if (sweep.halving && sweep.halving->rungs != halving->rungs)
        problems.add(in_sweep(composed, "halving")->where,
                     "sweep.halving: the runs have different numbers of steps and therefore different rungs; give them "
                     "all the same number");
      sweep.halving = std::move(halving);
    }
    if (!ids.insert(loaded->id).second) continue;
    SweepRun& run = sweep.runs.emplace_back(SweepRun{loaded->id, {}, loaded->resolved_yaml});
    for (const Override& value : values) run.values.push_back(flow_text(value.value));
    if (visit) visit(*loaded, run, sweep);
  }
  return sweep;
}

}  // namespace

std::optional<Sweep> load_sweep(const fs::path& file, const std::vector<std::string>& overrides, Registry& registry,
                                const SweepVisitor& visit) {
  Problems problems;
  const std::optional<Composed> composed = compose_file(file, overrides, problems);
  problems.raise();
  if (composed->many.empty()) return std::nullopt;
  const SweepDescription description = describe_sweep(*composed, problems);
  if (description.runs.empty()) problems.raise();
  Bases bases(file, overrides, *composed);
  for (const std::string& text : overrides)
    if (const std::string why = overruled(*parse_override(text, problems), *composed, bases, description, problems);
        !why.empty())
      problems.add({}, why);
  Sweep sweep = load_runs(*composed, bases, description, registry, visit, problems);
  problems.raise();
  return sweep;
}

}  // namespace stiefel
