// A pickle is refused, or has no more values than bytes, which hold only values that are there.
#include <cstdlib>

#include <stiefel/error.hpp>
#include "tasks/formats/pickle.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace stiefel;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const Pickle pickle = read_pickle(bytes, {"f", ""});
    if (pickle.root >= pickle.values.size() || pickle.values.size() > size) std::abort();
    std::size_t held = 0, letters = 0;
    for (const auto& items : pickle.items)
      for (const std::uint32_t item : items)
        if (++held, item >= pickle.values.size()) std::abort();
    for (const PickleValue& value : pickle.values)
      for (const char letter : value.text) letters += std::size_t(letter != 0);
    if (held > size || letters > size * size) std::abort();
  } catch (const Error& error) {
    if (error.code() != Exit::data) std::abort();
  }
  return 0;
}
