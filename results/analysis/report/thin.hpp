/// Drops what figures do not show as soon as a run has been read, so that a report of hundreds of runs fits into
/// memory.
#pragma once

#include "results/analysis/run_data.hpp"

namespace stiefel::report {

constexpr std::size_t heat_columns = 100, heat_rows = 80;

/// Of tables with many numbers a row, the first and the last row stay. With `keep_gradients`, those of
/// /gradient/hidden_grad_norm that are nearest to heat_columns evenly spaced ones stay too.
void thin(RunData& run, bool keep_gradients);

}  // namespace stiefel::report
