// `stiefel analyse RUN`: Lyapunov exponents, Jacobians, memory and fixed points of a trained network.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/number_from.hpp"
#include "base/printable.hpp"
#include "base/say.hpp"
#include "training/clock.hpp"
#include "training/dynamics.hpp"
#include "training/trained.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/opened_run.hpp"
#include "cli/table_text.hpp"

namespace stiefel::cli {
namespace {

/// Largest, median and smallest singular value, each as the median over steps.
std::vector<double> typical(const std::vector<std::vector<double>>& singular_values) {
  std::vector<double> largest, middle, smallest;
  for (const std::vector<double>& of_step : singular_values) {
    largest.push_back(of_step.front());
    middle.push_back(of_step[of_step.size() / 2]);
    smallest.push_back(of_step.back());
  }
  return {median(largest), median(middle), median(smallest)};
}

void print_fixed_points(const FixedPoints& found) {
  fmt::print("\n{} from {}; {} ended at a slow point, {} elsewhere\n",
             counted(Index(found.points.size()), "fixed point"), counted(found.starts, "start"), found.slow,
             found.moving);
  if (found.points.empty()) return;
  TextTable table{
      {"fixed point", "starts", "unstable directions", "largest |eigenvalue|", "norm"}, std::vector<bool>(5, true), {}};
  for (std::size_t i = 0; i < found.points.size(); ++i) {
    const FixedPoint& point = found.points[i];
    double squares = 0, largest = 0;
    for (const double x : point.state) squares += x * x;
    for (const std::complex<double>& value : point.eigenvalues) largest = std::max(largest, std::abs(value));
    table.rows.push_back({fmt::format("{}", i), fmt::format("{}", point.starts), fmt::format("{}", point.unstable),
                          fmt::format("{:.4g}", largest), fmt::format("{:.4g}", std::sqrt(squares))});
  }
  fmt::print("{}", aligned(table));
}

/// At the steps 1, 2, 4, … times the training length, and at the last one.
void print_classes(const Distinguishability& found) {
  fmt::print(
      "\nstates of the classes, over {}, relative to the smallest distance of two classes at step {}: {:.4g}, or "
      "{:.4g} as the readout sees them\n",
      counted(found.sequences, "sequence"), found.reference + 1, found.hidden.separation, found.read.separation);
  TextTable table{
      {"step", "spread", "drift", "as the readout sees them: spread", "drift"}, std::vector<bool>(5, true), {}};
  const Index steps = Index(found.hidden.spread.size());
  for (Index step = found.reference + 1; step <= steps; step = step == steps ? steps + 1 : std::min(2 * step, steps)) {
    std::vector<std::string> row{fmt::format("{}", step)};
    for (const ClassDistances* of : {&found.hidden, &found.read})
      for (const double x : {of->spread[std::size_t(step - 1)], of->drift[std::size_t(step - 1)]})
        row.push_back(fmt::format("{:.3g}", x));
    table.rows.push_back(std::move(row));
  }
  fmt::print("{}", aligned(table));
}

void print_tables(const Dynamics& found, const DynamicsOptions& options) {
  const auto [shortest, longest] = std::ranges::minmax(found.lengths);
  fmt::print("{} of step {}, {} of {} of the {} split\n\n", options.network.filename().string(), found.step,
             counted(Index(found.lengths.size()), "sequence"),
             shortest == longest ? counted(longest, "step") : fmt::format("{} to {} steps", shortest, longest),
             name_of(options.split));
  TextTable layers{{"layer", "states", "exponent max", "median", "min", "Kaplan-Yorke", "entropy rate",
                    "singular value of J max", "median", "min", "participation ratio", "effective rank"},
                   std::vector<bool>(12, true),
                   {}};
  for (std::size_t l = 0; l < found.layers.size(); ++l) {
    const LayerDynamics& layer = found.layers[l];
    std::vector<std::string> row{fmt::format("{}", l), fmt::format("{}", layer.states)};
    for (const double x : {layer.mean.front(), layer.mean[layer.mean.size() / 2], layer.mean.back(), layer.kaplan_yorke,
                           layer.entropy_rate})
      row.push_back(fmt::format("{:.4g}", x));
    for (const double x : typical(layer.singular_values)) row.push_back(fmt::format("{:.4g}", x));
    row.push_back(fmt::format("{:.3g}", layer.participation_ratio));
    row.push_back(fmt::format("{:.3g}", layer.effective_rank));
    layers.rows.push_back(std::move(row));
  }
  fmt::print("{}", aligned(layers));
  if (!found.maps.empty()) {
    TextTable maps{{"map", "departure from normality", "relative to |W|", "Fisher memory at gain .9", "at .99"},
                   {false, true, true, true, true},
                   {}};
    for (const MapNormality& map : found.maps) {
      std::vector<std::string> row{map.name};
      for (const double x : {map.departure, map.relative, map.fisher_90, map.fisher_99})
        row.push_back(fmt::format("{:.3g}", x));
      maps.rows.push_back(std::move(row));
    }
    fmt::print("\n{}", aligned(maps));
  }
  for (std::size_t l = 0; l < found.memory.size(); ++l)
    fmt::print("{}memory capacity of layer {}: {:.4g} of at most {}\n", l == 0 ? "\n" : "", l, found.memory[l].total,
               found.layers[l].states);
  if (found.fixed_points) print_fixed_points(*found.fixed_points);
  if (found.distinguishability) print_classes(*found.distinguishability);
}

void print_json(const Dynamics& found, const DynamicsOptions& options) {
  using Json = nlohmann::ordered_json;
  Json document{{"network", options.network.string()},
                {"step", found.step},
                {"split", name_of(options.split)},
                {"lengths", found.lengths},
                {"layers", Json::array()},
                {"maps", Json::array()}};
  for (const LayerDynamics& layer : found.layers)
    document["layers"].push_back({{"states", layer.states},
                                  {"exponents", layer.exponents},
                                  {"kaplan_yorke_dimension", layer.kaplan_yorke},
                                  {"entropy_rate", layer.entropy_rate},
                                  {"jacobian_steps", layer.jacobian_steps},
                                  {"jacobian_singular_values", layer.singular_values},
                                  {"participation_ratio", layer.participation_ratio},
                                  {"effective_rank", layer.effective_rank}});
  for (const MapNormality& map : found.maps)
    document["maps"].push_back({{"name", map.name},
                                {"departure_from_normality", map.departure},
                                {"relative_departure", map.relative},
                                {"fisher_memory", {{"0.9", map.fisher_90}, {"0.99", map.fisher_99}}}});
  for (std::size_t l = 0; l < found.memory.size(); ++l) {
    document["layers"][l]["memory_capacity"] = found.memory[l].total;
    document["layers"][l]["memory"] = found.memory[l].of_inputs;
  }
  if (const auto& points = found.fixed_points) {
    Json& to = document["fixed_points"] = {
        {"starts", points->starts}, {"slow", points->slow}, {"moving", points->moving}, {"points", Json::array()}};
    for (const FixedPoint& point : points->points) {
      Json values = Json::array();
      for (const std::complex<double>& value : point.eigenvalues) values.push_back({value.real(), value.imag()});
      to["points"].push_back(
          {{"state", point.state}, {"eigenvalues", values}, {"unstable", point.unstable}, {"starts", point.starts}});
    }
  }
  if (const auto& classes = found.distinguishability) {
    Json& to =
        document["distinguishability"] = {{"sequences", classes->sequences}, {"reference_step", classes->reference}};
    for (const auto& [name, of] : {std::pair{"hidden", &classes->hidden}, std::pair{"read", &classes->read}})
      to[name] = {{"separation", of->separation}, {"spread", of->spread}, {"drift", of->drift}};
  }
  fmt::print("{}\n", json_text(document, 2));
}

}  // namespace

int analyse_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("analyse", words);
  const std::filesystem::path directory =
      run_folder(arguments, "name the folder of one run: stiefel analyse RUN [task.KEY=value...]", true);
  DynamicsOptions options;
  options.network = chosen_network(directory, arguments);
  options.split = chosen_split(arguments);
  options.sequences = whole_number(arguments, "--sequences", options.sequences, 1);
  options.exponents = whole_number(arguments, "--exponents", options.exponents, 1);
  options.every = whole_number(arguments, "--every", options.every, 1);
  options.burn_in = whole_number(arguments, "--burn-in", options.burn_in, 0);
  options.memory = arguments.has("--memory");
  options.fixed_points = whole_number(arguments, "--fixed-points", 0, 1);
  options.class_sequences = whole_number(arguments, "--classes", 0, 1);
  if (arguments.has("--input"))
    for (const std::string& text : split_at(arguments.value("--input"), ",")) {
      const std::optional<double> number = number_from<double>(text);
      if (!number || !std::isfinite(*number)) throw Error(fmt::format("--input: '{}' is not a number", text));
      options.input.push_back(*number);
    }
  std::vector<std::string> overrides(arguments.positional.begin() + 1, arguments.positional.end());
  for (const std::string& override : overrides)
    if (!override.starts_with("task."))
      throw Error(fmt::format("'{}' would change the network; only task.* can be changed here", override));
  overrides.push_back("threads=1");
  OpenedRun run(directory, arguments, overrides, with_trained({}, options.network));
  const Dynamics found = analyse(run.loaded, run.registry, run.options, options);
  const std::filesystem::path file = write_analysis(directory, found, options);
  arguments.has("--json") ? print_json(found, options) : print_tables(found, options);
  say("analysis: {}\n", file.string());
  return int(Exit::done);
}

}  // namespace stiefel::cli
