// Piano rolls as JSON are refused, or have no more steps than there are bytes.
#include <cstdlib>

#include <stiefel/error.hpp>
#include "tasks/formats/json_rolls.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace stiefel;
  try {
    std::size_t steps = 0;
    for (const auto& pieces : read_json_rolls({reinterpret_cast<const char*>(data), size}, {"f", ""}))
      for (const PianoRoll& piece : pieces) steps += 1 + piece.size();
    if (steps > size) std::abort();
  } catch (const Error& error) {
    if (error.code() != Exit::data) std::abort();
  }
  return 0;
}
