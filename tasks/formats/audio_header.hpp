/// Whether a sound file is as long as its header says, where libsndfile does not tell.
#pragma once

#include <cstddef>
#include <span>

#include "tasks/formats/named_file.hpp"

namespace stiefel {

/// `file` is refused if it is not.
void check_audio_header(std::span<const std::byte> bytes, const NamedFile& file);

}  // namespace stiefel
