// Progress of a run on stderr: a line that is rewritten on a terminal, an occasional plain line elsewhere.
#pragma once

#include <chrono>
#include <string>

#include "training/run.hpp"

namespace stiefel::cli {

/// silent: nothing; quiet: warnings; notes: all but progress; plain: also a line of progress every 30 s; live: a line
/// of progress that is rewritten.
enum class Verbosity { silent, quiet, notes, plain, live };

/// live if stderr is a terminal that can rewrite a line, else plain; quiet or notes if the arguments ask for it.
Verbosity choose_verbosity(bool quiet, bool progress);

class TerminalObserver final : public RunObserver {
 public:
  explicit TerminalObserver(Verbosity verbosity) : verbosity_(verbosity) {}
  ~TerminalObserver() override;
  void note(const std::string& line) override;
  void warning(const std::string& sentence) override;
  /// Prints every evaluation on a terminal; elsewhere the first 50, then one every 30 s.
  void evaluation(const std::string& line) override;
  void progress(const Progress& progress) override;

 private:
  void clear();
  void print(const std::string& line);

  using Clock = std::chrono::steady_clock;
  Verbosity verbosity_;
  bool shown_ = false;
  int evaluations_ = 0;
  Clock::time_point evaluated_;
  Clock::time_point last_ = Clock::now() - std::chrono::hours(1), begun_ = Clock::now();
};

/// Three digits: "0.0123", "98.7", "1,220".
std::string rate_text(double rate);
/// One line about the progress of the run, at most `width` columns.
std::string progress_line(const Progress& progress, int width);

}  // namespace stiefel::cli
