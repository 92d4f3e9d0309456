// Figures of published items, drawn from what was measured.
#pragma once

#include <string>
#include <vector>

#include "results/analysis/report/figure.hpp"
#include "sweep/verdict.hpp"

namespace stiefel::cli {

/// "frame_error_rate" as people write it.
std::string metric_words(std::string metric);

/// Figures of the rows of one item: one for each panel and metric that has been measured. None unless all rows are
/// curves.
std::vector<report::Figure> reproduction_figures(const std::vector<const ReproducedRow*>& rows);

}  // namespace stiefel::cli
