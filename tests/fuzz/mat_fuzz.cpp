// A MATLAB file is refused, or has arrays with as many numbers as their sizes say.
#include <cstdlib>

#include <stiefel/error.hpp>
#include "tasks/formats/mat.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace stiefel;
  try {
    for (const MatCell& cell : read_mat_cells({reinterpret_cast<const char*>(data), size}, {"traindata"}, {"f", ""}))
      for (const MatArray& array : cell) {
        if (array.rows > 0 && array.columns > 0) array.at(array.rows - 1, array.columns - 1);
        if (array.rows < 0 || array.columns < 0 || std::size_t(array.rows * array.columns) > array.stored.size())
          std::abort();
      }
  } catch (const Error& error) {
    if (error.code() != Exit::data) std::abort();
  }
  return 0;
}
