// Configuration: values that are read, merging, overrides, the resolved text and its origins.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include "base/file_name.hpp"
#include "config/load.hpp"
#include "config/overrides.hpp"
#include "config/scalars.hpp"

#include "choose_plugin.hpp"
#include "config_plugins.hpp"

namespace fs = std::filesystem;
using namespace stiefel;
using config_test::contains, config_test::Folder, config_test::load, config_test::valid;

namespace {

std::string origin_of(const LoadedExperiment& loaded, const std::string& key) {
  for (const std::string& origin : loaded.origins)
    if (origin.starts_with(key + "=")) return origin.substr(key.size() + 1);
  return "absent";
}

template <class Options> const Options& options_of(const PluginChoice& choice) {
  return *static_cast<const Options*>(choice.options.get());
}

}  // namespace

TEST_CASE("values reach the experiment and the plugins' options") {
  const LoadedExperiment loaded = load(valid);
  const Experiment& e = loaded.experiment;
  CHECK(e.name == "first");
  CHECK(e.seed == 1);
  CHECK(e.task.plugin == "adding");
  CHECK(e.task.entry->role == Role::task);
  CHECK(options_of<config_test::AddingOptions>(e.task).length == 50);
  CHECK(e.model.layers[0].hidden == 16);
  CHECK(options_of<config_test::ElmanOptions>(e.model.layers[0].cell).activation.kind == "leaky_relu");
  CHECK(options_of<config_test::HouseholderOptions>(e.model.layers[0].recurrent).reflections == 4);
  CHECK(e.model.layers[0].recurrent.route == "auto");
  REQUIRE(e.optimizer.size() == 1);
  CHECK(e.optimizer[0].rate == 0.01);
  CHECK(e.optimizer[0].blocks == "*");
  CHECK(e.train.clip.kind == "norm");
  CHECK(e.train.clip.bound == 2);
  CHECK(e.record.loss == 0);
  REQUIRE(e.record.blocks.size() == 1);
  CHECK(e.record.blocks[0].first == "activation.slope");
  CHECK(e.record.blocks[0].second == 7);
  CHECK(loaded.sources.front().text == valid);
}

TEST_CASE("lists of optimizers, frozen blocks, other maps and bare names") {
  const Experiment e = load(R"(name: x
task: {plugin: adding, length: 5}
model:
  cell: {plugin: lstm, hidden: 3}
  recurrent: scaled_cayley
  maps: {forget: {plugin: householder, reflections: 2, route: dense}, output: dense}
  initial_state: learned
optimizer:
  - {blocks: "recurrent.*", plugin: sgd, momentum: 0.9, schedule: {kind: step, every: 10}}
  - {blocks: "input.*", plugin: frozen}
  - adam
train: {epochs: 2, clip: none}
)")
                           .experiment;
  CHECK(e.model.layers[0].recurrent.plugin == "scaled_cayley");
  REQUIRE(e.model.layers[0].maps.size() == 2);
  CHECK(e.model.layers[0].maps[0].name == "forget");
  CHECK(e.model.layers[0].maps[0].route == "dense");
  CHECK(options_of<config_test::HouseholderOptions>(e.model.layers[0].maps[0]).reflections == 2);
  CHECK(e.model.layers[0].maps[1].plugin == "dense");
  CHECK(e.model.layers[0].initial_state.kind == "learned");
  REQUIRE(e.optimizer.size() == 3);
  CHECK(options_of<config_test::SgdOptions>(e.optimizer[0]).momentum == 0.9);
  CHECK(e.optimizer[0].schedule.every == 10);
  CHECK(e.optimizer[1].frozen);
  CHECK(e.optimizer[1].options == nullptr);
  CHECK(e.optimizer[2].plugin == "adam");
  CHECK(e.train.epochs == 2);

  const Experiment frozen = load(valid, {R"(optimizer=[{blocks: "a*", plugin: sgd, rate: 0.2, momentum: 0.9}, adam])",
                                         "optimizer.0.plugin=frozen"})
                                .experiment;
  CHECK(frozen.optimizer[0].frozen);
  CHECK(frozen.optimizer[0].blocks == "a*");
}

TEST_CASE("the resolved text reads back to itself, and names the run") {
  const LoadedExperiment loaded = load(valid, {"train.batch=25"});
  const LoadedExperiment again = load(loaded.resolved_yaml);
  CHECK(again.resolved_yaml == loaded.resolved_yaml);
  CHECK(again.hash == loaded.hash);
  CHECK(loaded.hash.size() == 64);
  CHECK(loaded.id == loaded.hash.substr(0, 10));
  CHECK(contains(loaded.resolved_yaml, "\n  batch: 25\n"));
  CHECK(contains(loaded.resolved_yaml, "\n      kind: leaky_relu\n      slope: 0.1\n"));
  CHECK(load(valid, {"seed=2"}).id != loaded.id);
  // Order and spelling of the file are not part of what is run.
  CHECK(load(valid, {"optimizer.rate=0.010"}).hash == load(valid).hash);
  CHECK(load("scalar: float32\n" + valid).hash == load(valid).hash);
  const Folder folder;
  CHECK(load(valid, {"threads=2", "train.recompute=always", "train.step_limit=7",
                     "plugins=[\"" + folder.path.string() + "\"]", "checkpoint={every: 3, keep: 1}"})
            .hash == load(valid).hash);
  CHECK(load(valid).id == "2fed81247b");  // another ID would make every run of earlier versions a new one
  CHECK(load(valid, {"seed=2"}).hash != load(valid).hash);
  for (const auto& [key, fallback, other] : {std::array{"train.accumulate", "1", "2"},
                                             {"train.average", "0", "0.9"},
                                             {"train.loss", "mean", "sum"},
                                             {"optimizer.schedule.warmup", "0", "5"}}) {
    CHECK(load(valid, {fmt::format("{}={}", key, fallback)}).hash == load(valid).hash);
    CHECK(load(valid, {fmt::format("{}={}", key, other)}).hash != load(valid).hash);
  }

  const auto layers = [](int hidden) {
    return load(
        fmt::format("name: deep\ntask: {{plugin: adding, length: 5}}\nmodel:\n  layers:\n    - {{cell: {{plugin: "
                    "elman, hidden: {}}}, "
                    "recurrent: dense}}\noptimizer: {{plugin: sgd, rate: 0.1}}\ntrain: {{batch: 2, steps: 1}}\n",
                    hidden));
  };
  CHECK(layers(8).hash != layers(9).hash);

  const std::string many =
      load(valid, {"optimizer=[{blocks: \"a*\", plugin: sgd}, frozen]", "name=\"yes\""}).resolved_yaml;
  CHECK(load(many).resolved_yaml == many);
  CHECK(contains(many, "name: \"yes\"\n"));
}

TEST_CASE("every value knows where it comes from") {
  const LoadedExperiment loaded = load(valid, {"model.cell.hidden=32"});
  CHECK(origin_of(loaded, "name") == "test.yaml:1");
  CHECK(origin_of(loaded, "model.cell.hidden") == "command line");
  CHECK(origin_of(loaded, "model.cell.activation.kind") == "test.yaml:4");
  CHECK(origin_of(loaded, "model.cell.activation.slope") == "default");
  CHECK(origin_of(loaded, "record.blocks.activation.slope") == "test.yaml:8");
}

TEST_CASE("extends lays files over one another, the later over the earlier") {
  const Folder folder;
  folder.write("base/first.yaml", valid);
  folder.write("base/second.yaml", "train: {batch: 20, steps: 200}\nseed: 5\n");
  folder.write("base/deep.yaml", "extends: first.yaml\nseed: 4\n");
  const std::string file = folder.write(
      "top.yaml",
      "extends: [base/deep.yaml, base/second.yaml]\ntrain: {batch: 30}\nmodel: {cell: {activation: {slope: 0.3}}}\n");
  Registry registry = config_test::registry();
  const LoadedExperiment loaded = load_experiment(file, {}, registry);
  CHECK(loaded.experiment.train.batch == 30);
  CHECK(loaded.experiment.train.steps == 200);
  CHECK(loaded.experiment.seed == 5);
  CHECK(loaded.experiment.train.clip.bound == 2);
  // The bare `leaky_relu` of the first file keeps its meaning beside a later option.
  const auto& activation = options_of<config_test::ElmanOptions>(loaded.experiment.model.layers[0].cell).activation;
  CHECK(activation.kind == "leaky_relu");
  CHECK(activation.slope == 0.3);
  CHECK(loaded.sources.size() == 4);
  CHECK(origin_of(loaded, "seed") == (folder.path / "base/second.yaml").string() + ":2");
  CHECK(origin_of(loaded, "model.cell.activation.kind") == (folder.path / "base/first.yaml").string() + ":4");
}

TEST_CASE("extends takes names of experiments that come with stiefel, unless there is a file of that name") {
  const Folder folder;
  Registry registry = config_test::registry();
  const std::string file = folder.write("top.yaml", "extends: quickstart\ntrain: {steps: 2}\n");
  const auto loaded = [&] { return load_experiment(file, {}, registry); };
  CHECK(loaded().experiment.train.steps == 2);
  CHECK(loaded().sources.back().path.ends_with("share/stiefel/experiments/quickstart.yaml"));
  folder.write("quickstart", valid);
  CHECK(loaded().sources.back().path == (folder.path / "quickstart").string());
}

TEST_CASE("another plugin starts from a fresh node, the same one is merged") {
  const Folder folder;
  folder.write("base/first.yaml", valid);
  Registry registry = config_test::registry();
  const auto load_over = [&](const std::string& text) {
    return load_experiment(folder.write("top.yaml", "extends: base/first.yaml\n" + text), {}, registry).experiment;
  };
  CHECK(load_over("model: {recurrent: {plugin: scaled_cayley}}").model.layers[0].recurrent.plugin == "scaled_cayley");
  CHECK(load_over("model: {recurrent: scaled_cayley}").model.layers[0].recurrent.plugin == "scaled_cayley");
  CHECK(options_of<config_test::HouseholderOptions>(
            load_over("model: {recurrent: householder}").model.layers[0].recurrent)
            .reflections == 4);
  CHECK(load_over("optimizer: {plugin: sgd}").optimizer[0].rate == 1e-3);
  CHECK(load_over("optimizer: {plugin: adam, epsilon: 1e-4}").optimizer[0].rate == 1e-2);
}

TEST_CASE("the value of an override is one word, in which comments, anchors, tags and mappings have no meaning") {
  for (const std::string word : {"run #1", "#", "&a", "!a", "%d", "*a", "[1].x", "x]", "a: b", "- a", "|", "> a",
                                 "'a' b", "---", "? a", "@", "`"}) {
    Problems problems;
    const std::optional<Override> override = parse_override("key=" + word, problems);
    REQUIRE_MESSAGE(override, word);
    CHECK(override->value.kind == Node::Kind::scalar);
    CHECK(override->value.text == word);
    CHECK(!override->value.quoted);
  }
  const auto kind = [](const std::string& word) {
    Problems problems;
    return parse_override("key=" + word, problems)->value.kind;
  };
  CHECK(kind("{a: 1}") == Node::Kind::map);
  CHECK(kind(" {a: 1} ") == Node::Kind::map);
  CHECK(kind("  ") == Node::Kind::null);
  CHECK(kind("[a, b]") == Node::Kind::sequence);
  CHECK(kind("null") == Node::Kind::null);
  Problems problems;
  CHECK(parse_override("key='run #1'", problems)->value.text == "run #1");
  CHECK(!parse_override("key={a: 1", problems));
}

TEST_CASE("overrides are typed by YAML and reach lists, quoted keys and new sections") {
  const Experiment e =
      load(valid, {"train.weight_noise=1e-3", "record.blocks.\"a.b\"=3", "checkpoint.keep=9", "plugins=[]",
                   "name=two words", "model.cell.activation.slope=0.5", "optimizer.betas=[0.1, 0.2]"})
          .experiment;
  CHECK(e.train.weight_noise == 1e-3);
  CHECK(e.record.blocks.back() == std::pair<std::string, Index>("a.b", 3));
  CHECK(e.checkpoint.keep == 9);
  CHECK(e.name == "two words");
  CHECK(options_of<config_test::ElmanOptions>(e.model.layers[0].cell).activation.slope == 0.5);
  CHECK(options_of<config_test::AdamOptions>(e.optimizer[0]).betas == std::vector<double>{0.1, 0.2});
  CHECK(options_of<config_test::AdamOptions>(
            load(valid + "plugins: [a]\n",
                 {"plugins=[]", "optimizer={plugin: adam, betas: [0, 0.5]}", "optimizer.betas.1=0.7"})
                .experiment.optimizer[0])
            .betas[1] == 0.7);
}

TEST_CASE("a plugin chosen on the command line keeps what is not the other's, in any order") {
  const Experiment e =
      load(valid, {"model.cell.hidden=7", "model.cell.plugin=lstm", "optimizer.plugin=sgd", "optimizer.momentum=0.5"})
          .experiment;
  CHECK(e.model.layers[0].hidden == 7);
  CHECK(e.model.layers[0].cell.plugin == "lstm");
  CHECK(e.optimizer[0].rate == 0.01);
  CHECK(options_of<config_test::SgdOptions>(e.optimizer[0]).momentum == 0.5);
  CHECK(load(valid, {"model.recurrent.plugin=householder"}).resolved_yaml == load(valid).resolved_yaml);
  CHECK(load(valid, {"model.recurrent=householder"}).resolved_yaml == load(valid).resolved_yaml);
  CHECK(load(valid, {"optimizer=sgd", "model.cell=lstm"}).resolved_yaml ==
        load(valid, {"optimizer.plugin=sgd", "model.cell.plugin=lstm"}).resolved_yaml);
  CHECK(load(valid, {"optimizer.momentum=0.5", "optimizer=sgd"}).resolved_yaml ==
        load(valid, {"optimizer.momentum=0.5", "optimizer.plugin=sgd"}).resolved_yaml);
}

TEST_CASE("files that no case of the golden texts can hold") {
  const Folder folder;
  Registry registry = config_test::registry();
  const auto error_of = [&](const std::string& file) {
    try {
      load_experiment(file, {}, registry);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(contains(error_of(folder.write("large.yaml", "name: " + std::string(1'100'000, 'x'))),
                 "1100006 bytes; a configuration can have at most 1000000"));
  CHECK(
      contains(error_of((folder.path / "absent.yaml").string()), "absent.yaml: cannot be read: there is no such file"));
  CHECK(contains(error_of(folder.path.string()), "it is a folder"));
  CHECK(contains(error_of("/dev/zero"), "it is not a regular file"));
  std::string wide = "plugins: [";
  for (int i = 0; i < 100'001; ++i) wide += "a,";
  CHECK(contains(error_of(folder.write("wide.yaml", wide + "]\n")), "more than 100000 values"));
  CHECK(contains(error_of(folder.write("deep.yaml", std::string(100'000, '['))), "nested deeper than 64 levels"));

  std::string layers = valid.substr(0, valid.find("model:")) + "model:\n  layers:\n";
  for (int i = 0; i < 5000; ++i) layers += "    - {cell: {plugin: elman, hidden: 4}, recurrent: dense}\n";
  const std::string refusal =
      error_of(folder.write("layers.yaml", layers + "optimizer: adam\ntrain: {batch: 2, steps: 3}\n"));
  CAPTURE(refusal);
  CHECK(contains(refusal, "layers.yaml:"));
  CHECK(contains(refusal, "model.layers: with all its keys the experiment has"));

  // Copies for aliases that never come; files that are small one by one; a path of keys without end.
  std::string anchored = "plugins: ";
  for (int i = 0; i < 60; ++i) anchored += fmt::format("&a{} [", i);
  for (int i = 0; i < 20'000; ++i) anchored += "a,";
  CHECK(contains(error_of(folder.write("anchored.yaml", anchored + std::string(60, ']'))), "more than 100000 values"));
  folder.write("half.yaml", "# " + std::string(600'000, 'x') + "\n" + valid);
  CHECK(contains(error_of(folder.write("twice.yaml", "extends: [half.yaml, half.yaml]\n")),
                 "at most 1000000 are allowed, including"));
  CHECK_THROWS_WITH_AS(load(valid, {"record.blocks.\"slope\xff\"=100"}),
                       doctest::Contains("slope\\xff\"' must be UTF-8"), Error);
  std::string path = "task";
  for (int i = 0; i < 60'000; ++i) path += ".a";
  CHECK_THROWS_WITH_AS(load(valid, {path + "=1"}), doctest::Contains("has 60001 keys; at most 64 are allowed"), Error);
}

TEST_CASE("a byte order mark and Windows line ends are read") {
  std::string text = valid;
  for (std::size_t at = 0; (at = text.find('\n', at)) != text.npos; at += 2) text.replace(at, 1, "\r\n");
  CHECK(load("\xEF\xBB\xBF" + text).hash == load(valid).hash);
}

TEST_CASE("aliases that stay small are read") {
  const Experiment e = load(valid + "plugins: &none []\nthreads: &two 2\nseed: *two\n").experiment;
  CHECK(e.seed == 2);
}

TEST_CASE("an error of plugins alone has the exit code of plugins") {
  try {
    load(valid, {"model.recurrent=telepathy"});
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::plugin);
  }
  try {
    load(valid, {"model.recurrent=telepathy", "seed=x"});
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
  }
}

TEST_CASE("plugins are found next to the file that names them, and other files do no harm") {
  const Folder folder;
  const std::string so = folder.write("base/not_a_plugin.so", "text");
  folder.write("base/first.yaml", valid + "plugins: [not_a_plugin.so]\n");
  Registry registry = config_test::registry();
  const LoadedExperiment loaded = load_experiment(folder.write("top.yaml", "extends: base/first.yaml\n"), {}, registry);
  REQUIRE(loaded.experiment.plugins.size() == 1);
  CHECK(loaded.experiment.plugins[0] == so);
  CHECK(std::ranges::any_of(registry.files(), [](const PluginFile& file) { return !file.unusable.empty(); }));
}

TEST_CASE("a bound that is included is a value") {
  const Entry& copy = *std::ranges::find(config_test::entries, std::string("copy"), &Entry::name);
  CHECK(options_of<config_test::CopyOptions>(choose_plugin(copy, "{length: 1000, delay: 1000}")).length == 1000);
  CHECK(load(valid, {"train.clip.kind=none", "optimizer.schedule={kind: step, factor: 1}"})
            .experiment.optimizer[0]
            .schedule.factor == 1);
  CHECK_THROWS_WITH_AS(load(valid, {"optimizer.schedule={kind: step, factor: 1.01}"}),
                       doctest::Contains("must be above 0 and at most 1"), Error);
}

TEST_CASE("options of one plugin from text") {
  const Entry& copy = *std::ranges::find(config_test::entries, std::string("copy"), &Entry::name);
  CHECK(options_of<config_test::CopyOptions>(choose_plugin(copy)).delay == 100);
  CHECK(options_of<config_test::CopyOptions>(choose_plugin(copy, "delay: 30\nlength: 20")).delay == 30);
  CHECK_THROWS_WITH_AS(choose_plugin(copy, "{delay: 0}", "text"), "text:1:9: copy.delay must be at least 1, got 0",
                       Error);
}

TEST_CASE("numbers keep their bits and texts their characters") {
  for (const double value : {0.1, 1e-5, 1.0 / 3, 1e300, 123456789.0, -0.0, 5e-324}) {
    Node node;
    node.kind = Node::Kind::scalar;
    node.text = number_text(value);
    Value read = 1.5;
    std::vector<Fault> faults;
    CAPTURE(node.text);
    REQUIRE(read_value(node, read, faults));
    CHECK(std::get<double>(read) == value);
    CHECK(std::signbit(std::get<double>(read)) == std::signbit(value));
  }
  CHECK(number_text(1e-5) == "1.0e-05");
  for (const std::string text : {"", "true", "null", "1e3", "a: b", " x", "#x", "*", "two words", "\"q\"\\",
                                 "line\nend", "Löwdin", "-", "@x", "{", "y"}) {
    Problems problems;
    const std::optional<Node> node = parse_yaml("k: " + quoted_text(text), "t", problems);
    REQUIRE(problems.empty());
    CAPTURE(text);
    CHECK(node->find("k")->value.kind == Node::Kind::scalar);
    CHECK(node->find("k")->value.text == text);
  }
}

TEST_CASE("names of runs") {
  for (const char* name : {"a", "adding-400", "two words", "Löwdin", "v1.2", "x_y"})
    CHECK(file_name_fault(name).empty());
  for (const char* name : {"", ".", "..", "a/b", "../a", "a..b", "-x", ".hidden", "a\nb", " a", "a ", "/abs"})
    CHECK(!file_name_fault(name).empty());
}

namespace {

LoadedExperiment load_script(const Folder& folder, const std::string& node, const std::string& place = "") {
  Registry methods = config_test::registry();
  methods.add_builtin(config_test::script);
  std::string text = valid;
  const std::string householder = "{plugin: householder, reflections: 4}";
  text.replace(text.find(householder), householder.size(), node);
  return load_experiment(folder.write(place + "script.yaml", text), {}, methods);
}

}  // namespace

TEST_CASE("a part of a method is a file whose options are declared after it") {
  const Folder folder;
  const std::string file = folder.write("map.txt", "shape round square");
  const LoadedExperiment loaded = load_script(folder, "{plugin: script, file: map.txt, shape: square}");
  const PluginChoice& choice = loaded.experiment.model.layers[0].recurrent;
  CHECK(options_of<config_test::ScriptOptions>(choice).file == file);
  CHECK(options_of<config_test::ScriptOptions>(choice).word == "square");
  REQUIRE(choice.parts.size() == 1);
  CHECK(choice.parts[0].path == file);
  CHECK(choice.parts[0].works_with == "Tool 1.2");
  CHECK(contains(loaded.resolved_yaml, "file: " + file));
  CHECK_THROWS_WITH(
      load_script(folder, "{plugin: script, file: map.txt, shape: rond}"),
      doctest::Contains("model.recurrent.shape must be one of round, square; got 'rond'; did you mean 'round'?"));
  CHECK_THROWS_WITH(
      load_script(folder, "{plugin: script, file: map.txt, shap: round}"),
      doctest::Contains(
          "model.recurrent.shap is not an option of the parametrisation 'script'; did you mean 'shape'?"));
}

TEST_CASE("the ID of a run has the name of a part and not its folder") {
  const Folder folder;
  folder.write("map.txt", "shape round square");
  folder.write("base/map.txt", "shape square round");
  folder.write("other.txt", "shape round square");
  const std::string here = load_script(folder, "{plugin: script, file: map.txt, shape: round}").hash;
  CHECK(load_script(folder, "{plugin: script, file: map.txt, shape: round}", "base/").hash == here);
  CHECK(load_script(folder, "{plugin: script, file: other.txt, shape: round}").hash != here);
}

TEST_CASE("without a usable part only the part is wrong") {
  const Folder folder;
  folder.write("empty.txt", "shape");
  const auto message = [&](const std::string& node) -> std::string {
    try {
      load_script(folder, node);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string place = (folder.path / "script.yaml").string() + ":5:";
  const std::string missing = message("{plugin: script, file: gone.txt, shape: round}");
  CHECK(missing == place + "37: model.recurrent.file: there is no file " + (folder.path / "gone.txt").string());
  CHECK(message("{plugin: script, file: empty.txt, shape: round}") == place + "37: model.recurrent.file: has no words");
  CHECK(message("{plugin: script, shape: round}") ==
        place + "14: model.recurrent.file is required: a script (a string)");
}
