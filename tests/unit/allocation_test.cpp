// A training step allocates the same number of times however many time steps it has: cells, maps and panels allocate
// nothing in the loop.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>

#include "config/load.hpp"
#include "training/session.hpp"

namespace {
std::atomic<long> allocations = 0;
}

// glibc's own names, for a malloc in front of its malloc.
extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* malloc(std::size_t size) {
  ++allocations;
  return __libc_malloc(size);
}

using namespace stiefel;

namespace {

long allocations_of_a_step(const std::string& cell, const std::string& recurrent, int length,
                           const std::string& recompute, int batch_size = 13) {
  Registry registry({STIEFEL_PLUGINS});
  const LoadedExperiment loaded = load_experiment_text(
      fmt::format("name: probe\nthreads: 2\ntask: {{plugin: adding, length: {}}}\nmodel: {{cell: {}, recurrent: "
                  "{}}}\noptimizer: {{plugin: "
                  "adam, rate: 1.0e-3}}\ntrain: {{batch: {}, steps: 1, chunk: 8, recompute: {}}}\n",
                  length, cell, recurrent, batch_size, recompute),
      "probe", {}, registry);
  Session<float> session(loaded, registry, {});
  Batch<float> batch;
  session.task->fill(Split::train, 0, batch);
  for (int repeat = 0; repeat < 2; ++repeat) session.pass(batch, 1, {});
  const long before = allocations;
  session.pass(batch, 1, {});
  return allocations - before;
}

}  // namespace

TEST_CASE("the time loop allocates nothing") {
  for (const std::string cell :
       {"{plugin: elman, hidden: 24, activation: modrelu}", "{plugin: elman, hidden: 24, activation: tanh}",
        "{plugin: lstm, hidden: 24, peepholes: diagonal}", "{plugin: gru, hidden: 24}"})
    for (const std::string map : {"dense", "{plugin: householder, reflections: 4, route: structured}",
                                  "{plugin: householder, reflections: 23, route: structured}",
                                  "{plugin: householder, reflections: 4, apply: sequential, route: structured}",
                                  "{plugin: spectral_householder, left: 4, right: 3, route: structured}",
                                  "{plugin: kronecker, field: real, route: structured}",
                                  "{plugin: givens, field: real, route: structured}", "scaled_cayley"})
      for (const std::string recompute : {"never", "always"}) {
        INFO(cell << " " << map << " recompute: " << recompute);
        CHECK(allocations_of_a_step(cell, map, 200, recompute) == allocations_of_a_step(cell, map, 40, recompute));
      }
}

TEST_CASE("the time loop of complex maps allocates nothing") {
  for (const std::string map :
       {"{plugin: unitary_householder, reflections: 4, route: structured}", "{plugin: kronecker, route: structured}",
        "{plugin: urnn, route: structured}", "{plugin: givens, route: structured}"})
    for (const std::string recompute : {"never", "always"}) {
      INFO(map << " recompute: " << recompute);
      const std::string cell = "{plugin: elman, hidden: 24, activation: modrelu}";
      CHECK(allocations_of_a_step(cell, map, 200, recompute) == allocations_of_a_step(cell, map, 40, recompute));
    }
}

TEST_CASE("the time loop of maps that work in place, and of threads that share one map, allocates nothing") {
  const std::string relu = "{plugin: elman, hidden: 32, activation: modrelu}",
                    wide = "{plugin: elman, hidden: 150, activation: tanh}";
  for (const std::string field : {"complex", "real"}) {
    const std::string map = "{plugin: kronecker, route: structured, field: " + field + "}";
    INFO(map);
    CHECK(allocations_of_a_step(relu, map, 200, "never") == allocations_of_a_step(relu, map, 40, "never"));
  }
  const std::string map = "{plugin: householder, reflections: 149, route: structured}";
  CHECK(allocations_of_a_step(wide, map, 200, "never", 1) == allocations_of_a_step(wide, map, 40, "never", 1));
}
