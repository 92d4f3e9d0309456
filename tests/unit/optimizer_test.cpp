// The optimizers against ten steps computed by tests/golden/optimizers.py, for every variant of the published recipes.
#include <doctest/doctest.h>
#include <cmath>
#include <Eigen/LU>
#include <Eigen/SVD>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stiefel/linear_algebra.hpp>

#include <stiefel/plugin.hpp>
#include "choose_plugin.hpp"
#include "host/memory_archive.hpp"
#include "host/registry.hpp"

using namespace stiefel;

namespace {

const Registry& registry() {
  static const Registry made({STIEFEL_PLUGINS});
  return made;
}

template <class S> std::unique_ptr<Optimizer<S>> make(const std::string& name, const std::string& options = "") {
  const Entry& entry = registry().find(Role::optimizer, name);
  const PluginChoice choice = choose_plugin(entry, options);
  return created<Optimizer<S>>(entry, choice.options.get());
}

using Numbers = std::vector<double>;

nlohmann::json golden_runs() {
  std::ifstream file(STIEFEL_GOLDEN "/optimizers.json");
  REQUIRE(file);
  return nlohmann::json::parse(file);
}

/// A block on a manifold, by columns; unitary ones Re over Im.
struct Point {
  BlockSpec spec;
  Matrix<double> M;
  Eigen::MatrixXcd complex() const {
    const Index n = spec.cols;
    Eigen::MatrixXcd C = Eigen::MatrixXcd::Zero(n, n);
    C.real() = M.topRows(n);
    if (spec.manifold == Manifold::unitary) C.imag() = M.bottomRows(n);
    return C;
  }
  double defect() const {
    return (complex().adjoint() * complex() - Eigen::MatrixXcd::Identity(spec.cols, spec.cols)).norm();
  }
};

BlockSpec manifold_block(const std::string& manifold, Index n) {
  const bool unitary = manifold == "unitary";
  const Index rows = unitary ? 2 * n : n;
  return {"M", rows * n, rows, n, unitary ? Manifold::unitary : Manifold::orthogonal};
}

Point random_point(const std::string& manifold, Index n, std::uint64_t seed) {
  Rng rng(seed, "point");
  Eigen::MatrixXcd Q(n, n);
  for (auto& z : Q.reshaped()) z = {rng.normal(), manifold == "unitary" ? rng.normal() : 0};
  orthonormalise(view(Q));
  Point point{manifold_block(manifold, n), {}};
  point.M.resize(point.spec.rows, n);
  point.M.topRows(n) = Q.real();
  if (manifold == "unitary") point.M.bottomRows(n) = Q.imag();
  return point;
}

Point random_gradient(const Point& point, std::uint64_t seed) {
  Rng rng(seed, "gradient");
  Point gradient = point;
  for (double& x : gradient.M.reshaped()) x = rng.normal();
  return gradient;
}

std::span<double> numbers(Matrix<double>& M) { return {M.data(), std::size_t(M.size())}; }
std::span<const double> numbers(const Matrix<double>& M) { return {M.data(), std::size_t(M.size())}; }

/// Largest |got − expected| / max(1, |expected|) over all steps.
template <class S> double worst(const nlohmann::json& golden, const nlohmann::json& run) {
  const auto optimizer = make<S>(run["plugin"], run["options"].dump());
  const Numbers start = golden["start"];
  std::vector<S> theta(start.begin(), start.end());
  optimizer->attach({{"theta", Index(theta.size())}});
  double largest = 0;
  for (std::size_t k = 0; k < golden["gradients"].size(); ++k) {
    const Numbers g = golden["gradients"][k], expected = run["theta"][k];
    const std::vector<S> gradient(g.begin(), g.end());
    optimizer->step(0, golden["rate"], theta, gradient);
    for (std::size_t i = 0; i < theta.size(); ++i) {
      const double difference = std::abs(double(theta[i]) - expected[i]) / std::max(1., std::abs(expected[i]));
      largest = std::max(largest, std::isfinite(difference) ? difference : 1e300);
    }
  }
  return largest;
}

}  // namespace

TEST_CASE("fifty steps of PyTorch's optimizers") {
  std::ifstream file(STIEFEL_GOLDEN "/pytorch.json");
  REQUIRE(file);
  const auto golden = nlohmann::json::parse(file)["optimizers"];
  REQUIRE(golden["runs"].size() == 3);
  REQUIRE(golden["gradients"].size() == 50);
  for (const auto& run : golden["runs"]) {
    CAPTURE(run["plugin"].get<std::string>());
    CHECK(worst<double>(golden, run) < 1e-13);
  }
}

TEST_CASE("ten steps of every variant") {
  const auto golden = golden_runs();
  REQUIRE(golden["runs"].size() == 16);
  for (const auto& run : golden["runs"]) {
    CAPTURE(run["plugin"].get<std::string>());
    CAPTURE(run["options"].dump());
    CHECK(worst<double>(golden, run) < 1e-13);
    CHECK(worst<float>(golden, run) < 2e-5);
  }
}

TEST_CASE_TEMPLATE("twenty steps along the orthogonal and unitary matrices", S, float, double) {
  const auto golden = golden_runs();
  REQUIRE(golden["manifold_runs"].size() == 12);
  for (const auto& run : golden["manifold_runs"]) {
    CAPTURE(run["plugin"].get<std::string>());
    CAPTURE(run["manifold"].get<std::string>());
    CAPTURE(run["options"].dump());
    const auto optimizer = make<S>(run["plugin"], run["options"].dump());
    optimizer->attach({manifold_block(run["manifold"], run["n"])});
    const Numbers start = run["start"];
    std::vector<S> theta(start.begin(), start.end());
    double largest = 0;
    for (std::size_t k = 0; k < 20; ++k) {
      const Numbers g = run["gradients"][k], expected = run["theta"][k];
      const std::vector<S> gradient(g.begin(), g.end());
      optimizer->step(0, run["rate"], theta, gradient);
      for (std::size_t i = 0; i < theta.size(); ++i)
        largest = std::max(largest, std::abs(double(theta[i]) - expected[i]));
    }
    CHECK(largest < 50 * double(std::numeric_limits<S>::epsilon()));
  }
}

TEST_CASE(
    "geodesic_cayley: multiplying from the left and from the right are the same step, and it descends as it should") {
  for (const std::string manifold : {"orthogonal", "unitary"}) {
    CAPTURE(manifold);
    Point point = random_point(manifold, 7, 1);
    const Point gradient = random_gradient(point, 2);
    const Eigen::MatrixXcd M = point.complex(), G = gradient.complex(), I = Eigen::MatrixXcd::Identity(7, 7);
    const Eigen::MatrixXcd A = 0.05 * (M.adjoint() * G - G.adjoint() * M);  // η/2 times the right-hand form
    const Eigen::MatrixXcd right = M * (I + A).inverse() * (I - A);
    const auto optimizer = make<double>("geodesic_cayley");
    optimizer->attach({point.spec});
    const Matrix<double> before = point.M;
    optimizer->step(0, 0.1, numbers(point.M), numbers(gradient.M));
    CHECK((point.complex() - right).norm() < 1e-13);
    CHECK(point.defect() < 1e-13);

    const double eta = 1e-6;
    Point near = point;
    near.M = before;
    optimizer->step(0, eta, numbers(near.M), numbers(gradient.M));
    const double change = (near.M - before).cwiseProduct(gradient.M).sum();
    CHECK(change ==
          doctest::Approx(-eta / 2 * (M.adjoint() * G - G.adjoint() * M).squaredNorm()).scale(0).epsilon(1e-4));
  }
}

TEST_CASE("geodesic_cayley: float blocks drift without re-orthonormalisation and stay with it") {
  const auto defect_after = [](const std::string& options) {
    const Point start = random_point("orthogonal", 32, 5);
    const auto optimizer = make<float>("geodesic_cayley", options);
    optimizer->attach({start.spec});
    std::vector<float> theta(start.M.data(), start.M.data() + start.M.size()), gradient(theta.size());
    for (std::uint64_t step = 0; step < 1950; ++step) {
      const Point g = random_gradient(start, step);
      std::copy(g.M.data(), g.M.data() + g.M.size(), gradient.begin());
      optimizer->step(0, 1e-3, theta, gradient);
    }
    Point end = start;
    end.M = as_vector(std::span<const float>(theta)).cast<double>().reshaped(32, 32);
    return end.defect();
  };
  const double drifting = defect_after("{reorthonormalise_every: 0, compensated: false}"),
               kept = defect_after("compensated: false");
  CHECK(kept < 2e-6);
  CHECK(drifting > 4 * kept);
  CHECK(defect_after("reorthonormalise_every: 0") < 2e-6);
}

TEST_CASE("geodesic_cayley: compensated float blocks stay on the manifold at every size of a step") {
  // η/2 ‖A‖ from 1e-5 to 2e-2, with a gradient that is always the same: a truncated step would drift steadily.
  const Point start = random_point("orthogonal", 24, 5), gradient = random_gradient(start, 6);
  const double norm =
      (gradient.complex() * start.complex().adjoint() - start.complex() * gradient.complex().adjoint()).norm();
  std::vector<float> g(gradient.M.data(), gradient.M.data() + gradient.M.size());
  for (const double size : {1e-5, 5e-5, 1e-4, 2e-4, 1e-3, 4e-3, 9e-3, 2e-2}) {
    CAPTURE(size);
    const auto optimizer = make<float>("geodesic_cayley", "reorthonormalise_every: 0");
    optimizer->attach({start.spec});
    std::vector<float> theta(start.M.data(), start.M.data() + start.M.size());
    for (int step = 0; step < 2000; ++step) optimizer->step(0, 2 * size / norm, theta, g);
    Point end = start;
    end.M = as_vector(std::span<const float>(theta)).cast<double>().reshaped(24, 24);
    CHECK(end.defect() < 2e-6);
  }
}

TEST_CASE_TEMPLATE("geodesic_cayley: steps far below the rounding of a float block add up", S, float, double) {
  for (const std::string manifold : {"orthogonal", "unitary"}) {
    const Point start = random_point(manifold, 24, 5), gradient = random_gradient(start, 6);
    const auto moved = [&](const std::string& options) {
      const auto optimizer = make<S>("geodesic_cayley", options);
      optimizer->attach({start.spec});
      std::vector<S> theta(start.M.data(), start.M.data() + start.M.size());
      const std::vector<S> g(gradient.M.data(), gradient.M.data() + gradient.M.size());
      const Vector<double> before = as_vector(std::span<const S>(theta)).template cast<double>();
      for (int step = 0; step < 2000; ++step) optimizer->step(0, 1e-10, theta, g);
      return Vector<double>(as_vector(std::span<const S>(theta)).template cast<double>() - before);
    };
    const Vector<double> compensated = moved("");
    const Eigen::MatrixXcd M = start.complex(), G = gradient.complex();
    const double expected = 2e-7 * (G * M.adjoint() - M * G.adjoint()).norm();  // η times the number of steps
    CHECK(compensated.norm() == doctest::Approx(expected).epsilon(std::is_same_v<S, float> ? 0.02 : 1e-4));
    if (std::is_same_v<S, float>) CHECK(moved("compensated: false").norm() < 0.5 * expected);
  }
}

TEST_CASE("optimizers and the manifolds that they move") {
  for (const char* name : {"sgd", "rmsprop", "adam", "muon"}) {
    CHECK(make<float>(name)->moves(Manifold::flat));
    CHECK(!make<float>(name)->moves(Manifold::orthogonal));
    CHECK(!make<float>(name)->moves(Manifold::unitary));
  }
  for (const char* name : {"geodesic_cayley", "riemannian_adam", "manifold_muon"}) {
    CHECK(!make<float>(name)->moves(Manifold::flat));
    CHECK(make<float>(name)->moves(Manifold::orthogonal));
    CHECK(make<float>(name)->moves(Manifold::unitary));
  }
}

TEST_CASE("without epsilon, 0/0 is no move and a gradient that underflows moves nothing to NaN") {
  for (const char* name : {"rmsprop", "adam"}) {
    CAPTURE(name);
    const auto optimizer = make<float>(name, "epsilon: 0");
    optimizer->attach({{"theta", 2}});
    std::vector<float> theta = {1, 2};
    const std::vector<float> gradient = {0, 1e-30f};
    optimizer->step(0, 0.1, theta, gradient);
    CHECK(theta[0] == 1);
    CHECK(theta[1] == 2);
  }
}

TEST_CASE("an accumulator of ones is a warm-up") {
  // r₀ = 1 and a constant |g| = 1e-3: the step is 0.001 η at first, the full one after hundreds of steps.
  const auto optimizer = make<double>("rmsprop", "{accumulator_init: 1, epsilon: 1e-10, epsilon_inside: true}");
  optimizer->attach({{"theta", 1}});
  std::vector<double> theta = {0}, gradient = {1e-3};
  std::vector<double> moves;
  for (int k = 0; k < 400; ++k) {
    const double before = theta[0];
    optimizer->step(0, 1, theta, gradient);
    moves.push_back(before - theta[0]);
  }
  CHECK(moves[0] == doctest::Approx(0.00105).scale(0).epsilon(0.01));
  CHECK(moves[49] == doctest::Approx(0.0139).scale(0).epsilon(0.02));
  CHECK(moves[99] == doctest::Approx(0.19).scale(0).epsilon(0.05));
  CHECK(moves[399] == doctest::Approx(1).epsilon(0.01));
}

TEST_CASE("the two forms of adam differ in epsilon alone") {
  for (const double epsilon : {0., 1e-2}) {
    const std::string number = std::to_string(epsilon);
    const auto paper = make<double>("adam", "epsilon: " + number),
               hat = make<double>("adam", "{form: epsilon_hat, epsilon: " + number + "}");
    std::vector<double> a = {1}, b = {1}, gradient = {0.3};
    paper->attach({{"theta", 1}});
    hat->attach({{"theta", 1}});
    paper->step(0, 0.1, a, gradient);
    hat->step(0, 0.1, b, gradient);
    // After one step m̂ = g and √v̂ = |g|; in the other form √v = |g| √(1 − β₂).
    CHECK(1 - a[0] == doctest::Approx(0.1 * 0.3 / (0.3 + epsilon)).epsilon(1e-12));
    CHECK(1 - b[0] == doctest::Approx(0.1 * 0.3 / (0.3 + epsilon / std::sqrt(0.001))).epsilon(1e-12));
  }
}

TEST_CASE("the state goes through an archive") {
  for (const auto& [name, options] : {std::pair{"sgd", "momentum: 0.9"}, {"rmsprop", ""}, {"adam", ""}}) {
    CAPTURE(name);
    const auto first = make<double>(name, options), second = make<double>(name, options);
    const std::vector<BlockSpec> blocks = {{"a", 2}, {"b", 1}};
    first->attach(blocks);
    second->attach(blocks);
    std::vector<double> a = {1, -1}, b = {2}, gradient = {0.5, -0.25};
    for (int k = 0; k < 3; ++k) first->step(0, 0.1, a, gradient);
    first->step(1, 0.1, b, std::span<const double>(gradient).first(1));
    MemoryArchive saved;
    first->serialise(saved);
    MemoryArchive load(saved.items());
    second->serialise(load);
    CHECK(load.unread().empty());
    std::vector<double> a2 = a, b2 = b;
    first->step(0, 0.1, a, gradient);
    second->step(0, 0.1, a2, gradient);
    first->step(1, 0.1, b, std::span<const double>(gradient).first(1));
    second->step(1, 0.1, b2, std::span<const double>(gradient).first(1));
    CHECK(a == a2);
    CHECK(b == b2);
  }
}

TEST_CASE("options out of range are refused with a sentence") {
  const auto refusal = [](const char* name, const char* options) -> std::string {
    try {
      choose_plugin(registry().find(Role::optimizer, name), options);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  CHECK(refusal("sgd", "nesterov: true").find("momentum") != std::string::npos);
  CHECK(refusal("sgd", "momentum: 1").find("momentum") != std::string::npos);
  CHECK(refusal("rmsprop", "decay: 1.5").find("decay") != std::string::npos);
  CHECK(refusal("adam", "form: other").find("bias_corrected") != std::string::npos);
  CHECK(refusal("adam", "beta1: 0.8").empty());
}

TEST_CASE("riemannian_adam in the plane, where a step by D = [0, −d; d, 0] turns by −2 arctan(η d/2)") {
  const auto optimizer = make<double>("riemannian_adam", "{beta1: 0.6, beta2: 0.7, epsilon: 0.5}");
  Point point = random_point("orthogonal", 2, 1), gradient = point;
  optimizer->attach({point.spec});
  Matrix<double> J(2, 2);
  J << 0, -1, 1, 0;
  double m = 0, v = 0, t = 0;
  for (const double a : {2., -1., 0.5}) {
    const Matrix<double> before = point.M;
    gradient.M = a / 2 * J * before;
    // The tangent GMᵀ − MGᵀ is a J, of whose four entries two are ±a.
    m = 0.6 * m + 0.4 * a, v = 0.7 * v + 0.3 * a * a / 2, t += 1;
    const double d = m / (1 - std::pow(0.6, t)) / (std::sqrt(v / (1 - std::pow(0.7, t))) + 0.5),
                 angle = -2 * std::atan(0.1 * d / 2);
    optimizer->step(0, 0.1, numbers(point.M), numbers(gradient.M));
    CHECK((point.M - std::cos(angle) * before - std::sin(angle) * J * before).norm() < 1e-14);
  }
}

TEST_CASE("geodesic_cayley in the plane: ρ and ε of `preconditioner: rms`") {
  const auto optimizer = make<double>("geodesic_cayley", "{preconditioner: rms, decay: 0.6, epsilon: 0.5}");
  Point point = random_point("orthogonal", 2, 1);
  optimizer->attach({point.spec});
  Matrix<double> J(2, 2), r = Matrix<double>::Zero(2, 2);
  J << 0, -1, 1, 0;
  for (std::uint64_t step = 0; step < 3; ++step) {
    const Matrix<double> before = point.M, G = random_gradient(point, step).M;
    r = 0.6 * r + 0.4 * G.cwiseAbs2();
    const Matrix<double> scaled = G.array() / (r.array().sqrt() + 0.5), A = scaled * before.transpose();
    const double angle = -2 * std::atan(0.1 * (A(1, 0) - A(0, 1)) / 2);
    optimizer->step(0, 0.1, numbers(point.M), numbers(G));
    CHECK((point.M - std::cos(angle) * before - std::sin(angle) * J * before).norm() < 1e-14);
  }
}

TEST_CASE("a block is replaced by the nearest matrix of its manifold every so many steps") {
  for (const char* name : {"geodesic_cayley", "riemannian_adam", "manifold_muon"})
    for (const int every : {0, 3}) {
      CAPTURE(name);
      const auto optimizer = make<double>(name, "reorthonormalise_every: " + std::to_string(every));
      Point point = random_point("orthogonal", 5, 1);
      const Matrix<double> M = point.M, none = Matrix<double>::Zero(5, 5);
      optimizer->attach({point.spec});
      for (int step = 1; step <= 7; ++step) {
        point.M *= 1.01;
        optimizer->step(0, 0.1, numbers(point.M), numbers(none));
        const bool replaced = every > 0 && step % every == 0;
        CHECK((point.defect() < 1e-13) == replaced);
        if (replaced) CHECK((point.M - M).norm() < 1e-13);
      }
    }
}

namespace {

/// Entry k by rows is sin((first + k + 1)^1.5).
Matrix<double> filled(double first, Index rows, Index cols) {
  Matrix<double> A(rows, cols);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) A(i, j) = std::sin(std::pow(first + 1 + double(i * cols + j), 1.5));
  return A;
}

/// f of each singular value of A.
template <class F> Eigen::MatrixXcd of_singular_values(const Eigen::MatrixXcd& A, F&& f) {
  const Eigen::JacobiSVD<Eigen::MatrixXcd> svd(A, Eigen::ComputeThinU | Eigen::ComputeThinV);
  return svd.matrixU() * svd.singularValues().unaryExpr(f).asDiagonal() * svd.matrixV().adjoint();
}

}  // namespace

// The golden sums are from a NumPy program of its own.
TEST_CASE("muon: a golden step") {
  const auto optimizer = make<double>("muon");
  optimizer->attach({{"W", 24, 4, 6}});
  Matrix<double> theta = filled(0, 4, 6);
  const Matrix<double> gradient = filled(50, 4, 6);
  optimizer->step(0, 0.02, numbers(theta), numbers(gradient));
  CHECK(theta.sum() == doctest::Approx(6.348090899701).epsilon(1e-12));
  CHECK(theta(0, 4) == doctest::Approx(-0.97923487).epsilon(1e-8));
  MemoryArchive state;
  optimizer->serialise(state);
  Matrix<double> mean(4, 6);
  MemoryArchive(state.items()).array("mean_0", mean);
  CHECK(mean.sum() == doctest::Approx(0.365760878430).epsilon(1e-11));
}

TEST_CASE("muon maps the singular values of the running mean by the polynomial, in tall and wide matrices") {
  const auto mapped = [](double x) {
    for (int k = 0; k < 5; ++k) x = 3.4445 * x - 4.7750 * std::pow(x, 3) + 2.0315 * std::pow(x, 5);
    return x;
  };
  for (const bool nesterov : {false, true})
    for (const auto& [rows, cols] : {std::pair<Index, Index>{7, 3}, {3, 7}, {5, 5}}) {
      CAPTURE(rows);
      const auto optimizer =
          make<double>("muon", std::string("{momentum: 0.8, nesterov: ") + (nesterov ? "true}" : "false}"));
      optimizer->attach({{"W", rows * cols, rows, cols}});
      Matrix<double> theta = filled(0, rows, cols), mean = Matrix<double>::Zero(rows, cols);
      for (int step = 0; step < 3; ++step) {
        const Matrix<double> before = theta, g = filled(90 + 60 * step, rows, cols);
        mean = 0.8 * mean + 0.2 * g;
        const Matrix<double> u = nesterov ? Matrix<double>(0.8 * mean + 0.2 * g) : mean;
        optimizer->step(0, 0.1, numbers(theta), numbers(g));
        const double longer = rows == 7 ? std::sqrt(7. / 3) : 1;
        const auto expected = of_singular_values(u / (u.norm() + 1e-7), mapped);
        CHECK(((before - theta) / (0.1 * longer) - expected.real()).norm() < 1e-12);
      }
    }
}

TEST_CASE("muon refuses vectors") {
  for (const BlockSpec& block : {BlockSpec{"input.b", 5}, {"row", 5, 1, 5}, {"column", 5, 5, 1}}) {
    CAPTURE(block.name);
    const auto optimizer = make<float>("muon");
    CHECK_THROWS_WITH_AS(optimizer->attach({{"W", 6, 2, 3}, block}),
                         doctest::Contains((block.name + " is a vector of 5 numbers").c_str()), Error);
    optimizer->attach({{"W", 6, 2, 3}});
  }
}

TEST_CASE("manifold_muon: golden steps") {
  for (const auto& [n, sum] : {std::pair<Index, double>{6, -1.8460424372}, {7, -3.7810063344}}) {
    const Matrix<double> A = filled(0, n, n), I = Matrix<double>::Identity(n, n), skew = A - A.transpose();
    Point point{manifold_block("orthogonal", n), (I + skew).partialPivLu().solve(I - skew)};
    const auto optimizer = make<double>("manifold_muon", "momentum: 0");
    optimizer->attach({point.spec});
    optimizer->step(0, 0.1, numbers(point.M), numbers(filled(99, n, n)));
    CHECK(point.M.sum() == doctest::Approx(sum).epsilon(1e-10));
    CHECK(point.defect() < 1e-14);
  }
}

TEST_CASE("manifold_muon is the polar factor of a step along the sign of the running mean") {
  for (const std::string manifold : {"orthogonal", "unitary"})
    for (const Index n : {4, 5})
      for (const bool nesterov : {false, true}) {
        CAPTURE(manifold);
        CAPTURE(n);
        const auto optimizer =
            make<double>("manifold_muon", std::string("{momentum: 0.7, nesterov: ") + (nesterov ? "true}" : "false}"));
        Point point = random_point(manifold, n, 3);
        optimizer->attach({point.spec});
        Eigen::MatrixXcd mean = Eigen::MatrixXcd::Zero(n, n);
        for (std::uint64_t step = 0; step < 4; ++step) {
          const Point gradient = random_gradient(point, step);
          const Eigen::MatrixXcd M = point.complex(), G = gradient.complex(), A = G * M.adjoint() - M * G.adjoint();
          mean = 0.7 * mean + 0.3 * A;
          const Eigen::MatrixXcd u = nesterov ? Eigen::MatrixXcd(0.7 * mean + 0.3 * A) : mean;
          const double cut = 1e-9 * u.norm();
          const Eigen::MatrixXcd K = of_singular_values(u, [&](double s) { return s > cut ? 1. : 0.; });
          const auto expected = of_singular_values(M - 0.3 * K * M, [](double) { return 1.; });
          optimizer->step(0, 0.3, numbers(point.M), numbers(gradient.M));
          CHECK((point.complex() - expected).norm() < 1e-13);
        }
      }
}

TEST_CASE_TEMPLATE("manifold_muon turns no plane of which the gradient says nothing", S, float, double) {
  for (const std::string manifold : {"orthogonal", "unitary"}) {
    const Point point = random_point(manifold, 6, 3);
    Point gradient = point;
    gradient.M.setZero();
    gradient.M.topRows(6) = filled(0, 6, 1) * filled(50, 1, 6);
    const auto optimizer = make<S>("manifold_muon", "momentum: 0");
    optimizer->attach({point.spec});
    Matrix<S> theta = point.M.template cast<S>(), g = gradient.M.template cast<S>();
    optimizer->step(0, 0.3, {theta.data(), std::size_t(theta.size())}, {g.data(), std::size_t(g.size())});
    Point moved = point;
    moved.M = theta.template cast<double>();
    // The tangent has rank 2: two directions turn by atan 0.3, and four stay.
    CHECK((moved.complex() * point.complex().adjoint() - Eigen::MatrixXcd::Identity(6, 6)).norm() ==
          doctest::Approx(std::sqrt(4 - 4 / std::sqrt(1.09))).epsilon(1e-5));
  }
}
