// The checks of a parametrisation over shapes, seeds and scalars. Shapes that the map refuses with an Error are passed
// over.
#include <fmt/format.h>
#include <optional>

#include "conformance/map_probe.hpp"
#include "engine/workers.hpp"

namespace stiefel::conformance {

namespace {

constexpr std::size_t shapes_needed = 3;

struct Shapes {
  std::vector<Shape> accepted, rectangular;
  std::string refusal, tried;  // the last; squares
  std::string refusal_of_rectangles;
  std::optional<Shape> large;  // on the scale of a run
};

bool accepts(const Subject& subject, Shape shape, std::string& refusal) {
  try {
    subject.create<Parametrisation<double>>(shape);
    return true;
  } catch (const Error& e) {
    if (e.code() != Exit::usage) throw;
    refusal = e.what();
    return false;
  }
}

Shapes find_shapes(const Subject& subject, bool complex) {
  Shapes found;
  const Index unit = complex ? 2 : 1;
  const auto try_square = [&](Index n) {
    const Shape shape{unit * n, unit * n, complex};
    found.tried += fmt::format("{}{}", found.tried.empty() ? "" : ", ", n);
    if (accepts(subject, shape, found.refusal)) found.accepted.push_back(shape);
  };
  if (const auto& asked = subject.settings; asked.rows > 0) {
    const Shape shape{unit * asked.rows, unit * asked.cols, complex};
    if (accepts(subject, shape, found.refusal)) found.accepted.push_back(shape), found.large = shape;
    return found;
  }
  for (const Index n : {1, 2, 3, 5, 8, 16, 33}) try_square(n);
  for (const Index n : {4, 6, 9, 12, 20, 24, 27, 32, 36, 48, 64})
    if (found.accepted.size() < shapes_needed) try_square(n);
  for (const Index n : {130, 144, 128}) {
    const Shape shape{unit * n, unit * n, complex};
    std::string refusal;
    if (!found.large && accepts(subject, shape, refusal)) found.large = shape;
  }
  const auto try_rectangle = [&](Index rows, Index cols) {
    const Shape shape{unit * rows, unit * cols, complex};
    if (accepts(subject, shape, found.refusal_of_rectangles)) found.rectangular.push_back(shape);
  };
  for (const auto& [rows, cols] : {std::pair<Index, Index>{5, 3}, {3, 5}, {8, 16}}) try_rectangle(rows, cols);
  if (found.rectangular.empty())
    for (const auto& [rows, cols] : {std::pair<Index, Index>{24, 18}, {18, 24}, {64, 48}}) try_rectangle(rows, cols);
  return found;
}

std::string shape_text(Shape shape) {
  return fmt::format("{} × {}{}", shape.rows, shape.cols, shape.complex ? " Re over Im" : "");
}

// Unless it was given, and so is repeated anyway.
std::string shape_option(const Subject& subject, Shape shape) {
  const Index unit = shape.complex ? 2 : 1;
  return subject.settings.rows > 0 ? "" : fmt::format(" --shape {}x{}", shape.rows / unit, shape.cols / unit);
}

template <class S> void check_start(MapProbe<S>& probe, CheckReport& report, std::uint64_t seed) {
  report.demand("blocks", probe.map().rows() == probe.shape.rows && probe.map().cols() == probe.shape.cols,
                "rows() and cols() differ from the Shape that the map was made for");
  probe.initialise(seed + 1000);
  const std::vector<double> other = probe.theta();
  probe.initialise(seed);
  const std::vector<double> theta = probe.theta();
  probe.initialise(seed);
  const bool finite = std::all_of(theta.begin(), theta.end(), [](double x) { return std::isfinite(x); });
  report.demand("initialise", finite, "θ has NaN or Inf");
  report.demand("initialise", probe.theta() == theta,
                "the same random stream gave a different θ: draw all random numbers from the Rng that is passed");
  remark_on_fixed_start(report, theta, other);
  probe.refresh();
}

// Every check for one scalar at the initial θ and at a θ that an optimizer may have reached.
template <class S>
void check_map_as(const Subject& subject, CheckReport& report, Shape shape, std::uint64_t seed, bool thorough) {
  report.at({scalar_name<S>, shape_text(shape), seed, shape_option(subject, shape)});
  std::optional<MapProbe<S>> made;
  attempt(subject, report, "blocks", [&] {
    made.emplace(subject, report, shape);
    check_start(*made, report, seed);
  });
  MapProbe<S>& probe = *made;
  const std::vector<double> initial = probe.theta();
  attempt(subject, report, "memory", [&] { check_reads(probe, report, seed); });
  for (const double amount : {0., 0.2}) {
    Rng rng(seed, "scatter");
    std::vector<double> theta = initial;
    if (amount > 0) scatter(probe.layout().all(theta.data()), probe.blocks(), amount, rng);
    const auto restore = [&] {
      probe.set_theta(theta);
      if (amount > 0) probe.after_step();
      probe.refresh();
    };
    const auto one = [&](const char* name, auto&& check) {
      attempt(subject, report, name, [&] {
        restore();
        check();
      });
    };
    one("apply is W", [&] { check_identities(probe, report, seed); });
    one("claim", [&] { check_claim(probe, report); });
    one("additive", [&] { check_sums(probe, report, seed); });
    one("spectrum", [&] { check_spectrum(probe, report); });
    one("threads", [&] { check_threads(probe, report, seed, thorough); });
    if constexpr (std::is_same_v<S, double>) one("gradient", [&] { check_differences(probe, report, seed); });
  }
  attempt(subject, report, "additive", [&] {
    probe.set_theta(initial);
    probe.refresh();
    check_many_columns(probe, report, seed);
  });
  // Whatever the number type, the functions are the same.
  const bool once = std::is_same_v<S, double> || !subject.wants<double>();
  attempt(subject, report, "threads", [&] {
    if (thorough && once) check_maps_apart(probe, report, seed);
  });
  attempt(subject, report, "allocation", [&] {
    if (subject.counts_allocations()) check_allocation(probe, report, seed);
  });
  attempt(subject, report, "growth", [&] {
    probe.set_theta(initial);
    Rng rng(seed, "growth");
    const Real X = random_matrix(rng, probe.map().cols(), 3), dY = random_matrix(rng, probe.map().rows(), 3);
    require_no_growth(report, "refresh", [&] { probe.refresh(); });
    require_no_growth(report, "finish", [&] { probe.gradient(X, dY); });
    require_no_growth(report, "after_step", [&] { probe.after_step(); });
  });
  attempt(subject, report, "refresh", [&] {
    probe.set_theta(initial);
    probe.refresh();
    check_state(probe, report, seed);
  });
}

void check_shape(const Subject& subject, CheckReport& report, Shape shape, std::uint64_t seed, bool thorough) {
  if (subject.wants<float>()) check_map_as<float>(subject, report, shape, seed, thorough);
  if (subject.wants<double>()) check_map_as<double>(subject, report, shape, seed, thorough);
  if (!subject.wants<float>() || !subject.wants<double>()) return;
  report.at({"", shape_text(shape), seed, shape_option(subject, shape)});
  attempt(subject, report, "float as double", [&] {
    MapProbe<float> single(subject, report, shape);
    MapProbe<double> reference(subject, report, shape);
    single.initialise(seed);
    reference.initialise(seed);
    check_float_gradient(single, reference, report, seed);
  });
}

// At the scale of a run: loops over blocks of rows or columns have several here.
// Jobs of in_parallel() may run in any order.
void check_order_of_jobs(MapProbe<double>& probe, CheckReport& report, std::uint64_t seed) {
  Rng rng(seed, "jobs");
  const Real X = random_matrix(rng, probe.map().cols(), 700), dY = random_matrix(rng, probe.map().rows(), 700);
  const auto numbers = [&] {
    probe.refresh();
    const Real W = probe.matrix();
    std::vector<double> all = probe.gradient(X, dY);
    all.insert(all.end(), W.data(), W.data() + W.size());
    return all;
  };
  const std::vector<double> forward = numbers();
  const Workers::ReversedJobs reversed;
  report.require("threads", same_numbers(numbers(), forward),
                 "W or the gradient has other bits when the jobs of in_parallel() run in another order: no result may "
                 "depend on which job ends first, so let each write to its own memory, and add it up afterwards");
}

void check_large(const Subject& subject, CheckReport& report, Shape shape, std::uint64_t seed) {
  constexpr Index columns = 2099;
  report.at({scalar_name<double>, fmt::format("{}, {} columns", shape_text(shape), columns), seed,
             shape_option(subject, shape)});
  attempt(subject, report, "gradient", [&] {
    MapProbe<double> probe(subject, report, shape);
    check_start(probe, report, seed);
    std::vector<double> theta = probe.theta();
    Rng rng(seed, "scatter");
    scatter(probe.layout().all(theta.data()), probe.blocks(), 0.05, rng);
    probe.set_theta(theta);
    probe.after_step();
    probe.refresh();
    check_identities(probe, report, seed);
    check_direction(probe, report, columns, seed);
    check_order_of_jobs(probe, report, seed);
  });
}

}  // namespace

void check_parametrisation(const Subject& subject, CheckReport& report) {
  Shapes shapes;
  attempt(subject, report, "shapes", [&] { shapes = find_shapes(subject, subject.complex()); });
  report.require("memory", true, "");
  const std::size_t needed = subject.settings.rows > 0 ? 1 : shapes_needed;
  report.demand(
      "shapes", shapes.accepted.size() >= needed,
      subject.settings.rows > 0
          ? "the map refuses this --shape: " + shapes.refusal
          : fmt::format("the map accepts {} of the sizes n = {}; check needs {}. Add options that fit small sizes, "
                        "as KEY=VALUE, or name a size with --shape ROWSxCOLUMNS. The last refusal: {}",
                        shapes.accepted.size(), shapes.tried, needed, shapes.refusal));
  std::string tried;
  for (const auto* list : {&shapes.accepted, &shapes.rectangular})
    for (const Shape shape : *list) tried += (tried.empty() ? "" : ", ") + shape_text(shape);
  if (shapes.rectangular.empty() && subject.settings.rows == 0)
    tried += "; no rectangle was accepted: " + shapes.refusal_of_rectangles;
  report.note("shapes", tried);
  const std::size_t count = shapes.accepted.size();
  for (std::size_t i = 0; i < count; ++i)
    for (const std::uint64_t seed : subject.seeds(shapes.accepted[i].rows > 16 ? 1 : 2))
      check_shape(subject, report, shapes.accepted[i], seed,
                  subject.among_first(seed) && (i == count / 2 || i + 1 == count));
  for (const Shape shape : shapes.rectangular)
    for (const std::uint64_t seed : subject.seeds(1)) check_shape(subject, report, shape, seed, false);
  if (shapes.large && report.passed() && subject.wants<double>())
    for (const std::uint64_t seed : subject.seeds(1)) check_large(subject, report, *shapes.large, seed);
}

}  // namespace stiefel::conformance
