// Documents that compare published results with measured ones.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sweep/reproduction.hpp"

#include "cli/table_text.hpp"

namespace stiefel::cli {

/// A table with a line for each row: item, row, published, measured, seeds, state.
TextTable reproduction_table(const std::vector<ReproducedRow>& rows);
/// "26 printed results: 20 run with the full budget (12 matched, 2 better, 6 missed, 0 diverged), 0 with part of it."
std::string reproduction_summary(const std::vector<ReproducedRow>& rows);
/// Writes the comparison as Markdown to `document`, with its figures in the folder figures next to it, and as one HTML
/// page that needs no network. It has a line for each item and, for each item that has been run, a table, its command
/// and its figures. The same runs give the same files. Figures of an earlier document that this one lacks are removed.
void write_reproduction(const PublishedResults& published, const std::vector<ReproducedRow>& rows,
                        const std::filesystem::path& document, const std::filesystem::path& page);

}  // namespace stiefel::cli
