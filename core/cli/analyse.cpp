// `stiefel analyse RUN`: Lyapunov exponents, Jacobians and dimensions of a trained network.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
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
  if (found.maps.empty()) return;
  TextTable maps{{"map", "departure from normality", "relative to |W|"}, {false, true, true}, {}};
  for (const MapNormality& map : found.maps)
    maps.rows.push_back({map.name, fmt::format("{:.3g}", map.departure), fmt::format("{:.3g}", map.relative)});
  fmt::print("\n{}", aligned(maps));
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
    document["maps"].push_back(
        {{"name", map.name}, {"departure_from_normality", map.departure}, {"relative_departure", map.relative}});
  fmt::print("{}\n", json_text(document, 2));
}

}  // namespace

int analyse_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("analyse", words);
  const std::filesystem::path directory = run_folder(arguments, "name the folder of one run: stiefel analyse RUN");
  DynamicsOptions options;
  options.network = chosen_network(directory, arguments);
  options.split = chosen_split(arguments);
  options.sequences = whole_number(arguments, "--sequences", options.sequences, 1);
  options.exponents = whole_number(arguments, "--exponents", options.exponents, 1);
  options.every = whole_number(arguments, "--every", options.every, 1);
  options.burn_in = whole_number(arguments, "--burn-in", options.burn_in, 0);
  OpenedRun run(directory, arguments, {"threads=1"}, with_trained({}, options.network));
  const Dynamics found = analyse(run.loaded, run.registry, run.options, options);
  const std::filesystem::path file = write_analysis(directory, found, options);
  arguments.has("--json") ? print_json(found, options) : print_tables(found, options);
  say("analysis: {}\n", file.string());
  return int(Exit::done);
}

}  // namespace stiefel::cli
