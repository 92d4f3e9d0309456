#include "sweep/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/analysis/comparison.hpp"

namespace stiefel {
namespace {

constexpr Index never_reached = std::numeric_limits<Index>::max();

Verdict verdict_of_value(const ReproducedRow& row, const std::map<std::string, double>& tolerances) {
  if (!row.row->printed()) return Verdict::remembered;
  const auto tolerance = tolerances.find(row.row->metric);
  if (tolerance == tolerances.end()) return Verdict::shown;
  const double gain = row.row->higher_is_better() ? row.difference : -row.difference,
               allowed = tolerance->second * (1 + 1e-9);
  return !(gain >= -allowed) ? Verdict::missed : gain > allowed ? Verdict::better : Verdict::matched;
}

/// The first step of the trace at which a metric is `value` or better, or never_reached.
Index first_reached(const Measurement& seed, double value, bool higher_is_better) {
  const double digits = 5e-6 * std::abs(value);  // a trace has six digits
  for (std::size_t i = 0; i < seed.trace.y.size(); ++i)
    if (higher_is_better ? seed.trace.y[i] >= value - digits : seed.trace.y[i] <= value + digits)
      return seed.trace.x[i];
  return never_reached;
}

Index first_reached(const ReproducedRow& row, const Measurement& seed) {
  return first_reached(seed, row.row->judge->value, row.row->higher_is_better());
}

/// Whether the metric becomes better than the criterion's value, and is worse at a later point.
bool falls_back(const ReproducedRow& row, const Measurement& seed) {
  const double value = row.row->judge->value;
  bool was_better = false;
  for (const double y : seed.trace.y) {
    const bool better = row.row->higher_is_better() ? y > value : y < value;
    if (was_better && !better) return true;
    was_better |= better;
  }
  return false;
}

/// Whether a seed fulfills a criterion that needs no other row.
bool fulfils(const ReproducedRow& row, const Measurement& seed) {
  const Criterion& judge = *row.row->judge;
  using enum Criterion::Kind;
  if (judge.kind == reaches) return first_reached(row, seed) <= judge.by;
  if (judge.kind == never)  // by the best value, which a thinned trace may lack
    return row.row->higher_is_better() ? seed.value < judge.value : seed.value > judge.value;
  if (judge.kind == Criterion::Kind::returns) return falls_back(row, seed);
  return seed.value >= judge.low && seed.value <= judge.high;
}

/// The measurements of seeds that both rows have finished.
std::vector<std::pair<const Measurement*, const Measurement*>> pairs(const ReproducedRow& row,
                                                                     const ReproducedRow& other) {
  std::vector<std::pair<const Measurement*, const Measurement*>> common;
  for (const Measurement& own : row.seeds)
    for (const Measurement& of_other : other.seeds)
      if (own.seed == of_other.seed && own.counts() && of_other.counts()) common.emplace_back(&own, &of_other);
  return common;
}

/// Whether a row is better than another in the mean over common seeds, or faster with each; nothing if there are none.
std::optional<bool> precedes(const ReproducedRow& row, const ReproducedRow& other) {
  const auto common = pairs(row, other);
  if (common.empty()) return std::nullopt;
  if (row.row->judge->kind == Criterion::Kind::faster_than)
    return std::ranges::all_of(
        common, [&](const auto& pair) { return first_reached(row, *pair.first) < first_reached(row, *pair.second); });
  std::vector<double> gains;
  for (const auto& [own, of_other] : common)
    gains.push_back(row.row->higher_is_better() ? own->value - of_other->value : of_other->value - own->value);
  return statistics_of(gains).mean > 0;
}

/// Missed if the row is not better, or not faster, than one of the others; matched if it is so for all; else shown.
Verdict verdict_of_order(const ReproducedRow& row, const std::vector<ReproducedRow>& all) {
  bool whole = true;
  for (const std::string& name : row.row->judge->rows)
    for (const ReproducedRow& other : all) {
      if (other.row->item_name() != row.row->item_name() || other.row->row != name) continue;
      const std::optional<bool> holds = precedes(row, other);
      if (holds && !*holds) return Verdict::missed;
      whole = whole && holds;
    }
  return whole ? Verdict::matched : Verdict::shown;
}

Verdict verdict_of_curve(const ReproducedRow& row, const std::vector<ReproducedRow>& all) {
  const std::optional<Criterion>& judge = row.row->judge;
  if (!row.row->printed()) return Verdict::remembered;
  if (!judge) return Verdict::shown;
  if (!judge->rows.empty()) return verdict_of_order(row, all);
  const auto judged = [&](const Measurement& seed) { return !seed.counts() || fulfils(row, seed); };
  return std::ranges::all_of(row.seeds, judged) ? Verdict::matched : Verdict::missed;
}

}  // namespace

bool is_finished_with(const Measurement& seed, double share) {
  return seed.state == "finished" && std::min(seed.share, 1.) == share;
}

/// Summarizes the finished runs with the largest share of the budget.
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
  } else if (std::isnan(row.mean)) {
    row.verdict = Verdict::diverged;  // it finished, but without a number
  } else if (row.row->kind == "curve") {
    row.verdict = verdict_of_curve(row, all);
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
      return row.row->certainty == "quoted" ? "measured, judged where it is printed"
                                            : "measured, published value uncertain";
    case Verdict::diverged:
      return "diverged";
    case Verdict::matched:
      return "matched";
    case Verdict::better:
    case Verdict::missed:
      return row.row->kind == "curve" ? "missed" : row.difference > 0 ? "deviates upwards" : "deviates downwards";
  }
  return {};
}

std::string published_text(const ReproducedRow& reproduced) {
  const PublishedRow& row = *reproduced.row;
  if (!std::isnan(row.value))
    return fmt::format("{:.4g}{}{}", row.value, row.unit.empty() ? "" : " " + row.unit,
                       row.certainty == "remembered" ? " ?"
                       : row.certainty == "quoted"   ? " (quoted)"
                                                     : "");
  if (!row.judge) return "a figure";
  const Criterion& judge = *row.judge;
  const char *reached = row.higher_is_better() ? "≥" : "≤", *missed = row.higher_is_better() ? "<" : ">";
  const std::string mark = judge.after_runs ? " †" : "", others = judge.rows.size() > 3
                                                                      ? fmt::format("{} other rows", judge.rows.size())
                                                                      : fmt::format("{}", fmt::join(judge.rows, "; "));
  switch (judge.kind) {
    case Criterion::Kind::reaches:
      return fmt::format("{} {:.4g} by step {}{}", reached, judge.value, judge.by, mark);
    case Criterion::Kind::never:
      return fmt::format("always {} {:.4g}{}", missed, judge.value, mark);
    case Criterion::Kind::returns:
      return fmt::format("better than {:.4g}, then worse{}", judge.value, mark);
    case Criterion::Kind::better_than:
      return fmt::format("better than {}{}", others, mark);
    case Criterion::Kind::faster_than:
      return fmt::format("{} {:.4g} earlier than {}{}", reached, judge.value, others, mark);
    case Criterion::Kind::within:
      return fmt::format("{:.5g} to {:.5g}{}", judge.low, judge.high, mark);
  }
  return {};
}

std::string measured_text(const ReproducedRow& row) {
  if (row.count == 0) return "";
  std::string text = row.count > 1 ? with_deviation(row.mean, row.deviation) : fmt::format("{:.4g}", row.mean);
  if (!row.row->unit.empty()) text += " " + row.row->unit;
  using enum Criterion::Kind;
  if (!row.row->judge || (row.row->judge->kind != reaches && row.row->judge->kind != faster_than)) return text;
  std::vector<std::string> steps;
  for (const Measurement& seed : row.seeds)
    if (is_finished_with(seed, row.share))
      steps.push_back(first_reached(row, seed) == never_reached ? "never"
                                                                : fmt::format("step {}", first_reached(row, seed)));
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
