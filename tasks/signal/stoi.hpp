/// Short-time objective intelligibility of processed speech y against clean speech x: Taal, Hendriks, Heusdens &
/// Jensen, IEEE Trans. Audio, Speech and Language Processing 19 (2011).
///
///   both at 10 kHz; frames of 256 samples every 128, w[n] = sin²(π(n + 1)/257) (Hann without its zeros)
///   frames of x more than 40 dB below its loudest are removed from both, the others put together again by overlap-add
///   spectrum of 512 points; X_j = √(Σ |X[k]|² over the bins of band j), 15 one-third octave bands, the lowest
///     centred at 150 Hz
///   for each band and every 30 frames x, y in a row (384 ms): y' = min(y ‖x‖/‖y‖, x (1 + 10^(15/20))), d =
///     correlation of x and y'
///   STOI = mean of all d
#pragma once

#include <cstdint>
#include <span>

namespace stiefel {

/// NaN where less than 384 ms of speech are left after the removal of silence.
double stoi(std::span<const double> clean, std::span<const double> processed, std::int64_t rate);

}  // namespace stiefel
