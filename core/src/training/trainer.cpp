#include "training/trainer.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "base/printable.hpp"
#include "base/say.hpp"
#include "host/plugin_faults.hpp"
#include "record/run_folder.hpp"

namespace stiefel {
namespace {

/// The state of a trainer, except for the network, the updater and what follows from the step.
StateItems items_of(StepLosses losses, Selection selection) {
  MemoryArchive archive;
  losses.serialise(archive);
  selection.serialise(archive);
  return archive.items();
}

}  // namespace

StateItems state_of_training() { return items_of({}, Selection({}, {})); }

void StepLosses::add(double loss) {
  sum += loss;
  ++count;
  running = std::isfinite(running) ? 0.95 * running + 0.05 * loss : loss;
}

void StepLosses::serialise(Archive& archive) {
  archive.value("loss_sum", sum);
  archive.value("losses", count);
  archive.value("running_loss", running);
}

template <class S> Trainer<S>::Trainer(const LoadedExperiment& loaded, Session<S>& session, RunRecord& record,
                                       const RunOptions& options, RunObserver& observer, const Checkpoint<S>* from)
    : experiment_(loaded.experiment),
      session_(session),
      record_(record),
      options_(options),
      observer_(observer),
      recording_(record.recorder(), experiment_, *session.task, *session.network, *session.updater,
                 session.total_steps()),
      batches_(*session.task, Split::train, from ? from->step * experiment_.train.accumulate : 0,
               session.total_steps() * experiment_.train.accumulate, watchdog_),
      selection_(experiment_.train, quantities(session.metrics(), experiment_.record.lengths)),
      evaluated_at_(record.evaluated_before()),
      start_(Clock::now() -
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(record.seconds_before()))) {
  progress_.steps = session.total_steps();
  if (from) restore(*from);
}

template <class S> Trainer<S>::~Trainer() { watched_ = fmt::format("filling a batch after step {}", progress_.step); }

template <class S> RunSummary Trainer<S>::run() {
  record_.publish(progress_.step, status_);
  settle_networks();
  const Index period = session_.evaluation_period();
  // This is the state at the end unless something changes it. Until then, RunRecord::publish() writes "running".
  status_.state = "finished";
  if (progress_.step == 0) {
    if (const std::string block = session_.broken_block(); !block.empty())
      diverged(0, "the initial values of " + block + " are not all finite", nullptr, false);
    else
      record_maps();
  }
  bool stopped_early = stops_early();
  while (progress_.step < progress_.steps && !stopped_early && !has_diverged()) {
    if (stopped_by_signal()) break;
    if (options_.until > 0 && progress_.step >= options_.until) {
      stop(int(Exit::preempted), progress_.step == options_.until
                                     ? "stopped as requested by --until"
                                     : fmt::format("stopped because --until {} is already reached,", options_.until));
      break;
    }
    guard([&] {
      if (step() && (progress_.step % period == 0 || progress_.step == progress_.steps)) evaluate();
    });
    stopped_early = !has_diverged() && stops_early();
    if (!stopped_early && !has_diverged() && save_due()) save();
  }
  if (status_.state == "finished") guard([&] { complete(); });
  if (status_.state == "finished") guard([&] { finish_best(); });
  if (status_.message.empty())
    status_.message = fmt::format("{}{} in {:.1f} s", counted(progress_.step, "step"),
                                  stopped_early ? ", stopped early," : "", seconds_since(start_));
  record_.finish(progress_.step, status_);
  return {status_.state, status_.message, record_.directory(), status_.exit_code};
}

template <class S> bool Trainer<S>::stops_early() {
  const std::string reason = progress_.step < progress_.steps ? selection_.reason_to_stop() : "";
  if (reason.empty()) return false;
  observer_.note("stopping early: " + reason);
  record_.log("stopping early: " + reason);
  return true;
}

template <class S> bool Trainer<S>::step() {
  const auto start = Clock::now();
  const Index number = begun_ = progress_.step + 1;
  const auto next = [&](Index k) -> const Batch<S>& {
    const bool epoch_begins = (progress_.step * experiment_.train.accumulate + k) % session_.batches(Split::train) == 0;
    if (epoch_begins) session_.network->take_state();  // dropped: an epoch begins in the initial state
    return *(batch_ = &batches_.next());
  };
  watched_ = fmt::format("step {}", number);
  watchdog_.watch([&] { made_ = take_step(session_, number, recording_.norms_due(number), watch_, next); });
  const auto& [pass, norms] = made_;
  if (!std::isfinite(pass.loss) || !std::isfinite(norms.gradient) || !std::isfinite(norms.update)) {
    const std::string overflow = fmt::format("the loss is {} and the norm of the {} overflows", pass.loss,
                                             std::isfinite(norms.gradient) ? "update" : "gradient");
    const bool all_finite = std::isfinite(pass.loss) && session_.broken_block().empty();
    diverged(number, all_finite ? overflow : broken("the loss", pass.loss, *batch_), batch_,
             number > 1 || std::isfinite(pass.loss));
    return false;
  }
  reached(number);
  durations_.push_back(seconds_since(start));
  if (pass.weight > 0) losses_.add(pass.loss);
  progress_.loss = losses_.running;
  watch_.time(Phase::record, [&] { record_step(); });
  if (record_.recorder().unpublished() > most_unpublished) record_.publish(number, status_);
  progress_.seconds = seconds_since(start_);
  observer_.progress(progress_);
  return true;
}

template <class S> void Trainer<S>::reached(Index step) {
  progress_.step = step;
  progress_.epoch = session_.epochs(step * experiment_.train.accumulate);
}

template <class S> void Trainer<S>::record_step() {
  const Index number = progress_.step;
  if (recording_.step_due(number)) step_row();
  if (recording_.norms_due(number)) recording_.norms(number, made_.pass);
  if (recording_.maps_due(number)) record_maps();
}

template <class S> void Trainer<S>::step_row() {
  const Index number = progress_.step;
  const auto& [pass, norms] = made_;
  const double loss = pass.weight > 0 ? pass.loss : std::numeric_limits<double>::quiet_NaN();
  note_step_seconds();
  recording_.step({number, loss, pass.penalty, norms, session_.updater->rates(number), progress_.step_seconds});
  const std::pair<std::string, double> values[] = {
      {"steps", double(progress_.steps)}, {"epoch", progress_.epoch}, {"loss", loss},
      {"grad_norm", norms.gradient},      {"best", progress_.best},   {"seconds", seconds_since(start_)}};
  record_.progress(number, progress_.step_seconds, values);
}

template <class S> void Trainer<S>::complete() {
  const Index number = progress_.step;
  if (number == 0) return;
  if (agreed(recording_.has_evaluation_of(progress_.epoch)) == 0) evaluate();
  if (has_diverged()) return;
  recording_.end_after(number);
  if (begun_ == number && recording_.step_due(number)) step_row();
  if (agreed(recording_.maps_due(number)) != 0) record_maps();
}

template <class S> void Trainer<S>::record_maps() {
  watched_ = fmt::format("recording the maps after step {}", progress_.step);
  watchdog_.watch([&] {
    session_.network->refresh();
    if (const std::string broken = recording_.maps(progress_.step, *session_.network); !broken.empty()) {
      observer_.warning(broken);
      record_.log(broken);
    }
  });
}

template <class S> void Trainer<S>::note_step_seconds() {
  if (!durations_.empty()) progress_.step_seconds = median(std::exchange(durations_, {}));
}

template <class S> void Trainer<S>::record_timing() {
  if (timed_ == progress_.step) return;
  timed_ = progress_.step;
  recording_.timing(timed_, watch_.take());
}

template <class S> void Trainer<S>::restore(const Checkpoint<S>& from) {
  session_.network->restore(from.network);
  if (session_.network->model().carried_state()) session_.network->give_state(from.carried);
  session_.updater->restore(from.parts);
  best_ = from.best;
  MemoryArchive archive(from.parts.at("trainer"));
  losses_.serialise(archive);
  selection_.serialise(archive);
  status_.best_metric = progress_.best = selection_.best();
  status_.best_step = selection_.best_step();
  progress_.loss = losses_.running;
  saved_ = timed_ = from.step;
  reached(from.step);
}

template <class S> void Trainer<S>::settle_networks() {
  if (best_.values.empty())
    record_.remove_network("best");
  else
    record_.network("best", session_.network->layout(), best_, selection_.best_step());
  record_.remove_network("last");
  record_.remove_outcome();
}

template <class S> bool Trainer<S>::save_due() {
  const CheckpointOptions& checkpoint = experiment_.checkpoint;
  const bool asked = options_.save && options_.save->exchange(false);
  const bool late = checkpoint.minutes > 0 && seconds_since(saved_at_) > 60 * checkpoint.minutes;
  return progress_.step < progress_.steps &&
         (agreed(asked || late) != 0 || (checkpoint.every > 0 && progress_.step % checkpoint.every == 0));
}

/// Publishes the rows first, so that a checkpoint never counts rows that results.h5 lacks.
template <class S> void Trainer<S>::save() {
  record_timing();
  watch_.time(Phase::record, [&] {
    record_.publish(progress_.step, status_);
    Checkpoint<S> checkpoint{
        progress_.step, session_.network->state(), best_, session_.updater->state(), session_.network->carried(), {}};
    checkpoint.parts["trainer"] = items_of(losses_, selection_);
    record_.save(session_.network->layout(), std::move(checkpoint), experiment_.checkpoint);
  });
  saved_ = progress_.step;
  saved_at_ = Clock::now();
}

template <class S> bool Trainer<S>::stopped_by_signal() {
  const int number = signal();
  if (number != 0) stop(128 + number, fmt::format("stopped by signal {}", number));
  return number != 0;
}

template <class S> void Trainer<S>::stop(int exit_code, const std::string& reason) {
  if (progress_.step != saved_) save();
  status_.state = "preempted";
  status_.exit_code = exit_code;
  status_.message = fmt::format("{} after step {} of {}; resume with: stiefel resume {}", reason, progress_.step,
                                progress_.steps, shell_word(record_.directory().string()));
}

template <class S> template <class F> void Trainer<S>::guard(F&& work) {
  try {
    work();
  } catch (const Error& error) {
    if (error.code() != Exit::diverged) throw;
    const Index step = std::max(begun_, progress_.step);
    diverged(step, error.what(), batch_, step > 1);
  }
}

template <class S> std::string Trainer<S>::broken(std::string_view what, double loss, const Batch<S>& batch) {
  const double value = std::isnan(loss) ? std::numeric_limits<double>::quiet_NaN() : loss;
  const std::string in_batch = broken_number(batch, session_.task->shape()), block = session_.broken_block();
  if (!in_batch.empty()) return fmt::format("{} is {}; {}", what, value, in_batch);
  return fmt::format("{} is {}; the first block with a non-finite number is {}", what, value,
                     block.empty() ? "none" : block);
}

template <class S>
void Trainer<S>::diverged(Index step, const std::string& finding, const Batch<S>* batch, bool trained) {
  const std::string kept =
      batch ? fmt::format("the batch is in {}, the results up to step {} are kept",
                          RunFolder{record_.directory()}.network("diverged").string(), progress_.step)
            : fmt::format("the results up to step {} are kept", progress_.step);
  status_.state = "diverged";
  status_.exit_code = int(Exit::diverged);
  const bool data = batch && !broken_number(*batch, session_.task->shape()).empty();
  const char* advice = data ? "Correct the data, or the task that reads or makes them"
                       : trained
                           ? "Lower the learning rate or clip the gradient"
                           : "The network was not trained yet: correct its initial values, its options or the plugins";
  status_.message = fmt::format("diverged at step {}: {}; {}. {}", step, finding, kept, advice);
  if (saved_ > 0 && !data)
    status_.message +=
        fmt::format(", from the beginning or from step {}: stiefel resume {} KEY=VALUE --allow-change KEY", saved_,
                    shell_word(record_.directory().string()));
  if (batch) record_.diverged(session_.network->layout(), session_.network->state(), *batch, step);
}

template <class S> void Trainer<S>::overdue() {
  end_hanging(fmt::format("{} has not ended within train.step_limit = {} s: a plugin hangs, or the limit is too small",
                          watched_, experiment_.train.step_limit),
              int(Exit::plugin));
}

template <class S> void Trainer<S>::overdue(int signal, double seconds) {
  end_hanging(
      fmt::format("{} has not ended within {:.0f} s after signal {}: a plugin hangs", watched_, seconds, signal),
      128 + signal);
}

template <class S> void Trainer<S>::end_hanging(std::string message, int exit_code) {
  // The first rank waits for the others, so it is overdue as well. It alone can record why, before mpirun ends it.
  if (options_.ranks && !options_.ranks->first()) std::this_thread::sleep_for(std::chrono::seconds(3));
  if (const std::string run = record_.directory().string(); !run.empty())
    message += "; resume with: stiefel resume " + shell_word(run);
  end_in_any_case(exit_code);
  record_.fail(message, exit_code);
  say("stiefel: {}\n", message);
  std::_Exit(exit_code);
}

template <class S> RunSummary train(const LoadedExperiment& loaded, Session<S>& session, RunRecord& record,
                                    const RunOptions& options, RunObserver& observer, const Checkpoint<S>* from) {
  const RunRecord::ShownLog log(record, options.log);
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

template class Trainer<float>;
template class Trainer<double>;
template RunSummary train(const LoadedExperiment&, Session<float>&, RunRecord&, const RunOptions&, RunObserver&,
                          const Checkpoint<float>*);
template RunSummary train(const LoadedExperiment&, Session<double>&, RunRecord&, const RunOptions&, RunObserver&,
                          const Checkpoint<double>*);

}  // namespace stiefel
