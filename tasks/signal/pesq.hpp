/// Perceptual evaluation of speech quality (ITU-T P.862) by a program of the user's own, which may not be passed on
/// with this one.
///
///   $STIEFEL_PESQ +8000 clean.wav processed.wav
///
/// is run, as the ITU's reference program is; the last number that it prints is the score.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace stiefel {

/// Error (Exit::data) when STIEFEL_PESQ names a file that cannot be run.
void check_pesq();

/// Nothing when STIEFEL_PESQ is not set. Error (Exit::data) when the program fails or prints no number.
std::optional<double> pesq(std::span<const double> clean, std::span<const double> processed, std::int64_t rate);

}  // namespace stiefel
