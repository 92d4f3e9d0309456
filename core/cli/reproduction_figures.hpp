// Figures of published items, drawn from what was measured.
#pragma once

#include <vector>

#include "results/analysis/report/figure.hpp"
#include "sweep/verdict.hpp"

namespace stiefel::cli {

/// `rows`: of one item. A figure for each panel and metric that has been measured, if all rows are curves.
std::vector<report::Figure> reproduction_figures(const std::vector<const ReproducedRow*>& rows);

}  // namespace stiefel::cli
