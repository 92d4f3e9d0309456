/// Style sheets and script of the page, embedded in the program.
#pragma once

#include <string>
#include <string_view>

namespace stiefel::report {

extern const char* const page_css;
extern const char* const paper_css;
extern const char* const figure_css;
extern const char* const script;

/// The value of a variable such as "--ink" in the first rule of a style sheet.
std::string_view value_of_variable(std::string_view css, std::string_view name);
/// The style of figures with the values of page_css or paper_css in place of variables, for programs that do not know
/// variables.
std::string figure_style(std::string_view values);

}  // namespace stiefel::report
