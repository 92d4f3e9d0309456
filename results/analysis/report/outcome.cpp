// Waveforms that networks put out, over the true ones.
#include <fmt/format.h>

#include <sndfile.hh>
#include <stiefel/error.hpp>

#include "base/printable.hpp"
#include "base/say.hpp"

#include "results/analysis/report/figures.hpp"

namespace stiefel::report {
namespace {

/// Amplitudes over milliseconds; none if the file is incomplete.
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

/// Files of the task sequence_generation. Nothing when there are none; why not, when they cannot be read.
std::vector<Figure> waveform(const RunData& run, const std::string& label, std::size_t number) {
  const std::filesystem::path folder = run.path / "outcome", excerpt = folder / "excerpt.wav",
                              generated = folder / "generated.wav";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(excerpt, ignored) || !std::filesystem::is_regular_file(generated, ignored))
    return {};
  Figure figure{
      fmt::format("waveform_{}", number), "Generated waveform: " + label, "", "", {"time", "ms"}, {"amplitude"}};
  for (const auto& [path, name] : {std::pair(excerpt, "true"), std::pair(generated, "generated")}) {
    figure.series.push_back(series_of(path, {name, int(figure.series.size())}));
    if (figure.series.back().y.empty()) {
      say("stiefel: {} is not a complete sound file of one channel; the report omits it\n", printable(path.string()));
      return {};
    }
  }
  const std::vector<double>& nmse = run.column("/final/test_nmse");
  figure.caption = fmt::format("Seed {}{}.", value_of(run, "seed"),
                               nmse.empty() ? "" : fmt::format("; normalised mean square error {:.3g}", nmse.back()));
  figure.description = "The generated waveform over the true one, amplitudes over time, of " + label + ".";
  return {figure};
}

}  // namespace

std::vector<Figure> outcome_figures(const Study& study) {
  std::vector<Figure> figures;
  for (const Group& group : study.shown())
    for (const RunData& run : group.runs) {
      std::vector<Figure> made = waveform(run, group.label, figures.size() + 1);
      if (made.empty()) continue;
      figures.push_back(std::move(made.front()));
      break;
    }
  return figures;
}

}  // namespace stiefel::report
