/// Escapes text and bytes for a page: no name in a run can become markup.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stiefel::report {

/// For text and for attributes in double quotes, of HTML and of XML, with control characters as printable_lines() writes
/// them; the code points that XML lacks besides become U+FFFD.
std::string escape(std::string_view text);
std::string base64(std::string_view bytes);
/// What a Content-Security-Policy names a script or a style sheet by: 'sha256-…'.
std::string content_hash(std::string_view text);
/// One line of a CSV file.
std::string csv_line(const std::vector<std::string>& fields);
/// A link for downloading, with all of the content in it.
std::string download_link(std::string_view content, std::string_view type, std::string_view file,
                          std::string_view label);

/// The text truncated to this many characters, with … for the rest.
std::string shortened(std::string_view text, std::size_t most);
/// The text in lines of at most this many characters, broken after spaces where possible; … replaces what a last line
/// has no room for.
std::vector<std::string> wrapped(std::string_view text, std::size_t most, std::size_t lines);
std::size_t characters(std::string_view text);

/// Characters of a title, a label or a table's cell; … replaces the rest.
constexpr std::size_t longest_title = 200;

}  // namespace stiefel::report
