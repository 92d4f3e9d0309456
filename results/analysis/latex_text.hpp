/// Text for LaTeX documents.
#pragma once

#include <string>

#include <stiefel/export.hpp>

namespace stiefel {

/// One line of text, made printable, that LaTeX with its default encoding shows as it is. Greek letters, ±, × and other
/// signs of figures and tables become commands; characters beyond these are left to the document's fonts.
STIEFEL_API std::string latex_text(const std::string& text);

}  // namespace stiefel
