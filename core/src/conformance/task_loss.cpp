// A task's loss, metrics and baseline.
#include <fmt/format.h>
#include <set>

#include "conformance/directions.hpp"
#include "conformance/task_probe.hpp"

namespace stiefel::conformance {

namespace {

template <class S>
void check_loss_gradient(const TaskProbe<S>& probe, CheckReport& report, const Real& output, const Scored<S>& scored) {
  Real gradient;
  const double value = probe.loss(output, scored.targets(), &gradient);
  report.require("loss", std::isfinite(value) && gradient.allFinite(), "the loss or its gradient has NaN or Inf");
  report.require("loss", probe.loss(output, scored.targets()) == value,
                 "the loss differs when no gradient is requested");
  if constexpr (std::is_same_v<S, double>) {
    Comparison comparison;
    for (Index c = 0; c < std::min<Index>(output.cols(), 12); ++c) {
      const Targets<double> one = scored.targets(c, 1);
      for (Index i = 0; i < output.rows(); ++i) {
        const auto along = [&](double t) {
          Real column = output.col(c);
          column(i) += t;
          return probe.loss(column, one);
        };
        comparison.add("doutput", i + c * output.rows(), gradient(i, c), derivative(along, 1e-2));
      }
    }
    report.measure("loss gradient", comparison, 1e-7 * std::max(comparison.scale(), 1e-3));
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
  report.require("metrics", fault.empty(), fault);
  const Panel<S> panel(output);
  const auto measure = [&](Index first, Index count, std::vector<Ratio>& into) {
    probe.subject.call("measure",
                       [&] { probe.task->measure(panel.read(first, count), scored.targets(first, count), into); });
  };
  std::vector<Ratio> whole(metrics.size()), parts(metrics.size());
  const Index half = output.cols() / 2;
  measure(0, output.cols(), whole);
  if (half) measure(0, half, parts);
  measure(half, output.cols() - half, parts);
  Comparison comparison;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    report.require("metrics", whole[i].weight > 0 || scored.weight() == 0,
                   fmt::format("measure() gives `{}` no weight", metrics[i].name));
    comparison.add(metrics[i].name + " (sum)", Index(i), parts[i].sum, whole[i].sum);
    comparison.add(metrics[i].name + " (weight)", Index(i), parts[i].weight, whole[i].weight);
  }
  report.measure("metrics", comparison, 1e-5 * std::max(1., comparison.scale()), "two parts add up to the whole");
}

}  // namespace

template <class S> void check_loss(const TaskProbe<S>& probe, CheckReport& report, std::uint64_t seed) {
  Rng rng(seed, "loss");
  Batch<S> batch = probe.fill(Split::train, 0);
  Scored<S> scored(batch, probe.shape);
  const Real output = random_matrix(rng, probe.shape.output_size, scored.count());
  check_loss_gradient(probe, report, output, scored);
  for (Index c = 0; c < scored.count(); ++c) scored.weights[std::size_t(c)] = S(0.25 * double(1 + c % 4));
  check_loss_gradient(probe, report, output, scored);
  check_weights(probe, report, output, scored);
  check_metrics(probe, report, output, scored);
}

void check_baseline(const TaskProbe<double>& probe, CheckReport& report) {
  const double baseline = probe.subject.call("baseline", [&] { return probe.task->baseline(); });
  if (std::isnan(baseline)) return report.skip("baseline", "unknown");
  std::vector<double> means;
  double total = 0;
  for (Index index = 0; index < 200 && total < 2e6; ++index) {
    Batch<double> batch = probe.fill(Split::train, index);
    const Scored<double> scored(batch, probe.shape);
    Real output(probe.shape.output_size, scored.count());
    std::vector<double> column(std::size_t(probe.shape.output_size));
    for (Index c = 0; c < scored.count(); ++c) {
      probe.subject.call("trivial", [&] { probe.task->trivial(scored.places[std::size_t(c)].first, column); });
      output.col(c) = as_vector(std::span<const double>(column));
    }
    const double weight = scored.weight();
    if (weight == 0) continue;
    means.push_back(probe.loss(output, scored.targets()) / weight);
    total += double(output.size());
  }
  report.require("baseline", !means.empty(), "no batch has an output with a weight above 0");
  if (means.empty()) return;
  const auto values = as_vector(std::span<const double>(means));
  const double mean = values.mean(), error = std::sqrt((values.array() - mean).square().sum()) / double(means.size());
  report.measure("baseline", std::abs(mean - baseline), 5 * error + 0.02 * std::abs(baseline), {},
                 fmt::format("baseline() {:.5g}, the trivial predictor reaches {:.5g} ± {:.1g} in {} batches", baseline,
                             mean, error, means.size()));
}

template void check_loss<float>(const TaskProbe<float>&, CheckReport&, std::uint64_t);
template void check_loss<double>(const TaskProbe<double>&, CheckReport&, std::uint64_t);

}  // namespace stiefel::conformance
