// Draws waveforms that networks put out over the true ones.
#include <fmt/format.h>

#include <algorithm>

#include <sndfile.hh>
#include <stiefel/error.hpp>

#include "base/printable.hpp"
#include "base/say.hpp"

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

}  // namespace

std::vector<Figure> outcome_figures(const Study& study) {
  std::vector<Figure> figures;
  const auto runs = runs_of_one_seed(study, has_sounds);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i]) continue;
    for (Figure& made : waveform(study.shown()[i], *runs[i], figures.size() + 1)) figures.push_back(std::move(made));
  }
  return figures;
}

}  // namespace stiefel::report
