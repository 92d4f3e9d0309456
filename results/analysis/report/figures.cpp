#include "results/analysis/report/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include <stiefel/error.hpp>

#include "results/analysis/report/encoding.hpp"

namespace stiefel::report {
namespace {

using Detail = std::function<std::size_t(const RunData&)>;

/// The run of a group with the most detail, of this seed or (if empty) of any; null if none has detail.
const RunData* most_detailed(const Group& group, const Detail& detail, const std::string& seed) {
  const RunData* found = nullptr;
  std::size_t most = 0;
  for (const RunData& run : group.runs)
    if (seed.empty() || value_of(run, "seed") == seed)
      if (const std::size_t count = detail(run); count > most) found = &run, most = count;
  return found;
}

/// The seed that most groups share. Of several such seeds, the one with the most detail; of these, the first.
std::string common_seed(const Study& study, const Detail& detail) {
  std::map<std::string, std::pair<std::size_t, std::size_t>, decltype(&comes_before)> shares(comes_before);
  for (const Group& group : study.shown()) {
    std::set<std::string> seeds;
    for (const RunData& run : group.runs) seeds.insert(value_of(run, "seed"));
    for (const std::string& seed : seeds)
      if (const RunData* run = most_detailed(group, detail, seed))
        ++shares[seed].first, shares[seed].second += detail(*run);
  }
  const auto most =
      std::max_element(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == shares.end() ? "" : most->first;
}

constexpr std::size_t longest_id = 100;

/// Makes the ids of figures unique and safe for a page and for names of files, because they contain names from result
/// files.
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

/// Lets the keys of a design stand in the legends for the groups that they make, and gives each panel its title.
void show_design(std::vector<Section>& sections, const Study& study) {
  if (study.design.legend().empty()) return;
  for (Section& section : sections)
    for (Figure& figure : section.figures) {
      const auto any = [&](auto&& is) { return std::ranges::any_of(figure.series, is); };
      if (any([](const Series& series) { return series.style.panel > 0; })) figure.panels = study.design.panels();
      bool groups = false;
      for (Series& series : figure.series)
        if (series.in_legend && std::ranges::find(study.groups, series.label, &Group::label) != study.groups.end())
          groups = true, series.in_legend = false;
      if (!groups) continue;
      std::ranges::copy_if(study.design.legend(), std::back_inserter(figure.legend), [&](const LegendKey& key) {
        return any([&](const Series& series) {
          return key.style.hue < 0 ? series.style.dash == key.style.dash : series.style.hue == key.style.hue;
        });
      });
    }
}

}  // namespace

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

std::vector<const RunData*> runs_of_one_seed(const Study& study, const Detail& detail) {
  const std::string seed = study.seed.empty() ? common_seed(study, detail) : study.seed;
  std::vector<const RunData*> runs;
  for (const Group& group : study.shown()) {
    runs.push_back(most_detailed(group, detail, seed));
    if (!runs.back() && study.seed.empty()) runs.back() = most_detailed(group, detail, "");
  }
  return runs;
}

std::string seed_caption(const Group& group, const RunData& run) {
  std::set<std::string> seeds;
  for (const RunData& other : group.runs) seeds.insert(value_of(other, "seed"));
  const std::string seed = value_of(run, "seed");
  return seeds.size() == 1
             ? fmt::format("Seed {}.", seed)
             : fmt::format("Seed {}, one of {}; `stiefel report --seed` shows another.", seed, seeds.size());
}

std::vector<Section> figures_of(const Study& study, const std::vector<std::string>& against) {
  if (!study.seed.empty()) {
    std::set<std::string, decltype(&comes_before)> seeds(comes_before);
    for (const RunData* run : study.runs()) seeds.insert(value_of(*run, "seed"));
    if (!seeds.contains(study.seed))
      throw Error(fmt::format("--seed {}: no run has this seed; choose from {}", study.seed, fmt::join(seeds, ", ")));
  }
  std::vector<Section> sections = {{"learning", "Learning", learning_figures(study)},
                                   {"comparison", "Comparison", comparison_figures(study, against)},
                                   {"maps", "Recurrent maps", map_figures(study)},
                                   {"gradients", "Gradients", gradient_figures(study)},
                                   {"outcome", "Network outputs", outcome_figures(study)},
                                   {"time", "Time", timing_figures(study)}};
  for (Section& section : sections)
    for (Figure& figure : section.figures) figure.title = shortened(figure.title, longest_title);
  std::erase_if(sections, [](const Section& section) { return section.figures.empty(); });
  make_ids_safe(sections);
  show_design(sections, study);
  return sections;
}

}  // namespace stiefel::report
