// Activations: values from NumPy, pullbacks against central differences, zeros, panels with strides, in-place use.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <stiefel/plugin.hpp>
#include "map_plugins.hpp"

using namespace map_plugins;

namespace {

ActivationOptions options(const std::string& kind, const std::string& form = "exact", bool pairs = false) {
  ActivationOptions o;
  o.kind = kind;
  o.form = form;
  o.pairs = pairs;
  return o;
}

struct Case {
  std::string golden;
  ActivationOptions options;
  bool complex = false;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string kind : {"identity", "tanh", "relu", "leaky_relu", "prelu"})
    all.push_back({kind, options(kind)});
  all.back().options.slope = 0.25;
  for (const std::string pairing : {"halves", "adjacent"}) {
    all.push_back({"oplu_" + pairing, options("oplu")});
    all.back().options.pairing = pairing;
  }
  for (const std::string form : {"exact", "eu", "goru"}) all.push_back({"modrelu_" + form, options("modrelu", form)});
  for (const std::string form : {"exact", "arj", "wis", "eu", "squared"}) {
    all.push_back({"pairs_" + form, options("modrelu", form), true});
    all.push_back({"pairs_" + form, options("modrelu", form, true)});
  }
  return all;
}

template <class S> struct Sample6 {
  std::unique_ptr<Activation<S>> phi;
  Parameters<S> theta;
  explicit Sample6(const Case& c) : phi(Activation<S>::make(c.options, 6, c.complex)), theta(phi->blocks()) {
    Rng rng(1, "initial");
    phi->initialise(theta.blocks(), rng);
    if (c.options.kind != "modrelu") return;
    const Matrix<double>& bias = golden(theta.numbers.size() == 6 ? "activation.bias_real" : "activation.bias_complex");
    for (std::size_t k = 0; k < theta.numbers.size(); ++k) theta.numbers[k] = S(bias(Index(k)));
  }
  Matrix<S> forward(const Matrix<S>& a) {
    Matrix<S> h(a.rows(), a.cols());
    phi->forward(a, view(h), theta.constant());
    return h;
  }
};

/// Σ dh·φ(a) as a function of one number in `numbers`.
double difference(Sample6<double>& sample, double& number, const Matrix<double>& a, const Matrix<double>& dh) {
  const double kept = number, step = 1e-6;
  number = kept + step;
  const double up = (sample.forward(a).array() * dh.array()).sum();
  number = kept - step;
  const double down = (sample.forward(a).array() * dh.array()).sum();
  number = kept;
  return (up - down) / (2 * step);
}

}  // namespace

TEST_CASE_TEMPLATE("values are those of NumPy", S, float, double) {
  const Matrix<S> a = golden("activation.a").template cast<S>();
  for (const Case& c : cases()) {
    INFO(c.golden);
    Sample6<S> sample(c);
    const double error =
        (sample.forward(a).template cast<double>() - golden("activation." + c.golden)).cwiseAbs().maxCoeff();
    CHECK(error < 20 * double(std::numeric_limits<S>::epsilon()));
  }
}

TEST_CASE("pullbacks against central differences, with the gradients of the parameters") {
  for (const Case& c : cases()) {
    INFO(c.golden);
    Sample6<double> sample(c);
    Matrix<double> a = gaussian<double>(6, 9, 5), dh = gaussian<double>(6, 9, 6), da(6, 9);
    const Matrix<double> h = sample.forward(a);
    const Matrix<double> none(0, 0);
    Parameters<double> dtheta(sample.phi->blocks());
    sample.phi->backward(sample.phi->keeps_input() ? a : none, h, dh, view(da), sample.theta.constant(),
                         dtheta.blocks());
    const double scale = da.cwiseAbs().maxCoeff();
    for (Index k = 0; k < a.size(); ++k) CHECK(std::abs(difference(sample, a(k), a, dh) - da(k)) < 1e-7 * scale);
    for (std::size_t k = 0; k < dtheta.numbers.size(); ++k)
      CHECK(difference(sample, sample.theta.numbers[k], a, dh) == doctest::Approx(dtheta.numbers[k]).epsilon(1e-7));
  }
}

TEST_CASE("slopes of prelu: one for all rows, one each, or none to learn") {
  ActivationOptions o = options("prelu");
  CHECK(Activation<float>::make(o, 6, false)->blocks()[0].size == 1);
  o.shared = false;
  Sample6<double> sample({"prelu", o});
  REQUIRE(sample.theta.numbers.size() == 6);
  for (std::size_t k = 0; k < 6; ++k) sample.theta.numbers[k] = 0.2 * double(k) - 0.3;
  Matrix<double> a = gaussian<double>(6, 9, 5), dh = gaussian<double>(6, 9, 6), da(6, 9);
  Parameters<double> dtheta(sample.phi->blocks());
  sample.phi->backward(a, sample.forward(a), dh, view(da), sample.theta.constant(), dtheta.blocks());
  for (Index k = 0; k < a.size(); ++k) CHECK(difference(sample, a(k), a, dh) == doctest::Approx(da(k)).epsilon(1e-7));
  for (std::size_t k = 0; k < 6; ++k)
    CHECK(difference(sample, sample.theta.numbers[k], a, dh) == doctest::Approx(dtheta.numbers[k]).epsilon(1e-7));
  o.trainable = false;
  CHECK(Activation<float>::make(o, 6, false)->blocks().empty());
}

TEST_CASE_TEMPLATE("zeros give finite numbers; modReLU takes z/|z| = 0 at z = 0", S, float, double) {
  for (const Case& c : cases()) {
    INFO(c.golden);
    Sample6<S> sample(c);
    Matrix<S> a = Matrix<S>::Zero(6, 3), dh = Matrix<S>::Ones(6, 3), da(6, 3);
    a.col(1).setConstant(std::numeric_limits<S>::denorm_min());
    a.col(2).setConstant(S(1e-18));
    const Matrix<S> h = sample.forward(a);
    Parameters<S> dtheta(sample.phi->blocks());
    sample.phi->backward(a, h, dh, view(da), sample.theta.constant(), dtheta.blocks());
    CHECK(h.allFinite());
    CHECK(h.col(0).isZero(0));
    CHECK(da.leftCols(2).allFinite());
    for (S g : dtheta.numbers) CHECK(std::isfinite(g));
    if (c.options.kind == "modrelu" && (c.options.form == "exact" || c.options.form == "squared" || !c.complex)) {
      if (!c.options.pairs || c.options.form == "exact") CHECK(da.col(0).isZero(0));
    }
  }
}

TEST_CASE("not a number stays visible") {
  for (const Case& c : cases()) {
    INFO(c.golden);
    Sample6<float> sample(c);
    Matrix<float> a = Matrix<float>::Constant(6, 1, std::numeric_limits<float>::quiet_NaN());
    CHECK(std::isnan(sample.forward(a)(1, 0)));
  }
}

TEST_CASE_TEMPLATE("panels with strides and in place give the same bits", S, float, double) {
  for (const Case& c : cases()) {
    INFO(c.golden);
    Sample6<S> sample(c);
    const Matrix<S> a = gaussian<S>(6, 5, 8), dh = gaussian<S>(6, 5, 9);
    const Matrix<S> h = sample.forward(a);
    Matrix<S> da(6, 5), memory = Matrix<S>::Constant(14, 5, 7);
    sample.phi->backward(a, h, dh, view(da), sample.theta.constant(), {});
    memory.topRows(6) = a;
    const Index target = sample.phi->keeps_input() ? 6 : 0;
    sample.phi->forward(memory.topRows(6), view(memory.middleRows(target, 6)), sample.theta.constant());
    CHECK(memory.middleRows(target, 6) == h);
    CHECK(memory.bottomRows(2) == Matrix<S>::Constant(2, 5, 7));
    Matrix<S> g = dh;
    sample.phi->backward(a, h, g, view(g), sample.theta.constant(), {});
    CHECK(g == da);
  }
}

TEST_CASE("modReLU: initial biases, and oplu keeps norms") {
  ActivationOptions o = options("modrelu");
  const auto bias = [&](bool complex) {
    const auto phi = Activation<double>::make(o, 400, complex);
    Parameters<double> theta(phi->blocks());
    Rng rng(2, "bias");
    phi->initialise(theta.blocks(), rng);
    return Vector<double>(as_vector(theta.blocks()[0]));
  };
  CHECK(bias(false) == Vector<double>::Zero(400));
  CHECK(bias(true) == Vector<double>::Zero(200));
  o.bias_init = "constant";
  CHECK(bias(false) == Vector<double>::Constant(400, 0.01));
  o.bias_init = "uniform";
  CHECK(bias(false).cwiseAbs().maxCoeff() <= 0.01);
  CHECK(bias(false).squaredNorm() / 400 == doctest::Approx(1e-4 / 3).scale(0).epsilon(0.15));
  Sample6<double> oplu({"oplu_halves", options("oplu")});
  const Matrix<double> a = gaussian<double>(6, 4, 1);
  CHECK(oplu.forward(a).norm() == doctest::Approx(a.norm()).epsilon(1e-15));
}

TEST_CASE("activations that do not fit the state") {
  CHECK_THROWS_WITH_AS(Activation<float>::make(options("oplu"), 7, false),
                       doctest::Contains("even number of rows, not 7"), Error);
  CHECK_THROWS_WITH_AS(Activation<float>::make(options("modrelu", "exact", true), 7, false),
                       doctest::Contains("even number"), Error);
  CHECK_THROWS_WITH_AS(Activation<float>::make(options("modrelu", "arj"), 6, false), doctest::Contains("complex"),
                       Error);
  CHECK_THROWS_WITH_AS(Activation<float>::make(options("modrelu", "goru"), 6, true), doctest::Contains("real"), Error);
  CHECK_THROWS_WITH_AS(Activation<float>::make(options("swish"), 6, false), doctest::Contains("swish"), Error);
}
