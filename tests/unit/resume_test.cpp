// Stopped runs that are resumed.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>

#include "base/file_content.hpp"
#include "record/reader.hpp"
#include "training/changes.hpp"
#include "training/checkpoint.hpp"
#include "training/checkpoint_index.hpp"
#include "training/run.hpp"

#include "scratch.hpp"
#include "small_runs.hpp"

using namespace stiefel;
using namespace stiefel::small_runs;
using scratch::Folder;
namespace fs = std::filesystem;

namespace {

/// A run that a signal stopped after step 5, by its folder.
fs::path stopped_run(const Folder& folder) {
  Quiet stopping;
  std::atomic<int> signal{0};
  stopping.raised = &signal;
  return run(load(), folder.path, stopping, &signal).directory;
}

RunSummary go_on(const LoadedExperiment& loaded, const fs::path& directory, Quiet& observer,
                 const std::vector<std::string>& allowed = {}) {
  return resume_experiment(directory, loaded, registry(), {}, allowed, observer);
}

/// Runs to the end, and with a stop after step 5 and another process's work afterwards; both must be the same.
void check_resumed(const LoadedExperiment& loaded) {
  Folder folder;
  Quiet quiet, stopping;
  const RunSummary whole = run(loaded, folder.path / "whole", quiet);
  std::atomic<int> signal{0};
  stopping.raised = &signal;
  const RunSummary stopped = run(loaded, folder.path / "parts", stopping, &signal);
  REQUIRE(stopped.state == "preempted");
  CHECK(stopped.message.find("stiefel resume " + stopped.directory.string()) != std::string::npos);
  const RunSummary resumed = go_on(loaded, stopped.directory, quiet);
  CHECK(resumed.state == "finished");
  CHECK(fingerprint(resumed.directory) == fingerprint(whole.directory));
  CHECK(ResultReader(resumed.directory / "results.h5").read("/provenance/segments/start_step").values ==
        std::vector<double>{0, 5});
  CHECK(ResultReader(resumed.directory / "results.h5").texts("/provenance/segments/reason") ==
        std::vector<std::string>{"preempted", "finished"});
  CHECK(go_on(loaded, stopped.directory, quiet).state == "existing");
}

}  // namespace

TEST_CASE("a run that was killed before its first results is looked for where it began") {
  Folder folder;
  Quiet quiet;
  RunOptions options;
  options.output = folder.path;
  options.working_directory = folder.path / "began";
  fs::create_directory(options.working_directory);
  options.data_directory = "/data/there";
  const fs::path made = run_experiment(load(), registry(), options, quiet).directory, killed = folder.path / "killed";
  fs::create_directories(killed / "checkpoints");
  fs::copy(made / "config.yaml", killed);
  fs::copy(made / "checkpoints/index.json", killed / "checkpoints");
  for (const fs::path& run : {made, killed}) {
    CHECK(started_in(run).working_directory == options.working_directory);
    CHECK(started_in(run).data_directory == "/data/there");
  }
}

TEST_CASE("a stopped run resumes with the same bits") {
  check_resumed(load());
  check_resumed(load({"scalar=float64", "train.weight_noise=0.01", "train.patience=2"}));
  check_resumed(load({"optimizer.rate=1e-30", "train.patience=2", "train.evaluate_every=4", "record.spectrum=7",
                      "record.loss=5", "checkpoint.every=2"}));
  check_resumed(load({"train.average=0.9", "train.accumulate=3", "train.batch=4",
                      "optimizer.schedule={kind: cosine, warmup: 7, final: 0.1}"}));
  check_resumed(load(
      {"optimizer.schedule.kind=plateau", "optimizer.plugin=rmsprop", "train.evaluate_every=3", "checkpoint.every=4"}));
}

TEST_CASE("what a checkpoint does not know of is cut off and made again; damaged checkpoints are passed over") {
  Folder folder;
  Quiet quiet, telling;
  const LoadedExperiment loaded = load({"checkpoint.every=4", "checkpoint.keep=3"});
  const RunSummary whole = run(loaded, folder.path / "whole", quiet);
  std::atomic<int> signal{0};
  Quiet stopping;
  stopping.raised = &signal;
  const fs::path directory = run(loaded, folder.path / "parts", stopping, &signal).directory;
  {
    std::fstream file(directory / "checkpoints/step_00000005.h5", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(3000);
    file.put('!');
  }
  CHECK(go_on(loaded, directory, telling).state == "finished");
  CHECK(std::any_of(telling.lines.begin(), telling.lines.end(), [](const std::string& line) {
    return line.find("step_00000005.h5 is damaged") != std::string::npos;
  }));
  CHECK(fingerprint(directory) == fingerprint(whole.directory));
  CHECK(ResultReader(directory / "results.h5").read("/provenance/segments/start_step").values ==
        std::vector<double>{0, 4});
}

TEST_CASE("a run resumes only as it began, unless the change is allowed by name") {
  Folder folder;
  Quiet quiet;
  const fs::path directory = stopped_run(folder);
  CHECK_THROWS_WITH(go_on(load({"train.steps=24"}), directory, quiet),
                    doctest::Contains("train.steps was 20 and is now 24"));
  CHECK_THROWS_WITH(go_on(load({"train.steps=24"}), directory, quiet), doctest::Contains("--allow-change train.steps"));
  CHECK_THROWS_WITH(
      go_on(load({"train.steps=24"}), directory, quiet, {"steps"}),
      "--allow-change: 'steps' is not a key, plugin or data file of this run; did you mean 'train.steps'?");
  CHECK(go_on(load({"train.steps=24", "threads=2"}), directory, quiet, {"train.steps"}).state == "finished");
  CHECK(ResultReader(directory / "results.h5").read("/steps/step").values.back() == 24);
}

TEST_CASE("a finished run that is continued is the same as one that was longer from the beginning") {
  Folder folder;
  Quiet quiet;
  const fs::path whole = run(load(), folder.path / "whole", quiet).directory;
  for (const char* every : {"checkpoint.every=0", "checkpoint.every=5"}) {
    CAPTURE(every);
    const fs::path directory = run(load({"train.steps=12", every}), folder.path / "parts", quiet).directory;
    const auto longer = load({"train.steps=20", every});
    CHECK_THROWS_WITH(go_on(longer, directory, quiet), doctest::Contains("train.steps was 12 and is now 20"));
    CHECK(ResultReader(directory / "results.h5").text_attribute("/", "state") == "finished");
    RunOptions until;
    until.until = 15;
    CHECK(resume_experiment(directory, longer, registry(), until, {"train.steps"}, quiet).state == "preempted");
    CHECK_FALSE(fs::exists(directory / "checkpoints/last.h5"));
    CHECK(ResultReader(directory / "results.h5").read("/final/test_loss").values.empty());
    CHECK(go_on(longer, directory, quiet).state == "finished");
    CHECK(fingerprint(directory) == fingerprint(whole));
    CHECK(ResultReader(directory / "results.h5").texts("/provenance/segments/changes")[1] == R"({"train.steps":"20"})");
  }
}

TEST_CASE("the evaluation at the end of a finished run does not count when it is continued") {
  Folder folder;
  Quiet quiet, stopping;
  const std::vector<std::string> plateau{"optimizer.schedule={kind: plateau, factor: 0.1}", "train.evaluate_every=3"};
  const auto with = [&](const std::string& steps) { return load({plateau[0], plateau[1], "train.steps=" + steps}); };
  const fs::path whole = run(with("20"), folder.path / "whole", quiet).directory;
  std::atomic<int> signal{0};
  stopping.raised = &signal;
  stopping.raised_at = 10;
  const fs::path directory = run(with("10"), folder.path / "parts", stopping, &signal).directory;
  CHECK(fs::exists(directory / "checkpoints/step_00000010.h5"));  // of the signal during the final test
  CHECK(go_on(with("10"), directory, quiet).state == "finished");
  CHECK(go_on(with("20"), directory, quiet, {"train.steps"}).state == "finished");
  CHECK(fingerprint(directory) == fingerprint(whole));
}

TEST_CASE("the report of a finished run is made again at its new end") {
  Folder folder;
  Quiet quiet;
  const auto with = [](const std::string& steps) {
    return load({"task={plugin: round_text}", "model.cell.activation=tanh", "train.steps=" + steps});
  };
  const fs::path directory = run(with("10"), folder.path / "parts", quiet).directory,
                 results = directory / "results.h5";
  REQUIRE(ResultReader(results).read("/outcome/step").values == std::vector<double>{10});
  REQUIRE(fs::exists(directory / "outcome"));
  RunOptions until;
  until.until = 15;
  CHECK(resume_experiment(directory, with("20"), registry(), until, {"train.steps"}, quiet).state == "preempted");
  CHECK_FALSE(ResultReader(results).exists("/outcome"));
  CHECK_FALSE(fs::exists(directory / "outcome"));
  CHECK(go_on(with("20"), directory, quiet).state == "finished");
  CHECK(ResultReader(results).read("/outcome/step").values.size() == 1);
  CHECK(fs::exists(directory / "outcome"));
}

TEST_CASE("a finished run can only become longer") {
  Folder folder;
  Quiet quiet;
  const fs::path directory = run(load(), folder.path, quiet).directory;
  const auto state = [&] {
    return std::make_pair(fingerprint(directory), ResultReader(directory / "results.h5").text_attribute("/", "state"));
  };
  const auto before = state();
  const auto refuses = [&](const std::vector<std::string>& changed, const std::string& sentence) {
    CAPTURE(sentence);
    CHECK_THROWS_WITH(go_on(load(changed), directory, quiet, {"all"}), doctest::Contains(sentence.c_str()));
  };
  refuses({"optimizer.rate=1e-3", "train.steps=30"}, " is finished, so optimizer.rate cannot become 0.001: such a run");
  refuses({"train.steps=15"}, " is finished after 20 steps, and would now end at step 15; set train.steps to more");
  refuses({"train.steps=null", "train.epochs=1", "task.batches_per_epoch=20"},
          "so task.batches_per_epoch cannot become 20");
  refuses({"train.patience=1", "train.steps=30"}, "so train.patience cannot become 1");
  refuses({"train.target=0.1", "train.steps=30"}, "so train.target cannot become 0.1");
  RunOptions until;
  until.until = 19;
  CHECK_THROWS_WITH(resume_experiment(directory, load({"train.steps=30"}), registry(), until, {"all"}, quiet),
                    doctest::Contains(" is finished after 20 steps; --until must be at least that, got 19"));
  CHECK(go_on(load({"checkpoint.every=3"}), directory, quiet).state == "existing");
  CHECK(state() == before);

  const std::string cosine = "optimizer.schedule.kind=cosine";
  const fs::path falling = run(load({cosine}), folder.path, quiet).directory;
  CHECK_THROWS_WITH(go_on(load({cosine, "train.steps=30"}), falling, quiet, {"all"}),
                    doctest::Contains("its learning rates depend on the number of steps (schedule cosine)"));
}

TEST_CASE("a run that train.patience has ended continues with more patience") {
  Folder folder;
  Quiet quiet;
  const std::vector<std::string> waits{"optimizer.rate=1e-30", "train.evaluate_every=2"};
  const auto with = [&](const std::string& patience) {
    return load({waits[0], waits[1], "train.patience=" + patience});
  };
  const fs::path directory = run(with("2"), folder.path / "parts", quiet).directory;
  const auto steps = [](const fs::path& run) {
    return ResultReader(run / "results.h5").read("/epochs/step").values.back();
  };
  CHECK(steps(directory) == 6);
  CHECK_THROWS_WITH(go_on(with("1"), directory, quiet, {"all"}), doctest::Contains("train.patience cannot become 1"));
  CHECK(go_on(with("5"), directory, quiet, {"train.patience"}).state == "finished");
  CHECK(steps(directory) == 12);
  CHECK(fingerprint(directory) == fingerprint(run(with("5"), folder.path / "whole", quiet).directory));
}

TEST_CASE("a run of another type of host is left to that type, unless more has changed") {
  RunHeader before;
  before.yaml = load().resolved_yaml;
  before.provenance = {{"simd_target", "AVX3"}, {"version", "1"}};
  RunHeader now = before;
  const auto refusal = [&] {
    try {
      allowed_changes(before, now, {}, {});
    } catch (const Error& error) {
      return error.code();
    }
    return Exit::done;
  };
  CHECK((refusal() == Exit::done));
  now.provenance[0].second = "AVX2";
  CHECK((refusal() == Exit::in_use));
  CHECK(allowed_changes(before, now, {"simd_target"}, {}) == R"({"simd_target":"AVX2"})");
  now.provenance[1].second = "2";
  CHECK((refusal() == Exit::usage));
}

TEST_CASE("an allowed change stays when the run is resumed again") {
  Folder folder;
  Quiet quiet;
  const fs::path directory = stopped_run(folder);
  const std::vector<std::string> changed{"optimizer.rate=1e-3"};
  RunOptions until;
  until.until = 10;
  const LoadedExperiment slower = load_experiment(directory / "config.yaml", changed, registry());
  CHECK(resume_experiment(directory, slower, registry(), until, {"optimizer.rate"}, quiet).state == "preempted");
  const ResultReader results(directory / "results.h5");
  CHECK(results.texts("/provenance/segments/changes") == std::vector<std::string>{"", R"({"optimizer.rate":"0.001"})"});
  CHECK(go_on(load_experiment(directory / "config.yaml", {}, registry()), directory, quiet).state == "finished");
  const std::vector<double> rates = ResultReader(directory / "results.h5").read("/steps/lr").values;
  CHECK(rates.front() > 1e-3);
  CHECK(rates.back() == 1e-3);

  // It is another run than the one that the file describes.
  const RunSummary original = run(load(), folder.path, quiet);
  CHECK(original.state == "finished");
  CHECK(original.directory != directory);
  CHECK(std::ranges::any_of(quiet.lines, [](const std::string& line) {
    return line.find("with changes when it was resumed (optimizer.rate)") != line.npos;
  }));
  CHECK_THROWS_WITH(go_on(load({"optimizer.rate=1e-4"}), directory, quiet, {"all"}),
                    doctest::Contains("is finished, so optimizer.rate cannot become 0.0001"));
}

TEST_CASE("a change stays allowed when the process was killed between config.yaml and results.h5") {
  Folder folder;
  Quiet quiet;
  const fs::path whole = run(load(), folder.path / "whole", quiet).directory;
  const fs::path directory = run(load({"train.steps=12"}), folder.path / "parts", quiet).directory;
  const auto as_described = [&] { return load_experiment(directory / "config.yaml", {}, registry()); };
  CHECK(go_on(as_described(), directory, quiet).state == "existing");
  fs::copy_file(directory / "results.h5", folder.path / "before.h5");
  RunOptions until;
  until.until = 15;
  CHECK(resume_experiment(directory, load({"train.steps=20"}), registry(), until, {"train.steps"}, quiet).state ==
        "preempted");
  list_file(directory, "results.h5", folder.path / "before.h5");
  fs::rename(folder.path / "before.h5", directory / "results.h5");
  SUBCASE("it goes on") {
    CHECK(go_on(as_described(), directory, quiet).state == "finished");
    CHECK(fingerprint(directory) == fingerprint(whole));
  }
  SUBCASE("an edit is none") {
    const std::string yaml = file_content(directory / "config.yaml");
    scratch::write(directory / "config.yaml", yaml + "\n");
    CHECK_THROWS_WITH(go_on(as_described(), directory, quiet), doctest::Contains("train.steps was 12 and is now 20"));
  }
}

TEST_CASE("what chose the best network so far cannot be changed") {
  Folder folder;
  Quiet quiet;
  const fs::path directory = stopped_run(folder);
  CHECK_THROWS_WITH(
      go_on(load({"train.select=accuracy"}), directory, quiet, {"all"}),
      doctest::Contains("train.select cannot be changed in a run that has begun: its best network was chosen with it"));
}

TEST_CASE("what a checkpoint cannot take over cannot be changed") {
  Folder folder;
  Quiet quiet;
  const auto refuses = [&](std::vector<std::string> began, const std::string& changed, const std::string& sentence) {
    CAPTURE(changed);
    began.emplace_back("seed=" + std::to_string(quiet.lines.size() + 1));
    Quiet stopping;
    std::atomic<int> signal{0};
    stopping.raised = &signal;
    const fs::path directory = run(load(began), folder.path, stopping, &signal).directory;
    began.push_back(changed);
    CHECK_THROWS_WITH(go_on(load(began), directory, quiet, {"all"}), doctest::Contains(sentence.c_str()));
    began.pop_back();
    CHECK(go_on(load(began), directory, quiet).state == "finished");
  };
  const std::string two_groups =
      "optimizer=[{blocks: 'recurrent*', plugin: adam, rate: 0.01}, {plugin: adam, rate: 0.01}]";
  refuses({two_groups}, "optimizer.0.blocks=recurrent.U",
          "optimizer.0.blocks cannot be changed in a run that has begun");
  refuses({}, "model.init_file=" + RunFolder{run(load(), folder.path, quiet).directory}.network("last").string(),
          "model.init_file cannot be changed in a run that has begun");
  refuses({}, "train.accumulate=2",
          "train.accumulate cannot be changed in a run that has begun: its place in the data");
  refuses({}, "optimizer.plugin=rmsprop", "plugin:rmsprop does not fit the checkpoint");
  refuses({}, "train.average=0.9", "the change of train.average does not fit the checkpoint");
  refuses({"model.recurrent={plugin: lie_exponential, base: moving}", "record.blocks=null"},
          "model.recurrent.base=static", "the change of model.recurrent.base does not fit the checkpoint");
  const std::string stream = text_stream(folder.path);
  refuses({stream, "train.batch=2", "model.initial_state=carried"}, "task.bptt=5",
          "task.bptt cannot be changed: the checkpoint holds the state that is carried");
}

TEST_CASE("a state that is no longer carried has no effect") {
  Folder folder;
  Quiet quiet, stopping;
  std::atomic<int> signal{0};
  stopping.raised = &signal;
  const auto with = [&](const std::string& state) {
    return load({text_stream(folder.path), "train.batch=2", "optimizer.rate=0", "model.initial_state=" + state});
  };
  const auto losses = [](const fs::path& directory) {
    return ResultReader(directory / "results.h5").read("/steps/loss").values;
  };
  const std::vector<double> zero = losses(run(with("zero"), folder.path / "zero", quiet).directory);
  const fs::path directory = run(with("carried"), folder.path / "carried", stopping, &signal).directory;
  CHECK(go_on(with("zero"), directory, quiet, {"all"}).state == "finished");
  const std::vector<double> changed = losses(directory);
  REQUIRE(changed.size() == zero.size());
  CHECK(changed[4] != zero[4]);
  for (std::size_t i = 5; i < zero.size(); ++i) CHECK(changed[i] == zero[i]);
}

TEST_CASE("the place of a plugin that was moved stays when the run is resumed") {
  Folder folder;
  Quiet quiet;
  const fs::path directory = stopped_run(folder);
  const std::string plugin = registry().file_of(registry().find(Role::optimizer, "adam")).path.string();
  CHECK(go_on(load({"plugins=[" + plugin + "]"}), directory, quiet).state == "finished");
  CHECK(load_experiment(directory / "config.yaml", {}, registry()).resolved_yaml.find(plugin) != std::string::npos);
}

TEST_CASE("a finished run without its results is not trained again") {
  Folder folder;
  Quiet quiet;
  const fs::path directory = run(load(), folder.path, quiet).directory, results = directory / "results.h5";
  fs::remove(results);
  CHECK_THROWS_WITH(go_on(load(), directory, quiet), doctest::Contains("results.h5 is missing, but "));
  CHECK(fs::exists(directory / "checkpoints/best.h5"));
  CHECK(fs::exists(directory / "checkpoints/last.h5"));
}

TEST_CASE("a signal during the final test saves the last step, and another process does the test") {
  for (const char* average : {"train.average=0", "train.average=0.9"}) {
    CAPTURE(average);
    Folder folder;
    Quiet quiet, stopping;
    std::atomic<int> signal{0};
    stopping.raised = &signal;
    stopping.raised_at = 20;
    const LoadedExperiment loaded = load({average});
    const RunSummary whole = run(loaded, folder.path / "whole", quiet),
                     stopped = run(loaded, folder.path / "parts", stopping, &signal);
    CHECK(stopped.exit_code == 143);
    CHECK(fs::exists(stopped.directory / "checkpoints/step_00000020.h5"));
    CHECK(go_on(loaded, stopped.directory, quiet).state == "finished");
    CHECK(fingerprint(stopped.directory) == fingerprint(whole.directory));
  }
}

TEST_CASE("a stopped run that is to end where it is has the evaluation and the maps of its last step") {
  Folder folder;
  Quiet quiet;
  const fs::path directory = stopped_run(folder);
  CHECK_THROWS_WITH(go_on(load({"train.steps=4"}), directory, quiet, {"train.steps"}),
                    doctest::Contains("has already trained for 5 steps, but would now end at step 4"));
  CHECK(go_on(load({"train.steps=5"}), directory, quiet, {"train.steps"}).state == "finished");
  const ResultReader ended(directory / "results.h5"),
      whole(run(load({"train.steps=5"}), folder.path / "whole", quiet).directory / "results.h5");
  CHECK(ended.read("/epochs/step").values == std::vector<double>{5});
  CHECK(ended.read("/spectrum/recurrent/snapshot").values == std::vector<double>{0, 5});
  for (const char* path : {"/epochs/step", "/epochs/epoch", "/timing/step", "/blocks/recurrent_u/values",
                           "/epochs/train_loss", "/epochs/valid_loss", "/final/test_loss",
                           "/spectrum/recurrent/singular_values", "/orthogonality/recurrent/defect_fro"}) {
    CAPTURE(path);
    CHECK(ended.read(path).values == whole.read(path).values);
  }
}

TEST_CASE("without the results that a checkpoint belongs to a run does not go on, and its log says so") {
  Folder folder;
  Quiet quiet;
  const fs::path directory = stopped_run(folder);
  fs::remove(directory / "results.h5");
  CHECK_THROWS_WITH(go_on(load(), directory, quiet),
                    doctest::Contains("results.h5 is missing, but the checkpoint of step 5 needs it"));
  std::ifstream log(directory / "log.txt");
  const std::string text{std::istreambuf_iterator<char>(log), {}};
  CHECK(text.find("failed: " + (directory / "results.h5").string() + " is missing") != std::string::npos);
}

TEST_CASE("rows of a table that gets no more rows are kept, and those after the checkpoint are cut") {
  Folder folder;
  Quiet quiet;
  const auto with = [](std::vector<std::string> record) {
    record.insert(record.end(), {"checkpoint.keep=9", "checkpoint.every=5"});
    return load(record);
  };
  const LoadedExperiment some =
                             with({"record.spectrum=1", "record.gradient_norms=1", "record.blocks={recurrent.U: 1}"}),
                         none = with({"record.spectrum=0", "record.gradient_norms=0", "record.blocks=null"});
  const std::vector<std::string> paths{"/spectrum/recurrent/snapshot", "/gradient/snapshot",
                                       "/blocks/recurrent_u/snapshot"};
  RunOptions until;
  until.output = folder.path;
  until.until = 7;
  const fs::path directory = run_experiment(some, registry(), until, quiet).directory;
  const auto last = [&](const std::string& path) {
    return ResultReader(directory / "results.h5").read(path).values.back();
  };
  for (const std::string& path : paths) CHECK(last(path) == 7);

  fs::remove(directory / "checkpoints/step_00000007.h5");  // as if killed
  until.until = 12;
  CHECK(resume_experiment(directory, none, registry(), until, {"all"}, quiet).state == "preempted");
  for (const std::string& path : paths) CHECK(last(path) == 5);
  CHECK(resume_experiment(directory, some, registry(), {}, {"all"}, quiet).state == "finished");
  const std::vector<double> steps = ResultReader(directory / "results.h5").read(paths[0]).values;
  CHECK(steps == std::vector<double>{0, 1, 2, 3, 4, 5, 13, 14, 15, 16, 17, 18, 19, 20});
}

TEST_CASE("a change that the results or the checkpoint cannot take leaves the run as it was") {
  Folder folder;
  Quiet quiet;
  const std::vector<std::string> carried{text_stream(folder.path), "model.initial_state=carried", "train.batch=4"};
  struct Case {
    std::vector<std::string> overrides;
    std::string change, key, refusal;
  };
  for (const Case& c :
       {Case{{}, "task.length=20", "task.length", "/gradient/t has 12 entries, and this change would make it 20"},
        Case{carried, "train.batch=2", "train.batch", "train.batch cannot be changed"}}) {
    CAPTURE(c.change);
    const fs::path output = folder.path / c.key;
    Quiet stopping;
    std::atomic<int> signal{0};
    stopping.raised = &signal;
    const fs::path directory = run(load(c.overrides), output / "parts", stopping, &signal).directory;
    std::vector<std::string> changed = c.overrides;
    std::erase_if(changed, [&](const std::string& given) { return given.starts_with(c.key + "="); });
    changed.push_back(c.change);
    CHECK_THROWS_WITH_AS(go_on(load(changed), directory, quiet, {c.key}), doctest::Contains(c.refusal.c_str()), Error);
    CHECK(ResultReader(directory / "results.h5").text_attribute("/", "state") == "preempted");
    CHECK(go_on(load_experiment(directory / "config.yaml", {}, registry()), directory, quiet).state == "finished");
    CHECK(ResultReader(directory / "results.h5").texts("/provenance/segments/changes") ==
          std::vector<std::string>{"", ""});
    CHECK(fingerprint(directory) == fingerprint(run(load(c.overrides), output / "whole", quiet).directory));
  }
}

TEST_CASE("the phases of all steps are counted when a run is stopped between evaluations") {
  Folder folder;
  Quiet quiet, stopping;
  std::atomic<int> signal{0};
  stopping.raised = &signal;
  const fs::path directory = run(load(), folder.path, stopping, &signal).directory;
  CHECK(ResultReader(directory / "results.h5").read("/timing/step").values == std::vector<double>{5});
  CHECK(go_on(load(), directory, quiet).state == "finished");
  CHECK(ResultReader(directory / "results.h5").read("/timing/step").values == std::vector<double>{5, 10, 20});
}
