// Derivatives by finite differences, each with an estimate of its error, and the comparison of a gradient with them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/report.hpp"
#include "engine/parameters.hpp"

namespace stiefel::conformance {

/// A difference quotient, extrapolated to step 0.
struct Quotient {
  double value, error;  // NaN, ∞: none so far
};

/// Difference quotients of f at 0 for steps h, h/2, h/4, …, extrapolated to step 0 (Ridders 1982).
///
///   central   (f(h) − f(−h)) / 2h    an even series in h
///   right     (f(h) − f(0)) / h      a series in h, still right where f has a kink at 0 or a little to the left
///   left      (f(0) − f(−h)) / h
///
/// The error of an entry of the extrapolation table is its distance from the entries it was made of, plus rounding; the
/// entry with the least error is kept.
class STIEFEL_API Differences {
 public:
  using Function = std::function<double(double)>;
  /// `rounding`: error of a value of f beyond that of its last digits.
  Differences(Function f, double step, double rounding);

  /// Adds the next step.
  void halve();
  Index steps() const { return Index(points_.size()); }
  /// Error of the last quotients that rounding alone makes; each halving doubles it.
  double rounding() const { return points_.empty() ? 0 : points_.back().rounding; }

  Quotient central() const { return central_.best; }
  Quotient left() { return one_sided(), left_.best; }
  Quotient right() { return one_sided(), right_.best; }

 private:
  struct Table {
    double ratio;  // 2^order
    std::vector<double> row;
    Quotient best;
    void add(double quotient, double rounding);
  };
  struct Point {
    double step, low, high, rounding;  // f(−step), f(step)
  };
  /// Brings left_ and right_ up to date: they need f(0), and most entries are judged without them.
  void one_sided();

  Function f_;
  double step_, middle_, rounding_;
  std::vector<Point> points_;
  std::size_t one_sided_ = 0;
  Table central_, left_, right_;
};

/// f′(0) with the error that was wanted, if it can be had.
STIEFEL_API Quotient derivative(const Differences::Function& f, double step, double wanted = 0);

/// Entries of a gradient next to the functions whose derivatives they must be. An entry is right if it agrees with a
/// difference quotient that has converged, next to a kink with that of one side; wrong if it differs from all of them
/// by much more than their errors, for two unrelated sequences of steps; and dropped otherwise.
class STIEFEL_API GradientComparison {
 public:
  /// What is allowed: relative to the block's largest entry, to the largest of all blocks, and absolute.
  struct Tolerance {
    double block = 1e-7, all = 0, absolute = 0;
  };
  explicit GradientComparison(Tolerance tolerance) : tolerance_(tolerance) {}
  /// `f` is called by report(), at steps of `step` and less; `rounding` is that of its values. `slack`: allowed in
  /// addition to the tolerance of the block, for the rounding of `got`.
  void add(const std::string& block, Place place, double got, Differences::Function f, double step, double rounding,
           double slack = 0);
  /// Measures every block under `check`, and fails where too many entries of a block were dropped. Returns whether all
  /// pass.
  bool report(CheckReport& report, std::string_view check);

 private:
  enum class Verdict { right, wrong, dropped };
  struct Entry {
    Place place;
    double got, expected, step, rounding;
    Differences::Function f;
    Differences differences;
  };
  struct Block {
    std::string name;
    std::vector<Entry> entries = {};
    double slack = 0;
    double largest() const;
    double scale() const;
  };
  static Verdict judge(Entry& entry, double tolerance);
  static Verdict refine(Differences& differences, double got, double tolerance, double& expected);

  Tolerance tolerance_;
  std::vector<Block> blocks_;
};

/// Adds the derivative of f(θ) along one random direction of all blocks, see scatter().
void add_direction(GradientComparison& comparison, const Layout& layout, const std::vector<double>& theta,
                   const std::vector<double>& gradient, std::function<double(const std::vector<double>&)> f,
                   double step, double rounding, std::uint64_t seed);

}  // namespace stiefel::conformance
