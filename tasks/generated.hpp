/// Tasks whose sequences are made from random numbers: drawn anew for ever, or a finite set that is passed through
/// again and again.
///
/// Sequence number q of a split comes from the random stream (seed, name of the split, q), whatever the batch size.
#pragma once

#include <algorithm>

#include <stiefel/plugin.hpp>

namespace stiefel {

struct GeneratedOptions {
  Index train_sequences = 0, validation_sequences = 1000, test_sequences = 1000, batches_per_epoch = 100;

  void describe(Schema& s) {
    s.field("train_sequences", train_sequences,
            "size of a finite training set, reshuffled for each pass; 0: every sequence is new")
        .at_least(0)
        .at_most(1e9);
    s.field("validation_sequences", validation_sequences, "size of the validation set; 0: none")
        .at_least(0)
        .at_most(1e9);
    s.field("test_sequences", test_sequences, "size of the test set; 0: none").at_least(0).at_most(1e9);
    s.field("batches_per_epoch", batches_per_epoch, "training batches per epoch when every sequence is new")
        .at_least(1)
        .at_most(1e9)
        .only_if(train_sequences == 0, "`train_sequences: 0`");
  }
};

inline Ratio& operator+=(Ratio& all, const Ratio& more) {
  all.sum += more.sum;
  all.weight += more.weight;
  return all;
}
/// Turns the answers of a sequence into its part of the share of sequences without a wrong one.
inline Ratio all_right(const Ratio& answers) {
  return {double(answers.weight > 0 && answers.sum == answers.weight), double(answers.weight > 0)};
}
/// Calls visit(c, answer) for each column c that is scored; answer.sum is its weight if the largest output is the label.
template <class S, class F> void each_answer(CMat<S> output, const Targets<S>& targets, F&& visit) {
  for (Index c = 0; c < output.cols(); ++c) {
    const double weight = double(targets.weights[std::size_t(c)]);
    if (weight == 0) continue;
    Index largest = 0;
    output.col(c).maxCoeff(&largest);
    visit(c, Ratio{largest == targets.labels[std::size_t(c)] ? weight : 0, weight});
  }
}

template <class S> class Generated : public Task<S> {
 public:
  Generated(const GeneratedOptions& options, const TaskContext& context)
      : Task<S>(context), options_(options), shuffle_(std::max<Index>(options.train_sequences, 1), context.seed) {}

  Index batches(Split split) const override {
    const Index batch = this->context().batch;
    if (split == Split::train)
      return options_.train_sequences > 0 ? std::max<Index>(options_.train_sequences / batch, 1)
                                          : options_.batches_per_epoch;
    return (size(split) + batch - 1) / batch;
  }

  void fill(Split split, Index index, Batch<S>& batch) const override {
    const TaskContext& context = this->context();
    const bool finite = split == Split::train && options_.train_sequences > 0;
    const Index first = index * context.batch;
    const Index sequences = split == Split::train ? context.batch : std::min(context.batch, size(split) - first);
    STIEFEL_ASSERT(index >= 0 && sequences > 0);
    const TaskShape shape = this->shape();
    batch.resize(shape, sequences, shape.steps);
    for (Index b = 0; b < sequences; ++b) {
      const auto running = static_cast<std::uint64_t>(first + b);
      Rng rng(context.seed, name_of(split), finite ? static_cast<std::uint64_t>(shuffle_.item(running)) : running);
      make(rng, batch, b);
    }
  }

 protected:
  /// 0: every sequence is new.
  Index training_set() const { return options_.train_sequences; }
  /// Writes sequence b of the batch, which is zero before.
  virtual void make(Rng& rng, Batch<S>& batch, Index b) const = 0;

 private:
  Index size(Split split) const {
    return split == Split::validation ? options_.validation_sequences : options_.test_sequences;
  }

  GeneratedOptions options_;
  Shuffle shuffle_;
};

}  // namespace stiefel
