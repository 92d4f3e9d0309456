/// Whether a sound file is as long as its header says, where libsndfile does not tell.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "tasks/formats/named_file.hpp"

namespace stiefel {

/// What to do with a file that other programs can read.
constexpr std::string_view convert_sound = "convert it: ffmpeg -i FILE -c:a pcm_s16le out.wav";

/// The bytes that the header must have at `place` for libsndfile to read the sound; none: it is right as it is.
struct HeaderCorrection {
  std::size_t place = 0;
  std::string bytes;
};

/// `file` is refused if it is not. The size of the sound of a WAV file is corrected where the header was never completed,
/// so that the sound goes to the end of the file, and where the sound ends with a part of a block.
HeaderCorrection check_audio_header(std::span<const std::byte> bytes, const NamedFile& file);

}  // namespace stiefel
