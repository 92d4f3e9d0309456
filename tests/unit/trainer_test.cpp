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
#include "results/record/reader.hpp"
#include "sdk/diagnostics.hpp"
#include "training/checkpoint.hpp"
#include "training/outcome.hpp"
#include "training/sample.hpp"
#include "training/session.hpp"
#include "training/trainer.hpp"
#include "training/watchdog.hpp"

using namespace stiefel;
namespace fs = std::filesystem;

namespace {

Registry& registry() {
  static Registry registry({STIEFEL_PLUGINS, STIEFEL_SOUND_PLUGINS});
  return registry;
}

struct Folder {
  fs::path path = fs::temp_directory_path() / fmt::format("stiefel-trainer-{}-{}", ::getpid(), count++);
  ~Folder() { fs::remove_all(path); }
  static inline int count = 0;
};

struct Quiet final : RunObserver {
  std::vector<std::string> lines;
  std::atomic<int>* raised = nullptr;
  Index raised_at = 5;
  void note(const std::string& line) override { lines.push_back(line); }
  void progress(const Progress& progress) override {
    if (raised && progress.step == raised_at) *raised = SIGTERM;
  }
};

const char* const base = R"(name: small
task: {plugin: adding, length: 12}
model:
  cell: {plugin: elman, hidden: 10, activation: leaky_relu}
  recurrent: {plugin: householder, reflections: 4}
  initial_state: {kind: learned, init: uniform, scale: 0.1}
optimizer: {plugin: adam, rate: 0.01}
train: {batch: 13, steps: 20, evaluate_every: 10}
record: {loss: 1, spectrum: 10, gradient_norms: 10, orthogonality: 10, blocks: {recurrent.U: 10}}
)";

LoadedExperiment load(const std::vector<std::string>& overrides = {}, const std::string& text = base) {
  return load_experiment_text(text, "small", overrides, registry());
}

RunSummary run(const LoadedExperiment& loaded, const fs::path& output, Quiet& observer,
               const std::atomic<int>* signal = nullptr) {
  RunOptions options;
  options.output = output;
  options.signal = signal;
  return run_experiment(loaded, registry(), options, observer);
}

/// Everything that must not depend on threads or on when it was computed.
std::vector<double> fingerprint(const fs::path& directory) {
  std::vector<double> values;
  const ResultReader results(directory / "results.h5");
  for (const char* path :
       {"/steps/loss", "/steps/grad_norm", "/epochs/valid_loss", "/spectrum/recurrent/singular_values",
        "/gradient/hidden_grad_norm", "/gradient/last_step_grad_norm", "/gradient/hidden_norm",
        "/blocks/recurrent_u/values", "/final/test_loss"}) {
    const Array array = results.read(path);
    values.insert(values.end(), array.values.begin(), array.values.end());
  }
  const ResultReader weights(directory / "checkpoints/last.h5");
  for (const std::string& name : weights.children("/weights")) {
    const Array array = weights.read("/weights/" + name);
    values.insert(values.end(), array.values.begin(), array.values.end());
  }
  return values;
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
  Quiet quiet, stopping;
  std::atomic<int> signal{0};
  stopping.raised = &signal;
  const fs::path directory = run(load(), folder.path, stopping, &signal).directory;
  CHECK_THROWS_WITH(go_on(load({"train.steps=24"}), directory, quiet),
                    doctest::Contains("train.steps: 20 before, now 24"));
  CHECK_THROWS_WITH(go_on(load({"train.steps=24"}), directory, quiet), doctest::Contains("--allow-change train.steps"));
  CHECK(go_on(load({"train.steps=24", "threads=2"}), directory, quiet, {"train.steps"}).state == "finished");
  CHECK(ResultReader(directory / "results.h5").read("/steps/step").values.back() == 24);
  CHECK_THROWS_WITH(go_on(load({"train.steps=28"}), directory, quiet, {"all"}),
                    doctest::Contains("is finished and cannot be changed"));
}

TEST_CASE("an allowed change stays when the run is resumed again") {
  Folder folder;
  Quiet quiet, stopping;
  std::atomic<int> signal{0};
  stopping.raised = &signal;
  const fs::path directory = run(load(), folder.path, stopping, &signal).directory;
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
  Quiet quiet, stopping;
  std::atomic<int> signal{0};
  stopping.raised = &signal;
  const fs::path directory = run(load(), folder.path, stopping, &signal).directory;
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

TEST_CASE("schedules") {
  Schedule constant({"constant", 0.5, 10, 0}, 50), step({"step", 0.5, 10, 0}, 50), plateau({"plateau", 0.3, 1, 1}, 50);
  CHECK(constant.factor(1000) == 1);
  CHECK(step.factor(10) == 1);
  CHECK(step.factor(11) == 0.5);
  CHECK(step.factor(31) == 0.125);
  plateau.evaluated(false);
  CHECK(plateau.factor(1) == 1);
  plateau.evaluated(false);
  CHECK(plateau.factor(1) == doctest::Approx(0.3));
  plateau.evaluated(true);
  plateau.evaluated(false);
  CHECK(plateau.factor(1) == doctest::Approx(0.3));
}

TEST_CASE("schedules by their formulas: exponential, cosine, one cycle") {
  const Schedule exponential({.kind = "exponential", .factor = 0.25, .every = 10}, 100);
  CHECK(exponential.factor(1) == 1);
  CHECK(exponential.factor(6) == doctest::Approx(0.5).epsilon(1e-15));
  CHECK(exponential.factor(11) == 0.25);
  CHECK(exponential.factor(26) == doctest::Approx(1.0 / 32).epsilon(1e-15));

  const Schedule cosine({.kind = "cosine", .last_fraction = 0.1}, 12);
  CHECK(cosine.factor(1) == 1);
  CHECK(cosine.factor(4) == doctest::Approx(0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2).epsilon(1e-15));
  CHECK(cosine.factor(5) == doctest::Approx(0.1 + 0.9 * 0.75).epsilon(1e-15));
  CHECK(cosine.factor(7) == doctest::Approx(0.55).epsilon(1e-15));
  CHECK(cosine.factor(9) == doctest::Approx(0.1 + 0.9 * 0.25).epsilon(1e-15));
  CHECK(cosine.factor(13) == doctest::Approx(0.1).epsilon(1e-15));
  CHECK(cosine.factor(20) == cosine.factor(13));

  const Schedule cycle({.kind = "one_cycle", .last_fraction = 0.01, .start = 0.2, .rise = 0.4}, 100);
  const std::vector<std::pair<Index, double>> points = {{1, 0.2},  {21, 0.6},   {41, 1},    {51, 0.8},
                                                        {81, 0.2}, {91, 0.105}, {101, 0.01}};
  for (const auto& [at, factor] : points) CHECK(cycle.factor(at) == doctest::Approx(factor).epsilon(1e-14));
  const Schedule triangle({.kind = "one_cycle", .start = 0.2, .rise = 0.5}, 10);
  CHECK(triangle.factor(6) == 1);
  CHECK(triangle.factor(10) == doctest::Approx(0.2 + 0.8 / 5).epsilon(1e-15));
  CHECK(triangle.factor(11) == 0.2);
}

TEST_CASE("schedules: a warmup rises linearly to the rate, then every schedule is as without it") {
  for (const char* kind : {"constant", "step", "exponential", "cosine"}) {
    CAPTURE(kind);
    const ScheduleOptions options{.kind = kind, .factor = 0.5, .every = 3, .last_fraction = 0.1};
    ScheduleOptions warm = options;
    warm.warmup = 8;
    const Schedule with(warm, 28), without(options, 20);
    for (Index k = 1; k <= 8; ++k) CHECK(with.factor(k) == double(k) / 8);
    for (Index k = 1; k <= 20; ++k) CHECK(with.factor(8 + k) == without.factor(k));
  }
  Schedule plateau({.kind = "plateau", .factor = 0.5, .patience = 0, .warmup = 4}, 20);
  plateau.evaluated(false);
  CHECK(plateau.factor(2) == 0.25);
  CHECK(plateau.factor(9) == 0.5);
}

TEST_CASE("groups: the first match moves a block, frozen blocks stay, a block without a group is an error") {
  const std::string text = R"(name: groups
scalar: float64
task: {plugin: adding, length: 6}
model: {cell: {plugin: elman, hidden: 5}, recurrent: {plugin: scaled_cayley, rho: 2}}
optimizer:
  - {blocks: "recurrent.*", plugin: frozen}
  - {blocks: "readout.*", plugin: sgd, rate: 0.5}
  - {blocks: "*", plugin: sgd, rate: 0.25}
train: {batch: 7, steps: 1}
)";
  const LoadedExperiment loaded = load({}, text);
  Session<double> session(loaded, registry(), {});
  Batch<double> batch;
  session.task->fill(Split::train, 0, batch);
  session.pass(batch, 1, {});
  const std::vector<double> before = session.network->values();
  session.updater->step(1, *session.network, session.workers);
  const Layout& layout = session.network->layout();
  for (Index i = 0; i < layout.count(); ++i) {
    const std::string& name = layout.block(i).name;
    const double rate = name.starts_with("recurrent") ? 0 : name.starts_with("readout") ? 0.5 : 0.25;
    for (Index k = layout.offset(i); k < layout.offset(i + 1); ++k)
      CHECK(before[std::size_t(k)] - session.network->values()[std::size_t(k)] ==
            doctest::Approx(rate * session.network->gradient().data()[k]).epsilon(1e-12));
  }
  CHECK_THROWS_WITH_AS(
      Session<double>(load({"optimizer.2.blocks=input.*", "model.initial_state.kind=learned"}, text), registry(), {}),
      doctest::Contains("no optimizer moves the block initial_state"), Error);
  CHECK_THROWS_WITH_AS(Session<double>(load({"optimizer.1.blocks=recurrent.*"}, text), registry(), {}),
                       doctest::Contains("no block is left"), Error);
}

TEST_CASE("a block on a manifold needs an optimizer that can move it") {
  const std::string text = R"(name: manifold
scalar: float64
task: {plugin: adding, length: 6}
model: {cell: {plugin: elman, hidden: 5}, recurrent: orthogonal_block}
optimizer: {plugin: adam, rate: 0.1}
train: {batch: 7, steps: 1}
)";
  for (const std::string plugin : {"adam", "rmsprop", "sgd"}) {
    const auto refused = [&](const std::string& sentence) {
      CHECK_THROWS_WITH_AS(Session<double>(load({"optimizer.plugin=" + plugin}, text), registry(), {}),
                           doctest::Contains(sentence.c_str()), Error);
    };
    refused("the block recurrent.M lies on the orthogonal manifold and " + plugin + " cannot move it");
    refused("plugin: geodesic_cayley}");
  }
}

TEST_CASE("weight decay: of a block, and of the composite W") {
  for (const char* map : {"{plugin: householder, reflections: 2, normalise_columns: false, route: structured}",
                          "{plugin: scaled_cayley, rho: 2}", "dense"}) {
    const std::string text = fmt::format(R"(name: decay
scalar: float64
task: {{plugin: adding, length: 6}}
model: {{cell: {{plugin: elman, hidden: 5, activation: tanh}}, recurrent: {}}}
optimizer: {{plugin: sgd, rate: 1, weight_decay: 0.3, composite: true}}
train: {{batch: 7, steps: 1}}
)",
                                         map);
    const LoadedExperiment with = load({}, text), without = load({"optimizer.weight_decay=0"}, text);
    Session<double> a(with, registry(), {}), b(without, registry(), {});
    Batch<double> batch;
    a.task->fill(Split::train, 0, batch);
    a.pass(batch, 1, {}), b.pass(batch, 1, {});
    a.updater->step(1, *a.network, a.workers), b.updater->step(1, *b.network, b.workers);
    const Layout& layout = a.network->layout();
    Session<double> c(without, registry(), {});
    const auto composite = [&] {
      c.network->refresh();
      const Matrix<double> W = matrix_of(*(*c.network->model().maps)[0].plugin());
      return 0.3 * W.squaredNorm();
    };
    for (Index i = 0; i < layout.count(); ++i)
      for (Index k = 0; k < layout.block(i).size; ++k) {
        double& x = c.network->theta()[i][std::size_t(k)];
        double expected = 2 * 0.3 * x;
        if (layout.block(i).name.starts_with("recurrent")) {
          const double kept = x;
          x = kept + 1e-5;
          const double high = composite();
          x = kept - 1e-5;
          expected = (high - composite()) / 2e-5;
          x = kept;
        }
        CHECK(a.network->gradient()[i][std::size_t(k)] - b.network->gradient()[i][std::size_t(k)] ==
              doctest::Approx(expected).epsilon(1e-7).scale(1e-3));
      }
  }
}

namespace {
// The groups of the files of Vorontsov et al.: the first blocks of the map belong to a group without decay.
constexpr const char* factorised = R"(name: composite
scalar: float64
task: {plugin: adding, length: 6}
model: {cell: {plugin: elman, hidden: 5, activation: tanh}, recurrent: {plugin: svd_margin, margin: 0.5}}
optimizer:
  - {blocks: "recurrent.[UV]", plugin: geodesic_cayley, rate: 1e-6}
  - {blocks: "recurrent.*", plugin: rmsprop, rate: 1e-4, weight_decay: 0.3, composite: true}
  - {blocks: "*", plugin: rmsprop, rate: 1e-4, weight_decay: 1e-4}
train: {batch: 7, steps: 1}
)";
}  // namespace

TEST_CASE("composite decay reaches the map whichever of its blocks asks for it") {
  const LoadedExperiment decaying = load({}, factorised), plain = load({"optimizer.1.weight_decay=0"}, factorised);
  Session<double> with(decaying, registry(), {}), without(plain, registry(), {});
  Batch<double> batch;
  with.task->fill(Split::train, 0, batch);
  for (Session<double>* session : {&with, &without}) {
    const Layout& layout = session->network->layout();
    for (Index i = 0; i < layout.count(); ++i)
      if (layout.block(i).name == "recurrent.p")
        for (Index k = 0; k < 5; ++k) session->network->theta()[i][std::size_t(k)] = 0.2 * double(k) - 0.3;
    session->network->refresh();
    session->pass(batch, 1, {});
    session->updater->step(1, *session->network, session->workers);
  }
  const Layout& layout = with.network->layout();
  int compared = 0;
  for (Index i = 0; i < layout.count(); ++i) {
    if (layout.block(i).name != "recurrent.p") continue;
    for (Index k = 0; k < 5; ++k, ++compared) {  // λ Σ s² with s = 1 + m tanh(p/2)
      const double p = 0.2 * double(k) - 0.3, t = std::tanh(p / 2), s = 1 + 0.5 * t;
      CHECK(with.network->gradient()[i][std::size_t(k)] - without.network->gradient()[i][std::size_t(k)] ==
            doctest::Approx(0.3 * 2 * s * 0.25 * (1 - t * t)).epsilon(1e-12));
    }
  }
  CHECK(compared == 5);
}

TEST_CASE("decoupled weight decay shrinks the parameters and leaves the gradient alone") {
  const std::string text = R"(name: decoupled
scalar: float64
task: {plugin: adding, length: 6}
model: {cell: {plugin: elman, hidden: 5}, recurrent: dense}
optimizer: {plugin: adam, decoupled: true, rate: 0.02, weight_decay: 0.3}
train: {batch: 7, steps: 1}
)";
  const LoadedExperiment decaying = load({}, text), plain = load({"optimizer.weight_decay=0"}, text);
  Session<double> with(decaying, registry(), {}), without(plain, registry(), {});
  const std::vector<double> start = with.network->values();
  Batch<double> batch;
  with.task->fill(Split::train, 0, batch);
  for (Session<double>* session : {&with, &without}) {
    session->pass(batch, 1, {});
    session->updater->step(1, *session->network, session->workers);
  }
  for (std::size_t i = 0; i < start.size(); ++i)
    CHECK(with.network->values()[i] ==
          doctest::Approx(without.network->values()[i] - 0.02 * 0.3 * start[i]).epsilon(1e-13));
  const Blocks<double> one = with.network->gradient(), other = without.network->gradient();
  for (Index b = 0; b < one.count(); ++b) CHECK(as_vector(one[b]) == as_vector(other[b]));

  CHECK_THROWS_WITH_AS(Session<double>(load({"optimizer.composite=true"}, text), registry(), {}),
                       doctest::Contains("adam decouples the weight decay from the loss"), Error);
}

TEST_CASE("a cell projects its parameters after a step that moves them, and knows the length of the sequences") {
  const std::string text = R"(name: projected
scalar: float64
task: {plugin: adding, length: 12}
model: {cell: {plugin: indrnn, hidden: 6, gamma: 1.5}}
optimizer: [{blocks: u, plugin: sgd, rate: 1000}, {plugin: sgd, rate: 0.01}]
train: {batch: 7, steps: 1}
)";
  const double bound = std::pow(1.5, 1.0 / 12);
  const auto after_a_step = [&](const std::vector<std::string>& overrides) {
    const LoadedExperiment loaded = load(overrides, text);
    Session<double> session(loaded, registry(), {});
    const Index u = session.network->layout().find("u");
    as_vector(session.network->theta()[u]).setConstant(2);
    session.network->refresh();
    Batch<double> batch;
    session.task->fill(Split::train, 0, batch);
    session.pass(batch, 1, {});
    session.updater->step(1, *session.network, session.workers);
    const std::span<double> values = session.network->theta()[u];
    return std::vector<double>(values.begin(), values.end());
  };
  for (const double u : after_a_step({})) CHECK(std::abs(u) == doctest::Approx(bound).epsilon(1e-14));
  for (const double u : after_a_step({"optimizer=[{blocks: u, plugin: frozen}, {plugin: sgd, rate: 0.01}]"}))
    CHECK(u == 2);
}

TEST_CASE("model.recurrent is there exactly when the cell has a map that needs it") {
  const auto fault = [](const std::string& model) {
    const std::string text = "name: maps\ntask: {plugin: adding, length: 6}\nmodel: " + model +
                             "\noptimizer: sgd\ntrain: {batch: 7, steps: 1}\n";
    try {
      const LoadedExperiment loaded = load({}, text);
      CHECK(loaded.resolved_yaml.find("recurrent:") == (loaded.experiment.model.recurrent.entry
                                                            ? loaded.resolved_yaml.find("  recurrent:") + 2
                                                            : std::string::npos));
      check_experiment(loaded, registry(), {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(fault("{cell: {plugin: lru, hidden: 4}}") == "");
  CHECK(fault("{cell: {plugin: lru, hidden: 4}, recurrent: dense}") ==
        "small:3:52: model.recurrent: the cell lru has no recurrent map; remove model.recurrent");
  CHECK(fault("{cell: {plugin: elman, hidden: 4}, recurrent: dense}") == "");
  CHECK(fault("{cell: {plugin: elman, hidden: 4}}")
            .starts_with("small:3:8: model.recurrent is required: {plugin: name} of a parametrisation; choose from"));
  CHECK(fault("{cell: {plugin: cornn, hidden: 4}, maps: {position: dense, velocity: dense}}") == "");
  CHECK(fault("{cell: {plugin: cornn, hidden: 4}, maps: {position: dense}}").find("model.recurrent is required") !=
        std::string::npos);
  CHECK(fault("{cell: {plugin: lru, hidden: 4}, maps: {forget: dense}}")
            .ends_with("model.maps.forget: the cell lru has no maps"));
}

TEST_CASE("composite decay without a map, and two decays of one map, are refused with their place") {
  const auto refused = [&](const std::vector<std::string>& overrides, const std::string& sentence) {
    CHECK_THROWS_WITH_AS(Session<double>(load(overrides, factorised), registry(), {}),
                         doctest::Contains(sentence.c_str()), Error);
  };
  refused({"optimizer.2.composite=true"},
          "`composite: true` needs a block of a recurrent map, and `blocks: \"*\"` has none; remove it");
  refused({"optimizer.2.composite=true"}, ":8:5: optimizer.2: ");
  refused({"optimizer.0.weight_decay=0.1"}, "the map of recurrent.U has two weight decays");
  refused({"optimizer.0.weight_decay=0.1", "optimizer.0.composite=true"},
          "the map of recurrent.p has two weight decays");
  refused({"optimizer.0.composite=true"}, ":7:5: optimizer.1: the map of recurrent.p has two weight decays");
  Session<double>(load({"optimizer.0.composite=true", "optimizer.0.weight_decay=0.3"}, factorised), registry(), {});
}

TEST_CASE("clipping: elementwise, of the norm, of the message") {
  for (const char* clip : {"{kind: elementwise, bound: 0.001}", "{kind: norm, bound: 0.001}"}) {
    const LoadedExperiment loaded = load({std::string("train.clip=") + clip});
    Session<float> session(loaded, registry(), {});
    Batch<float> batch;
    session.task->fill(Split::train, 0, batch);
    session.pass(batch, 1, {});
    const UpdateNorms norms = session.updater->step(1, *session.network, session.workers);
    CHECK(norms.gradient > 0.001);
    double largest = 0, squares = 0;
    for (Index i = 0; i < session.network->layout().count(); ++i)
      for (float g : session.network->gradient()[i])
        largest = std::max(largest, std::abs(double(g))), squares += double(g) * double(g);
    if (std::string(clip).find("norm") == std::string::npos)
      CHECK(largest == doctest::Approx(0.001));
    else
      CHECK(std::sqrt(squares) == doctest::Approx(0.001).epsilon(1e-4));
    CHECK(norms.clipped == doctest::Approx(std::sqrt(squares)).epsilon(1e-4));
  }
  const LoadedExperiment clipped = load({"train.message_clip=1e-6"}), free = load();
  Session<float> a(clipped, registry(), {}), b(free, registry(), {});
  Batch<float> batch;
  a.task->fill(Split::train, 0, batch);
  a.pass(batch, 1, {}), b.pass(batch, 1, {});
  const Index bias = a.network->layout().find("input.bias");
  for (float g : a.network->gradient()[bias]) CHECK(std::abs(g) <= 1e-6f * 13 * 12 * 1.001f);
  CHECK(as_vector(b.network->gradient()[bias]).norm() > 10 * as_vector(a.network->gradient()[bias]).norm());
}

namespace {

/// One batch that holds all sequences.
template <class S> Batch<S> together(const TaskShape& shape, std::vector<Batch<S>>& parts) {
  Batch<S> all;
  all.resize(shape, Index(parts.size()) * parts[0].sequences(), shape.steps);
  Index c = 0;
  for (Batch<S>& part : parts)
    for (Index b = 0; b < part.sequences(); ++b, ++c) {
      all.length(c) = part.length(b);
      for (Index t = 0; t < shape.steps; ++t) {
        if (shape.input == InputKind::dense)
          std::ranges::copy(part.input(t, b), all.input(t, c).begin());
        else
          all.symbol(t, c) = part.symbol(t, b);
        if (shape.labels)
          all.label(t, c) = part.label(t, b);
        else
          std::ranges::copy(part.target(t, b), all.target(t, c).begin());
        all.weight(t, c) = part.weight(t, b);
      }
    }
  return all;
}

std::vector<double> gradient_of(Session<double>& session) {
  const Blocks<double> blocks = session.network->gradient();
  return {blocks.data(), blocks.data() + session.network->layout().size()};
}

void check_close(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-11).scale(1e-2));
}

}  // namespace

TEST_CASE("accumulated batches are one batch: gradient, loss, penalty and norms are those of all their sequences") {
  for (const char* task : {"{plugin: adding, length: 12}", "{plugin: round_text}"}) {
    CAPTURE(task);
    const LoadedExperiment loaded = load({}, fmt::format(R"(name: accumulated
scalar: float64
task: {}
model: {{cell: {{plugin: elman, hidden: 6, activation: tanh}}, recurrent: {{plugin: dense, soft_orthogonality: 0.1}}}}
optimizer: {{plugin: sgd, rate: 1, weight_decay: 0.3, composite: true}}
train: {{batch: 4, accumulate: 3, steps: 1}}
)",
                                                         task));
    Session<double> session(loaded, registry(), {});
    std::vector<Batch<double>> batches(3);
    for (Index i = 0; i < 3; ++i) session.task->fill(Split::train, i, batches[std::size_t(i)]);
    for (Index b = 0; b < 4; ++b) {
      batches[0].length(b) -= 3;
      for (Index t = 0; t < 12; ++t) batches[2].weight(t, b) = 0.25 * double(b);
    }
    const PassRequest request{.hidden_norms = true, .gradient_norms = true};

    std::vector<double> mean(std::size_t(session.network->layout().size()));
    double weight = 0, loss = 0;
    for (const Batch<double>& batch : batches) {
      const PassResult part = session.pass(batch, 1, request);
      weight += part.weight;
      loss += part.weight * part.loss;
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += part.weight * gradient_of(session)[i];
    }
    for (double& x : mean) x /= weight;

    PassResult sum = session.pass(batches[0], 1, request);
    for (std::size_t i : {1, 2}) sum = session.network->train_more(batches[i], session.workers, request, sum);
    CHECK(sum.weight == weight);
    CHECK(sum.loss == doctest::Approx(loss / weight).epsilon(1e-12));
    check_close(gradient_of(session), mean);

    const PassResult whole = session.pass(together(session.task->shape(), batches), 1, request);
    CHECK(sum.weight == whole.weight);
    CHECK(sum.last_weight == whole.last_weight);
    CHECK(sum.loss == doctest::Approx(whole.loss).epsilon(1e-12));
    CHECK(sum.penalty == whole.penalty);
    CHECK(sum.penalty > 0);
    check_close(mean, gradient_of(session));
    check_close(sum.hidden_norm, whole.hidden_norm);
    check_close(sum.gradient_norm, whole.gradient_norm);
    check_close(sum.last_gradient_norm, whole.last_gradient_norm);
  }
}

TEST_CASE("a batch without weight adds nothing to those before it") {
  const LoadedExperiment loaded = load({"scalar=float64", "train.accumulate=2"});
  Session<double> session(loaded, registry(), {});
  std::vector<Batch<double>> batches(2);
  for (Index i = 0; i < 2; ++i) session.task->fill(Split::train, i, batches[std::size_t(i)]);
  for (Index b = 0; b < 13; ++b) batches[1].weight(0, b) = 0;
  const PassResult alone = session.pass(batches[0], 1, {});
  const std::vector<double> gradient = gradient_of(session);
  CHECK(session.network->train_more(batches[1], session.workers, {}, alone).loss == alone.loss);
  CHECK(gradient_of(session) == gradient);
  const PassResult nothing = session.pass(batches[1], 1, {});
  CHECK(session.network->train_more(batches[0], session.workers, {}, nothing).loss == alone.loss);
  check_close(gradient_of(session), gradient);
}

TEST_CASE("a step takes train.accumulate batches, with the same bits for any number of threads") {
  const std::vector<std::string> three{"train.batch=4", "train.accumulate=3"};
  std::vector<std::vector<double>> prints;
  for (const char* threads : {"threads=1", "threads=2", "threads=8"}) {
    Folder folder;
    Quiet quiet;
    const fs::path run_folder = run(load({three[0], three[1], threads}), folder.path, quiet).directory;
    prints.push_back(fingerprint(run_folder));
    CHECK(ResultReader(run_folder / "results.h5").read("/epochs/epoch").values == std::vector<double>{0.3, 0.6});
  }
  CHECK(prints[1] == prints[0]);
  CHECK(prints[2] == prints[0]);

  const LoadedExperiment loaded = load(three);
  Session<float> session(loaded, registry(), {});
  Batch<float> batch;
  for (Index step = 1; step <= 20; ++step) {
    PassResult pass;
    for (Index k = 0; k < 3; ++k) {
      session.task->fill(Split::train, 3 * (step - 1) + k, batch);
      pass = k == 0 ? session.pass(batch, step, {}) : session.network->train_more(batch, session.workers, {}, pass);
    }
    CHECK(pass.loss == prints[0][std::size_t(step - 1)]);
    session.updater->step(step, *session.network, session.workers);
  }
  CHECK(session.total_steps() == 20);
  const LoadedExperiment epochs =
      load({"train.accumulate=3", "train.steps=0", "train.epochs=2", "train.evaluate_every=0"});
  const Session<float> counted(epochs, registry(), {}, Extent::sizes);
  CHECK(counted.batches(Split::train) == 100);
  CHECK(counted.total_steps() == 67);
  CHECK(counted.evaluation_period() == 34);
}

TEST_CASE("averaged parameters: their mean with decaying weights is evaluated and saved; training does not see it") {
  const std::vector<std::string> dense{"scalar=float64", "model.recurrent=dense", "record.blocks={}"};
  const auto averaged = [&](std::vector<std::string> overrides) {
    overrides.insert(overrides.begin(), dense.begin(), dense.end());
    return load(overrides);
  };
  Folder folder;
  Quiet quiet;
  const LoadedExperiment with = averaged({"train.average=0.8"}), without = averaged({});
  const fs::path directory = run(with, folder.path, quiet).directory,
                 plain = run(without, folder.path, quiet).directory;
  const ResultReader results(directory / "results.h5"), plain_results(plain / "results.h5");
  CHECK(results.read("/steps/loss").values == plain_results.read("/steps/loss").values);
  CHECK(results.read("/epochs/valid_loss").values != plain_results.read("/epochs/valid_loss").values);

  Session<double> session(with, registry(), {});
  std::map<Index, std::vector<double>> means;
  std::vector<double> sum(session.network->values().size());
  Batch<double> batch;
  for (Index step = 1; step <= 20; ++step) {
    session.task->fill(Split::train, step - 1, batch);
    session.pass(batch, step, {});
    session.updater->step(step, *session.network, session.workers);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = 0.8 * sum[i] + session.network->values()[i];
    means[step] = sum;
    for (double& x : means[step]) x *= (1 - 0.8) / (1 - std::pow(0.8, double(step)));
  }
  CHECK(means[20] != session.network->values());
  Session<double> saved(with, registry(), {});
  for (const char* which : {"best", "last"}) {
    const Index step = read_network(network_path(directory, which), *saved.network);
    check_close(saved.network->values(), means.at(step));
  }
  Watchdog unwatched(0, [] {});
  CHECK(saved.evaluate(Split::validation, unwatched, {})[0] == results.read("/epochs/valid_loss").values.back());
  session.updater->use_average(*session.network);
  CHECK(session.network->values() == saved.network->values());
}

TEST_CASE("averaged parameters: blocks on manifolds and maps with a state of their own stay; projections are applied") {
  struct Case {
    const char *map, *plugin, *block;
    bool stays;
  };
  for (const Case& c : {Case{"orthogonal_block", "geodesic_cayley", "recurrent.M", true},
                        Case{"{plugin: lie_exponential, base: moving, rebase_every: 7}", "adam", "recurrent.A", true},
                        Case{"{plugin: householder, reflections: 4}", "adam", "recurrent.U", false}}) {
    CAPTURE(c.map);
    const LoadedExperiment loaded = load({}, fmt::format(R"(name: averaged
scalar: float64
task: {{plugin: adding, length: 12}}
model: {{cell: {{plugin: elman, hidden: 10}}, recurrent: {}}}
optimizer: [{{blocks: "recurrent.*", plugin: {}, rate: 0.1}}, {{plugin: adam, rate: 0.01}}]
train: {{batch: 13, steps: 1, average: 0.9}}
)",
                                                         c.map, c.plugin));
    Session<double> session(loaded, registry(), {});
    Batch<double> batch;
    for (Index step = 1; step <= 10; ++step) {
      session.task->fill(Split::train, step - 1, batch);
      session.pass(batch, step, {});
      session.updater->step(step, *session.network, session.workers);
    }
    const NetworkState<double> trained = session.network->state();
    session.updater->use_average(*session.network);
    CHECK(session.network->state().plugins == trained.plugins);
    const Layout& layout = session.network->layout();
    for (const char* block : {c.block, "input.weight"}) {
      const Index i = layout.find(block);
      const std::span<const double> before = layout.all(trained.values.data())[i], after = session.network->theta()[i];
      CHECK(std::ranges::equal(before, after) == (c.stays && block == std::string(c.block)));
    }
    if (c.stays) continue;
    const std::vector<double> projected = session.network->values();
    (*session.network->model().maps)[0].plugin()->after_step(
        session.network->model().layout.part(session.network->values().data(), session.network->model().map_blocks[0]));
    for (std::size_t i = 0; i < projected.size(); ++i)
      CHECK(session.network->values()[i] == doctest::Approx(projected[i]).epsilon(1e-14));
  }
}

TEST_CASE("weight noise: the gradient is taken beside the parameters, which are kept") {
  const LoadedExperiment noisy = load({"train.weight_noise=0.05"}), clean = load();
  Session<float> a(noisy, registry(), {}), b(noisy, registry(), {}), c(clean, registry(), {});
  Batch<float> batch;
  a.task->fill(Split::train, 0, batch);
  const std::vector<float> before = a.network->values();
  const double first = a.pass(batch, 1, {}).loss;
  CHECK(a.network->values() == before);
  CHECK(b.pass(batch, 1, {}).loss == first);
  CHECK(a.pass(batch, 2, {}).loss != first);
  CHECK(c.pass(batch, 1, {}).loss != first);
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

TEST_CASE("a dry run names parameters, memory and time") {
  const DryRun dry = dry_run(load(), registry(), {});
  std::string text;
  for (const std::string& line : dry.lines) text += line + "\n";
  for (const char* word :
       {"parameters 85 in 6 blocks", "recurrent.U", " route", "first loss", "memory", "for 20 steps"})
    CHECK(text.find(word) != text.npos);
}
