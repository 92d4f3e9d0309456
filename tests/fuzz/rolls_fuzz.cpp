// A MATLAB or JSON file, by the first byte, is refused as a set of piano rolls, or has pieces of two steps or more.
#include <cstdlib>

#include <stiefel/error.hpp>
#include "tasks/formats/roll_set.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace stiefel;
  if (size == 0) return 0;
  try {
    const RollSet rolls =
        read_rolls({reinterpret_cast<const char*>(data) + 1, size - 1}, {data[0] % 2 == 0 ? "f.json" : "f.mat", ""});
    for (const auto& pieces : rolls)
      for (const PianoRoll& piece : pieces)
        if (piece.size() < 2) std::abort();
    if (rolls[0].empty()) std::abort();
  } catch (const Error& error) {
    if (error.code() != Exit::data) std::abort();
  }
  return 0;
}
