// Losses, metrics and gradient norms over steps and over time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/printable.hpp"
#include "results/analysis/report/encoding.hpp"
#include "results/analysis/report/figures.hpp"
#include "results/analysis/report/spread.hpp"

namespace stiefel::report {
namespace {

constexpr const char* dotted = " Dotted: the constant predictor.";

struct Quantity {
  std::string id, title, x, y, label, units;
  bool loss, logarithmic;
};

/// Whether a run trains with the loss summed over the steps, which is no estimate of the validation loss.
bool trains_with_sums(const RunData& run) {
  const auto loss = run.configuration.find("train.loss");
  return loss != run.configuration.end() && loss->second == "sum";
}

/// Guides for the loss of the constant predictor. A run records it for its test set. It holds for the other splits too
/// if they are drawn alike, but not if the task reads them from files.
std::vector<Guide> baselines(const Study& study, const Quantity& quantity) {
  const bool of_test = quantity.id.starts_with("test_"), of_training = quantity.id.starts_with("train_");
  std::vector<Guide> guides;
  for (const Group& group : study.shown()) {
    const RunData& run = group.runs.front();
    if ((!of_test && !run.header.datasets.empty()) || (of_training && trains_with_sums(run))) continue;
    const double value = baseline_of(group);
    const auto same = [&](const Guide& guide) { return guide.y == value; };
    if (std::isfinite(value) && std::none_of(guides.begin(), guides.end(), same))
      guides.push_back({"constant predictor, " + group.label, value});
  }
  if (guides.size() == 1) guides[0].label = "constant predictor";
  return guides.size() > 3 ? std::vector<Guide>{} : guides;
}

std::vector<Figure> curves(const Study& study, const Quantity& quantity) {
  Figure figure{quantity.id, quantity.title, "", "", {"optimizer step"}, {quantity.label, quantity.units}};
  for (const Group& group : study.shown()) add_runs(figure, group, quantity.x, quantity.y);
  if (figure.series.empty()) return {};
  if (quantity.loss) figure.guides = baselines(study, quantity);
  figure.y.logarithmic = quantity.logarithmic || (quantity.loss && spans_decades(figure));
  figure.caption = spread_caption(figure);
  if (!figure.guides.empty()) figure.caption += dotted;
  figure.description =
      fmt::format("{} over optimizer steps, a line for each of: {}.", quantity.title, labels_text(study));
  return {figure};
}

/// Columns of /epochs with validation metrics, and with those test metrics that have no validation metric.
std::vector<Quantity> evaluations(const Study& study) {
  std::vector<Quantity> found;
  const std::vector<std::string> names = names_below(study, "/epochs");
  const auto has = [&](const std::string& name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  for (const std::string& name : names) {
    const bool validation = name.starts_with("valid_"), test = name.starts_with("test_");
    // Figures of their axes show these, and so the columns at each length.
    if ((name.ends_with("_by_step") && has("t")) || (name.ends_with("_by_length") && has("length"))) continue;
    if (const std::size_t at = name.rfind("_at_"); at != name.npos && has(name.substr(0, at) + "_by_length")) continue;
    if (!validation && !(test && !has("valid_" + name.substr(5)))) continue;
    const std::string label = readable(name);
    std::string units = "1";
    for (const Group& group : study.shown())
      if (const RunDataset* dataset = group.runs.front().find("/epochs/" + name)) units = dataset->units;
    found.push_back(
        {name, capitalised(label), "/epochs/step", "/epochs/" + name, label, units, name.ends_with("_loss"), false});
  }
  return found;
}

/// Adds the metric at each evaluation over the time until then, median over seeds.
void add_against_time(Figure& figure, const Group& group, const Metric& metric) {
  std::vector<Curve> times, values;
  for (const RunData& run : group.runs) {
    const std::vector<double> steps = rows_of(run, "/epochs/step");
    Curve time{steps, {}, {}, {}};
    double seconds = 0;
    for (const double since : rows_of(run, "/epochs/seconds"))
      time.median.push_back(seconds += std::isfinite(since) ? since : 0);
    times.push_back(std::move(time));
    values.push_back(curve_of(run, "/epochs/step", metric.path()));
  }
  Curve time = over_seeds(times);
  for (std::size_t i = 1; i < time.median.size(); ++i)  // a slow run may have ended earlier
    time.median[i] = std::max(time.median[i], time.median[i - 1]);
  const std::size_t first = figure.series.size();
  add_runs(figure, group.label, group.style, values);
  for (Series& series : std::span(figure.series).subspan(first))
    for (double& x : series.x) {
      const auto at = std::lower_bound(time.x.begin(), time.x.end(), x);
      x = at == time.x.end() ? std::nan("") : time.median[std::size_t(at - time.x.begin())];
    }
}

std::vector<Figure> wall_clock(const Study& study) {
  if (study.metric.is_path() || study.metric.name.empty()) return {};
  Figure figure{"wall_clock",
                capitalised(study.metric.label) + " against time",
                "",
                "Time until an evaluation, median over seeds. ",
                {"wall time", "s"},
                {study.metric.label, study.metric.units}};
  for (const Group& group : study.shown()) add_against_time(figure, group, study.metric);
  if (figure.series.empty()) return {};
  figure.caption += spread_caption(figure);
  figure.y.logarithmic = study.metric.label.ends_with("loss") && spans_decades(figure);
  double longest = 0;
  for (const Series& series : figure.series) longest = std::max(longest, *std::ranges::max_element(series.x));
  if (longest > 2 * 3600) {
    figure.x.units = "h";
    for (Series& series : figure.series)
      for (double& x : series.x) x /= 3600;
  }
  figure.description = fmt::format("{} against wall time, a line for each of: {}.", figure.y.label, labels_text(study));
  return {figure};
}

/// Extends the axes of a figure so that those of another fit.
void cover(Figure& figure, const Figure& other) {
  const auto add = [](std::vector<double>& covered, const std::vector<double>& values) {
    double least = INFINITY, most = -INFINITY;
    for (const double value : values)
      if (std::isfinite(value)) least = std::min(least, value), most = std::max(most, value);
    if (least <= most) covered.insert(covered.end(), {least, most});
  };
  for (const Series& series : other.series) {
    add(figure.x.covered, series.x);
    for (const auto* values : {&series.y, &series.low, &series.high}) add(figure.y.covered, *values);
  }
}

/// The losses of one group in one figure, and those of several groups in two figures with the same axes.
std::vector<Figure> losses(const Study& study, const Quantity& training, const Quantity& validation) {
  std::vector<Figure> found = curves(study, training);
  std::ranges::move(curves(study, validation), std::back_inserter(found));
  const auto sums = [](const Group& group) { return trains_with_sums(group.runs.front()); };
  if (found.size() < 2 || std::ranges::any_of(study.shown(), sums)) return found;
  if (study.shown().size() > 1) {
    const std::vector<Figure> alone = found;
    cover(found[0], alone[1]), cover(found[1], alone[0]);
    const bool logarithmic = spans_decades(found[0]);
    for (Figure& figure : found) figure.y.logarithmic = logarithmic;
    found[0].caption += " The axes are those of the validation loss.";
    return found;
  }
  const Group& group = study.groups.front();
  Figure figure{"loss", "Training and validation loss", "", "", {"optimizer step"}, {"loss", validation.units}};
  add_runs(figure, "training, batch mean", {0}, curves_of(group, training.x, training.y));
  add_runs(figure, "validation", {1}, curves_of(group, validation.x, validation.y));
  figure.guides = found[1].guides;
  figure.y.logarithmic = spans_decades(figure);
  figure.caption = spread_caption(figure) + (figure.guides.empty() ? "" : dotted);
  figure.description = "Training and validation loss over optimizer steps of " + group.label + ".";
  return {figure};
}

}  // namespace

bool spans_decades(const Figure& figure) {
  double least = INFINITY, most = 0;
  const auto add = [&](double value) {
    if (std::isfinite(value)) least = std::min(least, value), most = std::max(most, value);
  };
  for (const Series& series : figure.series) std::ranges::for_each(series.y, add);
  for (const Guide& guide : figure.guides) add(guide.y);
  std::ranges::for_each(figure.y.covered, add);
  return least > 0 && most > 30 * least;
}

std::vector<Figure> learning_figures(const Study& study) {
  std::vector<Figure> figures;
  const auto add = [&](std::vector<Figure> more) { std::move(more.begin(), more.end(), std::back_inserter(figures)); };
  std::vector<Quantity> evaluated = evaluations(study);
  const Quantity training{"train_loss", "Training loss", "/steps/step", "/steps/loss", "loss, batch mean", "1", true,
                          false};
  const auto validation = std::ranges::find(evaluated, "valid_loss", &Quantity::id);
  if (validation == evaluated.end()) {
    add(curves(study, training));
  } else {
    add(losses(study, training, *validation));
    evaluated.erase(validation);
  }
  for (const Quantity& quantity : evaluated) add(curves(study, quantity));
  add(wall_clock(study));
  return figures;
}

}  // namespace stiefel::report
