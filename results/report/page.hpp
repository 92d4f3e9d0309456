/// The report as one HTML file that needs no network.
#pragma once

#include <string>
#include <vector>

#include "results/report/figures.hpp"
#include "results/report/study.hpp"

namespace stiefel::report {

/// An empty title: made of the experiments' names.
std::string page(const Study& study, const std::vector<Section>& sections, const std::string& title);

}  // namespace stiefel::report
