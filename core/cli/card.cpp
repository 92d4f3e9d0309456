#include "cli/card.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "results/analysis/report/study.hpp"

namespace stiefel::cli {
extern const char* const papers_document;

namespace {

using Json = nlohmann::ordered_json;

/// The entries of the file's header that describe the network.
Json metadata_of(const std::string& network) {
  std::uint64_t length = 0;
  std::memcpy(&length, network.data(), sizeof length);
  return Json::parse(network.substr(sizeof length, length)).at("__metadata__");
}

/// The parts of a text between backticks.
std::vector<std::string> quoted(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream parts(text);
  std::string part;
  for (int i = 0; std::getline(parts, part, '`'); ++i)
    if (i % 2) found.push_back(part);
  return found;
}

/// Whether a row of the table of papers, which begins with `name`, `name` with `key: value`, is about the run.
bool is_about(const std::string& row, const RunData& run) {
  const std::vector<std::string> methods = quoted(row.substr(0, row.find(" with "))), all = quoted(row);
  const auto uses = [&](const std::string& method) {
    return std::ranges::any_of(run.header.plugins, [&](const PluginRow& plugin) { return plugin.name == method; });
  };
  const auto is_set = [&](const std::string& setting) {
    const std::size_t colon = setting.find(": ");
    return std::ranges::any_of(run.configuration, [&](const auto& entry) {
      return entry.second == setting.substr(colon + 2) &&
             (entry.first + ".").find("." + setting.substr(0, colon) + ".") != std::string::npos;
    });
  };
  const auto is_setting = [](const std::string& word) { return word.find(": ") != std::string::npos; };
  return std::ranges::any_of(methods, uses) &&
         (std::ranges::none_of(all, is_setting) ||
          std::ranges::any_of(all, [&](const std::string& word) { return is_setting(word) && is_set(word); }));
}

/// The papers of the run's methods, a line of a list for each.
std::string papers_of(const RunData& run) {
  std::istringstream lines(papers_document);
  std::string papers;
  for (std::string line; std::getline(lines, line) && line != "## Published experiments";) {
    const std::size_t cell = line.find(" | ");
    if (line.starts_with("| `") && is_about(line.substr(2, cell - 2), run))
      papers += fmt::format("- {}: {}\n", line.substr(2, cell - 2), line.substr(cell + 3, line.size() - cell - 5));
  }
  return papers;
}

/// What was measured of the network of this step, a row of a table for each number.
std::string results_of(const RunData& run, double step) {
  std::string rows;
  for (const RunDataset& dataset : run.datasets) {
    const std::size_t name = dataset.path.rfind('/') + 1;
    if (!dataset.is_column() ||
        !(dataset.path.substr(name).starts_with("valid_") || dataset.path.substr(name).starts_with("test_")))
      continue;
    const std::vector<double>& steps = run.column(dataset.path.substr(0, name) + "step");
    const auto at = std::ranges::find(steps, step);
    if (const auto i = std::size_t(at - steps.begin()); i < dataset.values.size() && std::isfinite(dataset.values[i]))
      rows += fmt::format("| {} | {:.6g} |\n", report::readable(dataset.path.substr(name)), dataset.values[i]);
  }
  if (std::isfinite(run.header.baseline))
    rows += fmt::format("| test loss of the constant predictor | {:.6g} |\n", run.header.baseline);
  return rows;
}

}  // namespace

RunRequest card_request() { return {.paths = {"/epochs", "/final"}}; }

std::string card_of(const RunData& run, const std::string& network, const std::string& license) {
  const Json metadata = metadata_of(network);
  const auto text = [&](const char* key) { return metadata.at(key).get<std::string>(); };
  std::set<std::string> tags{"recurrent-neural-network"};
  std::vector<std::string> methods, data;
  for (const PluginRow& plugin : run.header.plugins)
    if (!plugin.is_part() && tags.insert(plugin.name).second)
      methods.push_back(fmt::format("{} `{}`", plugin.kind, printable(plugin.name)));
  for (const DatasetRow& file : run.header.datasets) data.push_back(fmt::format("`{}`", printable(file.name)));
  std::string card = "---\n";
  if (!license.empty()) card += "license: " + json_text(Json(license)) + "\n";
  card += fmt::format("library_name: stiefel\ntags: {}\n---\n\n", json_text(Json(tags)));
  card += fmt::format("# {}\n\nA recurrent network, exported by stiefel {}: {}.\n\n", printable(text("name")),
                      text("stiefel_version"), fmt::join(methods, ", "));
  card += fmt::format("## Result\n\n| | |\n|---|---|\n| optimizer step | {} |\n| parameters | {} |\n{}", text("step"),
                      run.header.parameters, results_of(run, std::stod(text("step"))));
  if (!data.empty()) card += fmt::format("| data files | {} |\n", fmt::join(data, ", "));
  card += R"(
## Use

`model.safetensors` holds the matrices, with names as in stiefel's `docs/DEPLOY.md`:

```python
import stiefel

network = stiefel.read_weights("model.safetensors")
```

`stiefel.torch.load` makes a PyTorch module of it. `stiefel run config.yaml` trains the network again.
)";
  if (const std::string papers = papers_of(run); !papers.empty()) card += "\n## Papers\n\n" + papers;
  card += "\n## Configuration\n\n````yaml\n" + text("config_yaml") + "````\n";
  return card + "\n## License\n\n" +
         (license.empty() ? "None is stated: whoever publishes the network chooses one."
                          : "The network: " + printable(license) + ".") +
         " stiefel is under the MIT license.\n";
}

}  // namespace stiefel::cli
