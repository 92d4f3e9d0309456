/// The figures of a report, made from the runs of a study. Figures with nothing to show are omitted.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "results/analysis/report/figure.hpp"
#include "results/analysis/report/study.hpp"

namespace stiefel::report {

struct Section {
  std::string id, title;
  std::vector<Figure> figures;
};

/// All figures of a study. `against` are keys of the configuration to plot the metric against; if there are none, those
/// with differing numbers.
std::vector<Section> figures_of(const Study& study, const std::vector<std::string>& against);

std::vector<Figure> learning_figures(const Study& study);
std::vector<Figure> comparison_figures(const Study& study, std::vector<std::string> against);
std::vector<Figure> map_figures(const Study& study);
std::vector<Figure> gradient_figures(const Study& study);
std::vector<Figure> outcome_figures(const Study& study);
std::vector<Figure> timing_figures(const Study& study);

/// Whether all values are positive and differ by so much that they need a logarithmic axis.
bool spans_decades(const Figure& figure);
/// For figures of one run: from each group shown, the run of one seed with the most detail; null without detail. The
/// seed is study.seed or else the most common one; groups that lack the latter contribute another run.
std::vector<const RunData*> runs_of_one_seed(const Study& study,
                                             const std::function<std::size_t(const RunData&)>& detail);
/// A sentence that says which seed the run has, and of how many.
std::string seed_caption(const Group& group, const RunData& run);
/// The text in lower case, with _ for everything except letters and digits.
std::string identifier(const std::string& text);
/// Names in a group of the result file, of all runs that are shown: maps in /spectrum.
std::vector<std::string> names_below(const Study& study, const std::string& group);
/// The labels of the groups that are shown, for descriptions.
std::string labels_text(const Study& study);

}  // namespace stiefel::report
