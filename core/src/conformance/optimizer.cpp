// The checks of an optimizer: what it does at rest, in a bowl, on a manifold, after a restart, and in threads.
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <optional>
#include <thread>

#include <stiefel/linear_algebra.hpp>
#include <stiefel/optimizer.hpp>

#include "conformance/directions.hpp"
#include "conformance/interleaved.hpp"
#include "conformance/memory.hpp"
#include "conformance/subject.hpp"
#include "engine/parameters.hpp"
#include "host/memory_archive.hpp"

namespace stiefel::conformance {

namespace {

using Real = Matrix<double>;

/// Two of each kind have the same size, and so have two matrices.
std::vector<BlockSpec> make_blocks(bool flat, bool orthogonal, bool unitary) {
  std::vector<BlockSpec> blocks;
  if (flat) blocks = {{"weight", 12, 4, 3}, {"bias", 5}, {"slope", 1}, {"second_bias", 5}, {"wide_weight", 12, 3, 4}};
  const auto add = [&](const std::string& name, Index rows, Index cols, Manifold manifold) {
    blocks.push_back({name, rows * cols, rows, cols, manifold});
  };
  if (orthogonal) {
    for (const Index n : {5, 12}) add(fmt::format("rotation_{}", n), n, n, Manifold::orthogonal);
    add("second_rotation", 5, 5, Manifold::orthogonal);
  }
  if (unitary)
    for (const char* name : {"turn", "second_turn"}) add(name, 8, 4, Manifold::unitary);
  return blocks;
}

/// An optimizer with the parameters that it moves towards `target` down f = ½‖θ − target‖². Flat entries start 0.1 or
/// more away, so that steps of any optimizer show.
template <class S> class Bowl {
 public:
  /// `more`: size of one more block, if there are flat ones.
  Bowl(const Subject& subject, CheckReport& report, std::uint64_t seed, Index more = 0)
      : subject_(subject), report_(report), optimizer_(subject.create<Optimizer<S>>()) {
    const auto moves = [&](Manifold m) { return subject.call("moves", [&] { return optimizer_->moves(m); }); };
    blocks_ = make_blocks(moves(Manifold::flat), moves(Manifold::orthogonal), moves(Manifold::unitary));
    if (more > 0 && moves(Manifold::flat)) blocks_.push_back({"long", more});
    std::erase_if(blocks_, [&](const BlockSpec& block) { return refuses(block); });
    layout_.add("", blocks_);
    subject.call("attach", [&] { optimizer_->attach(blocks_); });
    Rng rng(seed, "bowl");
    target_ = place(rng, 1);
    std::vector<double> start = target_;
    displace(start, rng);
    for (Index b = 0; b < layout_.count(); ++b) {
      theta_.emplace_back(layout_.block(b).size);
      const auto from = layout_.all(start.data())[b], to = layout_.all(target_.data())[b];
      const double more = layout_.block(b).manifold == Manifold::flat ? 0.1 : 0;
      std::ranges::transform(from, to, theta_.back().data(),
                             [&](double x, double a) { return S(x + std::copysign(more, x - a)); });
    }
  }

  const std::vector<BlockSpec>& blocks() const { return blocks_; }
  /// The sentence by which attach() refuses the last of those that it refuses, as an optimizer of matrices does vectors.
  const std::string& refused() const { return refused_; }
  const std::vector<Guarded<S>>& theta() const { return theta_; }
  std::vector<Guarded<S>>& theta() { return theta_; }
  Optimizer<S>& optimizer() { return *optimizer_; }

  /// What a block adds to f.
  double value(Index b) const {
    double sum = 0;
    for (Index i = 0; i < layout_.block(b).size; ++i)
      sum += std::pow(double(at(b, i)) - layout_.all(target_.data())[b][std::size_t(i)], 2) / 2;
    return sum;
  }
  /// `scale` times the gradient of f; `noise` makes it another one at each step.
  Guarded<S> gradient(Index b, double scale = 1, Index noise = 0) const {
    Guarded<S> g(layout_.block(b).size);
    for (Index i = 0; i < g.size(); ++i)
      g.data()[i] = S(scale * (double(at(b, i)) - layout_.all(target_.data())[b][std::size_t(i)] +
                               (noise ? 0.3 * std::sin(double(noise * 7 + i)) : 0)));
    return g;
  }
  void step(Index b, double rate, const Guarded<S>& g) {
    subject_.call("step", [&] { optimizer_->step(b, rate, theta_[std::size_t(b)].span(), g.span()); });
    report_.demand("memory", theta_[std::size_t(b)].intact(), "step wrote outside the θ of its block");
  }
  void step_all(double rate, double scale = 1, Index noise = 0) {
    for (Index b = 0; b < layout_.count(); ++b) step(b, rate, gradient(b, scale, noise));
  }
  std::vector<double> numbers(Index b) const {
    return {theta_[std::size_t(b)].data(), theta_[std::size_t(b)].data() + theta_[std::size_t(b)].size()};
  }
  void compare(Comparison& comparison, const Bowl& expected) const {
    for (Index b = 0; b < layout_.count(); ++b)
      compare_block(comparison, layout_.block(b), numbers(b), expected.numbers(b));
  }

 private:
  bool refuses(const BlockSpec& block) {
    const auto fresh = subject_.create<Optimizer<S>>();
    return subject_.call("attach", [&] {
      try {
        fresh->attach({block});
      } catch (const Error& error) {
        if (error.code() != Exit::usage) throw;
        refused_ = error.what();
        return true;
      }
      return false;
    });
  }
  S at(Index b, Index i) const { return theta_[std::size_t(b)].data()[i]; }

  // A point of each block's manifold.
  std::vector<double> place(Rng& rng, double scale) const {
    std::vector<double> theta(std::size_t(layout_.size()));
    const Blocks<double> blocks = layout_.all(theta.data());
    for (Index b = 0; b < blocks.count(); ++b) {
      const BlockSpec& spec = blocks_[std::size_t(b)];
      if (spec.manifold == Manifold::flat)
        for (double& x : blocks[b]) x = scale * rng.normal();
      else
        as_matrix(blocks[b], spec.rows, spec.cols).topRows(spec.cols).setIdentity();
    }
    displace(theta, rng);
    return theta;
  }
  void displace(std::vector<double>& theta, Rng& rng) const { scatter(layout_.all(theta.data()), blocks_, 0.3, rng); }

  const Subject& subject_;
  CheckReport& report_;
  std::unique_ptr<Optimizer<S>> optimizer_;
  std::vector<BlockSpec> blocks_;
  std::string refused_;
  Layout layout_;
  std::vector<double> target_;
  std::vector<Guarded<S>> theta_;
};

template <class S> double unit(double steps) { return 50 * steps * double(std::numeric_limits<S>::epsilon()); }

template <class S> void check_rest(const Subject& subject, CheckReport& report, std::uint64_t seed) {
  Bowl<S> moved(subject, report, seed), still(subject, report, seed);
  constexpr int steps = 1100;  // what is due every 10, 100 or 1,000 steps is, too
  for (int k = 0; k < steps; ++k) moved.step_all(0.1, 0);
  for (std::size_t b = 0; b < moved.blocks().size(); ++b) {
    const BlockSpec& spec = moved.blocks()[b];
    Comparison comparison;
    compare_block(comparison, spec, moved.numbers(Index(b)), still.numbers(Index(b)));
    report.measure("zero gradient", comparison, spec.manifold == Manifold::flat ? 0 : unit<S>(steps),
                   fmt::format("{} of them keep the point of a fresh state", steps));
  }
  Bowl<S> unhurried(subject, report, seed);
  unhurried.step_all(0);
  Comparison comparison;
  unhurried.compare(comparison, still);
  report.measure("zero rate", comparison, unit<S>(1));
}

template <class S> void check_rate(const Subject& subject, CheckReport& report, std::uint64_t seed) {
  Bowl<S> start(subject, report, seed), slow(subject, report, seed), fast(subject, report, seed);
  for (Bowl<S>* bowl : {&start, &slow, &fast}) bowl->step_all(0.05, 1, 1);
  slow.step_all(0.01, 1, 2);
  fast.step_all(0.05, 1, 2);
  for (Index b = 0; b < Index(slow.blocks().size()); ++b)
    report.require("changing rate", slow.numbers(b) != fast.numbers(b) || slow.numbers(b) == start.numbers(b),
                   fmt::format("the second step of the block `{}` is the same with the rates 0.01 and 0.05: a schedule "
                               "changes the rate from step to step",
                               slow.blocks()[std::size_t(b)].name));
}

// A bias begins at 0.
template <class S> void check_origin(const Subject& subject, CheckReport& report, std::uint64_t seed) {
  Bowl<S> bowl(subject, report, seed);
  for (Index b = 0; b < Index(bowl.blocks().size()); ++b) {
    if (bowl.blocks()[std::size_t(b)].manifold != Manifold::flat) continue;
    std::ranges::fill(bowl.theta()[std::size_t(b)].span(), S(0));
    for (Index k = 1; k <= 3; ++k) bowl.step(b, 0.05, bowl.gradient(b, 1, k));
    const std::vector<double> numbers = bowl.numbers(b);
    report.require("quadratic bowl", std::ranges::any_of(numbers, [](double x) { return x != 0; }),
                   fmt::format("the block `{}` stays at 0, where biases begin, whatever its gradient is: a rate in "
                               "proportion to ‖θ‖ needs an exception for θ = 0",
                               bowl.blocks()[std::size_t(b)].name));
  }
}

// Steps by the same gradients from different points.
template <class S> void remark_on_decay(const Subject& subject, CheckReport& report, std::uint64_t seed) {
  Bowl<S> here(subject, report, seed), there(subject, report, seed);
  for (std::size_t b = 0; b < there.theta().size(); ++b) {
    if (there.blocks()[b].manifold != Manifold::flat) continue;
    for (S& x : there.theta()[b].span()) x *= 2;
    const std::vector<double> before = here.numbers(Index(b)), twice = there.numbers(Index(b));
    for (Index k = 1; k <= 3; ++k) {
      const Guarded<S> gradient = here.gradient(Index(b), 1, k);
      here.step(Index(b), 0.05, gradient);
      there.step(Index(b), 0.05, gradient);
    }
    const std::vector<double> after = here.numbers(Index(b)), after_twice = there.numbers(Index(b));
    Comparison changes;
    for (std::size_t i = 0; i < before.size(); ++i)
      changes.add("change", Index(i), after_twice[i] - twice[i], after[i] - before[i]);
    if (changes.largest() >
        unit<S>(3) * (1 + as_vector(std::span<const double>(twice)).template lpNorm<Eigen::Infinity>()))
      return report.remark(
          "weight decay", fmt::format("steps of the block `{}` depend on θ itself, not on gradients alone: if this is "
                                      "weight decay, leave it to `optimizer.weight_decay`, which adds to it; a rate in "
                                      "proportion to ‖θ‖ is none",
                                      there.blocks()[b].name));
  }
}

template <class S> void check_bowl(const Subject& subject, CheckReport& report, std::uint64_t seed) {
  constexpr int steps = 200;
  constexpr Index many = 10'007;  // a loop over panels of a block has several here, and a rest
  Bowl<S> bowl(subject, report, seed, many);
  const Bowl<S> start(subject, report, seed, many);
  for (int k = 0; k < steps; ++k) bowl.step_all(0.01);
  bool on_manifold = false;
  for (Index b = 0; b < Index(bowl.blocks().size()); ++b) {
    const BlockSpec& spec = bowl.blocks()[std::size_t(b)];
    report.measure("quadratic bowl", bowl.value(b) / start.value(b), 0.99, {},
                   fmt::format("½‖θ − a‖² of the block `{}` after {} steps of rate 0.01, relative to its initial value",
                               spec.name, steps));
    const std::vector<double> numbers = bowl.numbers(b), before = start.numbers(b);
    if (spec.manifold != Manifold::flat) {
      on_manifold = true;
      report.measure("stays on manifold", defect(numbers, spec), unit<S>(40), {}, "‖MᴴM − I‖");
      continue;
    }
    const auto kept = std::ranges::mismatch(numbers, before, std::not_equal_to()).in1;
    report.require("quadratic bowl", kept == numbers.end(),
                   fmt::format("{} steps never change entry {} of the block `{}` of {} numbers, whose gradient is not "
                               "0: step() must move all of θ",
                               steps, kept - numbers.begin(), spec.name, spec.size));
  }
  if (!on_manifold) report.skip("stays on manifold", "it updates flat blocks only");
}

template <class S> void check_extremes(const Subject& subject, CheckReport& report, std::uint64_t seed) {
  for (const double scale : {1e-12, 1e-25, 1e8}) {
    Bowl<S> bowl(subject, report, seed);
    for (int k = 1; k <= 3; ++k) bowl.step_all(1e-8, scale, k);
    for (std::size_t b = 0; b < bowl.blocks().size(); ++b) {
      const std::vector<double> numbers = bowl.numbers(Index(b));
      report.demand("finite", std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); }),
                    fmt::format("gradients of {:g} made block `{}` NaN or Inf", scale, bowl.blocks()[b].name));
    }
  }
}

// A counter that was forgotten shows when its period comes round, and a state that is saved for a while only shows
// later: so each is saved again, and followed for many steps.
template <class S> void check_restart(const Subject& subject, CheckReport& report, std::uint64_t seed) {
  constexpr Index saves[] = {5, 505}, last = 1010;
  Bowl<S> first(subject, report, seed);
  std::optional<Bowl<S>> second;
  Index saved_at = 0;
  for (Index k = 1; k <= last; ++k) {
    first.step_all(0.05, 1, k);
    if (second) {
      second->step_all(0.05, 1, k);
      Comparison comparison;
      second->compare(comparison, first);
      if (!report.measure(
              "save and continue", comparison, 0, "same bits as never stopped",
              fmt::format("saved and restored after step {}, another θ after step {}: serialise() must save "
                          "all moments and counters",
                          saved_at, k)))
        return;
    }
    if (std::ranges::find(saves, k) == std::end(saves)) continue;
    MemoryArchive saved;
    subject.call("serialise", [&] { first.optimizer().serialise(saved); });
    second.emplace(subject, report, seed);
    MemoryArchive load(saved.items());
    subject.call("serialise", [&] { second->optimizer().serialise(load); });
    report.require("save and continue", load.unread().empty(), "serialise() does not read everything that it writes");
    second->theta() = first.theta();
    saved_at = k;
  }
}

template <class S> void check_step_reads(const Subject& subject, CheckReport& report, std::uint64_t seed) {
  const auto steps = [&] {
    Bowl<S> bowl(subject, report, seed);
    for (Index k = 1; k <= 5; ++k) bowl.step_all(0.05, 1, k);
    std::vector<std::vector<double>> numbers;
    for (std::size_t b = 0; b < bowl.blocks().size(); ++b) numbers.push_back(bowl.numbers(Index(b)));
    return numbers;
  };
  const auto same = [](const auto& a, const auto& b) { return std::ranges::equal(a, b, same_numbers); };
  const auto here = steps();
  report.demand("memory", ignores_old_memory(steps, same), reads_old_memory);
  const OtherGuards others;
  report.demand("memory", same(steps(), here), "step reads outside θ or the gradient of its block");
}

template <class S> void check_step_allocation(const Subject& subject, CheckReport& report, std::uint64_t seed) {
  Bowl<S> bowl(subject, report, seed);
  for (std::size_t b = 0; b < bowl.blocks().size(); ++b) {
    if (bowl.blocks()[b].manifold != Manifold::flat) continue;
    const Guarded<S> gradient = bowl.gradient(Index(b));
    require_no_allocation(report, "step", subject.allocations("step", [&] {
      bowl.optimizer().step(Index(b), 0.01, bowl.theta()[b].span(), gradient.span());
    }));
  }
}

template <class S> void check_blocks_apart(const Subject& subject, CheckReport& report, std::uint64_t seed) {
  Bowl<S> serial(subject, report, seed), reversed(subject, report, seed), parallel(subject, report, seed);
  const Index count = Index(serial.blocks().size());
  for (Index k = 1; k <= 5; ++k) {
    serial.step_all(0.05, 1, k);
    for (Index b = count - 1; b >= 0; --b) reversed.step(b, 0.05, reversed.gradient(b, 1, k));
    std::vector<Guarded<S>> gradients;
    for (Index b = 0; b < count; ++b) gradients.push_back(parallel.gradient(b, 1, k));
    std::vector<std::string> faults{std::size_t(count)};
    {
      std::vector<std::jthread> pool;
      for (Index b = 0; b < count; ++b)
        pool.emplace_back([&, b] {
          try {
            guarded("step", subject.entry.name, subject.file, [&] {
              parallel.optimizer().step(b, 0.05, parallel.theta()[std::size_t(b)].span(),
                                        gradients[std::size_t(b)].span());
            });
          } catch (const std::exception& e) {
            faults[std::size_t(b)] = e.what();
          }
        });
    }
    for (const std::string& fault : faults) report.require("threads", fault.empty(), fault);
  }
  constexpr const char* shared = "the state of different blocks must not share anything that step() changes";
  Comparison order, threads;
  reversed.compare(order, serial);
  report.measure("blocks apart", order, 0, "the order of the blocks does not matter", shared);
  parallel.compare(threads, serial);
  report.measure("threads", threads, 0, "blocks moved at once, same bits as in turn", shared);

  if (count < 2) return;
  Bowl<S> stopped(subject, report, seed), in_turn(subject, report, seed);
  struct Steps {
    Index block;
    Guarded<S> gradient;
    Index taken = 0;
    std::string fault = {};
  };
  Steps one{0, stopped.gradient(0)}, other{1, stopped.gradient(1)};
  const auto step = [&](Steps& steps) {
    if (!steps.fault.empty()) return;
    try {
      guarded("step", subject.entry.name, subject.file, [&] {
        stopped.optimizer().step(steps.block, 1e-4, stopped.theta()[std::size_t(steps.block)].span(),
                                 steps.gradient.span());
      });
      ++steps.taken;
    } catch (const std::exception& e) {
      steps.fault = e.what();
    }
  };
  interleave([&] { step(one); }, [&] { step(other); });
  Comparison interleaved;
  for (const Steps* steps : {&one, &other}) {
    report.require("threads", steps->fault.empty(), steps->fault);
    for (Index k = 0; k < steps->taken; ++k) in_turn.step(steps->block, 1e-4, steps->gradient);
  }
  stopped.compare(interleaved, in_turn);
  report.measure("threads", interleaved, 0, "stopped midway by a step of another block, same bits as in turn", shared);
}

void check_optimizer_scalars(const Subject& subject, CheckReport& report, std::uint64_t seed) {
  Bowl<float> single(subject, report, seed);
  Bowl<double> reference(subject, report, seed);
  for (Index k = 1; k <= 10; ++k) {
    single.step_all(0.05, 1, k);
    reference.step_all(0.05, 1, k);
  }
  for (std::size_t b = 0; b < single.blocks().size(); ++b) {
    Comparison comparison;
    compare_block(comparison, single.blocks()[b], single.numbers(Index(b)), reference.numbers(Index(b)));
    report.measure("float as double", comparison, 1e-3 * std::max(1., comparison.scale()));
  }
}

template <class S> void check_optimizer_as(const Subject& subject, CheckReport& report, std::uint64_t seed) {
  report.at({scalar_name<S>, "", seed});
  attempt(subject, report, "blocks", [&] {
    Bowl<S> bowl(subject, report, seed);
    report.demand("blocks", !bowl.blocks().empty(),
                  bowl.refused().empty() ? "moves() is false for every manifold"
                                         : "attach() refuses every block: " + bowl.refused());
    if (!bowl.refused().empty()) report.note("blocks", "refused: " + bowl.refused());
  });
  attempt(subject, report, "memory", [&] { check_step_reads<S>(subject, report, seed); });
  attempt(subject, report, "allocation", [&] {
    if (subject.counts_allocations()) check_step_allocation<S>(subject, report, seed);
  });
  attempt(subject, report, "growth", [&] {
    Bowl<S> bowl(subject, report, seed);
    require_no_growth(report, "step", [&] { bowl.step_all(0.01); });
  });
  attempt(subject, report, "zero gradient", [&] { check_rest<S>(subject, report, seed); });
  attempt(subject, report, "changing rate", [&] { check_rate<S>(subject, report, seed); });
  attempt(subject, report, "quadratic bowl", [&] {
    check_bowl<S>(subject, report, seed);
    check_origin<S>(subject, report, seed);
    remark_on_decay<S>(subject, report, seed);
  });
  attempt(subject, report, "finite", [&] { check_extremes<S>(subject, report, seed); });
  attempt(subject, report, "save and continue", [&] { check_restart<S>(subject, report, seed); });
  attempt(subject, report, "blocks apart", [&] { check_blocks_apart<S>(subject, report, seed); });
}

}  // namespace

void check_optimizer(const Subject& subject, CheckReport& report) {
  report.require("memory", true, "");
  for (const std::uint64_t seed : subject.seeds(3)) {
    if (subject.wants<float>()) check_optimizer_as<float>(subject, report, seed);
    if (subject.wants<double>()) check_optimizer_as<double>(subject, report, seed);
    if (!subject.wants<float>() || !subject.wants<double>()) continue;
    report.at({"", "", seed});
    attempt(subject, report, "float as double", [&] { check_optimizer_scalars(subject, report, seed); });
  }
}

}  // namespace stiefel::conformance
