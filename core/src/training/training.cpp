// The training loop.
#include "training/training.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <thread>

#include "base/printable.hpp"
#include "base/say.hpp"
#include "training/clock.hpp"
#include "training/outcome.hpp"
#include "training/recording.hpp"
#include "training/watchdog.hpp"

namespace stiefel {
namespace {

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

/// What of a trainer is neither in the network nor in the updater nor a function of the step.
struct Counts {
  double best_metric = std::numeric_limits<double>::quiet_NaN(), loss_sum = 0, running_loss = best_metric;
  std::int64_t best_step = -1, waited = 0, losses = 0;

  void serialise(Archive& archive) {
    archive.value("best_metric", best_metric);
    archive.value("loss_sum", loss_sum);
    archive.value("running_loss", running_loss);
    archive.value("best_step", best_step);
    archive.value("waited", waited);
    archive.value("losses", losses);
  }
};

StateItems items_of(Counts counts) {
  MemoryArchive archive;
  counts.serialise(archive);
  return archive.items();
}

/// While this exists, the network has the averaged parameters, if there are any, instead of those that are trained.
template <class S> class Averaged {
 public:
  explicit Averaged(Session<S>& session) : network_(*session.network) {
    if (!session.updater->averages()) return;
    trained_ = network_.values();
    session.updater->use_average(network_);
  }
  ~Averaged() {
    if (!trained_.empty()) network_.values() = std::move(trained_);
  }
  Averaged(const Averaged&) = delete;
  Averaged& operator=(const Averaged&) = delete;

 private:
  Network<S>& network_;
  std::vector<S> trained_;
};

template <class S> class Trainer {
 public:
  /// `from`: a checkpoint to go on from, or null.
  Trainer(const LoadedExperiment& loaded, Session<S>& session, RunRecord& record, const RunOptions& options,
          RunObserver& observer, const Checkpoint<S>* from)
      : experiment_(loaded.experiment),
        session_(session),
        record_(record),
        options_(options),
        observer_(observer),
        recording_(record.recorder(), experiment_, *session.task, *session.network, *session.updater),
        batches_(*session.task, Split::train, from ? from->step * experiment_.train.accumulate : 0,
                 session.total_steps() * experiment_.train.accumulate, watchdog_),
        steps_(session.total_steps()),
        evaluated_at_(record.evaluated_before()),
        start_(Clock::now() -
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(record.seconds_before()))) {
    if (from) restore(*from);
    settle_networks();
  }

  ~Trainer() { watched_ = fmt::format("filling a batch after step {}", progress_.step); }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  RunSummary run();

 private:
  bool step();
  void record_maps();
  /// The median of the steps since the last call.
  void take_step_seconds() {
    if (!durations_.empty()) progress_.step_seconds = median(std::exchange(durations_, {}));
  }
  int signal() const { return agreed(options_.signal ? options_.signal->load() : 0); }
  bool stopped_by_signal();
  void stop(int exit_code, const std::string& reason);
  /// `what`: of whose loss, e.g. "the loss".
  std::string broken(std::string_view what, double loss);
  void diverged(Index step, const std::string& finding, const Batch<S>* batch);
  template <class F> void guard(F&& work);
  bool has_diverged() const { return status_.state == "diverged"; }
  [[noreturn]] void overdue();
  void evaluate();
  /// `step`: of the model.
  std::vector<double> evaluate(Split split, Index step, const std::function<bool()>& stopped = {},
                               Outcome* outcome = nullptr);
  void restore(const Checkpoint<S>& from);
  void settle_networks();
  void save();
  bool save_due();
  bool better(double value, double other) const;
  bool improves(double value) const {
    return std::isfinite(status_.best_metric) ? better(value, status_.best_metric) : std::isfinite(value);
  }
  std::string reason_to_stop() const;
  void finish_best();
  std::string values_text(const char* split, const std::vector<double>& values) const;
  /// The largest of what the ranks have.
  int agreed(int own) const { return options_.ranks ? options_.ranks->largest(own) : own; }

  const Experiment& experiment_;
  Session<S>& session_;
  RunRecord& record_;
  const RunOptions& options_;
  RunObserver& observer_;
  const Batch<S>* batch_ = nullptr;  // the last one trained on
  Index begun_ = 0;                  // the last step that was begun
  std::string watched_;              // what the watchdog waits for
  Watchdog watchdog_{experiment_.train.step_limit, [this] { overdue(); }};
  Recording<S> recording_;
  Prefetch<S> batches_;
  Stopwatch watch_;
  Progress progress_;
  Index steps_;
  Status status_;
  NetworkState<S> best_;
  std::int64_t waited_ = 0, losses_ = 0;
  Index saved_ = 0;
  Clock::time_point saved_at_ = Clock::now();
  double loss_sum_ = 0, evaluated_at_;
  std::vector<double> durations_;
  Clock::time_point start_;  // of the run, as if its processes had followed each other at once
};

template <class S> RunSummary Trainer<S>::run() {
  progress_.steps = steps_;
  record_.publish(progress_.step, status_);
  if (progress_.step == 0) record_maps();
  const Index period = session_.evaluation_period();
  status_.state = "finished";
  bool stopped_early = false;
  while (progress_.step < steps_) {
    if (const std::string reason = reason_to_stop(); !reason.empty()) {
      observer_.note("stopping early: " + reason);
      record_.log("stopping early: " + reason);
      stopped_early = true;
      break;
    }
    if (stopped_by_signal()) break;
    if (options_.until > 0 && progress_.step >= options_.until) {
      stop(int(Exit::preempted), progress_.step == options_.until
                                     ? "stopped as requested by --until"
                                     : fmt::format("stopped because --until {} is already reached,", options_.until));
      break;
    }
    guard([&] {
      if (step() && (progress_.step % period == 0 || progress_.step == steps_)) evaluate();
    });
    if (has_diverged()) break;
    if (save_due()) save();
  }
  if (status_.state == "finished") guard([&] { finish_best(); });
  if (status_.message.empty())
    status_.message = fmt::format("{}{} in {:.1f} s", counted(progress_.step, "step"),
                                  stopped_early ? ", stopped early," : "", seconds_since(start_));
  record_.finish(progress_.step, status_);
  return {status_.state, status_.message, record_.directory(), status_.exit_code};
}

template <class S> bool Trainer<S>::stopped_by_signal() {
  const int number = signal();
  if (number != 0) stop(128 + number, fmt::format("stopped by signal {}", number));
  return number != 0;
}

/// Writes a checkpoint with all that is needed to resume.
template <class S> void Trainer<S>::stop(int exit_code, const std::string& reason) {
  if (progress_.step != saved_) save();
  status_.state = "preempted";
  status_.exit_code = exit_code;
  status_.message = fmt::format("{} after step {} of {}; resume with: stiefel resume {}", reason, progress_.step,
                                steps_, shell_word(record_.directory().string()));
}

/// False when the numbers broke.
template <class S> bool Trainer<S>::step() {
  const auto start = Clock::now();
  const Index number = begun_ = progress_.step + 1;
  const bool norms_due = recording_.due(recording_.periods().gradient_norms, number);
  PassResult pass;
  UpdateNorms norms;
  watched_ = fmt::format("step {}", number);
  watchdog_.watch([&] {
    watch_.time(Phase::param_map, [&] { session_.refresh(number); });
    for (Index k = 0; k < experiment_.train.accumulate && (k == 0 || std::isfinite(pass.loss)); ++k) {
      const bool epoch_begins =
          (progress_.step * experiment_.train.accumulate + k) % session_.batches(Split::train) == 0;
      if (epoch_begins) session_.network->take_state();
      batch_ = watch_.time(Phase::data, [&] { return &batches_.next(); });
      PassRequest request = session_.request(number, k);
      request.gradient_norms = request.hidden_norms = norms_due;
      pass = watch_.time(Phase::passes, [&] {
        return k == 0 ? session_.network->train(*batch_, session_.workers, request)
                      : session_.network->train_more(*batch_, session_.workers, request, pass);
      });
    }
    norms = watch_.time(Phase::optimizer, [&] {
      session_.remove_noise();
      return session_.updater->step(number, *session_.network, session_.workers);
    });
  });
  if (!std::isfinite(pass.loss) || !std::isfinite(norms.gradient) || !std::isfinite(norms.update)) {
    const std::string overflow = fmt::format("the loss is {} and the norm of the {} overflows", pass.loss,
                                             std::isfinite(norms.gradient) ? "update" : "gradient");
    const bool all_finite = std::isfinite(pass.loss) && session_.broken_block().empty();
    diverged(number, all_finite ? overflow : broken("the loss", pass.loss), batch_);
    return false;
  }
  progress_.step = number;
  progress_.epoch = double(number * experiment_.train.accumulate) / double(session_.batches(Split::train));
  durations_.push_back(seconds_since(start));
  if (pass.weight > 0) {
    loss_sum_ += pass.loss, ++losses_;
    progress_.loss = std::isfinite(progress_.loss) ? 0.95 * progress_.loss + 0.05 * pass.loss : pass.loss;
  }
  const double loss = pass.weight > 0 ? pass.loss : std::numeric_limits<double>::quiet_NaN();
  watch_.time(Phase::record, [&] {
    if (recording_.due(recording_.periods().loss, number)) {
      take_step_seconds();
      recording_.step({number, loss, pass.penalty, norms, session_.updater->rates(number), progress_.step_seconds});
      const std::pair<std::string, double> values[] = {
          {"steps", double(steps_)},     {"epoch", progress_.epoch}, {"loss", loss},
          {"grad_norm", norms.gradient}, {"best", progress_.best},   {"seconds", seconds_since(start_)}};
      record_.progress(number, progress_.step_seconds, values);
    }
    if (norms_due) recording_.norms(number, pass);
    if (recording_.maps_due(number)) record_maps();
  });
  progress_.seconds = seconds_since(start_);
  observer_.progress(progress_);
  return true;
}

template <class S> void Trainer<S>::record_maps() {
  watched_ = fmt::format("recording the maps after step {}", progress_.step);
  watchdog_.watch([&] {
    session_.network->refresh();
    if (const std::string broken = recording_.maps(progress_.step, *session_.network); !broken.empty()) {
      observer_.note("warning: " + broken);
      record_.log(broken);
    }
  });
}

template <class S> std::string Trainer<S>::broken(std::string_view what, double loss) {
  const std::string block = session_.broken_block();
  return fmt::format("{} is {} and the first block with a number that is not finite is {}", what,
                     std::isnan(loss) ? std::numeric_limits<double>::quiet_NaN() : loss,
                     block.empty() ? "none" : block);
}

template <class S> void Trainer<S>::diverged(Index step, const std::string& finding, const Batch<S>* batch) {
  const std::string kept = batch ? fmt::format("the batch is in {}, the results up to step {} are kept",
                                               network_path(record_.directory(), "diverged").string(), progress_.step)
                                 : fmt::format("the results up to step {} are kept", progress_.step);
  status_.state = "diverged";
  status_.exit_code = int(Exit::diverged);
  status_.message =
      fmt::format("diverged at step {}: {}; {}. Lower the learning rate or clip the gradient", step, finding, kept);
  if (saved_ > 0)
    status_.message +=
        fmt::format(", from the beginning or from step {}: stiefel resume {} KEY=VALUE --allow-change KEY", saved_,
                    shell_word(record_.directory().string()));
  if (batch) record_.diverged(session_.network->layout(), session_.network->state(), *batch, step);
}

/// Numbers that break in a plugin or in a decomposition end the run as those of the loss do.
template <class S> template <class F> void Trainer<S>::guard(F&& work) {
  try {
    work();
  } catch (const Error& error) {
    if (error.code() != Exit::diverged) throw;
    diverged(std::max(begun_, progress_.step), error.what(), batch_);
  }
}

template <class S> bool Trainer<S>::save_due() {
  const CheckpointOptions& checkpoint = experiment_.checkpoint;
  const bool asked = options_.save && options_.save->exchange(false);
  const bool late = checkpoint.minutes > 0 &&
                    std::chrono::duration<double>(Clock::now() - saved_at_).count() > 60 * checkpoint.minutes;
  return progress_.step < steps_ &&
         (agreed(asked || late) != 0 || (checkpoint.every > 0 && progress_.step % checkpoint.every == 0));
}

/// The rows go first: a checkpoint never knows of rows that results.h5 has not.
template <class S> void Trainer<S>::save() {
  watch_.time(Phase::record, [&] {
    record_.publish(progress_.step, status_);
    Checkpoint<S> checkpoint{
        progress_.step, session_.network->state(), best_, session_.updater->state(), session_.network->carried(), {}};
    checkpoint.parts["trainer"] =
        items_of(Counts{status_.best_metric, loss_sum_, progress_.loss, status_.best_step, waited_, losses_});
    record_.save(session_.network->layout(), std::move(checkpoint), experiment_.checkpoint);
  });
  saved_ = progress_.step;
  saved_at_ = Clock::now();
}

template <class S> void Trainer<S>::restore(const Checkpoint<S>& from) {
  session_.network->restore(from.network);
  session_.network->give_state(from.carried);
  session_.updater->restore(from.parts);
  best_ = from.best;
  Counts counts;
  MemoryArchive archive(from.parts.at("trainer"));
  counts.serialise(archive);
  status_.best_metric = progress_.best = counts.best_metric;
  status_.best_step = counts.best_step;
  loss_sum_ = counts.loss_sum, losses_ = counts.losses, waited_ = counts.waited;
  progress_.loss = counts.running_loss;
  progress_.step = saved_ = from.step;
}

/// Networks that an earlier process saved after the checkpoint do not belong to the run any more.
template <class S> void Trainer<S>::settle_networks() {
  if (best_.values.empty())
    record_.remove_network("best");
  else
    record_.network("best", session_.network->layout(), best_, status_.best_step);
  record_.remove_network("last");
}

/// Runs in the watchdog's thread: the training's own will not return.
template <class S> void Trainer<S>::overdue() {
  const std::string message = fmt::format(
      "{} has not ended within train.step_limit = {} s: a plugin hangs, or the limit is too small; resume with: "
      "stiefel resume {}",
      watched_, experiment_.train.step_limit, shell_word(record_.directory().string()));
  say("stiefel: {}\n", message);
  std::thread([] {  // the disk may also hang
    std::this_thread::sleep_for(std::chrono::seconds(10));
    std::_Exit(int(Exit::plugin));
  })
      .detach();
  record_.fail(message, int(Exit::plugin));
  std::_Exit(int(Exit::plugin));
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
  if (train.patience > 0 && waited_ >= train.patience)
    return fmt::format("{} evaluations without improvement", waited_);
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

template <class S> std::vector<double> Trainer<S>::evaluate(Split split, Index step,
                                                            const std::function<bool()>& stopped, Outcome* outcome) {
  watched_ = fmt::format("a {} batch after step {}", name_of(split), progress_.step);
  const auto not_finite = [&](const Batch<S>& batch, double loss) {
    diverged(step, broken(fmt::format("the loss of a {} batch", name_of(split)), loss), &batch);
  };
  return session_.evaluate(split, watchdog_, {stopped, not_finite, outcome});
}

template <class S> void Trainer<S>::evaluate() {
  EvaluationRow row;
  row.step = progress_.step;
  row.epoch = progress_.epoch;
  row.train_loss = losses_ > 0 ? loss_sum_ / double(losses_) : std::numeric_limits<double>::quiet_NaN();
  const Averaged<S> averaged(session_);
  watch_.time(Phase::evaluate, [&] {
    row.validation = evaluate(Split::validation, row.step);
    if (experiment_.train.select_on == "best_test" && !has_diverged()) row.test = evaluate(Split::test, row.step);
  });
  if (has_diverged()) {
    recording_.evaluation(row);  // NaN, by which halving judges it
    return recording_.timing(row.step, watch_.take());
  }
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
      best_ = session_.network->state();
      record_.network("best", session_.network->layout(), best_, row.step);
    }
    waited_ = row.best ? 0 : waited_ + 1;
    session_.updater->evaluated(row.best);
  }
  std::vector<std::pair<std::string, double>> values{
      {"steps", double(steps_)}, {"epoch", row.epoch}, {"train_loss", row.train_loss}, {"best", status_.best_metric}};
  for (std::size_t m = 0; m < row.validation.size(); ++m)
    values.emplace_back("valid_" + (m == 0 ? std::string("loss") : session_.task->metrics()[m - 1].name),
                        row.validation[m]);
  take_step_seconds();
  record_.progress(row.step, progress_.step_seconds, values);
  row.seconds = seconds_since(start_) - evaluated_at_;
  evaluated_at_ = seconds_since(start_);
  line += fmt::format(" ({:.1f} s)", row.seconds);
  recording_.evaluation(row);
  recording_.timing(row.step, watch_.take());
  observer_.evaluation(line);
  record_.log(line);
  loss_sum_ = 0, losses_ = 0;
  record_.publish(progress_.step, status_);
}

/// The best model, or the last one when nothing selects, on the test split.
template <class S> void Trainer<S>::finish_best() {
  std::optional<Averaged<S>> averaged(std::in_place, session_);
  const NetworkState<S> last = session_.network->state();
  record_.network("last", session_.network->layout(), last, progress_.step);
  const bool chosen = !best_.values.empty();
  const Index step = chosen ? Index(status_.best_step) : progress_.step;
  if (chosen) session_.network->restore(best_);
  RunOutcome outcome(record_.directory().empty() ? "" : record_.directory() / "outcome");
  const std::vector<double> values = evaluate(
      Split::test, step, [this] { return signal() != 0; }, session_.task->reports() ? &outcome : nullptr);
  if (values.empty()) {
    session_.network->restore(last);
    averaged.reset();
    if (!has_diverged()) stopped_by_signal();
    return;
  }
  recording_.final_test(step, values);
  if (!outcome.quantities().empty()) recording_.outcome(step, outcome.quantities());
  const bool unselected = !chosen && session_.batches(session_.selecting_split()) > 0;
  status_.message = fmt::format(
      "{} after {} in {:.1f} s (model of step {}{}; a predictor without memory: {:.4g})", values_text("test", values),
      counted(progress_.step, "step"), seconds_since(start_), step,
      unselected ? fmt::format(", the last: no evaluation gave a number for {}", experiment_.train.select) : "",
      session_.task->baseline());
}

/// Shown to whoever may have to end the process without an exception.
class LogDescriptor {
 public:
  LogDescriptor(const RunRecord& record, std::atomic<int>* shown)
      : shown_(record.directory().empty() ? nullptr : shown) {
    if (shown_) *shown_ = ::open((record.directory() / "log.txt").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  }
  ~LogDescriptor() {
    if (shown_) ::close(shown_->exchange(-1));
  }
  LogDescriptor(const LogDescriptor&) = delete;
  LogDescriptor& operator=(const LogDescriptor&) = delete;

 private:
  std::atomic<int>* shown_;
};

}  // namespace

StateItems state_of_training() { return items_of({}); }

template <class S> RunSummary train(const LoadedExperiment& loaded, Session<S>& session, RunRecord& record,
                                    const RunOptions& options, RunObserver& observer, const Checkpoint<S>* from) {
  const LogDescriptor log(record, options.log);
  try {
    return Trainer<S>(loaded, session, record, options, observer, from).run();
  } catch (const Error& error) {
    record.fail(error.what(), int(error.code()));
    throw;
  } catch (const std::exception& error) {
    record.fail(error.what(), int(Exit::internal));
    throw;
  }
}

template RunSummary train(const LoadedExperiment&, Session<float>&, RunRecord&, const RunOptions&, RunObserver&,
                          const Checkpoint<float>*);
template RunSummary train(const LoadedExperiment&, Session<double>&, RunRecord&, const RunOptions&, RunObserver&,
                          const Checkpoint<double>*);

}  // namespace stiefel
