// Draws waveforms that networks put out over the true ones, confusion matrices, and predicted series.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>

#include <sndfile.hh>
#include <stiefel/error.hpp>

#include "base/printable.hpp"
#include "base/say.hpp"

#include "results/analysis/report/encoding.hpp"
#include "results/analysis/report/figures.hpp"

namespace stiefel::report {
namespace {

/// Amplitudes over milliseconds; none if the file is incomplete or has several channels.
Series series_of(const std::filesystem::path& path, Series series) {
  SndfileHandle file(path.string());
  std::error_code unknown;
  // A header may promise more than the file holds.
  if (file.error() != 0 || file.channels() != 1 ||
      std::uintmax_t(file.frames()) > std::filesystem::file_size(path, unknown))
    return series;
  series.y.resize(std::size_t(file.frames()));
  if (file.readf(series.y.data(), file.frames()) != file.frames()) series.y.clear();
  for (std::size_t i = 0; i < series.y.size(); ++i) series.x.push_back(1000 * double(i) / file.samplerate());
  return series;
}

/// Files of the task sequence_generation, and what they are.
constexpr std::pair<const char*, const char*> sounds[] = {{"excerpt.wav", "true"}, {"generated.wav", "generated"}};

bool has_sounds(const RunData& run) {
  std::error_code ignored;
  return std::ranges::all_of(sounds, [&](const auto& sound) {
    return std::filesystem::is_regular_file(run.path / "outcome" / sound.first, ignored);
  });
}

/// The figure of a run; nothing, after a message, if a file cannot be read.
std::vector<Figure> waveform(const Group& group, const RunData& run, std::size_t number) {
  Figure figure{
      fmt::format("waveform_{}", number), "Generated waveform: " + group.label, "", "", {"time", "ms"}, {"amplitude"}};
  for (const auto& [file, name] : sounds) {
    const std::filesystem::path path = run.path / "outcome" / file;
    figure.series.push_back(series_of(path, {name, {int(figure.series.size())}}));
    if (figure.series.back().y.empty()) {
      say("stiefel: {} is not a complete sound file of one channel; the report omits it\n", printable(path.string()));
      return {};
    }
  }
  const std::vector<double>& nmse = run.column("/final/test_nmse");
  figure.caption = seed_caption(group, run);
  if (!nmse.empty()) figure.caption += fmt::format(" Normalized mean square error: {:.3g}.", nmse.back());
  figure.description = "The generated waveform over the true one, amplitudes over time, of " + group.label + ".";
  return {figure};
}

/// The rows of a file of the outcome, with as many fields as the first; nothing, after a message, if some have other
/// ones, or if it has too many.
std::vector<std::vector<std::string>> outcome_table(const RunData& run, const char* file) {
  const std::filesystem::path path = run.path / "outcome" / file;
  std::ifstream stream(path, std::ios::binary);
  std::vector<std::vector<std::string>> rows = csv_rows(std::string(std::istreambuf_iterator<char>(stream), {}));
  if (rows.size() > 1 && std::ranges::all_of(rows, [&](const auto& row) { return row.size() == rows[0].size(); }))
    return rows;
  say("stiefel: {} is not a complete table; the report omits it\n", printable(path.string()));
  return {};
}

double number_in(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return text.empty() || *end != '\0' ? NAN : number;
}

/// Files of the tasks on own data.
constexpr const char *confusion_file = "confusion.csv", *examples_file = "examples.csv";

auto has_file(const char* file) {
  return [file](const RunData& run) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(run.path / "outcome" / file, ignored);
  };
}

std::vector<Figure> confusion_figure(const Group& group, const RunData& run, std::size_t number) {
  const auto rows = outcome_table(run, confusion_file);
  if (rows.size() < 3 || rows.size() != rows[0].size()) return {};
  const std::vector<std::string> names(rows[0].begin() + 1, rows[0].end());
  const double last = double(names.size()) - 1;
  Figure figure{
      fmt::format("confusion_{}", number),
      "Confusion matrix: " + group.label,
      "Shares of the targets of each class for which the network puts out each class, as colors, of " + group.label +
          ".",
      "Of the test set. Each row shows the targets of a class, and its columns, in the order of the rows, the "
      "classes that the network puts out. " +
          seed_caption(group, run),
      {"output", "", false, names, {{-0.5, last + 0.5}}},
      {"target", "", false, names}};
  figure.heat = HeatMap{{}, {}, {}, {"share", ""}, true};
  figure.heat->scale.range = {0, 1};
  for (std::size_t row = names.size(); row > 0; --row) {
    std::vector<double> counts;
    std::ranges::transform(rows[row].begin() + 1, rows[row].end(), std::back_inserter(counts), number_in);
    const double all = std::accumulate(counts.begin(), counts.end(), 0.);
    for (const double count : counts) figure.heat->values.push_back(all > 0 ? count / all : NAN);
    figure.heat->y.push_back(double(row - 1));
    figure.heat->x.push_back(double(figure.heat->x.size()));
  }
  return {figure};
}

/// A figure for each target, with a panel for each sequence; none if the sequences have one target each.
std::vector<Figure> example_figures(const Group& group, const RunData& run, std::size_t number) {
  std::vector<Figure> figures;
  const auto rows = outcome_table(run, examples_file);
  if (rows.empty() || rows[0] != std::vector<std::string>{"sequence", "step", "target", "true", "predicted"}) return {};
  bool curves = false;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::string title = fmt::format("Predicted {}: {}", rows[i][2], group.label),
                      panel = "Sequence " + rows[i][0];
    auto figure = std::ranges::find(figures, title, &Figure::title);
    if (figure == figures.end())
      figure = figures.insert(figure, {fmt::format("examples_{}_{}", number, figures.size() + 1),
                                       title,
                                       fmt::format("True and predicted {} over the steps of test sequences, of {}.",
                                                   rows[i][2], group.label),
                                       "The first sequences of the test set. " + seed_caption(group, run),
                                       {"step"},
                                       {rows[i][2]}});
    if (std::ranges::find(figure->panels, panel) == figure->panels.end()) {
      if (figure->panels.size() == most_panels) continue;
      for (const int hue : {0, 1})
        figure->series.push_back({hue == 0 ? "true" : "predicted",
                                  {hue, 0, int(figure->panels.size())},
                                  Form::line,
                                  {},
                                  {},
                                  {},
                                  {},
                                  figure->panels.empty()});
      figure->panels.push_back(panel);
    }
    for (const std::size_t column : {3, 4}) {
      Series& series = figure->series[figure->series.size() + column - 5];
      series.x.push_back(number_in(rows[i][1])), series.y.push_back(number_in(rows[i][column]));
      curves |= series.x.size() > 1;
    }
  }
  return curves ? figures : std::vector<Figure>();
}

}  // namespace

std::vector<Figure> outcome_figures(const Study& study) {
  std::vector<Figure> figures;
  const auto add = [&](auto&& has, auto&& draw) {
    const auto runs = runs_of_one_seed(study, has);
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (runs[i])
        for (Figure& made : draw(study.shown()[i], *runs[i], i + 1)) figures.push_back(std::move(made));
  };
  add(has_sounds, waveform);
  add(has_file(confusion_file), confusion_figure);
  add(has_file(examples_file), example_figures);
  return figures;
}

}  // namespace stiefel::report
