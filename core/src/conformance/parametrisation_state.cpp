// What must not matter to a map: refreshing twice, threads, saving and loading; and what after_step() may do.
#include <fmt/format.h>
#include <set>
#include <thread>

#include "conformance/map_probe.hpp"
#include "host/memory_archive.hpp"

namespace stiefel::conformance {

namespace {

void require_same_bits(CheckReport& report, std::string_view check, const Real& got, const Real& expected,
                       const std::string& sentence) {
  Comparison comparison;
  comparison.matrices("W", got, expected);
  report.measure(check, comparison, 0, sentence);
}

struct Names final : Recorder {
  std::vector<std::string> names;
  bool sound = true;
  void scalar(std::string_view name, double) override {
    names.emplace_back(name);
    sound = sound && plain_name(name);
  }
};

template <class S> void check_refresh(MapProbe<S>& probe, CheckReport& report, Rng& rng) {
  const std::vector<double> theta = probe.theta();
  const Real W = probe.matrix();
  probe.refresh();
  require_same_bits(report, "refresh", probe.matrix(), W, "the same W twice");
  std::vector<double> elsewhere = theta;
  scatter(probe.layout().all(elsewhere.data()), probe.blocks(), 0.3, rng);
  probe.set_theta(elsewhere);
  probe.refresh();
  probe.set_theta(theta);
  probe.refresh();
  require_same_bits(report, "refresh", probe.matrix(), W, "W has no memory of an earlier θ");
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
}

/// A hundred and twenty steps must not tell a map from its loaded copy: a counter that was forgotten shows when its
/// period comes round.
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
                   fmt::format("after_step() number {} after loading moves θ differently", step + 1));
    if (!same) break;
  }
  copy.refresh();
  probe.refresh();
  require_same_bits(report, "save and load", copy.matrix(), probe.matrix(), "W many steps after loading");
  probe.set_theta(start);
  probe.refresh();
}

template <class S> void check_map_archive(MapProbe<S>& probe, CheckReport& report, bool many_steps) {
  const Subject& subject = probe.subject();
  MemoryArchive saved;
  subject.call("serialise", [&] { probe.map().serialise(saved); });
  MapProbe<S> copy(subject, report, probe.shape);
  MemoryArchive load(saved.items());
  subject.call("serialise", [&] { copy.map().serialise(load); });
  report.require("save and load", load.unread().empty(), "serialise() does not read everything that it writes");
  copy.set_theta(probe.theta());
  copy.refresh();
  require_same_bits(report, "save and load", copy.matrix(), probe.matrix(), "W of a new object that was loaded");
  MemoryArchive resaved;
  subject.call("serialise", [&] { copy.map().serialise(resaved); });
  report.require("save and load", resaved.items() == saved.items(), "saving what was loaded gives different bytes");
  if (many_steps) follow_both(probe, copy, report);
}

void check_cost(const Cost& cost, CheckReport& report) {
  for (const double figure :
       {cost.refresh, cost.apply, cost.apply_adjoint, cost.accumulate, cost.finish, cost.materialise, cost.pullback})
    report.require("cost", std::isfinite(figure) && figure >= 0, "a cost is negative, NaN or Inf");
}

}  // namespace

template <class S> void check_state(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed) {
  Rng rng(seed, "state");
  const std::vector<double> theta = probe.theta();
  check_refresh(probe, report, rng);
  check_after_step(probe, report, true);
  check_map_archive(probe, report, false);

  std::vector<double> moved = theta;
  scatter(probe.layout().all(moved.data()), probe.blocks(), 0.3, rng);
  probe.set_theta(moved);
  probe.refresh();
  check_after_step(probe, report, false);
  report.require("after_step", probe.matrix().allFinite(), "W has NaN or Inf after a step");
  check_claim(probe, report, seed);
  check_map_archive(probe, report, true);

  check_cost(probe.subject().call("cost", [&] { return probe.map().cost(8); }), report);
  Names first, second;
  probe.subject().call("record", [&] { probe.map().record(first); });
  probe.subject().call("record", [&] { probe.map().record(second); });
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
  void run_often(const MapProbe<S>& probe) {
    const Subject& subject = probe.subject();
    try {
      guarded("apply, apply_adjoint or accumulate", subject.entry.name, subject.file, [&] {
        for (int repeat = 0; repeat < 50; ++repeat) run(probe.map());
      });
    } catch (const std::exception& e) {
      fault = e.what();
    }
  }
};

}  // namespace

template <class S> void check_threads(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed) {
  constexpr int threads = 4;
  constexpr Index columns = 6;
  Rng rng(seed, "threads");
  std::vector<Work<S>> serial;
  for (int i = 0; i < threads; ++i) serial.emplace_back(probe, columns, rng);
  std::vector<Work<S>> parallel = serial;
  probe.subject().call("apply, apply_adjoint, accumulate", [&] {
    for (Work<S>& w : serial) w.run(probe.map());
  });
  {
    std::vector<std::jthread> pool;
    for (Work<S>& w : parallel) pool.emplace_back([&w, &probe] { w.run_often(probe); });
  }
  for (int i = 0; i < threads; ++i) {
    const Work<S>&got = parallel[std::size_t(i)], &expected = serial[std::size_t(i)];
    report.require("threads", got.fault.empty(), got.fault);
    if (!got.fault.empty()) continue;
    Comparison comparison;
    comparison.matrices("apply", got.Y.read(), expected.Y.read());
    comparison.matrices("apply_adjoint", got.dX.read(), expected.dX.read());
    for (Index k = 0; k < got.sum.size(); ++k)
      comparison.add("accumulate", k, double(got.sum.data()[k]), double(expected.sum.data()[k]));
    report.measure("threads", comparison, 0, "four at once, same bits as one");
  }
}

template void check_state<float>(MapProbe<float>&, CheckReport&, std::uint64_t);
template void check_state<double>(MapProbe<double>&, CheckReport&, std::uint64_t);
template void check_threads<float>(MapProbe<float>&, CheckReport&, std::uint64_t);
template void check_threads<double>(MapProbe<double>&, CheckReport&, std::uint64_t);

}  // namespace stiefel::conformance
