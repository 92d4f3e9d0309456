// A terminal's line is rewritten at most ten times a second. A log gets one line per 30 s, without carriage returns.
#include "cli/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>
#include "base/printable.hpp"
#include "base/say.hpp"

namespace stiefel::cli {
namespace {

int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Verbosity choose_verbosity(bool quiet, bool progress) {
  if (quiet) return Verbosity::quiet;
  if (!progress) return Verbosity::notes;
  const char* term = std::getenv("TERM");
  const bool dumb = !term || std::strcmp(term, "dumb") == 0;
  return !dumb && isatty(STDERR_FILENO) ? Verbosity::live : Verbosity::plain;
}

std::string rate_text(double rate) {
  if (!(rate >= 999.5 && rate < 1e15)) return fmt::format("{:.3g}", rate);
  const double unit = std::pow(10, std::floor(std::log10(rate)) - 2);
  return fmt::format("{}", fmt::group_digits(std::int64_t(std::round(rate / unit) * unit)));
}

std::string progress_line(const Progress& p, int width) {
  const double fraction = double(p.step) / double(std::max<Index>(p.steps, 1));
  const double left = p.step > 0 ? p.seconds / double(p.step) * double(p.steps - p.step) : std::nan("");
  std::string line = fmt::format("{:3.0f}%  step {}/{}  loss {:.4g}", 100 * fraction, p.step, p.steps, p.loss);
  if (std::isfinite(p.best)) line += fmt::format("  best {:.4g}", p.best);
  if (p.seconds > 0) line += fmt::format("  {} steps/s", rate_text(double(p.step) / p.seconds));
  line += "  left " + duration_text(left);
  if (int(line.size()) > width - 1) line.resize(std::size_t(std::max(0, width - 1)));
  return line;
}

TerminalObserver::~TerminalObserver() { clear(); }

void TerminalObserver::clear() {
  if (std::exchange(shown_, false)) say("\r\x1b[K");
}

void TerminalObserver::print(const std::string& line) {
  clear();
  say("{}\n", printable_lines(line));
}

void TerminalObserver::note(const std::string& line) {
  if (verbosity_ >= Verbosity::notes) print(line);
}

void TerminalObserver::warning(const std::string& sentence) {
  if (verbosity_ >= Verbosity::quiet) print("warning: " + sentence);
}

void TerminalObserver::evaluation(const std::string& line) {
  constexpr int first_ones = 50;
  const auto now = Clock::now();
  if (verbosity_ != Verbosity::live && evaluations_ >= first_ones && now - evaluated_ < std::chrono::seconds(30))
    return;
  evaluated_ = now;
  note(line);
  if (++evaluations_ == first_ones && verbosity_ != Verbosity::live)
    note("from here on one evaluation every 30 s; log.txt in the run's folder has all");
}

void TerminalObserver::progress(const Progress& progress) {
  if (verbosity_ <= Verbosity::notes) return;
  const auto now = Clock::now();
  if (verbosity_ == Verbosity::live) {
    if (now - last_ < std::chrono::milliseconds(100)) return;
    say("\r\x1b[K{}", progress_line(progress, terminal_width()));
    shown_ = true;
  } else {
    if (now - begun_ < std::chrono::seconds(30) || now - last_ < std::chrono::seconds(30)) return;
    say("{}\n", progress_line(progress, 120));
  }
  last_ = now;
}

}  // namespace stiefel::cli
