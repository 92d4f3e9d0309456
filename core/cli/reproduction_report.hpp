// Documents that compare published results with measured ones.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sweep/reproduction.hpp"

#include "cli/table_text.hpp"

namespace stiefel::cli {

/// A line for each row: paper, item, row, published, measured, seeds, state.
TextTable reproduction_table(const std::vector<ReproducedRow>& rows);
/// "26 printed results have a measured value at the published budget: 20 matched, 2 better, 4 missed."
std::string reproduction_summary(const std::vector<ReproducedRow>& rows);
/// A table for each item that has a run, the command that made it, and its figures, which are below the folder figures
/// next to it. The same runs give the same text.
std::string reproduction_markdown(const PublishedResults& published, const std::vector<ReproducedRow>& rows);
/// The same as one page that needs no network.
std::string reproduction_page(const PublishedResults& published, const std::vector<ReproducedRow>& rows);
/// Writes the figures of the document as FOLDER/figures/ID.svg.
void write_reproduction_figures(const std::vector<ReproducedRow>& rows, const std::filesystem::path& folder);

}  // namespace stiefel::cli
