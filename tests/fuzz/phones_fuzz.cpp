// Any text is a transcription with its phones in order or refused by an Error of the data.
#include <cstdint>
#include <cstdlib>

#include <stiefel/error.hpp>
#include "tasks/formats/phones.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto phones = stiefel::parse_phones({reinterpret_cast<const char*>(data), size}, "a.phn", "Fetch it again.");
    std::int64_t last = 0;
    for (const stiefel::Phone& phone : phones) {
      if (phone.start < last || phone.end <= phone.start || stiefel::folded_phone(phone.label) >= 39) std::abort();
      if (stiefel::phone_at(phones, phone.start) != phone.label ||
          stiefel::phone_at(phones, phone.end - 1) != phone.label)
        std::abort();
      last = phone.end;
    }
    if (phones.empty() || stiefel::phone_at(phones, last + 1) != phones.back().label) std::abort();
  } catch (const stiefel::Error& error) {
    if (error.code() != stiefel::Exit::data) std::abort();
  }
  return 0;
}
