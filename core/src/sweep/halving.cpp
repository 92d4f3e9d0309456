#include "sweep/halving.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/atomic_file.hpp"
#include "base/file_error.hpp"
#include "record/reader.hpp"
#include "record/run_folder.hpp"
#include "results/analysis/comparison.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

/// The metric of a run at its evaluations.
struct Judged {
  std::vector<double> steps, values;
  bool highest;
};

enum class Demand { column, numbers };  // what a run must have of the metric

/// Whether there are values, and all are NaN. A run that stopped before its first evaluation has none.
bool without_numbers(const std::vector<double>& values) {
  return !values.empty() && std::ranges::all_of(values, [](double value) { return std::isnan(value); });
}

Judged judged(const SweepFolder& folder, const SweepRun& run, Demand demand) {
  const fs::path path = RunFolder{folder.run(run)}.results();
  const ResultReader reader(path);
  const auto better = [&](const std::string& metric) {
    const std::string column = "/epochs/" + metric;
    if (!reader.exists(column) || !reader.has_attribute(column, "description")) return Better::unknown;
    if (demand == Demand::numbers && without_numbers(reader.read(column).values)) return Better::unknown;
    return described_direction(reader.text_attribute(column, "description"));
  };
  const std::string& metric = folder.sweep().halving->metric;
  if (better(metric) == Better::unknown) {
    std::vector<std::string> metrics = reader.children("/epochs");
    std::erase_if(metrics, [&](const std::string& name) { return better(name) == Better::unknown; });
    throw Error(
        fmt::format("sweep.halving.metric: {} has no {}; its evaluations have {}: correct the file and continue with "
                    "`stiefel sweep run`",
                    path.string(), metric, fmt::join(metrics, ", ")));
  }
  return {reader.read("/epochs/step").values, reader.read("/epochs/" + metric).values,
          better(metric) == Better::higher};
}

/// The metric at the last evaluation up to a step; NaN if there is none.
double value_at(const Judged& run, Index step) {
  const auto rows = std::size_t(std::ranges::upper_bound(run.steps, double(step)) - run.steps.begin());
  return rows == 0 || rows > run.values.size() ? std::numeric_limits<double>::quiet_NaN() : run.values[rows - 1];
}

/// Whether what a run stores up to a step is final: it has ended, or has reached the step.
bool complete(const RunLook& look, Index step) { return look.ended() || look.step >= step; }

void write_rung(const SweepFolder& folder, Index step, const std::vector<std::size_t>& runs,
                const std::vector<double>& values, const std::vector<std::size_t>& chosen) {
  const fs::path path = folder.rung(step);
  if (::access(folder.path().c_str(), W_OK) != 0) return;  // a user who cannot write only looks
  make_folder(path.parent_path());
  std::string text = fmt::format("id\t{}\tgoes_on\n", folder.sweep().halving->metric);
  for (std::size_t i = 0; i < runs.size(); ++i)
    text += fmt::format("{}\t{}\t{}\n", folder.sweep().runs[runs[i]].id, values[i],
                        std::ranges::find(chosen, i) != chosen.end() ? 1 : 0);
  const DirectoryGuard one_writer(path.parent_path());
  replace_when_new(path, text);
}

}  // namespace

std::size_t survivor_count(std::size_t settings, Index factor) {
  return std::max<std::size_t>(1, settings / std::size_t(factor));
}

std::vector<std::vector<std::string>> settings_of(const Sweep& sweep) {
  std::vector<std::vector<std::string>> with_seeds, settings;
  for (const SweepRun& run : sweep.runs) with_seeds.push_back(run.values);
  settings = with_seeds;
  for (std::size_t k = 0; k < sweep.keys.size(); ++k)
    if (sweep.keys[k] == "seed")
      for (std::vector<std::string>& setting : settings) setting[k].clear();
  const auto is_first = [&](const std::vector<std::string>& setting) { return setting == settings.front(); };
  return std::ranges::all_of(settings, is_first) ? with_seeds : settings;
}

std::vector<std::size_t> best_of(const std::vector<double>& values, Index factor, bool highest) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::erase_if(order, [&](std::size_t i) { return std::isnan(values[i]); });
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return highest ? values[a] > values[b] : values[a] < values[b]; });
  order.resize(std::min(order.size(), survivor_count(values.size(), factor)));
  std::ranges::sort(order);
  return order;
}

std::vector<std::size_t> best_settings(const std::vector<std::vector<std::string>>& settings,
                                       const std::vector<double>& values, Index factor, bool highest) {
  std::map<std::vector<std::string>, std::vector<std::size_t>> runs_of;
  for (std::size_t i = 0; i < settings.size(); ++i) runs_of[settings[i]].push_back(i);
  std::vector<std::vector<std::size_t>> groups;  // in the order of their first runs, which breaks ties
  for (const auto& [setting, runs] : runs_of) groups.push_back(runs);
  std::ranges::sort(groups);
  std::vector<double> means;
  for (const std::vector<std::size_t>& runs : groups) {
    double sum = 0;
    for (const std::size_t i : runs) sum += values[i];
    means.push_back(sum / double(runs.size()));
  }
  std::vector<std::size_t> chosen;
  for (const std::size_t group : best_of(means, factor, highest))
    chosen.insert(chosen.end(), groups[group].begin(), groups[group].end());
  std::ranges::sort(chosen);
  return chosen;
}

std::vector<std::size_t> Rungs::survivors(Index step, const std::vector<std::size_t>& runs,
                                          const std::vector<RunLook>& looks) {
  const auto decided = decided_.find(step);
  if (decided != decided_.end() && decided->second.runs == runs) return decided->second.survivors;
  const Sweep& sweep = folder_.sweep();
  std::vector<double> values(runs.size(), std::numeric_limits<double>::quiet_NaN());
  const std::vector<std::vector<std::string>> all = settings_of(sweep);
  std::vector<std::vector<std::string>> settings;
  bool highest = false;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    settings.push_back(all[runs[i]]);
    const RunLook& look = looks[runs[i]];
    if (look.broke() && look.step < step) continue;
    const Judged run = judged(folder_, sweep.runs[runs[i]], Demand::column);
    values[i] = value_at(run, step);
    highest = run.highest;
  }
  const std::vector<std::size_t> chosen = best_settings(settings, values, sweep.halving->factor, highest);
  write_rung(folder_, step, runs, values, chosen);
  std::vector<std::size_t> better;
  for (const std::size_t i : chosen) better.push_back(runs[i]);
  decided_[step] = {runs, better};
  return better;
}

std::string Rungs::why_none_continues(const std::vector<RunLook>& looks) {
  const std::vector<Target> all = targets(looks);
  if (std::ranges::count(all, true, &Target::left_out) != std::ssize(all)) return {};
  return fmt::format(
      "no run continues: every setting has a seed without a value of {} where they are compared (NaN, or it failed "
      "earlier); see {}",
      folder_.sweep().halving->metric, (folder_.path() / "rungs").string());
}

void Rungs::require_metric(const SweepRun& run) const {
  if (folder_.sweep().halving) judged(folder_, run, Demand::numbers);
}

std::vector<Target> Rungs::targets(const std::vector<RunLook>& looks) {
  const Sweep& sweep = folder_.sweep();
  std::vector<Target> targets(sweep.runs.size());
  if (!sweep.halving) return targets;
  for (Target& target : targets) target.left_out = true;
  std::vector<std::size_t> runs(targets.size());
  std::iota(runs.begin(), runs.end(), std::size_t(0));
  for (const Index step : sweep.halving->rungs) {
    for (const std::size_t i : runs) targets[i] = {step, false};
    if (!std::ranges::all_of(runs, [&](std::size_t i) { return complete(looks[i], step); })) return targets;
    for (const std::size_t i : runs) targets[i].left_out = true;
    runs = survivors(step, runs, looks);
  }
  for (const std::size_t i : runs) targets[i] = {};
  return targets;
}

}  // namespace stiefel
