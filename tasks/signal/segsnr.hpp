/// Segmental signal-to-noise ratio of an estimate s' of a signal s.
///
///   mean over segments of 10 ms of 10 log₁₀(Σ s² / Σ (s − s')²), each first brought into [−10, 35] dB
///
/// Every whole segment counts: there is no detection of voice activity and no alignment, which the MATLAB toolbox
/// voicebox adds (snrseg). A segment without error has 35 dB, one of silence with an error −10 dB.
#pragma once

#include <cstdint>
#include <span>

namespace stiefel {

/// Over the length of the shorter one; NaN if that is less than a segment.
double segmental_snr(std::span<const double> signal, std::span<const double> estimate, std::int64_t rate);

}  // namespace stiefel
