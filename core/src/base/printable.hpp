// Text of others in sentences for a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <stiefel/export.hpp>

namespace stiefel {

/// Bytes of the UTF-8 character at `i`, or 0 when there is none (RFC 3629: no surrogates, no overlong forms, at most
/// U+10FFFF).
STIEFEL_API std::size_t utf8_length(std::string_view text, std::size_t i);

/// Of one character of UTF-8: C0 but the line end, DEL, C1, and Unicode's Bidi_Control, which shows other characters in another order.
bool is_control(std::string_view character);

/// The text with control characters and bytes that are not
/// UTF-8 written as \x1b: a terminal obeys none of it.
STIEFEL_API std::string printable_lines(std::string_view text);
/// The same in one line.
STIEFEL_API std::string printable(std::string_view text);

/// The text as one word of a shell's line, quoted where it must be.
STIEFEL_API std::string shell_word(std::string_view text);
/// Words of a command as a line that can be pasted into a shell.
STIEFEL_API std::string shell_line(std::span<const std::string> words);

/// Capitalizes the first letter if it is ASCII.
STIEFEL_API std::string capitalised(std::string text);
/// "1 run", "2 runs"; `plural` for nouns that take more than an s.
STIEFEL_API std::string counted(std::int64_t count, std::string_view noun, std::string_view plural = {});
/// "0.43 s", "12 s", "4 min 05 s", "3 h 20 min"; "?" for what is not finite.
STIEFEL_API std::string duration_text(double seconds);

}  // namespace stiefel
