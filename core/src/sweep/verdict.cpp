#include "sweep/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/analysis/comparison.hpp"

namespace stiefel {
namespace {

Verdict verdict_of_value(const ReproducedRow& row, const std::map<std::string, double>& tolerances) {
  if (row.row->certainty == "remembered") return Verdict::remembered;
  const auto tolerance = tolerances.find(row.row->metric);
  if (tolerance == tolerances.end()) return Verdict::shown;
  const double gain = row.row->higher_is_better() ? row.difference : -row.difference;
  if (!(gain >= -tolerance->second * (1 + 1e-9))) return Verdict::missed;
  return gain > tolerance->second ? Verdict::better : Verdict::matched;
}

/// How much better a row is than another, over the seeds that both have finished.
std::optional<double> gain_over(const ReproducedRow& row, const ReproducedRow& other) {
  std::vector<double> gains;
  for (const Measurement& own : row.seeds)
    for (const Measurement& of_other : other.seeds)
      if (own.seed == of_other.seed && own.counts() && of_other.counts())
        gains.push_back(row.row->higher_is_better() ? own.value - of_other.value : of_other.value - own.value);
  return gains.empty() ? std::nullopt : std::optional(statistics_of(gains).mean);
}

Verdict verdict_of_curve(const ReproducedRow& row, const ReproducedRow* other) {
  const std::optional<Criterion>& judge = row.row->judge;
  if (row.row->certainty == "remembered") return Verdict::remembered;
  if (!judge) return Verdict::shown;
  if (judge->kind == Criterion::Kind::better_than) {
    const std::optional<double> gain = other ? gain_over(row, *other) : std::nullopt;
    return !gain ? Verdict::shown : *gain > 0 ? Verdict::matched : Verdict::missed;
  }
  const auto judged = [](const Measurement& seed) { return !seed.counts() || seed.fulfilled; };
  return std::ranges::all_of(row.seeds, judged) ? Verdict::matched : Verdict::missed;
}

}  // namespace

bool is_finished_with(const Measurement& seed, double share) {
  return seed.state == "finished" && std::min(seed.share, 1.) == share;
}

/// The finished runs with the largest share of the budget.
void summarise(ReproducedRow& row) {
  double most = 0;
  for (const Measurement& seed : row.seeds)
    if (seed.state == "finished") most = std::max(most, std::min(seed.share, 1.));
  std::vector<double> values;
  for (const Measurement& seed : row.seeds)
    if (is_finished_with(seed, most)) values.push_back(seed.value);
  const Statistics statistics = statistics_of(values);
  row.count = values.size();
  row.share = most;
  row.mean = statistics.mean;
  row.deviation = statistics.deviation;
  row.difference = row.mean - row.row->value;
}

void judge(ReproducedRow& row, const std::vector<ReproducedRow>& all, const std::map<std::string, double>& tolerances) {
  const auto any = [&](auto&& is) { return std::ranges::any_of(row.seeds, is); };
  if (row.row->timing()) {
    row.verdict = row.count > 0 ? Verdict::shown : Verdict::none;
  } else if (any([](const Measurement& seed) { return seed.state == "diverged" && seed.share >= 1; })) {
    row.verdict = Verdict::diverged;
  } else if (row.count == 0) {
    row.verdict =
        any([](const Measurement& seed) { return !seed.state.empty(); }) ? Verdict::unfinished : Verdict::none;
  } else if (row.share < 1) {
    row.verdict = Verdict::part;
  } else if (row.row->kind == "curve") {
    const auto other = std::ranges::find_if(all, [&](const ReproducedRow& found) {
      return row.row->judge && found.row->item_name() == row.row->item_name() && found.row->row == row.row->judge->row;
    });
    row.verdict = verdict_of_curve(row, other == all.end() ? nullptr : &*other);
  } else {
    row.verdict = verdict_of_value(row, tolerances);
  }
}

std::string state_of(const ReproducedRow& row) {
  switch (row.verdict) {
    case Verdict::none:
      return row.row->timing() ? "not measured" : row.row->needs.empty() ? "not run" : "needs " + row.row->needs;
    case Verdict::unfinished:
      for (const Measurement& seed : row.seeds)
        if (!seed.state.empty()) return fmt::format("{} at step {}", seed.state, seed.step);
      return "not run";
    case Verdict::part:
      return fmt::format("{:.3g}% of the budget", 100 * row.share);
    case Verdict::shown:
      return "measured";
    case Verdict::remembered:
      return "measured, published value uncertain";
    case Verdict::diverged:
      return "diverged";
    case Verdict::matched:
      return "matched";
    case Verdict::better:
      return "better";
    case Verdict::missed:
      return "missed";
  }
  return {};
}

std::string published_text(const ReproducedRow& reproduced) {
  const PublishedRow& row = *reproduced.row;
  if (!std::isnan(row.value))
    return fmt::format("{:.4g}{}{}", row.value, row.unit.empty() ? "" : " " + row.unit,
                       row.certainty == "remembered" ? " ?" : "");
  if (!row.judge) return "a figure";
  const Criterion& judge = *row.judge;
  const char *reached = row.higher_is_better() ? "≥" : "≤", *missed = row.higher_is_better() ? "<" : ">";
  switch (judge.kind) {
    case Criterion::Kind::reaches:
      return fmt::format("{} {:.4g} by step {}", reached, judge.value, judge.by);
    case Criterion::Kind::never:
      return fmt::format("always {} {:.4g}", missed, judge.value);
    case Criterion::Kind::better_than:
      return fmt::format("better than {}", judge.row);
    case Criterion::Kind::within:
      return fmt::format("{:.5g} to {:.5g}", judge.low, judge.high);
  }
  return {};
}

std::string measured_text(const ReproducedRow& row) {
  if (row.count == 0) return "";
  std::string text = row.count > 1 ? with_deviation(row.mean, row.deviation) : fmt::format("{:.4g}", row.mean);
  if (!row.row->unit.empty()) text += " " + row.row->unit;
  if (!row.row->judge || row.row->judge->kind != Criterion::Kind::reaches) return text;
  std::vector<std::string> steps;
  for (const Measurement& seed : row.seeds)
    if (is_finished_with(seed, row.share))
      steps.push_back(seed.reached_step < 0 ? "never" : fmt::format("step {}", seed.reached_step));
  return text + fmt::format(" ({})", fmt::join(steps, ", "));
}

std::string end_text(const ReproducedRow& row) {
  if (!is_best_of_trace(*row.row)) return "";
  std::vector<std::string> values;
  for (const Measurement& seed : row.seeds)
    if (is_finished_with(seed, row.share) && !seed.trace.y.empty())
      values.push_back(fmt::format("{:.3g}", seed.trace.y.back()));
  return fmt::format("{}", fmt::join(values, ", "));
}

}  // namespace stiefel
