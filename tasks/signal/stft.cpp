// Short-time Fourier transform by frames, and its inverse by weighted overlap-add.
#include "tasks/signal/stft.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include <stiefel/error.hpp>
#include "tasks/signal/fourier.hpp"

namespace stiefel {
namespace {

using Eigen::Index;

std::array<double, stft_window> hann() {
  std::array<double, stft_window> w{};
  for (Index n = 0; n < stft_window; ++n)
    w[std::size_t(n)] = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * double(n) / stft_window);
  return w;
}

}  // namespace

Eigen::MatrixXcd stft(std::span<const double> x) {
  const auto w = hann();
  const Index frames = stft_frames(Index(x.size()));
  std::vector<double> padded(std::size_t((frames + 1) * stft_hop)), frame(stft_window);
  std::copy(x.begin(), x.end(), padded.begin() + stft_window);
  Eigen::MatrixXcd X(stft_bins, frames);
  RealFourier fourier(stft_window);
  for (Index t = 0; t < frames; ++t) {
    for (std::size_t n = 0; n < frame.size(); ++n) frame[n] = w[n] * padded[std::size_t(t * stft_hop) + n];
    fourier.forward(frame.data(), X.col(t).data());
  }
  return X;
}

std::vector<double> inverse_stft(const Eigen::MatrixXcd& X, Index samples) {
  STIEFEL_ASSERT(X.rows() == stft_bins && samples >= 0 && X.cols() >= stft_frames(samples));
  const auto w = hann();
  std::vector<double> sum(std::size_t((X.cols() + 1) * stft_hop)), weight(sum.size()), frame(stft_window);
  RealFourier fourier(stft_window);
  for (Index t = 0; t < X.cols(); ++t) {
    fourier.inverse(X.col(t).data(), frame.data());
    for (std::size_t n = 0; n < frame.size(); ++n) {
      const std::size_t m = std::size_t(t * stft_hop) + n;
      sum[m] += w[n] * frame[n];
      weight[m] += w[n] * w[n];
    }
  }
  std::vector<double> x(static_cast<std::size_t>(samples));
  for (std::size_t m = 0; m < x.size(); ++m) x[m] = sum[m + stft_window] / weight[m + stft_window];
  return x;
}

}  // namespace stiefel
