/// Style sheets and script of the page, embedded in the program.
#pragma once

#include <string>

namespace stiefel::report {

extern const char* const page_css;
extern const char* const figure_css;
extern const char* const script;

/// The style of figures with the light colors in place of variables, for programs that do not know variables.
std::string figure_style_light();

}  // namespace stiefel::report
