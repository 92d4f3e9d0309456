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

/// Results of a whole batch. Norms are (Σ over batch and rows of squares)^½ per time step, losses are
/// means over the scored outputs of the batch, or with PassRequest::summed over its sequences.
struct PassResult {
  double loss = 0, penalty = 0;
  double weight = 0;       // what the loss is a mean over: total weight of the scored outputs, or number of sequences
  double last_weight = 0;  // that of the last step of each sequence
  double forward_seconds = 0;  // time loop of the slowest slice, without the loss
  std::vector<Ratio> metrics;
  std::vector<double> hidden_norm, gradient_norm, last_gradient_norm;  // entry t·layers + layer
};

/// Parameters, and what maps keep beyond them, by map: "recurrent", "recurrent.forget"; those without state are
/// omitted.
template <class S> struct NetworkState {
  std::vector<S> values;
  std::map<std::string, StateItems> plugins;
};

template <class S> class STIEFEL_API Network {
 public:
  /// Takes no memory that grows with the sizes of the model and the task; initialise() does.
  Network(const Experiment& experiment, const Registry& registry, const Task<S>& task);

  const Layout& layout() const { return model_.layout; }
  Model<S>& model() { return model_; }
  void initialise(std::uint64_t seed);
  /// Makes room for the parameters, for a network that restore() fills.
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
  /// Composite decay λ of λ‖W‖_F² of each map.
  void set_map_decay(Index map, double decay) { map_decay_[map] = decay; }
  PassResult train(const Batch<S>& batch, Workers& workers, const PassRequest& request);
  /// The same with one more batch since the last refresh: gradient and result become those of all of them together, a
  /// mean by weight. `before`: the result without it.
  PassResult train_more(const Batch<S>& batch, Workers& workers, const PassRequest& request, const PassResult& before);
  /// Adds composite decay and penalties at the parameters last refreshed to the gradient of a train() without them, and
  /// returns the sum of the penalties.
  double regularise();
  /// `outputs`: becomes k × columns scored(t, b), zero beyond the lengths.
  PassResult evaluate(const Batch<S>& batch, Workers& workers, Matrix<S>* outputs = nullptr);
  /// Outputs of a batch that begins in the state in which the last one ended, whatever the initial state of the model
  /// is.
  Matrix<S> advance(const Batch<S>& batch, Workers& workers);
  /// The carried state, state rows × batch; without it the next batch starts from zero.
  Matrix<S> take_state() { return std::exchange(carried_, Matrix<S>()); }
  void give_state(const Matrix<S>& state) { carried_ = state; }
  const Matrix<S>& carried() const { return carried_; }

 private:
  PassResult run(const Batch<S>& batch, Workers& workers, const PassRequest& request, Matrix<S>* outputs = nullptr);
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
