/// Figures as separate files, and the page as a document to print; other programs of the system turn SVG and HTML into
/// PDF and PNG.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "results/analysis/report/figures.hpp"

namespace stiefel::report {

/// Throws Error if rsvg-convert, which makes figures of another format than svg, or Chromium, which prints a page, is
/// needed and missing.
void demand_converters(const std::string& format, bool prints);
/// FOLDER/ID.csv and FOLDER/ID.svg, or .pdf or .png made of it by rsvg-convert.
void write_figures(const std::vector<Section>& sections, const std::filesystem::path& folder,
                   const std::string& format);
/// Prints the page with Chromium.
void print_page(const std::string& html, const std::filesystem::path& pdf);

}  // namespace stiefel::report
