// Runs from start to end: what is stored, when they stop, what moves, and that the same seed gives the same bits.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/load.hpp"
#include "results/record/hdf5.hpp"
#include "results/record/reader.hpp"
#include "sdk/diagnostics.hpp"
#include "training/checkpoint.hpp"
#include "training/outcome.hpp"
#include "training/sample.hpp"
#include "training/session.hpp"
#include "training/trainer.hpp"
#include "training/watchdog.hpp"

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

}  // namespace

TEST_CASE("a run stores its tables, weights and status") {
  Folder folder;
  Quiet quiet;
  const RunSummary summary = run(load(), folder.path, quiet);
  CHECK(summary.state == "finished");
  CHECK(summary.exit_code == 0);
  const ResultReader results(summary.directory / "results.h5");
  CHECK(results.text_attribute("/", "state") == "finished");
  CHECK(results.number_attribute("/", "committed_step") == 20);
  CHECK(results.shape("/steps/loss") == std::vector<std::uint64_t>{20});
  CHECK(results.shape("/epochs/valid_loss") == std::vector<std::uint64_t>{2});
  CHECK(results.shape("/spectrum/recurrent/singular_values") == std::vector<std::uint64_t>{3, 10});
  CHECK(results.shape("/gradient/hidden_grad_norm") == std::vector<std::uint64_t>{3, 12});
  CHECK(results.shape("/blocks/recurrent_u/values") == std::vector<std::uint64_t>{3, 34});
  for (double s : results.read("/spectrum/recurrent/singular_values").values)
    CHECK(s == doctest::Approx(1).epsilon(1e-5));
  for (double d : results.read("/orthogonality/recurrent/defect_fro").values) CHECK(d < 1e-5);
  for (const char* file : {"config.yaml", "progress.jsonl", "log.txt", "checkpoints/best.h5", "checkpoints/last.h5"})
    CHECK(fs::file_size(summary.directory / file) > 0);
  // What was resolved runs again and is the same run.
  CHECK(load_experiment(summary.directory / "config.yaml", {}, registry()).id == load().id);
}

TEST_CASE("the same bits for 1, 2 and 8 threads, and for the same seed twice") {
  std::vector<std::vector<double>> prints;
  for (const char* threads : {"1", "1", "2", "8"}) {
    Folder folder;
    Quiet quiet;
    prints.push_back(fingerprint(run(load({std::string("threads=") + threads}), folder.path, quiet).directory));
  }
  REQUIRE(prints[0].size() > 200);
  for (std::size_t i = 1; i < prints.size(); ++i) CHECK(prints[i] == prints[0]);
  Folder folder;
  Quiet quiet;
  CHECK(fingerprint(run(load({"seed=2"}), folder.path, quiet).directory) != prints[0]);
}

TEST_CASE("the same bits for 1, 2 and 8 threads where several maps are refreshed at a time and steps are watched") {
  std::vector<std::vector<double>> losses;
  for (const char* threads : {"1", "2", "8"}) {
    Folder folder;
    Quiet quiet;
    const LoadedExperiment loaded =
        load({std::string("threads=") + threads, "model.cell={plugin: lstm, hidden: 8}",
              "model.recurrent={plugin: lie_exponential}", "record.blocks={}", "train.step_limit=1e300"});
    losses.push_back(ResultReader(run(loaded, folder.path, quiet).directory / "results.h5").read("/steps/loss").values);
  }
  REQUIRE(losses[0].size() == 20);
  CHECK(losses[1] == losses[0]);
  CHECK(losses[2] == losses[0]);
}

TEST_CASE("a watch that ends while its limit is being dealt with returns after that") {
  std::atomic<bool> called = false, dealt_with = false;
  Watchdog watchdog(0.01, [&] {
    called = true;
    called.notify_one();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    dealt_with = true;
  });
  watchdog.watch([&] { called.wait(false); });
  CHECK(dealt_with);
}

TEST_CASE("time in which the whole process is stopped is not counted by the watchdog") {
  int told[2];
  REQUIRE(pipe(told) == 0);
  const pid_t child = fork();
  if (child == 0) {
    Watchdog watchdog(1, [] { _exit(3); });
    char byte = 0;
    const bool read_one = watchdog.watch([&] { return read(told[0], &byte, 1) == 1; });
    _exit(read_one ? 0 : 4);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  kill(child, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  kill(child, SIGCONT);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(write(told[1], "x", 1) == 1);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  close(told[0]), close(told[1]);
}

TEST_CASE("a finished run is left as it is; an unfinished one is refused") {
  Folder folder;
  Quiet quiet;
  const fs::path directory = run(load(), folder.path, quiet).directory;
  const auto before = fs::last_write_time(directory / "results.h5");
  CHECK(run(load(), folder.path, quiet).state == "existing");
  CHECK(fs::last_write_time(directory / "results.h5") == before);

  std::atomic<int> signal{0};
  Quiet killer;
  killer.raised = &signal;
  const RunSummary stopped = run(load({"seed=3"}), folder.path, killer, &signal);
  CHECK(stopped.state == "preempted");
  CHECK(stopped.exit_code == 143);
  CHECK(ResultReader(stopped.directory / "results.h5").number_attribute("/", "committed_step") == 5);
  CHECK_THROWS_AS(run(load({"seed=3"}), folder.path, quiet), Error);
}

TEST_CASE("a run whose numbers break says where and leaves a file that opens") {
  Folder folder;
  Quiet quiet;
  const RunSummary summary =
      run(load({"optimizer.plugin=sgd", "optimizer.rate=1e30", "train.steps=10"}), folder.path, quiet);
  CHECK(summary.state == "diverged");
  CHECK(summary.exit_code == 5);
  CHECK(summary.message.find("diverged at step") == 0);
  CHECK(ResultReader(summary.directory / "results.h5").text_attribute("/", "state") == "diverged");
  const ResultReader broken(summary.directory / "checkpoints/diverged.h5");
  CHECK(broken.read("/batch/inputs").shape.size() == 2);
  CHECK(broken.read("/batch/targets").values.size() == broken.read("/batch/lengths").values.size());
  double largest = 0;
  for (const std::string& block : broken.children("/weights"))
    for (const double x : broken.read("/weights/" + block).values)
      largest = std::max(largest, std::isfinite(x) ? std::abs(x) : 1e300);
  CHECK(largest > 1e20);
}

TEST_CASE("an update that is not finite is a divergence in its own step, before it is saved") {
  Folder folder;
  Quiet quiet;
  const RunSummary summary = run(
      load({"optimizer.plugin=sgd", "optimizer.rate=1e38", "train.steps=1", "checkpoint.every=1"}), folder.path, quiet);
  CHECK(summary.state == "diverged");
  CHECK(summary.message.find("diverged at step 1") == 0);
  CHECK_FALSE(fs::exists(summary.directory / "checkpoints/step_00000001.h5"));
}

TEST_CASE("a gradient of finite numbers whose norm overflows is a divergence that is named so") {
  Folder folder;
  Quiet quiet;
  const RunSummary summary = run(load({"scalar=float64", "model.cell.activation=identity",
                                       "model.input={init: uniform, scale: 1e80}", "train.steps=1"}),
                                 folder.path, quiet);
  CHECK(summary.state == "diverged");
  CHECK(summary.message.find(" and the norm of the gradient overflows") != std::string::npos);
}

TEST_CASE("a map that cannot be recorded because of its numbers is a divergence") {
  Folder folder;
  Quiet quiet;
  const std::vector<std::string> infinite = {"model.recurrent={plugin: dense, init: constant, scale: 1e300}",
                                             "record.blocks={}"};
  CHECK_THROWS_WITH_AS(run(load(infinite), folder.path, quiet),
                       doctest::Contains("of a matrix with NaN or Inf cannot be computed"), Error);
  const std::vector<fs::path> files(fs::recursive_directory_iterator(folder.path), fs::recursive_directory_iterator());
  const auto results = std::ranges::find(files, "results.h5", &fs::path::filename);
  REQUIRE(results != files.end());
  CHECK(ResultReader(*results).text_attribute("/", "state") == "diverged");
}

TEST_CASE("checkpoints are kept as often and as many as asked") {
  Folder folder;
  Quiet quiet;
  const auto kept = [&](const std::vector<std::string>& overrides) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(run(load(overrides), folder.path, quiet).directory / "checkpoints"))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  };
  CHECK(kept({"checkpoint.every=4", "checkpoint.keep=2"}) ==
        std::vector<std::string>{"best.h5", "index.json", "last.h5", "step_00000012.h5", "step_00000016.h5"});
  CHECK(kept({"checkpoint.every=4", "checkpoint.keep=1", "checkpoint.keep_every=8", "seed=2"}) ==
        std::vector<std::string>{"best.h5", "index.json", "last.h5", "step_00000008.h5", "step_00000016.h5"});
  CHECK(kept({"checkpoint.every=0", "seed=3"}) == std::vector<std::string>{"best.h5", "index.json", "last.h5"});
}

TEST_CASE("the best network by the test set is that of the best test value, as the papers' code has it") {
  Folder folder;
  Quiet quiet;
  for (const std::string select : {"loss", "accuracy"}) {
    CAPTURE(select);
    const RunSummary summary =
        run(load({"train.steps=100", "train.evaluate_every=5", "train.select_on=best_test", "train.select=" + select,
                  "task.test_sequences=20", "task.validation_sequences=20"}),
            folder.path, quiet);
    const ResultReader results(summary.directory / "results.h5");
    const std::vector<double> tested = results.read("/epochs/test_" + select).values,
                              validated = results.read("/epochs/valid_" + select).values;
    REQUIRE(tested.size() == 20);
    const auto best = [&](const std::vector<double>& values) {
      return select == "loss" ? std::ranges::min_element(values) - values.begin()
                              : std::ranges::max_element(values) - values.begin();
    };
    CHECK(best(tested) != best(validated));  // else nothing is shown
    CHECK(results.number_attribute("/status", "best_step") == double(5 * (best(tested) + 1)));
    CHECK(results.read("/final/test_" + select).values.back() == doctest::Approx(tested[std::size_t(best(tested))]));
  }
}

TEST_CASE("early stopping: a number of evaluations without improvement") {
  Folder folder;
  Quiet quiet;
  // With a rate of nothing the first evaluation stays the best.
  const RunSummary summary =
      run(load({"optimizer.rate=1e-30", "train.steps=100", "train.evaluate_every=5", "train.patience=3"}), folder.path,
          quiet);
  CHECK(summary.state == "finished");
  const ResultReader results(summary.directory / "results.h5");
  CHECK(results.read("/epochs/step").values == std::vector<double>{5, 10, 15, 20});
  CHECK(results.read("/epochs/is_best").values == std::vector<double>{1, 0, 0, 0});
  CHECK(results.read("/final/step").values == std::vector<double>{5});
}

TEST_CASE("early stopping: the first evaluation that reaches the target") {
  Folder folder;
  Quiet quiet;
  const RunSummary all = run(load({"train.steps=100", "train.evaluate_every=5"}), folder.path / "all", quiet);
  const std::vector<double> losses = ResultReader(all.directory / "results.h5").read("/epochs/valid_loss").values;
  const double target = losses[losses.size() / 2];
  const auto first = std::find_if(losses.begin(), losses.end(), [&](double loss) { return loss <= target; });
  REQUIRE(std::next(first) != losses.end());
  const RunSummary stopped =
      run(load({"train.steps=100", "train.evaluate_every=5", fmt::format("train.target={}", target)}),
          folder.path / "stopped", quiet);
  CHECK(stopped.state == "finished");
  CHECK(ResultReader(stopped.directory / "results.h5").read("/epochs/valid_loss").values ==
        std::vector<double>(losses.begin(), std::next(first)));
}

const char* const text = R"(name: text
task: {plugin: round_text}
model:
  cell: {plugin: elman, hidden: 8, activation: tanh}
  recurrent: {plugin: dense}
  initial_state: {kind: learned}
optimizer: {plugin: adam, rate: 0.03}
train: {batch: 13, steps: 60, evaluate_every: 20}
)";

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

TEST_CASE("a stopped run resumes with the same bits") {
  check_resumed(load());
  check_resumed(load({"scalar=float64", "train.weight_noise=0.01", "train.patience=2"}));
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
  CHECK_THROWS_WITH(go_on(load({"train.steps=28"}), directory, quiet, {"all"}),
                    doctest::Contains("is finished and cannot be changed"));
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
  CHECK_THROWS_WITH(go_on(load({"optimizer.rate=1e-4"}), directory, quiet),
                    doctest::Contains("is finished and cannot be changed"));
}

TEST_CASE("what chose the best network so far cannot be changed") {
  Folder folder;
  Quiet quiet;
  const fs::path directory = stopped_run(folder);
  CHECK_THROWS_WITH(
      go_on(load({"train.select=accuracy"}), directory, quiet, {"all"}),
      doctest::Contains("train.select cannot be changed in a run, whose best network was chosen with loss"));
}

TEST_CASE("the place of a plugin that was moved stays when the run is resumed") {
  Folder folder;
  Quiet quiet;
  const fs::path directory = stopped_run(folder);
  const std::string plugin = registry().file_of(registry().find(Role::optimizer, "adam")).path.string();
  CHECK(go_on(load({"plugins=[" + plugin + "]"}), directory, quiet).state == "finished");
  CHECK(load_experiment(directory / "config.yaml", {}, registry()).resolved_yaml.find(plugin) != std::string::npos);
}

TEST_CASE("numbers that break in a plugin end the run as those of the loss do") {
  Folder folder;
  Quiet quiet;
  const RunSummary summary =
      run(load({"record.blocks=null", "model.recurrent={plugin: lie_exponential, pullback: block}",
                "model.cell.activation=tanh",
                "optimizer=[{blocks: recurrent.*, plugin: sgd, rate: 1e36}, {plugin: sgd, rate: 0.001}]"}),
          folder.path, quiet);
  CHECK(summary.state == "diverged");
  CHECK(summary.exit_code == int(Exit::diverged));
  CHECK(summary.message.starts_with("diverged at step "));
  CHECK(fs::exists(summary.directory / "checkpoints/diverged.h5"));
  const ResultReader results(summary.directory / "results.h5");
  CHECK(results.text_attribute("/", "state") == "diverged");
  CHECK(double(results.shape("/steps/loss")[0]) == results.number_attribute("/", "committed_step"));
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

TEST_CASE("a batch without a target has no loss, and the mean leaves it out") {
  Folder folder;
  Quiet quiet;
  std::string rows = "id,x,y\n";
  for (int n = 0; n < 4; ++n) rows += fmt::format("{0},1,\n{0},2,{1}\n", n, n == 0 ? "5" : "");
  scratch::write(folder.path / "sparse.csv", rows);
  const std::string text = R"(name: sparse
task: {plugin: sequence_csv, train: sparse.csv, sequence: id, targets: [y], readout: every}
model: {cell: {plugin: elman, hidden: 3}, recurrent: dense}
optimizer: {plugin: sgd, rate: 0.001}
train: {batch: 1, epochs: 1}
record: {loss: 1}
)";
  RunOptions options;
  options.output = folder.path / "runs";
  options.data_directory = folder.path;
  const RunSummary done = run_experiment(load({}, text), registry(), options, quiet);
  const ResultReader results(done.directory / "results.h5");
  const std::vector<double> losses = results.read("/steps/loss").values;
  REQUIRE(losses.size() == 4);
  CHECK(std::ranges::count_if(losses, [](double x) { return std::isnan(x); }) == 3);
  const double only = *std::ranges::find_if(losses, [](double x) { return !std::isnan(x); });
  CHECK(results.read("/epochs/train_loss").values == std::vector<double>{only});
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

TEST_CASE("a task reports on the best model: means in /outcome, files next to the results") {
  Folder folder;
  Quiet quiet;
  const RunSummary summary = run(load({}, text), folder.path, quiet);
  const ResultReader results(summary.directory / "results.h5");
  CHECK(results.read("/outcome/right").values == std::vector<double>{1});
  CHECK(results.read("/outcome/padding").values == std::vector<double>{0});
  CHECK(results.read("/outcome/step").values == results.read("/final/step").values);
  for (int i = 0; i < 3; ++i) {
    std::ifstream file(summary.directory / "outcome" / fmt::format("written_{}.txt", i));
    std::string line;
    for (int b = 0; b < 13; ++b) {
      REQUIRE(std::getline(file, line));
      CHECK((line + line).find("abcäabcä") != std::string::npos);
    }
  }
}

TEST_CASE("the outcome of a task: names that are refused") {
  Folder folder;
  RunOutcome outcome(folder.path / "outcome");
  for (const char* name : {"", "A", "a/b", "a-b", "a b"}) CHECK_THROWS_AS(outcome.scalar(name, 1, 1), Error);
  for (const char* name : {"", ".", "..", ".x", "a/b", "/a"}) CHECK_THROWS_AS(outcome.file(name, "x"), Error);
  CHECK(!fs::exists(folder.path / "outcome"));
  outcome.scalar("mean", 1, 1);
  outcome.scalar("mean", 4, 2);
  CHECK(outcome.quantities().at("mean").sum / outcome.quantities().at("mean").weight == 3);
}

TEST_CASE("the outcome of a task: a file for which there is no room is an error and leaves nothing") {
  Folder folder;
  RunOutcome outcome(folder.path / "outcome");
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  Exit code = Exit::done;
  try {
    outcome.file("wave.wav", std::string(5000, 'x'));
  } catch (const Error& error) {
    code = error.code();
  }
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK(code == Exit::exhausted);
  CHECK(fs::is_empty(folder.path / "outcome"));
}

TEST_CASE("a carried state goes on from batch to batch and is zero at the start of each epoch") {
  Folder folder;
  Quiet quiet;
  std::string letters;
  for (int i = 0; i < 100; ++i) letters += char('a' + i * i % 7);
  scratch::write(folder.path / "letters.txt", letters);
  const auto losses = [&](const std::string& state, const std::string& accumulate) {
    const LoadedExperiment loaded =
        load({"task={plugin: characters, mode: stream, bptt: 10, file: " + (folder.path / "letters.txt").string() + "}",
              "model.initial_state=" + state, "optimizer={plugin: sgd, rate: 1e-30}", "train.batch=3", "train.steps=6",
              "train.evaluate_every=6", "train.accumulate=" + accumulate, "record={loss: 1}"});
    const fs::path output = folder.path / (state + accumulate);
    return ResultReader(run(loaded, output, quiet).directory / "results.h5").read("/steps/loss").values;
  };
  const std::vector<double> carried = losses("carried", "1"), fresh = losses("zero", "1");
  REQUIRE(carried.size() == 6);
  for (std::size_t i = 0; i < 3; ++i) CHECK(carried[i + 3] == carried[i]);
  CHECK((carried[0] == fresh[0] && carried[1] != fresh[1] && carried[2] != fresh[2]));
  CHECK(losses("carried", "3") == std::vector<double>(6, losses("carried", "3")[0]));
}

TEST_CASE("sampling continues a text with the network of a run") {
  Folder folder;
  Quiet quiet;
  const LoadedExperiment loaded = load({}, text);
  const RunSummary summary = run(loaded, folder.path, quiet);
  const auto sampled = [&](SampleOptions options) {
    options.network = network_path(summary.directory, "best");
    std::string all;
    sample(loaded, registry(), {}, options, [&](std::string_view part) { all += part; });
    return all;
  };
  CHECK(sampled({.length = 6, .temperature = 0, .prime = "bc"}) == "bcäabcäa");
  CHECK(sampled({.length = 5, .temperature = 0.1, .prime = "ä"}) == "äabcäa");
  CHECK(sampled({.length = 50, .temperature = 20, .prime = "a", .seed = 1}) ==
        sampled({.length = 50, .temperature = 20, .prime = "a", .seed = 1}));
  CHECK(sampled({.length = 50, .temperature = 20, .prime = "a", .seed = 1}) !=
        sampled({.length = 50, .temperature = 20, .prime = "a", .seed = 2}));
  CHECK_THROWS_WITH(sampled({.prime = "abö"}), doctest::Contains("does not know the character \"ö\" at byte 3"));
  CHECK_THROWS_WITH(sampled({.prime = ""}), doctest::Contains("--prime"));
  SampleOptions none;
  none.network = network_path(summary.directory, "best");
  CHECK_THROWS_WITH(sample(load(), registry(), {}, none, [](std::string_view) {}), doctest::Contains("adding"));
}

TEST_CASE("the state of a network: parameters and what maps keep beyond them, in memory and in a file") {
  Folder folder;
  const LoadedExperiment loaded =
      load({"model.recurrent.plugin=lie_exponential", "model.recurrent.base=moving", "model.recurrent.rebase_every=2"},
           std::regex_replace(base, std::regex(", reflections: 4|, blocks: .recurrent.U: 10."), ""));
  Session<float> session(loaded, registry(), {});
  const auto step = [&](Session<float>& s, Index number) {
    Batch<float> batch;
    s.task->fill(Split::train, number, batch);
    s.pass(batch, number, {});
    s.updater->step(number, *s.network, s.workers);
  };
  for (Index k = 1; k <= 3; ++k) step(session, k);
  const NetworkState<float> state = session.network->state();
  REQUIRE(state.plugins.contains("recurrent"));
  write_network(folder.path, "best", session.network->layout(), state, 3);
  for (Index k = 4; k <= 6; ++k) step(session, k);
  CHECK(session.network->state().plugins != state.plugins);

  Session<float> other(loaded, registry(), {});
  CHECK(read_network(network_path(folder.path, "best"), *other.network) == 3);
  CHECK(other.network->state().values == state.values);
  CHECK(other.network->state().plugins == state.plugins);
  session.network->restore(state);
  CHECK(session.network->state().plugins == state.plugins);

  const LoadedExperiment wider = load({"model.cell.hidden=9"});
  Session<float> stranger(wider, registry(), {});
  CHECK_THROWS_WITH(read_network(network_path(folder.path, "best"), *stranger.network), doctest::Contains("best.h5"));
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
  run(load({"task.train_sequences=6", "train.batch=7"}), folder.path, quiet);
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
  CHECK_THROWS_WITH(run(load({"model.readout.init=file", "model.readout.file=" + file}), folder.path, quiet),
                    doctest::Contains("model.readout: "));
  CHECK_THROWS_WITH(check_experiment(load({"model.input.init=file", "model.input.file=absent.npy"}), registry(), {}),
                    doctest::Contains("model.input.file: there is no file absent.npy"));
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
