// Every run of a sweep is an ordinary experiment: the file with the swept values laid over it.
#include <fmt/format.h>

#include <set>

#include "sweep/sweep.hpp"

namespace stiefel {
namespace {

constexpr std::size_t enough_problems = 10;

std::optional<Halving> halving_of(const HalvingOptions& options, const Experiment& experiment, const Location& where, Problems& problems) {
  Halving halving{options.metric, options.factor, {}};
  const TrainOptions& train = experiment.train;
  if (train.steps == 0)
    problems.add(where, "sweep.halving: rungs are counted in steps; give train.steps and not train.epochs");
  else if (options.first >= train.steps)
    problems.add(where, fmt::format("sweep.halving.first must be below train.steps = {}, got {}", train.steps, options.first));
  else if (train.evaluate_every == 0 || train.evaluate_every > options.first)
    problems.add(where, fmt::format("sweep.halving: runs are judged by their evaluations; give a train.evaluate_every from 1 to first = {}",
                                    options.first));
  else
    for (Index rung = options.first; rung<train.steps; rung = rung> train.steps / options.factor ? train.steps : rung * options.factor)
      halving.rungs.push_back(rung);
  return halving;
}

Location place_of_halving(const Composed& composed) {
  for (const Member& member : composed.many)
    if (const Member* halving = member.value.find("halving")) return halving->where;
  return {};
}

Sweep load_runs(const Composed& composed, const SweepDescription& description, Registry& registry, Problems& problems) {
  Sweep sweep;
  sweep.source = composed.sources.front().text;
  sweep.keys = description.keys;
  sweep.combinations = description.runs.size();
  std::set<std::string> ids;
  for (const std::vector<Override>& values : description.runs) {
    if (problems.count() >= enough_problems) break;
    Composed one{composed.root, {}, {composed.sources.front()}};
    apply_overrides(one.root, values, problems);
    const std::optional<LoadedExperiment> loaded = load_composed(std::move(one), {}, registry, problems);
    if (!loaded) continue;
    sweep.name = loaded->experiment.name;
    if (description.halving) {
      std::optional<Halving> halving = halving_of(*description.halving, loaded->experiment, place_of_halving(composed), problems);
      if (sweep.halving && sweep.halving->rungs != halving->rungs)
        problems.add(place_of_halving(composed),
                     "sweep.halving: the runs have other numbers of steps and so other rungs; give all the same");
      sweep.halving = std::move(halving);
    }
    if (!ids.insert(loaded->id).second) continue;
    SweepRun& run = sweep.runs.emplace_back(SweepRun{loaded->id, {}, loaded->resolved_yaml});
    for (const Override& value : values) run.values.push_back(flow_text(value.value));
  }
  return sweep;
}

}  // namespace

std::optional<Sweep> load_sweep(const std::filesystem::path& file, const std::vector<std::string>& overrides, Registry& registry) {
  Problems problems;
  const std::optional<Composed> composed = compose_file(file, overrides, problems);
  problems.raise();
  if (composed->many.empty()) return std::nullopt;
  const SweepDescription description = describe_sweep(*composed, problems);
  problems.raise();
  Sweep sweep = load_runs(*composed, description, registry, problems);
  problems.raise();
  return sweep;
}

}  // namespace stiefel
