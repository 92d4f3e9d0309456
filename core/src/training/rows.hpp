// The rows of each table that a run leaves in results.h5, with the names, units and explanations of their columns.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <stiefel/parametrisation.hpp>
#include <stiefel/task.hpp>

#include "record/append_row.hpp"
#include "record/header_file.hpp"
#include "record/provenance.hpp"
#include "sdk/diagnostics.hpp"
#include "training/scores.hpp"
#include "training/updater.hpp"

namespace stiefel {

/// /steps
struct StepRow {
  Index step = 0;
  double loss = 0, penalty = 0;
  UpdateNorms norms;
  std::vector<double> rates;  // optimizer.rate times the schedule's factor, without the block's rate_scale
  double seconds = 0, wall_time = seconds_since_1970();
  std::int64_t rss_bytes = std::int64_t(current_rss_bytes());

  template <class V> void each(V&& column) const {
    column({"step", "1", "optimizer step"}, step);
    column({"loss", "1", "training loss, batch mean"}, loss);
    column({"penalty", "1", "value of soft constraints"}, penalty);
    column(
        {"grad_norm", "1",
         "norm of the gradient of all trained parameters, with weight decay unless it is decoupled, before clipping"},
        norms.gradient);
    column({"clipped_grad_norm", "1", "the same after clipping"}, norms.clipped);
    column({"recurrent_grad_norm", "1", "norm of the gradient of the recurrent maps' parameters"},
           norms.recurrent_gradient);
    column({"param_update_norm", "1", "norm of the change of all parameters in the step"}, norms.update);
    column({"lr", "1", "learning rate", "group"}, rates);
    column({"wall_time", "seconds since 1970-01-01T00:00:00Z", "end of the step"}, wall_time);
    column({"step_seconds", "s", "median duration of the training steps since the last row or evaluation"}, seconds);
    column({"rss_bytes", "B", "resident memory"}, rss_bytes);
  }
};

/// A column's description, by which commands that compare runs know which of two values is better.
inline const char* direction(bool higher_is_better) {
  return higher_is_better ? "higher is better" : "lower is better";
}

/// Loss and metrics of a split, in columns such as valid_loss and test_accuracy. The split is called `valid` here and in
/// progress.jsonl, but `validation` in YAML; whoever reads the columns, such as compared_run.cpp, builds the same names
/// from "valid_". They are NaN if `scores` is empty, because it was not evaluated. With record.lengths, valid_loss_by_length
/// and the like have the values at these lengths.
template <class V> void each_quantity(V&& column, const std::string& split, std::span<const Metric> metrics,
                                      std::size_t lengths, const Scores& scores) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const auto each = [&](auto&& one) {
    one("loss", "1", false, 0);
    for (std::size_t i = 0; i < metrics.size(); ++i)
      one(metrics[i].name, metrics[i].units, metrics[i].higher_is_better, i + 1);
  };
  each([&](const std::string& name, const std::string& units, bool higher_is_better, std::size_t i) {
    column({split + "_" + name, units, split + " " + name, "", direction(higher_is_better)},
           scores.empty() ? nan : scores.values[i]);
  });
  std::size_t curve = 0;
  for (const Metric& metric : metrics)
    if (metric.by_step)
      column({fmt::format("{}_{}_by_step", split, metric.name), metric.units,
              split + " " + metric.name + " at each step", "t", direction(metric.higher_is_better)},
             scores.empty() ? std::vector<double>(std::size_t(metric.parts), nan) : scores.by_step[curve++]);
  if (lengths == 0) return;
  each([&](const std::string& name, const std::string& units, bool higher_is_better, std::size_t i) {
    std::vector<double> values(lengths, nan);
    for (std::size_t l = 0; l < scores.by_length.size(); ++l) values[l] = scores.by_length[l][i];
    column({fmt::format("{}_{}_by_length", split, name), units, split + " " + name + " at other lengths", "length",
            direction(higher_is_better)},
           values);
  });
}

/// /epochs: a row is one evaluation, and an epoch may have several. train_loss is the mean of the steps' losses as
/// train.loss defines them, so with `train.loss: sum` it is not comparable with valid_loss.
struct EvaluationRow {
  std::span<const Metric> metrics = {};
  std::size_t lengths = 0;  // of record.lengths
  Index step = 0;
  double epoch = 0, train_loss = 0, seconds = 0;
  Scores validation = {}, test = {};
  bool best = false;

  template <class V> void each(V&& column) const {
    column({"epoch", "1", "passes over the training split"}, epoch);
    column({"step", "1", "optimizer step of the evaluation"}, step);
    column({"train_loss", "1", "mean training loss since the row before", "", direction(false)}, train_loss);
    each_quantity(column, "valid", metrics, lengths, validation);
    each_quantity(column, "test", metrics, lengths, test);
    column({"is_best", "1", "best so far on the selecting split"}, best);
    column({"seconds", "s", "wall time since the row before"}, seconds);
  }
};

/// /final
struct TestRow {
  std::span<const Metric> metrics;
  std::size_t lengths = 0;
  Index step = 0;
  Scores scores = {};

  template <class V> void each(V&& column) const {
    column({"step", "1", "optimizer step of the best model"}, step);
    each_quantity(column, "test", metrics, lengths, scores);
  }
};

/// /outcome
struct OutcomeRow {
  Index step;
  const std::map<std::string, Ratio>& quantities;

  template <class V> void each(V&& column) const {
    column({"step", "1", "optimizer step of the best model"}, step);
    for (const auto& [name, ratio] : quantities)
      column({name, "1", "mean of a quantity that the task reports for the best model"}, ratio.sum / ratio.weight);
  }
};

struct SnapshotRow {
  Index step = 0;
  template <class V> void each(V&& column) const { column({"snapshot", "1", "optimizer step of the snapshot"}, step); }
};

/// /gradient: norms per time step.
struct NormRow : SnapshotRow {
  std::vector<double> hidden_gradient = {}, last_gradient = {}, hidden = {};

  template <class V> void each(V&& column) const {
    column({"snapshot", "1", "optimizer step of the snapshot; the parameters are those before it"}, step);
    column({"hidden_grad_norm", "1", "norm over batch and units of dL/dh_t, L the batch mean", "t"}, hidden_gradient);
    column({"last_step_grad_norm", "1", "the same for the mean loss of the last step of each sequence alone", "t"},
           last_gradient);
    column({"hidden_norm", "1", "norm over units and the sequences that reach t of h_t", "t"}, hidden);
  }
};

/// /spectrum/<map>; a map that is not square has no eigenvalues.
struct SpectrumRow : SnapshotRow {
  SpectrumRow(Index at, Spectrum of) : SnapshotRow{at}, spectrum(std::move(of)) {
    const auto& s = spectrum.singular_values;
    for (const auto& z : spectrum.eigenvalues) moduli.push_back(std::abs(z)), phases.push_back(std::arg(z));
    mean = std::accumulate(s.begin(), s.end(), 0.0) / double(s.size());
    double variance = 0;
    for (double x : s) variance += (x - mean) * (x - mean) / double(s.size()), log_det += std::log(x);
    deviation = std::sqrt(variance);
  }
  Spectrum spectrum;
  std::vector<double> moduli, phases;
  double mean = 0, deviation = 0, log_det = 0;

  template <class V> void each(V&& column) const {
    const double least = spectrum.singular_values.back(), largest = spectrum.singular_values.front();
    SnapshotRow::each(column);
    column({"singular_values", "1", "singular values of W, descending", "k"}, spectrum.singular_values);
    if (!spectrum.eigenvalues.empty()) {
      column({"eigenvalues", "1", "eigenvalues of W, descending modulus", "k"}, spectrum.eigenvalues);
      column({"eigenvalue_modulus", "1", "modulus of the eigenvalues", "k"}, moduli);
      column({"eigenvalue_phase", "rad", "argument of the eigenvalues", "k"}, phases);
    }
    column({"singular_min", "1", "min of the singular values"}, least);
    column({"singular_max", "1", "max of the singular values"}, largest);
    column({"singular_mean", "1", "mean of the singular values"}, mean);
    column({"singular_std", "1", "std of the singular values"}, deviation);
    column({"condition_number", "1", "largest over smallest singular value"}, largest / least);
    column({"log_abs_det", "1", "sum of the logarithms of the singular values"}, log_det);
  }
};

/// /orthogonality/<map>
struct OrthogonalityRow : SnapshotRow {
  Defect defect;

  template <class V> void each(V&& column) const {
    SnapshotRow::each(column);
    column({"defect_fro", "1", "Frobenius norm of W^H W - I", "block"}, defect.frobenius);
    column({"defect_max", "1", "largest modulus of an entry of W^H W - I", "block"}, defect.largest);
  }
};

/// /scalars/<map>: names and values that the map's plugin gives.
struct ScalarsRow : SnapshotRow {
  std::vector<std::string> names = {};
  std::vector<double> values = {};

  template <class V> void each(V&& column) const {
    SnapshotRow::each(column);
    for (std::size_t i = 0; i < names.size(); ++i) column({names[i], "1", names[i] + " of the map"}, values[i]);
  }
};

/// /blocks/<block>
template <class S> struct BlockRow : SnapshotRow {
  std::string_view name;
  std::span<const S> values = {};

  template <class V> void each(V&& column) const {
    SnapshotRow::each(column);
    column({"values", "1", name, "i"}, values);
  }
};

/// /timing
struct TimingRow {
  Index step = 0;
  std::vector<double> seconds = {};

  template <class V> void each(V&& column) const {
    column({"step", "1", "optimizer step"}, step);
    column({"seconds", "s", "wall time since the row before, in this process", "phase"}, seconds);
  }
};

}  // namespace stiefel
