// How gradients travel through time: norms of dL/dh_t over steps and time steps.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "results/analysis/report/figures.hpp"
#include "results/analysis/report/spread.hpp"
#include "results/analysis/report/thin.hpp"

namespace stiefel::report {
namespace {

constexpr const char* norm = "‖∂L/∂hₜ‖";
constexpr std::size_t profile_points = 400;

/// Values of a dataset with a row for each snapshot and a column for each time step.
struct Norms {
  const RunDataset* dataset = nullptr;
  std::vector<double> snapshots;
  std::size_t rows = 0, steps = 0;

  Norms(const RunData& run, const std::string& place, const std::string& name)
      : dataset(run.find(place + "/" + name)), snapshots(rows_of(run, place + "/snapshot")) {
    if (!dataset || dataset->shape.size() != 2 || dataset->shape[0] != snapshots.size()) return;
    rows = dataset->shape[0], steps = dataset->shape[1];
  }
  double at(std::size_t row, std::size_t step) const { return dataset->values[row * steps + step]; }
};

/// " of layer 1"; empty for networks with one layer.
std::string of_layer(const std::string& place) {
  const std::size_t number = place.rfind('_');
  return number == place.npos ? "" : " of layer " + place.substr(number + 1);
}
/// "_layers_1", for ids of figures; empty for networks with one layer.
std::string layer_suffix(const std::string& place) {
  const std::size_t number = place.rfind('/');
  return number == 0 ? "" : "_" + place.substr(number + 1);
}

/// Like figure 2 of Vorontsov et al. 2017.
Figure heat_map(const Group& group, const RunData& run, const std::string& place, std::size_t number) {
  const Norms norms(run, place, "hidden_grad_norm");
  const RunDataset& map = *run.find(place + map_suffix);
  Figure figure{
      fmt::format("gradient_map{}_{}", layer_suffix(place), number),
      fmt::format("Gradient norm{}: {}", of_layer(place), group.label),
      fmt::format("Norm of the loss gradient with respect to the hidden state, as colors over optimizer "
                  "steps and time steps{}, of {}.",
                  of_layer(place), group.label),
      fmt::format("Colors: {} on a logarithmic scale, from dark (small) to light. {}", norm, seed_caption(group, run)),
      {"optimizer step"},
      {"time step t"}};
  figure.x.range = {norms.snapshots.front(), norms.snapshots.back()};
  figure.y.range = {0, double(norms.steps)};
  const std::vector<double>&columns = run.column(map.path + "/snapshot"), &rows = run.column(map.path + "/t");
  figure.heat = HeatMap{columns, rows, map.values, {norm, map.units, true}};
  if (columns.size() == heat_columns || norms.steps > heat_rows)
    figure.caption += fmt::format(" Drawn: {} × {} values, the nearest of each cell.", columns.size(), rows.size());
  return figure;
}

/// Gives all maps the same color scale, so that they can be compared.
void give_one_scale(std::vector<Figure>& maps) {
  double least = INFINITY, most = 0;
  for (const Figure& map : maps)
    for (const double value : map.heat->values)
      if (std::isfinite(value) && value > 0) least = std::min(least, value), most = std::max(most, value);
  if (maps.size() < 2 || least > most) return;
  for (Figure& map : maps) {
    map.heat->scale.range = {least, most};
    map.caption += " All groups share the scale.";
  }
}

Curve profile(const RunData& run, const std::string& place, const std::string& name, bool last) {
  const Norms norms(run, place, name);
  Curve curve;
  if (norms.rows == 0) return curve;
  const std::vector<double> t = rows_of(run, place + "/t");
  const std::size_t points = std::min(norms.steps, profile_points);
  for (std::size_t i = 0; i < points; ++i) {
    const std::size_t step = points == 1 ? 0 : i * (norms.steps - 1) / (points - 1);
    curve.x.push_back(step < t.size() ? t[step] : double(step));
    curve.median.push_back(norms.at(last ? norms.rows - 1 : 0, step));
  }
  return curve;
}

/// The runs in a figure of last snapshots: of the finished runs, or else of all, those that end where most of them do.
std::vector<const RunData*> ending_together(const Group& group, const std::string& place) {
  std::map<double, std::vector<const RunData*>> finished, all;
  for (const RunData& run : group.runs)
    if (const std::vector<double> snapshots = rows_of(run, place + "/snapshot"); !snapshots.empty()) {
      all[snapshots.back()].push_back(&run);
      if (run.status.state == "finished") finished[snapshots.back()].push_back(&run);
    }
  std::vector<const RunData*> most;
  for (const auto& [step, runs] : finished.empty() ? all : finished)
    if (runs.size() >= most.size()) most = runs;
  return most;
}

/// Like figure 5 of Helfrich et al. 2018.
std::vector<Figure> profiles(const Study& study, const std::string& place, const std::string& name, bool last) {
  const std::string of_loss = name == "last_step_grad_norm" ? ", loss of the last step alone" : "";
  Figure figure{fmt::format("{}{}_{}", name, layer_suffix(place), last ? "last" : "first"),
                fmt::format("Gradient norm{} over the sequence, {} snapshot{}", of_layer(place),
                            last ? "last" : "first", of_loss),
                "",
                "",
                {"time step t"},
                {norm}};
  figure.y.logarithmic = true;
  std::set<double> steps;
  bool all = true;
  for (const Group& group : study.shown()) {
    const std::vector<const RunData*> shown = ending_together(group, place);
    std::vector<Curve> curves;
    for (const RunData& run : group.runs) {
      const bool left_out = last && std::ranges::find(shown, &run) == shown.end();
      curves.push_back(left_out ? Curve() : profile(run, place, name, last));
      if (left_out && run.find(place + "/snapshot")) all = false;
    }
    if (!shown.empty()) steps.insert(rows_of(*shown.front(), place + "/snapshot").back());
    add_runs(figure, group.label, group.style, curves);
  }
  if (figure.series.empty()) return {};
  figure.caption = spread_caption(figure, false);
  if (last)
    figure.caption += fmt::format(
        " Snapshots of step {}{}.", fmt::join(steps, ", "),
        all ? "" : "; runs that end at other steps, and unfinished runs of groups with finished ones, are left out");
  figure.description = fmt::format(
      "Norm of the gradient with respect to the hidden state at each time step, {} snapshot{}, logarithmic, for: {}.",
      last ? "last" : "first", of_loss, labels_text(study));
  return {figure};
}

bool same_numbers(const std::vector<Figure>& a, const std::vector<Figure>& b) {
  const auto same = [](const Series& x, const Series& y) { return x.x == y.x && x.y == y.y; };
  return a.size() == b.size() && (a.empty() || std::equal(a[0].series.begin(), a[0].series.end(), b[0].series.begin(),
                                                          b[0].series.end(), same));
}

std::vector<Figure> all_parameters(const Study& study) {
  Figure figure{"grad_norm",        "Gradient norm of all parameters",        "", "",
                {"optimizer step"}, {"norm of the gradient, before clipping"}};
  figure.y.logarithmic = true;
  for (const Group& group : study.shown()) add_runs(figure, group, "/steps/step", "/steps/grad_norm");
  if (figure.series.empty()) return {};
  figure.caption = spread_caption(figure);
  figure.description =
      "Norm of the gradient of all parameters over optimizer steps, logarithmic, for: " + labels_text(study) + ".";
  return {figure};
}

}  // namespace

std::vector<Figure> gradient_figures(const Study& study) {
  std::vector<Figure> figures;
  const auto add = [&](std::vector<Figure> more) { std::move(more.begin(), more.end(), std::back_inserter(figures)); };
  add(all_parameters(study));
  std::vector<std::string> places;
  for (const Group& group : study.shown())
    for (const RunData& run : group.runs)
      for (std::string& place : gradient_groups(run))
        if (std::ranges::find(places, place) == places.end()) places.push_back(std::move(place));
  for (const std::string& place : places) {
    std::vector<Figure> first;
    for (const bool last : {false, true}) {
      const std::vector<Figure> whole = profiles(study, place, "hidden_grad_norm", last),
                                of_last_step = profiles(study, place, "last_step_grad_norm", last);
      if (last && !whole.empty() && same_numbers(first, whole)) break;  // there is only one snapshot
      add(first = whole);
      if (!same_numbers(whole, of_last_step)) add(of_last_step);  // unless that is the whole loss
    }
  }
  std::vector<Figure> maps;
  for (const std::string& place : places) {
    const auto runs =
        runs_of_one_seed(study, [&](const RunData& run) { return run.column(place + map_suffix).size(); });
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (runs[i]) maps.push_back(heat_map(study.shown()[i], *runs[i], place, i + 1));
  }
  give_one_scale(maps);
  add(std::move(maps));
  return figures;
}

}  // namespace stiefel::report
