// Random sequences of unequal lengths, with every kind of input and readout: the task of tests that look at a network's
// gradients.
#pragma once

#include <stiefel/losses.hpp>
#include <stiefel/random.hpp>
#include <stiefel/task.hpp>

namespace stiefel {

enum class Input { dense, symbols, embedded, none };

/// Targets are numbers or classes, some outputs are masked. The numbers are the same in float and double but for
/// rounding.
template <class S> class Probe final : public Task<S> {
 public:
  Probe(Input input, ReadoutKind readout, bool labels, Index steps = 9, Index sequences = 13, bool streams = true)
      : Task<S>(TaskContext{7, sequences, ""}),
        input_(input),
        readout_(readout),
        labels_(labels),
        steps_(steps),
        sequences_(sequences),
        streams_(streams) {}
  TaskShape shape() const override {
    const InputKind kind = input_ == Input::dense  ? InputKind::dense
                           : input_ == Input::none ? InputKind::none
                                                   : InputKind::symbols;
    return {kind, input_ == Input::none ? 0 : 3, 4, readout_, labels_, steps_, streams_};
  }
  Index batches(Split) const override { return 4; }
  void fill(Split, Index index, Batch<S>& batch) const override {
    batch.resize(shape(), sequences_, steps_);
    Rng rng(3, "probe", std::uint64_t(index));
    for (Index b = 0; b < sequences_; ++b) {
      batch.length(b) = 1 + rng.integer(0, steps_);
      for (Index t = 0; t < batch.length(b); ++t) {
        if (input_ == Input::dense)
          for (S& x : batch.input(t, b)) x = S(rng.normal());
        else if (input_ != Input::none)
          batch.symbol(t, b) = std::int32_t(rng.integer(-1, 3));
        if (labels_)
          batch.label(t, b) = std::int32_t(rng.integer(0, 4));
        else
          for (S& y : batch.target(t, b)) y = S(rng.normal());
        batch.weight(t, b) = S(rng.uniform() < 0.2 ? 0 : rng.uniform(0.5, 1.5));
      }
    }
  }
  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    return labels_ ? softmax_cross_entropy(output, targets, doutput) : mean_square(output, targets, doutput);
  }

 private:
  Input input_;
  ReadoutKind readout_;
  bool labels_;
  Index steps_, sequences_;
  bool streams_;
};

}  // namespace stiefel
