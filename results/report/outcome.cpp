// Waveforms that networks put out, over the true ones.
#include <fmt/format.h>

#include <say.hpp>
#include <stiefel/error.hpp>
#include <tasks/formats/audio.hpp>

#include "results/report/figures.hpp"

namespace stiefel::report {
namespace {

/// Files of the task sequence_generation. Nothing when there are none; why not, when they cannot be read.
std::vector<Figure> waveform(const RunData& run, const std::string& label, std::size_t number) {
  const std::filesystem::path folder = run.path / "outcome", excerpt = folder / "excerpt.wav", generated = folder / "generated.wav";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(excerpt, ignored) || !std::filesystem::is_regular_file(generated, ignored)) return {};
  Figure figure{fmt::format("waveform_{}", number), "Generated waveform: " + label, "", "", {"time", "ms"}, {"amplitude"}};
  try {
    int colour = 0;
    for (const auto& [path, name] : {std::pair(excerpt, "true"), std::pair(generated, "generated")}) {
      const Audio audio = read_audio(path.string(), "It is left out of the report.");
      Series series{name, colour++};
      for (std::size_t i = 0; i < audio.samples.size(); ++i) series.x.push_back(1000 * double(i) / double(audio.rate));
      series.y = audio.samples;
      figure.series.push_back(std::move(series));
    }
  } catch (const Error& error) {
    say("stiefel: {}\n", error.what());
    return {};
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
