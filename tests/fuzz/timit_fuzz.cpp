// Any path names an utterance of TIMIT or none.
#include <cstdint>
#include <cstdlib>

#include "tasks/formats/timit.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto utterance = stiefel::utterance_at({reinterpret_cast<const char*>(data), size});
  if (utterance && (utterance->dialect < 1 || utterance->dialect > 8 || utterance->speaker.size() != 5 ||
                    utterance->sentence.size() < 3))
    std::abort();
  return 0;
}
