// What a task says that no pass may rely on is refused with the name of its plugin.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "engine/guarded_task.hpp"
#include "host/plugin_faults.hpp"

using namespace stiefel;

namespace {

/// Symbols, labels at each step; spoiled by a test.
class Letters final : public Task<double> {
 public:
  Letters() : Task<double>({}) {}
  TaskShape shape() const override { return shape_; }
  Index batches(Split split) const override { return split == Split::test ? -1 : 5; }
  void fill(Split, Index, Batch<double>& batch) const override {
    batch.resize(shape_, 3, 4);
    spoil(batch);
  }
  double loss(CMat<double>, const Targets<double>&, Mat<double>) const override { throw 3; }
  std::vector<Metric> metrics() const override { return metrics_; }
  double baseline() const override { throw std::runtime_error("no baseline"); }

  TaskShape shape_{.input = InputKind::symbols, .input_size = 5, .output_size = 2, .labels = true, .steps = 4};
  std::vector<Metric> metrics_;
  std::function<void(Batch<double>&)> spoil = [](Batch<double>&) {};
};

GuardedTask<double> guarded_letters(const std::function<void(Letters&)>& change) {
  auto task = std::make_unique<Letters>();
  change(*task);
  return GuardedTask<double>({std::move(task), "letters", "letters.so"});
}

std::string refusal(const std::function<void(Letters&)>& change) {
  try {
    Batch<double> batch;
    guarded_letters(change).fill(Split::train, 7, batch);
  } catch (const Error& error) {
    CHECK(error.code() == Exit::plugin);
    return error.what();
  }
  return "";
}

std::string refusal_of_batch(const std::function<void(Batch<double>&)>& spoil) {
  return refusal([&](Letters& task) { task.spoil = spoil; });
}

}  // namespace

TEST_CASE("a sound batch passes, with labels that do not count and steps that are beyond the end") {
  CHECK(refusal_of_batch([](auto& batch) {
          batch.symbol(0, 0) = -1;
          batch.label(1, 1) = -1, batch.weight(1, 1) = 0;
          batch.length(2) = 2, batch.symbol(3, 2) = 77, batch.label(3, 2) = 77;
        }) == "");
}

TEST_CASE("a batch by which a pass would read beyond its memory is refused by name, split and number") {
  CHECK(refusal_of_batch([](auto& batch) { batch.label(2, 1) = 2; }) ==
        "the task letters (letters.so) is wrong: in batch 7 of train, label 2 at step 2 of sequence 1 is invalid: it "
        "must be from 0 to 1; "
        "`stiefel check` "
        "tests it");
  CHECK(refusal_of_batch([](auto& batch) { batch.label(0, 0) = -1; }).find("label -1 at step 0") != std::string::npos);
  CHECK(refusal_of_batch([](auto& batch) { batch.symbol(3, 0) = 5; }).find("symbol 5 at step 3") != std::string::npos);
  CHECK(refusal_of_batch([](auto& batch) {
          batch.length(1) = 5;
        }).find("sequence 1 has length 5 in a batch of 4 steps") != std::string::npos);
  CHECK(refusal_of_batch([](auto& batch) { batch.length(1) = 0; }).find("has length 0") != std::string::npos);
  for (const double weight : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    CHECK(refusal_of_batch([&](auto& batch) {
            batch.weight(1, 1) = weight;
          }).find("is invalid: it must be finite and ≥ 0") != std::string::npos);
  const TaskShape last{.input = InputKind::symbols,
                       .input_size = 5,
                       .output_size = 2,
                       .readout = ReadoutKind::last,
                       .labels = true,
                       .steps = 4};
  CHECK(refusal_of_batch([&](auto& batch) {
          batch.resize(last, 3, 4);
        }).find("resized the batch for a shape other than") != std::string::npos);
  CHECK(refusal_of_batch([](auto& batch) {
          batch.resize({.input_size = 1, .output_size = 1, .steps = 4}, 3, 4);
        }).find("a shape other than") != std::string::npos);
  CHECK(refusal_of_batch([](auto& batch) { batch = Batch<double>(); }).find("without sequences") != std::string::npos);
  CHECK(refusal([](Letters& task) {
          task.spoil = [shape = task.shape_](auto& batch) { batch.resize(shape, 3, 9); };
        }).find("a batch has 9 steps, but shape() says 4") != std::string::npos);
}

TEST_CASE("shapes, metrics and counts that cannot be are refused") {
  CHECK(refusal([](Letters& task) { task.shape_.output_size = 0; }).find("is wrong: output_size is 0") !=
        std::string::npos);
  CHECK(refusal([](Letters& task) { task.shape_.input_size = -1; }).find("input_size is -1") != std::string::npos);
  CHECK(refusal([](Letters& task) { task.shape_.steps = 0; }).find("steps is 0") != std::string::npos);
  for (const char* name : {"loss", "", "Accuracy", "a/b"})
    CHECK(refusal([&](Letters& task) { task.metrics_ = {{name}}; }).find("is not a valid metric name") !=
          std::string::npos);
  CHECK(refusal([](Letters& task) {
          task.metrics_ = {{"a"}, {"a"}};
        }).find("is not a valid metric name") != std::string::npos);
  const GuardedTask<double> task = guarded_letters([](Letters&) {});
  CHECK(task.batches(Split::train) == 5);
  CHECK_THROWS_WITH_AS(task.batches(Split::test), doctest::Contains("batches(test) is -1"), Error);
}

TEST_CASE("whatever a task throws names it") {
  const GuardedTask<double> task = guarded_letters([](Letters&) {});
  CHECK_THROWS_WITH_AS(task.baseline(), "no baseline (in baseline() of letters, letters.so)", Error);
  CHECK_THROWS_WITH_AS(task.loss(CMat<double>(), {}, mat<double>(nullptr, 0, 0, 0)),
                       doctest::Contains("type int was thrown in loss() of letters"), Error);
}

TEST_CASE("names and sizes of blocks") {
  CHECK(block_fault({"activation.slope", 3}) == "");
  CHECK(block_fault({"A", 6, 2, 3}) == "");
  for (const char* name : {"", "a/b", "a..b", ".", "Weight", "a b", "ä"})
    CHECK(block_fault({name, 3}).find("must be [a-z0-9_]+") != std::string::npos);
  CHECK(block_fault({"a", -1}).find("is negative") != std::string::npos);
  CHECK(block_fault({"a", 5, 2, 3}) == "block `a` is 2 × 3 but has 5 numbers");
  CHECK(block_fault({"Q", 6, 2, 3, Manifold::orthogonal}).find("is not an orthogonal matrix") != std::string::npos);
  CHECK(block_fault({"Q", 9, 3, 3, Manifold::unitary}).find("is not a unitary matrix") != std::string::npos);
  CHECK(block_fault({"a", 1, 0, 0, Manifold::flat, 0}).find("rate_scale 0") != std::string::npos);
}
