// The lines of a conformance report and their text.
#include "conformance/report.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/printable.hpp"

namespace stiefel::conformance {

namespace {
constexpr std::size_t worst_entries = 5;

double difference(const Mismatch& m) {
  if (m.got == m.expected) return 0;  // also where both are Inf
  const double d = std::abs(m.got - m.expected);
  return std::isfinite(d) ? d : std::numeric_limits<double>::infinity();
}

std::string text_of(Place place) {
  return place.rows > 0 ? fmt::format("{}, {}", place.index % place.rows, place.index / place.rows)
                        : fmt::format("{}", place.index);
}

std::string describe(const Case& at) {
  std::string text = at.scalar;
  if (!at.shape.empty()) text += (text.empty() ? "" : ", ") + at.shape;
  if (at.seed != 0) text += fmt::format("{}seed {}", text.empty() ? "" : ", ", at.seed);
  return text;
}
}  // namespace

void Comparison::add(std::string_view block, Place place, double got, double expected) {
  const Mismatch entry{std::string(), place, got, expected};
  const double d = difference(entry);
  largest_ = std::max(largest_, d);
  ++entries_;
  got_got_ += got * got;
  got_expected_ += got * expected;
  expected_expected_ += expected * expected;
  if (std::isfinite(expected)) scale_ = std::max(scale_, std::abs(expected));
  if (d == 0 || (worst_.size() == worst_entries && d <= difference(worst_.back()))) return;
  if (worst_.size() == worst_entries) worst_.pop_back();
  const auto rank = std::find_if(worst_.begin(), worst_.end(), [&](const Mismatch& m) { return difference(m) < d; });
  worst_.insert(rank, entry)->block = block;
}

std::string Comparison::likely_cause() const {
  if (!(expected_expected_ > 0)) return {};
  if (got_got_ == 0) return "every entry is 0: is it ever added?";
  const double both = got_got_ * expected_expected_;
  if (!(both - got_expected_ * got_expected_ <= 1e-6 * both)) return {};
  const double ratio = got_expected_ / expected_expected_;
  const auto is = [&](double value) { return std::abs(ratio - value) <= 1e-3 * std::abs(value); };
  if (is(-1)) return "got = −expected: check the sign";
  for (const double factor : {2., 0.5, -2., -0.5})
    if (is(factor)) return fmt::format("got = {:g} × expected: check for a factor of 2", factor);
  return entries_ < 3 || is(1) ? "" : fmt::format("got = {:.4g} × expected: check for a missing factor", ratio);
}

Line& CheckReport::line(std::string_view check) {
  for (Line& line : lines_)
    if (line.check == check) return line;
  lines_.push_back({});
  lines_.back().check = check;
  lines_.back().bound = -1;
  lines_.back().at = now_;
  return lines_.back();
}

bool CheckReport::measure(std::string_view check, double figure, double bound, const std::vector<Mismatch>& worst,
                          const std::string& note) {
  Line& l = line(check);
  const bool passes = figure <= bound;
  if (l.state == Line::skipped) replace(l, {.bound = -1, .at = now_});
  if ((l.state == Line::failed || l.state == Line::remark) && passes) return true;
  const auto excess = [](double f, double b) {
    return f <= b && b == 0 ? 0. : std::isnan(f) ? std::numeric_limits<double>::infinity() : f / b;
  };
  const bool first = l.bound < 0;
  const bool turns = l.state == Line::passed && !passes;
  if (!first && !turns && excess(figure, bound) <= excess(l.figure, l.bound)) return passes;
  replace(l, {.state = passes ? Line::passed : Line::failed,
              .figure = figure,
              .bound = bound,
              .at = now_,
              .note = note,
              .worst = passes ? std::vector<Mismatch>() : worst});
  return passes;
}

bool CheckReport::measure(std::string_view check, const Comparison& comparison, double bound, const std::string& note,
                          const std::string& hint) {
  std::string more;
  if (!(comparison.largest() <= bound)) more = hint.empty() ? comparison.likely_cause() : hint;
  return measure(check, comparison.largest(), bound, comparison.worst(),
                 note + (note.empty() || more.empty() ? "" : "; ") + more);
}

void CheckReport::require(std::string_view check, bool holds, const std::string& sentence) {
  Line& l = line(check);
  if (l.state == Line::skipped) replace(l, {.bound = -1, .at = now_});
  if (holds || l.state == Line::failed) return;
  replace(l, {.state = Line::failed, .bound = -1, .at = now_, .note = sentence});
}

void CheckReport::replace(Line& line, Line found) {
  found.check = line.check;
  found.entries = line.entries;
  found.dropped = line.dropped;
  line = std::move(found);
}

void CheckReport::stop() {
  stopped_ = true;
  throw Stopped();
}

void CheckReport::count(std::string_view check, Index entries, Index dropped) {
  Line& l = line(check);
  l.entries += entries;
  l.dropped += dropped;
}

void CheckReport::remark(std::string_view check, const std::string& sentence) {
  Line& l = line(check);
  if (l.state == Line::failed) return;
  replace(l, {.state = Line::remark, .bound = -1, .note = sentence});
}

void CheckReport::skip(std::string_view check, const std::string& why) {
  for (const Line& l : lines_)
    if (l.check == check) return;
  Line& l = line(check);
  l.state = Line::skipped;
  l.note = why;
}

void CheckReport::note(std::string_view check, const std::string& note) {
  Line& l = line(check);
  if (l.state == Line::passed) l.note = note;
}

bool CheckReport::passed() const {
  return std::none_of(lines_.begin(), lines_.end(), [](const Line& l) { return l.state == Line::failed; });
}

std::string CheckReport::text(const std::string& command) const {
  std::string text = fmt::format("{} ({}) of {}\n", method_, role_, printable(file_));
  for (const Line& l : lines_) {
    constexpr const char* states[] = {"ok  ", "FAIL", "skip", "note"};
    const char* state = states[l.state];
    text += fmt::format("  {} {:<22}", state, l.check);
    if (l.bound >= 0) text += fmt::format(" worst {:.2g}, allowed {:.2g}", l.figure, l.bound);
    const std::size_t end = std::min(l.note.find('\n'), l.note.size());  // a traceback may follow
    if (!l.note.empty()) text += (l.bound >= 0 ? "; " : " ") + l.note.substr(0, end);
    if (l.dropped > 0)
      text += fmt::format("; {} of {} entries dropped: no difference quotient converged", l.dropped, l.entries);
    const std::string where = describe(l.at);
    if ((l.bound >= 0 || l.state == Line::failed) && !where.empty()) text += " (" + where + ")";
    text += l.note.substr(end) + "\n";
    if (l.state != Line::failed) continue;
    const bool matrix = std::ranges::any_of(l.worst, [](const Mismatch& m) { return m.place.rows > 0; });
    if (!l.worst.empty())
      text += fmt::format("       {:<24} {:>11} {:>24} {:>24}\n", "block", matrix ? "row, column" : "index", "got",
                          "expected");
    for (const Mismatch& m : l.worst)
      text += fmt::format("       {:<24} {:>11} {:>24.16g} {:>24.16g}\n", m.block, text_of(m.place), m.got, m.expected);
    text += "       again: " + command + l.at.option + (l.at.scalar.empty() ? "" : " --scalar " + l.at.scalar);
    text += l.at.seed ? fmt::format(" --seed {}\n", l.at.seed) : "\n";
  }
  const auto count = [&](Line::State s) {
    return std::count_if(lines_.begin(), lines_.end(), [&](const Line& l) { return l.state == s; });
  };
  text += unchecked_ ? "  not checked\n"
          : passed() ? fmt::format("  passed: {} checks, {} skipped{}\n", count(Line::passed), count(Line::skipped),
                                   count(Line::remark) ? ", " + counted(count(Line::remark), "note") : "")
                     : fmt::format("  FAILED: {} of {} checks{}\n", count(Line::failed),
                                   count(Line::passed) + count(Line::failed) + count(Line::skipped),
                                   stopped_ ? "; the rest cannot be run before this is corrected" : "");
  return text;
}

void remark_on_fixed_start(CheckReport& report, const std::vector<double>& one, const std::vector<double>& other) {
  constexpr std::size_t few = 8;  // an identity has two
  if (one == other && std::set(one.begin(), one.end()).size() > few)
    report.remark("initialise", "every seed gives the same initial values: draw them from the Rng that is passed");
}

}  // namespace stiefel::conformance
