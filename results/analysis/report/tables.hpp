/// Tables of a report: the runs, how they ended, their configuration and their provenance.
#pragma once

#include <string>
#include <vector>

#include "results/analysis/report/study.hpp"

namespace stiefel::report {

/// The colour of a group in figures; empty beyond those that are shown.
std::string swatch(std::size_t group);
/// A row for each group, with the colour it has in figures.
std::string summary_table(const Study& study);
/// Keys that differ between groups; those that do not, below.
std::string configuration_tables(const Study& study);
std::string provenance_table(const Study& study);
std::string runs_table(const Study& study);

/// "9 runs in 3 groups, 8 finished, 1 diverged."
std::string summary_of(const Study& study);
/// Version, machine and days.
std::string origin(const Study& study);

/// Texts under their titles; columns of numbers are right-aligned.
std::string plain_table(const std::vector<std::string>& titles, const std::vector<bool>& numeric,
                        const std::vector<std::vector<std::string>>& rows);

}  // namespace stiefel::report
