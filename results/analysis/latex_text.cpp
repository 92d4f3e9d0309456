#include "results/analysis/latex_text.hpp"

#include <array>
#include <boost/algorithm/string/replace.hpp>
#include <utility>

#include "base/printable.hpp"

namespace stiefel {
namespace {

std::string latex_character(char c) {
  switch (c) {
    case '\\':
      return "\\textbackslash{}";
    case '~':
      return "\\textasciitilde{}";
    case '^':
      return "\\textasciicircum{}";
    // LaTeX's default font encoding has other characters in their place.
    case '<':
      return "\\textless{}";
    case '>':
      return "\\textgreater{}";
    case '|':
      return "\\textbar{}";
    // After the end of a row, it would begin an optional argument.
    case '[':
      return "{[}";
    case '#':
    case '$':
    case '%':
    case '&':
    case '_':
    case '{':
    case '}':
      return std::string("\\") + c;
    default:
      return std::string(1, c);
  }
}

/// Signs that LaTeX's default encoding lacks, after the formulas that contain them.
constexpr std::array signs = {std::pair("‖WᴴW − I‖", "$\\Vert W^{H}W-I\\Vert$"),
                              std::pair("‖∂L/∂hₜ‖", "$\\Vert\\partial L/\\partial h_t\\Vert$"),
                              std::pair("ᴴ", "$^{H}$"),
                              std::pair("‖", "$\\Vert$"),
                              std::pair("∂", "$\\partial$"),
                              std::pair("±", "$\\pm$"),
                              std::pair("→", "$\\to$"),
                              std::pair("×", "$\\times$"),
                              std::pair("−", "$-$"),
                              std::pair("–", "--"),
                              std::pair("…", "\\ldots{}"),
                              std::pair("⁻", "$^{-}$"),
                              std::pair("⁰", "$^{0}$"),
                              std::pair("¹", "$^{1}$"),
                              std::pair("²", "$^{2}$"),
                              std::pair("³", "$^{3}$"),
                              std::pair("⁴", "$^{4}$"),
                              std::pair("⁵", "$^{5}$"),
                              std::pair("⁶", "$^{6}$"),
                              std::pair("⁷", "$^{7}$"),
                              std::pair("⁸", "$^{8}$"),
                              std::pair("⁹", "$^{9}$"),
                              std::pair("α", "$\\alpha$"),
                              std::pair("β", "$\\beta$"),
                              std::pair("γ", "$\\gamma$"),
                              std::pair("δ", "$\\delta$"),
                              std::pair("ε", "$\\varepsilon$"),
                              std::pair("η", "$\\eta$"),
                              std::pair("θ", "$\\theta$"),
                              std::pair("λ", "$\\lambda$"),
                              std::pair("μ", "$\\mu$"),
                              std::pair("ρ", "$\\rho$"),
                              std::pair("σ", "$\\sigma$"),
                              std::pair("τ", "$\\tau$"),
                              std::pair("ω", "$\\omega$")};

}  // namespace

std::string latex_text(const std::string& text) {
  std::string written;
  for (const char c : printable(text)) written += latex_character(c);
  for (const auto& [sign, command] : signs) boost::replace_all(written, sign, command);
  return written;
}

}  // namespace stiefel
