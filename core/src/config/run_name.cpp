// A name must stay one folder below runs/, on every file system, and be usable as an argument.
#include "config/run_name.hpp"

#include <algorithm>

namespace stiefel {

std::string run_name_fault(std::string_view name) {
  constexpr std::size_t longest = 200;  // file systems allow 255 bytes, and temporary files beside it have longer names
  if (name.empty()) return "must not be empty";
  if (name.size() > longest) return "must have at most 200 bytes";
  if (name == "." || name.find("..") != name.npos || name.find('/') != name.npos)
    return "must be the name of one folder, without '/' and '..'";
  if (name.front() == '-' || name.front() == '.') return "must not begin with '-' or '.'";
  if (name.front() == ' ' || name.back() == ' ') return "must not begin or end with a blank";
  if (std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7F; })) return "must not hold control characters";
  return {};
}

}  // namespace stiefel
