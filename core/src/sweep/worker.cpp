// The loop of a worker: reap, stop, touch, fill. A run is settled if it stays as it is until its target changes; else
// it is ready if this worker could start it now, and awaited if it may still need this worker.
#include "sweep/worker.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <optional>
#include <thread>
#include <utility>

#include "base/file_error.hpp"
#include "record/run_directory.hpp"
#include "record/run_folder.hpp"
#include "sweep/child.hpp"
#include "sweep/halving.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto look_period = std::chrono::milliseconds(500), reap_period = std::chrono::milliseconds(20);

/// A run that this worker has started.
struct Child {
  pid_t process;
  std::size_t run;
  int place;
  RunLock claim;
  std::uintmax_t log_begin;  // size of worker.log when it started
  Index target;              // step that it must reach; 0: its end
  bool taken_away = false;   // another worker has taken over its claim
};

/// The signal with which someone stopped or killed the run; 0 if it ended or crashed otherwise.
int stopped_by(int status) {
  const int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - 128;
  return number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGXCPU ? number
                                                                                                             : 0;
}

class Worker {
 public:
  Worker(const SweepFolder& folder, const WorkerOptions& options, StopSignals& signals,
         const std::function<void(const std::string&)>& say)
      : folder_(folder),
        runs_(folder.sweep().runs),
        options_(options),
        signals_(signals),
        say_(say),
        patience_(by_watching(options.patience)),
        shares_(options.jobs, options.threads),
        looks_(runs_.size()),
        rungs_(folder),
        given_up_(runs_.size(), false) {
    aim();
    for (std::size_t run = 0; run < runs_.size(); ++run) given_up_[run] = !wanted(run);
    if (!options.only.empty()) only_ = std::size_t(&folder.find(options.only) - runs_.data());
  }

  int work();

 private:
  bool wanted(std::size_t run) const { return options_.among.empty() || options_.among.contains(runs_[run].id); }
  bool nothing_left();
  bool awaited(std::size_t run);
  std::string owner(std::size_t run) const;
  void look(std::size_t run) { looks_[run] = look_at(folder_, runs_[run], patience_); }
  void look_at_others();
  void aim();
  bool settled(std::size_t run) const;
  bool ready(std::size_t run) const;
  bool to_try_again(std::size_t run) const;
  void fill();
  bool start(std::size_t run, int place);
  fs::path place_of_start() const;
  std::vector<std::string> command(const RunLook& look, std::size_t run) const;
  void reap();
  void ended(const Child& child, int status);
  void stop_children();
  void touch_claims_when_due();
  void kill_all(int number) const {
    for (const Child& child : children_) ::kill(child.process, number);
  }
  void fail(std::size_t run, int exit_code, const std::string& message);
  int exit_code();
  std::string rest();
  std::string label(std::size_t run) const { return fmt::format("{} ({})", runs_[run].id, folder_.values(runs_[run])); }

  const SweepFolder& folder_;
  const std::vector<SweepRun>& runs_;
  const WorkerOptions& options_;
  StopSignals& signals_;
  const std::function<void(const std::string&)>& say_;
  const LockPatience patience_;
  CoreShares shares_;
  std::vector<RunLook> looks_;
  Rungs rungs_;
  std::vector<Target> targets_;
  std::vector<bool> given_up_;  // not to be started here: failed, stopped, in use, needs another CPU, or not wanted
  std::optional<std::size_t> only_, ended_before_;  // ended_before_: runs that had ended before this worker's first
  std::list<Child> children_;
  bool stopping_ = false, told_to_stop_ = false, cancelled_ = false, in_use_ = false;
  Clock::time_point looked_{}, touched_ = Clock::now(), busy_ = Clock::now();  // busy_: when any worker last had a run
  const Clock::time_point begin_ = Clock::now();
};

int Worker::work() {
  while (true) {
    reap();
    stop_children();
    touch_claims_when_due();
    if (signals_.save.exchange(false)) kill_all(SIGUSR1);
    if (Clock::now() - looked_ >= look_period) {
      cancelled_ = cancelled_ || fs::exists(folder_.cancelled());
      if (!stopping_ && !cancelled_) fill();
      looked_ = Clock::now();
      if (children_.empty() && (stopping_ || cancelled_ || nothing_left())) break;
    }
    std::this_thread::sleep_for(reap_period);
  }
  look_at_others();
  return exit_code();
}

/// Whether no run is awaited. Runs of other workers are, because those may die or complete a rung. With `only`, the run
/// is left to its owner once that has shown that it is alive.
bool Worker::nothing_left() {
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    if ((only_ && *only_ != run) || targets_[run].left_out || settled(run) || !awaited(run)) continue;
    if (!only_ || Clock::now() - begin_ <= 2 * options_.patience) return false;
    in_use_ = true;
    say_(fmt::format("{} is left to {}", label(run), owner(run)));
  }
  return true;
}

/// Whether a run that is not settled may need this worker: it does unless it was given up. With halving, another worker
/// may still complete a rung with a run that was given up, so that is awaited until no worker has been busy for a time.
bool Worker::awaited(std::size_t run) {
  if (given_up_[run] && (only_ || !folder_.sweep().halving)) return false;
  if (!given_up_[run] || !owner(run).empty()) busy_ = Clock::now();
  return Clock::now() - busy_ <= options_.patience;
}

/// Names the worker that claims a run, or else the process that runs it; empty if there is none.
std::string Worker::owner(std::size_t run) const {
  const std::string worker = living_owner(RunFolder{folder_.claim(runs_[run])}.lock(), patience_);
  const std::string process = living_owner(RunFolder{folder_.run(runs_[run])}.lock(), patience_);
  return worker.empty() ? process : worker;
}

/// Whether a run has ended for good, or has stopped at its target.
bool Worker::settled(std::size_t run) const {
  const RunLook& look = looks_[run];
  return (look.ended() && !to_try_again(run)) ||
         (look.state == SweepState::stopped && targets_[run].step > 0 && look.step >= targets_[run].step);
}

void Worker::look_at_others() {
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    if (settled(run) || (only_ && *only_ != run && !folder_.sweep().halving)) continue;
    look(run);
    touch_claims_when_due();
  }
  aim();
}

void Worker::aim() {
  targets_ = rungs_.targets(looks_);
  if (options_.until == 0) return;
  for (Target& target : targets_)
    if (target.step == 0 || target.step > options_.until) target.step = options_.until;
}

bool Worker::ready(std::size_t run) const {
  return looks_[run].state != SweepState::running && !targets_[run].left_out && !settled(run);
}

/// Whether to try a run again that lacked something: once by each worker, but not with halving, because other workers
/// may have compared the runs without it already.
bool Worker::to_try_again(std::size_t run) const {
  return looks_[run].lacked_something() && !given_up_[run] && !folder_.sweep().halving;
}

void Worker::fill() {
  std::vector<bool> taken(std::size_t(options_.jobs), false);
  for (const Child& child : children_) taken[std::size_t(child.place)] = true;
  auto place = std::ranges::find(taken, false);
  if (place == taken.end()) return;
  if (folder_.sweep().halving) look_at_others();
  for (std::size_t run = 0; run < runs_.size() && place != taken.end(); ++run) {
    touch_claims_when_due();
    if (!start(run, int(place - taken.begin()))) continue;
    place = std::find(place + 1, taken.end(), false);
  }
}

/// Claims and starts a run. Returns false if it is not to be done now, or if someone else has it or has just ended it.
bool Worker::start(std::size_t run, int place) {
  if (given_up_[run] || settled(run) || (only_ && *only_ != run) || !owner(run).empty()) return false;
  const fs::path claim = folder_.claim(runs_[run]), directory = folder_.run(runs_[run]), log = directory / "worker.log";
  look(run);
  if (!ready(run)) return false;
  make_folder(claim);
  make_folder(directory);
  try {
    RunLock lock(claim, patience_);
    remove_lost_lock(RunFolder{directory}.lock(), patience_);
    look(run);  // only now is it certain that no other process changes it
    if (!ready(run)) return false;
    if (looks_[run].broke() && forget_failure(folder_, runs_[run])) look(run);
    const std::uintmax_t log_begin = fs::exists(log) ? fs::file_size(log) : 0;
    const pid_t process =
        start_child({command(looks_[run], run), runs_[run].id, log, place_of_start()}, shares_.of(place));
    children_.push_back({process, run, place, std::move(lock), log_begin, targets_[run].step});
    return true;
  } catch (const Error& busy) {
    if (busy.code() != Exit::in_use) throw;
    return false;
  }
}

/// The folder in which the sweep was planned, if it is not the current one and still there; else empty.
fs::path Worker::place_of_start() const {
  std::error_code none;
  const fs::path& planned = folder_.sweep().working_directory;
  return fs::is_directory(planned, none) && !fs::equivalent(planned, fs::current_path(), none) ? planned : fs::path();
}

std::vector<std::string> Worker::command(const RunLook& look, std::size_t run) const {
  std::vector<std::string> words;
  const bool elsewhere = !place_of_start().empty();
  const auto path = [&](const fs::path& own) { return elsewhere ? fs::absolute(own).string() : own.string(); };
  if (look.state == SweepState::waiting || !has_saved(folder_.run(runs_[run])))
    words = {"run", path(folder_.config(runs_[run])), "--output", path(folder_.runs())};
  else
    words = {"resume", path(folder_.run(runs_[run]))};
  words.insert(words.end(), {"--no-progress", "--threads", std::to_string(shares_.threads())});
  if (targets_[run].step > 0) words.insert(words.end(), {"--until", std::to_string(targets_[run].step)});
  std::error_code none;
  if (!options_.data_directory.empty())
    words.insert(words.end(), {"--data", path(options_.data_directory)});
  else if (const fs::path& planned = folder_.sweep().data_directory; fs::is_directory(planned, none))
    words.insert(words.end(), {"--data", planned.string()});
  return words;
}

void Worker::reap() {
  for (auto child = children_.begin(); child != children_.end();) {
    int status = 0;
    const pid_t found = ::waitpid(child->process, &status, WNOHANG);
    if (found == 0 || (found < 0 && errno == EINTR)) {
      ++child;
      continue;
    }
    if (found < 0) throw Error(fmt::format("lost track of a run: {}", std::strerror(errno)), Exit::internal);
    ended(*child, status);
    child = children_.erase(child);  // releases the claim
    looked_ = {};
    busy_ = Clock::now();
  }
}

void Worker::ended(const Child& child, int status) {
  const std::size_t run = child.run;
  if (child.taken_away) {
    given_up_[run] = true;
    return say_(fmt::format("{} was taken over by another worker, because this one did not renew its claim in time",
                            label(run)));
  }
  if (const int number = stopped_by(status)) {
    given_up_[run] = true;
    if (!stopping_ && !cancelled_)
      say_(fmt::format("{} was stopped by signal {}; continue it with `stiefel sweep resume`", label(run), number));
    return;
  }
  const std::string said = last_message(folder_.run(runs_[run]) / "worker.log", child.log_begin);
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return fail(run, int(Exit::plugin),
                fmt::format("crashed: signal {} ({}); its last message: {}", number, ::strsignal(number), said));
  }
  const int code = WEXITSTATUS(status);
  look(run);
  if (looks_[run].state == SweepState::finished)
    return say_(fmt::format("{} finished: {}{}", label(run), looks_[run].message, rest()));
  if (code == int(Exit::in_use)) {
    given_up_[run] = true;
    say_(fmt::format("{} is skipped: {}", label(run), said));
  } else if (code == int(Exit::done) || code == int(Exit::preempted)) {
    // targets_[run] may be that of the next rung by now.
    if (looks_[run].state == SweepState::stopped && child.target > 0 && looks_[run].step >= child.target)
      rungs_.require_metric(runs_[run]);
    else
      fail(run, int(Exit::plugin),
           fmt::format("ended with exit code {} before it was finished, as if a plugin had called exit()", code));
  } else {
    fail(run, code, code == int(Exit::diverged) ? looks_[run].message : said);
  }
}

/// Says what is left, and how long it takes at the speed of all workers so far. Empty for a single run, and with
/// halving, which leaves runs out.
std::string Worker::rest() {
  if (only_ || folder_.sweep().halving) return {};
  look_at_others();
  std::size_t ended = 0, left = 0;
  for (std::size_t run = 0; run < runs_.size(); ++run)
    if (wanted(run)) ++(looks_[run].ended() ? ended : left);
  if (!ended_before_) ended_before_ = ended - 1;
  if (left == 0) return {};
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  return fmt::format("; {} left, about {}", counted(std::int64_t(left), "run"),
                     duration_text(seconds * double(left) / double(ended - *ended_before_)));
}

void Worker::fail(std::size_t run, int exit_code, const std::string& message) {
  record_failure(folder_, runs_[run], exit_code, message);
  given_up_[run] = true;
  say_(fmt::format("{}{}: {}", label(run), exit_code == int(Exit::diverged) ? "" : " failed", message));
  if (options_.fail_fast) stopping_ = true;
}

/// Stops the runs, once, with a checkpoint. A second signal that is not an echo of the first kills them.
void Worker::stop_children() {
  stopping_ = stopping_ || signals_.stop != 0;
  if (signals_.insisted.exchange(false)) kill_all(SIGKILL);
  if ((!stopping_ && !cancelled_) || std::exchange(told_to_stop_, true)) return;
  kill_all(SIGTERM);
}

/// Touches locks often enough that other hosts see it several times before they lose their patience. Kills a run whose
/// claim was taken over.
void Worker::touch_claims_when_due() {
  if (Clock::now() - touched_ <= Clock::duration(options_.patience) / 6) return;
  touched_ = Clock::now();
  for (Child& child : children_) {
    if (child.taken_away) continue;
    child.taken_away = !child.claim.held();
    if (child.taken_away) {
      ::kill(child.process, SIGKILL);
      continue;
    }
    for (const fs::path& directory : {folder_.claim(runs_[child.run]), folder_.run(runs_[child.run])})
      touch(RunFolder{directory}.lock());
  }
}

int Worker::exit_code() {
  if (signals_.stop != 0) return 128 + signals_.stop;
  if (in_use_) return int(Exit::in_use);
  const std::string none_continues = rungs_.why_none_continues(looks_);
  if (!none_continues.empty()) say_(none_continues);
  bool left = false;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if ((only_ && *only_ != i) || !wanted(i)) continue;
    if (looks_[i].broke()) return looks_[i].exit_code;
    const bool at_target =
        targets_[i].left_out || (only_ && targets_[i].step > 0 && looks_[i].step >= targets_[i].step);
    left = left || (looks_[i].state != SweepState::finished && !at_target);
  }
  if (!none_continues.empty()) return int(Exit::diverged);
  return left ? int(Exit::preempted) : int(Exit::done);
}

}  // namespace

int work_on(const SweepFolder& folder, const WorkerOptions& options, StopSignals& signals,
            const std::function<void(const std::string&)>& say) {
  return Worker(folder, options, signals, say).work();
}

}  // namespace stiefel
