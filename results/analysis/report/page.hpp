/// The report as one HTML file that needs no network.
#pragma once

#include <string>
#include <vector>

#include "results/analysis/report/figures.hpp"
#include "results/analysis/report/study.hpp"

namespace stiefel::report {

/// A figure with its numbers to download. It becomes interactive when the pointer is on it.
std::string figure_html(const Figure& figure);
/// A standalone page with style and script. `further` is markup below the lead, `content` is that of all sections.
std::string document(const std::string& title, const std::string& lead, const std::string& further,
                     const std::string& content);

/// The page of a study. An empty title is replaced by the experiments' names.
std::string page(const Study& study, const std::vector<Section>& sections, const std::string& title);

}  // namespace stiefel::report
