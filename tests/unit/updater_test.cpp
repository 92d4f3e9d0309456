// How a step moves the parameters: groups, projections, clipping, accumulated batches, the average, weight noise.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "sdk/diagnostics.hpp"
#include "training/checkpoint.hpp"
#include "training/dry_run.hpp"
#include "training/session.hpp"

#include "scratch.hpp"
#include "small_runs.hpp"

using namespace stiefel;
using namespace stiefel::small_runs;
using scratch::Folder;
namespace fs = std::filesystem;

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

TEST_CASE("groups of deep networks: a pattern without a layer applies to all, one without a direction to both") {
  const std::string text = R"(name: groups
task: {plugin: adding, length: 6}
model: {cell: {plugin: elman, hidden: 5}, recurrent: scaled_cayley, layers: 3, bidirectional: true}
optimizer:
  - {blocks: "layers.1.recurrent.*", plugin: sgd, rate: 1}
  - {blocks: "reverse.recurrent.*", plugin: sgd, rate: 2}
  - {blocks: "recurrent.*", plugin: sgd, rate: 3}
  - {blocks: "layers.2.*", plugin: sgd, rate: 4}
  - {blocks: "*", plugin: frozen}
train: {batch: 7, steps: 1}
)";
  const LoadedExperiment loaded = load({}, text);
  Session<float> session(loaded, registry(), {});
  const auto group_of = [&](const std::string& block) {
    const std::vector<float> before = session.network->values();
    const Index i = session.network->layout().find(block);
    REQUIRE(i >= 0);
    std::ranges::fill(session.network->gradient()[i], 1.f);
    session.updater->step(1, *session.network, session.workers);
    std::ranges::fill(session.network->gradient()[i], 0.f);
    const auto first = std::size_t(session.network->layout().offset(i));
    const float moved = before[first] - session.network->values()[first];
    session.network->values() = before;
    return std::lround(moved);
  };
  CHECK(group_of("layers.1.recurrent.A") == 1);
  CHECK(group_of("layers.0.reverse.recurrent.A") == 2);
  CHECK(group_of("layers.1.reverse.recurrent.A") == 1);
  CHECK(group_of("layers.0.recurrent.A") == 3);
  CHECK(group_of("layers.2.recurrent.A") == 3);
  CHECK(group_of("layers.2.input.bias") == 4);
  CHECK(group_of("layers.2.reverse.input.bias") == 4);
  CHECK(group_of("layers.1.input.bias") == 0);
  CHECK(group_of("readout.weight") == 0);
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

TEST_CASE("an optimizer refuses a block when the network is made, at the place of its group") {
  const std::string text = R"(name: refused
task: {plugin: adding, length: 6}
model: {cell: {plugin: elman, hidden: 5}, recurrent: {plugin: dense}}
optimizer:
  - {blocks: readout.*, plugin: sgd}
  - {plugin: muon}
train: {batch: 7, steps: 1}
)";
  CHECK_THROWS_WITH_AS(Session<float>(load({}, text), registry(), {}, Extent::sizes),
                       doctest::Contains(":6:5: optimizer.1: muon moves matrices, and the block input.bias is a vector "
                                         "of 5 numbers"),
                       Error);
  Session<float>(load({"optimizer=[{blocks: recurrent.*, plugin: muon}, {plugin: sgd}]"}, text), registry(), {},
                 Extent::sizes);
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

TEST_CASE("norms of large blocks are those of one sum, with the same bits for any number of threads") {
  const auto norms_with = [](int threads) {
    const LoadedExperiment loaded = load(
        {"model.cell.hidden=300", "model.recurrent=dense", "record.blocks=null", fmt::format("threads={}", threads)});
    Session<float> session(loaded, registry(), {});
    Batch<float> batch;
    session.task->fill(Split::train, 0, batch);
    session.pass(batch, 1, {});
    double gradient = 0, update = 0;
    for (Index i = 0; i < session.network->layout().count(); ++i)
      for (float g : session.network->gradient()[i]) gradient += double(g) * double(g);
    const std::vector<float> before = session.network->values();
    const UpdateNorms norms = session.updater->step(1, *session.network, session.workers);
    for (std::size_t i = 0; i < before.size(); ++i)
      update += std::pow(double(before[i] - session.network->values()[i]), 2);
    CHECK(norms.gradient == doctest::Approx(std::sqrt(gradient)).epsilon(1e-12));
    CHECK(norms.update == doctest::Approx(std::sqrt(update)).epsilon(1e-12));
    return norms;
  };
  const UpdateNorms one = norms_with(1), three = norms_with(3);
  CHECK(one.gradient == three.gradient);
  CHECK(one.recurrent_gradient == three.recurrent_gradient);
  CHECK(one.update == three.update);
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
      CHECK(std::sqrt(squares) == doctest::Approx(0.001).scale(0).epsilon(1e-4));
    CHECK(norms.clipped == doctest::Approx(std::sqrt(squares)).scale(0).epsilon(1e-4));
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
    const PassRequest request{.norms = true};

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

TEST_CASE("a summed loss is the mean times the scored steps of a sequence, and so is its gradient") {
  Folder folder;
  const std::vector<std::string> stream{text_stream(folder.path), "scalar=float64", "train.batch=3"};
  const LoadedExperiment of_steps = load(stream),
                         of_sequences = load({stream[0], stream[1], stream[2], "train.loss=sum"});
  Session<double> mean(of_steps, registry(), {}), sum(of_sequences, registry(), {});
  std::vector<Batch<double>> batches(2);
  for (Index i = 0; i < 2; ++i) mean.task->fill(Split::train, i, batches[std::size_t(i)]);
  batches[0].weight(0, 1) = 0.5;
  std::vector<double> gradients;
  double loss = 0;
  for (const Batch<double>& batch : batches) {
    const PassResult of_mean = mean.pass(batch, 1, mean.request(1, 0)), of_sum = sum.pass(batch, 1, sum.request(1, 0));
    const double steps = of_mean.weight / 3;
    CHECK(steps > 1);
    CHECK(of_sum.weight == 3);
    CHECK(of_sum.loss == doctest::Approx(steps * of_mean.loss).epsilon(1e-12));
    std::vector<double> expected = gradient_of(mean);
    for (double& x : expected) x *= steps;
    check_close(gradient_of(sum), expected);
    gradients.resize(expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) gradients[i] += expected[i] / 2;
    loss += of_sum.loss / 2;
  }
  const PassResult first = sum.pass(batches[0], 1, sum.request(1, 0));
  const PassResult both = sum.network->train_more(batches[1], sum.workers, sum.request(1, 1), first);
  CHECK(both.loss == doctest::Approx(loss).epsilon(1e-12));
  check_close(gradient_of(sum), gradients);
  CHECK(sum.network->evaluate(batches[0], sum.workers).weight ==
        mean.network->evaluate(batches[0], mean.workers).weight);
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
    const Index step = read_network(RunFolder{directory}.network(which), *saved.network);
    check_close(saved.network->values(), means.at(step));
  }
  Watchdog unwatched(0, [] {});
  CHECK(saved.evaluate(Split::validation, unwatched, {}).values[0] == results.read("/epochs/valid_loss").values.back());
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
    session.network->model().maps[0]->plugin()->after_step(session.network->model().layout.part(
        session.network->values().data(), session.network->model().maps[0].blocks));
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

TEST_CASE("weight noise leaves frozen blocks alone") {
  const LoadedExperiment frozen =
      load({"train.weight_noise=0.05", "model.recurrent=dense", "record.blocks=null",
            "optimizer=[{plugin: frozen, blocks: recurrent.W}, {plugin: sgd, rate: 0.1, blocks: '*'}]"});
  Session<float> session(frozen, registry(), {});
  const auto W = [&] { return matrix_of(*session.network->model().maps[0]->plugin()); };
  session.network->refresh();
  const Matrix<double> kept = W();
  session.refresh(1);
  CHECK(W() == kept);
}

TEST_CASE("weight noise has mean 0 and the given standard deviation") {
  const LoadedExperiment noisy = load({"train.weight_noise=0.05", "model.recurrent=dense", "record.blocks=null"});
  Session<float> session(noisy, registry(), {});
  const CMat<float> W = as_matrix(
      std::span<const float>(session.network->theta()[session.network->layout().find("recurrent.W")]), 10, 10);
  double sum = 0, squares = 0;
  constexpr int steps = 100, count = steps * 100;
  for (int step = 1; step <= steps; ++step) {
    session.refresh(step);
    const Eigen::MatrixXd noise =
        matrix_of(*session.network->model().maps[0]->plugin()).cast<double>() - W.cast<double>();
    sum += noise.sum();
    squares += noise.squaredNorm();
  }
  CHECK(std::abs(sum / count) < 5 * 0.05 / std::sqrt(double(count)));
  CHECK(std::abs(std::sqrt(squares / count) / 0.05 - 1) < 5 / std::sqrt(2. * count));
}

TEST_CASE("norms of a step: of the gradient, of its recurrent part, after clipping, and of the update") {
  Folder folder;
  Quiet quiet;
  for (const bool recurrent : {true, false}) {
    const LoadedExperiment loaded =
        load({"model.recurrent=dense", "record.blocks=null", "train.clip={kind: norm, bound: 0.001}",
              fmt::format("optimizer=[{{blocks: '{}', plugin: sgd, rate: 0.5}}, {{plugin: frozen}}]",
                          recurrent ? "recurrent.*" : "readout.*")});
    const ResultReader results(run(loaded, folder.path, quiet).directory / "results.h5");
    const auto column = [&](const std::string& name) { return results.read("/steps/" + name).values; };
    const std::vector<double> all = column("grad_norm"), part = column("recurrent_grad_norm"),
                              clipped = column("clipped_grad_norm"), moved = column("param_update_norm");
    REQUIRE(all.size() == 20);
    for (std::size_t i = 0; i < 20; ++i) {
      CHECK(all[i] > 0.001);
      CHECK(part[i] == (recurrent ? all[i] : 0));
      CHECK(clipped[i] == doctest::Approx(0.001).epsilon(1e-5));
      CHECK(moved[i] == doctest::Approx(0.0005).scale(0).epsilon(1e-3));
    }
  }
}
