/// Tables of a report: the runs, how they ended, their configuration and their provenance.
#pragma once

#include <string>
#include <vector>

#include "results/analysis/report/study.hpp"

namespace stiefel::report {

/// A piece of a line in this style.
std::string swatch(const Style& style);
/// A table with a row for each group, with the color it has in figures.
std::string summary_table(const Study& study);
/// Tables of the keys that differ between groups and, below them, of those that do not.
std::string configuration_tables(const Study& study);
std::string provenance_table(const Study& study);
std::string runs_table(const Study& study);

/// "9 runs in 3 groups: 8 finished, 1 diverged."
std::string summary_of(const Study& study);
/// " Task: adding. Cells: elman, lstm. Maps: dense."
std::string networks_of(const Study& study);
/// Version, commit, machine, threads and days of the runs.
std::string origin(const Study& study);

/// A table of texts under their titles. Columns of numbers are right-aligned.
std::string plain_table(const std::vector<std::string>& titles, const std::vector<bool>& numeric,
                        const std::vector<std::vector<std::string>>& rows);

}  // namespace stiefel::report
