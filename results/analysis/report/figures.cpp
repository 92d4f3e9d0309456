#include "results/analysis/report/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "results/analysis/report/encoding.hpp"

namespace stiefel::report {

std::string identifier(const std::string& text) {
  std::string id;
  for (const char c : text)
    id += std::isalnum(static_cast<unsigned char>(c)) ? char(std::tolower(static_cast<unsigned char>(c))) : '_';
  return id;
}

std::vector<std::string> names_below(const Study& study, const std::string& group) {
  std::vector<std::string> names;
  for (const Group& shown : study.shown())
    for (const RunData& run : shown.runs)
      for (const RunDataset& dataset : run.datasets) {
        if (!dataset.path.starts_with(group + "/")) continue;
        const std::string rest = dataset.path.substr(group.size() + 1), name = rest.substr(0, rest.find('/'));
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
  return names;
}

std::string labels_text(const Study& study) {
  std::vector<std::string> labels;
  for (const Group& group : study.shown()) labels.push_back(group.label);
  return fmt::format("{}", fmt::join(labels, "; "));
}

namespace {

/// Captions of single runs do not mention seeds.
void leave_out_band(Figure& figure) {
  const auto has_band = [](const Series& series) { return !series.low.empty(); };
  const std::size_t at = figure.caption.find(band_caption);
  if (at == std::string::npos || std::any_of(figure.series.begin(), figure.series.end(), has_band)) return;
  figure.caption.erase(at, std::string(band_caption).size());
}

constexpr std::size_t longest_id = 100;

/// Names of maps and metrics come from result files: what they are made of may not stand in a page or in the name of a
/// file.
void make_ids_safe(std::vector<Section>& sections) {
  std::set<std::string> taken;
  std::map<std::string, int> numbers;
  for (Section& section : sections)
    for (Figure& figure : section.figures) {
      const std::string name = identifier(figure.id).substr(0, longest_id);
      do {
        const int number = ++numbers[name];
        figure.id = number == 1 ? name : fmt::format("{}_{}", name, number);
      } while (!taken.insert(figure.id).second);
    }
}

}  // namespace

std::vector<Section> figures_of(const Study& study, const std::vector<std::string>& against) {
  std::vector<Section> sections = {{"learning", "Learning", learning_figures(study)},
                                   {"comparison", "Comparison", comparison_figures(study, against)},
                                   {"maps", "Recurrent maps", map_figures(study)},
                                   {"gradients", "Gradients", gradient_figures(study)},
                                   {"outcome", "Network outputs", outcome_figures(study)},
                                   {"time", "Time", timing_figures(study)}};
  for (Section& section : sections)
    for (Figure& figure : section.figures) {
      leave_out_band(figure);
      figure.title = shortened(figure.title, longest_title);
    }
  std::erase_if(sections, [](const Section& section) { return section.figures.empty(); });
  make_ids_safe(sections);
  if (study.shown().size() < study.groups.size())
    for (Section& section : sections)
      for (Figure& figure : section.figures) {
        if (figure.id.starts_with("against_")) continue;  // it shows all runs
        figure.caption += fmt::format(" {} of {} groups are shown, those with the best {}.", colours,
                                      study.groups.size(), study.metric.label);
      }
  return sections;
}

}  // namespace stiefel::report
