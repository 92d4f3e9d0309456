#include "host/process_state.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>

#include "base/printable.hpp"
#include "base/say.hpp"
#include "sdk/kernel/control_register.hpp"

extern char** environ;

namespace stiefel {
namespace {

/// Reads the umask from /proc, because umask() would have to set it, for all threads.
mode_t umask_now() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "Umask:" && status >> word) return mode_t(std::strtoul(word.c_str(), nullptr, 8));
  return 0;
}

std::size_t environment_now() {
  std::string all;
  for (char** variable = environ; variable && *variable; ++variable) (all += *variable) += '\n';
  return std::hash<std::string>()(all);
}

std::string c_locale() {
  const char* name = std::setlocale(LC_ALL, nullptr);
  return name ? name : "";
}

std::filesystem::path folder_now() {
  std::error_code gone;
  return std::filesystem::current_path(gone);
}

bool same_action(const struct sigaction& a, const struct sigaction& b) {
  constexpr int of_kernel = 0x04000000;  // SA_RESTORER, which every action has that was ever set
  return a.sa_handler == b.sa_handler && (a.sa_flags & ~of_kernel) == (b.sa_flags & ~of_kernel);
}

}  // namespace

std::set<int> open_descriptors() {
  std::set<int> all;
  DIR* folder = opendir("/proc/self/fd");
  if (!folder) return all;
  while (const dirent* entry = readdir(folder))
    if (entry->d_name[0] != '.' && std::atoi(entry->d_name) != dirfd(folder)) all.insert(std::atoi(entry->d_name));
  closedir(folder);
  return all;
}

ProcessState::ProcessState()
    : process_(getpid()),
      rounding_(fegetround()),
      traps_(fegetexcept()),
      flushing_(control() & zero_bits),
      folder_(folder_now()),
      mask_(umask_now()),
      c_locale_(c_locale()),
      environment_(environment_now()),
      descriptors_(open_descriptors()) {
  for (int number = 1; number < int(actions_.size()); ++number)
    if (sigaction(number, nullptr, &actions_[std::size_t(number)]) != 0) actions_[std::size_t(number)] = {};
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked_);
}

std::vector<std::string> ProcessState::changes() const {
  if (getpid() != process_) _exit(0);
  const ProcessState now;
  std::vector<std::string> changed, signals, closed;
  const auto add = [&](bool differs, const char* what) {
    if (differs) changed.emplace_back(what);
  };
  add(now.rounding_ != rounding_, "the rounding mode");
  add(now.flushing_ != flushing_, "how denormal numbers are computed (-ffast-math does)");
  add(now.traps_ != traps_, "which floating-point exceptions end the program");
  for (int number = 1; number < int(actions_.size()); ++number)
    if (!same_action(now.actions_[std::size_t(number)], actions_[std::size_t(number)]))
      signals.push_back(sigabbrev_np(number) ? fmt::format("SIG{}", sigabbrev_np(number)) : std::to_string(number));
  if (!signals.empty()) changed.push_back(fmt::format("the effect of the signal {}", fmt::join(signals, ", ")));
  bool masks_differ = false;
  for (int number = 1; number < int(actions_.size()); ++number)
    masks_differ |= sigismember(&now.blocked_, number) != sigismember(&blocked_, number);
  add(masks_differ, "which signals are blocked");
  add(now.folder_ != folder_, "the current folder");
  add(now.mask_ != mask_, "the umask");
  add(now.c_locale_ != c_locale_ || now.locale_ != locale_, "the locale");
  add(now.environment_ != environment_, "the environment");
  for (const int descriptor : descriptors_)
    if (!now.descriptors_.contains(descriptor)) closed.push_back(std::to_string(descriptor));
  if (!closed.empty())
    changed.push_back(fmt::format("files of the program, closing the descriptor {}", fmt::join(closed, ", ")));
  return changed;
}

void ProcessState::restore() const {
  fesetround(rounding_);
  fedisableexcept(FE_ALL_EXCEPT);
  feenableexcept(traps_);
  set_zero_bits(flushing_);
  for (int number = 1; number < int(actions_.size()); ++number) {
    const struct sigaction& action = actions_[std::size_t(number)];
    struct sigaction now {};
    if (sigaction(number, nullptr, &now) == 0 && !same_action(now, action)) sigaction(number, &action, nullptr);
  }
  pthread_sigmask(SIG_SETMASK, &blocked_, nullptr);
  std::error_code gone;
  if (folder_now() != folder_) std::filesystem::current_path(folder_, gone);
  if (umask_now() != mask_) umask(mask_);
  if (std::locale() != locale_) std::locale::global(locale_);
  if (c_locale() != c_locale_) std::setlocale(LC_ALL, c_locale_.c_str());
}

OutputAside::OutputAside() {
  std::fflush(stdout);
  output_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (output_ >= 0) dup2(STDERR_FILENO, STDOUT_FILENO);
}

OutputAside::~OutputAside() {
  std::cout.flush();
  std::fflush(stdout);
  if (output_ < 0) return;
  dup2(output_, STDOUT_FILENO);
  close(output_);
}

Confined::~Confined() {
  const std::vector<std::string> changed = before_.changes();
  if (changed.empty()) return;
  before_.restore();
  const std::vector<std::string> left = before_.changes();
  say("warning: {} changed {} {}, {}; correct {}: `stiefel check` tests for it\n", printable(plugin_),
      fmt::join(changed, ", "), doing_,
      left.empty() ? "which was put back" : fmt::format("and {} could not be put back", fmt::join(left, ", ")),
      printable(file_.string()));
}

}  // namespace stiefel
