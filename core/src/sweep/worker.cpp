// The loop of a worker: reap, stop, touch, fill.
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

#include "results/file_error.hpp"
#include "results/run_directory.hpp"
#include "sweep/child.hpp"
#include "sweep/halving.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto look_period = std::chrono::milliseconds(500), reap_period = std::chrono::milliseconds(20);

/// A run in work.
struct Child {
  pid_t process;
  std::size_t run;
  int place;
  RunLock claim;
  bool taken_away = false;  // its claim was taken over
};

/// Number of the signal that somebody outside stopped or killed the run with, or 0.
int stopped_by(int status) {
  const int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - 128;
  return number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGHUP ? number : 0;
}

class Worker {
 public:
  Worker(const SweepFolder& folder, const WorkerOptions& options, WorkerSignals& signals,
         const std::function<void(const std::string&)>& say)
      : folder_(folder),
        runs_(folder.sweep().runs),
        options_(options),
        signals_(signals),
        say_(say),
        shares_(options.jobs, options.threads),
        looks_(runs_.size()),
        given_up_(runs_.size(), false) {
    if (!options.only.empty()) only_ = std::size_t(&folder.find(options.only) - runs_.data());
  }

  int work();

 private:
  bool at_work_elsewhere() const;
  void look();
  bool ready(std::size_t run) const;
  void fill();
  bool start(std::size_t run, int place);
  std::vector<std::string> command(const RunLook& look, std::size_t run) const;
  void reap();
  void ended(const Child& child, int status);
  void stop_children();
  void touch_claims();
  void kill_all(int number) const {
    for (const Child& child : children_) ::kill(child.process, number);
  }
  void fail(std::size_t run, int exit_code, const std::string& message);
  int exit_code() const;
  std::string label(std::size_t run) const { return fmt::format("{} ({})", runs_[run].id, folder_.values(runs_[run])); }

  const SweepFolder& folder_;
  const std::vector<SweepRun>& runs_;
  const WorkerOptions& options_;
  WorkerSignals& signals_;
  const std::function<void(const std::string&)>& say_;
  CoreShares shares_;
  std::vector<RunLook> looks_;
  std::vector<Target> targets_;
  std::vector<bool> given_up_;  // for this worker: killed by somebody, or in use
  std::optional<std::size_t> only_;
  std::list<Child> children_;
  bool stopping_ = false, told_to_stop_ = false, cancelled_ = false;
  std::optional<Clock::time_point> first_signal_;
  Clock::time_point looked_{}, touched_ = Clock::now();
};

int Worker::work() {
  while (true) {
    reap();
    stop_children();
    if (Clock::now() - touched_ > std::chrono::duration_cast<Clock::duration>(options_.patience) / 6) touch_claims();
    if (signals_.save.exchange(false)) kill_all(SIGUSR1);
    if (Clock::now() - looked_ >= look_period) {
      cancelled_ = cancelled_ || fs::exists(folder_.cancelled());
      if (!stopping_ && !cancelled_) fill();
      looked_ = Clock::now();
      const bool last = stopping_ || cancelled_ || only_ || !at_work_elsewhere();
      if (children_.empty() && last) break;
    }
    std::this_thread::sleep_for(reap_period);
  }
  look();
  return exit_code();
}

/// Whether other workers hold runs: they may need this one, when they die or when a rung is complete.
bool Worker::at_work_elsewhere() const {
  for (std::size_t i = 0; i < runs_.size(); ++i)
    if (looks_[i].state == SweepState::running ||
        (!looks_[i].ended() && !living_owner(folder_.claim(runs_[i]) / "lock", options_.patience).empty()))
      return true;
  return false;
}

void Worker::look() {
  for (std::size_t i = 0; i < runs_.size(); ++i)
    if (!looks_[i].ended()) looks_[i] = look_at(folder_, runs_[i], options_.patience);
  targets_ = targets_of(folder_, looks_);
}

bool Worker::ready(std::size_t run) const {
  const RunLook& look = looks_[run];
  if (only_ && *only_ != run) return false;
  if (look.state != SweepState::waiting && look.state != SweepState::stopped) return false;
  const Target& target = targets_[run];
  return !given_up_[run] && !target.left_out && (target.step == 0 || look.step < target.step);
}

void Worker::fill() {
  std::vector<bool> taken(std::size_t(options_.jobs), false);
  for (const Child& child : children_) taken[std::size_t(child.place)] = true;
  auto place = std::ranges::find(taken, false);
  if (place == taken.end()) return;
  look();
  for (std::size_t run = 0; run < runs_.size() && place != taken.end(); ++run) {
    if (!ready(run) || !start(run, int(place - taken.begin()))) continue;
    place = std::find(place + 1, taken.end(), false);
  }
}

/// False when somebody else has it, or has just ended it.
bool Worker::start(std::size_t run, int place) {
  const fs::path claim = folder_.claim(runs_[run]), directory = folder_.run(runs_[run]);
  if (!living_owner(claim / "lock", options_.patience).empty()) return false;
  std::error_code error;
  for (const fs::path& needed : {claim, directory})
    if (fs::create_directories(needed, error); error) throw file_error("making", needed, error.value());
  try {
    RunLock lock(claim, options_.patience);
    if (!lock.lost_host().empty()) remove_lock_of(lock.lost_host(), directory);
    looks_[run] = look_at(folder_, runs_[run], options_.patience);  // only now is it certain that nobody else changes it
    if (!ready(run)) return false;
    const pid_t process = start_child(command(looks_[run], run), directory / "worker.log", shares_.of(place));
    children_.push_back({process, run, place, std::move(lock)});
    return true;
  } catch (const Error& busy) {
    if (busy.code() != Exit::in_use) throw;
    return false;
  }
}

std::vector<std::string> Worker::command(const RunLook& look, std::size_t run) const {
  std::vector<std::string> words;
  if (look.state == SweepState::waiting)
    words = {"run", folder_.config(runs_[run]).string(), "--output", folder_.runs().string()};
  else
    words = {"resume", folder_.run(runs_[run]).string()};
  words.insert(words.end(), {"--no-progress", "--threads", std::to_string(shares_.threads())});
  if (targets_[run].step > 0) words.insert(words.end(), {"--until", std::to_string(targets_[run].step)});
  if (!options_.data_directory.empty()) words.insert(words.end(), {"--data", options_.data_directory});
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
    if (found < 0) throw Error(fmt::format("a run was lost: {}", std::strerror(errno)), Exit::internal);
    ended(*child, status);
    child = children_.erase(child);  // gives the claim back
    looked_ = {};
  }
}

void Worker::ended(const Child& child, int status) {
  const std::size_t run = child.run;
  if (child.taken_away) {
    given_up_[run] = true;
    return say_(fmt::format("{} was taken over by another worker, because this one did not touch its claim in time", label(run)));
  }
  if (const int number = stopped_by(status)) {
    given_up_[run] = true;
    if (!stopping_ && !cancelled_)
      say_(fmt::format("{} was stopped by signal {}; `stiefel sweep resume` goes on with it", label(run), number));
    return;
  }
  const std::string said = last_line(folder_.run(runs_[run]) / "worker.log");
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return fail(run, int(Exit::plugin), fmt::format("crashed: signal {} ({}); it had said: {}", number, ::strsignal(number), said));
  }
  const int code = WEXITSTATUS(status);
  looks_[run] = look_at(folder_, runs_[run], options_.patience);
  if (looks_[run].state == SweepState::finished) return say_(fmt::format("{} finished: {}", label(run), looks_[run].message));
  if (code == int(Exit::in_use))
    given_up_[run] = true;
  else if (code == int(Exit::done) || (code == int(Exit::preempted) && looks_[run].step < targets_[run].step))
    fail(run, int(Exit::plugin), fmt::format("ended with exit code {} before it was finished, as if a plugin had ended it", code));
  else if (code != int(Exit::preempted))
    fail(run, code, said);
}

void Worker::fail(std::size_t run, int exit_code, const std::string& message) {
  record_failure(folder_, runs_[run], exit_code, message);
  say_(fmt::format("{} failed: {}", label(run), message));
  if (options_.fail_fast) stopping_ = true;
}

/// Once with a checkpoint; a second signal that is no echo of the first kills.
void Worker::stop_children() {
  if (signals_.stops > 0) {
    stopping_ = true;
    if (!first_signal_) {
      first_signal_ = Clock::now();
      signals_.stops = 1;
    } else if (signals_.stops > 1) {
      if (Clock::now() - *first_signal_ > std::chrono::seconds(1)) kill_all(SIGKILL);
      signals_.stops = 1;
    }
  }
  if ((!stopping_ && !cancelled_) || std::exchange(told_to_stop_, true)) return;
  kill_all(SIGTERM);
}

void Worker::touch_claims() {
  touched_ = Clock::now();
  for (Child& child : children_) {
    std::error_code not_there_yet;
    fs::last_write_time(folder_.run(runs_[child.run]) / "lock", fs::file_time_type::clock::now(), not_there_yet);
    if (child.taken_away || child.claim.touch()) continue;
    child.taken_away = true;
    ::kill(child.process, SIGKILL);
  }
}

int Worker::exit_code() const {
  if (signals_.stop != 0) return 128 + signals_.stop;
  bool left = false;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (only_ && *only_ != i) continue;
    if (looks_[i].state == SweepState::failed) return looks_[i].exit_code;
    const bool at_target = targets_[i].left_out || (only_ && targets_[i].step > 0 && looks_[i].step >= targets_[i].step);
    left = left || (looks_[i].state != SweepState::finished && !at_target);
  }
  return left ? int(Exit::preempted) : int(Exit::done);
}

}  // namespace

int work_on(const SweepFolder& folder, const WorkerOptions& options, WorkerSignals& signals,
            const std::function<void(const std::string&)>& say) {
  return Worker(folder, options, signals, say).work();
}

}  // namespace stiefel
