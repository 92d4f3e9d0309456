// The time loop over one slice of a batch: forward chunk by chunk, then backward from the last chunk to the first. What
// a chunk saves is kept until then, or computed again from the states that entered the chunk, which gives the same bits
// for a third more work. A chunk passes all layers before the next one begins. A bidirectional network has only one
// chunk.
#pragma once

#include <string>
#include <vector>

#include "engine/model.hpp"
#include "engine/scoring.hpp"
#include "engine/slices.hpp"

namespace stiefel {

/// What a pass computes.
struct PassRequest {
  bool gradient = true;    // false: only forward pass, loss and metrics; panels are not kept
  bool regularise = true;  // whether the gradient has composite decay and penalties of the maps
  bool summed = false;     // the loss is a sum over the steps of a sequence, and a mean over sequences
  bool norms = false;      // ‖h_t‖, ‖∂L/∂h_t‖, and the latter for the loss of the last step alone
  std::uint64_t seed = 0;
  std::string dropout = {};  // names the random numbers of this batch; empty: no dropout
};

/// How many numbers each panel of a slice has. Floating point, since there may be more than any memory holds.
struct RecurrenceRoom {
  double saved = 0, entering = 0, panel = 0, delta = 0, dhidden = 0;
};
struct LayerRoom {
  std::vector<RecurrenceRoom> recurrences;
  double h = 0, gate = 0, stream = 0, mask = 0, dstream = 0, dgate = 0, dh = 0, reversed = 0;
};
struct SliceRoom {
  std::vector<LayerRoom> layers;
  double scratch = 0;
  double sum() const;
};
/// The room that `columns` sequences of `steps` steps need, `chunk` steps at a time.
template <class S>
SliceRoom slice_room(const Model<S>& model, Index columns, Index steps, Index chunk, const PassRequest& request);

/// Sums over the sequences of one slice. If norms are wanted, the vectors have sums of squares: entry t·layers + layer.
struct PassSums {
  double loss = 0;
  double forward_seconds = 0;
  std::vector<Ratio> metrics;
  std::vector<double> hidden, gradient, last_gradient;
};

/// Memory and loop of one slice. It is reused from step to step, by one thread at a time.
template <class S> class SlicePass {
 public:
  /// Losses and gradients are multiplied by `scale` (1 / weight of the whole batch), those of the last step alone by
  /// `last_scale` (1 / weight of the last steps). `carried` has the entering states of every sequence of the batch, or
  /// is 0 × 0. The slice writes its columns scored(t, b) of `outputs` unless it is null.
  void run(const Model<S>& model, const Task<S>& task, const Batch<S>& batch, const Slice& slice,
           const PassRequest& request, double scale, double last_scale, const Matrix<S>& carried, Matrix<S>* outputs);

  /// Allocates the results of run(), which another process computes and sends.
  void expect(const Model<S>& model, const Task<S>& task, const Slice& slice, const PassRequest& request);
  /// Calls visit(bytes) for every result of run() except the outputs and forward_seconds.
  template <class F> void each_result(F&& visit) {
    const auto numbers = [&](auto& values) { visit(std::as_writable_bytes(std::span(values))); };
    visit(std::as_writable_bytes(std::span(&sums_.loss, 1)));
    numbers(sums_.metrics), numbers(sums_.hidden), numbers(sums_.gradient), numbers(sums_.last_gradient);
    numbers(gradient_);
    for (auto& sum : input_sums_) numbers(sum);
    for (auto& sum : map_sums_) numbers(sum);
    visit(std::as_writable_bytes(std::span(leaving_.data(), std::size_t(leaving_.size()))));
  }

  const PassSums& sums() const { return sums_; }
  /// Gradients of all blocks except those of the maps, which come last in the layout.
  const std::vector<S>& gradient() const { return gradient_; }
  /// Gradient sums of an input layer; recurrences are counted from the input.
  std::span<const S> input_sum(Index recurrence) const { return input_sums_[std::size_t(recurrence)]; }
  std::span<S> map_sum(Index map) { return map_sums_[std::size_t(map)]; }
  /// Adds another slice's gradients and sums to this one's.
  void add_sums(const SlicePass& other);
  /// States of each column after its last step, Model::state_rows × columns.
  const Matrix<S>& leaving() const { return leaving_; }
  /// What the (forward) recurrence of a layer saved in the last chunk of the last run(): column block 0 belongs to the
  /// step before the chunk.
  CMat<S> saved(Index layer) const {
    const RecurrencePass& r = layers_[std::size_t(layer)].recurrences[0];
    return cmat(r.saved.data(), r.recurrence->cell->saved_rows(),
                (slice_->steps() - first_step(held_) + 1) * slice_->columns(), r.stride);
  }

 private:
  class Sink;

  /// What a cell saves and reads, chunk by chunk.
  struct RecurrencePass {
    const Recurrence<S>* recurrence = nullptr;
    Index number = 0, stride = 0;
    std::vector<S> saved, entering, panel, delta, dhidden;
    Matrix<S> dstate;
  };
  struct LayerPass {
    const Layer<S>* layer = nullptr;
    std::vector<RecurrencePass> recurrences;
    std::vector<S> h, gate, stream, mask, dstream, dgate, dh, reversed;
  };

  void prepare_results();
  void prepare_memory();
  void enter(const Matrix<S>& carried);
  Chunk<S> chunk(RecurrencePass& pass, Index number, bool record_hidden = false);
  Index first_step(Index number) const { return number * chunk_; }
  Index steps_of(Index number) const { return std::min(chunk_, slice_->steps() - first_step(number)); }
  Index columns_of(Index number) const { return steps_of(number) * slice_->columns(); }
  /// Column in a chunk's panels of step t of the recurrence for the sequence in column c.
  Index place(const Recurrence<S>& recurrence, Index t, Index c) const {
    return (recurrence.reversed ? slice_->lengths[c] - 1 - t : t) * slice_->columns() + c;
  }
  Mat<S> entering_state(const RecurrencePass& pass, const Chunk<S>& chunk) const;
  void forward(Index number);
  void compute(Index number);
  void compute(Index layer, RecurrencePass& pass, Index number);
  CMat<S> read(Index layer, RecurrencePass& pass, Index number);
  void note_leaving(const RecurrencePass& pass, const Chunk<S>& chunk);
  void note_hidden(Index layer, RecurrencePass& pass, Index number);
  /// Computes what a layer puts out for a chunk, unless that is the outputs of its only cell.
  void emit(Index layer, Index number);
  void draw_mask(Index layer, Index number);
  CMat<S> hidden(Index layer, Index number);
  CMat<S> stream(Index layer, Index number);
  Mat<S> dstream(Index layer, Index number);
  bool drops(const Layer<S>& layer) const { return layer.dropout > 0 && !request_.dropout.empty(); }

  void backward(Scored scored, double scale, std::vector<double>* norms);
  /// Goes back through this layer and those below it. `ds` is the gradient of what the layer puts out, or has 0
  /// columns.
  void backward(Index layer, Index number, CMat<S> ds, bool accumulate, std::vector<double>* norms);
  void backward(Index layer, RecurrencePass& pass, Index number, CMat<S> dh, bool accumulate,
                std::vector<double>* norms);
  /// Computes the gradient of what the layer below puts out.
  void backward_below(Index layer, Index number, CMat<S> ds, bool accumulate);

  /// Scores a chunk and returns the gradient of the top layer's outputs; 0 columns if there is none.
  CMat<S> score(Index number, Scored scored, double scale);
  Blocks<S> gradient_of(Layout::Part part) { return model_->layout.part(gradient_.data(), part); }

  const Model<S>* model_ = nullptr;
  const Task<S>* task_ = nullptr;
  const Batch<S>* batch_ = nullptr;
  const Slice* slice_ = nullptr;
  PassRequest request_;
  Matrix<S>* outputs_ = nullptr;
  Index chunk_ = 0;
  bool keep_ = false;  // whether what every chunk saves is kept
  Index held_ = -1;    // the only chunk in memory otherwise

  PassSums sums_;
  std::vector<LayerPass> layers_;
  Scoring<S> scoring_;
  std::vector<Ratio> measured_;  // the ratios of the metrics, for each sequence where a metric is one of sequences
  std::vector<S> scratch_, gradient_;
  std::vector<std::vector<S>> input_sums_, map_sums_;
  Matrix<S> leaving_;
};

}  // namespace stiefel
