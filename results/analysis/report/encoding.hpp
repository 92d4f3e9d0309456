/// Escapes text and bytes for a page, so that no name in a run can become markup.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stiefel::report {

/// Escapes text for content and double-quoted attributes of HTML and XML. Control characters are written as by
/// printable_lines(); other code points that XML lacks become U+FFFD.
std::string escape(std::string_view text);
std::string base64(std::string_view bytes);
/// The name of a script or style sheet in a Content-Security-Policy: 'sha256-…'.
std::string content_hash(std::string_view text);
/// One line of a CSV file.
std::string csv_line(const std::vector<std::string>& fields);
/// The fields of the rows of CSV text, in which quotes may enclose separators.
std::vector<std::vector<std::string>> csv_rows(std::string_view text);
/// A download link that contains all of the content.
std::string download_link(std::string_view content, std::string_view type, std::string_view file,
                          std::string_view label);

/// The text truncated to this many characters, with … for the rest.
std::string shortened(std::string_view text, std::size_t most);
/// The text in at most `lines` lines of at most `most` characters, broken after spaces where possible. … replaces what
/// does not fit.
std::vector<std::string> wrapped(std::string_view text, std::size_t most, std::size_t lines);
std::size_t characters(std::string_view text);

/// How many characters a title, a label or a table's cell may have; … replaces the rest.
constexpr std::size_t longest_title = 200;

}  // namespace stiefel::report
