// Batches, the shuffle, and the tasks made from random numbers: adding and copy.
#include "task_plugins.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <set>
#include <stiefel/item_batches.hpp>
#include <thread>

using namespace stiefel;
using namespace task_plugins;

namespace {

constexpr Split splits[] = {Split::train, Split::validation, Split::test};

template <class S> std::vector<double> inputs_of(const Batch<S>& batch, Index b) {
  std::vector<double> all;
  for (Index t = 0; t < batch.steps(); ++t)
    for (Index r = 0; r < batch.inputs().rows(); ++r)
      all.push_back(double(batch.inputs()(r, t * batch.sequences() + b)));
  return all;
}
template <class S> std::vector<std::int32_t> symbols_of(Batch<S>& batch, Index b) {
  std::vector<std::int32_t> all;
  for (Index t = 0; t < batch.steps(); ++t) all.push_back(batch.symbol(t, b));
  return all;
}
template <class S> std::vector<std::int32_t> labels_of(Batch<S>& batch, Index b) {
  std::vector<std::int32_t> all;
  for (Index t = 0; t < batch.steps(); ++t) all.push_back(batch.label(t, b));
  return all;
}

std::vector<Index> marks_of(Batch<double>& batch, Index b) {
  std::vector<Index> marks;
  for (Index t = 0; t < batch.steps(); ++t)
    if (batch.input(t, b)[1] == 1) marks.push_back(t);
  return marks;
}

}  // namespace

TEST_CASE("a batch is laid out by its shape and begins anew with every resize") {
  Batch<float> batch;
  batch.resize({.input = InputKind::dense, .input_size = 3, .output_size = 2, .readout = ReadoutKind::every}, 4, 5);
  CHECK(batch.inputs().rows() == 3);
  CHECK(batch.inputs().cols() == 20);
  CHECK(batch.targets().rows() == 2);
  CHECK(batch.targets().cols() == 20);
  CHECK((batch.symbols().empty() && batch.labels().empty()));
  CHECK(batch.weights() == std::vector<float>(20, 1));
  CHECK(batch.length(3) == 5);
  batch.input(2, 1)[2] = 7;
  batch.target(2, 1)[1] = 8;
  batch.weight(2, 1) = 0;
  batch.length(1) = 3;
  CHECK(batch.inputs()(2, 2 * 4 + 1) == 7);
  CHECK(batch.targets()(1, 2 * 4 + 1) == 8);
  CHECK(batch.weights()[9] == 0);
  batch.resize(
      {.input = InputKind::symbols, .input_size = 9, .output_size = 6, .readout = ReadoutKind::last, .labels = true}, 4,
      5);
  CHECK((batch.inputs().size() == 0 && batch.targets().size() == 0));
  CHECK(batch.symbols() == std::vector<std::int32_t>(20, 0));
  CHECK(batch.labels() == std::vector<std::int32_t>(4, 0));
  CHECK(batch.weights() == std::vector<float>(4, 1));
  CHECK(batch.length(1) == 5);
  batch.label(4, 2) = 5;
  CHECK(batch.label(0, 2) == 5);
  batch.resize({.input = InputKind::none, .output_size = 1}, 2, 3);
  CHECK((batch.inputs().rows() == 0 && batch.inputs().cols() == 6 && batch.symbols().empty()));
}

TEST_CASE("the shuffle passes through all items again and again, in another order each time") {
  const Shuffle shuffle(50, 3), other_seed(50, 4);
  std::vector<std::vector<std::int64_t>> passes;
  for (std::uint64_t pass = 0; pass < 4; ++pass) {
    std::vector<std::int64_t> items;
    for (std::uint64_t i = 0; i < 50; ++i) items.push_back(shuffle.item(pass * 50 + i));
    passes.push_back(items);
    std::sort(items.begin(), items.end());
    for (std::int64_t i = 0; i < 50; ++i) CHECK(items[i] == i);
  }
  CHECK(std::set<std::vector<std::int64_t>>(passes.begin(), passes.end()).size() == 4);
  std::vector<std::int64_t> other;
  for (std::uint64_t i = 0; i < 50; ++i) other.push_back(other_seed.item(i));
  CHECK(other != passes[0]);
  for (const std::uint64_t running : {199, 0, 100, 51, 3})
    CHECK(shuffle.item(running) == passes[running / 50][running % 50]);

  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&, k] {
      for (std::uint64_t i = 0; i < 2000; ++i) {
        const std::uint64_t running = (i * (2 * k + 1)) % 200;
        wrong[k] += shuffle.item(running) != passes[running / 50][running % 50];
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("batches of a data set: each pass in another order, other splits in order, the last batch shorter") {
  const TaskShape shape{.input = InputKind::dense, .input_size = 1, .output_size = 1, .readout = ReadoutKind::every};
  const ItemBatches batches(4, 12, 3, 5), as_many(4, 12, 3);
  std::vector<int> items(12);
  for (int i = 0; i < 12; ++i) items[std::size_t(i)] = i + 1;  // and as many steps
  CHECK(batches.count(Split::train, 12) == 3);
  CHECK(batches.count(Split::train, 3) == 1);
  CHECK(batches.count(Split::test, 12) == 3);
  CHECK(as_many.count(Split::test, 13) == 4);

  Batch<double> batch;
  const auto read = [&](Split split, Index index) {
    batches.fill(
        batch, shape, split, index, items, [](int item) { return Index(item); },
        [&](int item, Index b) { batch.length(b) = item, batch.input(0, b)[0] = item; });
    std::vector<int> read;
    for (Index b = 0; b < batch.sequences(); ++b) read.push_back(int(batch.input(0, b)[0]));
    CHECK(batch.steps() == *std::max_element(read.begin(), read.end()));
    return read;
  };
  CHECK(read(Split::validation, 0) == std::vector<int>{1, 2, 3, 4, 5});
  CHECK(read(Split::test, 2) == std::vector<int>{11, 12});
  std::vector<std::vector<int>> passes(2);
  for (Index index = 0; index < 6; ++index)
    for (const int item : read(Split::train, index)) passes[std::size_t(index / 3)].push_back(item);
  CHECK(passes[0] != passes[1]);
  for (std::vector<int>& pass : passes) {
    std::sort(pass.begin(), pass.end());
    CHECK(pass == items);
  }
}

TEST_CASE("adding: marks, values and targets of every form") {
  struct Form {
    const char* positions;
    Index length, first_end, second_begin;
  };
  for (const Form form : {Form{"halves", 7, 3, 3}, Form{"halves", 8, 4, 4}, Form{"sco", 7, 3, 3}, Form{"sco", 8, 3, 3},
                          Form{"any", 7, 6, 0}}) {
    CAPTURE(form.positions);
    const std::string options =
        "{length: " + std::to_string(form.length) + ", target_scale: 0.5, positions: " + form.positions + "}";
    const auto task = make<double>("adding", options, {5, 400, ""});
    CHECK(task->shape().steps == form.length);
    Batch<double> batch = batch_of(*task, Split::train, 0);
    REQUIRE(batch.sequences() == 400);
    std::set<Index> firsts, seconds;
    for (Index b = 0; b < batch.sequences(); ++b) {
      const std::vector<Index> marks = marks_of(batch, b);
      REQUIRE(marks.size() == 2);
      firsts.insert(marks[0]);
      seconds.insert(marks[1]);
      const double sum = batch.input(marks[0], b)[0] + batch.input(marks[1], b)[0];
      CHECK(batch.target(0, b)[0] == doctest::Approx(0.5 * sum).epsilon(1e-14));
    }
    const auto values = batch.inputs().row(0);
    CHECK((values.minCoeff() >= 0 && values.maxCoeff() < 1 && std::abs(values.mean() - 0.5) < 0.03));
    CHECK(*firsts.begin() == 0);
    CHECK(*firsts.rbegin() == form.first_end - 1);
    if (form.second_begin > 0) CHECK(*seconds.begin() == form.second_begin);
    CHECK(*seconds.rbegin() == form.length - 1);
  }
}

TEST_CASE("adding: the baseline is what predicting the mean costs") {
  for (const double scale : {1.0, 0.5}) {
    const auto task =
        make<double>("adding", "{length: 10, target_scale: " + std::to_string(scale) + "}", {1, 20000, ""});
    CHECK(task->baseline() == doctest::Approx(scale * scale / 6));
    CHECK(trivial_loss(*task, batch_of(*task, Split::train, 0)) ==
          doctest::Approx(task->baseline()).scale(0).epsilon(0.03));
  }
}

TEST_CASE("adding: an answer within 0.04 is right") {
  const auto task = make<float>("adding", "length: 10", {1, 4, ""});
  REQUIRE(task->metrics().size() == 1);
  CHECK(task->metrics()[0].name == "accuracy");
  Batch<float> batch = batch_of(*task, Split::test, 0);
  batch.weight(9, 2) = 3;
  Matrix<float> output = batch.targets();
  output(0, 0) += 0.0390f;
  output(0, 1) += 0.0410f;
  output(0, 3) -= 0.0410f;
  Ratio ratio{1, 1};
  task->measure(output, targets_of(batch), {&ratio, 1});
  CHECK(ratio.sum == 1 + 1 + 3);
  CHECK(ratio.weight == 1 + 6);
}

TEST_CASE("generated sequences depend on seed, split and number alone") {
  for (const char* name : {"adding", "copy"}) {
    CAPTURE(name);
    const std::string options = std::string(name) == "copy" ? "{length: 6, encoding: scalar}" : "{length: 12}";
    const auto by_six = make<float>(name, options, {9, 6, ""}), by_two = make<float>(name, options, {9, 2, ""}),
               other_seed = make<float>(name, options, {10, 6, ""});
    const auto in_double = make<double>(name, options, {9, 6, ""});
    std::set<std::vector<double>> seen;
    for (const Split split : splits)
      for (Index index = 0; index < 3; ++index) {
        const Batch<float> batch = batch_of(*by_six, split, index);
        const Batch<double> twin = batch_of(*in_double, split, index);
        for (Index b = 0; b < 6; ++b) {
          const std::vector<double> sequence = inputs_of(batch, b);
          seen.insert(sequence);
          CHECK(inputs_of(batch_of(*by_two, split, index * 3 + b / 2), b % 2) == sequence);
          CHECK(inputs_of(batch_of(*other_seed, split, index), b) != sequence);
          std::vector<double> rounded = inputs_of(twin, b);
          for (double& x : rounded) x = float(x);
          CHECK(rounded == sequence);
        }
      }
    CHECK(seen.size() == 3 * 3 * 6);  // no sequence of one split in another
  }
}

TEST_CASE("generated sets: sizes, the last batch, finite training sets") {
  const std::string sizes = "validation_sequences: 25, test_sequences: 0, batches_per_epoch: 7";
  const auto fresh = make<float>("adding", "{length: 8, " + sizes + "}", {1, 10, ""});
  CHECK(fresh->batches(Split::train) == 7);
  CHECK(fresh->batches(Split::validation) == 3);
  CHECK(fresh->batches(Split::test) == 0);
  CHECK(batch_of(*fresh, Split::validation, 2).sequences() == 5);
  CHECK_THROWS_AS(batch_of(*fresh, Split::test, 0), std::logic_error);

  const auto finite = make<float>("adding", "{length: 8, train_sequences: 35, " + sizes + "}", {1, 10, ""});
  CHECK(finite->batches(Split::train) == 3);
  std::vector<std::set<std::vector<double>>> passes(2);
  std::vector<std::vector<double>> order;
  for (Index index = 0; index < 7; ++index) {
    const Batch<float> batch = batch_of(*finite, Split::train, index);
    REQUIRE(batch.sequences() == 10);
    for (Index b = 0; b < 10; ++b) {
      order.push_back(inputs_of(batch, b));
      passes[order.size() > 35].insert(order.back());
    }
  }
  CHECK(passes[0].size() == 35);
  CHECK(passes[0] == passes[1]);
  CHECK(!std::equal(order.begin(), order.begin() + 35, order.begin() + 35));
}

TEST_CASE("copy: inputs and targets of every variant") {
  // Two symbols, T = 4; s and r are the symbols, 9 the delimiter.
  struct Form {
    const char *variant, *input, *target;
  };
  for (const Form form :
       {Form{"A", "sr000900", "000000sr"}, Form{"B", "sr000090", "000000sr"}, Form{"C", "sr000999", "000000sr"}}) {
    CAPTURE(form.variant);
    const auto task =
        make<double>("copy", std::string("{length: 4, symbols: 2, variant: ") + form.variant + "}", {3, 5, ""});
    CHECK(task->shape().input_size == 10);
    CHECK(task->shape().output_size == 9);
    CHECK(task->shape().steps == 8);
    Batch<double> batch = batch_of(*task, Split::train, 4);
    for (Index b = 0; b < 5; ++b) {
      const std::vector<std::int32_t> input = symbols_of(batch, b), target = labels_of(batch, b);
      CHECK((input[0] >= 1 && input[0] <= 8 && input[1] >= 1 && input[1] <= 8));
      const auto expected = [&](const char* pattern) {
        std::vector<std::int32_t> all;
        for (const char c : std::string(pattern)) all.push_back(c == 's' ? input[0] : c == 'r' ? input[1] : c - '0');
        return all;
      };
      CHECK(input == expected(form.input));
      CHECK(target == expected(form.target));
    }
  }
}

TEST_CASE("copy: all symbols come, all delimiter places of the variable form come") {
  const auto task =
      make<float>("copy", "{length: 6, symbols: 3, variant: variable, delimiter_output: true}", {3, 600, ""});
  CHECK(task->shape().output_size == 10);
  Batch<float> batch = batch_of(*task, Split::train, 0);
  std::set<Index> places;
  std::set<std::int32_t> data;
  for (Index b = 0; b < batch.sequences(); ++b) {
    const std::vector<std::int32_t> input = symbols_of(batch, b), target = labels_of(batch, b);
    const Index place = std::find(input.begin(), input.end(), 9) - input.begin();
    places.insert(place);
    std::vector<std::int32_t> expected(12);
    std::copy_n(input.begin(), 3, expected.begin() + place + 1);
    CHECK(target == expected);
    data.insert(input.begin(), input.begin() + 3);
    CHECK(std::count(input.begin() + 3, input.end(), 0) == 8);
  }
  CHECK(places == std::set<Index>{4, 5, 6, 7, 8});
  CHECK(data == std::set<std::int32_t>{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("copy: one number a step says the same as symbols") {
  const auto onehot = make<float>("copy", "{length: 5, symbols: 4, alphabet: 3, variant: C}", {3, 8, ""});
  const auto scalar =
      make<float>("copy", "{length: 5, symbols: 4, alphabet: 3, variant: C, encoding: scalar}", {3, 8, ""});
  CHECK(onehot->shape().input == InputKind::symbols);
  CHECK(onehot->shape().input_size == 5);
  CHECK(scalar->shape().input == InputKind::dense);
  CHECK(scalar->shape().input_size == 1);
  Batch<float> a = batch_of(*onehot, Split::test, 0), b = batch_of(*scalar, Split::test, 0);
  CHECK(a.labels() == b.labels());
  for (Index t = 0; t < a.steps(); ++t)
    for (Index k = 0; k < 8; ++k) CHECK(b.input(t, k)[0] == (a.symbol(t, k) == 4 ? -1 : a.symbol(t, k)));
}

TEST_CASE("copy: the baselines of the papers, reached by the constant predictor") {
  struct Published {
    Index length;
    double value;
  };
  for (const Published p :
       {Published{100, .17329}, {200, .09452}, {500, .03999}, {1000, .020387}, {2000, .010294}, {10000, .002075}})
    CHECK(make<double>("copy", "length: " + std::to_string(p.length), {1, 1, ""})->baseline() ==
          doctest::Approx(p.value).scale(0).epsilon(1e-3));
  for (const char* variant : {"A", "B", "C"}) {
    const auto task = make<double>("copy", std::string("{length: 30, variant: ") + variant + "}", {1, 10, ""});
    CHECK(trivial_loss(*task, batch_of(*task, Split::validation, 1)) ==
          doctest::Approx(task->baseline()).epsilon(1e-12));
  }
  const auto task = make<double>(
      "copy", "{length: 20, symbols: 4, alphabet: 5, variant: variable, delimiter_output: true}", {1, 4000, ""});
  CHECK(task->baseline() > 4 * std::log(5.0) / 28);
  CHECK(trivial_loss(*task, batch_of(*task, Split::train, 0)) == doctest::Approx(task->baseline()).epsilon(0.01));
}

TEST_CASE("copy: accuracy counts the recall only") {
  const auto task = make<float>("copy", "length: 20", {1, 6, ""});
  Batch<float> batch = batch_of(*task, Split::test, 0);
  Matrix<float> output = Matrix<float>::Zero(9, batch.steps() * 6);
  for (Index c = 0; c < output.cols(); ++c) output(batch.labels()[c], c) = 1;
  for (Index t = 0; t < 30; ++t) output(5, t * 6) = 2;  // wrong, but where a blank is due
  for (Index i = 0; i < 4; ++i) output(0, (30 + i) * 6 + 1) = 2;
  Ratio ratio;
  task->measure(output, targets_of(batch), {&ratio, 1});
  CHECK(ratio.weight == 60);
  CHECK(ratio.sum == 56);
}

TEST_CASE("options that cannot be are refused") {
  const auto message = [](const char* task, const char* options) -> std::string {
    try {
      make<float>(task, options, {1, 1, ""});
    } catch (const Error& error) {
      CHECK(error.code() == Exit::usage);
      return error.what();
    }
    return "accepted";
  };
  const auto says = [&](const char* task, const char* options, const char* part) {
    CAPTURE(options);
    const std::string text = message(task, options);
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  says("adding", "length: 1", "length");
  says("adding", "positions: thirds", "halves");
  says("adding", "{length: 2, positions: sco}", "at least 3");
  says("adding", "target_scale: 0", "target_scale");
  says("copy", "variant: D", "variable");
  says("copy", "{length: 1, variant: variable}", "at least 2");
  says("copy", "encoding: onehott", "onehot");
  says("copy", "alphabet: 1", "alphabet");
  says("copy", "train_sequences: -1", "train_sequences");
}

TEST_CASE("a batch refuses numbers and places that it does not have") {
  Batch<float> batch;
  batch.resize({.input_size = 2, .output_size = 1, .readout = ReadoutKind::last, .steps = 3}, 4, 3);
  CHECK(batch.input(2, 3).size() == 2);
  CHECK(batch.target(2, 3).size() == 1);
  CHECK_THROWS_WITH_AS(batch.label(2, 3), doctest::Contains("no labels"), Error);
  CHECK_THROWS_WITH_AS(batch.symbol(0, 0), doctest::Contains("no symbols"), Error);
  CHECK_THROWS_WITH_AS(batch.input(3, 0), doctest::Contains("step 3 of sequence 0"), Error);
  CHECK_THROWS_WITH_AS(batch.weight(0, 4), doctest::Contains("4 sequences of 3 steps"), Error);
  CHECK_THROWS_AS(batch.length(-1), Error);
}
