// Losses and counts on columns of outputs. A column of weight 0 takes no part, whatever it holds.
//
//   softmax cross-entropy   ℓ = −o_l + ln Σ_j exp o_j         ∂ℓ/∂o_j = p_j − [j = l],  p = softmax(o)
//   mean square             ℓ = 1/k Σ_j (o_j − y_j)²          ∂ℓ/∂o_j = 2/k (o_j − y_j)
//   Bernoulli on logits     ℓ = Σ_j ln(1 + exp o_j) − y_j o_j  ∂ℓ/∂o_j = σ(o_j) − y_j
#include <stiefel/losses.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sdk/require.hpp"

namespace stiefel {
namespace {

template <class S> using Column = Eigen::Map<Vector<S>>;

// Σ_c weight_c · column(output_c, c, ∂/∂output_c), the gradient multiplied by the weight as well.
template <class S, class F> double weighted_sum(CMat<S> output, const Targets<S>& targets, Mat<S> doutput, F&& column) {
  require(Index(targets.weights.size()) >= output.cols(), "{} weights for {} columns of outputs",
          targets.weights.size(), output.cols());
  const bool gradient = doutput.cols() > 0;
  require(!gradient || (doutput.rows() == output.rows() && doutput.cols() == output.cols()),
          "the gradient of {} × {} outputs is {} × {}", output.rows(), output.cols(), doutput.rows(), doutput.cols());
  std::vector<S> memory(static_cast<std::size_t>(output.rows()));
  Column<S> d(memory.data(), output.rows());
  double sum = 0;
  for (Index c = 0; c < output.cols(); ++c) {
    const S weight = targets.weights[c];
    if (weight != S(0)) sum += double(weight) * column(output.col(c), c, d);
    if (gradient && weight != S(0)) doutput.col(c) = weight * d;
    if (gradient && weight == S(0)) doutput.col(c).setZero();
  }
  return sum;
}

template <class S> Index label_of(const Targets<S>& targets, Index c, Index classes) {
  require(c < Index(targets.labels.size()),
          "the loss is one of labels, but the targets are numbers; set `labels` in shape()");
  const Index label = targets.labels[c];
  require(label >= 0 && label < classes, "the label {} is not from 0 to {}; correct fill()", label, classes - 1);
  return label;
}

template <class S> void require_values(CMat<S> output, const Targets<S>& targets) {
  require(targets.values.cols() >= output.cols(),
          "the loss is one of numbers, but the targets are labels; set `labels` to false in shape()");
  require(targets.values.rows() == output.rows(), "the targets have {} rows and the outputs {}", targets.values.rows(),
          output.rows());
}

}  // namespace

// With M = max_j o_j reached at j = a: ℓ = M − o_l + ln(1 + Σ_{j≠a} exp(o_j − M)), which stays exact for losses far
// below 1.
template <class S> double softmax_cross_entropy(CMat<S> output, const Targets<S>& targets, Given<Mat<S>> doutput) {
  return weighted_sum(output, targets, doutput, [&](const auto& o, Index c, Column<S> d) {
    const Index label = label_of(targets, c, o.size());
    Index largest = 0;
    const S maximum = o.maxCoeff(&largest);
    d = (o.array() - maximum).exp();
    d(largest) = 0;
    const double others = double(d.sum());
    d(largest) = 1;
    d *= S(1 / (1 + others));
    d(label) -= S(1);
    return double(maximum) - double(o(label)) + std::log1p(others);
  });
}

template <class S> double mean_square(CMat<S> output, const Targets<S>& targets, Given<Mat<S>> doutput) {
  require_values(output, targets);
  return weighted_sum(output, targets, doutput, [&](const auto& o, Index c, Column<S> d) {
    d = o - targets.values.col(c);
    const double loss = d.template cast<double>().squaredNorm() / double(o.size());
    d *= S(2) / S(o.size());
    return loss;
  });
}

template <class S> double bernoulli(CMat<S> output, const Targets<S>& targets, Given<Mat<S>> doutput) {
  require_values(output, targets);
  return weighted_sum(output, targets, doutput, [&](const auto& o, Index c, Column<S> d) {
    double loss = 0;
    for (Index j = 0; j < o.size(); ++j) {
      const double x = o(j), y = targets.values(j, c), small = std::exp(-std::abs(x));  // no exponential overflows
      loss += std::max(x, 0.0) - x * y + std::log1p(small);
      d(j) = S((x < 0 ? small : 1) / (1 + small) - y);
    }
    return loss;
  });
}

template <class S> double correct(CMat<S> output, const Targets<S>& targets) {
  return weighted_sum(output, targets, Mat<S>(), [&](const auto& o, Index c, Column<S>) {
    Index largest = 0;
    o.maxCoeff(&largest);
    return largest == label_of(targets, c, o.size()) ? 1.0 : 0.0;
  });
}

template <class S> double total_weight(const Targets<S>& targets) {
  double sum = 0;
  for (const S weight : targets.weights) sum += double(weight);
  return sum;
}

#define STIEFEL_LOSSES(S)                                                       \
  template double softmax_cross_entropy<S>(CMat<S>, const Targets<S>&, Mat<S>); \
  template double mean_square<S>(CMat<S>, const Targets<S>&, Mat<S>);           \
  template double bernoulli<S>(CMat<S>, const Targets<S>&, Mat<S>);             \
  template double correct<S>(CMat<S>, const Targets<S>&);                       \
  template double total_weight<S>(const Targets<S>&);
STIEFEL_LOSSES(float)
STIEFEL_LOSSES(double)
#undef STIEFEL_LOSSES

}  // namespace stiefel
