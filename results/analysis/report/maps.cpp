// What the recurrent maps are: singular values, eigenvalues, and how far they are from being orthogonal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/analysis/report/figures.hpp"
#include "results/analysis/report/scale.hpp"
#include "results/analysis/report/spread.hpp"

namespace stiefel::report {
namespace {

std::string of_map(const std::string& map) {
  if (map == "recurrent") return "the recurrent map";
  if (!map.starts_with("layers_")) return "the recurrent map of " + map;
  const std::size_t end = map.find('_', 7);
  return of_map(map.substr(end + 1)) + " of layer " + map.substr(7, end - 7);
}

/// Like figure 3 of Vorontsov et al. 2017.
std::vector<Figure> singular_values(const Study& study, const std::string& map) {
  const std::string base = "/spectrum/" + map + "/";
  Figure figure{"singular_values_" + map,
                "Singular values of " + of_map(map),
                "",
                "Line: mean of the singular values; band: ± one standard deviation; dotted: smallest and largest. "
                "Medians over seeds, up to where half of the runs have ended.",
                {"optimizer step"},
                {"singular value"}};
  figure.y.least_span = 0.02;
  for (const Group& group : study.shown()) {
    const auto quantity = [&](const char* name) { return over_seeds(group, base + "snapshot", base + name); };
    Curve mean = quantity("singular_mean");
    const Curve deviation = quantity("singular_std");
    if (!mean.x.empty() && deviation.median.size() == mean.x.size()) {
      mean.low = mean.high = mean.median;
      for (std::size_t i = 0; i < mean.x.size(); ++i)
        mean.low[i] -= deviation.median[i], mean.high[i] += deviation.median[i];
      figure.series.push_back(series_of(group.label, group.style, std::move(mean)));
      for (const char* bound : {"min", "max"}) {
        Curve curve = quantity(bound == std::string("min") ? "singular_min" : "singular_max");
        curve.low.clear(), curve.high.clear();
        figure.series.push_back(series_of(group.label + ", " + bound, group.style, std::move(curve)));
        figure.series.back().form = Form::thin_line;
        figure.series.back().in_legend = false;
      }
    }
  }
  if (figure.series.empty()) return {};
  figure.description =
      fmt::format("Mean, standard deviation, smallest and largest singular value of {} over optimizer steps, for: {}.",
                  of_map(map), labels_text(study));
  return {figure};
}

Series eigenvalues(const RunData& run, const std::string& map, bool last, const Style& style) {
  const RunDataset& dataset = *run.find("/spectrum/" + map + "/eigenvalues");
  const std::vector<double> snapshots = rows_of(run, "/spectrum/" + map + "/snapshot");
  const std::size_t width = dataset.values.size() / dataset.shape[0];
  const double* row = dataset.values.data() + (last ? dataset.values.size() - width : 0);
  Series series{fmt::format("{}, step {}", map, number_text(last ? snapshots.back() : snapshots.front(), 8)), style};
  series.form = last ? Form::points : Form::open_points;
  for (std::size_t i = 0; i + 1 < width; i += 2) series.x.push_back(row[i]), series.y.push_back(row[i + 1]);
  return series;
}

std::vector<std::string> maps_with_eigenvalues(const RunData& run) {
  std::vector<std::string> maps;
  const std::string before = "/spectrum/", after = "/eigenvalues";
  for (const RunDataset& dataset : run.datasets)
    if (dataset.path.starts_with(before) && dataset.path.ends_with(after) && dataset.shape.size() > 1 &&
        !dataset.values.empty() &&
        !rows_of(run, dataset.path.substr(0, dataset.path.size() - after.size()) + "/snapshot").empty())
      maps.push_back(dataset.path.substr(before.size(), dataset.path.size() - before.size() - after.size()));
  return maps;
}

Figure unit_circle(const Group& group, const RunData& run, std::size_t number) {
  Figure figure{
      fmt::format("eigenvalues_{}", number), "Eigenvalues: " + group.label, "", "", {"real part"}, {"imaginary part"}};
  figure.unit_circle = true;
  const std::vector<std::string> maps = maps_with_eigenvalues(run);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const Style style{maps.size() == 1 ? group.style.hue : int(i)};
    figure.series.push_back(eigenvalues(run, maps[i], false, style));
    if (run.find("/spectrum/" + maps[i] + "/eigenvalues")->shape[0] > 1)
      figure.series.push_back(eigenvalues(run, maps[i], true, style));
  }
  double reach = 1.08;
  for (const Series& series : figure.series)
    for (std::size_t i = 0; i < series.x.size(); ++i)
      if (const double modulus = std::hypot(series.x[i], series.y[i]); std::isfinite(modulus))
        reach = std::max(reach, 1.05 * modulus);
  figure.x.range = figure.y.range = {-reach, reach};
  figure.caption = "Open: the first snapshot; filled: the last. The circle has radius 1. " + seed_caption(group, run);
  figure.description = fmt::format(
      "Eigenvalues in the complex plane next to the unit circle, first and last snapshot, of {}.", group.label);
  return figure;
}

/// Like figure 4 of Helfrich et al. 2018.
std::vector<Figure> defect(const Study& study, const std::string& map) {
  const std::string base = "/orthogonality/" + map + "/";
  Figure figure{"defect_" + map,
                "Distance of " + of_map(map) + " from orthogonality",
                "",
                "",
                {"optimizer step"},
                {"‖WᴴW − I‖, Frobenius norm"}};
  figure.y.logarithmic = true;
  for (const Group& group : study.shown()) add_runs(figure, group, base + "snapshot", base + "defect_fro");
  if (figure.series.empty()) return {};
  figure.caption = spread_caption(figure);
  figure.description = fmt::format("Frobenius norm of WᴴW − I of {} over optimizer steps, logarithmic, for: {}.",
                                   of_map(map), labels_text(study));
  return {figure};
}

}  // namespace

std::vector<Figure> map_figures(const Study& study) {
  std::vector<Figure> figures;
  const auto add = [&](std::vector<Figure> more) { std::move(more.begin(), more.end(), std::back_inserter(figures)); };
  for (const std::string& map : names_below(study, "/spectrum")) add(singular_values(study, map));
  for (const std::string& map : names_below(study, "/orthogonality")) add(defect(study, map));
  const auto runs = runs_of_one_seed(study, [](const RunData& run) { return maps_with_eigenvalues(run).size(); });
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (runs[i]) figures.push_back(unit_circle(study.shown()[i], *runs[i], i + 1));
  return figures;
}

}  // namespace stiefel::report
