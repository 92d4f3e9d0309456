// What must not matter to a map: refreshing twice, threads, saving and loading; and what after_step() may do.
#include <fmt/format.h>
#include <set>
#include <thread>

#include "conformance/interleaved.hpp"
#include "conformance/map_probe.hpp"
#include "host/memory_archive.hpp"

namespace stiefel::conformance {

namespace {

void require_same_bits(CheckReport& report, std::string_view check, const Real& got, const Real& expected,
                       const std::string& sentence, const std::string& hint) {
  Comparison comparison;
  comparison.matrices("W", got, expected);
  report.measure(check, comparison, 0, sentence, hint);
}

struct Recorded final : Recorder {
  std::vector<std::string> names;
  std::vector<double> values;
  bool sound = true;
  void scalar(std::string_view name, double value) override {
    names.emplace_back(name), values.push_back(value);
    sound = sound && plain_name(name);
  }
};

template <class S> Recorded recorded(const MapProbe<S>& probe) {
  Recorded found;
  probe.subject().call("record", [&] { probe.map().record(found); });
  return found;
}

constexpr const char* unclean = "refresh() must compute W from θ and what serialise() saves alone";

template <class S> void check_refresh(MapProbe<S>& probe, CheckReport& report, Rng& rng) {
  const std::vector<double> theta = probe.theta();
  const Real W = probe.matrix();
  probe.refresh();
  require_same_bits(report, "refresh", probe.matrix(), W, "the same W twice", unclean);
  std::vector<double> elsewhere = theta;
  scatter(probe.layout().all(elsewhere.data()), probe.blocks(), 0.3, rng);
  MapProbe<S> other(probe.subject(), report, probe.shape);
  other.set_theta(elsewhere);
  other.refresh();
  require_same_bits(report, "refresh", probe.matrix(), W, "the same W after refresh() of another object",
                    "objects must not share static variables");
  probe.set_theta(elsewhere);
  probe.refresh();
  probe.set_theta(theta);
  probe.refresh();
  require_same_bits(report, "refresh", probe.matrix(), W, "W has no memory of an earlier θ", unclean);
}

template <class S> void check_constant_norms(MapProbe<S>& probe, CheckReport& report) {
  const std::vector<double> theta = probe.theta();
  for (Index b = 0; b < probe.layout().count(); ++b) {
    const BlockSpec& spec = probe.layout().block(b);
    if (!spec.constant_norm) continue;
    const auto block_of = [&](std::vector<double>& numbers) {
      return as_vector(probe.layout().all(numbers.data())[b]);
    };
    std::vector<double> doubled = theta;
    const double norm = block_of(doubled).norm();
    block_of(doubled) *= 2;
    probe.set_theta(doubled);
    probe.after_step();
    std::vector<double> after = probe.theta();
    const double found = block_of(after).norm();
    report.demand("after_step", std::abs(found - norm) <= rounding<S>(spec.size) * norm,
                  fmt::format("the block `{}` of constant norm {:.4g} has the norm {:.4g} after being doubled; "
                              "after_step() must restore it",
                              spec.name, norm, found));
  }
  probe.set_theta(theta);
  probe.refresh();
}

// after_step() brings θ back to where it belongs: doing so twice is doing it once, and at the initial θ it does nothing
// to W.
template <class S> void check_after_step(MapProbe<S>& probe, CheckReport& report, bool initial) {
  const double bound = rounding<S>(probe.map().rows());
  const Real before = probe.matrix();
  probe.after_step();
  probe.refresh();
  const Real once = probe.matrix();
  probe.after_step();
  probe.refresh();
  const double norm = std::max(1., once.norm());
  Comparison again, kept;
  again.matrices("W", probe.matrix(), once);
  report.measure("after_step", again, bound * norm, "twice as once");
  kept.matrices("W", once, before);
  if (initial)
    report.measure("after_step", kept, bound * norm, "keeps the initial W");
  else if (kept.largest() > bound * norm)
    report.note("after_step", fmt::format("a projection: it moves W by up to {:.2g} after a step", kept.largest()));
  check_constant_norms(probe, report);
}

constexpr const char* state_lost = "serialise() must save and restore everything that θ does not determine";

template <class S> void load_saved(MapProbe<S>& probe, MapProbe<S>& copy, CheckReport& report) {
  const Subject& subject = probe.subject();
  MemoryArchive saved;
  subject.call("serialise", [&] { probe.map().serialise(saved); });
  MemoryArchive load(saved.items());
  subject.call("serialise", [&] { copy.map().serialise(load); });
  report.require("save and load", load.unread().empty(), "serialise() does not read everything that it writes");
  copy.set_theta(probe.theta());
  copy.refresh();
  require_same_bits(report, "save and load", copy.matrix(), probe.matrix(), "W of a new object that was loaded",
                    state_lost);
  const Recorded theirs = recorded(probe), loaded = recorded(copy);
  report.require("save and load", theirs.names == loaded.names && same_numbers(theirs.values, loaded.values),
                 fmt::format("record() gives other scalars after loading; {}", state_lost));
  MemoryArchive resaved;
  subject.call("serialise", [&] { copy.map().serialise(resaved); });
  report.require("save and load", resaved.items() == saved.items(), "saving what was loaded gives different bytes");
}

/// A change of base every so many steps must keep W, as the other steps do.
template <class S> void remark_on_jumps(MapProbe<S>& probe, CheckReport& report) {
  constexpr int steps = 120;
  const std::vector<double> start = probe.theta();
  Rng rng(1, "jumps");
  double largest = 0;
  int kept = 0;
  for (int step = 1; step <= steps; ++step) {
    std::vector<double> theta = start;
    scatter(probe.layout().all(theta.data()), probe.blocks(), 0.01, rng);
    probe.set_theta(theta);
    probe.refresh();
    const Real before = probe.matrix();
    probe.after_step();
    probe.refresh();
    const double move = (probe.matrix() - before).norm() / std::max(1., before.norm());
    if (move <= rounding<S>(probe.map().rows()))
      ++kept;
    else
      largest = std::max(largest, move);
  }
  if (kept >= steps - 20 && largest > 1e-3)
    report.remark("after_step",
                  fmt::format("it keeps W in {} of {} steps, but moves it by {:.2g} in another: if this is "
                              "a change of base, it must not change W",
                              kept, steps, largest));
}

/// A hundred and twenty steps must not tell a map from its loaded copy: a counter that was forgotten shows when its
/// period comes round, and what changes only then must be saved as well.
template <class S> void follow_both(MapProbe<S>& probe, MapProbe<S>& copy, CheckReport& report) {
  const std::vector<double> start = probe.theta();
  Rng rng(1, "follow");
  for (int step = 0; step < 120; ++step) {
    std::vector<double> theta = probe.theta();
    scatter(probe.layout().all(theta.data()), probe.blocks(), 0.01, rng);
    for (MapProbe<S>* each : {&probe, &copy}) {
      each->set_theta(theta);
      each->after_step();
    }
    const bool same = probe.theta() == copy.theta();
    report.require("save and load", same,
                   fmt::format("after_step() number {} after loading moves θ differently; {}", step + 1, state_lost));
    if (!same) break;
  }
  copy.refresh();
  probe.refresh();
  require_same_bits(report, "save and load", copy.matrix(), probe.matrix(), "W many steps after loading", state_lost);
  MapProbe<S> later(probe.subject(), report, probe.shape);
  load_saved(probe, later, report);
  remark_on_jumps(copy, report);
  check_claim(probe, report);
  check_spectrum(probe, report);
  if constexpr (std::is_same_v<S, double>) check_differences(probe, report, 1);
  probe.set_theta(start);
  probe.refresh();
}

/// Far from where θ begins, as in a long run, the claim must hold, and after_step() must keep W, unless it moves θ to
/// where θ alone says what W is, as a projection does.
template <class S> void check_far(MapProbe<S>& probe, CheckReport& report, const std::vector<double>& theta) {
  constexpr int steps = 120;
  for (const double factor : {3., 10., 30.}) {
    std::vector<double> far = theta;
    for (Index b = 0; b < probe.layout().count(); ++b)
      if (probe.layout().block(b).manifold == Manifold::flat) as_vector(probe.layout().all(far.data())[b]) *= factor;
    probe.set_theta(far);
    probe.after_step();
    probe.refresh();
    const Real W = probe.matrix();
    if (!W.allFinite()) return;  // e.g. where θ is that of an exponential function
    check_claim(probe, report, factor, fmt::format(" at {:g} θ", factor));
    for (int step = 0; step < steps; ++step) probe.after_step();
    probe.refresh();
    const double bound = factor * rounding<S>(W.rows()) * std::max(1., W.norm());
    if ((probe.matrix() - W).norm() <= bound) continue;
    MapProbe<S> fresh(probe.subject(), report, probe.shape);
    fresh.set_theta(probe.theta());
    fresh.refresh();
    if ((fresh.matrix() - probe.matrix()).norm() <= bound) continue;
    Comparison kept;
    kept.matrices("W", probe.matrix(), W);
    report.measure("after_step", kept, bound, fmt::format("keeps W for {} steps at {:g} θ", steps, factor),
                   "after_step() changes the state of the map as well as θ: such a change of base must not change W");
  }
}

/// Where optimizers may also take θ: entries of the order of 1, whatever those are with which it begins; and, with
/// train.weight_noise, noise on the blocks that take it.
template <class S>
void check_claim_elsewhere(MapProbe<S>& probe, CheckReport& report, const std::vector<double>& theta, Rng& rng) {
  probe.set_theta(theta);
  probe.after_step();
  const std::vector<double> stepped = probe.theta();
  for (const double scale : {0.05, 1., 5.}) {
    const bool noise = scale < 1;
    std::vector<double> there = stepped;
    for (Index b = 0; b < probe.layout().count(); ++b)
      if (const BlockSpec& block = probe.layout().block(b);
          block.manifold == Manifold::flat && (block.takes_noise || !noise))
        for (double& x : probe.layout().all(there.data())[b]) x += scale * rng.normal();
    probe.set_theta(there);
    if (!noise) probe.after_step();
    probe.refresh();
    if (!probe.matrix().allFinite()) return;
    check_claim(probe, report, std::max(1., 10 * scale),
                noise ? fmt::format(" with noise of {:g} on θ", scale)
                      : fmt::format(" at θ with numbers of the order of {:g} added", scale));
  }
}

template <class S> void check_map_archive(MapProbe<S>& probe, CheckReport& report, bool many_steps) {
  MapProbe<S> copy(probe.subject(), report, probe.shape);
  load_saved(probe, copy, report);
  if (many_steps) follow_both(probe, copy, report);
}

template <class S> void check_cost(const MapProbe<S>& probe, CheckReport& report) {
  struct Figure {
    const char* name;
    double Cost::*cost;
    bool of_columns;
  };
  constexpr Index many = 64;
  const auto cost_of = [&](Index columns) {
    return probe.subject().call("cost", [&] { return probe.map().cost(columns); });
  };
  const Cost one = cost_of(1), more = cost_of(many);
  for (const Figure& figure : {Figure{"apply", &Cost::apply, true},
                               {"apply_adjoint", &Cost::apply_adjoint, true},
                               {"accumulate", &Cost::accumulate, true},
                               {"refresh", &Cost::refresh, false},
                               {"finish", &Cost::finish, false},
                               {"materialise", &Cost::materialise, false},
                               {"pullback", &Cost::pullback, false}}) {
    const double first = one.*figure.cost, last = more.*figure.cost;
    report.require("cost", std::isfinite(last) && first >= 0 && last >= 0, "a cost is negative, NaN or Inf");
    report.require(
        "cost", figure.of_columns ? last >= 8 * first : last == first,
        fmt::format("cost({}).{} is {:g}, but cost(1).{} is {:g}: it must {}", many, figure.name, last, figure.name,
                    first, figure.of_columns ? "be that of all columns" : "not depend on the columns"));
  }
}

}  // namespace

template <class S> void check_state(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed) {
  Rng rng(seed, "state");
  const std::vector<double> theta = probe.theta();
  const Recorded first = recorded(probe);
  check_refresh(probe, report, rng);
  check_after_step(probe, report, true);
  check_map_archive(probe, report, false);

  std::vector<double> moved = theta;
  scatter(probe.layout().all(moved.data()), probe.blocks(), 0.3, rng);
  probe.set_theta(moved);
  probe.refresh();
  check_after_step(probe, report, false);
  report.demand("after_step", probe.matrix().allFinite(), "W has NaN or Inf after a step");
  check_claim(probe, report);
  check_map_archive(probe, report, true);
  if (report.passed()) check_far(probe, report, moved);
  if (report.passed()) check_claim_elsewhere(probe, report, moved, rng);

  check_cost(probe, report);
  const Parametrisation<S>& map = probe.map();
  if (map.materialises() && !dynamic_cast<const Dense<S>*>(&map) &&
      map.cost(8).apply == map.Parametrisation<S>::cost(8).apply)
    report.remark("cost",
                  "the map has two routes, but no cost(): without it, `route: auto` takes apply() to cost as much as a "
                  "dense product, and so the dense route");
  const Recorded second = recorded(probe);
  report.require("record",
                 first.sound && first.names == second.names &&
                     std::set(first.names.begin(), first.names.end()).size() == first.names.size(),
                 "names of recorded scalars must be [a-z0-9_]+, unique, and the same at every call");
  probe.set_theta(theta);
  probe.refresh();
}

namespace {

// What one thread does: products and sums with its own columns, sums and scratch.
template <class S> struct Work {
  Panel<S> X, dY, Y, dX;
  Guarded<S> memory, sum;
  std::string fault;
  bool same = true;

  Work(const MapProbe<S>& probe, Index columns, Rng& rng)
      : X(random_matrix(rng, probe.map().cols(), columns)),
        dY(random_matrix(rng, probe.map().rows(), columns)),
        Y(probe.map().rows(), columns),
        dX(probe.map().cols(), columns),
        memory(probe.scratch_size(columns)),
        sum(probe.sum()) {}

  void run(const Parametrisation<S>& map) {
    std::fill_n(sum.data(), sum.size(), S(0));
    const auto fresh = [this] { return Scratch<S>(memory.span()); };
    Scratch<S> first = fresh(), second = fresh(), third = fresh();
    map.apply(X.read(), Y.whole(), first);
    map.apply_adjoint(dY.read(), dX.whole(), second);
    map.accumulate(X.read(), dY.read(), sum.span(), third);
  }
  void compare(const Work& expected, Comparison& comparison) const {
    comparison.matrices("apply", Y.read(), expected.Y.read());
    comparison.matrices("apply_adjoint", dX.read(), expected.dX.read());
    for (Index k = 0; k < sum.size(); ++k)
      comparison.add("accumulate", k, double(sum.data()[k]), double(expected.sum.data()[k]));
  }
  /// Runs until the numbers are not those expected, and keeps the wrong ones.
  void repeat(const MapProbe<S>& probe, const Work& expected, int times) {
    const Subject& subject = probe.subject();
    try {
      guarded("apply, apply_adjoint or accumulate", subject.entry.name, subject.file, [&] {
        for (int k = 0; k < times && same; ++k) {
          run(probe.map());
          same = Y.same_bits(expected.Y) && dX.same_bits(expected.dX) && sum.same_bits(expected.sum);
        }
      });
    } catch (const std::exception& e) {
      fault = e.what();
      same = false;
    }
  }
};

// What a step does with one map, while other threads may do it with other maps of the method.
template <class S> struct Step {
  MapProbe<S> probe;
  Guarded<S> sum;
  Panel<S> W, dW;
  GuardedBlocks<S> dtheta;
  std::vector<double> expected = {};
  std::string fault = {};
  bool same = true;

  Step(const MapProbe<S>& from, CheckReport& report, Rng& rng)
      : probe(from.subject(), report, from.shape),
        sum(from.sum()),
        W(from.shape.rows, from.shape.cols),
        dW(random_matrix(rng, from.shape.rows, from.shape.cols)),
        dtheta(from.gradient_buffer()) {
    std::vector<double> theta = from.theta();
    scatter(from.layout().all(theta.data()), from.blocks(), 0.1, rng);
    probe.set_theta(theta);
    probe.refresh();
    probe.accumulate(random_matrix(rng, from.shape.cols, 3), random_matrix(rng, from.shape.rows, 3), sum);
    probe.subject().call("refresh, finish, materialise, pullback", [&] { run(); });
    expected = dtheta.numbers();
  }
  void run() {
    Parametrisation<S>& map = probe.map();
    dtheta.fill(0);
    map.refresh(probe.parameters());
    map.finish(probe.parameters(), sum.span(), dtheta.all());
    if (!map.materialises()) return;
    map.materialise(probe.parameters(), W.whole());
    map.pullback(probe.parameters(), W.read(), dW.read(), dtheta.all());
  }
  /// Nothing more once the gradient was not the expected one.
  void repeat() {
    if (!same) return;
    try {
      guarded("refresh, finish, materialise or pullback", probe.subject().entry.name, probe.subject().file,
              [&] { run(); });
      same = same_numbers(dtheta.numbers(), expected);
    } catch (const std::exception& e) {
      fault = e.what();
      same = false;
    }
  }
};

template <class S>
void require_same(CheckReport& report, const Work<S>& got, const Work<S>& expected, const char* note) {
  report.require("threads", got.fault.empty(), got.fault);
  if (!got.fault.empty()) return;
  Comparison comparison;
  got.compare(expected, comparison);
  report.measure("threads", comparison, 0, note, "a const function changes a member or a static variable, a race");
}

}  // namespace

template <class S> void check_threads(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed, bool thorough) {
  constexpr int threads = 4, repeats = 50;
  constexpr Index columns = 6;
  Rng rng(seed, "threads");
  std::vector<Work<S>> serial;
  for (int i = 0; i < threads; ++i) serial.emplace_back(probe, columns, rng);
  std::vector<Work<S>> parallel = serial, interleaved(serial.begin(), serial.begin() + 2);
  probe.subject().call("apply, apply_adjoint, accumulate", [&] {
    for (Work<S>& w : serial) w.run(probe.map());
  });
  {
    std::vector<std::jthread> pool;
    for (std::size_t i = 0; i < threads; ++i)
      pool.emplace_back([&, i] { parallel[i].repeat(probe, serial[i], repeats); });
  }
  for (std::size_t i = 0; i < threads; ++i)
    require_same(report, parallel[i], serial[i], "four at once, same bits as one");
  if (!thorough) return;
  interleave([&] { interleaved[0].repeat(probe, serial[0], 1); }, [&] { interleaved[1].repeat(probe, serial[1], 1); });
  for (std::size_t i = 0; i < 2; ++i)
    require_same(report, interleaved[i], serial[i], "stopped midway by another thread, same bits as alone");
}

template <class S> void check_maps_apart(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed) {
  Rng rng(seed, "maps apart");
  Step<S> one(probe, report, rng), other(probe, report, rng);
  interleave([&] { one.repeat(); }, [&] { other.repeat(); });
  for (const Step<S>* step : {&one, &other})
    report.require("threads", step->same,
                   step->fault.empty()
                       ? "refresh(), finish(), materialise() and pullback() of one map, stopped midway by "
                         "those of another map of the method, give another gradient: maps must not "
                         "share a static variable, a race"
                       : step->fault);
}

template <class S> void check_reads(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed) {
  constexpr Index columns = 5;
  struct Results {
    Real Y, dX;
    std::vector<double> sum, gradient;
    double penalty;
  };
  const auto results = [&](MapProbe<S>& map) {
    Rng rng(seed, "reads");
    const Real X = random_matrix(rng, map.map().cols(), columns), dY = random_matrix(rng, map.map().rows(), columns);
    Guarded<S> sum = map.sum();
    map.accumulate(X, dY, sum);
    return Results{
        map.apply(X), map.adjoint(dY), {sum.data(), sum.data() + sum.size()}, map.finish(sum), map.penalty()};
  };
  const auto results_of_twin = [&] {
    MapProbe<S> twin(probe.subject(), report, probe.shape);
    twin.set_theta(probe.theta());
    twin.refresh();
    return results(twin);
  };
  const Results here = results(probe), repeated = results_of_twin();
  const OtherGuards others;
  const Results there = results_of_twin();
  const auto same = [&](const char* verb, const char* what, bool holds) {
    report.demand(
        "memory", holds,
        fmt::format("the result of {} depends on numbers outside {}: an index or a size is wrong", verb, what));
  };
  report.demand("refresh", same_numbers(here.Y, repeated.Y),
                "another object with the same options and θ has another W: random numbers that are part of the method "
                "come from an option, Rng(seed, \"name\"), and refresh() must not depend on what was before it");
  report.demand("memory",
                ignores_old_memory(results_of_twin,
                                   [](const Results& a, const Results& b) {
                                     return same_numbers(a.Y, b.Y) && same_numbers(a.dX, b.dX) &&
                                            same_numbers(a.gradient, b.gradient);
                                   }),
                reads_old_memory);
  same("refresh or apply", "θ and X", same_numbers(here.Y, there.Y));
  same("apply_adjoint", "dY", same_numbers(here.dX, there.dX));
  same("accumulate", "X and dY", same_numbers(here.sum, there.sum));
  same("finish", "θ and the sum", same_numbers(here.gradient, there.gradient));
  same("penalty", "θ", here.penalty == there.penalty || here.penalty != here.penalty);
}

template <class S> void check_allocation(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed) {
  const Parametrisation<S>& map = probe.map();
  for (const Index columns : {1, 6, 33}) {
    Rng rng(seed, "allocation");
    Work<S> work(probe, columns, rng);
    Guarded<S> more(probe.scratch_size(columns) + std::max(map.rows(), map.cols()) * columns);
    const auto count = [&](const char* verb, auto&& f) {
      require_no_allocation(report, verb, probe.subject().allocations(verb, [&] {
        Scratch<S> scratch(more.span());
        f(scratch);
      }));
    };
    count("apply", [&](auto& scratch) { map.apply(work.X.read(), work.Y.whole(), scratch); });
    count("apply_adjoint", [&](auto& scratch) { map.apply_adjoint(work.dY.read(), work.dX.whole(), scratch); });
    count("add", [&](auto& scratch) { map.add(work.X.read(), work.Y.whole(), scratch); });
    count("add_adjoint", [&](auto& scratch) { map.add_adjoint(work.dY.read(), work.dX.whole(), scratch); });
    count("accumulate",
          [&](auto& scratch) { map.accumulate(work.X.read(), work.dY.read(), work.sum.span(), scratch); });
  }
}

template void check_state<float>(MapProbe<float>&, CheckReport&, std::uint64_t);
template void check_state<double>(MapProbe<double>&, CheckReport&, std::uint64_t);
template void check_threads<float>(MapProbe<float>&, CheckReport&, std::uint64_t, bool);
template void check_threads<double>(MapProbe<double>&, CheckReport&, std::uint64_t, bool);
template void check_maps_apart<float>(MapProbe<float>&, CheckReport&, std::uint64_t);
template void check_maps_apart<double>(MapProbe<double>&, CheckReport&, std::uint64_t);
template void check_reads<float>(MapProbe<float>&, CheckReport&, std::uint64_t);
template void check_reads<double>(MapProbe<double>&, CheckReport&, std::uint64_t);
template void check_allocation<float>(MapProbe<float>&, CheckReport&, std::uint64_t);
template void check_allocation<double>(MapProbe<double>&, CheckReport&, std::uint64_t);

}  // namespace stiefel::conformance
