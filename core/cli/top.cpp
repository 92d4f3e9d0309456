// `stiefel top DIR…`: the runs below some folders while they go on, as a table that is drawn again, or as lines in a log.
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <fmt/format.h>
#include <langinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <clocale>
#include <cmath>
#include <ctime>
#include <map>
#include <thread>

#include <printable.hpp>
#include <results/progress_reader.hpp>
#include <results/run_data.hpp>

#include "command_table.hpp"
#include "commands.hpp"
#include "progress.hpp"
#include "table_text.hpp"

namespace stiefel::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// The latest losses as a row of blocks, on a logarithmic scale when they range over more than a decade.
std::string sparkline(const std::vector<double>& losses, std::size_t width, bool unicode) {
  static constexpr std::array blocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array plain = {"_", ".", "-", "=", "+", "*", "%", "#"};
  if (losses.empty() || width == 0) return {};
  const auto [low, high] = std::minmax_element(losses.begin(), losses.end());
  const bool logarithmic = *low > 0 && *high > 10 * *low;
  std::vector<double> heights(std::min(width, losses.size()));
  for (std::size_t i = 0; i < heights.size(); ++i) {
    const std::size_t first = i * losses.size() / heights.size(), end = std::max(first + 1, (i + 1) * losses.size() / heights.size());
    for (std::size_t k = first; k < end; ++k) heights[i] += (logarithmic ? std::log(losses[k]) : losses[k]) / double(end - first);
  }
  const auto [bottom, top] = std::minmax_element(heights.begin(), heights.end());
  std::string text;
  for (const double height : heights) {
    const auto level = std::size_t(*top > *bottom ? std::min(7.0, 8 * (height - *bottom) / (*top - *bottom)) : 0.0);
    text += unicode ? blocks[level] : plain[level];
  }
  return text;
}

std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.4g}", value) : "–"; }

/// Runs that are found, those that have come since included.
class Runs {
 public:
  explicit Runs(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  void update() {
    if (Clock::now() >= search_at_) {
      for (const auto& path : find_runs(folders_)) readers_.try_emplace(path.string(), path);
      search_at_ = Clock::now() + std::chrono::seconds(5);
    }
    for (auto& [name, reader] : readers_) reader.update();
  }
  /// By name, or those that run first, or by what is left.
  std::vector<const ProgressReader*> sorted(int order) const {
    std::vector<const ProgressReader*> runs;
    for (const auto& item : readers_) runs.push_back(&item.second);
    const auto left = [](const ProgressReader* run) { return std::isfinite(run->seconds_left()) ? run->seconds_left() : 1e300; };
    const auto loss = [](const ProgressReader* run) { return std::isfinite(run->latest().loss) ? run->latest().loss : 1e300; };
    if (order == 1)
      std::stable_sort(runs.begin(), runs.end(), [](auto* a, auto* b) { return (a->state() == "running") > (b->state() == "running"); });
    if (order == 2) std::stable_sort(runs.begin(), runs.end(), [&](auto* a, auto* b) { return left(a) < left(b); });
    if (order == 3) std::stable_sort(runs.begin(), runs.end(), [&](auto* a, auto* b) { return loss(a) < loss(b); });
    return runs;
  }
  std::string summary() const {
    std::map<std::string, int> counts;
    for (const auto& item : readers_) ++counts[item.second.state()];
    std::string text = fmt::format("{} runs", readers_.size());
    for (const auto& [state, count] : counts) text += fmt::format(", {} {}", count, state);
    return text;
  }
  bool running() const {
    return std::any_of(readers_.begin(), readers_.end(), [](const auto& item) { return item.second.state() == "running"; });
  }

 private:
  std::vector<std::string> folders_;
  std::map<std::string, ProgressReader> readers_;
  Clock::time_point search_at_ = Clock::now();
};

/// One run; `width` are the characters of the sparkline.
std::vector<std::string> cells(const ProgressReader& run, std::size_t width, bool unicode) {
  const ProgressLine& latest = run.latest();
  const bool running = run.state() == "running", begun = latest.step >= 0;
  const std::string name = (run.run().parent_path().filename() / run.run().filename()).string();
  return {name,
          run.state(),
          begun ? std::to_string(latest.step) : "–",
          begun && latest.steps > 0 ? fmt::format("{:.0f} %", 100.0 * double(latest.step) / double(latest.steps)) : "–",
          number(latest.loss),
          number(latest.best),
          running && latest.step_seconds > 0 ? fmt::format("{:.3g}", 1 / latest.step_seconds) : "–",
          running ? duration_text(run.seconds_left()) : "–",
          sparkline(run.losses(), width, unicode)};
}

const std::vector<std::string> header{"run", "state", "step", "done", "loss", "best", "steps/s", "left", "losses"};

TextTable table_of(const std::vector<const ProgressReader*>& runs, std::size_t width, bool unicode) {
  TextTable table{header, {false, false, true, true, true, true, true, true, false}, {}};
  for (const ProgressReader* run : runs) table.rows.push_back(cells(*run, width, unicode));
  return table;
}

/// A terminal in the mode that draws whole screens; given back in any case.
class Screen {
 public:
  Screen() {
    if (!newterm(nullptr, stdout, stdin)) throw Error("this terminal cannot be drawn on (TERM); use --once or pipe the output");
    cbreak(), noecho(), curs_set(0), keypad(stdscr, TRUE), use_default_colors_if_any();
  }
  ~Screen() { endwin(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  static void line(int row, const std::string& text, attr_t attributes = A_NORMAL) {
    attrset(attributes);
    mvaddstr(row, 0, text.c_str());
    attrset(A_NORMAL);
  }
  static attr_t of_state(const std::string& state) {
    if (!has_colors()) return state == "running" ? A_BOLD : A_NORMAL;
    if (state == "running") return attr_t(COLOR_PAIR(1));
    return state == "failed" || state == "diverged" ? attr_t(COLOR_PAIR(2)) : A_NORMAL;
  }

 private:
  static void use_default_colors_if_any() {
    if (std::getenv("NO_COLOR") || !has_colors()) return;
    start_color(), use_default_colors();
    init_pair(1, COLOR_GREEN, -1), init_pair(2, COLOR_RED, -1);
  }
};

/// `text` in at most `width` characters of one column.
std::string cut(const std::string& text, int width) {
  std::string result;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80 && width-- == 0) break;
    result += c;
  }
  return result;
}

int watch(Runs& runs, double interval, bool unicode) {
  static constexpr std::array orders = {"name", "state", "time left", "loss"};
  const Screen screen;
  int order = 1, top = 0;
  while (true) {
    runs.update();
    const auto sorted = runs.sorted(order);
    const int height = getmaxy(stdscr), width = getmaxx(stdscr), shown = std::max(height - 3, 0);
    top = std::clamp(top, 0, std::max(int(sorted.size()) - shown, 0));
    // What is left beside the other columns, which take about 90 characters, is the sparkline's.
    TextTable table = table_of(sorted, std::size_t(std::clamp(width - 90, 8, 60)), unicode);
    const std::string text = aligned(table);
    erase();
    Screen::line(0, cut(runs.summary(), width), A_BOLD);
    std::size_t begin = 0;
    for (int row = -1; begin < text.size(); ++row) {
      const std::size_t end = text.find('\n', begin);
      const int place = row < 0 ? 1 : 2 + row - top;
      if (row < 0 || (row >= top && place < height - 1))
        Screen::line(place, cut(text.substr(begin, end - begin), width),
                     row < 0 ? A_UNDERLINE : Screen::of_state(sorted[std::size_t(row)]->state()));
      begin = end + 1;
    }
    Screen::line(height - 1, cut(fmt::format("q quit   s sort by {}   ↑ ↓ PgUp PgDn", orders[std::size_t(order + 1) % 4]), width), A_DIM);
    refresh();
    timeout(int(interval * 1000));
    switch (getch()) {
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
        top -= shown;
        break;
      case KEY_NPAGE:
        top += shown;
        break;
      default:
        break;
    }
  }
}

/// A line for each run whose step or state has changed, until none is running.
int log_lines(Runs& runs, double interval) {
  std::map<std::string, std::string> said;
  while (true) {
    runs.update();
    for (const ProgressReader* run : runs.sorted(0)) {
      const std::vector<std::string> row = cells(*run, 0, false);
      std::string line = row[0] + "  " + row[1];
      for (std::size_t i = 2; i + 1 < row.size(); ++i) line += fmt::format("  {} {}", header[i], row[i]);
      std::string& before = said[run->run().string()];
      if (line != before) fmt::print("{}\n", printable(line));
      before = line;
    }
    std::fflush(stdout);
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
  const bool terminal = choose_verbosity(false, true) == Verbosity::live && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
  const double interval = arguments.positive("--interval", terminal ? 1 : 30);
  Runs runs(arguments.positional);
  if (arguments.has("--once")) {
    runs.update();
    fmt::print("{}", aligned(table_of(runs.sorted(0), 24, unicode)));
    return int(Exit::done);
  }
  return terminal ? watch(runs, interval, unicode) : log_lines(runs, interval);
}

}  // namespace stiefel::cli
