// `stiefel bench step [NAME…]`: median seconds and GFLOP/s of a training step for standard workloads, with 1 and 2 threads.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <config/load.hpp>
#include <stiefel/product.hpp>
#include <trainer/step_time.hpp>

#include "command_table.hpp"
#include "commands.hpp"

namespace stiefel::cli {
namespace {

struct Workload {
  const char* name;
  const char* recurrent;
  const char* activation;
  int hidden, length, batch;
};

constexpr Workload workloads[] = {
    {"ornn_128_m16", "{plugin: householder, reflections: 16}", "leaky_relu", 128, 400, 50},
    {"scornn_170_b50", "{plugin: scaled_cayley, rho: 17}", "modrelu", 170, 784, 50},
    {"scornn_170_b128", "{plugin: scaled_cayley, rho: 17}", "modrelu", 170, 784, 128},
    {"scornn_512_b50", "{plugin: scaled_cayley, rho: 51}", "modrelu", 512, 784, 50},
    {"scornn_512_b128", "{plugin: scaled_cayley, rho: 51}", "modrelu", 512, 784, 128},
    {"rnn_128", "{plugin: dense}", "tanh", 128, 784, 50},
    {"rnn_512", "{plugin: dense}", "tanh", 512, 784, 50},
    {"ornn_512_m510_b1", "{plugin: householder, reflections: 510}", "leaky_relu", 512, 118, 1},
};

LoadedExperiment load(const Workload& work, int threads, Registry& registry) {
  const std::string text = fmt::format(
      "name: bench\nthreads: {}\ntask: {{plugin: adding, length: {}}}\nmodel:\n  cell: {{plugin: elman, hidden: {}, activation: {}}}\n  "
      "recurrent: {}\n"
      "optimizer: {{plugin: adam, rate: 1.0e-4}}\ntrain: {{batch: {}, steps: 1}}\n",
      threads, work.length, work.hidden, work.activation, work.recurrent, work.batch);
  return load_experiment_text(text, "bench", {}, registry);
}

}  // namespace

int bench_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("bench", words);
  if (arguments.positional.empty() || arguments.positional[0] != "step") throw Error("say what to measure: stiefel bench step [NAME...]");
  const std::vector<std::string> wanted(arguments.positional.begin() + 1, arguments.positional.end());
  std::vector<int> threads{1, 2};
  if (arguments.has("--threads")) threads = {std::stoi(arguments.value("--threads"))};
  Registry registry;
  nlohmann::json rows = nlohmann::json::array();
  if (!arguments.has("--json"))
    fmt::print("{:<18} {:>7} {:>11} {:>11} {:>11} {:>9} {:>8}\n", "workload", "threads", "median s", "min s", "max s", "GFLOP", "GFLOP/s");
  for (const Workload& work : workloads) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), work.name) == wanted.end()) continue;
    for (int count : threads) {
      const StepTime time = measure_step(load(work, count, registry), registry, {}, 2.0);
      const double rate = time.flops / time.median * 1e-9;
      rows.push_back({{"workload", work.name},
                      {"threads", count},
                      {"median_s", time.median},
                      {"min_s", time.fastest},
                      {"max_s", time.slowest},
                      {"gflop", time.flops * 1e-9},
                      {"gflop_per_s", rate},
                      {"repeats", time.repeats},
                      {"simd", product_target()}});
      if (!arguments.has("--json"))
        fmt::print("{:<18} {:>7} {:>11.5f} {:>11.5f} {:>11.5f} {:>9.3f} {:>8.1f}\n", work.name, count, time.median, time.fastest,
                   time.slowest, time.flops * 1e-9, rate);
    }
  }
  if (rows.empty()) throw Error(fmt::format("there is no workload \"{}\"", fmt::join(wanted, ", ")));
  if (arguments.has("--json")) fmt::print("{}\n", rows.dump(2));
  return int(Exit::done);
}

}  // namespace stiefel::cli
