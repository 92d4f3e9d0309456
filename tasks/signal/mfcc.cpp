// Mel-frequency cepstral coefficients, energy, derivatives.
#include "tasks/signal/mfcc.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "tasks/signal/fourier.hpp"

namespace stiefel {
namespace {

using Eigen::Index;
using std::numbers::pi;

constexpr Index filters = 26, coefficients = 12, statics = coefficients + 1;

Index window_of(std::int64_t rate) { return Index(rate / 40); }
Index hop_of(std::int64_t rate) { return Index(rate / 100); }

double mel(double frequency) { return 1127 * std::log1p(frequency / 700); }

/// Weights of the filters, 26 × bins.
Eigen::MatrixXd mel_filters(Index size, std::int64_t rate) {
  const double step = mel(double(rate) / 2) / (filters + 1);
  Eigen::MatrixXd weights(filters, size / 2 + 1);
  for (Index k = 0; k < weights.cols(); ++k) {
    const double place = mel(double(rate) * double(k) / double(size)) / step;  // in units of the corners' distance
    for (Index j = 0; j < filters; ++j) weights(j, k) = std::max(0., 1 - std::abs(place - double(j + 1)));
  }
  return weights;
}

/// Cosine transform and lifter, 12 × 26.
Eigen::MatrixXd cepstral_transform() {
  Eigen::MatrixXd transform(coefficients, filters);
  for (Index i = 1; i <= coefficients; ++i)
    for (Index j = 1; j <= filters; ++j)
      transform(i - 1, j - 1) = (1 + 11 * std::sin(pi * double(i) / 22)) * std::sqrt(2. / filters) *
                                std::cos(pi * double(i) / filters * (double(j) - 0.5));
  return transform;
}

Eigen::VectorXd hamming(Index size) {
  Eigen::VectorXd w(size);
  for (Index n = 0; n < size; ++n) w(n) = 0.54 - 0.46 * std::cos(2 * pi * double(n) / double(size - 1));
  return w;
}

/// Scaled to 16-bit integers.
Eigen::VectorXd window_at(std::span<const double> x, Index frame, std::int64_t rate) {
  return 32768 * Eigen::Map<const Eigen::VectorXd>(x.data() + frame * hop_of(rate), window_of(rate));
}

/// Writes the derivatives of the upper 13 rows into the lower 13.
void add_derivatives(Eigen::MatrixXd& features) {
  const Index frames = features.cols();
  const auto at = [&](Index t) { return features.col(std::clamp<Index>(t, 0, frames - 1)).head(statics); };
  for (Index t = 0; t < frames; ++t)
    features.col(t).tail(statics) = (at(t + 1) - at(t - 1) + 2 * (at(t + 2) - at(t - 2))) / 10;
}

}  // namespace

Index mfcc_frames(Index samples, std::int64_t rate) {
  return samples < window_of(rate) ? 0 : 1 + (samples - window_of(rate)) / hop_of(rate);
}

Index mfcc_centre(Index frame, std::int64_t rate) { return frame * hop_of(rate) + window_of(rate) / 2; }

Eigen::MatrixXd log_bands(std::span<const double> x, std::int64_t rate) {
  const Index window = window_of(rate), size = Index(std::bit_ceil(std::size_t(window)));
  const Eigen::MatrixXd weights = mel_filters(size, rate);
  const Eigen::VectorXd taper = hamming(window);
  RealFourier fourier(size);
  Eigen::VectorXd frame = Eigen::VectorXd::Zero(size);
  Eigen::VectorXcd spectrum(fourier.bins());
  Eigen::MatrixXd bands(filters, mfcc_frames(Index(x.size()), rate));
  for (Index t = 0; t < bands.cols(); ++t) {
    const Eigen::VectorXd s = window_at(x, t, rate);
    frame.head(window) = s;
    frame.segment(1, window - 1) -= 0.97 * s.head(window - 1);
    frame(0) *= 1 - 0.97;
    frame.head(window).array() *= taper.array();
    fourier.forward(frame.data(), spectrum.data());
    bands.col(t) = (weights * spectrum.cwiseAbs()).cwiseMax(1).array().log().matrix();
  }
  return bands;
}

Eigen::MatrixXd mfcc(std::span<const double> x, std::int64_t rate) {
  const Eigen::MatrixXd bands = log_bands(x, rate), transform = cepstral_transform();
  Eigen::MatrixXd features(mfcc_features, bands.cols());
  for (Index t = 0; t < features.cols(); ++t) {
    features.col(t).head(coefficients) = transform * bands.col(t);
    features(coefficients, t) = std::log(std::max(window_at(x, t, rate).squaredNorm(), 1.));
  }
  if (features.cols() > 0) add_derivatives(features);
  return features;
}

}  // namespace stiefel
