// Evaluations: during the training, and of the best network at its end.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/printable.hpp"
#include "training/trainer.hpp"

namespace stiefel {

template <class S> void Trainer<S>::evaluate() {
  EvaluationRow row;
  row.step = progress_.step;
  row.epoch = progress_.epoch;
  row.train_loss = losses_.mean();
  const bool on_test = selecting_split(experiment_.train) == Split::test;
  const AveragedNetwork<S> averaged(*session_.network, *session_.updater);
  watch_.time(Phase::evaluate, [&] {
    row.validation = evaluate(Split::validation, row.step);
    if (on_test && !has_diverged()) row.test = evaluate(Split::test, row.step);
  });
  if (has_diverged()) {
    recording_.evaluation(row);  // with NaN, which halving ranks last
    return record_timing();
  }
  if (const Scores& selecting = on_test ? row.test : row.validation; !selecting.empty()) {
    row.best = selection_.take(row.step, values_of_quantities(selecting));
    if (row.best) keep_best();
    session_.updater->evaluated(progress_.step, row.best);
  }
  std::vector<std::pair<std::string, double>> values{{"steps", double(progress_.steps)},
                                                     {"epoch", row.epoch},
                                                     {"train_loss", row.train_loss},
                                                     {"best", progress_.best}};
  const std::vector<Quantity> measured = quantities(session_.metrics(), experiment_.record.lengths);
  const std::vector<double> found = values_of_quantities(row.validation);
  for (std::size_t i = 0; i < found.size(); ++i) values.emplace_back("valid_" + measured[i].name, found[i]);
  note_step_seconds();
  record_.progress(row.step, progress_.step_seconds, values);
  row.seconds = seconds_since(start_) - evaluated_at_;
  evaluated_at_ = seconds_since(start_);
  recording_.evaluation(row);
  record_timing();
  std::string line = fmt::format("step {} epoch {:.2f} train loss {:.6g}", row.step, row.epoch, row.train_loss);
  if (!row.validation.empty()) line += " " + values_text("valid", row.validation);
  if (!row.test.empty()) line += " " + values_text("test", row.test);
  line += fmt::format(" ({:.1f} s)", row.seconds);
  observer_.evaluation(line);
  record_.log(line);
  losses_.sum = 0, losses_.count = 0;
  record_.publish(progress_.step, status_);
}

template <class S> void Trainer<S>::keep_best() {
  status_.best_metric = progress_.best = selection_.best();
  status_.best_step = selection_.best_step();
  best_ = session_.network->state();
  record_.network("best", session_.network->layout(), best_, selection_.best_step());
}

template <class S> void Trainer<S>::finish_best() {
  std::optional<AveragedNetwork<S>> averaged(std::in_place, *session_.network, *session_.updater);
  const NetworkState<S> last = session_.network->state();
  record_.network("last", session_.network->layout(), last, progress_.step);
  const bool chosen = !best_.values.empty();
  const Index step = chosen ? Index(selection_.best_step()) : progress_.step;
  if (chosen) session_.network->restore(best_);
  RunOutcome outcome(record_.directory().empty() ? "" : record_.directory() / "outcome");
  const auto return_to_last = [&] {
    session_.network->restore(last);
    averaged.reset();
  };
  Scores scores;
  try {
    scores = evaluate(
        Split::test, step, [this] { return signal() != 0; }, session_.task->reports() ? &outcome : nullptr);
  } catch (const Error&) {  // e.g. from report(): once it is corrected, `resume` only repeats the test
    return_to_last();
    if (progress_.step != saved_) save();
    throw;
  }
  if (scores.empty()) {
    return_to_last();
    if (!has_diverged()) stopped_by_signal();
    return;
  }
  recording_.final_test(step, scores);
  if (!outcome.quantities().empty()) recording_.outcome(step, outcome.quantities());
  const std::string baselines = session_.baselines_text(4);
  const bool unselected = !chosen && session_.batches(selecting_split(experiment_.train)) > 0;
  status_.message = fmt::format(
      "{} after {} in {:.1f} s (model of step {}{}{})", values_text("test", scores), counted(progress_.step, "step"),
      seconds_since(start_), step,
      unselected ? fmt::format(", the last: no evaluation gave a number for {}", experiment_.train.select) : "",
      baselines.empty() ? "" : "; " + baselines);
}

template <class S>
Scores Trainer<S>::evaluate(Split split, Index step, const std::function<bool()>& stopped, Outcome* outcome) {
  watched_ = fmt::format("a {} batch after step {}", name_of(split), progress_.step);
  const auto not_finite = [&](const Batch<S>& batch, double loss) {
    diverged(step, broken(fmt::format("the loss of a {} batch", name_of(split)), loss, batch), &batch);
  };
  return session_.evaluate(split, watchdog_, {stopped, not_finite, outcome});
}

template <class S> std::string Trainer<S>::values_text(const char* split, const Scores& scores) const {
  std::string text = fmt::format("{} loss {:.6g}", split, scores.values[0]);
  const std::vector<Metric> metrics = session_.metrics();
  for (std::size_t i = 0; i < metrics.size(); ++i)
    text += fmt::format(" {} {:.5g}", metrics[i].name, scores.values[i + 1]);
  // Of other lengths, only the quantity that selects the best network.
  const std::vector<Quantity> all = quantities(metrics, experiment_.record.lengths);
  const auto selecting = std::ranges::find(all, experiment_.train.select, &Quantity::name);
  const std::size_t chosen = std::size_t(selecting - all.begin()) % scores.values.size();
  const std::string& name = all[chosen].name;
  for (std::size_t l = 0; l < scores.by_length.size(); ++l)
    text += fmt::format("{} at {} {:.5g}", l == 0 ? ", " + name : ",", experiment_.record.lengths[l],
                        scores.by_length[l][chosen]);
  return text;
}

template void Trainer<float>::evaluate();
template void Trainer<double>::evaluate();
template void Trainer<float>::finish_best();
template void Trainer<double>::finish_best();

}  // namespace stiefel
