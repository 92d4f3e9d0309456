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

Location place_of_halving(const Composed& composed) {
  for (const Member& member : composed.many)
    if (const Member* halving = member.value.find("halving")) return halving->where;
  return {};
}

/// The file over those that `sweep.extends` names; each choice is read once.
class Bases {
 public:
  Bases(const fs::path& file, const std::vector<std::string>& overrides, const Composed& alone)
      : file_(file), overrides_(overrides), alone_(alone) {}

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

 private:
  static bool same(const std::vector<Member>& a, const std::vector<Member>& b) {
    const auto text = [](const Member& member) { return member.key + flow_text(member.value); };
    return std::ranges::equal(a, b, {}, text, text);
  }

  const fs::path& file_;
  const std::vector<std::string>& overrides_;
  const Composed& alone_;
  std::map<std::string, std::optional<Composed>> composed_;
};

Sweep load_runs(const Composed& composed, Bases& bases, const SweepDescription& description, Registry& registry,
                const SweepVisitor& visit, Problems& problems) {
  Sweep sweep;
  sweep.source = composed.sources.front().text;
  sweep.keys = description.keys;
  sweep.combinations = description.runs.size();
  std::set<std::string> ids;
  for (const std::vector<Override>& values : description.runs) {
    if (problems.count() >= enough_problems) break;
    std::vector<Override> keys = values;
    const auto extends = std::ranges::find(keys, "extends", &Override::path);
    const Composed* base = extends == keys.end() ? &composed : bases.over(extends->value, problems);
    if (!base) continue;
    if (extends != keys.end()) keys.erase(extends);
    Composed one{base->root, {}, {composed.sources.front()}};
    apply_overrides(one.root, keys, problems);
    const std::optional<LoadedExperiment> loaded = load_composed(std::move(one), {}, registry, problems);
    if (!loaded) continue;
    if (!sweep.name.empty() && sweep.name != loaded->experiment.name)
      problems.add({composed.sources.front().path, 1, 1},
                   "the files of sweep.extends have different names; give the sweep a name");
    sweep.name = loaded->experiment.name;
    if (description.halving) {
      std::optional<Halving> halving =
          halving_of(*description.halving, loaded->experiment, place_of_halving(composed), problems);
      if (sweep.halving && sweep.halving->rungs != halving->rungs)
        problems.add(place_of_halving(composed),
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
  problems.raise();
  Bases bases(file, overrides, *composed);
  Sweep sweep = load_runs(*composed, bases, description, registry, visit, problems);
  problems.raise();
  return sweep;
}

}  // namespace stiefel
