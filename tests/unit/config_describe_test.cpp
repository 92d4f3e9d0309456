// What is said of the configuration: descriptions, the JSON schema, the table of commands and its completion.
#include <doctest/doctest.h>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "config/explain.hpp"
#include "config/json_schema.hpp"
#include "config/load.hpp"

#include "config_plugins.hpp"

using namespace stiefel;
using config_test::contains, config_test::Folder, config_test::load, config_test::valid;

TEST_CASE("the description of an experiment is a valid experiment") {
  const Registry registry = config_test::registry();
  const std::string text = explain_experiment(registry);
  const LoadedExperiment loaded = load(text);
  CHECK(loaded.experiment.model.layers[0].recurrent.plugin == "householder");
  CHECK(contains(text, "reflections: 16                 # number of reflections m (an integer, at least 1)\n"));
  CHECK(contains(text, "# the task to learn (required)\n"));
  // Taking the description and taking the defaults is the same.
  const std::string few =
      "name: my-experiment\ntask: {plugin: adding, length: 2}\nmodel: {cell: {plugin: elman, hidden: 128}, recurrent: "
      "householder}\n"
      "optimizer: adam\ntrain: {steps: 5000}\n";
  CHECK(load(few).resolved_yaml == loaded.resolved_yaml);
}

TEST_CASE("a part of an experiment is described below its parents") {
  const Registry registry = config_test::registry();
  CHECK(explain_key(registry, "train.clip").starts_with("train:\n  clip:  "));
  CHECK(contains(explain_key(registry, "train.clip"), "\n    bound: 1  "));
  CHECK(explain_key(registry, "seed").starts_with("seed: 1  "));
  CHECK(explain_key(registry, "train.clip.bond") == "");
  CHECK(explain_key(registry, "seed.x") == "");
}

TEST_CASE("the description of every method can be pasted into an experiment") {
  const Registry registry = config_test::registry();
  const Folder folder;
  folder.write("base/first.yaml", valid);
  for (const Entry& entry : config_test::entries) {
    const std::string text = explain_plugin(registry, entry);
    CAPTURE(text);
    CHECK(contains(text, std::string("plugin: ") + entry.name));
    Registry fresh = config_test::registry();
    CHECK_NOTHROW(load_experiment(folder.write("top.yaml", "extends: base/first.yaml\n" + text), {}, fresh));
  }
}

TEST_CASE("the JSON schema names every plugin, its options and their ranges") {
  const nlohmann::json schema = nlohmann::json::parse(json_schema(config_test::registry()));
  CHECK(schema["$schema"] == "http://json-schema.org/draft-07/schema#");
  CHECK(schema["properties"]["scalar"]["enum"] == nlohmann::json({"float32", "float64"}));
  const auto& recurrent = schema["properties"]["model"]["properties"]["recurrent"]["oneOf"];
  CHECK(recurrent[0]["enum"] == nlohmann::json({"dense", "householder", "scaled_cayley"}));
  const auto householder =
      std::ranges::find_if(recurrent, [](const auto& choice) { return choice.value("title", "") == "householder"; });
  REQUIRE(householder != recurrent.end());
  CHECK((*householder)["properties"]["plugin"]["const"] == "householder");
  CHECK((*householder)["properties"]["reflections"]["minimum"] == 1);
  CHECK((*householder)["properties"]["reflections"]["default"] == 16);
  CHECK((*householder)["additionalProperties"] == false);
  CHECK(schema["then"]["required"] == nlohmann::json({"name", "task", "model", "optimizer"}));
}

TEST_CASE("command lines are read by the table") {
  using namespace stiefel::cli;
  const std::vector<std::string> words = {"--threads", "2", "file.yaml", "--dry-run", "--data=/x", "--", "--odd.yaml"};
  const Arguments arguments = parse_arguments("run", words);
  CHECK(arguments.positional == std::vector<std::string>{"file.yaml", "--odd.yaml"});
  CHECK(arguments.value("--threads") == "2");
  CHECK(arguments.value("--data") == "/x");
  CHECK(arguments.has("--dry-run"));
  const std::vector<std::string> short_form = {"runs", "-o", "x.html"};
  CHECK(parse_arguments("report", short_form).value("--output") == "x.html");
  const std::vector<std::string> misspelt = {"--dry-rn"};
  CHECK_THROWS_WITH_AS(parse_arguments("run", misspelt),
                       "`stiefel run` has no option --dry-rn; did you mean '--dry-run'?", Error);
  const std::vector<std::string> short_of_value = {"--threads"};
  CHECK_THROWS_AS(parse_arguments("run", short_of_value), Error);
  CHECK_THROWS_WITH_AS(find_command("validat"), "there is no command 'validat'; did you mean 'validate'?", Error);
}
