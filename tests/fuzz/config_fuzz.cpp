// The text of an experiment; plugins that it names are not loaded.
#include "reloading.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  fuzz::load_twice({reinterpret_cast<const char*>(data), size}, {});
  return 0;
}
