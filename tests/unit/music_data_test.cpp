// The real sets of polyphonic music, where STIEFEL_DATA names a folder with them: their counts, one set from three
// kinds of files, and what predictors without and with a memory of one step reach.
#include "idx_files.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>

#include "tasks/formats/roll_set.hpp"

using namespace stiefel;
using idx_files::Folder;
namespace fs = std::filesystem;

namespace {

RollSet read_set(const fs::path& file) { return read_roll_file({file.string(), ""}); }

const char* data_folder() {
  const char* data = std::getenv("STIEFEL_DATA");
  if (data && fs::exists(fs::path(data) / "polyphonic")) return data;
  std::cout << "skipped: real music; STIEFEL_DATA names no folder with polyphonic/\n";
  return nullptr;
}

}  // namespace

TEST_CASE("the four sets have the pieces, steps and notes that are known of them") {
  const char* data = data_folder();
  if (!data) return;
  struct Known {
    std::size_t pieces, steps, shortest, longest;
    int lowest, highest;
    std::size_t most;
    double mean;
  };
  const std::map<std::string, std::array<Known, 3>> all = {{"JSB_Chorales",
                                                            {{{229, 13807, 25, 129, 43, 96, 4, 3.898},
                                                              {76, 4602, 32, 144, 48, 96, 4, 3.870},
                                                              {77, 4725, 32, 160, 45, 96, 4, 3.887}}}},
                                                           {"Nottingham",
                                                            {{{694, 176561, 40, 1788, 31, 93, 9, 3.961},
                                                              {173, 45513, 96, 1473, 34, 91, 8, 3.959},
                                                              {170, 44463, 63, 1793, 36, 89, 9, 3.990}}}},
                                                           {"Piano_midi",
                                                            {{{87, 75911, 111, 3857, 21, 108, 12, 3.044},
                                                              {12, 8540, 209, 1637, 24, 104, 11, 3.235},
                                                              {25, 19036, 65, 2645, 21, 108, 10, 2.945}}}},
                                                           {"MuseData",
                                                            {{{524, 245202, 9, 3457, 21, 96, 14, 3.493},
                                                              {135, 82755, 63, 3723, 21, 100, 15, 3.479},
                                                              {124, 64339, 45, 4273, 21, 105, 14, 3.293}}}}};
  for (const auto& [name, splits] : all) {
    const RollSet rolls = read_set(fs::path(data) / "polyphonic/mat" / (name + ".mat"));
    for (std::size_t s = 0; s < 3; ++s) {
      CAPTURE(name);
      CAPTURE(s);
      const Known& known = splits[s];
      std::size_t steps = 0, shortest = 1000000, longest = 0, most = 0, notes = 0;
      Frame any;
      for (const PianoRoll& piece : rolls[s]) {
        steps += piece.size();
        shortest = std::min(shortest, piece.size());
        longest = std::max(longest, piece.size());
        for (const Frame& frame : piece) any |= frame, most = std::max(most, frame.count()), notes += frame.count();
      }
      CHECK((rolls[s].size() == known.pieces && steps == known.steps));
      CHECK((shortest == known.shortest && longest == known.longest && most == known.most));
      CHECK((any[std::size_t(known.lowest - 21)] && any[std::size_t(known.highest - 21)]));
      CHECK((any << std::size_t(108 - known.highest)).count() == any.count());
      CHECK((any >> std::size_t(known.lowest - 21)).count() == any.count());
      CHECK(double(notes) / double(steps) == doctest::Approx(known.mean).epsilon(1.5e-4));
    }
  }
}

TEST_CASE("the chorales are the same in MATLAB and JSON") {
  const char* data = data_folder();
  if (!data) return;
  const fs::path folder = fs::path(data) / "polyphonic";
  const RollSet mat = read_set(folder / "mat/JSB_Chorales.mat");
  CHECK(read_set(folder / "jsb_json/jsb-chorales-quarter.json") == mat);
  const std::map<std::string, std::array<std::size_t, 3>> steps = {{"jsb-chorales-8th", {27614, 9204, 9450}},
                                                                   {"jsb-chorales-16th", {55228, 18408, 18900}},
                                                                   {"Jsb16thSeparated", {55228, 18408, 18900}}};
  for (const auto& [name, known] : steps) {
    const RollSet rolls = read_set(folder / "jsb_json" / (name + ".json"));
    for (std::size_t s = 0; s < 3; ++s) {
      const std::size_t count =
          std::accumulate(rolls[s].begin(), rolls[s].end(), std::size_t(0),
                          [](std::size_t sum, const PianoRoll& piece) { return sum + piece.size(); });
      CHECK((rolls[s].size() == mat[s].size() && count == known[s]));
    }
  }
}

TEST_CASE("the MIDI folders have the files and notes that are known of them") {
  const char* data = data_folder();
  if (!data) return;
  const std::map<std::string, std::array<std::array<std::size_t, 2>, 3>> all = {
      {"Nottingham", {{{694, 208194}, {173, 53654}, {170, 52127}}}},
      {"Piano-midi.de", {{{87, 205468}, {12, 26505}, {25, 43333}}}}};
  for (const auto& [name, splits] : all) {
    const Folder folder;
    const fs::path zip = fs::path(data) / "polyphonic/midi_zip" / (name + ".zip");
    REQUIRE(std::system(
                fmt::format("/usr/bin/python3 -m zipfile -e '{}' '{}'", zip.string(), folder.path.string()).c_str()) ==
            0);
    const NamedFile named_folder{(folder.path / name).string(), ""};
    std::vector<std::string> paths;
    const RollSet rolls = read_midi_folder(named_folder, {}, paths);
    for (std::size_t s = 0; s < 3; ++s) {
      CAPTURE(name);
      std::size_t files = 0, notes = 0;
      for (const std::string& path : paths) {
        if (path.find(std::string("/") + roll_split_names[s] + "/") == std::string::npos) continue;
        const NamedFile file{path, ""};
        const Midi midi = read_midi(bytes_of(file, 1 << 24), file);
        CHECK((midi.division == 480 && midi.format <= 1));
        ++files;
        notes += midi.notes.size();
      }
      CHECK((files == splits[s][0] && rolls[s].size() == files && notes == splits[s][1]));
    }
  }
  std::size_t notes = 0, files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(data) / "polyphonic/jsb_midi"))
    if (entry.path().extension() == ".mid") {
      const NamedFile file{entry.path().string(), ""};
      const Midi midi = read_midi(bytes_of(file, 1 << 24), file);
      CHECK((midi.format == 1 && midi.division == 1024));
      notes += midi.notes.size(), ++files;
    }
  CHECK((files == 498 && notes == 245594));
}

// Known values: tests/golden/polyphonic_baselines.py.
TEST_CASE("what a predictor reaches that knows how often keys sound, or how often after the step before") {
  const char* data = data_folder();
  if (!data) return;
  const std::map<std::string, std::array<double, 2>> known = {{"JSB_Chorales", {11.09, 10.49}},
                                                              {"Piano_midi", {11.05, 8.27}},
                                                              {"Nottingham", {10.26, 5.15}},
                                                              {"MuseData", {11.52, 8.56}}};
  for (const auto& [name, expected] : known) {
    CAPTURE(name);
    const RollSet rolls = read_set(fs::path(data) / "polyphonic/mat" / (name + ".mat"));
    const auto each = [&](std::size_t split, const std::function<void(const Frame&, const Frame&)>& f) {
      for (const PianoRoll& piece : rolls[split])
        for (std::size_t t = 1; t < piece.size(); ++t) f(piece[t - 1], piece[t]);
    };
    double counts[88][2][2] = {};  // of a key: before, now
    each(0, [&](const Frame& before, const Frame& now) {
      for (std::size_t key = 0; key < 88; ++key) ++counts[key][before[key]][now[key]];
    });
    double marginal = 0, markov = 0, frames = 0;
    each(2, [&](const Frame& before, const Frame& now) {
      ++frames;
      for (std::size_t key = 0; key < 88; ++key) {
        const auto& c = counts[key];
        const int y = now[key];
        marginal -= std::log((c[0][y] + c[1][y] + 0.01) / (c[0][0] + c[0][1] + c[1][0] + c[1][1] + 0.02));
        markov -= std::log((c[before[key]][y] + 0.01) / (c[before[key]][0] + c[before[key]][1] + 0.02));
      }
    });
    CHECK(std::abs(marginal / frames - expected[0]) < 0.005);
    CHECK(std::abs(markov / frames - expected[1]) < 0.005);
  }
}
