// A task's loss, metrics and baseline.
#include <fmt/format.h>
#include <optional>
#include <set>

#include "conformance/difference.hpp"
#include "conformance/task_probe.hpp"
#include "host/metric_values.hpp"

namespace stiefel::conformance {

namespace {

template <class S>
void check_loss_gradient(const TaskProbe<S>& probe, CheckReport& report, const Real& output, const Scored<S>& scored) {
  Real gradient;
  const double value = probe.loss(output, scored.targets(), &gradient);
  report.demand("loss", std::isfinite(value), "the loss is NaN or Inf");
  report.demand("loss", gradient.allFinite(),
                "loss leaves NaN, Inf or nothing in doutput: it arrives filled with NaN, so assign, do not add");
  report.require("loss", probe.loss(output, scored.targets()) == value,
                 "the loss differs when no gradient is requested");
  if constexpr (std::is_same_v<S, double>) {
    GradientComparison comparison({.absolute = 1e-10});
    for (Index c = 0; c < std::min<Index>(output.cols(), 12); ++c)
      for (Index i = 0; i < output.rows(); ++i) {
        const auto along = [&, c, i](double t) {
          Real column = output.col(c);
          column(i) += t;
          return probe.loss(column, scored.targets(c, 1));
        };
        comparison.add("doutput", {i + c * output.rows(), output.rows()}, gradient(i, c), along, 1e-2, 0);
      }
    comparison.report(report, "loss gradient");
  }
}

// Sums over columns: parts, weights, and a column of weight 0.
template <class S>
void check_weights(const TaskProbe<S>& probe, CheckReport& report, const Real& output, Scored<S>& scored) {
  const double epsilon = 64 * double(std::numeric_limits<S>::epsilon()), whole = probe.loss(output, scored.targets());
  const Index half = output.cols() / 2, rest = output.cols() - half;
  const double parts = (half ? probe.loss(output.leftCols(half), scored.targets(0, half)) : 0) +
                       probe.loss(output.rightCols(rest), scored.targets(half, rest));
  report.measure("loss is a sum", std::abs(parts - whole), epsilon * std::max(1., std::abs(whole)), {},
                 "over two parts of the columns");

  const std::vector<S> weights = scored.weights;
  for (S& w : scored.weights) w *= 2;
  report.measure("weights", std::abs(probe.loss(output, scored.targets()) - 2 * whole),
                 epsilon * std::max(1., std::abs(whole)), {}, "twice the weights, twice the loss");
  scored.weights = weights;
  scored.weights[0] = 0;
  Real other = output, gradient;
  const double masked = probe.loss(output, scored.targets(), &gradient);
  other.col(0).setConstant(3.5);
  report.require("weights", (gradient.col(0).array() == 0).all(), "a column of weight 0 has a gradient");
  report.require("weights", probe.loss(other, scored.targets()) == masked, "the loss depends on a column of weight 0");
  scored.weights = weights;
}

template <class S>
void check_metrics(const TaskProbe<S>& probe, CheckReport& report, const Real& output, const Scored<S>& scored) {
  const std::vector<Metric> metrics = probe.subject.call("metrics", [&] { return probe.task->metrics(); });
  const std::string fault = metrics_fault(metrics);
  report.demand("metrics", fault.empty(), fault);
  const Panel<S> panel(output);
  const Index count = output.cols();
  // Groups of so many columns, one after another at that distance.
  const auto sum_over = [&](Index columns, Index distance) {
    std::vector<Ratio> sum(count_of_ratios(metrics, scored.sequence_count));
    for (Index c = 0; c < count; c += distance) {
      const std::vector<Ratio> more = probe.measure(panel, scored, c, std::min(columns, count - c), sum.size());
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i].sum += more[i].sum, sum[i].weight += more[i].weight;
    }
    return sum;
  };
  const Index half = std::max<Index>(1, count / 2);
  const std::vector<Ratio> whole = sum_over(count, count), parts = sum_over(half, half);
  Comparison comparison;
  std::vector<std::string> names;  // of each part
  std::size_t next = 0;
  for (const Metric& metric : metrics) {
    double weight = 0;
    for (std::size_t part = 0; part < count_of_ratios(metric, scored.sequence_count); ++part, ++next) {
      const auto& [sum, of_part] = whole[next];
      report.demand("metrics", std::isfinite(sum) && std::isfinite(of_part),
                    fmt::format("measure() gives `{}` the sum {} and the weight {}", metric.name, sum, of_part));
      weight += of_part;
      names.push_back(metric.name);
      comparison.add(metric.name + " (sum)", Index(next), parts[next].sum, sum);
      comparison.add(metric.name + " (weight)", Index(next), parts[next].weight, of_part);
    }
    report.require("metrics", weight > 0 || scored.weight() == 0,
                   fmt::format("measure() gives `{}` no weight", metric.name));
  }
  report.measure("metrics", comparison, 1e-5 * std::max(1., comparison.scale()), "two parts add up to the whole",
                 "the columns do not add up: measure() must add to sum and weight with +=");

  Scored<S> doubled = scored;
  for (S& w : doubled.weights) w *= 2;
  const std::vector<Ratio> twice = probe.measure(panel, doubled, 0, count, whole.size());
  Comparison weights;
  for (std::size_t i = 0; i < whole.size(); ++i)
    if (whole[i].weight > 0)
      weights.add(names[i], Index(i), twice[i].sum / twice[i].weight, whole[i].sum / whole[i].weight);
  report.measure("metrics", weights, 1e-5 * std::max(1., weights.scale()), "twice the weights, the same mean",
                 "measure() must multiply both sum and weight by the weight of the column, or neither");

  // Every other column is masked and holds something else; what is left is measured column by column.
  Scored<S> masked = scored;
  Real other = output;
  for (Index c = 1; c < count; c += 2) {
    masked.weights[std::size_t(c)] = 0;
    other.col(c).setConstant(3.5);
  }
  const std::vector<Ratio> left = sum_over(1, 2);
  const std::vector<Ratio> got = probe.measure(Panel<S>(other), masked, 0, count, whole.size());
  std::ranges::fill(masked.weights, S(0));
  const std::vector<Ratio> nothing = probe.measure(panel, masked, 0, count, whole.size());
  Comparison masks;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    masks.add(names[i] + " (sum)", Index(i), got[i].sum, left[i].sum);
    masks.add(names[i] + " (weight)", Index(i), got[i].weight, left[i].weight);
    masks.add(names[i] + " (sum, all masked)", Index(i), nothing[i].sum, 0);
    masks.add(names[i] + " (weight, all masked)", Index(i), nothing[i].weight, 0);
  }
  report.measure("metrics", masks, 1e-5 * std::max(1., masks.scale()), "columns of weight 0 do not count",
                 "measure() must pass over columns whose weight is 0, as the loss does");
}

/// Outputs of a much lower loss, which its gradient leads to, should not have worse metrics.
template <class S>
void remark_on_directions(const TaskProbe<S>& probe, CheckReport& report, const Real& output, const Scored<S>& scored) {
  constexpr int most_steps = 200;
  const std::vector<Metric> metrics = probe.subject.call("metrics", [&] { return probe.task->metrics(); });
  const auto values = [&](const Real& at) {
    const std::vector<Ratio> measured =
        probe.measure(Panel<S>(at), scored, 0, at.cols(), count_of_ratios(metrics, scored.sequence_count));
    return metric_values(metrics, sums_of_sequences(metrics, measured, scored.sequence_count));
  };
  Real better = output, gradient, next;
  const double before = probe.loss(better, scored.targets(), &gradient);
  double reached = before, rate = 1;
  for (int step = 0; step < most_steps; ++step) {
    const Real tried = better - rate * gradient;
    const double loss = probe.loss(tried, scored.targets(), &next);
    if (loss < reached)
      better = tried, gradient = next, reached = loss, rate *= 2;
    else
      rate /= 4;
  }
  if (!(reached < 0.1 * before)) return;
  const std::vector<double> worse = values(output), good = values(better);
  for (std::size_t i = 0; i < metrics.size(); ++i)
    if (metrics[i].higher_is_better ? good[i] < worse[i] : good[i] > worse[i])
      report.remark("direction",
                    fmt::format("`{}` is {:.3g} for outputs of the loss {:.3g} and {:.3g} for those of {:.3g}: is "
                                "its higher_is_better, {}, right?",
                                metrics[i].name, worse[i], before, good[i], reached, metrics[i].higher_is_better));
}

template <class S>
void check_task_reads(const TaskProbe<S>& probe, CheckReport& report, Batch<S>& batch, const Real& output) {
  const std::size_t parts =
      count_of_ratios(probe.subject.call("metrics", [&] { return probe.task->metrics(); }), batch.sequences());
  const auto results = [&] {
    const Scored<S> scored(batch, probe.shape);
    Real gradient;
    std::vector<double> all = {probe.loss(output, scored.targets(), &gradient)};
    all.insert(all.end(), gradient.data(), gradient.data() + gradient.size());
    for (const Ratio& r : probe.measure(Panel<S>(output), scored, 0, output.cols(), parts))
      all.insert(all.end(), {r.sum, r.weight});
    return all;
  };
  const std::vector<double> here = results();
  const OtherGuards others;
  report.demand("memory", same_numbers(results(), here), "loss or measure reads outside the outputs or the targets");
}

}  // namespace

template <class S> void check_loss(const TaskProbe<S>& probe, CheckReport& report, std::uint64_t seed) {
  Rng rng(seed, "loss");
  Batch<S> batch = probe.fill(Split::train, 0);
  Scored<S> scored(batch, probe.shape);
  const Real output = random_matrix(rng, probe.shape.output_size, scored.count());
  check_loss_gradient(probe, report, output, scored);
  check_task_reads(probe, report, batch, output);
  for (Index c = 0; c < scored.count(); ++c)  // what is masked may have no valid label
    if (S& weight = scored.weights[std::size_t(c)]; weight != 0) weight = S(0.25 * double(1 + c % 4));
  check_loss_gradient(probe, report, output, scored);
  check_weights(probe, report, output, scored);
  check_metrics(probe, report, output, scored);
  remark_on_directions(probe, report, output, scored);
}

namespace {

/// What the constant predictor reaches on a split: the mean loss of its batches, and the error of that mean.
struct Reached {
  double mean, error;
  std::size_t batches;
};
std::optional<Reached> trivial_loss(const TaskProbe<double>& probe, Split split) {
  std::vector<double> means;
  double total = 0;
  const Index last = split == Split::train ? 200 : std::min<Index>(200, probe.batches(split));
  for (Index index = 0; index < last && total < 2e6; ++index) {
    Batch<double> batch = probe.fill(split, index);
    const Scored<double> scored(batch, probe.shape);
    Real output(probe.shape.output_size, scored.count());
    std::vector<double> column(std::size_t(probe.shape.output_size));
    for (Index c = 0; c < scored.count(); ++c) {
      probe.trivial(scored.places[std::size_t(c)].first, column);
      output.col(c) = as_vector(std::span<const double>(column));
    }
    const double weight = scored.weight();
    if (weight == 0) continue;
    means.push_back(probe.loss(output, scored.targets()) / weight);
    total += double(output.size());
  }
  if (means.empty()) return std::nullopt;
  const auto values = as_vector(std::span<const double>(means));
  const double mean = values.mean();
  return Reached{mean, std::sqrt((values.array() - mean).square().sum()) / double(means.size()), means.size()};
}

}  // namespace

// The baseline of a data set may be that of one split, and splits differ.
void check_baseline(const TaskProbe<double>& probe, CheckReport& report) {
  const double baseline = probe.subject.call("baseline", [&] { return probe.task->baseline(); });
  if (std::isnan(baseline)) return report.skip("baseline", "unknown");
  std::string tried;
  for (const Split split : {Split::train, Split::test, Split::validation}) {
    const std::optional<Reached> reached = trivial_loss(probe, split);
    if (!reached) continue;
    const double away = std::abs(reached->mean - baseline), allowed = 5 * reached->error + 0.02 * std::abs(baseline);
    tried += fmt::format("{}{:.5g} ± {:.1g} in {} batches of {}", tried.empty() ? "" : ", ", reached->mean,
                         reached->error, reached->batches, name_of(split));
    if (away <= allowed) {
      report.measure("baseline", away, allowed, {},
                     fmt::format("baseline() {:.5g}, the constant predictor reaches {}", baseline, tried));
      return;
    }
  }
  report.require("baseline", !tried.empty(), "no batch has an output with a weight above 0");
  report.require("baseline", false, fmt::format("baseline() is {:.5g}, but trivial() reaches {}", baseline, tried));
}

template void check_loss<float>(const TaskProbe<float>&, CheckReport&, std::uint64_t);
template void check_loss<double>(const TaskProbe<double>&, CheckReport&, std::uint64_t);

}  // namespace stiefel::conformance
