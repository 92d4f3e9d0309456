// Readout and loss of one slice, chunk by chunk: the outputs at the steps that are scored, and their gradient.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "engine/model.hpp"
#include "engine/slices.hpp"

namespace stiefel {

/// What is scored: all steps that the task scores, or only the last step of each sequence.
enum class Scored { all, last_steps };

/// Scores one chunk after the other: choose(), forward(), and backward() if a gradient is wanted. Reuses its memory.
template <class S> class Scoring {
 public:
  void begin(const Model<S>& model, const Task<S>& task, const Batch<S>& batch, const Slice& slice) {
    model_ = &model, task_ = &task, batch_ = &batch, slice_ = &slice;
  }
  /// Selects steps first … first + steps − 1 of the slice, and returns how many of their outputs are scored.
  Index choose(Index first, Index steps, Scored scored);
  /// Returns the loss of a chunk that has scored outputs. `top` has what the top layer puts out, a column for each step
  /// and sequence. Adds to `metrics`, which has the
  /// ratios of the sequences of the slice, and writes to `outputs` (columns scored(t, b) of the batch) unless they are null.
  double forward(CMat<S> top, bool gradient, std::vector<Ratio>* metrics, Matrix<S>* outputs);
  /// Multiplies the gradient of the last forward() by `scale`, adds that of the readout to `dreadout` unless it is
  /// empty, and sets dtop.
  void backward(CMat<S> top, double scale, std::span<S> dreadout, Mat<S> dtop);

 private:
  Index count() const { return Index(places_.size()); }
  Index column(Index i) const { return places_[i].first * slice_->columns() + places_[i].second; }
  bool all_columns() const { return count() == steps_ * slice_->columns(); }
  bool alive(Index i) const { return slice_->active[first_ + places_[i].first] > places_[i].second; }
  /// Column of the batch's targets, labels and weights.
  Index source(Index i) const {
    return batch_->scored(first_ + places_[i].first, slice_->sequences[places_[i].second]);
  }
  CMat<S> read(CMat<S> top);
  Targets<S> targets();
  /// Says which step and sequence each column belongs to.
  void place(Targets<S>& targets);

  const Model<S>* model_ = nullptr;
  const Task<S>* task_ = nullptr;
  const Batch<S>* batch_ = nullptr;
  const Slice* slice_ = nullptr;
  Index first_ = 0, steps_ = 0;
  std::vector<std::pair<Index, Index>> places_;  // (step of the chunk, column of the slice) of each scored output
  std::vector<S> output_, dout_, gathered_, dgathered_, weights_, values_;
  std::vector<std::int32_t> labels_;
  std::vector<Index> steps_of_, sequences_of_;
};

}  // namespace stiefel
