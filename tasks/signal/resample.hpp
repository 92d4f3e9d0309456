/// Change of the sampling rate by a rational factor p/q in lowest terms, by a polyphase filter.
///
///   y[m] = Σ_n x[n] h[m q − n p],  ⌈n p/q⌉ samples
///   h[i] = c · sinc(i / max(p, q)) · I₀(β √(1 − (i/L)²)) / I₀(β),  |i| ≤ L = 10 max(p, q), β = 5, c such that Σ h = p
#pragma once

#include <span>
#include <vector>

namespace stiefel {

/// `up` = p, `down` = q, above 0, not necessarily in lowest terms.
std::vector<double> resample(std::span<const double> x, int up, int down);

}  // namespace stiefel
