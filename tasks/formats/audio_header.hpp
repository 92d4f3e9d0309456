/// What the header of a sound file says, and whether the file is as long as that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace stiefel {

enum class AudioFormat { wav, flac, ogg, sphere };

struct AudioHeader {
  AudioFormat format;
  std::optional<std::int64_t> frames;  ///< samples of each channel, where the header names them
};

/// `refuse` is called with what is wrong, and throws.
AudioHeader read_audio_header(std::span<const std::byte> bytes, const std::function<void(const std::string&)>& refuse);

}  // namespace stiefel
