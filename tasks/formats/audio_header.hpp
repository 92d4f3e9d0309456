/// Whether a sound file is as long as its header says, where libsndfile does not tell.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace stiefel {

/// `refuse` is called with what is wrong, and throws.
void check_audio_header(std::span<const std::byte> bytes, const std::function<void(const std::string&)>& refuse);

}  // namespace stiefel
