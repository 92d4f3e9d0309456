// Out-of-line parts of Error, so that its type information exists once, in libstiefel; a sentence never steers a
// terminal.
#include <stiefel/error.hpp>

#include "base/assertion.hpp"
#include "base/printable.hpp"

namespace stiefel {

Error::Error(const std::string& sentence, Exit code) : std::runtime_error(printable_lines(sentence)), code_(code) {}
Error::Error(const std::string& sentence, const Error& cause) : Error(sentence, cause.code_) {
  missing_ = cause.missing_;
}
Error::~Error() = default;

Error Error::missing(const std::string& sentence) {
  Error error(sentence, Exit::data);
  error.missing_ = true;
  return error;
}

AssertionFailure::AssertionFailure(std::string fact)
    : std::logic_error("internal error: " + fact + "; please report it with the command that led here"),
      fact_(std::move(fact)) {}
AssertionFailure::~AssertionFailure() = default;

void assertion_failed(const char* expression, const char* file, int line) {
  throw AssertionFailure(std::string(expression) + " does not hold at " + file + ":" + std::to_string(line));
}

}  // namespace stiefel
