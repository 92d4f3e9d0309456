// Difference quotients that know their error.
#include "conformance/difference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "conformance/directions.hpp"

namespace stiefel::conformance {

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
constexpr Index first_steps = 5, most_steps = 45;
constexpr std::size_t widest = 6;
}  // namespace

void Differences::Table::add(double quotient, double rounding) {
  std::vector<double> next = {quotient};
  double factor = 1;
  for (std::size_t j = 0; j < std::min(row.size(), widest); ++j) {
    factor *= ratio;
    next.push_back((factor * next[j] - row[j]) / (factor - 1));
    const double error = std::max(std::abs(next[j + 1] - next[j]), std::abs(next[j + 1] - row[j])) + rounding;
    if (error < best.error) best = {next[j + 1], error};
  }
  row = std::move(next);
}

Differences::Differences(Function f, double step, double rounding)
    : f_(std::move(f)),
      step_(step),
      middle_(nan),
      rounding_(rounding),
      central_{4, {}, {nan, infinity}},
      left_{2, {}, {nan, infinity}},
      right_{2, {}, {nan, infinity}} {}

void Differences::halve() {
  const double high = f_(step_), low = f_(-step_);
  const double last_digits = 4 * std::numeric_limits<double>::epsilon() * std::max(std::abs(high), std::abs(low));
  points_.push_back({step_, low, high, (rounding_ + last_digits) / step_});
  central_.add((high - low) / (2 * step_), rounding());
  step_ /= 2;
}

void Differences::one_sided() {
  if (one_sided_ == 0 && !points_.empty()) middle_ = f_(0);
  for (; one_sided_ < points_.size(); ++one_sided_) {
    const Point& p = points_[one_sided_];
    const double rounding = p.rounding + 4 * std::numeric_limits<double>::epsilon() * std::abs(middle_) / p.step;
    left_.add((middle_ - p.low) / p.step, 2 * rounding);
    right_.add((p.high - middle_) / p.step, 2 * rounding);
  }
}

Quotient derivative(const Differences::Function& f, double step, double wanted) {
  Differences differences(f, step, 0);
  while (differences.steps() < most_steps && !(differences.central().error <= wanted) &&
         (differences.steps() < first_steps || differences.rounding() < differences.central().error))
    differences.halve();
  return differences.central();
}

void GradientComparison::add(const std::string& block, Place place, double got, Differences::Function f, double step,
                             double rounding, double slack) {
  auto found = std::ranges::find(blocks_, block, &Block::name);
  if (found == blocks_.end()) found = blocks_.insert(found, {block});
  found->slack = std::max(found->slack, slack);
  found->entries.push_back({place, got, nan, step, rounding, f, Differences(f, step, rounding)});
}

double GradientComparison::Block::largest() const {
  double most = 0;
  for (const Entry& e : entries)
    if (std::isfinite(e.got)) most = std::max(most, std::abs(e.got));
  return most;
}

// Neither a gradient that is much too large nor a quotient that has not converged makes the rest look small.
double GradientComparison::Block::scale() const {
  double most = 0;
  for (const Entry& e : entries) {
    const Quotient expected = e.differences.central();
    if (std::isfinite(e.got) && std::isfinite(expected.value))
      most = std::max(most, std::min(std::abs(e.got), std::abs(expected.value)));
  }
  return most;
}

// Smaller and smaller steps until a quotient agrees or rounding is all that is left.
GradientComparison::Verdict GradientComparison::refine(Differences& differences, double got, double tolerance,
                                                       double& expected) {
  const auto agrees = [&](Quotient q) {
    if (!(q.error <= tolerance && std::abs(got - q.value) <= tolerance)) return false;
    expected = q.value;
    return true;
  };
  while (true) {
    if (agrees(differences.central()) || agrees(differences.left()) || agrees(differences.right()))
      return Verdict::right;
    if (differences.steps() >= most_steps) break;
    if (differences.steps() >= first_steps && !(2 * differences.rounding() < tolerance)) break;
    differences.halve();
  }
  const auto differs = [&](Quotient q) {
    return std::isfinite(got) ? q.error <= 0.1 * std::abs(got - q.value) : std::isfinite(q.value);
  };
  expected = differences.central().value;
  if (differs(differences.central())) return Verdict::wrong;
  expected =
      differences.left().error < differences.right().error ? differences.left().value : differences.right().value;
  return differs(differences.left()) && differs(differences.right()) ? Verdict::wrong : Verdict::dropped;
}

GradientComparison::Verdict GradientComparison::judge(Entry& e, double tolerance) {
  const Verdict first = refine(e.differences, e.got, tolerance, e.expected);
  if (first != Verdict::wrong || !std::isfinite(e.got)) return first;
  Differences others(e.f, 0.31 * e.step, e.rounding);
  double second = nan;
  const Verdict confirmed = refine(others, e.got, tolerance, second);
  if (confirmed == Verdict::right) e.expected = second;
  if (confirmed != Verdict::wrong) return confirmed;
  return std::abs(second - e.expected) <= 0.1 * std::abs(e.got - e.expected) ? Verdict::wrong : Verdict::dropped;
}

bool GradientComparison::report(CheckReport& report, std::string_view check) {
  double all = 0;
  bool passes = true;
  for (Block& block : blocks_) {
    const double largest = block.largest();
    for (Entry& e : block.entries) {
      const auto wanted = [&] {
        return 0.01 * tolerance_.block * std::max(largest, std::abs(e.differences.central().value));
      };
      while (e.differences.steps() < first_steps && !(e.differences.central().error <= wanted())) e.differences.halve();
    }
    all = std::max(all, block.scale());
  }
  struct Judged {
    Comparison comparison = {};
    double tolerance;
    Index dropped = 0;
    bool right() const { return comparison.largest() <= tolerance; }
  };
  std::vector<Judged> judged;
  for (Block& block : blocks_) {
    Judged& j = judged.emplace_back(Judged{.tolerance = tolerance_.block * block.scale() + tolerance_.all * all +
                                                        tolerance_.absolute + block.slack});
    for (Entry& e : block.entries)
      if (judge(e, j.tolerance) == Verdict::dropped)
        ++j.dropped;
      else
        j.comparison.add(block.name, e.place, e.got, e.expected);
  }
  std::vector<std::string> names[2];
  for (std::size_t b = 0; b < judged.size(); ++b) names[judged[b].right()].push_back(blocks_[b].name);
  const auto listed = [](const std::vector<std::string>& all) {
    constexpr std::size_t most = 6;
    const std::string first = fmt::format("{}", fmt::join(all.begin(), all.begin() + std::min(most, all.size()), ", "));
    return all.size() > most ? fmt::format("{} and {} more", first, all.size() - most) : all.empty() ? "none" : first;
  };
  for (std::size_t b = 0; b < judged.size(); ++b) {
    const Block& block = blocks_[b];
    const auto& [comparison, tolerance, dropped] = judged[b];
    const std::string note = judged[b].right() || judged.size() == 1
                                 ? ""
                                 : fmt::format("wrong: {}; right: {}", listed(names[0]), listed(names[1]));
    passes = report.measure(check, comparison, tolerance, note) && passes;
    const Index entries = Index(block.entries.size());
    const bool enough = 10 * dropped <= entries;
    passes = passes && enough;
    report.count(check, entries, dropped);
    report.require(check, enough,
                   fmt::format("no difference quotient converges for {} of {} entries of block `{}`: the function is "
                               "not differentiable there, or not reproducible",
                               dropped, entries, block.name));
  }
  return passes;
}

void add_direction(GradientComparison& comparison, const Layout& layout, const std::vector<double>& theta,
                   const std::vector<double>& gradient, std::function<double(const std::vector<double>&)> f,
                   double step, double rounding, std::uint64_t seed) {
  const auto moved = [&layout, theta, seed](double t) {
    std::vector<double> there = theta;
    Rng rng(seed, "direction");
    scatter(layout.all(there.data()), layout.blocks(), t, rng);
    return there;
  };
  const auto along = [&](const std::vector<double>& x) {
    return std::inner_product(gradient.begin(), gradient.end(), x.begin(), 0.);
  };
  const Quotient slope =
      derivative([&](double t) { return along(moved(t)); }, step, 1e-10 * std::sqrt(along(gradient)));
  comparison.add(
      "random direction of θ", 0, slope.value, [moved, f](double t) { return f(moved(t)); }, step, rounding);
}

}  // namespace stiefel::conformance
