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

/// The factor of the learning rate. During the warmup it is step / warmup times the value below for k = 1.
/// Then k = 1, 2, … counts the remaining K steps:
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
  /// To be called after an evaluation. `improved`: whether it is the best so far.
  void evaluated(Index step, bool improved);
  void serialise(Archive& archive);

 private:
  double after_warmup(Index k) const;

  ScheduleOptions options_;
  Index steps_;
  double plateau_ = 1;
  std::int64_t waited_ = 0;
};

/// Norms over all trained blocks; `recurrent_gradient` over those of maps. Both gradients are before clipping, with weight
/// decay unless it is decoupled.
struct UpdateNorms {
  double gradient = 0, recurrent_gradient = 0, clipped = 0, update = 0;
};

template <class S> class STIEFEL_API Updater {
 public:
  /// Assigns every block to the first group whose glob matches it. Freezes maps without a trained block, and sets the
  /// decay of composite matrices, for which any block of a map can ask. Throws Error if no group matches a block, a map
  /// has two different decays, a composite decay reaches no map, or a warmup does not end within `steps`, the whole
  /// training. Creates the state of the optimizers; an Error from there, such as of a block that one cannot move, gets
  /// the place of its group.
  Updater(const Experiment& experiment, const Registry& registry, Network<S>& network, Index steps);
  /// Creates the state of the average, if there is one. To be called before the first step.
  void find_averaged(Network<S>& network);

  /// Takes a step with network.gradient(): decay, clip, move, after_step, average. Blocks are moved in parallel. `step`
  /// counts from 1. A gradient that is not finite moves nothing.
  UpdateNorms step(Index step, Network<S>& network, Workers& workers);
  bool averages() const { return average_decay_ > 0; }
  /// Replaces parameters by their average since step 1, in which the step i before the last one has the weight
  /// train.average^i. Blocks on a manifold, which a mean would leave, stay as they are. So do those of a map that keeps
  /// further state, such as a moving base, on which their meaning depends. after_step() of maps and cells then projects
  /// the average.
  void use_average(Network<S>& network) const;
  void evaluated(Index step, bool improved);
  /// The state of every group's optimizer and schedule, "optimizer_0", "schedule_0", …, and of the "average". The numbers
  /// leave out frozen groups, unlike those of keys such as optimizer.0.rate. The state has no rates: a resumed run uses
  /// those of its configuration, times the plateau factor that is restored.
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
  void project_map(Network<S>& network, Index map) const;
  void project_cells(Network<S>& network) const;
  bool reaches_a_map(int option) const;
  const OptimizerGroup* composite_group(const Experiment& experiment, Network<S>& network, Index map) const;
  void decay(Network<S>& network);
  double clip(Network<S>& network, double norm);
  /// Calls f(name, serialise) for each part of state(), which serialise(archive) reads or writes.
  template <class F> void each_part(F&& f);
  void move(Index step, Network<S>& network, Workers& workers);

  std::vector<Group> groups_;
  std::vector<std::string> names_;
  std::vector<int> group_of_;    // of each block; −1: frozen
  std::vector<bool> recurrent_;  // whether each block belongs to a map
  std::vector<int> option_of_;   // of each block: its entry in experiment.optimizer
  std::vector<S> before_;
  ClipOptions clip_;
  double average_decay_;
  std::vector<S> average_;
  std::vector<Index> averaged_;       // blocks that are averaged
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
