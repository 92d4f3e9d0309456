// `stiefel bench step|kernel FILE`: median seconds and GFLOP/s of a training step of an experiment, or GFLOP/s of its
// packed product alone. `stiefel bench complexity`: how the parts of a step of one sequence grow with steps and hidden
// units, for each kind of recurrent map. `stiefel bench limit`: what this machine can do at most.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include <stiefel/product.hpp>
#include "base/json_text.hpp"
#include "base/machine.hpp"
#include "base/number_from.hpp"
#include "config/load.hpp"
#include "host/plugin_faults.hpp"
#include "record/provenance.hpp"
#include "training/machine_limit.hpp"
#include "training/step_time.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/running.hpp"

namespace stiefel::cli {
namespace {

/// The machine and the build, without which the numbers cannot be compared.
nlohmann::json circumstances() {
  nlohmann::json found;
  for (const auto& [name, value] : gather_provenance({.simd_target = product_target(), .command_line = {}}))
    for (const char* wanted :
         {"version", "git_commit", "git_dirty", "compiler", "simd_target", "blas", "os", "cpu_model", "cpu_count"})
      if (name == wanted) found[name] = value;
  return found;
}

using Row = nlohmann::ordered_json;

Row step_row(const StepTime& time) {
  const double flops = time.flops.sum();
  return {{"gflop", flops * 1e-9}, {"gflop_per_s", flops / time.median * 1e-9},
          {"max_s", time.slowest}, {"median_s", time.median},
          {"min_s", time.fastest}, {"repeats", time.repeats}};
}

Row kernel_row(const KernelRate& rate) {
  return {{"cols", rate.cols},
          {"columns", rate.columns},
          {"gflop_per_s", rate.rate.median * 1e-9},
          {"max_gflop_per_s", rate.rate.fastest * 1e-9},
          {"min_gflop_per_s", rate.rate.slowest * 1e-9},
          {"repeats", rate.rate.repeats},
          {"rows", rate.rows}};
}

Row limit_row(const MachineLimit& limit) {
  return {{"limit", limit.what},
          {"simd", limit.simd},
          {"rate", limit.rate.median * 1e-9},
          {"max_rate", limit.rate.fastest * 1e-9},
          {"min_rate", limit.rate.slowest * 1e-9},
          {"unit", limit.what == "multiply-add" ? "GFLOP/s" : "GB/s"},
          {"repeats", limit.rate.repeats}};
}

/// Prints the numbers of a row, and their names above the first row.
void print_row(const Row& row, bool first) {
  for (const auto& [name, value] : row.items())
    if (first) fmt::print("{:>16}", name);
  if (first) fmt::print("\n");
  for (const auto& [name, value] : row.items())
    fmt::print("{:>16}", value.is_number_float() ? fmt::format("{:.5g}", value.get<double>())
                         : value.is_string()     ? value.get<std::string>()
                                                 : json_text(value));
  fmt::print("\n");
  std::fflush(stdout);
}

/// Prints rows as they are added, or all of them as JSON at the end.
class Measurements {
 public:
  explicit Measurements(bool json) : json_(json) {}
  void add(Row row) {
    if (!json_) print_row(row, rows_.empty());
    rows_.push_back(std::move(row));
  }
  void end() const {
    if (json_) fmt::print("{}\n", json_text(Row{{"circumstances", circumstances()}, {"rows", rows_}}, 2));
  }

 private:
  bool json_;
  Row rows_ = Row::array();
};

std::vector<Index> sizes(const Arguments& arguments, const char* option, const char* otherwise) {
  std::vector<Index> found;
  for (const std::string& entry : split_at(arguments.value(option, otherwise), ",")) {
    const std::optional<Index> value = number_from<Index>(entry);
    if (!value || *value < 1)
      throw Error(
          fmt::format("{0} must be a list of positive integers such as {2}, got \"{1}\"", option, entry, otherwise));
    found.push_back(*value);
  }
  return found;
}

/// A map that `bench complexity` compares: its name, and `model.recurrent` with {n} for the hidden units.
struct ComplexityMap {
  std::string name, recurrent, optimizer = "adam";
};

std::vector<ComplexityMap> chosen_maps(const Arguments& arguments) {
  const std::vector<ComplexityMap> usual = {{"householder_16", "{{plugin: householder, reflections: 16}}"},
                                            {"householder_n", "{{plugin: householder, reflections: {n}}}"},
                                            {"scaled_cayley", "{{plugin: scaled_cayley}}"},
                                            {"full_unitary", "{{plugin: full_unitary}}", "geodesic_cayley"},
                                            {"lie_exponential", "{{plugin: lie_exponential}}"},
                                            {"urnn", "{{plugin: urnn}}"}};
  if (!arguments.has("--maps")) return usual;
  std::vector<ComplexityMap> chosen;
  for (const std::string& name : split_at(arguments.value("--maps"), ",")) {
    const auto known = std::ranges::find(usual, name, &ComplexityMap::name);
    if (known == usual.end() && !plain_name(name))
      throw Error(fmt::format("--maps: '{}' is not the name of a map", name));
    chosen.push_back(known == usual.end() ? ComplexityMap{name, name} : *known);
  }
  return chosen;
}

/// An experiment that trains on one sequence of the adding problem.
std::string complexity_experiment(const ComplexityMap& map, Index hidden, Index length) {
  return fmt::format(
      "name: complexity\ntask: {{plugin: adding, length: {}}}\nmodel:\n"
      "  cell: {{plugin: elman, hidden: {}, activation: modrelu}}\n  recurrent: {}\n  input: {{bias: false}}\n"
      "optimizer:\n  - {{blocks: \"recurrent.*\", plugin: {}, rate: 1e-4}}\n  - {{blocks: \"*\", plugin: adam, rate: "
      "1e-4}}\n"
      "train: {{batch: 1, steps: 1}}\n",
      length, hidden, fmt::format(fmt::runtime(map.recurrent), fmt::arg("n", hidden)), map.optimizer);
}

Row complexity_row(const StepTime& time) {
  return {{"route", time.dense ? "dense" : "structured"},
          {"refresh_s", time.median_parts.refresh},
          {"forward_s", time.median_parts.forward},
          {"backward_s", time.median_parts.backward},
          {"update_s", time.median_parts.update},
          {"refresh_gflop", time.flops.refresh * 1e-9},
          {"forward_gflop", time.flops.forward * 1e-9},
          {"backward_gflop", time.flops.backward * 1e-9},
          {"repeats", time.repeats}};
}

RunOptions run_options(const Arguments& arguments) {
  RunOptions options;
  options.data_directory = data_directory(arguments);
  options.check_data = demand_readable_networks;
  return options;
}

void only_for_complexity(const Arguments& arguments, std::string_view otherwise) {
  for (const char* option : {"--maps", "--hidden", "--length"})
    if (arguments.has(option))
      throw Error(fmt::format("{} is only for `stiefel bench complexity`; {}", option, otherwise));
}

std::vector<std::string> thread_counts(const Arguments& arguments) {
  if (arguments.has("--threads")) return {arguments.value("--threads")};
  return {"1", "2"};
}

void bench_experiment(const Arguments& arguments, bool step, Measurements& report) {
  const std::vector<std::string>& given = arguments.positional;
  only_for_complexity(arguments, "here the experiment sets it");
  const double seconds = arguments.positive("--seconds", 2);
  const RunOptions options = run_options(arguments);
  Registry registry = found_plugins();
  for (const std::string& count : thread_counts(arguments)) {
    std::vector<std::string> overrides(given.begin() + 2, given.end());
    overrides.push_back("threads=" + count);
    const LoadedExperiment loaded = load_experiment(given[1], overrides, registry);
    Row row = step ? step_row(measure_step(loaded, registry, options, seconds))
                   : kernel_row(measure_kernel(loaded, registry, options, seconds));
    row["threads"] = loaded.experiment.threads > 0 ? loaded.experiment.threads : usable_cores();
    report.add(std::move(row));
  }
}

void bench_limit(const Arguments& arguments, Measurements& report) {
  only_for_complexity(arguments, "leave it out");
  if (arguments.positional.size() > 1)
    throw Error(
        fmt::format("stiefel bench limit takes no FILE and no key.path=value, got \"{}\"", arguments.positional[1]));
  const double seconds = arguments.positive("--seconds", 2);
  for (const std::string& count : thread_counts(arguments)) {
    const std::optional<int> threads = number_from<int>(count);
    if (!threads || *threads < 1 || *threads > 1024)
      throw Error(fmt::format("--threads must be an integer from 1 to 1024, got \"{}\"", count));
    for (const MachineLimit& limit : measure_limits(*threads, seconds)) {
      Row row = limit_row(limit);
      row["threads"] = *threads;
      report.add(std::move(row));
    }
  }
}

void bench_complexity(const Arguments& arguments, Measurements& report) {
  std::vector<std::string> overrides(arguments.positional.begin() + 1, arguments.positional.end());
  overrides.push_back("threads=" + arguments.value("--threads", "1"));
  const double seconds = arguments.positive("--seconds", 0.5);
  const std::vector<Index> all_hidden = sizes(arguments, "--hidden", "128,256,512,1024"),
                           all_lengths = sizes(arguments, "--length", "10,100,1000");
  const RunOptions options = run_options(arguments);
  Registry registry = found_plugins();
  const auto load = [&](const ComplexityMap& map, Index hidden, Index length) {
    return load_experiment_text(complexity_experiment(map, hidden, length), "complexity.yaml", overrides, registry);
  };
  const std::vector<ComplexityMap> maps = chosen_maps(arguments);
  for (const ComplexityMap& map : maps) load(map, all_hidden[0], all_lengths[0]);  // finds misspelled maps first
  for (const ComplexityMap& map : maps)
    for (const Index hidden : all_hidden)
      for (const Index length : all_lengths) {
        Row row{{"map", map.name}, {"hidden", hidden}, {"length", length}};
        row.update(complexity_row(measure_step(load(map, hidden, length), registry, options, seconds)));
        report.add(std::move(row));
      }
}

}  // namespace

int bench_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("bench", words);
  const std::vector<std::string>& given = arguments.positional;
  const std::string what = given.empty() ? "" : given[0];
  if (what != "complexity" && what != "limit" && (given.size() < 2 || (what != "step" && what != "kernel")))
    throw Error(
        "choose what to measure: stiefel bench step FILE [key.path=value...], stiefel bench kernel FILE "
        "[key.path=value...], stiefel bench complexity or stiefel bench limit");
  Measurements report(arguments.has("--json"));
  if (what == "complexity")
    bench_complexity(arguments, report);
  else if (what == "limit")
    bench_limit(arguments, report);
  else
    bench_experiment(arguments, what == "step", report);
  report.end();
  return int(Exit::done);
}

}  // namespace stiefel::cli
