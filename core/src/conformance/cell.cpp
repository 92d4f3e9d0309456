// The checks of a cell: the gradient of a whole little network, cut in different ways, and what must not matter.
#include <fmt/format.h>
#include <optional>
#include <set>
#include <thread>

#include "conformance/cell_network.hpp"
#include "host/memory_archive.hpp"

namespace stiefel::conformance {

namespace {

const Cut uncut{{6}, {{0, 1, 2, 3, 4, 5}}};
const Cut two_slices{{2, 4}, {{0, 2, 4}, {1, 3, 5}}};
const Cut single_steps{{1, 1, 1, 1, 1, 1}, {{0, 1, 2, 3, 4, 5}}};

constexpr double cell_tolerance = 1e-7;
constexpr double smallest_distance = 1e-3;  // from a point without derivative
constexpr double difference_step = 1e-4;
constexpr Index cell_differences = 48;

std::string context_text(CellContext context) {
  return fmt::format("{} units{}", context.units, context.complex ? ", complex" : "");
}

template <class S> void check_layout(const CellNetwork<S>& network, CheckReport& report) {
  const Cell<S>& cell = network.cell();
  const auto inside = [&](Index first, Index rows) {
    return first >= 0 && rows > 0 && first + rows <= cell.saved_rows();
  };
  report.require("shape", inside(0, cell.input_rows()), "saved_rows() is less than input_rows()");
  report.require("shape", inside(cell.output_row(), cell.output_rows()),
                 "the output rows are not inside the saved rows");
  report.require("shape", inside(cell.state_row(), cell.state_rows()), "the state rows are not inside the saved rows");
  report.require("shape", cell.delta_rows() >= cell.input_rows(), "delta_rows() is less than input_rows()");
  report.require("shape", cell.flops(4) >= 0 && std::isfinite(cell.flops(4)), "flops() is negative, NaN or Inf");
  std::set<std::string> names;
  for (const MapSpec& m : network.maps()) {
    report.require("maps", m.rows > 0 && m.cols > 0, fmt::format("map `{}` is {} × {}", m.name, m.rows, m.cols));
    report.require("maps", network.maps().size() == 1 ? m.name.empty() || plain_name(m.name) : plain_name(m.name),
                   fmt::format("the map name `{}` must be [a-z0-9_]+", m.name));
    report.require("maps", names.insert(m.name).second, fmt::format("two maps are named `{}`", m.name));
  }
  report.note("maps", fmt::format("{}", network.maps().size()));
}

/// A network and a problem whose every number is at least smallest_distance from a kink.
template <class S> struct Start {
  CellNetwork<S> network;
  Problem problem;
};
std::optional<Start<double>> find_start(const Subject& subject, CheckReport& report, CellContext context,
                                        std::uint64_t seed) {
  constexpr int attempts = 200;
  for (int k = 0; k < attempts; ++k) {
    const std::uint64_t stream = seed + 1000 * std::uint64_t(k);
    CellNetwork<double> network(subject, report, context, stream);
    const Problem problem = network.problem(stream);
    const PassResult outcome = network.run(problem, uncut, false);
    const bool finite = std::isfinite(outcome.loss);
    report.require("finite", finite, "the outputs have NaN or Inf");
    if (!finite) return std::nullopt;
    if (outcome.kink_distance >= smallest_distance) return Start<double>{std::move(network), problem};
  }
  report.fail("gradient",
              fmt::format("at {} random points kink_distance() was never above {}", attempts, smallest_distance));
  return std::nullopt;
}

void check_cell_gradient(Start<double>& s, CheckReport& report, std::uint64_t seed) {
  const PassResult outcome = s.network.run(s.problem, two_slices, true);
  Parameters& p = s.network.parameters();
  const std::vector<double> at = p.numbers;
  std::vector<Comparison> comparisons(std::size_t(p.layout.count()));
  for (const Direction& d : directions_of(p.layout.blocks(), cell_differences, seed)) {
    const double expected = derivative(
        [&](double t) {
          p.numbers = at;
          p.numbers[std::size_t(p.layout.offset(d.block) + d.i)] += t;
          return s.network.run(s.problem, uncut, false).loss;
        },
        difference_step);
    comparisons[std::size_t(d.block)].add(p.layout.block(d.block).name, d.i,
                                          outcome.gradient[std::size_t(p.layout.offset(d.block) + d.i)], expected);
  }
  p.numbers = at;
  double scale = 0;
  for (const Comparison& c : comparisons) scale = std::max(scale, c.scale());
  for (const Comparison& c : comparisons) report.measure("gradient", c, cell_tolerance * c.scale() + 1e-9 * scale);
}

// ∂L/∂h_t by adding to h_t: to what is read out at t and to the state that enters step t + 1.
void check_hidden_gradient(Start<double>& s, CheckReport& report) {
  const PassResult outcome = s.network.run(s.problem, two_slices, true);
  Comparison comparison;
  for (Index t = 0; t < s.problem.steps; ++t)
    for (const Index b : {Index(0), Index(2), Index(4)})
      for (Index row = 0; row < s.network.cell().output_rows(); ++row) {
        if (s.problem.lengths[std::size_t(b)] <= t) continue;
        const double expected = derivative(
            [&](double e) {
              Problem moved = s.problem;
              moved.perturbed_step = t;
              moved.perturbed_column = b;
              moved.perturbed_row = row;
              moved.perturbation = e;
              return s.network.run(moved, single_steps, false).loss;
            },
            difference_step);
        comparison.add(fmt::format("step {}, sequence {}", t, b), row, outcome.dhidden[std::size_t(t)](row, b),
                       expected);
      }
  report.measure("dhidden", comparison, 10 * cell_tolerance * std::max(comparison.scale(), 1e-3));
}

template <class S>
Comparison compare(const CellNetwork<S>& network, const PassResult& got, const PassResult& expected) {
  Comparison comparison;
  const Layout& layout = network.parameters().layout;
  for (Index b = 0; b < layout.count(); ++b)
    for (Index i = layout.offset(b); i < layout.offset(b) + layout.block(b).size; ++i)
      comparison.add(layout.block(b).name, i - layout.offset(b), got.gradient[std::size_t(i)],
                     expected.gradient[std::size_t(i)]);
  for (std::size_t t = 0; t < got.outputs.size(); ++t)
    comparison.matrices("outputs", got.outputs[t], expected.outputs[t]);
  return comparison;
}

template <class S> void check_cuts(CellNetwork<S>& network, const Problem& problem, CheckReport& report) {
  const double epsilon = 500 * double(std::numeric_limits<S>::epsilon());
  const PassResult reference = network.run(problem, uncut, true);
  report.require("finite",
                 std::isfinite(reference.loss) && as_vector(std::span<const double>(reference.gradient)).allFinite(),
                 "outputs or gradients have NaN or Inf");
  for (const Cut& other : {two_slices, single_steps}) {
    const Comparison comparison = compare(network, network.run(problem, other, true), reference);
    report.measure("slices and chunks", comparison, epsilon * std::max(1., comparison.scale()), "as the whole");
  }

  // Nothing read out before the last steps: empty and zero gradients of the outputs are the same.
  Problem late = problem, zeros = problem;
  for (std::size_t t = 0; t + 1 < problem.readout.size(); ++t) {
    late.readout[t].resize(problem.readout[t].rows(), 0);
    zeros.readout[t].setZero();
  }
  const Comparison last = compare(network, network.run(late, two_slices, true), network.run(zeros, two_slices, true));
  report.measure("no readout", last, epsilon * std::max(1., last.scale()), "no columns of doutput as zeros");

  Problem unwanted = problem;
  unwanted.want_blocks = false;
  PassResult without = network.run(unwanted, two_slices, true), with = network.run(problem, two_slices, true);
  const Parameters& p = network.parameters();
  for (PassResult* o : {&without, &with})
    for (Index b = p.cell_first; b < p.state; ++b)
      for (double& x : p.layout.all(o->gradient.data())[b]) x = 0;
  report.measure("sink without blocks", compare(network, without, with), 0);
}

template <class S> void check_clip(CellNetwork<S>& network, Problem problem, CheckReport& report) {
  const PassResult free = network.run(problem, two_slices, true);
  problem.message_clip = 1e6;
  report.measure("message clip", compare(network, network.run(problem, two_slices, true), free), 0,
                 "a bound of 1e6 changes nothing");
  problem.message_clip = free.largest_delta / 16;
  const PassResult clipped = network.run(problem, two_slices, true);
  report.measure("message clip", clipped.largest_delta, problem.message_clip * (1 + 1e-6), {},
                 "largest entry of the message");
}

template <class S> void check_cell_threads(const Subject& subject, const CellNetwork<S>& network,
                                           const Problem& problem, CheckReport& report) {
  constexpr int threads = 4;
  const PassResult serial = network.run(problem, two_slices, true);
  struct Work {
    Progress progress;
    CheckReport report{"", "", ""};
    PassResult outcome;
    std::string fault;
  };
  std::vector<Work> work(threads);
  {
    std::vector<std::jthread> pool;
    for (Work& w : work)
      pool.emplace_back([&] {
        try {
          const Subject own(subject, w.progress);
          for (int repeat = 0; repeat < 5; ++repeat) w.outcome = network.run(problem, two_slices, true, own, w.report);
        } catch (const std::exception& e) {
          w.fault = e.what();
        }
      });
  }
  for (const Work& w : work) {
    report.require("threads", w.fault.empty() && w.report.passed(),
                   w.fault.empty() ? "four at once wrote outside their memory" : w.fault);
    if (w.fault.empty())
      report.measure("threads", compare(network, w.outcome, serial), 0, "four at once, same bits as one");
  }
}

template <class S> void check_cell_archive(const Subject& subject, CheckReport& report, CellNetwork<S>& network,
                                           CellContext context, std::uint64_t seed) {
  MemoryArchive saved;
  subject.call("serialise", [&] { network.cell().serialise(saved); });
  CellNetwork<S> copy(subject, report, context, seed);
  MemoryArchive load(saved.items());
  subject.call("serialise", [&] { copy.cell().serialise(load); });
  const Problem problem = network.problem(seed);
  copy.parameters().numbers = network.parameters().numbers;
  report.measure("save and load",
                 compare(network, copy.run(problem, two_slices, true), network.run(problem, two_slices, true)), 0,
                 "same bits");
}

template <class S>
void check_cell_as(const Subject& subject, CheckReport& report, CellContext context, std::uint64_t seed) {
  report.at({scalar_name<S>, context_text(context), seed});
  std::optional<CellNetwork<S>> network;
  attempt(subject, report, "shape", [&] {
    network.emplace(subject, report, context, seed);
    check_layout(*network, report);
  });
  if (!network) return;
  const Problem problem = network->problem(seed);
  attempt(subject, report, "slices and chunks", [&] { check_cuts(*network, problem, report); });
  attempt(subject, report, "message clip", [&] { check_clip(*network, problem, report); });
  attempt(subject, report, "threads", [&] { check_cell_threads(subject, *network, problem, report); });
  attempt(subject, report, "save and load", [&] { check_cell_archive(subject, report, *network, context, seed); });
}

void check_context(const Subject& subject, CheckReport& report, CellContext context, std::uint64_t seed) {
  if (subject.wants<float>()) check_cell_as<float>(subject, report, context, seed);
  if (!subject.wants<double>()) return;
  check_cell_as<double>(subject, report, context, seed);
  attempt(subject, report, "gradient", [&] {
    std::optional<Start<double>> start = find_start(subject, report, context, seed);
    if (!start) return;
    check_cell_gradient(*start, report, seed);
    check_hidden_gradient(*start, report);
    if (!subject.wants<float>()) return;
    CellNetwork<float> single(subject, report, context, seed);
    single.parameters().numbers = start->network.parameters().numbers;
    const Comparison comparison = compare(single, single.run(start->problem, two_slices, true),
                                          start->network.run(start->problem, two_slices, true));
    report.measure("float as double", comparison, 1e-4 * std::max(1., comparison.scale()));
  });
}

}  // namespace

void check_cell(const Subject& subject, CheckReport& report) {
  report.require("memory", true, "");
  constexpr std::size_t sizes_needed = 3;
  std::vector<CellContext> accepted;
  std::string refusal, tried;
  const auto try_units = [&](Index units, bool complex) {
    try {
      subject.create<Cell<double>>(CellContext{units, complex});
      accepted.push_back({units, complex});
      tried += (tried.empty() ? "" : "; ") + context_text(accepted.back());
    } catch (const Error& e) {
      if (e.code() != Exit::usage) throw;
      refusal = e.what();
    }
  };
  try {
    const bool complex = subject.complex();
    for (const Index units : {1, 2, 3, 6, 8, 17}) try_units(units, complex);
    for (const Index units : {4, 5, 9, 10, 12, 16, 20, 24})
      if (accepted.size() < sizes_needed) try_units(units, complex);
    // A real cell may need to work with a complex map; some cells support nothing else.
    if (!complex) try_units(3, true);
    for (const Index units : {1, 2, 6, 8})
      if (!complex && accepted.size() < sizes_needed) try_units(units, true);
  } catch (const std::exception& e) {
    return report.fail("sizes", e.what());
  }
  report.require(
      "sizes", accepted.size() >= sizes_needed,
      fmt::format("only {} of the tried numbers of units were accepted, but {} are needed; the last refusal: {}",
                  accepted.size(), sizes_needed, refusal));
  report.note("sizes", tried);
  for (const CellContext context : accepted)
    for (const std::uint64_t seed : subject.seeds(context.units > 8 ? 1 : 2))
      check_context(subject, report, context, seed);
}

}  // namespace stiefel::conformance
