// Out-of-line parts of Error, so that its type information exists once, in libstiefel; a sentence never steers a
// terminal.
#include <stiefel/error.hpp>

#include "base/printable.hpp"

namespace stiefel {

Error::Error(const std::string& sentence, Exit code) : std::runtime_error(printable_lines(sentence)), code_(code) {}
Error::~Error() = default;

void assertion_failed(const char* expression, const char* file, int line) {
  throw std::logic_error(std::string("internal error: ") + expression + " does not hold at " + file + ":" +
                         std::to_string(line) + "; please report it with the command that led here");
}

}  // namespace stiefel
