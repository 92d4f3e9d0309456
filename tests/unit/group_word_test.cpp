// Group word problems: the groups, the sequences, and metrics of sequences, steps and lengths.
#include "task_plugins.hpp"

#include <fmt/format.h>
#include <cmath>
#include <numeric>

#include "tasks/group.hpp"

#include "host/metric_values.hpp"

using namespace stiefel;
using namespace task_plugins;

namespace {

TaskContext context_of(std::uint64_t seed, Index batch) { return {.seed = seed, .batch = batch, .data_directory = ""}; }

/// The products of x_t = 7t + 3 modulo the order.
std::vector<std::int32_t> products(const Group& group, std::size_t steps, bool left = false) {
  std::vector<std::int32_t> all;
  for (std::size_t t = 0; t < steps; ++t) {
    const auto x = std::int32_t((7 * t + 3) % std::size_t(group.order()));
    const std::int32_t before = all.empty() ? 0 : all.back();
    all.push_back(left ? group.product(x, before) : group.product(before, x));
  }
  return all;
}

}  // namespace

// From a NumPy program of its own that closes the groups under their generators.
TEST_CASE("products of golden words") {
  using Word = std::vector<std::int32_t>;
  CHECK(products(Group("Z2"), 12) == Word{1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0});
  CHECK(products(Group("Z5"), 12) == Word{3, 3, 0, 4, 0, 3, 3, 0, 4, 0, 3, 3});
  CHECK(products(Group("S3"), 12) == Word{3, 0, 5, 5, 3, 1, 2, 1, 4, 4, 2, 0});
  CHECK(products(Group("S4"), 12) == Word{3, 6, 23, 23, 16, 5, 19, 12, 15, 6, 7, 15});
  CHECK(products(Group("A5"), 12) == Word{3, 5, 23, 11, 26, 58, 29, 28, 31, 16, 7, 17});
  CHECK(products(Group("S5"), 12) == Word{3, 6, 23, 47, 64, 52, 55, 99, 11, 50, 40, 29});
  CHECK(products(Group("S3"), 6, true) == Word{3, 0, 5, 5, 4, 1});
}

TEST_CASE("groups are groups") {
  for (const char* name : {"Z1", "Z7", "S1", "S4", "A4", "A5", "Z2xS3", "S3xZ2xZ2"}) {
    CAPTURE(name);
    const Group group(name);
    const auto n = std::int32_t(group.order());
    CHECK(group.moved(0) == 0);
    for (std::int32_t a = 0; a < n; ++a) {
      CHECK(group.product(0, a) == a);
      CHECK(group.product(a, 0) == a);
      std::vector<bool> row(std::size_t(n), false), column = row;
      for (std::int32_t b = 0; b < n; ++b) {
        row[std::size_t(group.product(a, b))] = column[std::size_t(group.product(b, a))] = true;
        for (std::int32_t c = 0; c < n; c += 5)
          if (group.product(group.product(a, b), c) != group.product(a, group.product(b, c))) FAIL(a, b, c);
      }
      CHECK(std::accumulate(row.begin(), row.end(), 0) == n);
      CHECK(std::accumulate(column.begin(), column.end(), 0) == n);
    }
  }
  CHECK(Group("A5").order() == 60);
  CHECK(Group("S3xZ2").order() == 12);
  const Group S5("S5");
  Index transpositions = 0;
  for (Index a = 0; a < S5.order(); ++a) transpositions += S5.moved(a) == 2;
  CHECK(transpositions == 10);
  for (const char* name : {"", "S", "D4", "Z0", "Z1001", "S7", "A8", "S6xS3", "Z2x", "xZ2", "S3 ", "Z-1"})
    CHECK_THROWS_AS(Group{name}, Error);
}

TEST_CASE("words are uniform, and their labels are the products") {
  for (const char* side : {"right", "left"}) {
    const auto task = make<double>(
        "group_word", fmt::format("{{group: S3, length: 20, min_length: 5, side: {}}}", side), context_of(3, 500));
    const Group group("S3");
    Batch<double> batch = batch_of(*task, Split::train, 0);
    std::vector<double> counts(6, 0), lengths(21, 0), answers(6, 0);
    for (Index b = 0; b < batch.sequences(); ++b) {
      std::int32_t product = 0;
      ++lengths[std::size_t(batch.length(b))];
      for (Index t = 0; t < batch.length(b); ++t) {
        const std::int32_t x = batch.symbol(t, b);
        ++counts[std::size_t(x)];
        product = std::string(side) == "right" ? group.product(product, x) : group.product(x, product);
        REQUIRE(batch.label(t, b) == product);
        if (t == 4) ++answers[std::size_t(product)];
      }
    }
    const auto chi_squared = [](const std::vector<double>& seen, std::size_t first) {
      const double each = std::accumulate(seen.begin(), seen.end(), 0.) / double(seen.size() - first);
      double sum = 0;
      for (std::size_t i = first; i < seen.size(); ++i) sum += (seen[i] - each) * (seen[i] - each) / each;
      return sum;
    };
    CHECK(chi_squared(counts, 0) < 20.5);  // 5 degrees of freedom, p = 0.001
    CHECK(chi_squared(answers, 0) < 20.5);
    CHECK(chi_squared(lengths, 5) < 37.7);  // 15 degrees
    CHECK(std::accumulate(lengths.begin(), lengths.begin() + 5, 0.) == 0);
    CHECK(task->baseline() == doctest::Approx(std::log(6)).epsilon(1e-12));
  }
}

TEST_CASE("only some elements") {
  const auto task =
      make<float>("group_word", "{group: S4, length: 9, inputs: transpositions, supervise: last}", context_of(1, 200));
  const Group S4("S4");
  Batch<float> batch = batch_of(*task, Split::train, 0);
  std::set<std::int32_t> seen;
  for (Index b = 0; b < 200; ++b)
    for (Index t = 0; t < 9; ++t) seen.insert(batch.symbol(t, b));
  CHECK(seen.size() == 7);
  for (const std::int32_t x : seen) CHECK(S4.moved(x) <= 2);
  CHECK(task->baseline() < std::log(24));
  const auto two = make<float>("group_word", "{group: Z5, elements: [1, 3]}", context_of(1, 10));
  batch = batch_of(*two, Split::train, 0);
  for (Index b = 0; b < 10; ++b) CHECK((batch.symbol(0, b) == 1 || batch.symbol(0, b) == 3));
}

TEST_CASE("accuracy over all, at each step, and of whole sequences") {
  const auto task = make<double>("group_word", "{group: Z3, length: 4, min_length: 2}", context_of(1, 3));
  const std::vector<Metric> metrics = task->metrics();
  std::vector<Ratio> ratios(count_of_ratios(metrics, 3));
  REQUIRE(ratios.size() == 4 + 3);
  // Sequence 0 is right at its two steps, 1 wrong at its last, 2 has no scored step.
  const std::vector<std::int32_t> labels{1, 2, 0, 0, 1, 2};
  const std::vector<double> weights{1, 1, 1, 1, 1, 0};
  const std::vector<Index> steps{0, 0, 1, 1, 2, 2}, sequences{0, 1, 0, 1, 1, 2};
  Matrix<double> output = Matrix<double>::Zero(3, 6);
  for (Index c = 0; c < 6; ++c) output(labels[std::size_t(c)], c) = 1;
  output(0, 4) = 2;
  const Targets<double> targets{CMat<double>(), labels, weights, steps, sequences, 3};
  task->measure(output, targets, ratios);
  const std::vector<Ratio> sums = sums_of_sequences(metrics, ratios, 3);
  REQUIRE(sums.size() == count_of_parts(metrics));
  CHECK(sums[4].sum == 1);
  CHECK(sums[4].weight == 2);
  const std::vector<double> values = metric_values(metrics, sums);
  CHECK(values[0] == doctest::Approx(4. / 5));
  CHECK(values[1] == doctest::Approx(0.5));
  CHECK(sums[0].sum / sums[0].weight == 1);
  CHECK(sums[2].sum / sums[2].weight == 0);
  CHECK(sums[3].weight == 0);
}
