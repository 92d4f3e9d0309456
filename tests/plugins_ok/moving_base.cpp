// A map with a state of its own: W = B + θ, and after every step B takes θ over, W staying where it is.
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class MovingBase final : public Dense<S> {
 public:
  struct Options {
    Initialiser init;
    void describe(Schema& s) { init.describe(s); }
  };
  MovingBase(const Options& options, Shape shape)
      : Dense<S>(shape), init_(options.init), B_(Matrix<S>::Zero(shape.rows, shape.cols)) {}

  std::vector<BlockSpec> blocks() const override { return {{"offset", B_.size(), B_.rows(), B_.cols()}}; }
  void initialise(Blocks<S> theta, Rng& rng) const override {
    init_.fill<S>(as_matrix(theta[0], B_.rows(), B_.cols()), rng);
  }
  void materialise(CBlocks<S> theta, Mat<S> W) override { W = B_ + as_matrix(theta[0], B_.rows(), B_.cols()); }
  void pullback(CBlocks<S>, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override {
    as_matrix(dtheta[0], B_.rows(), B_.cols()) += dW;
  }
  void after_step(Blocks<S> theta) override {
    B_ += as_matrix(theta[0], B_.rows(), B_.cols());
    as_vector(theta[0]).setZero();
    ++moves_;
  }
  void record(Recorder& recorder) const override { recorder.scalar("moves", double(moves_)); }
  void serialise(Archive& archive) override {
    archive.array("base", B_);
    archive.value("moves", moves_);
  }

 private:
  Initialiser init_;
  Matrix<S> B_;  // rows × cols
  std::int64_t moves_ = 0;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<MovingBase>("moving_base",
                                                           "a matrix as a base that follows and a small offset"))
