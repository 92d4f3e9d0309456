// The unconstrained map: W itself is the parameter.
//
// Optional soft constraint λ‖WᵀW − I‖_F², whose gradient is 4λ W(WᵀW − I).
#include <stiefel/plugin.hpp>

namespace {

using namespace stiefel;

template <class S> class DenseMap final : public Dense<S> {
 public:
  struct Options {
    Initialiser initialiser;
    double soft_orthogonality = 0;
    void describe(Schema& s) {
      initialiser.describe(s);
      s.field("soft_orthogonality", soft_orthogonality, "λ of the penalty λ‖WᵀW − I‖_F² that is added to the loss")
          .at_least(0);
    }
  };

  DenseMap(const Options& options, Shape shape) : Dense<S>(shape), options_(options) {}

  std::vector<BlockSpec> blocks() const override {
    return {{"W", this->rows() * this->cols(), this->rows(), this->cols()}};
  }
  void initialise(Blocks<S> theta, Rng& rng) const override { options_.initialiser.fill(parameter(theta), rng); }

  void materialise(CBlocks<S> theta, Mat<S> W) override { W = parameter(theta); }
  void pullback(CBlocks<S>, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override { parameter(dtheta) += dW; }

  double penalty(CBlocks<S> theta, Blocks<S> dtheta) override {
    const double strength = options_.soft_orthogonality;
    if (strength == 0) return 0;
    const CMat<S> W = parameter(theta);
    Matrix<S> defect = W.transpose() * W;
    defect.diagonal().array() -= S(1);
    parameter(dtheta).noalias() += S(4 * strength) * (W * defect);
    return strength * defect.template cast<double>().squaredNorm();
  }

 private:
  template <class T> auto parameter(Blocks<T> blocks) const { return as_matrix(blocks[0], this->rows(), this->cols()); }

  Options options_;
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::parametrisation<DenseMap>("dense", "unconstrained matrix; all of its entries are parameters"))
