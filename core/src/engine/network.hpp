// One training step or evaluation of a network on a batch, over all slices and threads, and its parameters.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/ranks.hpp"
#include "engine/slice_pass.hpp"
#include "engine/workers.hpp"
#include "host/memory_archive.hpp"

namespace stiefel {

/// Results of a whole batch. A norm is (Σ of squares over batch and rows)^½ for each time step and layer. A loss is a
/// mean over the scored outputs of the batch or, with PassRequest::summed, over its sequences.
struct PassResult {
  double loss = 0, penalty = 0;
  double weight = 0;       // what the loss is a mean over: total weight of the scored outputs, or number of sequences
  double last_weight = 0;  // total weight of the last step of each sequence
  double forward_seconds = 0;  // time loop of the slowest slice; without the loss in training
  std::vector<Ratio> metrics;
  std::vector<double> hidden_norm, gradient_norm, last_gradient_norm;  // entry t·layers + layer
};

/// The parameters, and the state that maps keep in addition, by the name of the map: "recurrent", "recurrent.forget".
/// Maps without such state are omitted.
template <class S> struct NetworkState {
  std::vector<S> values;
  std::map<std::string, StateItems> plugins;
};

template <class S> class STIEFEL_API Network {
 public:
  /// Allocates no memory that grows with the sizes of the model and the task; initialise() and allocate() do.
  Network(const Experiment& experiment, const Registry& registry, const Task<S>& task);

  const Layout& layout() const { return model_.layout; }
  Model<S>& model() { return model_; }
  void initialise(std::uint64_t seed);
  /// Allocates the parameters of a network that restore() fills.
  void allocate();
  Blocks<S> theta() { return model_.layout.all(theta_.data()); }
  std::vector<S>& values() { return theta_; }
  NetworkState<S> state();
  void restore(const NetworkState<S>& state);
  /// Whether the map has state beyond its parameters.
  bool keeps_state(Index map);
  Blocks<S> gradient() { return model_.layout.all(gradient_.data()); }

  /// Uses `theta` (the network's own parameters, or noisy copies of them) until the next refresh.
  void refresh(const std::vector<S>& theta) { model_.refresh(theta.data()); }
  void refresh() { refresh(theta_); }

  /// From now on all ranks compute a batch together.
  void share(Ranks& ranks) { ranks_ = &ranks; }
  /// Sets the composite decay λ of λ‖W‖_F² for a map.
  void set_map_decay(Index map, double decay) { map_decay_[map] = decay; }
  PassResult train(const Batch<S>& batch, Workers& workers, const PassRequest& request);
  /// Like train(), but adds a batch to those since the last refresh: the gradient and the result become the means over
  /// all of them, by weight. `before` is the result without this batch.
  PassResult train_more(const Batch<S>& batch, Workers& workers, const PassRequest& request, const PassResult& before);
  /// Adds the gradients of composite decay and penalties, at the parameters last refreshed, to that of a train()
  /// without them. Returns the sum of the penalties.
  double regularise();
  /// Evaluates without dropout; the loss is a mean over the scored outputs, whatever train.loss is. Unless it is null,
  /// `outputs` gets k rows and the columns scored(t, b), which are zero beyond the lengths.
  PassResult evaluate(const Batch<S>& batch, Workers& workers, Matrix<S>* outputs = nullptr) {
    return evaluate(task_, batch, workers, outputs);
  }
  /// The same for a batch of another task whose shape differs in `steps` alone.
  PassResult evaluate(const Task<S>& task, const Batch<S>& batch, Workers& workers, Matrix<S>* outputs = nullptr);
  /// Returns the outputs of a batch that begins in the state in which the last one ended, whatever initial state the
  /// model has.
  Matrix<S> advance(const Batch<S>& batch, Workers& workers);
  /// Removes and returns the carried state, state rows × batch. Without it, the next batch begins in the model's
  /// initial state.
  Matrix<S> take_state() { return std::exchange(carried_, Matrix<S>()); }
  void give_state(const Matrix<S>& state) { carried_ = state; }
  const Matrix<S>& carried() const { return carried_; }
  /// Computes a batch of one sequence, and returns what each layer's cell saved, for StepJacobian; it is valid until the
  /// next batch. The network must not be bidirectional.
  std::vector<CMat<S>> trace(const Batch<S>& sequence, Workers& workers);

 private:
  PassResult run(const Task<S>& task, const Batch<S>& batch, Workers& workers, const PassRequest& request,
                 Matrix<S>* outputs = nullptr);
  template <class F> void throw_together(F&& work);
  void exchange();
  void carry(Index sequences);
  void reduce(PassResult& result, bool regularised);
  double penalty(Index map);

  const Task<S>& task_;
  Model<S> model_;
  std::vector<S> theta_, gradient_, gradient_before_;
  std::vector<double> map_decay_;
  std::vector<Slice> slices_;
  std::vector<std::unique_ptr<SlicePass<S>>> passes_;
  Matrix<S> carried_;
  Ranks* ranks_ = nullptr;
};

}  // namespace stiefel
