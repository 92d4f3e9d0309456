// A name must stay one folder or file below runs/, on every file system, and be usable as an argument.
#include "base/file_name.hpp"

#include "base/printable.hpp"

namespace stiefel {

std::string file_name_fault(std::string_view name) {
  constexpr std::size_t longest =
      200;  // file systems allow 255 bytes, and temporary files next to it have longer names
  if (name.empty()) return "must not be empty";
  if (name.size() > longest) return "must have at most 200 bytes";
  if (name == "." || name.find("..") != name.npos || name.find('/') != name.npos)
    return "must be a single name without '/' and '..'";
  if (name.front() == '-' || name.front() == '.') return "must not begin with '-' or '.'";
  if (name.front() == ' ' || name.back() == ' ') return "must not begin or end with a space";
  if (printable(name) != name) return "must be UTF-8 without control characters";
  return {};
}

}  // namespace stiefel
