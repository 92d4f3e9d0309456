// The time loop over one slice of a batch: forward chunk by chunk, then backward from the last chunk to the first. What
// a chunk saves is kept until then, or computed again from the state that entered the chunk: the same bits for a third
// more work.
#pragma once

#include <vector>

#include "engine/model.hpp"
#include "engine/slices.hpp"

namespace stiefel {

/// Results to compute in addition to loss and gradient.
struct PassRequest {
  bool gradient = true;  // false: forward and loss only, panels are not kept
  bool metrics = false;
  bool hidden_norms = false;
  bool gradient_norms = false;  // ‖∂L/∂h_t‖, and the same for the loss of the last step alone
};

/// Numbers in the panels of a slice; as floating point, since they may be more than any memory holds.
struct SliceRoom {
  double saved = 0, entering = 0, panel = 0, scratch = 0, delta = 0, doutput = 0, dhidden = 0;
  double sum() const { return saved + entering + panel + scratch + delta + doutput + dhidden; }
};
/// `columns` sequences of `steps` steps, `chunk` of them at once.
template <class S>
SliceRoom slice_room(const Model<S>& model, Index columns, Index steps, Index chunk, const PassRequest& request);

/// Sums over the sequences of one slice; squares where norms are wanted, one entry a time step.
struct PassSums {
  double loss = 0;
  double forward_seconds = 0;
  std::vector<Ratio> metrics;
  std::vector<double> hidden, gradient, last_gradient;
};

/// Memory and loop of one slice. Reused from step to step; used by one thread at a time.
template <class S> class SlicePass {
 public:
  /// `scale` = 1 / weight of the whole batch, `last_scale` = 1 / weight of its last steps; `carried`: entering state of
  /// every sequence of the batch, or 0 × 0. Losses and gradients are multiplied by the scales. `outputs`, where the
  /// slice's columns scored(t, b) are written, or null.
  void run(const Model<S>& model, const Task<S>& task, const Batch<S>& batch, const Slice& slice,
           const PassRequest& request, double scale, double last_scale, const Matrix<S>& carried, Matrix<S>* outputs);

  /// Instead of run(), where another process does that: memory for what it sends.
  void expect(const Model<S>& model, const Task<S>& task, const Slice& slice, const PassRequest& request);
  /// Calls visit(bytes) for everything that run() leaves behind but the outputs.
  template <class F> void each_result(F&& visit) {
    const auto numbers = [&](auto& values) { visit(std::as_writable_bytes(std::span(values))); };
    visit(std::as_writable_bytes(std::span(&sums_.loss, 1)));
    numbers(sums_.metrics), numbers(sums_.hidden), numbers(sums_.gradient), numbers(sums_.last_gradient);
    numbers(gradient_), numbers(input_sum_);
    for (auto& sum : map_sums_) numbers(sum);
    visit(std::as_writable_bytes(std::span(leaving_.data(), std::size_t(leaving_.size()))));
  }

  const PassSums& sums() const { return sums_; }
  /// Gradient of every block outside the maps; the blocks of the maps come last in the layout and are left out.
  const std::vector<S>& gradient() const { return gradient_; }
  std::span<const S> input_sum() const { return input_sum_; }
  std::span<S> map_sum(Index map) { return map_sums_[map]; }
  /// Adds another slice's gradients and sums to this one's.
  void add_sums(const SlicePass& other);
  /// State of each column after its last step, state rows × columns.
  const Matrix<S>& leaving() const { return leaving_; }

 private:
  class Sink;
  enum class Scored { all, last_steps };

  void prepare_results();
  void prepare_memory();
  void enter(const Matrix<S>& carried);
  Chunk<S> chunk(Index number, bool record_hidden = false);
  Window<S> window(const Chunk<S>& chunk) const { return {*batch_, *slice_, chunk.first, chunk.steps}; }
  void forward(Chunk<S>& chunk, Index number);
  void compute(Chunk<S>& chunk);
  Mat<S> entering_state(const Chunk<S>& chunk) const;
  void note_leaving(const Chunk<S>& chunk);
  void backward(Scored scored, GradientSink<S>& sink, double scale, std::vector<double>* norms);
  /// Outputs, loss and ∂L/∂h of a chunk; the result has 0 columns when nothing is scored.
  CMat<S> score(const Chunk<S>& chunk, Scored scored, double scale, bool want_gradient, bool accumulate);
  Targets<S> targets(const Chunk<S>& chunk);
  void find_places(const Chunk<S>& chunk, Scored scored);
  CMat<S> operand(const Chunk<S>& chunk, bool contiguous);

  const Model<S>* model_ = nullptr;
  const Task<S>* task_ = nullptr;
  const Batch<S>* batch_ = nullptr;
  const Slice* slice_ = nullptr;
  PassRequest request_;
  Matrix<S>* outputs_ = nullptr;
  Index chunk_ = 0, stride_ = 0;
  bool keep_ = false;                            // what every chunk saves
  Index held_ = -1;                              // the chunk that memory holds otherwise
  std::vector<std::pair<Index, Index>> places_;  // (step of the chunk, column) of each scored output

  PassSums sums_;
  std::vector<S> saved_, delta_, dhidden_, doutput_, output_, dout_, gathered_, dgathered_, panel_, scratch_, entering_;
  std::vector<S> gradient_, input_sum_;
  std::vector<std::vector<S>> map_sums_;
  std::vector<std::int32_t> labels_;
  std::vector<S> weights_, values_;
  Matrix<S> dstate_, leaving_;
};

}  // namespace stiefel
