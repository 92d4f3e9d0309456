// The checks of a cell: the gradient of a whole little network, cut in different ways, and what must not matter.
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <thread>

#include "conformance/cell_network.hpp"
#include "conformance/difference.hpp"
#include "conformance/interleaved.hpp"

namespace stiefel::conformance {

namespace {

const Cut uncut{{6}, {{0, 1, 2, 3, 4, 5}}};
const Cut two_slices{{2, 4}, {{0, 2, 4}, {1, 3, 5}}};
const Cut single_steps{{1, 1, 1, 1, 1, 1}, {{0, 1, 2, 3, 4, 5}}};

constexpr double difference_step = 1e-3;
constexpr Index cell_differences = 48;
constexpr Index large_batch = 24, large_steps = 48;

std::string context_text(CellContext context) {
  return fmt::format("{} units{}", context.units, context.complex ? ", complex" : "");
}

template <class S>
void check_start(const CellNetwork<S>& network, CellContext context, std::uint64_t seed, CheckReport& report) {
  const CellNetwork<S> twin(network.subject(), report, context, seed);
  report.demand("initialise", twin.parameters().numbers == network.parameters().numbers,
                "the same seed gives other parameters: initialise() must draw from its Rng alone");
  remark_on_fixed_start(report, network.own_start(seed), network.own_start(seed + 1000));
  context.steps *= 3;
  const CellNetwork<S> longer(network.subject(), report, context, seed);
  const auto sizes = [](const Cell<S>& cell) {
    return std::array{cell.input_rows(), cell.saved_rows(), cell.output_row(), cell.output_rows(),
                      cell.state_row(),  cell.state_rows(), cell.delta_rows()};
  };
  report.demand("shape",
                sizes(longer.cell()) == sizes(network.cell()) &&
                    longer.parameters().numbers.size() == network.parameters().numbers.size(),
                "sizes depend on context().steps: a trained network also reads longer sequences");
  CellNetwork<S> same = CellNetwork<S>(network.subject(), report, context, seed);
  same.parameters() = network.parameters();
  const Cut whole{{context.steps}, {{0, 1}}};
  const Problem problem = network.problem(seed, {context.steps, context.steps - 1});
  const PassResult expected = same.run(problem, whole), got = network.run(problem, whole);
  report.demand(
      "longer sequences", std::ranges::equal(got.outputs, expected.outputs, same_numbers),
      fmt::format("made for {} steps, the cell puts out other numbers at {} steps than if it is made for these: "
                  "a trained network also reads longer sequences",
                  network.cell().context().steps, context.steps));
}

/// The state that enters the first step must matter: initial_state may be learned, or carried over.
template <class S> void check_entering(CellNetwork<S>& network, const Problem& problem, CheckReport& report) {
  Parameters& p = network.parameters();
  if (p.layout.block(p.state).size == 0) return;
  const PassResult here = network.run(problem, uncut);
  const std::vector<double> start = p.numbers;
  // One small state may leave a rectified unit at 0: far states of either sign follow.
  const bool matters = std::ranges::any_of(std::array{1., 100., -100.}, [&](double from) {
    for (double& x : p.layout.all(p.numbers.data())[p.state]) x = from - x;
    const PassResult there = network.run(problem, uncut);
    p.numbers = start;
    return !std::ranges::equal(here.outputs, there.outputs, same_numbers);
  });
  report.require(
      "entering state", matters,
      "the outputs do not depend on the state that enters the first step: chunk.before(0) holds it, at step 0 of "
      "a sequence, too");
}

void check_cell_gradient(CellNetwork<double>& network, const Problem& problem, CheckReport& report,
                         std::uint64_t seed) {
  const PassResult outcome = network.run(problem, two_slices);
  const Parameters& p = network.parameters();
  CellNetwork<double>::Pass pass(network, problem, uncut, false, network.subject(), report);
  const double rounding = std::numeric_limits<double>::epsilon() * outcome.terms;
  GradientComparison comparison({.all = 1e-9});
  for (const Direction& d : directions_of(p.layout.blocks(), cell_differences, seed)) {
    const std::size_t i = std::size_t(p.layout.offset(d.block) + d.i);
    double& entry = pass.theta.all()[d.block][std::size_t(d.i)];
    const auto along = [&, at = entry](double t) {
      entry = at + t;
      const double loss = pass.run().loss;
      entry = at;
      return loss;
    };
    const BlockSpec& block = p.layout.block(d.block);
    comparison.add(block.name, place_of(block, d.i), outcome.gradient[i], along, difference_step, rounding);
  }
  const bool passes = comparison.report(report, "gradient");
  pass.end();
  if (!passes) report.stop();  // what follows fails for the same cause
}

// ∂L/∂h_t by adding to h_t: to what is read out at t and to the state that enters step t + 1.
void check_hidden_gradient(CellNetwork<double>& network, const Problem& problem, CheckReport& report) {
  const PassResult outcome = network.run(problem, two_slices);
  CellNetwork<double>::Pass pass(network, problem, single_steps, false, network.subject(), report);
  const double rounding = std::numeric_limits<double>::epsilon() * outcome.terms;
  GradientComparison comparison({.block = 0, .all = 1e-6, .absolute = 1e-9});
  for (Index t = 0; t < problem.steps; ++t)
    for (const Index b : {Index(0), Index(2), Index(4)})
      for (Index row = 0; row < network.cell().output_rows(); ++row) {
        if (problem.lengths[std::size_t(b)] <= t) continue;
        const auto along = [&pass, t, b, row](double e) {
          pass.problem.perturbed_step = t;
          pass.problem.perturbed_column = b;
          pass.problem.perturbed_row = row;
          pass.problem.perturbation = e;
          return pass.run().loss;
        };
        comparison.add(fmt::format("step {} of sequence {}", t, b), row, outcome.dhidden[std::size_t(t)](row, b), along,
                       difference_step, rounding);
      }
  comparison.report(report, "dhidden");
  pass.end();
}

template <class S>
Comparison compare(const CellNetwork<S>& network, const PassResult& got, const PassResult& expected) {
  Comparison comparison;
  const Layout& layout = network.parameters().layout;
  for (Index b = 0; b < layout.count(); ++b)
    compare_block(comparison, layout.block(b), layout.all(got.gradient.data())[b],
                  layout.all(expected.gradient.data())[b]);
  for (std::size_t t = 0; t < got.outputs.size(); ++t)
    comparison.matrices("outputs", got.outputs[t], expected.outputs[t]);
  return comparison;
}

template <class S> void check_cuts(CellNetwork<S>& network, const Problem& problem, CheckReport& report) {
  const double epsilon = 500 * double(std::numeric_limits<S>::epsilon());
  for (const double factor : {1., 10., 100.}) {
    Problem scaled = problem;
    for (Real& x : scaled.inputs) x *= factor;
    const PassResult reference = network.run(scaled, uncut);
    const std::string at = factor > 1 ? fmt::format(", with inputs × {:g}", factor) : "";
    report.demand("finite", as_vector(std::span<const double>(reference.gradient)).allFinite(),
                  "the gradients have NaN or Inf" + at);
    for (const Cut& other : {two_slices, single_steps}) {
      const Comparison comparison = compare(network, network.run(scaled, other), reference);
      if (!report.measure("slices and chunks", comparison, epsilon * std::max(1., comparison.scale()),
                          "as the whole" + at))
        report.stop();
    }
  }

  // Nothing read out before the last steps: empty and zero gradients of the outputs are the same.
  Problem late = problem, zeros = problem;
  for (std::size_t t = 0; t + 1 < problem.readout.size(); ++t) {
    late.readout[t].resize(problem.readout[t].rows(), 0);
    zeros.readout[t].setZero();
  }
  for (const bool recorded : {true, false}) {
    late.want_dhidden = zeros.want_dhidden = recorded;
    const Comparison last = compare(network, network.run(late, two_slices), network.run(zeros, two_slices));
    report.measure("no readout", last, epsilon * std::max(1., last.scale()),
                   fmt::format("no columns of doutput as zeros{}", recorded ? "" : ", without dhidden"));
  }

  Problem unrecorded = problem;
  unrecorded.want_dhidden = false;
  report.measure("dhidden", compare(network, network.run(unrecorded, two_slices), network.run(problem, two_slices)), 0,
                 "same bits of all gradients where dhidden has no columns");

  Problem unwanted = problem;
  unwanted.want_blocks = false;
  PassResult without = network.run(unwanted, two_slices), with = network.run(problem, two_slices);
  const Parameters& p = network.parameters();
  for (PassResult* o : {&without, &with})
    for (Index b = p.cell_first; b < p.state; ++b)
      for (double& x : p.layout.all(o->gradient.data())[b]) x = 0;
  report.measure("sink without blocks", compare(network, without, with), 0);
}

template <class S> void check_clip(CellNetwork<S>& network, Problem problem, CheckReport& report) {
  const PassResult free = network.run(problem, two_slices);
  problem.message_clip = 1e6;
  report.measure("message clip", compare(network, network.run(problem, two_slices), free), 0,
                 "a bound of 1e6 changes nothing");
  problem.message_clip = free.largest_delta / 16;
  const PassResult clipped = network.run(problem, two_slices);
  report.measure("message clip", clipped.largest_delta, problem.message_clip * (1 + 1e-6), {},
                 "largest entry of the message");
  // Cells differ in what they clip, but what goes back through the maps cannot stay as it was when all of δ is tiny.
  if (free.forward_transposes) return;
  problem.message_clip = free.largest_delta * 1e-6;
  report.measure("message clip", network.run(problem, two_slices).largest_message, 1e-3 * free.largest_message, {},
                 "largest entry that goes back through the maps, at a bound of a millionth of the largest δ; clip all "
                 "that apply_adjoint() and add_adjoint() get to ±chunk.bound()");
}

// What a cell reads outside of what it is given changes with the guards.
template <class S> void check_cell_reads(CellNetwork<S>& network, const Problem& problem, CheckReport& report) {
  const auto same_outputs = [](const PassResult& a, const PassResult& b) {
    return std::ranges::equal(a.outputs, b.outputs, same_numbers);
  };
  const auto same_gradients = [](const PassResult& a, const PassResult& b) {
    return same_numbers(a.gradient, b.gradient) && std::ranges::equal(a.dhidden, b.dhidden, same_numbers);
  };
  const PassResult here = network.run(problem, two_slices), again = network.run(problem, two_slices);
  report.demand("determinism", same_outputs(here, again) && same_gradients(here, again),
                "the same batch gives other numbers when it is run again: forward and backward must not keep anything "
                "in members");
  const auto results = [&] {
    CellNetwork<S> made(network.subject(), report, network.cell().context(), 1);
    made.parameters() = network.parameters();
    return made.run(problem, two_slices);
  };
  report.demand("memory",
                ignores_old_memory(
                    results, [&](const auto& a, const auto& b) { return same_outputs(a, b) && same_gradients(a, b); }),
                reads_old_memory);
  const OtherGuards others;
  const PassResult there = network.run(problem, two_slices);
  report.demand("memory", same_outputs(here, there),
                "forward reads rows of chunk.at(t) that it has not written, after the first input_rows(), or outside "
                "θ: are input_rows(), output_row() and output_rows() right?");
  report.demand("memory", same_gradients(here, there),
                "backward reads rows of the chunk that were never written, or outside what it is given");
}

template <class S> void check_cell_after_step(CellNetwork<S>& network, CheckReport& report) {
  Parameters& p = network.parameters();
  const std::vector<double> start = p.numbers;
  for (const double factor : {1., 10., 100., 1000.}) {
    for (Index b = p.cell_first; b < p.state; ++b) as_vector(p.layout.all(p.numbers.data())[b]) *= factor;
    const std::vector<double> once = network.after_step();
    p.numbers = once;
    const std::vector<double> twice = network.after_step();
    p.numbers = start;
    Comparison comparison;
    for (std::size_t i = 0; i < once.size(); ++i) comparison.add("θ", Index(i), twice[i], once[i]);
    report.measure("after_step", comparison, 16 * double(std::numeric_limits<S>::epsilon()) * comparison.scale(),
                   factor > 1 ? fmt::format("twice as once at {:g} θ", factor) : "twice as once");
  }
}

template <class S>
void check_cell_allocation(const CellNetwork<S>& network, const Problem& problem, CheckReport& report) {
  for (const auto& [verb, count] : {std::pair{"forward", &PassResult::forward_allocations},
                                    std::pair{"backward", &PassResult::backward_allocations}})
    require_no_allocation(report, verb, repeated_allocations([&] { return network.run(problem, two_slices).*count; }));
}

template <class S> void check_cell_threads(const Subject& subject, const CellNetwork<S>& network,
                                           const Problem& problem, const Problem& other, bool thorough,
                                           CheckReport& report) {
  struct Work {
    explicit Work(const Problem& problem) : problem(problem) {}
    const Problem& problem;
    Progress progress;
    CheckReport report{"", "", ""};
    PassResult outcome, expected;
    std::string fault;
    bool same = true;
  };
  // Until the numbers are not those expected; the wrong ones are kept.
  const auto repeat = [&](Work& w, int times) {
    try {
      const Subject own(subject, w.progress);
      for (int k = 0; k < times && w.same; ++k) {
        w.outcome = network.run(w.problem, two_slices, own, w.report);
        w.same = w.outcome.outputs == w.expected.outputs && w.outcome.gradient == w.expected.gradient;
      }
    } catch (const Stopped&) {
      w.same = false;
    } catch (const std::exception& e) {
      w.fault = e.what();
      w.same = false;
    }
  };
  const auto require_same = [&](const Work& w, const char* note) {
    report.require("threads", w.fault.empty() && w.report.passed(),
                   w.fault.empty() ? "several at once wrote outside their memory" : w.fault);
    if (w.fault.empty())
      report.measure("threads", compare(network, w.outcome, w.expected), 0, note,
                     "a const function changes a member or a static variable, a race");
  };
  constexpr std::size_t threads = 4;
  std::deque<Work> work;
  for (std::size_t i = 0; i <= threads; ++i) work.emplace_back(problem);
  work.emplace_back(other);
  for (Work& w : work) w.expected = w.outcome = network.run(w.problem, two_slices);
  {
    std::vector<std::jthread> pool;
    for (std::size_t i = 0; i < threads; ++i) pool.emplace_back([&, i] { repeat(work[i], 5); });
  }
  if (thorough) interleave([&] { repeat(work[threads], 1); }, [&] { repeat(work[threads + 1], 1); });
  for (std::size_t i = 0; i < work.size(); ++i)
    require_same(work[i], i < threads ? "four at once, same bits as one"
                                      : "stopped midway by another thread, same bits as alone");
}

template <class S> void check_cell_as(const Subject& subject, CheckReport& report, CellContext context,
                                      std::uint64_t seed, bool thorough) {
  report.at({scalar_name<S>, context_text(context), seed});
  std::optional<CellNetwork<S>> network;
  attempt(subject, report, "shape", [&] {
    network.emplace(subject, report, context, seed);
    report.note("maps", fmt::format("{}", network->maps().size()));
  });
  const Problem problem = network->problem(seed);
  attempt(subject, report, "memory", [&] { check_cell_reads(*network, problem, report); });
  attempt(subject, report, "initialise", [&] { check_start(*network, context, seed, report); });
  attempt(subject, report, "slices and chunks", [&] { check_cuts(*network, problem, report); });
  attempt(subject, report, "entering state", [&] { check_entering(*network, problem, report); });
  attempt(subject, report, "message clip", [&] { check_clip(*network, problem, report); });
  attempt(subject, report, "growth",
          [&] { require_no_growth(report, "forward and backward", [&] { network->run(problem, two_slices); }); });
  attempt(subject, report, "allocation", [&] {
    if (subject.counts_allocations()) check_cell_allocation(*network, problem, report);
  });
  attempt(subject, report, "threads",
          [&] { check_cell_threads(subject, *network, problem, network->problem(seed + 1000), thorough, report); });
  attempt(subject, report, "after_step", [&] { check_cell_after_step(*network, report); });
}

// Next to a kink rounding may choose the other side: of three problems the one in the middle counts.
void check_cell_scalars(CellNetwork<double>& network, CheckReport& report, std::uint64_t seed) {
  CellNetwork<float> single(network.subject(), report, network.cell().context(), seed);
  single.parameters().numbers = network.parameters().numbers;
  std::vector<Comparison> comparisons;
  for (const std::uint64_t stream : {seed, seed + 1000, seed + 2000}) {
    const Problem problem = network.problem(stream);
    comparisons.push_back(compare(single, single.run(problem, two_slices), network.run(problem, two_slices)));
  }
  const auto error = [](const Comparison& c) { return c.largest() / std::max(1., c.scale()); };
  std::ranges::sort(comparisons, {}, error);
  report.measure("float as double", comparisons[1], 1e-4 * std::max(1., comparisons[1].scale()));
}

/// A little away from where the cell chose to be tested, its gradients must hold as well.
void check_around_test_point(CellNetwork<double>& network, const Problem& problem, CheckReport& report,
                             std::uint64_t seed) {
  Parameters& p = network.parameters();
  Rng rng(seed, "around");
  for (Index b = p.cell_first; b < p.cell_first + p.cell_count; ++b)
    for (double& x : p.layout.all(p.numbers.data())[b]) x += 0.01 * rng.normal();
  check_cell_gradient(network, problem, report, seed);
}

void check_context(const Subject& subject, CheckReport& report, CellContext context, std::uint64_t seed,
                   bool thorough) {
  if (subject.wants<float>()) check_cell_as<float>(subject, report, context, seed, thorough);
  if (!subject.wants<double>()) return;
  check_cell_as<double>(subject, report, context, seed, thorough);
  attempt(subject, report, "gradient", [&] {
    CellNetwork<double> network(subject, report, context, seed);
    const Problem problem = network.problem(seed);
    check_cell_gradient(network, problem, report, seed);
    check_hidden_gradient(network, problem, report);
    if (subject.wants<float>()) check_cell_scalars(network, report, seed);
    if (network.parameters().chosen) check_around_test_point(network, problem, report, seed);
  });
}

// Along one random direction of all parameters, at the scale of a run: loops over blocks of units, sequences or steps
// have several here.
void check_large(const Subject& subject, CheckReport& report, CellContext context, std::uint64_t seed) {
  report.at({scalar_name<double>,
             fmt::format("{}, {} sequences, {} steps", context_text(context), large_batch, context.steps), seed});
  attempt(subject, report, "gradient", [&] {
    const CellNetwork<double> network(subject, report, context, seed);
    Cut cut{{2 * context.steps / 3, context.steps - 2 * context.steps / 3}, {{}}};
    std::vector<Index> lengths;
    for (Index b = 0; b < large_batch; ++b) {
      cut.slices[0].push_back(b);
      lengths.push_back(context.steps - b);
    }
    const Problem problem = network.problem(seed, lengths);
    const PassResult outcome = network.run(problem, cut);
    CellNetwork<double>::Pass pass(network, problem, cut, false, subject, report);
    const auto loss = [&pass](const std::vector<double>& theta) {
      pass.theta.set(theta);
      return pass.run().loss;
    };
    GradientComparison comparison({.block = 1e-5, .absolute = 1e-9 * outcome.terms});
    add_direction(comparison, network.parameters().layout, network.parameters().numbers, outcome.gradient, loss,
                  difference_step, std::numeric_limits<double>::epsilon() * outcome.terms, seed);
    comparison.report(report, "gradient");
    pass.end();
  });
}

}  // namespace

void check_cell(const Subject& subject, CheckReport& report) {
  report.require("memory", true, "");
  constexpr std::size_t sizes_needed = 3;
  constexpr Index steps = 6;
  std::vector<CellContext> accepted;
  std::string refusal, tried;
  std::optional<CellContext> large;
  const auto accepts = [&](CellContext context) {
    try {
      subject.create<Cell<double>>(context);
      return true;
    } catch (const Error& e) {
      if (e.code() != Exit::usage) throw;
      refusal = e.what();
      return false;
    }
  };
  const auto try_units = [&](Index units, bool complex) {
    if (!accepts({units, complex, steps})) return;
    accepted.push_back({units, complex, steps});
    tried += (tried.empty() ? "" : "; ") + context_text(accepted.back());
  };
  attempt(subject, report, "sizes", [&] {
    const bool complex = subject.complex();
    for (const Index units : {1, 2, 3, 6, 8, 17}) try_units(units, complex);
    for (const Index units : {4, 5, 9, 10, 12, 16, 20, 24, 32, 64, 128})
      if (accepted.size() < sizes_needed) try_units(units, complex);
    // A real cell may need to work with a complex map; some cells support nothing else.
    if (!complex) try_units(3, true);
    for (const Index units : {1, 2, 6, 8})
      if (!complex && accepted.size() < sizes_needed) try_units(units, true);
    for (const Index units : {40, 48, 64}) {
      const CellContext context{units, !accepted.empty() && accepted[0].complex, large_steps};
      if (!large && accepts(context)) large = context;
    }
  });
  report.demand(
      "sizes", accepted.size() >= sizes_needed,
      fmt::format("only {} of the tried numbers of units were accepted, but {} are needed; the last refusal: {}",
                  accepted.size(), sizes_needed, refusal));
  report.note("sizes", tried);
  for (std::size_t i = 0; i < accepted.size(); ++i)
    for (const std::uint64_t seed : subject.seeds(accepted[i].units > 8 ? 1 : 2))
      check_context(subject, report, accepted[i], seed, subject.among_first(seed) && i == accepted.size() / 2);
  if (large && report.passed() && subject.wants<double>())
    for (const std::uint64_t seed : subject.seeds(1)) check_large(subject, report, *large, seed);
}

}  // namespace stiefel::conformance
