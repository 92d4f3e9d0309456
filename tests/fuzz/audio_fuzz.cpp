// Any bytes are a sound file or refused by an Error of the data.
#include <cstdint>
#include <cstdlib>

#include <stiefel/error.hpp>
#include "tasks/formats/audio.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const stiefel::Audio audio = stiefel::parse_audio(std::as_bytes(std::span(data, size)), "sound", "Fetch it again.");
    if (audio.samples.empty() || audio.rate < 1 || audio.channels < 1) std::abort();
  } catch (const stiefel::Error& error) {
    if (error.code() != stiefel::Exit::data) std::abort();
  }
  return 0;
}
