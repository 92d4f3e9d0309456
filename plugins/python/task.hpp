// A task whose batches are made in Python. Parts of its memory: inputs or symbols, targets or labels, weights, lengths.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "python/object.hpp"
#include "python/options.hpp"

namespace stiefel::python {

template <class S> class Task final : public stiefel::Task<S> {
 public:
  using Options = python::Options<Role::task>;

  Task(const Options& options, const TaskContext& context) : stiefel::Task<S>(context) {
    Call call = creation<S>(*options.worker);
    call.add(Index(context.seed));
    call.add(context.batch);
    call.add(context.data_directory);
    options.add_to(call);
    call.exchange();
    object_.emplace(options.worker, call);
    const std::string input = call.text();
    shape_.input = input == "dense" ? InputKind::dense : input == "symbols" ? InputKind::symbols : InputKind::none;
    shape_.input_size = call.integer();
    shape_.output_size = call.integer();
    shape_.readout = call.text() == "last" ? ReadoutKind::last : ReadoutKind::every;
    shape_.labels = call.integer() != 0;
    shape_.steps = call.integer();
    shape_.streams = call.integer() != 0;
    shape_.training_set = call.integer();
    shape_.predicts_inputs = call.integer() != 0;
    loss_ = call.text();
    baseline_ = call.number();
    for (Index count = call.integer(); count > 0; --count) trivial_.push_back(S(call.number()));
    for (Index& count : batches_) count = call.integer();
    for (const std::string& file : call.texts()) files_.push_back(std::filesystem::absolute(file).string());
  }

  TaskShape shape() const override { return shape_; }
  Index batches(Split split) const override { return batches_[std::size_t(split)]; }
  double baseline() const override { return baseline_; }
  void trivial(Index, std::span<S> output) const override { std::ranges::copy(trivial_, output.begin()); }
  std::vector<DataFile> files() const override {
    std::vector<DataFile> all;
    for (const std::string& file : files_) all.push_back({std::filesystem::path(file).filename().string(), file});
    return all;
  }

  void fill(Split split, Index index, Batch<S>& batch) const override {
    Call call = object_->call("batch", Index(split), index);
    const Index sequences = call.integer(), steps = call.integer();
    object_->memory().take(call.memory());
    const auto read = [&]<class T>(T) {
      const Index offset = call.integer();
      return object_->memory().template values<const T>(offset, call.integer());
    };
    batch.resize(shape_, sequences, steps);
    const auto each = [&](bool every, auto&& use) {
      for (Index t = 0, k = 0; t < (every ? steps : 1); ++t)
        for (Index b = 0; b < sequences; ++b) use(t, b, k++);
    };
    const auto copy = [&](std::span<const S> from, Index size, Index k, std::span<S> to) {
      std::copy_n(from.data() + k * size, size, to.data());
    };
    const bool every = shape_.readout == ReadoutKind::every;
    if (shape_.input == InputKind::symbols) {
      const auto symbols = read(std::int32_t());
      each(true, [&](Index t, Index b, Index k) { batch.symbol(t, b) = symbols[std::size_t(k)]; });
    } else if (const auto inputs = read(S()); shape_.input == InputKind::dense) {
      each(true, [&](Index t, Index b, Index k) { copy(inputs, shape_.input_size, k, batch.input(t, b)); });
    }
    if (shape_.labels) {
      const auto labels = read(std::int32_t());
      each(every, [&](Index t, Index b, Index k) { batch.label(t, b) = labels[std::size_t(k)]; });
    } else {
      const auto targets = read(S());
      each(every, [&](Index t, Index b, Index k) { copy(targets, shape_.output_size, k, batch.target(t, b)); });
    }
    if (const auto weights = read(S()); !weights.empty())
      each(every, [&](Index t, Index b, Index k) { batch.weight(t, b) = weights[std::size_t(k)]; });
    if (const auto lengths = read(std::int32_t()); !lengths.empty())
      for (Index b = 0; b < sequences; ++b) batch.length(b) = lengths[std::size_t(b)];
  }

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    if (shape_.labels) return softmax_cross_entropy(output, targets, doutput);
    return loss_ == "bernoulli" ? bernoulli(output, targets, doutput) : mean_square(output, targets, doutput);
  }
  std::vector<Metric> metrics() const override {
    return shape_.labels ? std::vector<Metric>{{"accuracy"}} : std::vector<Metric>();
  }
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override {
    if (!shape_.labels) return;
    metrics[0].sum += correct(output, targets);
    metrics[0].weight += total_weight(targets);
  }
  DataForm form() const override {
    DataForm form = stiefel::Task<S>::form();
    if (loss_ == "bernoulli") form.output = DataForm::Output::sigmoid;
    return form;
  }

 private:
  mutable std::optional<Object> object_;
  TaskShape shape_;
  std::string loss_;
  double baseline_ = 0;
  std::vector<S> trivial_;
  std::array<Index, 3> batches_{};
  std::vector<std::string> files_;
};

}  // namespace stiefel::python
