// Short-time objective intelligibility.
#include "tasks/signal/stoi.hpp"

#include <algorithm>
#include <cmath>
#include <Eigen/Core>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "tasks/signal/fourier.hpp"
#include "tasks/signal/resample.hpp"

namespace stiefel {
namespace {

using Eigen::Index;

constexpr int rate_used = 10000;
constexpr Index window = 256, hop = 128, transform = 512, bands = 15, segment = 30;

Eigen::ArrayXd hann_window() {
  Eigen::ArrayXd w(window);
  for (Index n = 0; n < window; ++n)
    w(n) = std::pow(std::sin(std::numbers::pi * double(n + 1) / double(window + 1)), 2);
  return w;
}

using Signal = Eigen::ArrayXd;

Index frames_of(const Signal& x) { return x.size() < window ? 0 : (x.size() - window) / hop + 1; }

/// Both signals without the frames in which x is silent.
std::pair<Signal, Signal> without_silence(const Signal& x, const Signal& y) {
  const Eigen::ArrayXd w = hann_window();
  const Index frames = frames_of(x);
  Eigen::ArrayXd level(frames);
  for (Index t = 0; t < frames; ++t)
    level(t) = 20 * std::log10((w * x.segment(t * hop, window)).matrix().norm() + 1e-300);
  const double loudest = frames > 0 ? level.maxCoeff() : 0;
  std::vector<Index> kept;
  for (Index t = 0; t < frames; ++t)
    if (level(t) > loudest - 40) kept.push_back(t);
  const Index size = kept.empty() ? 0 : Index(kept.size() - 1) * hop + window;
  std::pair<Signal, Signal> left{Signal::Zero(size), Signal::Zero(size)};
  for (std::size_t i = 0; i < kept.size(); ++i) {
    left.first.segment(Index(i) * hop, window) += w * x.segment(kept[i] * hop, window);
    left.second.segment(Index(i) * hop, window) += w * y.segment(kept[i] * hop, window);
  }
  return left;
}

/// First bin of each band and the one behind the last: the bins nearest to the bands' edges.
std::vector<std::pair<Index, Index>> band_bins() {
  const auto nearest = [](double frequency) { return Index(std::lround(frequency * transform / rate_used)); };
  std::vector<std::pair<Index, Index>> bins;
  for (Index j = 0; j < bands; ++j) {
    const double centre = 150 * std::exp2(double(j) / 3);
    bins.emplace_back(nearest(centre * std::exp2(-1. / 6)), nearest(centre * std::exp2(1. / 6)));
  }
  return bins;
}

/// Envelopes, bands × frames.
Eigen::MatrixXd envelopes(const Signal& x) {
  const Eigen::ArrayXd w = hann_window();
  const auto bins = band_bins();
  RealFourier fourier(transform);
  Eigen::ArrayXd frame = Eigen::ArrayXd::Zero(transform);
  Eigen::VectorXcd spectrum(fourier.bins());
  Eigen::MatrixXd all(bands, frames_of(x));
  for (Index t = 0; t < all.cols(); ++t) {
    frame.head(window) = w * x.segment(t * hop, window);
    fourier.forward(frame.data(), spectrum.data());
    for (Index j = 0; j < bands; ++j) {
      const auto [first, end] = bins[std::size_t(j)];
      all(j, t) = spectrum.segment(first, end - first).norm();
    }
  }
  return all;
}

/// Correlation of x with y scaled and clipped; 0 where one of them is constant.
double correlation(const Eigen::RowVectorXd& x, const Eigen::RowVectorXd& y) {
  const double scale = y.norm() > 0 ? x.norm() / y.norm() : 0, bound = 1 + std::pow(10, 15. / 20);
  const Eigen::RowVectorXd clipped = (scale * y).cwiseMin(bound * x);
  const Eigen::RowVectorXd a = x.array() - x.mean(), b = clipped.array() - clipped.mean();
  const double norms = a.norm() * b.norm();
  return norms > 0 ? a.dot(b) / norms : 0;
}

Signal at_rate_used(std::span<const double> x, std::int64_t rate) {
  const std::vector<double> y = resample(x, rate_used, int(rate));
  return Eigen::Map<const Signal>(y.data(), Index(y.size()));
}

}  // namespace

double stoi(std::span<const double> clean, std::span<const double> processed, std::int64_t rate) {
  const std::size_t size = std::min(clean.size(), processed.size());
  const auto [x, y] = without_silence(at_rate_used(clean.first(size), rate), at_rate_used(processed.first(size), rate));
  const Eigen::MatrixXd X = envelopes(x), Y = envelopes(y);
  if (X.cols() < segment) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (Index m = 0; m + segment <= X.cols(); ++m)
    for (Index j = 0; j < bands; ++j) sum += correlation(X.row(j).segment(m, segment), Y.row(j).segment(m, segment));
  return sum / double(bands * (X.cols() - segment + 1));
}

}  // namespace stiefel
