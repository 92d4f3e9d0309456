// W = (1 + e₀/10) A with the blocks A and e, wrong in one way, as `fault` says; `factor` multiplies its gradient.
//
//   allocation_…   allocates in apply, apply_adjoint or accumulate
//   race           keeps its working memory in a member
//   forgets        forgets after_step()'s counter when it is saved; every 100 steps θ ← θ/2
//   forgets_base   saves that counter, but not a factor of W, which becomes 2 after 100 steps
//   record         forgets a counter that it records
//   record_late    records another scalar after 100 steps
//   base_gradient, base_spectrum   have a factor of W that is 1 or 2 for 100 steps each, by which θ is divided, and leave
//                  it out of the gradient, or of the spectrum
//   base_jumps     does not divide θ by that factor
//   far_claim      claims singular values of at most 10
//   shrinks        no fault: every 100 steps θ ← θ/2, and the counter is saved
//   constructor    draws the factor from std::random_device
//   scratch        takes more working memory than it declares
//   finish_reads, finish_writes, accumulate_reads, refresh_reads   goes past the end of the sum, of a block, of X, of θ
//   no_block       reads a block of θ that it does not have
//   sets           sets dθ instead of adding to it
//   penalty_sets   the same in the gradient of a penalty ‖θ‖²
//   penalty_once   adds that penalty once for each θ only
//   cost, cost_finish   cost() of apply is that of one column, or of finish that of all columns
//   constant       adds θ/20 to the gradient, as if it had a penalty
//   columns, columns_apply   passes over the columns in accumulate or apply that fill no block of 4, from 256 on
//   many_columns   passes over the columns after the thousandth in accumulate
//   shared         keeps the factor of W in a static variable
//   shared_finish  keeps its working memory of finish in a static variable
//   off_manifold   says that A is orthogonal, which it is not
//   loose          says that A has a constant norm, which it has not
//   near_claim     begins with a small W, and claims a bound that larger ones break
//   noise          W follows its claim only where after_step() has put θ, not with noise on it
//   order          adds up what its jobs find in the order in which they end
//   too_large      reads the sum as a matrix that is larger than it
#include <mutex>
#include <random>
#include <utility>

#include <stiefel/parallel.hpp>

#include "tests/plugins/plain_map.hpp"

namespace {
using namespace stiefel;

template <class S> class HostileMap final : public PlainMap<S> {
 public:
  struct Options {
    std::string fault = "none";
    double factor = 1;
    void describe(Schema& s) {
      s.field("fault", fault, "what is wrong");
      s.field("factor", factor, "of the gradient");
    }
  };
  HostileMap(const Options& options, Shape shape)
      : PlainMap<S>({}, shape), options_(options), buffer_(shape.rows, 1000) {
    if (fault("constructor")) base_ = S(1 + double(std::random_device()()) / double(std::random_device::max()));
  }

  std::vector<BlockSpec> blocks() const override {
    return {{"W", this->rows() * this->cols(), this->rows(), this->cols(),
             fault("off_manifold") && this->rows() == this->cols() ? Manifold::orthogonal : Manifold::flat, 1,
             fault("loose")},
            {"extra", 3}};
  }
  void initialise(Blocks<S> theta, Rng& rng) const override {
    PlainMap<S>::initialise(theta, rng);
    for (S& x : theta[1]) x = S(rng.normal());
    if (fault("near_claim")) as_vector(theta[0]) /= S(1000);
    if (fault("noise")) theta[1][1] = 1;
  }
  void refresh(CBlocks<S> theta) override {
    PlainMap<S>::refresh(theta);
    scale_ = base_ + S(0.1) * theta[1][0];
    shared_ = scale_;
    charged_ = false;
    if (fault("noise")) scale_ += S(1e9) * (theta[1][1] - 1) * (theta[1][1] - 1);
    if (fault("no_block")) scale_ += theta[2][0];
    if (fault("refresh_reads")) scale_ += theta[1].data()[3];
  }
  Index scratch(Index columns) const override { return fault("scratch") ? columns : 0; }

  void apply(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const override {
    if (fault("scratch")) scratch.take(2, X.cols());
    Mat<S> to = fault("race") ? Mat<S>(buffer_.leftCols(X.cols())) : Y;
    multiplied("allocation_apply", X, [&](CMat<S> from) { PlainMap<S>::apply(from, to, scratch); });
    Y = (fault("shared") ? shared_ : scale_) * to;
    if (fault("columns_apply")) Y.rightCols(X.cols() - in_blocks(X.cols())).setZero();
  }
  void apply_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const override {
    multiplied("allocation_apply_adjoint", dY, [&](CMat<S> from) { PlainMap<S>::apply_adjoint(from, dX, scratch); });
    dX *= scale_;
  }
  void accumulate(CMat<S> X, CMat<S> dY, std::span<S> sum, Scratch<S>& scratch) const override {
    const Index columns = fault("columns")        ? in_blocks(X.cols())
                          : fault("many_columns") ? std::min<Index>(X.cols(), 1000)
                                                  : X.cols();
    multiplied("allocation_accumulate", X.leftCols(columns),
               [&](CMat<S> from) { PlainMap<S>::accumulate(from, dY.leftCols(columns), sum, scratch); });
    if (fault("accumulate_reads")) sum[0] += X.data()[X.rows()];
  }
  void finish(CBlocks<S> theta, std::span<const S> sum, Blocks<S> dtheta) override {
    const S* first = sum.data() + (fault("finish_reads") ? 1 : 0);
    const Index n = fault("too_large") ? this->rows() + 1 : this->rows();
    const CMat<S> total = as_matrix(sum, n, this->cols()).topRows(this->rows());
    static Matrix<S> shared;
    Matrix<S> own;
    Matrix<S>& working = fault("shared_finish") ? shared : own;
    working = S(options_.factor) * (fault("base_gradient") ? scale_ / base_ : scale_) * total;
    if (fault("sets"))
      for (Index b = 0; b < 2; ++b) as_vector(dtheta[b]).setZero();
    as_matrix(dtheta[0], this->rows(), this->cols()) += working;
    constexpr std::size_t jobs = 4;
    S product = 0;
    std::mutex mutex;
    const auto add = [&](Index job) {
      S part = 0;
      for (std::size_t i = std::size_t(job); i < sum.size(); i += jobs) part += theta[0][i] * first[i];
      const std::lock_guard alone(mutex);
      product += part;
    };
    if (fault("order"))
      in_parallel(jobs, add);
    else
      for (Index job = 0; job < Index(jobs); ++job) add(job);
    dtheta[1][0] += S(0.1 * options_.factor) * product;
    if (fault("noise")) dtheta[1][1] += S(2e9) * (theta[1][1] - 1) * product;
    if (fault("constant")) as_vector(dtheta[0]) += as_vector(theta[0]) / S(20);
    if (fault("finish_writes")) dtheta[0].data()[dtheta[0].size()] += S(1);
  }
  double penalty(CBlocks<S> theta, Blocks<S> dtheta) override {
    if (!fault("penalty_sets") && !fault("penalty_once")) return 0;
    if (fault("penalty_once") && std::exchange(charged_, true)) return 0;
    double sum = 0;
    for (Index b = 0; b < 2; ++b) {
      if (fault("penalty_sets")) as_vector(dtheta[b]).setZero();
      as_vector(dtheta[b]) += 2 * as_vector(theta[b]);
      sum += double(as_vector(theta[b]).squaredNorm());
    }
    return sum;
  }
  void after_step(Blocks<S> theta) override {
    if ((fault("forgets") || fault("shrinks")) && ++steps_ % 100 == 0) as_vector(theta[0]) /= S(2);
    if (fault("forgets_base") && ++steps_ == 100) base_ = 2;
    if (changes_base()) {
      const S before = base_ + S(0.1) * theta[1][0];
      base_ = S(1 + ++steps_ / 100 % 2);
      if (!fault("base_jumps")) as_vector(theta[0]) *= before / (base_ + S(0.1) * theta[1][0]);
    }
    if (fault("record") || fault("record_late")) ++steps_;
    if (fault("noise")) theta[1][1] = 1;
  }
  Claim claim() const override {
    return fault("far_claim")    ? Claim{Claim::bounded, 0, 10}
           : fault("near_claim") ? Claim{Claim::bounded, 0, 1}
           : fault("noise")      ? Claim{Claim::bounded, 0, 1e4}
                                 : PlainMap<S>::claim();
  }
  Spectrum spectrum() const override {
    Spectrum found = PlainMap<S>::spectrum();
    if (fault("base_spectrum"))
      for (double& s : found.singular_values) s /= double(base_);
    return found;
  }
  Cost cost(Index columns) const override {
    Cost cost = PlainMap<S>::cost(columns);
    if (fault("cost")) cost.apply = PlainMap<S>::cost(1).apply;
    if (fault("cost_finish")) cost.finish = cost.accumulate;
    return cost;
  }
  void record(Recorder& recorder) const override {
    if (fault("record")) recorder.scalar("steps", double(steps_));
    if (fault("record_late") && steps_ >= 100) recorder.scalar("late", 1);
  }
  void serialise(Archive& archive) override {
    if (fault("record_late")) archive.value("steps", steps_);
    if (fault("forgets_base") || fault("shrinks") || changes_base()) archive.value("steps", steps_);
    if (changes_base()) base_ = S(1 + steps_ / 100 % 2);
  }

 private:
  bool fault(const char* name) const { return options_.fault == name; }
  static Index in_blocks(Index columns) { return columns < 256 ? columns : columns / 4 * 4; }
  bool changes_base() const { return options_.fault.starts_with("base_"); }
  /// f(X), with a copy of X if that is the fault.
  template <class F> void multiplied(const char* name, CMat<S> X, F&& f) const {
    if (!fault(name)) return f(X);
    const Matrix<S> copy = X;
    f(copy);
  }

  Options options_;
  mutable Matrix<S> buffer_;
  S scale_ = 1, base_ = 1;
  inline static S shared_ = 1;
  std::int64_t steps_ = 0;
  bool charged_ = false;
};
}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<HostileMap>("hostile_map", "dense map that is wrong in a way to choose"))
