// Updates parameters from gradients: groups of blocks with their optimizers, rates, schedules, decay and clipping; and
// the moving average of the parameters.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <stiefel/optimizer.hpp>

#include "config/experiment.hpp"
#include "engine/network.hpp"

namespace stiefel {

/// What the rate is multiplied by. During the warmup it is step / warmup, times the following with k = 1; then
/// k = 1, 2, … counts the steps, of which K are left:
///
///   constant     1
///   step         factor^⌊(k − 1) / every⌋
///   exponential  factor^((k − 1) / every)
///   plateau      × factor after `patience` + 1 evaluations without improvement
///   cosine       final + (1 − final)(1 + cos πu) / 2, u = (k − 1)/K   (Loshchilov & Hutter 2017, one period)
///   one_cycle    linear in u: start at 0, 1 at `rise`, start at 2·rise, final at 1   (Smith & Topin 2018)
///
/// Step K + 1 would have the final rate. The momentum of optimizers does not follow the cycle.
class STIEFEL_API Schedule {
 public:
  /// `steps`: of the whole training.
  Schedule(const ScheduleOptions& options, Index steps) : options_(options), steps_(steps) {}
  double factor(Index step) const;
  /// `improved`: whether the validation quantity reached a new best.
  void evaluated(Index step, bool improved);
  void serialise(Archive& archive);

 private:
  double decay(Index k) const;

  ScheduleOptions options_;
  Index steps_;
  double plateau_ = 1;
  std::int64_t waited_ = 0;
};

/// Norms over all trained blocks; `recurrent` over those of the maps, before clipping.
struct UpdateNorms {
  double gradient = 0, recurrent_gradient = 0, clipped = 0, update = 0;
};

template <class S> class STIEFEL_API Updater {
 public:
  /// Every block goes to the first group whose glob matches it; none is an Error. Freezes maps and sets the decay of
  /// composite matrices, which any block of a map asks for; two different decays of a map, one that reaches no map, and
  /// a warmup that does not end within `steps`, the whole training, are Errors.
  Updater(const Experiment& experiment, const Registry& registry, Network<S>& network, Index steps);
  /// The optimizers and the average create their state; before the first step.
  void attach(Network<S>& network);

  /// One step with the gradient of network.gradient(): decay, clip, move, after_step, average. `step` counts from 1.
  /// Blocks are moved side by side.
  UpdateNorms step(Index step, Network<S>& network, Workers& workers);
  bool averages() const { return average_decay_ > 0; }
  /// Replaces the parameters that are averaged by their average since step 1, in which the step i before the last one
  /// has the weight d^i, d = train.average. A mean of matrices on a manifold is not on it, and parameters of a map that
  /// keeps state beyond them, such as a moving base, mean something else after every change of it: both stay as they
  /// are. after_step() of maps and cell then projects the average like every θ.
  void use_average(Network<S>& network) const;
  void evaluated(Index step, bool improved);
  /// The state of every group's optimizer and schedule, "optimizer_0", "schedule_0", …, and of the "average".
  std::map<std::string, StateItems> state();
  void restore(const std::map<std::string, StateItems>& parts);
  std::vector<double> rates(Index step) const;  ///< of each group that moves
  const std::vector<std::string>& group_names() const { return names_; }
  bool moves(Index block) const { return group_of_[block] >= 0; }

 private:
  struct Group {
    Plugged<Optimizer<S>> optimizer;
    double rate, decay;
    bool composite, decoupled;
    Schedule schedule;
    std::vector<Index> blocks;
  };
  void assign(const Experiment& experiment, const Layout& layout);
  void make_groups(const Experiment& experiment, const Registry& registry, Network<S>& network, Index steps);
  void find_averaged(Network<S>& network);
  void project_map(Network<S>& network, Index map) const;
  void project_cells(Network<S>& network) const;
  bool reaches_a_map(int option) const;
  const OptimizerGroup* composite_group(const Experiment& experiment, Network<S>& network, Index map) const;
  void decay(Network<S>& network);
  double clip(Network<S>& network, double norm);
  /// f(name, call of serialise).
  template <class F> void each_part(F&& f);
  void move(Index step, Network<S>& network, Workers& workers);

  std::vector<Group> groups_;
  std::vector<std::string> names_;
  std::vector<int> group_of_;    // of each block; −1: frozen
  std::vector<bool> recurrent_;  // block belongs to a map
  std::vector<int> option_of_;   // of each block: its entry in experiment.optimizer
  std::vector<S> before_;
  ClipOptions clip_;
  double average_decay_;
  std::vector<S> average_;
  std::vector<Index> averaged_;       // blocks
  std::vector<Index> averaged_maps_;  // maps with such a block
};

/// While this exists, the network has the averaged parameters, if there are any, instead of those that are trained.
template <class S> class AveragedNetwork {
 public:
  AveragedNetwork(Network<S>& network, const Updater<S>& updater) : network_(network) {
    if (!updater.averages()) return;
    trained_ = network.values();
    updater.use_average(network);
  }
  ~AveragedNetwork() {
    if (!trained_.empty()) network_.values() = std::move(trained_);
  }
  AveragedNetwork(const AveragedNetwork&) = delete;
  AveragedNetwork& operator=(const AveragedNetwork&) = delete;

 private:
  Network<S>& network_;
  std::vector<S> trained_;
};

}  // namespace stiefel
