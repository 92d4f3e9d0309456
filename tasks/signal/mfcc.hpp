/// The front end of framewise phoneme classification: 12 mel-frequency cepstral coefficients, the log energy, and the
/// derivatives of these 13, every 10 ms from a window of 25 ms; by the formulas of HTK (Young et al., The HTK Book).
///
///   samples s[n] scaled to 16-bit integers; energy e = ln max(Σ s², 1)
///   pre-emphasis s'[n] = s[n] − 0.97 s[n−1] in each window, s'[0] = 0.03 s[0]; Hamming window 0.54 − 0.46
///     cos(2πn/(N−1)); |FFT|
///   26 triangular filters whose corners are equally spaced from 0 to half the sampling rate on the scale mel(f) =
///     1127 ln(1 + f/700),
///   straight on that scale; m[j] = ln max(Σ_k weight · |X[k]|, 1)
///   c[i] = (1 + 11 sin(πi/22)) √(2/26) Σ_j m[j] cos(πi/26 (j − ½)),  i = 1 … 12, j = 1 … 26
///   derivative d_t = Σ_θ θ (c_{t+θ} − c_{t−θ}) / (2 Σ_θ θ²),  θ = 1, 2, the first and last frame repeated
///     beyond the ends
#pragma once

#include <cstdint>
#include <Eigen/Core>
#include <span>

namespace stiefel {

constexpr Eigen::Index mfcc_features = 26;

/// Complete windows in this many samples.
Eigen::Index mfcc_frames(Eigen::Index samples, std::int64_t rate);
/// Sample in the middle of a window.
Eigen::Index mfcc_centre(Eigen::Index frame, std::int64_t rate);

/// 26 × frames: m[1] … m[26].
Eigen::MatrixXd log_bands(std::span<const double> x, std::int64_t rate);
/// 26 × frames: c[1] … c[12], e, and their derivatives.
Eigen::MatrixXd mfcc(std::span<const double> x, std::int64_t rate);

}  // namespace stiefel
