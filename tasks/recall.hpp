/// Tasks that ask for symbols at some steps, where every answer is equally likely, and score no other step.
#pragma once

#include <algorithm>
#include <cmath>

#include "generated.hpp"

namespace stiefel {

template <class S> class Recall : public Generated<S> {
 public:
  /// The answers are the symbols first … end − 1.
  Recall(const GeneratedOptions& options, const TaskContext& context, Index first, Index end)
      : Generated<S>(options, context), first_(first), end_(end) {}

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    return softmax_cross_entropy(output, targets, doutput);
  }
  /// The share of right answers, and that of sequences without a wrong one.
  std::vector<Metric> metrics() const override {
    return {{"accuracy"}, {.name = "sequence_accuracy", .of_sequence = all_right}};
  }
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override {
    each_answer<S>(output, targets, [&](Index c, const Ratio& answer) {
      metrics[0] += answer;
      metrics[1 + std::size_t(targets.sequences[std::size_t(c)])] += answer;
    });
  }

  double baseline() const override { return std::log(double(end_ - first_)); }
  void trivial(Index, std::span<S> output) const override {
    for (Index i = 0; i < Index(output.size()); ++i) output[std::size_t(i)] = S(i >= first_ && i < end_ ? 0 : -1e30);
  }

 protected:
  void mask(Batch<S>& batch, Index b) const {
    for (Index t = 0; t < batch.length(b); ++t) batch.weight(t, b) = S(0);
  }
  void ask(Batch<S>& batch, Index t, Index b, std::int32_t answer) const {
    batch.label(t, b) = answer;
    batch.weight(t, b) = S(1);
  }

 private:
  Index first_, end_;
};

}  // namespace stiefel
