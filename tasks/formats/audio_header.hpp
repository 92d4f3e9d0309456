/// Whether a sound file is as long as its header says, where libsndfile does not tell.
#pragma once

#include <cstddef>
#include <span>

#include "tasks/formats/named_file.hpp"

namespace stiefel {

/// `file` is refused if it is not. Returns the place of the 4 bytes that would name the size of the sound in a WAV file
/// whose header was never completed, which goes to the end of the file; else 0.
std::size_t check_audio_header(std::span<const std::byte> bytes, const NamedFile& file);

}  // namespace stiefel
