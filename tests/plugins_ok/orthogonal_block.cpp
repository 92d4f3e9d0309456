// A map that is its parameter: W = M with M an orthogonal block, which only an optimizer of that manifold may move.
#include <cmath>

#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class OrthogonalBlock final : public Dense<S> {
 public:
  struct Options {
    void describe(Schema&) {}
  };
  OrthogonalBlock(const Options&, Shape shape) : Dense<S>(shape.square("orthogonal_block")) {}

  std::vector<BlockSpec> blocks() const override {
    const Index n = this->rows();
    return {{"M", n * n, n, n, Manifold::orthogonal}};
  }
  void initialise(Blocks<S> theta, Rng& rng) const override {
    Initialiser("orthogonal").fill<S>(as_matrix(theta[0], this->rows(), this->cols()), rng);
  }
  void materialise(CBlocks<S> theta, Mat<S> W) override { W = as_matrix(theta[0], this->rows(), this->cols()); }
  void pullback(CBlocks<S>, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override {
    as_matrix(dtheta[0], this->rows(), this->cols()) += dW;
  }
  Claim claim() const override { return {Claim::orthogonal}; }
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<OrthogonalBlock>("orthogonal_block",
                                                                "an orthogonal matrix as its own parameter"))
