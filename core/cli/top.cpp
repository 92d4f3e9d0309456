// `stiefel top DIR…`: the runs in some folders while they train, as a table that is redrawn, or as lines in a log.
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <langinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <span>
#include <sstream>
#include <thread>

#include "base/printable.hpp"
#include "base/say.hpp"
#include "results/analysis/progress_reader.hpp"
#include "results/analysis/run_data.hpp"
#include "sweep/sweep.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "cli/running.hpp"
#include "cli/table_text.hpp"
#include "cli/working.hpp"

namespace stiefel::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// Losses as a row of blocks, on a logarithmic scale if they range over more than a decade.
std::string sparkline(const std::vector<double>& losses, std::size_t width, bool unicode) {
  static constexpr std::array blocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array plain = {"_", ".", "-", "=", "+", "*", "%", "#"};
  if (losses.empty() || width == 0) return {};
  const auto [low, high] = std::minmax_element(losses.begin(), losses.end());
  const bool logarithmic = *low > 0 && *high > 10 * *low;
  std::vector<double> heights(std::min(width, losses.size()));
  for (std::size_t i = 0; i < heights.size(); ++i) {
    const std::size_t first = i * losses.size() / heights.size(),
                      end = std::max(first + 1, (i + 1) * losses.size() / heights.size());
    for (std::size_t k = first; k < end; ++k)
      heights[i] += (logarithmic ? std::log(losses[k]) : losses[k]) / double(end - first);
  }
  const auto [bottom, top] = std::minmax_element(heights.begin(), heights.end());
  std::string text;
  for (const double height : heights) {
    const auto level = std::size_t(*top > *bottom ? std::min(7.0, 8 * (height - *bottom) / (*top - *bottom)) : 0.0);
    text += unicode ? blocks[level] : plain[level];
  }
  return text;
}

std::string short_number(double value) { return std::isfinite(value) ? fmt::format("{:.4g}", value) : "-"; }

/// The runs in some folders, including new ones, and all planned runs of a sweep whose folder is given.
class Runs {
 public:
  explicit Runs(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  /// Reads what is new in as many runs as time allows. Returns whether that was all of them.
  bool update(Clock::time_point until = Clock::time_point::max()) {
    if (next_ == readers_.end()) {
      if (const auto begin = Clock::now(); begin >= search_at_) {
        for (const auto& found : find_runs(folders_))
          add(is_directory(found) ? found : proximate(absolute(found).parent_path()));
        for (const std::string& folder : folders_)
          if (std::filesystem::exists(std::filesystem::path(folder) / "runs.tsv")) add_planned(SweepFolder(folder));
        const auto end = Clock::now();
        search_at_ = end + std::max<Clock::duration>(std::chrono::seconds(5), 20 * (end - begin));
      }
      next_ = readers_.begin();
    }
    for (; next_ != readers_.end(); ++next_) {
      if (Clock::now() >= until) return false;
      next_->second.update();
    }
    return true;
  }
  /// The runs sorted by name (0), with running runs first (1), by the time left (2) or by the loss (3).
  std::vector<const ProgressReader*> sorted(int order) const {
    std::vector<const ProgressReader*> runs;
    for (const auto& item : readers_) runs.push_back(&item.second);
    const auto left = [](const ProgressReader* run) {
      return std::isfinite(run->seconds_left()) ? run->seconds_left() : 1e300;
    };
    const auto loss = [](const ProgressReader* run) {
      return std::isfinite(run->latest().loss) ? run->latest().loss : 1e300;
    };
    if (order == 1)
      std::stable_sort(runs.begin(), runs.end(),
                       [](auto* a, auto* b) { return (a->state() == "running") > (b->state() == "running"); });
    if (order == 2) std::stable_sort(runs.begin(), runs.end(), [&](auto* a, auto* b) { return left(a) < left(b); });
    if (order == 3) std::stable_sort(runs.begin(), runs.end(), [&](auto* a, auto* b) { return loss(a) < loss(b); });
    return runs;
  }
  std::string summary() const {
    std::map<std::string, int> counts;
    for (const auto& item : readers_) ++counts[item.second.state()];
    std::string text = counted(readers_.size(), "run");
    for (const auto& [state, count] : counts)
      text += fmt::format(", {} {}", count, state.empty() ? "not read yet" : state);
    return text + time_left(sorted(0));
  }
  /// The name of a run: NAME/ID and, in a sweep, its values.
  std::string name_of(const ProgressReader& run) const {
    const auto values = values_.find(weakly_canonical(run.run()).string());
    return (run.run().parent_path().filename() / run.run().filename()).string() +
           (values == values_.end() ? "" : " " + values->second);
  }
  bool running() const {
    return std::any_of(readers_.begin(), readers_.end(),
                       [](const auto& item) { return item.second.state() == "running"; });
  }

 private:
  void add(const std::filesystem::path& run) { readers_.try_emplace(weakly_canonical(run).string(), run); }
  void add_planned(const SweepFolder& sweep) {
    for (const SweepRun& run : sweep.sweep().runs) {
      add(sweep.run(run));
      values_[weakly_canonical(sweep.run(run)).string()] = sweep.values(run);
    }
  }

  std::vector<std::string> folders_;
  std::map<std::string, std::string> values_;  // by the path of a run
  std::map<std::string, ProgressReader> readers_;
  std::map<std::string, ProgressReader>::iterator next_ = readers_.end();  // the next one to read
  Clock::time_point search_at_ = Clock::now();
};

const std::vector<std::string> header{"run", "state", "step", "done", "train", "select", "steps/s", "left", "losses"};

/// The cells of one run, without its losses.
std::vector<std::string> cells(const Runs& runs, const ProgressReader& run) {
  const ProgressLine& latest = run.latest();
  const bool running = run.state() == "running", begun = latest.step >= 0;
  const double done = run.state() == "finished" ? 1 : double(latest.step) / double(latest.steps);
  return {runs.name_of(run),
          run.state(),
          begun ? std::to_string(latest.step) : "-",
          begun && latest.steps > 0 ? fmt::format("{:.0f}%", 100 * done) : "-",
          short_number(latest.loss),
          short_number(latest.best),
          running && latest.step_seconds > 0 ? rate_text(1 / latest.step_seconds) : "-",
          running ? duration_text(run.seconds_left()) : "-"};
}

TextTable table_of(const Runs& all, std::span<const ProgressReader* const> runs) {
  TextTable table{header, {false, false, true, true, true, true, true, true, false}, {}};
  for (const ProgressReader* run : runs) table.rows.push_back(cells(all, *run));
  return table;
}

void add_losses(TextTable& table, std::span<const ProgressReader* const> runs, std::size_t width, bool unicode) {
  for (std::size_t i = 0; i < runs.size(); ++i) table.rows[i].push_back(sparkline(runs[i]->losses(), width, unicode));
}

/// Replaces letters beyond ASCII by question marks, for terminals that know only ASCII.
std::string ascii(std::string_view text) {
  std::string result;
  for (std::size_t i = 0, length; i < text.size(); i += length) {
    length = std::max<std::size_t>(utf8_length(text, i), 1);
    result += length == 1 ? text[i] : '?';
  }
  return result;
}

/// A table that fits the width: names get what the numbers leave, and losses what the names leave.
TextTable fitting_table_of(const Runs& all, std::span<const ProgressReader* const> runs, std::size_t width,
                           bool unicode) {
  constexpr std::size_t shortest_name = 16, narrowest = 8, widest = 60, between = 2;
  TextTable table = table_of(all, runs);
  std::vector<std::size_t> widths;
  for (const std::string& title : header) widths.push_back(columns_of(title));
  for (auto& row : table.rows) {
    row[0] = unicode ? printable(row[0]) : ascii(printable(row[0]));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  const std::size_t names = widths[0],
                    numbers = std::accumulate(widths.begin() + 1, widths.end() - 1, between * (header.size() - 1));
  const std::size_t left = std::max(width, numbers + narrowest + shortest_name) - numbers,
                    name = std::min(names, left - narrowest);
  for (auto& row : table.rows) row[0] = shortened(row[0], name, unicode ? "…" : "~");
  add_losses(table, runs, std::min(left - name, widest), unicode);
  return table;
}

/// A terminal in full-screen mode. The destructor restores it.
class Screen {
 public:
  Screen() {
    if (!newterm(nullptr, stdout, stdin))
      throw Error("this terminal cannot be drawn on (TERM); use --once or pipe the output");
    cbreak(), noecho(), curs_set(0), keypad(stdscr, TRUE);
    coloured_ = !std::getenv("NO_COLOR") && has_colors();
    if (coloured_) {
      start_color(), use_default_colors();
      init_pair(1, COLOR_GREEN, -1), init_pair(2, COLOR_RED, -1);
    }
  }
  ~Screen() { endwin(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void line(int row, const std::string& text, attr_t attributes) const {
    attrset(attributes);
    mvaddstr(row, 0, text.c_str());
    attrset(A_NORMAL);
  }
  attr_t of_state(const std::string& state) const {
    if (!coloured_) return state == "running" ? A_BOLD : A_NORMAL;
    if (state == "running") return attr_t(COLOR_PAIR(1));
    return state == "failed" || state == "diverged" ? attr_t(COLOR_PAIR(2)) : A_NORMAL;
  }

 private:
  bool coloured_ = false;
};

/// The signal that ends the program, once the terminal is restored; 0: none.
std::atomic<int> ended_by{0};

int watch(Runs& runs, double interval, bool unicode) {
  static constexpr std::array orders = {"name", "state", "time left", "loss"};
  catch_signals([](int number) { ended_by = number; });
  const Screen screen;
  int order = 1, top = 0;
  Clock::time_point due = Clock::now();
  while (true) {
    // Reading is interrupted to answer keys, because there may be thousands of runs on a network file system.
    if (const auto now = Clock::now(); now >= due && runs.update(now + std::chrono::milliseconds(250)))
      due = now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(interval));
    const auto sorted = runs.sorted(order);
    const int count = int(sorted.size()), height = getmaxy(stdscr), width = getmaxx(stdscr),
              rows = std::max(height - 3, 0);
    top = std::clamp(top, 0, std::max(count - rows, 0));
    const std::span shown = std::span(sorted).subspan(std::size_t(top), std::size_t(std::min(rows, count - top)));
    const auto line = [&](int row, std::string_view text, attr_t attributes) {
      screen.line(row, cut(text, std::size_t(width)), attributes);
    };
    erase();
    line(0, runs.summary(), A_BOLD);
    std::istringstream text(aligned(fitting_table_of(runs, shown, std::size_t(width), unicode)));
    std::string row;
    for (int i = -1; std::getline(text, row); ++i)
      line(2 + i, row, i < 0 ? A_UNDERLINE : screen.of_state(shown[std::size_t(i)]->state()));
    line(height - 1,
         fmt::format("{}-{} of {}, by {}   q quit   s sort by {}   {} PgUp PgDn Home End", shown.empty() ? 0 : top + 1,
                     top + int(shown.size()), count, orders[std::size_t(order)],
                     orders[std::size_t(order + 1) % orders.size()], unicode ? "↑ ↓" : "Up Down"),
         A_DIM);
    refresh();
    timeout(int(std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now()).count())));
    const int key = getch();
    if (ended_by != 0) return 128 + ended_by;
    switch (key) {
      case ERR:
        if (!isatty(STDIN_FILENO)) return int(Exit::done);  // the terminal has hung up
        break;
      case 'q':
        return int(Exit::done);
      case 's':
        order = (order + 1) % int(orders.size());
        break;
      case KEY_UP:
        --top;
        break;
      case KEY_DOWN:
        ++top;
        break;
      case KEY_PPAGE:
        top -= rows;
        break;
      case KEY_NPAGE:
        top += rows;
        break;
      case KEY_HOME:
        top = 0;
        break;
      case KEY_END:
        top = count;
        break;
      default:
        break;
    }
  }
}

/// Prints a line for each run whose step or state has changed, until none is running.
int log_lines(Runs& runs, double interval) {
  std::map<std::string, std::string> said;
  while (true) {
    runs.update();
    for (const ProgressReader* run : runs.sorted(0)) {
      if (run->state() == "waiting") continue;
      const std::vector<std::string> row = cells(runs, *run);
      std::string line = row[0] + "  " + row[1];
      for (std::size_t i = 2; i < row.size(); ++i) line += fmt::format("  {} {}", header[i], row[i]);
      std::string& before = said[run->run().string()];
      if (line != before) fmt::print("{}\n", printable(line));
      before = line;
    }
    if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
    if (!runs.running()) return int(Exit::done);
    std::this_thread::sleep_for(std::chrono::duration<double>(interval));
  }
}

}  // namespace

int top_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("top", words);
  if (arguments.positional.empty()) throw Error("name folders with runs: stiefel top DIR...");
  std::setlocale(LC_CTYPE, "");
  const bool unicode = std::string(nl_langinfo(CODESET)) == "UTF-8";
  const bool terminal =
      choose_verbosity(false, true) == Verbosity::live && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
  const double interval = arguments.positive("--interval", terminal ? 1 : 30);
  Runs runs(arguments.positional);
  if (!terminal || arguments.has("--once")) {
    runs.update();
    if (runs.sorted(0).empty()) say("there are no runs in {}\n", fmt::join(arguments.positional, ", "));
  }
  if (arguments.has("--once")) {
    const auto sorted = runs.sorted(0);
    TextTable table = table_of(runs, sorted);
    add_losses(table, sorted, 24, unicode);
    fmt::print("{}", aligned(table));
    return int(Exit::done);
  }
  return terminal ? watch(runs, interval, unicode) : log_lines(runs, interval);
}

}  // namespace stiefel::cli
