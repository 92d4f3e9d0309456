/// Short-time Fourier transform of N = 256 samples every 128, and its inverse.
///
///   The signal is filled up with zeros to a multiple of 128, then 256 zeros are put before and behind it: ⌈n/128⌉ + 3
///   frames.
///   X[k, t] = Σ_n w[n] x[128 t + n] exp(−2πi kn/N),  k = 0 … 128,  w[n] = ½ − ½ cos(2πn/N) (Hann, periodic)
///   x[m] = Σ_t w[m − 128 t] x_t[m − 128 t] / Σ_t w²[m − 128 t],  x_t the inverse transform of frame t: the signal
///   whose transform is nearest to X in the least-squares sense (Griffin & Lim 1984)
#pragma once

#include <Eigen/Core>
#include <span>
#include <vector>

namespace stiefel {

constexpr Eigen::Index stft_window = 256, stft_hop = 128, stft_bins = stft_window / 2 + 1;

constexpr Eigen::Index stft_frames(Eigen::Index samples) { return (samples + stft_hop - 1) / stft_hop + 3; }

/// 129 × frames.
Eigen::MatrixXcd stft(std::span<const double> x);
/// The first `samples` samples of the signal without the zeros before it.
std::vector<double> inverse_stft(const Eigen::MatrixXcd& X, Eigen::Index samples);

}  // namespace stiefel
