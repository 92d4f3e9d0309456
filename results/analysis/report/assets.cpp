#include "results/analysis/report/assets.hpp"

#include <string_view>

namespace stiefel::report {
namespace {

/// The value of a variable such as "--ink" in the first rule of the page's style.
std::string_view light_value(std::string_view name) {
  const std::string_view page = page_css;
  const std::size_t begin = page.find(std::string(name) + ":") + name.size() + 2;
  return page.substr(begin, page.find(';', begin) - begin);
}

}  // namespace

std::string figure_style_light() {
  std::string style;
  const std::string_view css = figure_css;
  for (std::size_t at = 0; at < css.size();) {
    const std::size_t variable = std::min(css.find("var(", at), css.size());
    style += css.substr(at, variable - at);
    if (variable == css.size()) break;
    const std::size_t end = css.find(')', variable);
    style += light_value(css.substr(variable + 4, end - variable - 4));
    at = end + 1;
  }
  return style;
}

}  // namespace stiefel::report
