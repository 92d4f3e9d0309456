// Updates parameters from gradients: groups of blocks with their optimizers, rates, schedules, decay and clipping.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <stiefel/optimizer.hpp>

#include "config/experiment.hpp"
#include "engine/network.hpp"

namespace stiefel {

/// η(step): constant; step: × factor every `every` steps; plateau: × factor after `patience` + 1 evaluations without
/// improvement.
class STIEFEL_API Schedule {
 public:
  explicit Schedule(const ScheduleOptions& options) : options_(options) {}
  double factor(Index step) const;
  /// `improved`: whether the validation quantity reached a new best.
  void evaluated(bool improved);
  void serialise(Archive& archive);

 private:
  ScheduleOptions options_;
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
  /// composite matrices, which any block of a map asks for; two different decays of a map, and one that reaches no map,
  /// are Errors.
  Updater(const Experiment& experiment, const Registry& registry, Network<S>& network);
  /// The optimizers create their state; before the first step.
  void attach(const Layout& layout);

  /// One step with the gradient of network.gradient(): decay, clip, move, after_step. `step` counts from 1. Blocks are
  /// moved side by side.
  UpdateNorms step(Index step, Network<S>& network, Workers& workers);
  void evaluated(bool improved);
  /// The state of every group's optimizer and schedule, "optimizer_0", "schedule_0", …
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
  void make_groups(const Experiment& experiment, const Registry& registry, Network<S>& network);
  bool reaches_a_map(int option) const;
  const OptimizerGroup* composite_group(const Experiment& experiment, Network<S>& network, Index map) const;
  void decay(Network<S>& network);
  bool moves_cell(const Model<S>& model) const;
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
};

}  // namespace stiefel
