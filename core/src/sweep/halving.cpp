// Rung by rung, until one is not complete.
#include "sweep/halving.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "results/atomic_file.hpp"
#include "results/file_error.hpp"
#include "results/reader.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

/// The metric at the last evaluation up to a step; NaN of a failed run.
double value_at(const SweepFolder& folder, const SweepRun& run, const RunLook& look, Index step) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  if (look.state == SweepState::failed && look.step < step) return none;
  const fs::path path = folder.run(run) / "results.h5";
  const ResultReader reader(path);
  const std::string column = "/epochs/" + folder.sweep().halving->metric;
  if (!reader.exists(column))
    throw Error(fmt::format("sweep.halving: {} has no {}; its evaluations have {}", path.string(), column,
                            fmt::join(reader.children("/epochs"), ", ")));
  const std::vector<double> steps = reader.read("/epochs/step").values, values = reader.read(column).values;
  const auto rows = std::size_t(std::ranges::upper_bound(steps, double(step)) - steps.begin());
  return rows == 0 || rows > values.size() ? none : values[rows - 1];
}

bool complete(const RunLook& look, Index step) { return look.ended() || (look.step >= step && look.state != SweepState::running); }

void write_rung(const SweepFolder& folder, Index step, const std::vector<std::size_t>& runs, const std::vector<double>& values,
                const std::vector<std::size_t>& chosen) {
  const fs::path path = folder.path() / "rungs" / fmt::format("{}.tsv", step);
  if (fs::exists(path)) return;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) throw file_error("making", path.parent_path(), error.value());
  const DirectoryGuard one_writer(path.parent_path());
  std::string text = fmt::format("id\t{}\tgoes_on\n", folder.sweep().halving->metric);
  for (std::size_t i = 0; i < runs.size(); ++i)
    text += fmt::format("{}\t{}\t{}\n", folder.sweep().runs[runs[i]].id, values[i], std::ranges::find(chosen, i) != chosen.end() ? 1 : 0);
  replace_file(path, text);
}

}  // namespace

std::vector<std::size_t> best_of(const std::vector<double>& values, Index factor, bool highest) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::erase_if(order, [&](std::size_t i) { return std::isnan(values[i]); });
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return highest ? values[a] > values[b] : values[a] < values[b]; });
  order.resize(std::min(order.size(), std::max<std::size_t>(1, values.size() / std::size_t(factor))));
  std::ranges::sort(order);
  return order;
}

std::vector<Target> targets_of(const SweepFolder& folder, const std::vector<RunLook>& looks) {
  const Sweep& sweep = folder.sweep();
  std::vector<Target> targets(sweep.runs.size());
  if (!sweep.halving) return targets;
  for (Target& target : targets) target.left_out = true;
  std::vector<std::size_t> runs(targets.size());
  std::iota(runs.begin(), runs.end(), std::size_t(0));
  for (const Index step : sweep.halving->rungs) {
    for (const std::size_t i : runs) targets[i] = {step, false};
    if (!std::ranges::all_of(runs, [&](std::size_t i) { return complete(looks[i], step); })) return targets;
    std::vector<double> values;
    for (const std::size_t i : runs) values.push_back(value_at(folder, sweep.runs[i], looks[i], step));
    const std::vector<std::size_t> chosen = best_of(values, sweep.halving->factor, sweep.halving->highest);
    write_rung(folder, step, runs, values, chosen);
    for (const std::size_t i : runs) targets[i].left_out = true;
    std::vector<std::size_t> better;
    for (const std::size_t i : chosen) better.push_back(runs[i]);
    runs = std::move(better);
  }
  for (const std::size_t i : runs) targets[i] = {};
  return targets;
}

}  // namespace stiefel
