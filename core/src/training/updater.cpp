// The order of a step: weight decay, clipping, decoupled weight decay and optimizers, projections of maps and cells,
// average.
#include "training/updater.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <ranges>

namespace stiefel {
namespace {

template <class S> double squares(std::span<const S> values) {
  return as_vector(values).template cast<double>().squaredNorm();
}

/// Σ part(first, width) over pieces of 0 … size − 1, added in their order: the same bits for any number of threads.
template <class F> double sum_of_pieces(std::size_t size, Workers& workers, F&& part) {
  constexpr std::size_t piece = 1 << 16;
  std::vector<double> parts((size + piece - 1) / piece);
  workers.run(int(parts.size()), [&](int i) {
    const std::size_t first = std::size_t(i) * piece;
    parts[std::size_t(i)] = part(first, std::min(piece, size - first));
  });
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

const char* describe(Manifold manifold) {
  return manifold == Manifold::flat         ? "no manifold"
         : manifold == Manifold::orthogonal ? "the orthogonal manifold"
                                            : "the unitary manifold";
}

}  // namespace

double Schedule::factor(Index step) const {
  const Index k = std::max<Index>(step - options_.warmup, 1);
  return step < options_.warmup ? double(step) / double(options_.warmup) * after_warmup(k) : after_warmup(k);
}

double Schedule::after_warmup(Index k) const {
  if (options_.kind == "step") return std::pow(options_.factor, double((k - 1) / options_.every));
  if (options_.kind == "exponential") return std::pow(options_.factor, double(k - 1) / double(options_.every));
  if (options_.kind == "constant") return 1;
  if (options_.kind == "plateau") return plateau_;
  const double u = std::min(double(k - 1) / double(steps_ - options_.warmup), 1.0), last = options_.last_fraction;
  if (options_.kind == "cosine") return last + (1 - last) * (1 + std::cos(std::numbers::pi * u)) / 2;
  const double rise = options_.rise, start = options_.start;
  if (u < 2 * rise) return 1 - (1 - start) * std::abs(u - rise) / rise;
  return 2 * rise < 1 ? start + (last - start) * (u - 2 * rise) / (1 - 2 * rise) : start;
}

void Schedule::evaluated(Index step, bool improved) {
  if (options_.kind != "plateau" || step < options_.warmup) return;
  if (improved) {
    waited_ = 0;
  } else if (++waited_ > options_.patience) {
    plateau_ *= options_.factor;
    waited_ = 0;
  }
}

void Schedule::serialise(Archive& archive) {
  archive.value("plateau", plateau_);
  archive.value("waited", waited_);
}

template <class S>
Updater<S>::Updater(const Experiment& experiment, const Registry& registry, Network<S>& network, Index steps)
    : clip_(experiment.train.clip), average_decay_(experiment.train.average) {
  assign(experiment, network.layout());
  make_groups(experiment, registry, network, steps);
}

template <class S> void Updater<S>::assign(const Experiment& experiment, const Layout& layout) {
  if (std::ranges::all_of(experiment.optimizer, &OptimizerGroup::frozen))
    throw Error(experiment.place_of("optimizer") +
                "optimizer: every block is frozen, so nothing would be trained; give one a plugin such as adam");
  for (Index i = 0; i < layout.count(); ++i) {
    const std::string& name = layout.block(i).name;
    const auto match = std::find_if(experiment.optimizer.begin(), experiment.optimizer.end(),
                                    [&](const OptimizerGroup& group) { return matches_block(group.blocks, name); });
    if (match == experiment.optimizer.end())
      throw Error(experiment.place_of("optimizer") + "no optimizer moves the block " + name +
                  ": add an entry to `optimizer:` whose `blocks:` matches it, e.g. {blocks: \"*\", plugin: adam}");
    option_of_.push_back(int(match - experiment.optimizer.begin()));
  }
  for (std::size_t g = 0; g < experiment.optimizer.size(); ++g)
    if (std::find(option_of_.begin(), option_of_.end(), int(g)) == option_of_.end()) {
      const std::string key = experiment.key_of_group(g, "blocks");
      throw Error(fmt::format("{}{}: no block is left for \"{}\"; the network's blocks are {}",
                              experiment.place_of(key), key, experiment.optimizer[g].blocks, layout.names()));
    }
}

template <class S>
void Updater<S>::make_groups(const Experiment& experiment, const Registry& registry, Network<S>& network, Index steps) {
  const Layout& layout = network.layout();
  Model<S>& model = network.model();
  group_of_.assign(layout.count(), -1);
  recurrent_.assign(layout.count(), false);
  for (const auto& map : model.maps) std::fill_n(recurrent_.begin() + map.blocks.first, map.blocks.count, true);

  for (std::size_t g = 0; g < experiment.optimizer.size(); ++g) {
    const OptimizerGroup& option = experiment.optimizer[g];
    if (option.frozen) continue;
    if (option.schedule.warmup >= steps) {
      const std::string key = experiment.key_of_group(g, "schedule.warmup");
      throw Error(fmt::format("{}{} of {} steps leaves none of the {} steps of training; choose fewer",
                              experiment.place_of(key), key, option.schedule.warmup, steps));
    }
    Group group{option.located([&] { return option.make<Optimizer<S>>(registry); }),
                option.rate,
                option.weight_decay,
                option.composite,
                false,
                Schedule(option.schedule, steps),
                {}};
    group.decoupled = group.optimizer.call("decouples", [&] { return group.optimizer->decouples(); });
    if (group.decoupled && group.composite)
      option.located([&] {
        throw Error("`composite: true` adds λ‖W‖² to the loss, but " + option.plugin +
                    " decouples the weight decay from the loss; remove one of the two");
      });
    std::vector<BlockSpec> specs;
    for (Index i = 0; i < layout.count(); ++i) {
      if (option_of_[i] != int(g)) continue;
      const BlockSpec& block = layout.block(i);
      if (!group.optimizer.call("moves", [&] { return group.optimizer->moves(block.manifold); }))
        throw Error(experiment.place_of(fmt::format("optimizer.{}", g)) + "the block " + block.name + " lies on " +
                    describe(block.manifold) + " and " + option.plugin +
                    " cannot move it; give it an optimizer that can, e.g. {blocks: \"" + block.name +
                    "\", plugin: " + (block.manifold == Manifold::flat ? "adam" : "geodesic_cayley") + "}");
      group_of_[i] = int(groups_.size());
      group.blocks.push_back(i);
      specs.push_back(block);
    }
    option.located([&] { group.optimizer.call("attach", [&] { group.optimizer->attach(specs); }); });
    names_.push_back(option.blocks);
    groups_.push_back(std::move(group));
  }
  for (Index m = 0; m < Index(model.maps.size()); ++m) {
    const auto& map = model.maps[std::size_t(m)];
    const auto frozen = [&](Index i) { return group_of_[i] < 0; };
    if (std::ranges::all_of(std::views::iota(map.blocks.first, map.blocks.end()), frozen)) map.map.freeze();
    if (const OptimizerGroup* group = composite_group(experiment, network, m))
      network.set_map_decay(m, group->weight_decay);
  }
  for (std::size_t g = 0; g < experiment.optimizer.size(); ++g)
    if (experiment.optimizer[g].composite && !reaches_a_map(int(g)))
      experiment.optimizer[g].located([&] {
        throw Error("`composite: true` needs a block of a recurrent map, and `blocks: \"" +
                    experiment.optimizer[g].blocks + "\"` has none; remove it");
      });
}

template <class S> void Updater<S>::find_averaged(Network<S>& network) {
  if (!averages()) return;
  const Layout& layout = network.layout();
  const Model<S>& model = network.model();
  std::vector<bool> flat(std::size_t(layout.count()));
  for (Index i = 0; i < layout.count(); ++i)
    flat[std::size_t(i)] = moves(i) && layout.block(i).manifold == Manifold::flat;
  for (Index m = 0; m < Index(model.maps.size()); ++m) {
    const Layout::Part blocks = model.maps[std::size_t(m)].blocks;
    const auto first = flat.begin() + blocks.first, end = flat.begin() + blocks.end();
    if (network.keeps_state(m))
      std::fill(first, end, false);
    else if (std::find(first, end, true) != end)
      averaged_maps_.push_back(m);
  }
  for (Index i = 0; i < layout.count(); ++i)
    if (flat[std::size_t(i)]) averaged_.push_back(i);
  average_.assign(network.values().size(), S(0));
}

template <class S> void Updater<S>::use_average(Network<S>& network) const {
  const auto average = network.layout().all(average_.data());
  for (const Index i : averaged_) std::ranges::copy(average[i], network.theta()[i].begin());
  for (const Index m : averaged_maps_) project_map(network, m);
  project_cells(network);
}

template <class S> bool Updater<S>::reaches_a_map(int option) const {
  for (std::size_t i = 0; i < option_of_.size(); ++i)
    if (option_of_[i] == option && recurrent_[i]) return true;
  return false;
}

/// The group that penalizes the matrix of a map, whichever of its blocks it moves; null if none does. Throws Error if
/// its blocks have different decays.
template <class S>
const OptimizerGroup* Updater<S>::composite_group(const Experiment& experiment, Network<S>& network, Index map) const {
  const Model<S>& model = network.model();
  const OptimizerGroup* composite = nullptr;
  const auto each = [&](auto&& f) {
    const Layout::Part blocks = model.maps[std::size_t(map)].blocks;
    for (Index i = blocks.first; i < blocks.end(); ++i)
      if (group_of_[i] >= 0) f(experiment.optimizer[std::size_t(option_of_[i])], network.layout().block(i).name);
  };
  each([&](const OptimizerGroup& group, const std::string&) {
    if (!composite && group.composite) composite = &group;
  });
  each([&](const OptimizerGroup& group, const std::string& block) {
    if (!composite || &group == composite || group.weight_decay == (group.composite ? composite->weight_decay : 0))
      return;
    group.located([&] {
      throw Error(fmt::format(
          "the map of {} has two weight decays: λ‖W‖² with λ = {} (`blocks: \"{}\"`, composite), and {}λ = {} here; "
          "give one of them",
          block, composite->weight_decay, composite->blocks, group.composite ? "" : "λ‖θ‖² with ", group.weight_decay));
    });
  });
  return composite;
}

template <class S> void Updater<S>::decay(Network<S>& network) {
  for (const Group& group : groups_) {
    if (group.decay == 0 || group.decoupled) continue;
    for (Index i : group.blocks)
      if (!network.layout().block(i).keeps_norm() && !(group.composite && recurrent_[i]))
        as_vector(network.gradient()[i]) += S(2 * group.decay) * as_vector(network.theta()[i]);
  }
}

template <class S> double Updater<S>::clip(Network<S>& network, double norm) {
  if (clip_.kind == "none") return norm;
  double squared = 0;
  for (const Group& group : groups_)
    for (Index i : group.blocks) {
      auto g = as_vector(network.gradient()[i]);
      if (clip_.kind == "elementwise")
        g = g.cwiseMax(S(-clip_.bound)).cwiseMin(S(clip_.bound)).eval();
      else if (norm > clip_.bound)
        g *= S(clip_.bound / norm);
      squared += g.template cast<double>().squaredNorm();
    }
  return std::sqrt(squared);
}

template <class S> void Updater<S>::move(Index step, Network<S>& network, Workers& workers) {
  const Layout& layout = network.layout();
  std::vector<std::pair<Group*, Index>> moves;  // with the number of the block in its group
  for (Group& group : groups_)
    for (std::size_t k = 0; k < group.blocks.size(); ++k) moves.push_back({&group, Index(k)});
  workers.run(int(moves.size()), [&](int m) {
    const auto& [group, k] = moves[std::size_t(m)];
    const Index i = group->blocks[std::size_t(k)];
    const BlockSpec& block = layout.block(i);
    const double rate = group->rate * group->schedule.factor(step);
    if (group->decoupled && group->decay != 0 && !block.keeps_norm())
      as_vector(network.theta()[i]) -= S(rate * group->decay) * as_vector(network.theta()[i]);
    group->optimizer.call(
        "step", [&] { group->optimizer->step(k, rate * block.rate_scale, network.theta()[i], network.gradient()[i]); });
  });
}

template <class S> void Updater<S>::project_map(Network<S>& network, Index map) const {
  const auto& [name, of_network, blocks] = network.model().maps[std::size_t(map)];
  const auto& plugin = of_network.plugin();
  plugin.call("after_step", [&] { plugin->after_step(network.layout().part(network.values().data(), blocks)); });
}

template <class S> void Updater<S>::project_cells(Network<S>& network) const {
  network.model().each_recurrence([&](const Layer<S>&, const Recurrence<S>& r) {
    const auto blocks = std::views::iota(r.cell_blocks.first, r.cell_blocks.end());
    if (std::ranges::none_of(blocks, [&](Index i) { return moves(i); })) return;
    const Blocks<S> theta = network.layout().part(network.values().data(), r.cell_blocks);
    r.cell.call("after_step", [&] { r.cell->after_step(theta); });
  });
}

template <class S> UpdateNorms Updater<S>::step(Index step, Network<S>& network, Workers& workers) {
  decay(network);
  double all = 0, recurrent = 0;
  for (const Group& group : groups_)
    for (Index i : group.blocks) {
      const std::span<const S> gradient = network.gradient()[i];
      const double square = sum_of_pieces(gradient.size(), workers, [&](std::size_t first, std::size_t width) {
        return squares(gradient.subspan(first, width));
      });
      all += square;
      if (recurrent_[i]) recurrent += square;
    }
  UpdateNorms norms{std::sqrt(all), std::sqrt(recurrent), 0, 0};
  if (!std::isfinite(all)) return norms;
  norms.clipped = clip(network, norms.gradient);

  before_ = network.values();
  move(step, network, workers);
  const Model<S>& model = network.model();
  for (Index m = 0; m < Index(model.maps.size()); ++m)
    if (!model.maps[std::size_t(m)]->frozen()) project_map(network, m);
  project_cells(network);
  const std::span<const S> after = network.values();
  norms.update = std::sqrt(sum_of_pieces(before_.size(), workers, [&](std::size_t first, std::size_t width) {
    const std::span<S> moved = std::span<S>(before_).subspan(first, width);
    as_vector(moved) -= as_vector(after.subspan(first, width));
    return squares<S>(moved);
  }));
  if (averages()) {
    const S share = S((1 - average_decay_) / (1 - std::pow(average_decay_, double(step))));
    const Blocks<S> average = network.layout().all(average_.data());
    for (const Index i : averaged_)
      as_vector(average[i]) += share * (as_vector(network.theta()[i]) - as_vector(average[i]));
  }
  return norms;
}

template <class S> void Updater<S>::evaluated(Index step, bool improved) {
  for (Group& group : groups_) group.schedule.evaluated(step, improved);
}

template <class S> template <class F> void Updater<S>::each_part(F&& f) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    f("optimizer_" + std::to_string(g),
      [&](Archive& archive) { group.optimizer.call("serialise", [&] { group.optimizer->serialise(archive); }); });
    f("schedule_" + std::to_string(g), [&](Archive& archive) { group.schedule.serialise(archive); });
  }
  if (averages()) f("average", [&](Archive& archive) { archive.array("parameters", average_); });
}

template <class S> std::map<std::string, StateItems> Updater<S>::state() {
  std::map<std::string, StateItems> parts;
  each_part([&](const std::string& name, auto serialise) {
    MemoryArchive archive;
    serialise(archive);
    parts[name] = archive.items();
  });
  return parts;
}

template <class S> void Updater<S>::restore(const std::map<std::string, StateItems>& parts) {
  each_part([&](const std::string& name, auto serialise) {
    MemoryArchive archive(parts.at(name));
    serialise(archive);
  });
}

template <class S> std::vector<double> Updater<S>::rates(Index step) const {
  std::vector<double> rates;
  for (const Group& group : groups_) rates.push_back(group.rate * group.schedule.factor(step));
  return rates;
}

template class Updater<float>;
template class Updater<double>;

}  // namespace stiefel
