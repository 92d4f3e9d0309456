// Runs from start to end: what is stored, when they stop, what moves, and that the same seed gives the same bits.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <filesystem>

#include <unistd.h>

#include "config/load.hpp"
#include "diagnostics.hpp"
#include "results/reader.hpp"
#include "trainer/session.hpp"
#include "trainer/trainer.hpp"

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
  std::atomic<int>* raise_at_five = nullptr;
  void note(const std::string& line) override { lines.push_back(line); }
  void progress(const Progress& progress) override {
    if (raise_at_five && progress.step == 5) *raise_at_five = SIGTERM;
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

RunSummary run(const LoadedExperiment& loaded, const fs::path& output, Quiet& observer, const std::atomic<int>* signal = nullptr) {
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
       {"/steps/loss", "/steps/grad_norm", "/epochs/valid_loss", "/spectrum/recurrent/singular_values", "/gradient/hidden_grad_norm",
        "/gradient/last_step_grad_norm", "/gradient/hidden_norm", "/blocks/recurrent_u/values", "/final/test_loss"}) {
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
  for (double s : results.read("/spectrum/recurrent/singular_values").values) CHECK(s == doctest::Approx(1).epsilon(1e-5));
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

TEST_CASE("a finished run is left as it is; an unfinished one is refused") {
  Folder folder;
  Quiet quiet;
  const fs::path directory = run(load(), folder.path, quiet).directory;
  const auto before = fs::last_write_time(directory / "results.h5");
  CHECK(run(load(), folder.path, quiet).state == "existing");
  CHECK(fs::last_write_time(directory / "results.h5") == before);

  std::atomic<int> signal{0};
  Quiet killer;
  killer.raise_at_five = &signal;
  const RunSummary stopped = run(load({"seed=3"}), folder.path, killer, &signal);
  CHECK(stopped.state == "preempted");
  CHECK(stopped.exit_code == 143);
  CHECK(ResultReader(stopped.directory / "results.h5").number_attribute("/", "committed_step") == 5);
  CHECK_THROWS_AS(run(load({"seed=3"}), folder.path, quiet), Error);
}

TEST_CASE("a run whose numbers break says where and leaves a file that opens") {
  Folder folder;
  Quiet quiet;
  const RunSummary summary = run(load({"optimizer.plugin=sgd", "optimizer.rate=1e30", "train.steps=10"}), folder.path, quiet);
  CHECK(summary.state == "diverged");
  CHECK(summary.exit_code == 5);
  CHECK(summary.message.find("diverged at step") == 0);
  CHECK(ResultReader(summary.directory / "results.h5").text_attribute("/", "state") == "diverged");
}

TEST_CASE("weights are kept as often and as many as asked") {
  Folder folder;
  Quiet quiet;
  const fs::path directory = run(load({"checkpoint.every=4", "checkpoint.keep=2"}), folder.path, quiet).directory / "checkpoints";
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"best.h5", "last.h5", "step_00000016.h5", "step_00000020.h5"});
  CHECK(ResultReader(directory / "step_00000020.h5").read("/weights/recurrent.U").values ==
        ResultReader(directory / "last.h5").read("/weights/recurrent.U").values);
}

TEST_CASE("early stopping: so many evaluations without improvement") {
  Folder folder;
  Quiet quiet;
  // With a rate of nothing the first evaluation stays the best.
  const RunSummary summary =
      run(load({"optimizer.rate=1e-30", "train.steps=100", "train.evaluate_every=5", "train.patience=3"}), folder.path, quiet);
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
      run(load({"train.steps=100", "train.evaluate_every=5", fmt::format("train.target={}", target)}), folder.path / "stopped", quiet);
  CHECK(stopped.state == "finished");
  CHECK(ResultReader(stopped.directory / "results.h5").read("/epochs/valid_loss").values ==
        std::vector<double>(losses.begin(), std::next(first)));
}

TEST_CASE("schedules") {
  Schedule constant({"constant", 0.5, 10, 0}), step({"step", 0.5, 10, 0}), plateau({"plateau", 0.3, 1, 1});
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
  CHECK_THROWS_WITH_AS(Session<double>(load({"optimizer.2.blocks=input.*", "model.initial_state.kind=learned"}, text), registry(), {}),
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
      CHECK_THROWS_WITH_AS(Session<double>(load({"optimizer.plugin=" + plugin}, text), registry(), {}), doctest::Contains(sentence.c_str()),
                           Error);
    };
    refused("the block recurrent.M lies on the orthogonal manifold and " + plugin + " cannot move it");
    refused("plugin: geodesic_cayley}");
  }
}

TEST_CASE("weight decay: of a block, and of the composite W") {
  for (const char* map :
       {"{plugin: householder, reflections: 2, normalise_columns: false, route: structured}", "{plugin: scaled_cayley, rho: 2}", "dense"}) {
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
      const Matrix<double> W = matrix_of((*c.network->model().maps)[0].plugin());
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
      for (float g : session.network->gradient()[i]) largest = std::max(largest, std::abs(double(g))), squares += double(g) * double(g);
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

TEST_CASE("a dry run names parameters, memory and time") {
  const DryRun dry = dry_run(load(), registry(), {});
  std::string text;
  for (const std::string& line : dry.lines) text += line + "\n";
  for (const char* word : {"parameters 85 in 6 blocks", "recurrent.U", " route", "first loss", "memory", "for 20 steps"})
    CHECK(text.find(word) != text.npos);
}
