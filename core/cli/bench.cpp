// `stiefel bench step|kernel FILE`: median seconds and GFLOP/s of a training step of an experiment, or GFLOP/s of its packed product alone.
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include <config/load.hpp>
#include <results/provenance.hpp>
#include <stiefel/product.hpp>
#include <trainer/step_time.hpp>

#include "command_table.hpp"
#include "commands.hpp"

namespace stiefel::cli {
namespace {

double positive(const std::string& text, const char* option) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || !(value > 0))
    throw Error(fmt::format("{} \"{}\" is no number above 0", option, text));
  return value;
}

/// What numbers must be compared with: the machine and the build.
nlohmann::json circumstances() {
  nlohmann::json found;
  for (const auto& [name, value] : gather_provenance({.simd_target = product_target(), .command_line = {}, .user_note = ""}))
    for (const char* wanted : {"version", "git_commit", "git_dirty", "compiler", "simd_target", "blas", "os", "cpu_model", "cpu_count"})
      if (name == wanted) found[name] = value;
  return found;
}

nlohmann::json step_row(const StepTime& time) {
  return {{"median_s", time.median},
          {"min_s", time.fastest},
          {"max_s", time.slowest},
          {"gflop", time.flops * 1e-9},
          {"gflop_per_s", time.flops / time.median * 1e-9},
          {"repeats", time.repeats}};
}

nlohmann::json kernel_row(const KernelRate& rate) {
  return {{"rows", rate.rows},
          {"cols", rate.cols},
          {"columns", rate.columns},
          {"gflop_per_s", rate.median * 1e-9},
          {"min_gflop_per_s", rate.slowest * 1e-9},
          {"max_gflop_per_s", rate.fastest * 1e-9},
          {"repeats", rate.repeats}};
}

/// The names of the numbers above the first line, the numbers below.
void print_row(const nlohmann::json& row, bool first) {
  for (const auto& [name, value] : row.items())
    if (first) fmt::print("{:>16}", name);
  if (first) fmt::print("\n");
  for (const auto& [name, value] : row.items())
    fmt::print("{:>16}", value.is_number_float() ? fmt::format("{:.5g}", value.get<double>()) : value.dump());
  fmt::print("\n");
}

}  // namespace

int bench_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("bench", words);
  const std::vector<std::string>& given = arguments.positional;
  if (given.size() < 2 || (given[0] != "step" && given[0] != "kernel"))
    throw Error("say what to measure and of which experiment: stiefel bench step FILE [key.path=value...], or kernel instead of step");
  std::vector<std::string> threads{"1", "2"};
  if (arguments.has("--threads")) threads = {arguments.value("--threads")};
  const double seconds = positive(arguments.value("--seconds", "2"), "--seconds");
  RunOptions options;
  options.data_directory = data_directory(arguments);
  Registry registry;
  nlohmann::json rows = nlohmann::json::array();
  for (const std::string& count : threads) {
    std::vector<std::string> overrides(given.begin() + 2, given.end());
    overrides.push_back("threads=" + count);
    const LoadedExperiment loaded = load_experiment(given[1], overrides, registry);
    nlohmann::json row = given[0] == "step" ? step_row(measure_step(loaded, registry, options, seconds))
                                            : kernel_row(measure_kernel(loaded, registry, options, seconds));
    row["threads"] = loaded.experiment.threads;
    if (!arguments.has("--json")) print_row(row, rows.empty());
    rows.push_back(std::move(row));
  }
  if (arguments.has("--json")) fmt::print("{}\n", nlohmann::json{{"circumstances", circumstances()}, {"rows", rows}}.dump(2));
  return int(Exit::done);
}

}  // namespace stiefel::cli
