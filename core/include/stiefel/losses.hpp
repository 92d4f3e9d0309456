/// Ready-made losses on columns of outputs: Σ_c weight_c · loss(output_c, target_c), with the gradient, which is
/// assigned. Columns of weight 0 are skipped, whatever they hold. Sizes that do not fit throw Error. Thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>

namespace stiefel {

/// Targets of the columns of an output panel.
template <class S> struct Targets {
  CMat<S> values;                        ///< k × c, when the task's targets are numbers
  std::span<const std::int32_t> labels;  ///< c, when they are class numbers
  std::span<const S> weights;            ///< c
  /// c, for Task::measure(): the step of its sequence that a column belongs to, and the number of that sequence, which
  /// is below sequence_count.
  std::span<const Index> steps = {}, sequences = {};
  Index sequence_count = 0;
};

/// −log softmax(o)[label], natural logarithm, by log-sum-exp.
template <class S>
STIEFEL_API double softmax_cross_entropy(CMat<S> output, const Targets<S>& targets, Given<Mat<S>> doutput);
/// Mean over the k rows of (o − y)².
template <class S> STIEFEL_API double mean_square(CMat<S> output, const Targets<S>& targets, Given<Mat<S>> doutput);
/// Sum over the k rows of −y log σ(o) − (1 − y) log(1 − σ(o)), on logits.
template <class S> STIEFEL_API double bernoulli(CMat<S> output, const Targets<S>& targets, Given<Mat<S>> doutput);

/// Σ weight · [argmax of the column = label].
template <class S> STIEFEL_API double correct(CMat<S> output, const Targets<S>& targets);
template <class S> STIEFEL_API double total_weight(const Targets<S>& targets);

}  // namespace stiefel
