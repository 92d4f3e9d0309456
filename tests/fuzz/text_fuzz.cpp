// UTF-8 text is refused, or survives being written and read again; its lines hold every character once.
#include <cstdlib>

#include <stiefel/error.hpp>
#include "tasks/formats/text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace stiefel;
  std::u32string text;
  try {
    text = decode_text({reinterpret_cast<const char*>(data), size}, "f");
  } catch (const Error&) {
    return 0;
  }
  std::string bytes;
  for (const char32_t point : text) bytes += encode_utf8(point);
  if (decode_text("\xef\xbb\xbf" + bytes, "f") != text && bytes.find("\r\n") == bytes.npos) std::abort();
  for (const auto trim : {LineRules::Trim::none, LineRules::Trim::end, LineRules::Trim::both})
    for (const bool unk : {false, true}) {
      const Lines lines = take_lines(text, {trim, unk, true, false, size % 50});
      if (lines.begins.back() != lines.points.size() || lines.points.size() > text.size()) std::abort();
      if (trim == LineRules::Trim::none && !unk && size % 50 == 0 && lines.points != text) std::abort();
    }
  return 0;
}
