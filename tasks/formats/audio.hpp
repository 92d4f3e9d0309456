/// Sound files: WAV (also RIFX and RF64), FLAC, OGG and NIST SPHERE (TIMIT's .WAV), through libsndfile.
///
/// libsndfile shortens a truncated file in silence. What the header says is therefore read by ourselves first
/// (audio_header.hpp) and compared with what libsndfile delivers: a file is either read whole or refused with the
/// reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stiefel {

struct Audio {
  std::vector<double>
      samples;  ///< mean of the channels; integer formats lie in [−1, 1): 16-bit samples are divided by 2¹⁵
  std::int64_t rate = 0;  ///< samples a second
  int channels = 0;       ///< in the file
};

/// Error(Exit::data) that begins with the file's name, says what is wrong and ends with `mend`. Memory is bounded by
/// the file's size, that of compressed sound by 2²⁶ samples (25 minutes at 44.1 kHz).
Audio read_audio(const std::string& path, const std::string& mend);
Audio parse_audio(std::span<const std::byte> bytes, const std::string& name, const std::string& mend);

/// A WAV file of one channel of 16 bits; samples beyond [−1, 1) are cut off there.
std::string wav_of(std::span<const double> samples, int rate);

}  // namespace stiefel
