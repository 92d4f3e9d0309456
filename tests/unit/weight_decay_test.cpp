// Weight decay: of blocks, of the composite W, decoupled, and penalties of the map.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include <stiefel/linear_algebra.hpp>
#include "sdk/diagnostics.hpp"
#include "training/session.hpp"

#include "scratch.hpp"
#include "small_runs.hpp"

using namespace stiefel;
using namespace stiefel::small_runs;
using scratch::Folder;

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

TEST_CASE("penalties and composite decay are those of the parameters without weight noise") {
  Folder folder;
  Quiet quiet;
  const auto results = [&](const std::vector<std::string>& overrides) {
    std::vector<std::string> all{"scalar=float64", "train.weight_noise=0.1", "record.blocks={recurrent.W: 1}"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return ResultReader(run(load(all), folder.path, quiet).directory / "results.h5");
  };
  using Square = Eigen::Map<const Eigen::MatrixXd>;
  const ResultReader soft = results({"model.recurrent={plugin: dense, soft_orthogonality: 0.1}"});
  const std::vector<double> penalties = soft.read("/steps/penalty").values,
                            moved = soft.read("/blocks/recurrent_w/values").values;
  REQUIRE(penalties.size() == 20);
  for (std::size_t i = 0; i < penalties.size(); ++i) {
    const Square W(&moved[i * 100], 10, 10);
    CHECK(penalties[i] ==
          doctest::Approx(0.1 * (W * W.transpose() - Eigen::MatrixXd::Identity(10, 10)).squaredNorm()).epsilon(1e-10));
  }

  const ResultReader decayed = results({"model.recurrent=dense", "model.readout.init=zero",
                                        "optimizer=[{blocks: 'readout*', plugin: frozen}, {plugin: sgd, rate: 0.1, "
                                        "weight_decay: 0.05, composite: true}]"});
  const std::vector<double> shrunk = decayed.read("/blocks/recurrent_w/values").values;
  REQUIRE(shrunk.size() == 2100);
  for (std::size_t i = 100; i < shrunk.size(); ++i)
    CHECK(shrunk[i] == doctest::Approx(0.99 * shrunk[i - 100]).epsilon(1e-10));
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
      const Matrix<double> W = matrix_of(*c.network->model().maps[0]->plugin());
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

TEST_CASE("weight decay leaves blocks of constant norm alone, and with weight noise W stays orthogonal") {
  struct Case {
    const char *map, *optimizer;
    int constant;
    bool orthogonal;
  };
  const char* adam = "{plugin: adam, rate: 0.1, weight_decay: 0.3}";
  for (const Case& c :
       {Case{"{plugin: svd_margin, margin: 0.5}",
             "[{blocks: 'recurrent.[UV]', plugin: geodesic_cayley, preconditioner: rms, rate: 0.1, weight_decay: 0.3}, "
             "{plugin: sgd, rate: 0.1, weight_decay: 0.3}]",
             2, false},
        Case{"{plugin: householder, reflections: 3}", adam, 1, true},
        Case{"{plugin: householder, reflections: 6}", adam, 2, true},
        Case{"{plugin: householder, reflections: 6, normalise_columns: false, u1: soft}", adam, 0, false},
        Case{"{plugin: spectral_householder, left: 2, right: 3}", adam, 2, false},
        Case{"{plugin: low_rank_projection}", adam, 1, true}}) {
    CAPTURE(c.map);
    const std::string text = fmt::format(R"(name: constant
scalar: float64
task: {{plugin: adding, length: 6}}
model: {{cell: {{plugin: elman, hidden: 6}}, recurrent: {}}}
optimizer: {}
train: {{batch: 7, steps: 1, weight_noise: 0.1}}
)",
                                         c.map, c.optimizer);
    std::string none = text;
    for (std::size_t at; (at = none.find("weight_decay: 0.3")) != none.npos;) none.replace(at, 17, "weight_decay: 0.0");
    const LoadedExperiment decaying = load({}, text), plain = load({}, none);
    Session<double> with(decaying, registry(), {}), without(plain, registry(), {});
    Batch<double> batch;
    with.task->fill(Split::train, 0, batch);
    const std::vector<double> start = with.network->values();
    for (Session<double>* session : {&with, &without}) {
      session->refresh(1);
      if (c.orthogonal) CHECK(isometry_defect<double>(matrix_of(*session->network->model().maps[0]->plugin())) < 1e-12);
      session->pass(batch, 1, {});
      session->updater->step(1, *session->network, session->workers);
    }
    const Layout& layout = with.network->layout();
    int constant = 0;
    for (Index i = 0; i < layout.count(); ++i) {
      const bool keeps = layout.block(i).keeps_norm();
      constant += keeps ? 1 : 0;
      const std::span<const double> theta = layout.all(start.data())[i];
      for (std::size_t k = 0; k < theta.size(); ++k) {
        const double added = with.network->gradient()[i][k] - without.network->gradient()[i][k];
        CHECK(added == doctest::Approx(keeps ? 0 : 2 * 0.3 * theta[k]).epsilon(1e-12));
        if (keeps) CHECK(with.network->theta()[i][k] == without.network->theta()[i][k]);
      }
    }
    CHECK(constant == c.constant);
  }
}

TEST_CASE("decoupled weight decay shrinks the parameters and leaves the gradient alone") {
  const std::string text = R"(name: decoupled
scalar: float64
task: {plugin: adding, length: 6}
model: {cell: {plugin: elman, hidden: 5}, recurrent: {plugin: svd_margin, margin: 0.1}}
optimizer: [{blocks: "recurrent.[UV]", plugin: frozen}, {plugin: adam, decoupled: true, rate: 0.02, weight_decay: 0.3}]
train: {batch: 7, steps: 1}
)";
  const LoadedExperiment decaying = load({}, text), plain = load({"optimizer.1.weight_decay=0"}, text);
  Session<double> with(decaying, registry(), {}), without(plain, registry(), {});
  const Layout& layout = with.network->layout();
  const Index p = layout.find("recurrent.p");
  REQUIRE(layout.block(p).rate_scale == doctest::Approx(5));
  for (Session<double>* session : {&with, &without}) as_vector(session->network->theta()[p]).setLinSpaced(-0.3, 0.5);
  const std::vector<double> start = with.network->values();
  Batch<double> batch;
  with.task->fill(Split::train, 0, batch);
  for (Session<double>* session : {&with, &without}) {
    session->pass(batch, 1, {});
    session->updater->step(1, *session->network, session->workers);
  }
  for (Index i = 0; i < layout.count(); ++i) {
    const double shrunk = with.updater->moves(i) ? 0.02 * 0.3 : 0;
    const std::span<const double> before = layout.all(start.data())[i];
    for (std::size_t k = 0; k < before.size(); ++k)
      CHECK(with.network->theta()[i][k] ==
            doctest::Approx(without.network->theta()[i][k] - shrunk * before[k]).epsilon(1e-13));
  }
  const Blocks<double> one = with.network->gradient(), other = without.network->gradient();
  for (Index b = 0; b < one.count(); ++b) CHECK(as_vector(one[b]) == as_vector(other[b]));

  CHECK_THROWS_WITH_AS(Session<double>(load({"optimizer.1.composite=true"}, text), registry(), {}),
                       doctest::Contains("adam decouples the weight decay from the loss"), Error);
}

TEST_CASE("composite decay without a map, and two decays of one map, are refused with their place") {
  const auto refused = [&](const std::vector<std::string>& overrides, const std::string& sentence) {
    CHECK_THROWS_WITH_AS(Session<double>(load(overrides, factorised), registry(), {}),
                         doctest::Contains(sentence.c_str()), Error);
  };
  refused({"optimizer.2.composite=true"},
          "`composite: true` needs a block of a recurrent map, and `blocks: \"*\"` has none; remove it");
  refused({"optimizer.2.composite=true"}, ":8:5, command line: optimizer.2: ");
  refused({"optimizer.0.weight_decay=0.1"}, "the map of recurrent.U has two weight decays");
  refused({"optimizer.0.weight_decay=0.1", "optimizer.0.composite=true"},
          "the map of recurrent.p has two weight decays");
  refused({"optimizer.0.composite=true"}, ":7:5: optimizer.1: the map of recurrent.p has two weight decays");
  Session<double>(load({"optimizer.0.composite=true", "optimizer.0.weight_decay=0.3"}, factorised), registry(), {});
}
