// Modular arithmetic: the values of expressions, their form and lengths, and the scaled accuracy.
#include "task_plugins.hpp"

#include <fmt/format.h>
#include <cctype>

#include "host/metric_values.hpp"
#include "tasks/modular_expression.hpp"

using namespace stiefel;
using namespace task_plugins;

namespace {

TaskContext context_of(std::uint64_t seed, Index batch) { return {.seed = seed, .batch = batch, .data_directory = ""}; }

/// The value of a text with digits below 10, by two stacks and without a remainder until the end.
long long evaluated(const std::string& text, long long modulus) {
  std::vector<long long> values;
  std::string waiting;
  const auto binding = [](char c) { return c == '~' ? 3 : c == '*' ? 2 : c == '(' ? 0 : 1; };
  const auto apply = [&] {
    const char operation = waiting.back();
    waiting.pop_back();
    const long long right = values.back();
    values.pop_back();
    if (operation == '~') return values.push_back(-right);
    long long& left = values.back();
    left = operation == '+' ? left + right : operation == '-' ? left - right : left * right;
  };
  char before = '(';
  for (const char c : text) {
    const bool sign = c == '-' && !std::isdigit(static_cast<unsigned char>(before)) && before != ')';
    if (std::isdigit(static_cast<unsigned char>(c))) {
      values.push_back(c - '0');
    } else if (c == '(') {
      waiting += c;
    } else if (c == ')') {
      while (waiting.back() != '(') apply();
      waiting.pop_back();
    } else {
      while (!sign && !waiting.empty() && binding(waiting.back()) >= binding(c)) apply();
      waiting += sign ? '~' : c;
    }
    before = c;
  }
  while (!waiting.empty()) apply();
  REQUIRE(values.size() == 1);
  return (values[0] % modulus + modulus) % modulus;
}

std::string text_of(Batch<float>& batch, Index b, Index modulus) {
  std::string text;
  for (Index t = 0; t < batch.length(b); ++t) {
    const Index symbol = batch.symbol(t, b);
    REQUIRE(symbol < modulus + 6);
    text += symbol < modulus ? char('0' + symbol) : "+-*=()"[symbol - modulus];
  }
  return text;
}

}  // namespace

// From a NumPy program of its own.
TEST_CASE("golden expressions") {
  const ModularArithmetic arithmetic(5, "+-*");
  const auto value = [&](const std::string& text) {
    ModularArithmetic::Expression expression;
    for (const char c : text)
      expression.push_back(std::isdigit(static_cast<unsigned char>(c)) ? c - '0' : arithmetic.symbol(c));
    CHECK(evaluated(text, 5) == arithmetic.value(expression));
    return arithmetic.value(expression);
  };
  CHECK(value("2*3-4*4+1") == 1);
  CHECK(value("4-2*3*4-1") == 4);
  CHECK(value("0*4-3") == 2);
  CHECK(value("((-3)+(2-4))") == 0);
  CHECK(value("(4-((-1)-(3)))") == 3);
  CHECK(value("-4") == 1);
  CHECK(value("(3--4)") == 2);
}

TEST_CASE("the answers of ten thousand expressions") {
  for (const bool brackets : {false, true})
    for (const Index modulus : {5, 7}) {
      CAPTURE(brackets);
      const auto task =
          make<float>("modular_arithmetic",
                      fmt::format("{{brackets: {}, modulus: {}, length: 38, min_length: 2}}", brackets, modulus),
                      context_of(1, 2500));
      CHECK(task->shape().input_size == modulus + (brackets ? 6 : 4));
      Batch<float> batch = batch_of(*task, Split::train, 0);
      std::map<Index, int> lengths;
      std::map<char, int> signs;
      for (Index b = 0; b < batch.sequences(); ++b) {
        std::string text = text_of(batch, b, modulus);
        REQUIRE(text.back() == '=');
        text.pop_back();
        CAPTURE(text);
        REQUIRE(batch.label(batch.length(b) - 1, b) == evaluated(text, modulus));
        ++lengths[batch.length(b)];
        for (const char c : text) ++signs[c];
      }
      CHECK(lengths.begin()->first == 2);
      CHECK(lengths.rbegin()->first == 38);
      CHECK(Index(lengths.size()) == (brackets ? 37 : 19));
      const int expected = int(2500 / lengths.size());
      for (const auto& [length, count] : lengths) CHECK(count == doctest::Approx(expected).epsilon(0.6));
      for (const char c : std::string(brackets ? "+-*()" : "+-*")) CHECK(signs[c] > 100);
      CHECK(signs['('] == signs[')']);
    }
}

TEST_CASE("operations and lengths that are asked for") {
  const auto task =
      make<float>("modular_arithmetic", "{brackets: true, operations: '+', length: 19}", context_of(1, 300));
  Batch<float> batch = batch_of(*task, Split::validation, 0);
  std::string all;
  for (Index b = 0; b < batch.sequences(); ++b) {
    CHECK(batch.length(b) == 19);
    all += text_of(batch, b, 5);
  }
  CHECK(all.find('*') == all.npos);
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i] == '-' && std::isdigit(static_cast<unsigned char>(all[i - 1]))) FAIL(all);
  const auto refused = [](const std::string& options, const char* sentence) {
    CHECK_THROWS_WITH_AS(make<float>("modular_arithmetic", options, context_of(1, 1)), doctest::Contains(sentence),
                         Error);
  };
  refused("{operations: '+/'}", "one or more of + - *");
  refused("{operations: '++'}", "each once");
  refused("{length: 9}", "must be even without brackets");
  refused("{length: 8, min_length: 9}", "must be at most `length`");
}

TEST_CASE("scaled accuracy") {
  const auto task = make<double>("modular_arithmetic", "", context_of(1, 1));
  const auto scaled = [&](Index right) {
    Matrix<double> output = Matrix<double>::Zero(5, 10000);
    output.row(2).head(right).setOnes();
    output.row(3).tail(10000 - right).setOnes();
    const std::vector<std::int32_t> labels(10000, 2);
    const std::vector<double> weights(10000, 0.5);
    std::vector<Ratio> ratios(2);
    task->measure(output, Targets<double>{CMat<double>(), labels, weights}, ratios);
    const std::vector<double> values = metric_values(task->metrics(), ratios);
    CHECK(values[0] == doctest::Approx(double(right) / 10000));
    return values[1];
  };
  CHECK(scaled(2000) == doctest::Approx(0).scale(1));
  CHECK(scaled(8296) == doctest::Approx(0.787).epsilon(1e-6));
  CHECK(scaled(10000) == doctest::Approx(1));
}
