/// Whether a sound file is as long as its header says, where libsndfile does not tell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "tasks/formats/named_file.hpp"

namespace stiefel {

/// What to do with a file that other programs can read.
constexpr std::string_view convert_sound = "convert it: ffmpeg -i FILE -c:a pcm_s16le out.wav";

/// What to correct in a file that libsndfile would read wrongly.
struct HeaderCorrection {
  std::size_t place = 0;
  std::string bytes;  ///< those that the header must have at `place`; empty: it is right as it is
  std::uint64_t most_samples = std::numeric_limits<std::uint64_t>::max();  ///< libsndfile makes more of padding
};

/// `file` is refused if it is not. The size of the sound of a WAV file is corrected where the header was never completed,
/// so that the sound goes to the end of the file, and where the sound ends with a part of a block.
HeaderCorrection check_audio_header(std::span<const std::byte> bytes, const NamedFile& file);

}  // namespace stiefel
