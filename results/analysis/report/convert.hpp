/// Writes figures as separate files and prints the page. Other programs of the system turn SVG and HTML into PDF and
/// PNG.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "results/analysis/report/figures.hpp"

namespace stiefel::report {

/// Throws Error if a program is needed and missing: rsvg-convert for pdf and png, Chromium to
/// print the page.
void demand_converters(const std::string& format, bool prints);
/// Writes FOLDER/ID.csv and FOLDER/ID.svg for each figure, or .pdf or .png made of the SVG by rsvg-convert, or .pgf.
/// `width` is that of figures in a paper, in mm; pgf needs it.
void write_figures(const std::vector<Section>& sections, const std::filesystem::path& folder, const std::string& format,
                   std::optional<double> width);
/// Prints the page to a PDF file with Chromium.
void print_page(const std::string& html, const std::filesystem::path& pdf);

}  // namespace stiefel::report
