// Runs from start to end: what is stored, when they stop, what moves, and that the same seed gives the same bits.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <regex>
#include <thread>

#include "base/file_content.hpp"
#include "record/reader.hpp"
#include "sdk/diagnostics.hpp"
#include "training/checkpoint.hpp"
#include "training/own_sum.hpp"
#include "training/run.hpp"
#include "training/sample.hpp"
#include "training/selection.hpp"
#include "training/session.hpp"

#include "scratch.hpp"
#include "small_runs.hpp"

using namespace stiefel;
using namespace stiefel::small_runs;
using scratch::Folder;
namespace fs = std::filesystem;

namespace {

const char* const text = R"(name: text
task: {plugin: round_text}
model:
  cell: {plugin: elman, hidden: 8, activation: tanh}
  recurrent: {plugin: dense}
  initial_state: {kind: learned}
optimizer: {plugin: adam, rate: 0.03}
train: {batch: 13, steps: 60, evaluate_every: 20}
)";

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
  const std::vector<double> losses = results.read("/steps/loss").values,
                            means = results.read("/epochs/train_loss").values;
  for (const Index e : {0, 1})
    CHECK(means.at(std::size_t(e)) ==
          doctest::Approx(std::accumulate(losses.begin() + 10 * e, losses.begin() + 10 * (e + 1), 0.) / 10)
              .epsilon(1e-12));
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

TEST_CASE("columns of a spectrum follow from its singular values") {
  Folder folder;
  Quiet quiet;
  const ResultReader results(run(load({"model.recurrent=dense", "record.blocks=null"}), folder.path, quiet).directory /
                             "results.h5");
  const auto read = [&](const std::string& name) { return results.read("/spectrum/recurrent/" + name).values; };
  const std::vector<double> all = read("singular_values");
  REQUIRE(all.size() == 30);
  for (std::size_t row = 0; row < 3; ++row) {
    const Eigen::Map<const Eigen::ArrayXd> s(&all[10 * row], 10);
    CHECK(s[0] > 1.1 * s[9]);
    CHECK((read("singular_max")[row] == s[0] && read("singular_min")[row] == s[9]));
    CHECK(read("singular_mean")[row] == doctest::Approx(s.mean()).epsilon(1e-12));
    CHECK(read("singular_std")[row] == doctest::Approx(std::sqrt((s - s.mean()).square().mean())).epsilon(1e-12));
    CHECK(read("condition_number")[row] == doctest::Approx(s[0] / s[9]).epsilon(1e-12));
    CHECK(read("log_abs_det")[row] == doctest::Approx(s.log().sum()).epsilon(1e-12));
  }
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

TEST_CASE("initial values that are not finite are a divergence before the first step") {
  Folder folder;
  Quiet quiet;
  const RunSummary summary = run(
      load({"model.recurrent={plugin: dense, init: constant, scale: 1e300}", "record.blocks={}"}), folder.path, quiet);
  CHECK(summary.state == "diverged");
  CHECK(summary.message.starts_with("diverged at step 0: the initial values of recurrent.W are not all finite"));
  CHECK(summary.message.find("learning rate") == std::string::npos);
  CHECK(ResultReader(summary.directory / "results.h5").text_attribute("/", "state") == "diverged");
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
  CHECK(kept({"checkpoint.every=0", "checkpoint.minutes=1e-9", "checkpoint.keep=1", "seed=4"}) ==
        std::vector<std::string>{"best.h5", "index.json", "last.h5", "step_00000019.h5"});
  CHECK(kept({"checkpoint.every=0", "checkpoint.minutes=1", "seed=5"}) ==
        std::vector<std::string>{"best.h5", "index.json", "last.h5"});
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
  const auto end = [&](const char* steps) {
    return run(load({"optimizer.rate=1e-30", steps, "train.evaluate_every=5", "train.patience=3", "record.loss=6",
                     "record.spectrum=7", "record.blocks={recurrent.U: 8, readout.weight: 0}"}),
               folder.path, quiet);
  };
  const RunSummary summary = end("train.steps=100");
  CHECK(summary.state == "finished");
  const ResultReader results(summary.directory / "results.h5");
  CHECK(results.read("/epochs/step").values == std::vector<double>{5, 10, 15, 20});
  CHECK(results.read("/epochs/is_best").values == std::vector<double>{1, 0, 0, 0});
  CHECK(results.read("/final/step").values == std::vector<double>{5});
  // The last step has the rows that it has when it is known to be the last one.
  CHECK(results.read("/steps/step").values == std::vector<double>{1, 6, 12, 18, 20});
  CHECK(results.read("/spectrum/recurrent/snapshot").values == std::vector<double>{0, 7, 14, 20});
  CHECK(results.read("/blocks/recurrent_u/snapshot").values == std::vector<double>{0, 8, 16, 20});
  CHECK(!results.exists("/blocks/readout_weight"));
  const ResultReader known(end("train.steps=20").directory / "results.h5");
  for (const char* path : {"/steps/loss", "/steps/grad_norm", "/spectrum/recurrent/singular_values",
                           "/blocks/recurrent_u/values", "/epochs/valid_loss"}) {
    CAPTURE(path);
    CHECK(results.read(path).values == known.read(path).values);
  }
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

TEST_CASE("patience counts from the last improvement; a target of what is to be high is reached from below") {
  TrainOptions train;
  train.patience = 2, train.target = 0.9, train.select = "accuracy";
  Selection selection(train, {{"loss"}, {"accuracy", true}});
  for (const auto& [accuracy, reason] : std::vector<std::pair<double, std::string>>{
           {0.1, ""}, {0.1, ""}, {0.2, ""}, {0.15, ""}, {0.2, "2 evaluations without improvement"}}) {
    selection.take(1, {1, accuracy});
    CHECK(selection.reason_to_stop() == reason);
  }
  selection.take(2, {1, 0.9});
  CHECK(selection.reason_to_stop() == "accuracy is 0.9, which reaches train.target");
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

TEST_CASE("a task reports on the best model: means in /outcome, files next to the results") {
  Folder folder;
  Quiet quiet;
  const RunSummary summary = run(load({}, text), folder.path, quiet);
  const ResultReader results(summary.directory / "results.h5");
  CHECK(results.read("/outcome/right").values == std::vector<double>{1});
  CHECK(results.read("/outcome/padding").values == std::vector<double>{0});
  CHECK(results.read("/outcome/step").values == results.read("/final/step").values);
  std::ifstream file(summary.directory / "outcome/written_0.txt");
  std::string line;
  for (int b = 0; b < 10; ++b) {
    REQUIRE(std::getline(file, line));
    CHECK((line + line).find("abcäabcä") != std::string::npos);
  }
}

TEST_CASE("many large rows are published before the next evaluation") {
  struct Watcher final : RunObserver {
    fs::path folder;
    double published = 0;
    void note(const std::string&) override {}
    void progress(const Progress& progress) override {
      if (progress.step != 79) return;
      const fs::path run = fs::directory_iterator(folder / "small")->path();
      const auto committed = [&] { return ResultReader(run / "results.h5").number_attribute("/", "committed_step"); };
      for (int k = 0; k < 600 && published < 60; ++k) {  // another thread writes
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        published = committed();
      }
    }
  } watcher;
  Folder folder;
  watcher.folder = folder.path;
  const LoadedExperiment loaded =
      load({"model={cell: {plugin: elman, hidden: 512}, recurrent: {plugin: dense, init: identity}}",
            "optimizer=[{blocks: \"recurrent.*\", plugin: frozen}, {plugin: sgd}]",
            "train={batch: 1, steps: 80, evaluate_every: 80}", "task.length=2", "task.validation_sequences=1",
            "task.test_sequences=1", "record={blocks: {recurrent.W: 1}}"});
  RunOptions options;
  options.output = folder.path;
  CHECK(run_experiment(loaded, registry(), options, watcher).state == "finished");
  CHECK(watcher.published >= 60);  // of 2 MB each
}

TEST_CASE("when the report of a task fails, the training is kept") {
  Folder folder;
  Quiet quiet;
  RunOptions options;
  options.output = folder.path;
  options.until = 50;
  const LoadedExperiment loaded = load({}, text);
  const fs::path directory = run_experiment(loaded, registry(), options, quiet).directory;
  scratch::write(directory / "outcome", "no folder");
  CHECK_THROWS_AS(resume_experiment(directory, loaded, registry(), {}, {}, quiet), Error);
  CHECK(fs::exists(directory / "checkpoints/step_00000060.h5"));
  CHECK(ResultReader(directory / "results.h5").text_attribute("/", "state") == "failed");
  fs::remove(directory / "outcome");
  CHECK(resume_experiment(directory, loaded, registry(), {}, {}, quiet).state == "finished");
  CHECK(ResultReader(directory / "results.h5").read("/provenance/segments/start_step").values.back() == 60);
}

TEST_CASE("a carried state goes on from batch to batch and is zero at the start of each epoch") {
  Folder folder;
  Quiet quiet;
  const auto losses = [&](const std::string& state, const std::string& accumulate) {
    const LoadedExperiment loaded =
        load({text_stream(folder.path), "model.initial_state=" + state, "optimizer={plugin: sgd, rate: 1e-30}",
              "train.batch=3", "train.steps=6", "train.evaluate_every=6", "train.accumulate=" + accumulate,
              "record={loss: 1}"});
    const fs::path output = folder.path / (state + accumulate);
    return ResultReader(run(loaded, output, quiet).directory / "results.h5").read("/steps/loss").values;
  };
  const std::vector<double> carried = losses("carried", "1"), fresh = losses("zero", "1");
  REQUIRE(carried.size() == 6);
  for (std::size_t i = 0; i < 3; ++i) CHECK(carried[i + 3] == carried[i]);
  CHECK((carried[0] == fresh[0] && carried[1] != fresh[1] && carried[2] != fresh[2]));
  CHECK(losses("carried", "3") == std::vector<double>(6, losses("carried", "3")[0]));
}

TEST_CASE("dropout draws anew in every step") {
  Folder folder;
  Quiet quiet;
  const auto losses = [&](const std::string& dropout) {
    const LoadedExperiment loaded =
        load({text_stream(folder.path), "model.dropout=" + dropout, "optimizer={plugin: sgd, rate: 1e-30}",
              "train.batch=3", "train.steps=6", "train.evaluate_every=6", "record={loss: 1}"});
    return ResultReader(run(loaded, folder.path, quiet).directory / "results.h5").read("/steps/loss").values;
  };
  const std::vector<double> without = losses("0"), with = losses("0.5");  // every epoch of 3 steps has the same batches
  REQUIRE(with.size() == 6);
  for (std::size_t i = 0; i < 3; ++i) CHECK((without[i + 3] == without[i] && with[i + 3] != with[i]));
}

TEST_CASE("sampling continues a text with the network of a run") {
  Folder folder;
  Quiet quiet;
  const LoadedExperiment loaded = load({}, text);
  const RunSummary summary = run(loaded, folder.path, quiet);
  const auto sampled = [&](SampleOptions options) {
    options.network = RunFolder{summary.directory}.network("best");
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
  none.network = RunFolder{run(load(), folder.path, quiet).directory}.network("best");
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
  CHECK(read_network(RunFolder{folder.path}.network("best"), *other.network) == 3);
  CHECK(other.network->state().values == state.values);
  CHECK(other.network->state().plugins == state.plugins);
  session.network->restore(state);
  CHECK(session.network->state().plugins == state.plugins);

  const LoadedExperiment wider = load({"model.cell.hidden=9"});
  Session<float> stranger(wider, registry(), {});
  CHECK_THROWS_WITH(read_network(RunFolder{folder.path}.network("best"), *stranger.network),
                    doctest::Contains("best.h5"));
}

TEST_CASE("a run starts from the network of another one, or from some of its blocks") {
  Folder folder;
  Quiet quiet;
  const RunSummary first = run(load(), folder.path, quiet);
  const fs::path file = RunFolder{first.directory}.network("last");
  const auto values = [](const LoadedExperiment& loaded) {
    const Session<float> session(loaded, registry(), {});
    std::map<std::string, std::vector<float>> found;
    const Layout& layout = session.network->layout();
    for (Index i = 0; i < layout.count(); ++i) {
      const std::span<const float> block = session.network->theta()[i];
      found[layout.block(i).name].assign(block.begin(), block.end());
    }
    return found;
  };
  const auto from = [&](std::vector<std::string> overrides) {
    overrides.push_back("model.init_file=" + file.string());
    return load(overrides);
  };
  Session<float> trained(load(), registry(), {});
  read_network(file, *trained.network);
  Session<float> whole(from({"seed=2"}), registry(), {});
  CHECK(whole.network->values() == trained.network->values());

  const auto map = values(from({"seed=2", "model.init_blocks=[recurrent.*]", "task.length=20"})),
             own = values(load({"seed=2"})), theirs = values(from({}));
  for (const auto& [name, block] : map) {
    CAPTURE(name);
    CHECK(block == (name == "recurrent.U" ? theirs : own).at(name));
    CHECK(theirs.at(name) != own.at(name));
  }

  CHECK(whole.files.back().name == "model.init_file");
  Session<double> longer(from({"scalar=float64"}), registry(), {});
  CHECK(std::ranges::equal(longer.network->values(), trained.network->values()));
  CHECK(from({}).id != load().id);
  CHECK(load({"model.init_blocks=['*']"}).id == load().id);
}

TEST_CASE("a start from one layer of another network; links and relative paths") {
  Folder folder;
  Quiet quiet;
  const std::string layer = "{cell: {plugin: elman, hidden: 10}, recurrent: dense}";
  const auto deep = [&](const std::string& start, const std::string& seed) {
    return load({fmt::format("model={{layers: [{0}, {0}]{1}}}", layer, start), "record.blocks={}", "seed=" + seed});
  };
  const fs::path file = RunFolder{run(deep("", "1"), folder.path, quiet).directory}.network("last");
  fs::create_symlink(file, folder.path / "link.h5");
  const std::string link = fs::relative(folder.path / "link.h5");
  Session<float> theirs(deep("", "1"), registry(), {}), own(deep("", "2"), registry(), {}),
      started(deep(", init_blocks: [layers.1.*, readout.bias], init_file: " + link, "2"), registry(), {});
  read_network(file, *theirs.network);
  const Layout& layout = started.network->layout();
  for (Index i = 0; i < layout.count(); ++i) {
    const std::string& name = layout.block(i).name;
    CAPTURE(name);
    Network<float>& expected = *(name.starts_with("layers.1.") || name == "readout.bias" ? theirs : own).network;
    CHECK(std::ranges::equal(started.network->theta()[i], expected.theta()[i]));
  }
  std::ofstream(file, std::ios::app) << 'x';
  CHECK_THROWS_WITH(Session<float>(deep(", init_file: " + link, "2"), registry(), {}),
                    doctest::Contains("last.h5 is damaged: it is not what was written"));
}

TEST_CASE("a start from another network's blocks: what does not fit is refused") {
  Folder folder;
  Quiet quiet;
  const fs::path directory = run(load(), folder.path, quiet).directory, file = RunFolder{directory}.network("last");
  const auto refused = [&](std::vector<std::string> overrides, const char* message) {
    if (!overrides.front().starts_with("model.init_file")) overrides.push_back("model.init_file=" + file.string());
    CAPTURE(message);
    CHECK_THROWS_WITH_AS(Session<float>(load(overrides), registry(), {}), doctest::Contains(message), Error);
  };
  refused({"model.cell.hidden=9"}, "has 20 numbers, but 18 are needed. The blocks of that network are ");
  refused({"model.recurrent.reflections=5"}, "/weights/recurrent.U has 34 numbers, but 40 are needed");
  refused({"model.recurrent=scaled_cayley", "record.blocks={}"},
          "has the block recurrent.U, which this network does not have");
  refused({"task={plugin: copy, length: 5, encoding: onehot}", "model.cell.hidden=2", "model.recurrent.reflections=1",
           "model.init_blocks=[input.weight]"},
          "/weights/input.weight is 10 × 2, but 2 × 10 is needed");
  refused({"model.init_blocks=[input.bias, cell.*]"},
          "model.init_blocks: there is no parameter block \"cell.*\"; the blocks are input.weight");
  refused({"model.input.bias=false"}, "last.h5 has the block input.bias, which this network does not have");
  refused({"model.init_file=" + (directory / "results.h5").string()}, "results.h5 has no network; name best.h5");
  refused({"model.init_file=" + directory.string()}, "is a folder; name a file in it");
  refused({"model.init_file=none.h5"},
          ("model.init_file: there is no file " + fs::absolute("none.h5").string()).c_str());
  scratch::write(folder.path / "text.h5", "text");
  refused({"model.init_file=" + (folder.path / "text.h5").string()}, "text.h5 is damaged: it is not an HDF5 file");
  refused({"model.init_blocks=[]"}, "model.init_blocks is empty, so model.init_file would have no effect");
  std::fstream damaged(file, std::ios::in | std::ios::out | std::ios::binary);
  damaged.seekp(2000);
  damaged.put('x');
  damaged.close();
  refused({"seed=1"}, "last.h5 is damaged: it is not what was written");
}

TEST_CASE("a copy of a network carries its checksum wherever it is") {
  Folder folder;
  Quiet quiet;
  const fs::path file = RunFolder{run(load(), folder.path, quiet).directory}.network("last"),
                 copy = folder.path / "copy.h5";
  const std::string bytes = file_content(file);
  Session<float> session(load({"seed=2"}), registry(), {}), trained(load(), registry(), {});
  read_network(file, *trained.network);
  const auto read = [&](const std::string& content) {
    scratch::write(copy, content);
    read_blocks(copy, *session.network, [](const std::string&) { return true; });
  };
  read(bytes);
  CHECK(session.network->values() == trained.network->values());
  CHECK(has_right_sum(copy));
  for (std::size_t i = 0; i < bytes.size(); i += 37) {
    CAPTURE(i);
    std::string damaged = bytes;
    damaged[i] = char(damaged[i] ^ (1 << (i % 8)));
    CHECK_THROWS_AS(read(damaged), Error);
  }
  CHECK_THROWS_WITH(read(bytes.substr(0, bytes.size() - 1)), doctest::Contains("copy.h5 is damaged"));
  read(bytes.substr(sum_block));  // as older versions wrote it
  CHECK_FALSE(has_right_sum(copy));
  CHECK(session.network->values() == trained.network->values());
}

TEST_CASE("a start from another network: the state of a map goes with its blocks") {
  Folder folder;
  Quiet quiet;
  const std::vector<std::string> moving = {"model.recurrent={plugin: lie_exponential, base: moving, rebase_every: 2}",
                                           "record.blocks={}"};
  const fs::path file = RunFolder{run(load(moving), folder.path, quiet).directory}.network("last");
  const auto started = [&](const std::string& blocks) {
    std::vector<std::string> overrides = moving;
    overrides.insert(overrides.end(),
                     {"seed=2", "model.init_file=" + file.string(), "model.init_blocks=['" + blocks + "']"});
    return Session<float>(load(overrides), registry(), {}).network->state();
  };
  Session<float> trained(load(moving), registry(), {});
  const auto before = trained.network->state().plugins;
  read_network(file, *trained.network);
  CHECK(started("*").plugins == trained.network->state().plugins);
  CHECK(started("recurrent.*").plugins == trained.network->state().plugins);
  CHECK(started("input.*").plugins != trained.network->state().plugins);
  CHECK(before != trained.network->state().plugins);
  std::vector<std::string> still = moving;
  still.insert(still.end(), {"model.recurrent.base=static", "model.init_file=" + file.string()});
  CHECK_THROWS_WITH(Session<float>(load(still), registry(), {}), doctest::Contains("has /state/recurrent/"));
}
