#include "results/analysis/report/assets.hpp"

namespace stiefel::report {

std::string_view value_of_variable(std::string_view css, std::string_view name) {
  const std::size_t begin = css.find(std::string(name) + ":") + name.size() + 2;
  return css.substr(begin, css.find(';', begin) - begin);
}

std::string figure_style(std::string_view values) {
  std::string style;
  const std::string_view css = figure_css;
  for (std::size_t at = 0; at < css.size();) {
    const std::size_t variable = std::min(css.find("var(", at), css.size());
    style += css.substr(at, variable - at);
    if (variable == css.size()) break;
    const std::size_t end = css.find(')', variable);
    style += value_of_variable(values, css.substr(variable + 4, end - variable - 4));
    at = end + 1;
  }
  return style;
}

}  // namespace stiefel::report
