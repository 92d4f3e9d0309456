// Segmental signal-to-noise ratio.
#include "tasks/signal/segsnr.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stiefel {

double segmental_snr(std::span<const double> signal, std::span<const double> estimate, std::int64_t rate) {
  const std::size_t length = std::size_t(rate / 100), segments = std::min(signal.size(), estimate.size()) / length;
  double sum = 0;
  for (std::size_t i = 0; i < segments; ++i) {
    double energy = 0, error = 0;
    for (std::size_t n = i * length; n < (i + 1) * length; ++n) {
      energy += signal[n] * signal[n];
      error += (signal[n] - estimate[n]) * (signal[n] - estimate[n]);
    }
    sum += error == 0 ? 35 : energy == 0 ? -10 : std::clamp(10 * std::log10(energy / error), -10., 35.);
  }
  return segments ? sum / double(segments) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace stiefel
