// The choice of an activation by its options, and what all activations share.
#include <stiefel/activation.hpp>

#include <cmath>
#include <limits>

#include "sdk/activations/activations.hpp"

namespace stiefel {

void ActivationOptions::describe(Schema& s) {
  s.shorthand("kind");
  s.field("kind", kind, "activation").one_of({"identity", "tanh", "relu", "leaky_relu", "prelu", "oplu", "modrelu"});
  s.field("slope", slope, "leaky_relu: slope below zero; prelu: its initial value");
  s.field("trainable", trainable, "prelu: whether the slope is learned");
  s.field("shared", shared, "prelu: one slope for all rows, or one for each");
  s.field("pairing", pairing, "oplu: pairs of rows (i, i + n/2) or (2i, 2i + 1)").one_of({"halves", "adjacent"});
  s.field("form", form, "modrelu: exact, or as in the released code of a paper").one_of({"exact", "arj", "wis", "eu", "goru", "squared"});
  s.field("epsilon", epsilon, "modrelu: number in the forms arj, wis, eu and goru; 0: that of the code, 1e-5, 1e-5, 0.01 and 0.001")
      .at_least(0);
  s.field("pairs", pairs, "modrelu: rows i and i + n/2 are one complex number although the state is real");
  s.field("bias_init", bias_init, "modrelu: initial bias, constant and uniform of size bias_scale").one_of({"zero", "constant", "uniform"});
  s.field("bias_scale", bias_scale, "modrelu: the constant, or the bound of the uniform distribution");
}

namespace {

template <class S> std::unique_ptr<Activation<S>> make_modrelu(const ActivationOptions& options, Index rows, bool complex) {
  const bool pairs = complex || options.pairs || options.form == "squared";
  if (pairs && rows % 2 != 0)
    throw Error("modrelu takes rows i and i + n/2 as one complex number and needs an even number of rows, not " + std::to_string(rows) +
                "; change `hidden` by one");
  if (pairs && options.form == "goru") throw Error("the form goru of modrelu is for real states; choose exact, arj, wis or eu");
  if (!pairs && (options.form == "arj" || options.form == "wis"))
    throw Error("the form " + options.form + " of modrelu is for complex states; choose exact, eu, goru or squared, or set `pairs: true`");
  return pairs ? make_pair_modrelu<S>(options, rows) : make_sign_modrelu<S>(options, rows);
}

}  // namespace

template <class S> std::unique_ptr<Activation<S>> Activation<S>::make(const ActivationOptions& options, Index rows, bool complex) {
  const std::string& kind = options.kind;
  if (kind == "identity") return make_identity<S>();
  if (kind == "tanh") return make_tanh<S>();
  if (kind == "relu") return make_relu<S>();
  if (kind == "leaky_relu") return make_leaky_relu<S>(options.slope);
  if (kind == "prelu") return make_prelu<S>(options, rows);
  if (kind == "oplu") return make_oplu<S>(options, rows);
  if (kind == "modrelu") return make_modrelu<S>(options, rows, complex);
  throw Error("there is no activation `" + kind + "`; choose identity, tanh, relu, leaky_relu, prelu, oplu or modrelu");
}

template <class S> Activation<S>::~Activation() = default;
template <class S> std::vector<BlockSpec> Activation<S>::blocks() const { return {}; }
template <class S> void Activation<S>::initialise(Blocks<S>, Rng&) const {}
template <class S> double Activation<S>::kink_distance(CMat<S>, CMat<S>, CBlocks<S>) const {
  return std::numeric_limits<double>::infinity();
}

BlockSpec modrelu_bias(Index size) { return {"bias", size}; }

template <class S> void initialise_modrelu_bias(const ActivationOptions& options, std::span<S> bias, Rng& rng) {
  for (S& b : bias) {
    if (options.bias_init == "constant")
      b = S(options.bias_scale);
    else if (options.bias_init == "uniform")
      b = S(rng.uniform(-options.bias_scale, options.bias_scale));
    else
      b = 0;
  }
}

template class Activation<float>;
template class Activation<double>;
template void initialise_modrelu_bias(const ActivationOptions&, std::span<float>, Rng&);
template void initialise_modrelu_bias(const ActivationOptions&, std::span<double>, Rng&);

}  // namespace stiefel
