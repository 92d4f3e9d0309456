/// Writes a figure for LaTeX.
#pragma once

#include <string>

#include "results/analysis/report/figure.hpp"

namespace stiefel::report {

/// A picture for the package pgfplots, with a width in mm and the fonts of the document. A heat map is ID.png.
std::string pgf_of(const Figure& figure, double width);

}  // namespace stiefel::report
