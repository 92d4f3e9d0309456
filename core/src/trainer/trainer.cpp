// The training loop.
#include "trainer/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "trainer/record_run.hpp"
#include "trainer/recording.hpp"
#include "trainer/session.hpp"

namespace stiefel {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Wall time by phase since the row before.
class Stopwatch {
 public:
  template <class F> decltype(auto) time(Phase phase, F&& work) {
    const auto start = Clock::now();
    struct Stop {
      double& sum;
      Clock::time_point start;
      ~Stop() { sum += seconds_since(start); }
    } stop{seconds_[std::size_t(phase)], start};
    return std::forward<F>(work)();
  }
  std::vector<double> take() { return std::exchange(seconds_, std::vector<double>(std::size(phase_names), 0.0)); }

 private:
  std::vector<double> seconds_ = std::vector<double>(std::size(phase_names), 0.0);
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + Index(values.size() / 2), values.end());
  return values[values.size() / 2];
}

template <class S> class Trainer {
 public:
  Trainer(const LoadedExperiment& loaded, Session<S>& session, RunRecord& record, const RunOptions& options, RunObserver& observer)
      : experiment_(loaded.experiment),
        session_(session),
        record_(record),
        options_(options),
        observer_(observer),
        recording_(record.recorder(), experiment_, *session.task, *session.network, *session.updater),
        batches_(*session.task, Split::train, experiment_.task.plugin, session.task_file, 0, session.total_steps()),
        steps_(session.total_steps()) {}

  RunSummary run();

 private:
  bool step();
  void evaluate();
  bool better(double value, double other) const;
  bool improves(double value) const {
    return std::isfinite(status_.best_metric) ? better(value, status_.best_metric) : std::isfinite(value);
  }
  std::string reason_to_stop() const;
  void finish_best();
  std::string values_text(const char* split, const std::vector<double>& values) const;
  bool stop_asked() const { return options_.signal && options_.signal->load() != 0; }

  const Experiment& experiment_;
  Session<S>& session_;
  RunRecord& record_;
  const RunOptions& options_;
  RunObserver& observer_;
  Recording<S> recording_;
  Prefetch<S> batches_;
  Stopwatch watch_;
  Progress progress_;
  Index steps_;
  Status status_;
  std::vector<S> best_;
  Index waited_ = 0, losses_ = 0;
  double loss_sum_ = 0, evaluated_at_ = 0;
  std::vector<double> durations_;
  Clock::time_point start_ = Clock::now();
};

template <class S> RunSummary Trainer<S>::run() {
  progress_.steps = steps_;
  session_.network->refresh();
  recording_.maps(0, *session_.network);
  const Index period = session_.evaluation_period();
  status_.state = "finished";
  bool stopped_early = false;
  while (progress_.step < steps_) {
    if (!step()) break;
    if (progress_.step % period == 0 || progress_.step == steps_) evaluate();
    if (const std::string reason = reason_to_stop(); !reason.empty()) {
      observer_.note("stopping early: " + reason);
      stopped_early = true;
      break;
    }
    if (stop_asked() && progress_.step < steps_) {
      status_.state = "preempted";
      status_.exit_code = 128 + options_.signal->load();
      status_.message = fmt::format("stopped by signal {} after step {} of {}", options_.signal->load(), progress_.step, steps_);
      break;
    }
  }
  if (status_.state == "finished") finish_best();
  if (status_.message.empty())
    status_.message = fmt::format("{} steps{} in {:.1f} s", progress_.step, stopped_early ? ", stopped early," : "", seconds_since(start_));
  record_.finish(progress_.step, status_);
  return {status_.state, status_.message, record_.directory(), status_.exit_code};
}

/// False when the numbers broke.
template <class S> bool Trainer<S>::step() {
  const auto start = Clock::now();
  const Index number = progress_.step + 1;
  const Batch<S>& batch = watch_.time(Phase::data, [&]() -> const Batch<S>& { return batches_.next(); });
  PassRequest request;
  request.gradient_norms = request.hidden_norms = recording_.due(recording_.periods().gradient_norms, number);
  watch_.time(Phase::param_map, [&] { session_.refresh(number); });
  const PassResult pass = watch_.time(Phase::passes, [&] { return session_.network->train(batch, session_.workers, request); });
  const UpdateNorms norms =
      watch_.time(Phase::optimizer, [&] { return session_.updater->step(number, *session_.network, session_.workers); });
  if (!std::isfinite(pass.loss) || !std::isfinite(norms.gradient)) {
    const std::string block = session_.broken_block();
    status_.state = "diverged";
    status_.exit_code = int(Exit::diverged);
    status_.message = fmt::format(
        "diverged at step {}: the loss is {} and the first block with a number that is not finite is {}; "
        "the results up to step {} are kept. Lower the learning rate or clip the gradient",
        number, pass.loss, block.empty() ? "none" : block, progress_.step);
    return false;
  }
  progress_.step = number;
  progress_.epoch = double(number) / double(session_.batches(Split::train));
  durations_.push_back(seconds_since(start));
  loss_sum_ += pass.loss, ++losses_;
  progress_.loss = std::isfinite(progress_.loss) ? 0.95 * progress_.loss + 0.05 * pass.loss : pass.loss;
  watch_.time(Phase::record, [&] {
    if (recording_.due(recording_.periods().loss, number)) {
      progress_.step_seconds = median(durations_);
      recording_.step({number, pass.loss, pass.penalty, norms, session_.updater->rates(number), progress_.step_seconds});
      const std::pair<std::string, double> values[] = {
          {"epoch", progress_.epoch}, {"loss", pass.loss}, {"grad_norm", norms.gradient}, {"seconds", seconds_since(start_)}};
      record_.progress(number, progress_.step_seconds, values);
      durations_.clear();
    }
    if (request.gradient_norms) recording_.norms(number, pass);
    if (recording_.maps_due(number)) {
      session_.network->refresh();
      recording_.maps(number, *session_.network);
    }
    const CheckpointOptions& checkpoint = experiment_.checkpoint;
    if (checkpoint.every > 0 && number % checkpoint.every == 0) {
      record_.snapshot(session_.network->layout(), session_.network->values(), number, checkpoint.keep);
      record_.publish(number, status_);
    }
  });
  progress_.seconds = seconds_since(start_);
  observer_.progress(progress_);
  return true;
}

template <class S> bool Trainer<S>::better(double value, double other) const {
  bool higher = false;
  for (const Metric& metric : session_.task->metrics())
    if (metric.name == experiment_.train.select) higher = metric.higher_is_better;
  return higher ? value > other : value < other;
}

/// Empty while training is to go on.
template <class S> std::string Trainer<S>::reason_to_stop() const {
  const TrainOptions& train = experiment_.train;
  if (train.patience > 0 && waited_ >= train.patience) return fmt::format("{} evaluations without improvement", waited_);
  if (train.target > 0 && std::isfinite(status_.best_metric) && !better(train.target, status_.best_metric))
    return fmt::format("{} is {:.6g}, which is good enough", train.select, status_.best_metric);
  return {};
}

template <class S> std::string Trainer<S>::values_text(const char* split, const std::vector<double>& values) const {
  std::string text = fmt::format("{} loss {:.6g}", split, values[0]);
  const auto metrics = session_.task->metrics();
  for (std::size_t m = 0; m < metrics.size(); ++m) text += fmt::format(" {} {:.5g}", metrics[m].name, values[m + 1]);
  return text;
}

template <class S> void Trainer<S>::evaluate() {
  EvaluationRow row;
  row.step = progress_.step;
  row.epoch = progress_.epoch;
  row.train_loss = loss_sum_ / double(std::max<Index>(losses_, 1));
  watch_.time(Phase::evaluate, [&] {
    row.validation = session_.evaluate(Split::validation);
    if (experiment_.train.select_on == "best_test") row.test = session_.evaluate(Split::test);
  });
  const std::vector<double>& selecting = experiment_.train.select_on == "best_test" ? row.test : row.validation;
  std::string line = fmt::format("step {} epoch {:.2f} train loss {:.6g}", row.step, row.epoch, row.train_loss);
  if (!row.validation.empty()) line += " " + values_text("valid", row.validation);
  if (!row.test.empty()) line += " " + values_text("test", row.test);
  if (!selecting.empty()) {
    std::size_t chosen = 0;
    const auto metrics = session_.task->metrics();
    for (std::size_t m = 0; m < metrics.size(); ++m)
      if (metrics[m].name == experiment_.train.select) chosen = m + 1;
    row.best = improves(selecting[chosen]);
    if (row.best) {
      status_.best_metric = progress_.best = selecting[chosen];
      status_.best_step = row.step;
      best_ = session_.network->values();
      record_.weights("best", session_.network->layout(), best_, row.step);
    }
    waited_ = row.best ? 0 : waited_ + 1;
    session_.updater->evaluated(row.best);
  }
  row.seconds = seconds_since(start_) - evaluated_at_;
  evaluated_at_ = seconds_since(start_);
  line += fmt::format(" ({:.1f} s)", row.seconds);
  recording_.evaluation(row);
  recording_.timing(row.step, watch_.take());
  observer_.note(line);
  record_.log(line);
  loss_sum_ = 0, losses_ = 0;
  record_.publish(progress_.step, status_);
}

/// The best model, or the last one when nothing selects, on the test split.
template <class S> void Trainer<S>::finish_best() {
  record_.weights("last", session_.network->layout(), session_.network->values(), progress_.step);
  const Index step = best_.empty() ? progress_.step : Index(status_.best_step);
  if (!best_.empty()) session_.network->values() = best_;
  const std::vector<double> values = session_.evaluate(Split::test);
  if (values.empty()) return;
  recording_.final_test(step, values);
  status_.message = fmt::format("{} after {} steps in {:.1f} s (model of step {}; a predictor without memory: {:.4g})",
                                values_text("test", values), progress_.step, seconds_since(start_), step, session_.task->baseline());
}

template <class S> RunSummary run(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options, RunObserver& observer) {
  Session<S> session(loaded, registry, options);
  RunRecord record(loaded, registry, options, session.task->files(), session.workers.threads());
  if (record.finished_before()) return {"existing", record.message(), record.directory(), 0};
  observer.note(fmt::format("{}: {} parameters, {} steps, {} threads, {}", loaded.experiment.name, session.network->layout().size(),
                            session.total_steps(), session.workers.threads(), record.directory().string()));
  try {
    return Trainer<S>(loaded, session, record, options, observer).run();
  } catch (const Error& error) {
    record.fail(error.what(), int(error.code()));
    throw;
  } catch (const std::exception& error) {
    record.fail(error.what(), int(Exit::internal));
    throw;
  }
}

}  // namespace

RunObserver::~RunObserver() = default;

RunSummary run_experiment(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options, RunObserver& observer) {
  return loaded.experiment.scalar == "float64" ? run<double>(loaded, registry, options, observer)
                                               : run<float>(loaded, registry, options, observer);
}

}  // namespace stiefel
