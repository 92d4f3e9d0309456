// Time of the phases of a training step.
#include <fmt/format.h>

#include <boost/algorithm/string.hpp>
#include <cmath>

#include "results/analysis/report/figures.hpp"
#include "results/analysis/report/spread.hpp"

namespace stiefel::report {
namespace {

/// Milliseconds per step in a phase, median over seeds; NaN if no run has them.
double milliseconds(const Group& group, std::size_t phase, std::size_t phases) {
  std::vector<double> of_runs;
  for (const RunData& run : group.runs) {
    const RunDataset* seconds = run.find("/timing/seconds");
    const std::vector<double> steps = rows_of(run, "/timing/step");
    if (!seconds || seconds->shape.size() != 2 || seconds->shape[1] != phases || steps.empty() || !(steps.back() > 0))
      continue;
    double sum = 0;
    for (std::size_t row = 0; row < seconds->shape[0]; ++row) sum += seconds->values[row * phases + phase];
    of_runs.push_back(1000 * sum / steps.back());
  }
  return quantile(of_runs, 0.5);
}

std::vector<std::string> phases_of(const Study& study) {
  for (const Group& group : study.shown())
    for (const RunData& run : group.runs)
      if (const RunDataset* phases = run.find("/timing/phase"); phases && phases->is_text) return phases->texts;
  return {};
}

}  // namespace

std::vector<Figure> timing_figures(const Study& study) {
  const std::vector<std::string> phases = phases_of(study);
  Figure figure{
      "timing",
      "Wall time of a training step by phase",
      fmt::format("Bars with the milliseconds of each phase of a training step, for: {}.", labels_text(study)),
      "All activity divided by the number of steps, including evaluation and recording; medians over seeds.",
      {"wall time per step", "ms"},
      {"", "1"}};
  for (std::size_t phase = 0; phase < phases.size(); ++phase)
    figure.series.push_back(
        {boost::replace_all_copy(phases[phase], "_", " "), {int(phase)}, Form::bars, {}, {}, {}, {}});
  bool some = false;
  for (const Group& group : study.shown()) {
    const double row = double(figure.y.names.size());
    figure.y.names.push_back(group.label);
    double from = 0;
    for (std::size_t phase = 0; phase < phases.size(); ++phase) {
      const double taken = milliseconds(group, phase, phases.size());
      if (!std::isfinite(taken)) continue;
      Series& series = figure.series[phase];
      series.x.push_back(taken), series.y.push_back(row);
      series.low.push_back(from), series.high.push_back(from += taken);
      some = true;
    }
  }
  return some ? std::vector{figure} : std::vector<Figure>{};
}

}  // namespace stiefel::report
