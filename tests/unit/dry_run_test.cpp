// What is said of an experiment before it runs.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "record/hdf5.hpp"
#include "record/reader.hpp"
#include "training/dry_run.hpp"

#include "scratch.hpp"
#include "small_runs.hpp"

using namespace stiefel;
using namespace stiefel::small_runs;
using scratch::Folder;
namespace fs = std::filesystem;

TEST_CASE("what depends on evaluations is refused without a split for them, and more steps than can be counted are") {
  Folder folder;
  Quiet quiet;
  for (const char* asked :
       {"train.patience=3", "train.target=0.1", "train.select=accuracy", "optimizer.schedule.kind=plateau"})
    CHECK_THROWS_WITH(run(load({"task.validation_sequences=0", asked}), folder.path, quiet),
                      doctest::Contains("needs a validation split"));
  CHECK_THROWS_WITH(
      run(load({"task.validation_sequences=0", "optimizer.schedule.kind=plateau"}), folder.path, quiet),
      "command line: optimizer.schedule.kind needs a validation split, but the task adding has none; give it "
      "one, or remove this");
  CHECK_THROWS_WITH(run(load({"train.steps=0", "train.epochs=9000000000000000000"}), folder.path, quiet),
                    doctest::Contains("more steps than can be counted"));
}

TEST_CASE("what does not fit together is said of its place in the file") {
  const auto fault = [](const std::vector<std::string>& overrides) {
    try {
      check_experiment(load(overrides), registry(), {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(fault({}) == "");
  CHECK(
      fault({"model.recurrent={plugin: householder, reflections: 99}"}).starts_with("command line: model.recurrent: "));
  CHECK(fault({"model.cell={plugin: lru, hidden: 8}"}).find("the cell lru has no recurrent map") != std::string::npos);

  const auto refused = [](const std::string& text, const std::string& sentence) {
    CAPTURE(sentence);
    CHECK_THROWS_WITH_AS(check_experiment(load({}, text), registry(), {}), doctest::Contains(sentence.c_str()), Error);
  };
  const std::string head = R"(name: places
task: {plugin: adding, length: 12}
model: {cell: {plugin: elman, hidden: 6}, recurrent: dense}
)";
  const std::string single = head + "optimizer: sgd\n", steps = "train: {steps: 3, batch: 4";
  refused(single + steps + "}\nrecord:\n  blocks: {input.bias: 1, nothing: 10}\n",
          "small:7:27: record.blocks: there is no parameter block \"nothing\"; the blocks are input.weight");
  refused(single + steps + ", select: f1}\n", "small:5:37: train.select: \"f1\" is not measured by the task adding");
  refused(head + "optimizer: {plugin: sgd, blocks: input.*}\n" + steps + "}\n",
          "small:4:12: no optimizer moves the block readout.weight");
  refused(head + "optimizer: [{plugin: sgd}, {plugin: adam, blocks: recurrent.U}]\n" + steps + "}\n",
          "small:4:51: optimizer.1.blocks: no block is left for \"recurrent.U\"");
  refused(head + "optimizer:\n  - {plugin: sgd, blocks: outside.*}\n" + steps + "}\n",
          "small:5:3: no optimizer moves the block input.weight");
  const auto scheduled = [](const std::string& schedule) {
    return "optimizer: {plugin: sgd, schedule: {" + schedule + "}}\n";
  };
  refused(head + scheduled("kind: cosine, warmup: 3") + steps + "}\n",
          "small:4:59: optimizer.schedule.warmup of 3 steps leaves none of the 3 steps of training");
  refused(head + "optimizer:\n  - plugin: sgd\n    schedule: {kind: cosine, warmup: 3}\n" + steps + "}\n",
          "small:6:38: optimizer.0.schedule.warmup of 3 steps leaves none of the 3 steps of training");
  refused(head + scheduled("kind: one_cycle, warmup: 2") + steps + "}\n",
          "small:4:62: optimizer.schedule.warmup: one_cycle already begins with a rise");
  refused(head + scheduled("kind: step, final: 0.1") + steps + "}\n",
          "small:4:56: optimizer.schedule.final: a schedule of kind step has no final rate");
  refused(head + scheduled("kind: one_cycle, final: 0.5") + steps + "}\n",
          "small:4:61: optimizer.schedule.final: one_cycle ends below the rate at which it starts");
  refused(single + steps + ", average: 1}\n", "small:5:38: train.average must be at least 0 and below 1, got 1");
  refused(single + "train: {steps: 9223372036854775807, accumulate: 2}\n",
          "small:5:16: train.steps = 9223372036854775807 of 2 batches");
  refused(single + "train: {epochs: 9223372036854775807, batch: 4}\n",
          "small:5:17: train.epochs = 9223372036854775807 of 100 batches");
}

TEST_CASE("what would act only after the end of the training is remarked on") {
  const auto remarks = [](const std::vector<std::string>& overrides) {  // 20 steps, 2 evaluations
    return check_experiment(load(overrides), registry(), {});
  };
  for (const auto& [overrides, remark] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"train.patience=1"}, "command line: train.patience has no effect: the training has only 2 evaluations"},
           {{"optimizer.schedule=step"}, "optimizer.schedule.every has no effect: the training has only 20 steps"},
           {{"optimizer.schedule={kind: step, every: 15, warmup: 5}"},
            "command line: optimizer.schedule.every has no effect: the training has only 20 steps"},
           {{"optimizer.schedule={kind: plateau, patience: 4}", "train.evaluate_every=4"},
            "command line: optimizer.schedule.patience has no effect: the training has only 5 evaluations"}}) {
    CAPTURE(remark);
    REQUIRE(remarks(overrides).size() == 1);
    CHECK(remarks(overrides)[0].ends_with(remark));
  }
  CHECK(remarks({"train.patience=3", "train.evaluate_every=4"}).empty());
  CHECK(remarks({"optimizer.schedule={kind: step, every: 14, warmup: 5}"}).empty());
  CHECK(remarks({"optimizer.schedule={kind: plateau, patience: 2}", "train.evaluate_every=4"}).empty());
}

TEST_CASE("a recurrent map that no map of the cell uses is remarked on") {
  const auto remarks = [](const char* maps) {
    return check_experiment(load({"model.cell={plugin: lstm, hidden: 4}", "record.blocks=null", maps}), registry(), {});
  };
  const std::vector<std::string> all =
      remarks("model.maps={input: dense, forget: dense, output: dense, candidate: dense}");
  REQUIRE(all.size() == 1);
  CHECK(all[0] == "small:5:14: model.recurrent has no effect: `maps` names every map of the cell");
  CHECK(remarks("model.maps={input: dense, forget: dense, output: dense}").empty());
}

TEST_CASE("a batch that is larger than the training set is remarked on") {
  const auto remarks = [](const std::vector<std::string>& overrides) {
    return check_experiment(load(overrides), registry(), {});
  };
  CHECK(remarks({}).empty());
  CHECK(remarks({"task.train_sequences=7", "train.batch=7"}).empty());
  REQUIRE(remarks({"task.train_sequences=6", "train.batch=7"}).size() == 1);
  const std::string remark = "command line: train.batch is 7, but the training set has 6 sequences";
  CHECK(remarks({"task.train_sequences=6", "train.batch=7"})[0].starts_with(remark));
  Folder folder;
  Quiet quiet;
  const fs::path made = run(load({"task.train_sequences=6", "train.batch=7"}), folder.path, quiet).directory;
  CHECK(ResultReader(made / "results.h5").read("/epochs/epoch").values == std::vector<double>{70. / 6, 140. / 6});
  CHECK(quiet.lines.at(0).starts_with("warning: " + remark));
}

TEST_CASE("the first loss of a dry run is that of the run") {
  for (const char* accumulate : {"train.accumulate=1", "train.accumulate=3"}) {
    Folder folder;
    Quiet quiet;
    const fs::path results = run(load({accumulate}), folder.path, quiet).directory / "results.h5";
    const double first = ResultReader(results).root().dataset("/steps/loss").read(0, 1)[0];
    std::string text;
    for (const std::string& line : dry_run(load({accumulate}), registry(), {}).lines) text += line + "\n";
    CHECK(text.find(fmt::format("first loss {:.6g} ", first)) != std::string::npos);
  }
}

TEST_CASE("initial values of another shape name their key") {
  const Folder folder;
  const std::string file = (folder.path / "w.npy").string();
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }";
  header.resize(117, ' ');
  scratch::write(file, std::string("\x93NUMPY\x01\0\x76\0", 10) + header + "\n" + std::string(8, '\0'));
  Quiet quiet;
  for (const std::string key : {"model.readout", "model.recurrent", "model.initial_state"}) {
    const std::string other = key == "model.recurrent" ? "model.recurrent.plugin=dense" : "seed=2";
    CHECK_THROWS_WITH(
        run(load({other, "record.blocks=null", key + ".init=file", key + ".file=" + file}), folder.path, quiet),
        doctest::Contains(("command line: " + key + ".file: " + file + " holds 1 numbers").c_str()));
  }
  CHECK_THROWS_WITH(
      check_experiment(load({"model.input.init=file", "model.input.file=absent.npy"}), registry(), {}),
      doctest::Contains(("model.input.file: there is no file " + fs::absolute("absent.npy").string()).c_str()));
}

TEST_CASE("an initial bias without a bias is refused before training, with its layer") {
  CHECK_THROWS_WITH(
      check_experiment(load({"model.cell={plugin: lstm, hidden: 4}", "model.input.bias=false"}), registry(), {}),
      doctest::Contains("model.cell: forget_bias is the initial value of a bias"));
}

TEST_CASE("a dry run names parameters, memory and time") {
  const DryRun dry = dry_run(load(), registry(), {});
  std::string text;
  for (const std::string& line : dry.lines) text += line + "\n";
  for (const char* word :
       {"parameters 85 in 6 blocks", "recurrent.U", " route", "first loss", "memory", "for 20 steps"})
    CHECK(text.find(word) != text.npos);
}

TEST_CASE("model.recurrent is there exactly when the cell has a map that needs it") {
  const auto fault = [](const std::string& model) {
    const std::string text = "name: maps\ntask: {plugin: adding, length: 6}\nmodel: " + model +
                             "\noptimizer: sgd\ntrain: {batch: 7, steps: 1}\n";
    try {
      const LoadedExperiment loaded = load({}, text);
      CHECK(loaded.resolved_yaml.find("recurrent:") == (loaded.experiment.model.layers[0].recurrent.entry
                                                            ? loaded.resolved_yaml.find("  recurrent:") + 2
                                                            : std::string::npos));
      check_experiment(loaded, registry(), {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(fault("{cell: {plugin: lru, hidden: 4}}") == "");
  CHECK(
      fault("{cell: {plugin: lru, hidden: 4}, recurrent: dense}") ==
      "small:3:52: model.recurrent: the cell lru has no recurrent map; remove model.recurrent, on the command line by "
      "model.recurrent=null");
  CHECK(fault("{cell: {plugin: elman, hidden: 4}, recurrent: dense}") == "");
  CHECK(fault("{cell: {plugin: elman, hidden: 4}}")
            .starts_with("small:3:8: model.recurrent is required: {plugin: name} of a parametrisation; choose from"));
  CHECK(fault("{cell: {plugin: cornn, hidden: 4}, maps: {position: dense, velocity: dense}}") == "");
  CHECK(fault("{cell: {plugin: cornn, hidden: 4}, maps: {position: dense}}").find("model.recurrent is required") !=
        std::string::npos);
  CHECK(fault("{cell: {plugin: lru, hidden: 4}, maps: {forget: dense}}")
            .ends_with("model.maps.forget: the cell lru has no maps"));
}
