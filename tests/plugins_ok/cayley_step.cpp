// A step along the orthogonal matrices: A = G Wᵀ − W Gᵀ, W ← (I + η/2 A)⁻¹ (I − η/2 A) W (Wen & Yin 2013).
#include <stiefel/plugin.hpp>

#include <Eigen/LU>

namespace {
using namespace stiefel;

template <class S> class CayleyStep final : public Optimizer<S> {
 public:
  struct Options {
    void describe(Schema&) {}
  };
  explicit CayleyStep(const Options&) {}

  bool moves(Manifold manifold) const override { return manifold == Manifold::orthogonal; }
  void attach(const std::vector<BlockSpec>& blocks) override { blocks_ = blocks; }
  void step(Index block, double rate, std::span<S> theta, std::span<const S> gradient) override {
    const Index n = blocks_[std::size_t(block)].rows;
    auto W = as_matrix(theta, n, n);
    const auto G = as_matrix(gradient, n, n);
    const Matrix<S> A = S(rate / 2) * (G * W.transpose() - W * G.transpose()), I = Matrix<S>::Identity(n, n);
    const Matrix<S> right = (I - A) * W;
    W = (I + A).lu().solve(right);
  }
  void serialise(Archive&) override {}

 private:
  std::vector<BlockSpec> blocks_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::optimizer<CayleyStep>("cayley_step", "gradient descent along the orthogonal matrices"))
