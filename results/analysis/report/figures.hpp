/// The figures of a report, made of the runs of a study; those with nothing to show are omitted.
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

/// `against`: keys of the configuration whose values are an axis; empty: those with numbers that differ.
std::vector<Section> figures_of(const Study& study, const std::vector<std::string>& against);

std::vector<Figure> learning_figures(const Study& study);
std::vector<Figure> comparison_figures(const Study& study, std::vector<std::string> against);
std::vector<Figure> map_figures(const Study& study);
std::vector<Figure> gradient_figures(const Study& study);
std::vector<Figure> outcome_figures(const Study& study);
std::vector<Figure> timing_figures(const Study& study);

/// Whether positive values differ by so much that they need a logarithmic axis.
bool spans_decades(const Figure& figure);
/// For figures of one run: of each group that is shown the run of one seed, with the most detail. Null where there is no
/// detail; without study.seed, groups that lack the common seed have another.
std::vector<const RunData*> runs_of_one_seed(const Study& study,
                                             const std::function<std::size_t(const RunData&)>& detail);
/// Which seed it is, and of how many.
std::string seed_caption(const Group& group, const RunData& run);
/// Lower-case letters, digits and _ of a text.
std::string identifier(const std::string& text);
/// Names below a group of the result file, of any run that is shown: maps below /spectrum.
std::vector<std::string> names_below(const Study& study, const std::string& group);
/// The labels of the groups that are shown, for descriptions.
std::string labels_text(const Study& study);

}  // namespace stiefel::report
