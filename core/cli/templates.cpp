// One small, working method of every role, for authors to change: each passes `stiefel check` and trains as it stands.
#include "cli/templates.hpp"

namespace stiefel::cli {
namespace {

constexpr char parametrisation_source[] =
    R"(// W = (I + A)⁻¹(I − A) with A skew-symmetric, an orthogonal matrix; θ holds the strict lower triangle of A, by columns.
//
//   M = (I + A)⁻¹      W = 2M − I      dW = −2 M dA M
#include <stiefel/linear_algebra.hpp>
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class CLASS final : public Dense<S> {
 public:
  struct Options {
    double angle = 0.1;
    void describe(Schema& s) { s.field("angle", angle, "standard deviation of the initial entries of A").at_least(0); }
  };
  CLASS(const Options& options, Shape shape)
      : Dense<S>(shape.square("NAME")), angle_(options.angle) {}

  std::vector<BlockSpec> blocks() const override { return {{"A", this->rows() * (this->rows() - 1) / 2}}; }
  void initialise(Blocks<S> theta, Rng& rng) const override {
    for (S& entry : theta[0]) entry = S(angle_ * rng.normal());
  }

  void materialise(CBlocks<S> theta, Mat<S> W) override {
    skew(theta[0], W);
    W.diagonal().array() += 1;
    invert(W);
    M_ = W;
    W *= 2;
    W.diagonal().array() -= 1;
  }
  // The gradient of A is −2 Mᵀ W̅ Mᵀ.
  void pullback(CBlocks<S>, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override {
    Matrix<S> left(M_.rows(), M_.cols()), dA(M_.rows(), M_.cols());
    multiply(transposed(M_), dW, view(left));
    multiply(left, transposed(M_), view(dA));
    dA *= -2;
    add_skew(dtheta[0], dA);
  }

  Claim claim() const override { return {Claim::orthogonal}; }

 private:
  double angle_;
  Matrix<S> M_;  // n × n
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<CLASS>("NAME", "Cayley transform of a skew-symmetric matrix"))
)";

constexpr char cell_source[] =
    R"(// A leaky cell: h_t = (1 − α) h_{t−1} + α u_t, u_t = tanh(a_t), a_t = W h_{t−1} + V x_t + b.
//
//   backward   g = ∂L/∂h_t      δ = α g (1 − u²), clipped      ∂L/∂h_{t−1} = (1 − α) g + Wᵀ δ      dW = Σ δ h_{t−1}ᵀ
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class CLASS final : public Cell<S> {
 public:
  struct Options {
    double leak = 0.5;
    void describe(Schema& s) { s.field("leak", leak, "share α of the new value").more_than(0).at_most(1); }
  };
  CLASS(const Options& options, CellContext context) : Cell<S>(context), n_(context.rows()), alpha_(S(options.leak)) {}

  std::vector<MapSpec> maps() const override { return {{"", n_, n_, 0}}; }
  Index input_rows() const override { return n_; }
  Index saved_rows() const override { return 2 * n_; }  // u over h
  Index output_row() const override { return n_; }

  void forward(Chunk<S>& chunk, const Maps<S>& maps, CBlocks<S>, Scratch<S>& scratch) const override {
    for (Index t = 0; t < chunk.steps; ++t) {
      Mat<S> u = rows_of(chunk.at(t), 0, n_), h = rows_of(chunk.at(t), n_, n_);
      const CMat<S> before = rows_of(chunk.before(t), n_, n_);
      maps.add(0, 1, before, u, scratch);
      for (Index b = 0; b < u.cols(); ++b) {
        const std::span<S> column(u.col(b).data(), std::size_t(n_));
        vector_tanh<S>(column, column);
      }
      h = (1 - alpha_) * before + alpha_ * u;
    }
  }

  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S>, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      const Mat<S> u = rows_of(chunk.at(t), 0, n_);
      Mat<S> delta = chunk.step(chunk.delta, t), g = chunk.receive(t, doutput);
      delta = alpha_ * g.array() * (1 - u.array().square());
      delta = delta.unaryExpr([&](S x) { return clipped(x, chunk.bound()); });
      g *= 1 - alpha_;
      maps.add_adjoint(0, 1, delta, g, scratch);
    }
    sink.map(0, 1, rows_of(chunk.all_before(), n_, n_), chunk.delta);
  }

 private:
  Index n_;
  S alpha_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<CLASS>("NAME", "leaky cell: a part of the state is kept from step to step"))
)";

constexpr char task_source[] = R"(// Recall: a sequence of random numbers; the target at the last step is the first one.
//
//   x_t ~ U[0, 1)      target = x_1      loss = (o − target)²      predicting 1/2 costs Var(x_1) = 1/12
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class CLASS final : public Task<S> {
 public:
  struct Options {
    Index length = 20;
    void describe(Schema& s) { s.field("length", length, "number of steps T").at_least(1); }
  };
  CLASS(const Options& options, const TaskContext& context) : Task<S>(context), length_(options.length) {}

  TaskShape shape() const override {
    return {.input = InputKind::dense, .input_size = 1, .output_size = 1, .readout = ReadoutKind::last, .steps = length_};
  }
  Index batches(Split split) const override {
    return split == Split::train ? 1000 : (held_out + this->context().batch - 1) / this->context().batch;
  }
  // One random stream for each split and sequence: validation and test sets do not depend on the size of a batch.
  void fill(Split split, Index index, Batch<S>& batch) const override {
    const Index size = this->context().batch, first = index * size;
    batch.resize(shape(), split == Split::train ? size : std::min(size, held_out - first), length_);
    for (Index b = 0; b < batch.sequences(); ++b) {
      Rng rng(this->context().seed, name_of(split), std::uint64_t(first + b));
      for (Index t = 0; t < length_; ++t) batch.input(t, b)[0] = S(rng.uniform());
      batch.target(length_ - 1, b)[0] = batch.input(0, b)[0];
    }
  }

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override { return mean_square(output, targets, doutput); }
  double baseline() const override { return 1.0 / 12; }
  void trivial(Index, std::span<S> output) const override { output[0] = S(0.5); }

 private:
  static constexpr Index held_out = 500;  // sequences of validation and of test
  Index length_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<CLASS>("NAME", "recall the first of many random numbers"))
)";

constexpr char optimizer_source[] =
    R"(// Momentum of normalized gradients: v ← μ v + (1 − μ) g, θ ← θ − η v / (√(mean v²) + ε).
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class CLASS final : public Optimizer<S> {
 public:
  struct Options {
    double momentum = 0.9;
    double epsilon = 1e-8;
    void describe(Schema& s) {
      s.field("momentum", momentum, "μ of the running mean of gradients").at_least(0).less_than(1);
      s.field("epsilon", epsilon, "ε of the denominator").more_than(0);
    }
  };
  explicit CLASS(const Options& options) : options_(options) {}

  void attach(const std::vector<BlockSpec>& blocks) override {
    mean_.clear();
    for (const BlockSpec& block : blocks) mean_.push_back(Vector<S>::Zero(block.size));
  }
  void step(Index block, double rate, std::span<S> theta, std::span<const S> gradient) override {
    Vector<S>& v = mean_[std::size_t(block)];
    v = S(options_.momentum) * v + S(1 - options_.momentum) * as_vector(gradient);
    const double size = v.template cast<double>().norm() / std::sqrt(double(std::max<Index>(v.size(), 1)));
    as_vector(theta) -= S(rate / (size + options_.epsilon)) * v;
  }
  void serialise(Archive& archive) override {
    for (std::size_t i = 0; i < mean_.size(); ++i) archive.array("mean_" + std::to_string(i), mean_[i]);
  }

 private:
  Options options_;
  std::vector<Vector<S>> mean_;  // v of each block
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::optimizer<CLASS>("NAME", "momentum of normalized gradients"))
)";

constexpr char parametrisation_example[] = R"(name: NAME-example
plugins: [build]
task: {plugin: adding, length: 10}
model:
  cell: {plugin: elman, hidden: 32, activation: tanh}
  recurrent: {plugin: NAME}
optimizer: {plugin: adam, rate: 0.01}
train: {batch: 50, steps: 1000, evaluate_every: 250}
)";

constexpr char cell_example[] = R"(name: NAME-example
plugins: [build]
task: {plugin: adding, length: 10}
model:
  cell: {plugin: NAME, hidden: 32}
  recurrent: {plugin: dense, init: orthogonal}
optimizer: {plugin: adam, rate: 0.01}
train: {batch: 50, steps: 1000, evaluate_every: 250}
)";

constexpr char task_example[] = R"(name: NAME-example
plugins: [build]
task: {plugin: NAME}
model:
  cell: {plugin: elman, hidden: 32, activation: tanh}
  recurrent: {plugin: dense, init: orthogonal}
optimizer: {plugin: adam, rate: 0.01}
train: {batch: 50, steps: 1000, evaluate_every: 250}
)";

constexpr char optimizer_example[] = R"(name: NAME-example
plugins: [build]
task: {plugin: adding, length: 10}
model:
  cell: {plugin: elman, hidden: 32, activation: tanh}
  recurrent: {plugin: dense, init: orthogonal}
optimizer: {plugin: NAME, rate: 0.001}
train: {batch: 50, steps: 1000, evaluate_every: 250}
)";

}  // namespace

const Template templates[4] = {{"parametrisation", parametrisation_source, parametrisation_example},
                               {"cell", cell_source, cell_example},
                               {"task", task_source, task_example},
                               {"optimizer", optimizer_source, optimizer_example}};

const char* const cmake_template = R"(cmake_minimum_required(VERSION 3.25)
project(NAME LANGUAGES CXX)
find_package(stiefel REQUIRED)
stiefel_add_plugin(NAME NAME.cpp)
)";

}  // namespace stiefel::cli
