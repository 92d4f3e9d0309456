/// Activations h = φ(a), column by column, with their pullbacks and parameters.
///
/// Not all are elementwise: OPLU looks at pairs of rows, complex modReLU at Re and Im (rows i and i + n/2), PReLU
/// and modReLU have parameters. The formulas and variants are next to the implementations.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>
#include <stiefel/parametrisation.hpp>
#include <stiefel/schema.hpp>

namespace stiefel {

/// YAML: `activation: tanh` or `activation: {kind: leaky_relu, slope: 0.1}`.
struct STIEFEL_API ActivationOptions {
  std::string kind = "tanh";       // identity tanh relu leaky_relu prelu oplu modrelu
  double slope = 0.1;              // leaky_relu; initial slope of prelu
  bool trainable = true;           // prelu
  bool shared = true;              // prelu: one slope, or one per row
  std::string pairing = "halves";  // oplu: halves (i, i+n/2) or adjacent (2i, 2i+1)
  std::string form = "exact";      // modrelu: exact arj wis eu goru squared
  double epsilon = 0;              // modrelu: 0 stands for the number in the form's released code
  bool pairs = false;              // modrelu: rows i and i + n/2 are one complex number although the state is real
  std::string bias_init = "zero";  // modrelu: zero constant uniform
  double bias_scale = 0.01;
  void describe(Schema& s);
};

template <class S> class STIEFEL_API Activation {
 public:
  /// `rows` real rows; `complex` when they are Re over Im pairs. Throws Error when the kind does not fit (odd rows for
  /// oplu, …).
  static std::unique_ptr<Activation> make(const ActivationOptions& options, Index rows, bool complex);
  virtual ~Activation();

  /// Its parameters. The functions below take them to be the first of the Blocks that they are given, so a cell lists
  /// these blocks before its own.
  virtual std::vector<BlockSpec> blocks() const;
  virtual void initialise(Blocks<S> theta, Rng& rng) const;
  /// True when backward() needs a in addition to h.
  virtual bool keeps_input() const = 0;
  /// h = φ(a); h may be the same memory as a when keeps_input() is false.
  virtual void forward(CMat<S> a, Mat<S> h, CBlocks<S> theta) const = 0;
  /// da = pullback of dh; da may be the same memory as dh. dtheta += gradient of the parameters, unless dtheta.count()
  /// is 0. `a` is 0 × 0 when keeps_input() is false.
  virtual void backward(CMat<S> a, CMat<S> h, CMat<S> dh, Mat<S> da, CBlocks<S> theta, Blocks<S> dtheta) const = 0;
};

extern template class Activation<float>;
extern template class Activation<double>;

}  // namespace stiefel
