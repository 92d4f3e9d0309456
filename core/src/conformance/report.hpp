// What `stiefel check` found about one method: a line per check with the worst figure of all cases, and the worst
// entries of a failure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>

namespace stiefel::conformance {

/// Number `index` of a block, which is in a matrix of `rows` rows, or just a number among others (0).
struct Place {
  Place(Index index = 0, Index rows = 0) : index(index), rows(rows) {}
  Index index, rows;
};

/// One number that differs from the expected one.
struct Mismatch {
  std::string block;
  Place place;
  double got = 0, expected = 0;
};

/// Entry by entry |got − expected|; remembers the five worst. NaN and Inf count as infinitely wrong.
class STIEFEL_API Comparison {
 public:
  void add(std::string_view block, Place place, double got, double expected);
  template <class A, class B>
  void matrices(std::string_view block, const Eigen::MatrixBase<A>& got, const Eigen::MatrixBase<B>& expected) {
    for (Index j = 0; j < got.cols(); ++j)
      for (Index i = 0; i < got.rows(); ++i)
        add(block, {i + j * got.rows(), got.cols() > 1 ? got.rows() : 0}, double(got(i, j)), double(expected(i, j)));
  }
  double largest() const { return largest_; }
  /// max |expected|
  double scale() const { return scale_; }
  const std::vector<Mismatch>& worst() const { return worst_; }
  /// What may have gone wrong if all entries are the same multiple of the expected ones, or 0; else empty.
  std::string likely_cause() const;

 private:
  double largest_ = 0, scale_ = 0;
  Index entries_ = 0;
  double got_got_ = 0, got_expected_ = 0, expected_expected_ = 0;  // sums of products
  std::vector<Mismatch> worst_;                                    // largest difference first
};

/// Equal numbers, where NaN equals NaN.
inline constexpr auto same_numbers = [](const auto& a, const auto& b) {
  return std::ranges::equal(std::span(a.data(), std::size_t(a.size())), std::span(b.data(), std::size_t(b.size())),
                            [](double x, double y) { return x == y || (x != x && y != y); });
};

/// The circumstances of a figure.
struct Case {
  std::string scalar;  // float32, float64; empty: both or none
  std::string shape;   // for people
  std::uint64_t seed = 0;
  std::string option = {};  // of the command that repeats it
};

struct Line {
  enum State { passed, failed, skipped, remark };
  std::string check = {};
  State state = passed;
  double figure = 0, bound = 0;  // of the worst case; bound < 0: a yes-or-no check
  Case at = {};                  // of the worst case
  std::string note = {};
  std::vector<Mismatch> worst = {};
  Index entries = 0, dropped = 0;  // of gradients, in all cases
};

/// Thrown after a failure that makes the remaining checks meaningless.
struct STIEFEL_API Stopped final : std::exception {
  const char* what() const noexcept override { return "the check of the method has stopped"; }
};

class STIEFEL_API CheckReport {
 public:
  CheckReport(std::string method, std::string role, std::string file)
      : method_(std::move(method)), role_(std::move(role)), file_(std::move(file)) {}

  /// Names the file of the method, such as a script.
  void of(std::string file) { file_ = std::move(file); }
  /// Sets the context of what is reported from now on.
  void at(Case now) { now_ = std::move(now); }
  const Case& now() const { return now_; }

  /// Passes when figure ≤ bound (NaN does not); returns whether it does.
  bool measure(std::string_view check, double figure, double bound, const std::vector<Mismatch>& worst = {},
               const std::string& note = "");
  /// `hint` is added to a failure; empty: the comparison's likely cause.
  bool measure(std::string_view check, const Comparison& comparison, double bound, const std::string& note = "",
               const std::string& hint = "");
  /// Fails with the sentence unless it holds.
  void require(std::string_view check, bool holds, const std::string& sentence);
  void fail(std::string_view check, const std::string& sentence) { require(check, false, sentence); }
  /// As require(), and stops the check of the method where it fails.
  void demand(std::string_view check, bool holds, const std::string& sentence) {
    require(check, holds, sentence);
    if (!holds) stop();
  }
  /// Throws Stopped.
  [[noreturn]] void stop();
  /// Adds to the entries of a gradient that were compared, and to those of which no difference quotient converged.
  void count(std::string_view check, Index entries, Index dropped);
  /// A check that does not apply; a line of the same name that was measured stays.
  void skip(std::string_view check, const std::string& why);
  /// Nothing else can be checked, since something outside the plugin is missing.
  void leave(std::string_view check, const std::string& why) {
    skip(check, why);
    unchecked_ = true;
  }
  /// Adds to the line that is printed when it passes.
  void note(std::string_view check, const std::string& note);
  /// A line that neither passes nor fails.
  void remark(std::string_view check, const std::string& sentence);

  bool passed() const;
  /// Whether leave() was called.
  bool unchecked() const { return unchecked_; }
  const std::vector<Line>& lines() const { return lines_; }
  const std::string& method() const { return method_; }

  /// Prints the report for people. `command` repeats a failure, without --seed and --scalar.
  std::string text(const std::string& command) const;

 private:
  Line& line(std::string_view check);
  static void replace(Line& line, Line found);
  std::string method_, role_, file_;
  Case now_;
  std::vector<Line> lines_;
  bool stopped_ = false, unchecked_ = false;
};

/// Remarks on initial values that look random, but are the same for two seeds.
void remark_on_fixed_start(CheckReport& report, const std::vector<double>& one, const std::vector<double>& other);

}  // namespace stiefel::conformance
