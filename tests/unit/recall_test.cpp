// Selective copy and associative recall: what follows from the inputs alone is what is asked for, and nothing else.
#include "task_plugins.hpp"

#include <fmt/format.h>
#include <cmath>

#include "host/metric_values.hpp"

using namespace stiefel;
using namespace task_plugins;

namespace {

using Symbols = std::vector<std::int32_t>;
constexpr std::int32_t none = -1;

TaskContext context_of(std::uint64_t seed, Index batch) { return {.seed = seed, .batch = batch, .data_directory = ""}; }

/// The answer of each step; none: not scored.
Symbols copied(const Symbols& x, std::int32_t marker) {
  Symbols data, answers(x.size(), none);
  std::size_t next = 0;
  for (std::size_t t = 0; t < x.size(); ++t)
    if (x[t] == marker)
      answers[t] = data.at(next++);
    else if (x[t] != 0)
      data.push_back(x[t]);
  return answers;
}
Symbols recalled(const Symbols& x, std::size_t pairs) {
  std::map<std::int32_t, std::int32_t> store;
  for (std::size_t p = 0; p < pairs; ++p) store[x[2 * p]] = x[2 * p + 1];
  Symbols answers(x.size(), none);
  for (std::size_t t = 2 * pairs; t < x.size(); ++t)
    if (store.contains(x[t])) answers[t] = store[x[t]];
  return answers;
}

Symbols inputs_of(Batch<float>& batch, Index b) {
  Symbols all;
  for (Index t = 0; t < batch.length(b); ++t) all.push_back(batch.symbol(t, b));
  return all;
}
Symbols answers_of(Batch<float>& batch, Index b) {
  Symbols all;
  for (Index t = 0; t < batch.length(b); ++t) all.push_back(batch.weight(t, b) > 0 ? batch.label(t, b) : none);
  return all;
}

}  // namespace

// From a NumPy program of its own.
TEST_CASE("golden examples") {
  CHECK(copied({0, 0, 0, 0, 4, 3, 3, 0, 0, 5, 5, 5}, 5) ==
        Symbols{none, none, none, none, none, none, none, none, none, 4, 3, 3});
  CHECK(recalled({3, 6, 1, 10, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0}, 2) ==
        Symbols{none, none, none, none, 10, none, none, none, none, none, none, none, 6, none, none, none});
}

TEST_CASE("selective copy") {
  const auto task = make<float>("selective_copy", "{length: 30, symbols: 8, alphabet: 8}", context_of(1, 2000));
  CHECK(task->shape().steps == 46);
  Batch<float> batch = batch_of(*task, Split::train, 0);
  std::vector<double> places(38, 0);
  for (Index b = 0; b < batch.sequences(); ++b) {
    const Symbols x = inputs_of(batch, b);
    REQUIRE(answers_of(batch, b) == copied(x, 9));
    for (std::size_t t = 0; t < 38; ++t) {
      REQUIRE(x[t] < 9);
      places[t] += x[t] != 0;
    }
    for (std::size_t t = 38; t < 46; ++t) REQUIRE(x[t] == 9);
  }
  double chi_squared = 0;
  for (const double seen : places) chi_squared += std::pow(seen - 16000. / 38, 2) / (16000. / 38 * (1 - 8. / 38));
  CHECK(chi_squared < 69.4);  // 37 degrees of freedom, p = 0.001
  CHECK(make<float>("selective_copy", "{alphabet: 14}", context_of(1, 1))->baseline() ==
        doctest::Approx(2.6391).epsilon(1e-4));
}

TEST_CASE("associative recall") {
  for (const char* fillers : {"blanks", "random"}) {
    CAPTURE(fillers);
    const bool blanks = std::string(fillers) == "blanks";
    const auto task =
        make<float>("associative_recall", fmt::format("{{length: 48, pairs: 6, vocabulary: 64, fillers: {}}}", fillers),
                    context_of(1, 500));
    Batch<float> batch = batch_of(*task, Split::train, 0);
    Index fillers_seen = 0;
    for (Index b = 0; b < batch.sequences(); ++b) {
      const Symbols x = inputs_of(batch, b), answers = answers_of(batch, b), expected = recalled(x, 6);
      std::set<std::int32_t> keys, values, queries;
      for (std::size_t p = 0; p < 6; ++p) keys.insert(x[2 * p]), values.insert(x[2 * p + 1]);
      CHECK(keys.size() == 6);
      CHECK(values.size() == 6);
      CHECK((*keys.begin() >= 1 && *keys.rbegin() < 32 && *values.begin() >= 32 && *values.rbegin() < 64));
      for (std::size_t t = 0; t < 48; ++t) {
        if (answers[t] != none) {
          REQUIRE(t >= 12);
          CHECK(t % 2 == 0);
          CHECK(answers[t] == expected[t]);
          queries.insert(x[t]);
        } else if (t >= 12) {
          fillers_seen += x[t] != 0;
        }
      }
      CHECK(queries == keys);
      if (blanks) CHECK(answers == expected);
    }
    CHECK((fillers_seen > 0) == !blanks);
    CHECK(task->baseline() == doctest::Approx(std::log(32)));
  }
}

TEST_CASE("the places of queries follow a power law") {
  const auto task = make<float>("associative_recall", "{length: 50, pairs: 1, vocabulary: 8}", context_of(1, 20000));
  Batch<float> batch = batch_of(*task, Split::train, 0);
  double first = 0, last = 0, sum = 0;
  for (Index b = 0; b < batch.sequences(); ++b)
    for (Index i = 0; i < 24; ++i)
      if (batch.weight(2 + 2 * i, b) > 0) first += i == 0, last += i == 23, sum += double(i);
  CHECK(first / 20000 == doctest::Approx(0.2613).epsilon(0.04));  // 4 standard deviations are 0.012
  CHECK(last / 20000 == doctest::Approx(0.0112).epsilon(0.27));
  CHECK(sum / 20000 == doctest::Approx(5.416).epsilon(0.035));
}

TEST_CASE("accuracy of answers and of sequences") {
  const auto task = make<double>("selective_copy", "{length: 1, symbols: 2, alphabet: 2}", context_of(1, 2));
  const std::vector<Metric> metrics = task->metrics();
  std::vector<Ratio> ratios(count_of_ratios(metrics, 2));
  const std::vector<std::int32_t> labels{0, 0, 1, 1, 2, 2};
  const std::vector<double> weights{0, 0, 1, 1, 1, 1};
  const std::vector<Index> steps{2, 2, 3, 3, 4, 4}, sequences{0, 1, 0, 1, 0, 1};
  Matrix<double> output = Matrix<double>::Zero(3, 6);
  for (Index c = 2; c < 6; ++c) output(labels[std::size_t(c)], c) = 1;
  output(1, 5) = 2;
  task->measure(output, Targets<double>{CMat<double>(), labels, weights, steps, sequences, 2}, ratios);
  const std::vector<double> values = metric_values(metrics, sums_of_sequences(metrics, ratios, 2));
  CHECK(values[0] == doctest::Approx(0.75));
  CHECK(values[1] == doctest::Approx(0.5));
}

TEST_CASE("sizes that leave no room are refused") {
  const auto refused = [](const std::string& options, const char* sentence) {
    CHECK_THROWS_WITH_AS(make<float>("associative_recall", options, context_of(1, 1)), doctest::Contains(sentence),
                         Error);
  };
  refused("{length: 15, pairs: 4}", "must be at least 4 · `pairs`");
  refused("{vocabulary: 9, pairs: 4}", "must be above 2 · `pairs` + 1");
  Batch<float> batch = batch_of(
      *make<float>("associative_recall", "{length: 16, pairs: 4, vocabulary: 10}", context_of(1, 50)), Split::train, 0);
  for (Index b = 0; b < 50; ++b) CHECK(answers_of(batch, b) == recalled(inputs_of(batch, b), 4));
}
