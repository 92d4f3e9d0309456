// Piano rolls from MATLAB files, JSON and folders of MIDI files.
#include "tasks/formats/roll_set.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <filesystem>
#include <fstream>
#include <utility>

#include "tasks/formats/json_rolls.hpp"
#include "tasks/formats/mat.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t largest_file = std::uint64_t(1) << 28, largest_midi = std::uint64_t(1) << 24;

PianoRoll roll_from(const MatArray& array, const std::string& what, const NamedFile& file) {
  constexpr auto keys = std::int64_t(Frame().size());
  if (array.columns != keys)
    file.refuse(fmt::format("{} has {} columns, expected {}, one per key", what, array.columns, keys));
  PianoRoll roll(static_cast<std::size_t>(array.rows));
  for (std::int64_t t = 0; t < array.rows; ++t)
    for (std::int64_t key = 0; key < keys; ++key) {
      const double value = array.at(t, key);
      if (value != 0 && value != 1)
        file.refuse(fmt::format("{} holds {} at step {}, key {}; expected 0 or 1", what, value, t + 1, key + 1));
      roll[static_cast<std::size_t>(t)][static_cast<std::size_t>(key)] = value == 1;
    }
  return roll;
}

RollSet from_mat(std::string_view bytes, const NamedFile& file) {
  const std::vector<std::string> names = {"traindata", "validdata", "testdata"};
  const std::vector<MatCell> cells = read_mat_cells(bytes, names, file);
  RollSet rolls;
  for (std::size_t s = 0; s < rolls.size(); ++s)
    for (std::size_t i = 0; i < cells[s].size(); ++i)
      rolls[s].push_back(roll_from(cells[s][i], fmt::format("{}{{{}}}", names[s], i + 1), file));
  return rolls;
}

RollSet checked(RollSet rolls, const NamedFile& file) {
  for (std::size_t s = 0; s < rolls.size(); ++s)
    for (std::size_t i = 0; i < rolls[s].size(); ++i)
      if (rolls[s][i].size() < 2)
        file.refuse(fmt::format("{}, piece {}: {} steps, at least 2 are needed", roll_split_names[s], i + 1,
                                rolls[s][i].size()));
  if (rolls[0].empty()) file.refuse("holds no training piece");
  return rolls;
}

/// Whether the name is that of a MATLAB file; otherwise it is that of a JSON file.
bool is_mat(const NamedFile& file) {
  const std::string ending = boost::to_lower_copy(fs::path(file.path).extension().string());
  if (ending == ".pkl" || ending == ".pickle")
    file.refuse(
        "pickles are not read; docs/DATA_SOUND.md, section \"Piano rolls from a pickle\", shows how to turn one into "
        "JSON");
  if (ending != ".mat" && ending != ".json") file.refuse("the name must end with .mat or .json");
  return ending == ".mat";
}

/// Whether a file that is not named like a MIDI file is one, perhaps inside a RIFF file (.rmi).
bool is_misnamed_midi(const fs::directory_entry& entry) {
  std::error_code ignored;
  if (is_midi(entry.path()) || !entry.is_regular_file(ignored)) return false;
  std::string begin(12, '\0');
  std::ifstream(entry.path(), std::ios::binary).read(begin.data(), std::streamsize(begin.size()));
  return begin.starts_with("MThd") || (begin.starts_with("RIFF") && begin.ends_with("RMID"));
}

std::vector<fs::path> midi_files(const fs::path& folder, const NamedFile& named) {
  std::error_code error;
  std::vector<fs::path> files;
  std::vector<std::string> misnamed;
  bool others = false;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.filename().string().starts_with('.'))  // hidden, or what macOS writes next to a file
      entry.disable_recursion_pending();
    else if (is_misnamed_midi(*entry))
      misnamed.push_back(path.lexically_relative(folder).string());
    else if (!is_midi(path))
      others = true;
    else if (entry.depth() == 0)
      files.push_back(path);
    else
      named.refuse(
          fmt::format("its folder {0} has .mid files in {1}, which would not be read; move them into {0} or "
                      "elsewhere",
                      folder.filename().string(), path.parent_path().lexically_relative(folder).string()));
  }
  if (error) named.refuse(fmt::format("cannot read its folder {} ({})", folder.filename().string(), error.message()));
  std::sort(misnamed.begin(), misnamed.end());
  const bool more = misnamed.size() > 5;
  misnamed.resize(std::min<std::size_t>(misnamed.size(), 5));
  if (!misnamed.empty())
    named.refuse(
        fmt::format("its folder {} has MIDI files whose names do not end with .mid or .midi, which would not "
                    "be read: {}{}; rename them, or move them elsewhere",
                    folder.filename().string(), fmt::join(misnamed, ", "), more ? ", …" : ""));
  if (files.empty() && others)
    named.refuse(fmt::format("its folder {} has no .mid file; folders in it are not read", folder.filename().string()));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

bool is_midi(const fs::path& path) {
  const std::string ending = boost::to_lower_copy(path.extension().string());
  return ending == ".mid" || ending == ".midi";
}

RollSet read_roll_file(const NamedFile& file) {
  is_mat(file);  // refuses other names before anything is read
  return read_rolls(bytes_of(file, largest_file), file);
}

RollSet read_rolls(std::string_view bytes, const NamedFile& file) {
  return checked(is_mat(file) ? from_mat(bytes, file) : read_json_rolls(bytes, file), file);
}

RollSet read_midi_folder(const NamedFile& folder, const MidiGrid& grid, std::vector<std::string>& paths) {
  RollSet rolls;
  for (std::size_t s = 0; s < rolls.size(); ++s)
    for (const fs::path& path : midi_files(fs::path(folder.path) / roll_split_names[s], folder)) {
      const NamedFile file{path.string(), folder.mend.empty()
                                              ? "Repair the file, or move it out of the folder to train without it."
                                              : folder.mend};
      const Midi midi = read_midi(bytes_of(file, largest_midi), file);
      rolls[s].push_back(roll_of(midi, grid, file));
      const auto left_out = midi.notes.size() - std::size_t(std::ranges::count_if(midi.notes, is_of_piano));
      const std::string reason = fmt::format(
          "; {} of its {} notes are left out, which are percussion (channel 10) or outside the keys {} to {} "
          "of a piano",
          left_out, midi.notes.size(), lowest_note, highest_note);
      if (rolls[s].back().size() < 2) file.refuse("has fewer than two steps with notes" + (left_out > 0 ? reason : ""));
      paths.push_back(file.path);
    }
  return checked(std::move(rolls), folder);
}

}  // namespace stiefel
