/// Drops what figures do not show as soon as a run has been read, so that a report of hundreds of runs fits into
/// memory.
#pragma once

#include "results/analysis/run_data.hpp"

namespace stiefel::report {

constexpr std::size_t heat_columns = 100, heat_rows = 80;

/// Where values of hidden_grad_norm for a heat map are added: a row for each time step, a column for each snapshot.
/// Runs with only one snapshot have none.
constexpr const char* map_suffix = "/map";  // below a group of gradient_groups(); map/snapshot and map/t are its axes

/// Groups with norms of gradients: "/gradient", or "/gradient/layers_0" and so on for each layer.
std::vector<std::string> gradient_groups(const RunData& run);

/// Keeps only the first and the last row of tables with many numbers in a row, and adds map_suffix.
void thin(RunData& run);

}  // namespace stiefel::report
