/// Levels of a short-time spectrum in decibels, and sound from levels and the phases of another spectrum (Wisdom et al.
/// 2016).
///
///   level[k, t] = 10 log₁₀(10⁻⁵ + |X[k, t]|²): silence is −50 dB
///   X̂[k, t] = √(10^(level[k, t] / 10)) X[k, t] / |X[k, t]|
#pragma once

#include <Eigen/Core>
#include <vector>

namespace stiefel {

/// As large as X.
Eigen::MatrixXd levels(const Eigen::MatrixXcd& X);

/// Sound of `samples` samples whose frames 1, 2, … have the levels predicted for them (129 × frames − 1) and the phases
/// of `truth` (129 × frames), whose frame 0 is as in `truth`.
std::vector<double> sound_of_levels(const Eigen::MatrixXd& predicted, const Eigen::MatrixXcd& truth,
                                    Eigen::Index samples);

}  // namespace stiefel
