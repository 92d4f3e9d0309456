// The makers of the activations, one file each or a family of elementwise ones; Activation::make() chooses among them.
#pragma once

#include <memory>

#include <stiefel/activation.hpp>

namespace stiefel {

template <class S> std::unique_ptr<Activation<S>> make_identity();
template <class S> std::unique_ptr<Activation<S>> make_tanh();
template <class S> std::unique_ptr<Activation<S>> make_relu();
template <class S> std::unique_ptr<Activation<S>> make_leaky_relu(double slope);
template <class S> std::unique_ptr<Activation<S>> make_prelu(const ActivationOptions& options, Index rows);
template <class S> std::unique_ptr<Activation<S>> make_oplu(const ActivationOptions& options, Index rows);
/// modReLU of single real numbers in the forms exact, eu and goru.
template <class S> std::unique_ptr<Activation<S>> make_sign_modrelu(const ActivationOptions& options, Index rows);
/// modReLU of rows i and i + n/2 as one complex number in the forms exact, arj, wis, eu and squared.
template <class S> std::unique_ptr<Activation<S>> make_pair_modrelu(const ActivationOptions& options, Index rows);

/// The bias of a modReLU: its block and its first values.
BlockSpec modrelu_bias(Index size);
template <class S> void initialise_modrelu_bias(const ActivationOptions& options, std::span<S> bias, Rng& rng);

}  // namespace stiefel
