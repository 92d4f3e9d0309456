// Piano rolls from MATLAB files, JSON, pickles and folders of MIDI files.
#include "tasks/formats/roll_set.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "tasks/formats/json_rolls.hpp"
#include "tasks/formats/mat.hpp"
#include "tasks/formats/pickle.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t largest_file = std::uint64_t(1) << 28, largest_pickle = std::uint64_t(1) << 26,
                        largest_midi = std::uint64_t(1) << 24;
constexpr std::size_t most_notes_at_once = 128;

PianoRoll roll_from(const MatArray& array, const std::string& what, const NamedFile& file) {
  constexpr auto keys = std::int64_t(Frame().size());
  if (array.columns != keys) file.refuse(fmt::format("{} has {} columns, expected {}, one per key", what, array.columns, keys));
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

/// Walks through the values of a pickle, which may share what they hold: no more steps are read than the file has bytes.
class PickleRolls {
 public:
  PickleRolls(const Pickle& pickle, std::size_t size, const NamedFile& file) : pickle_(pickle), file_(file), room_(size) {}

  RollSet read() {
    RollSet rolls;
    std::array<bool, 3> seen{};
    const PickleValue& root = pickle_[pickle_.root];
    if (root.kind != PickleKind::dictionary) file_.refuse("holds something else than a dictionary of train, valid and test");
    const std::vector<std::uint32_t>& items = pickle_.items_of(root);
    for (std::size_t i = 0; i < items.size(); i += 2) {
      const std::string_view text = pickle_[items[i]].text, key = text == "validation" ? "valid" : text;
      const auto split =
          static_cast<std::size_t>(std::find(roll_split_names.begin(), roll_split_names.end(), key) - roll_split_names.begin());
      if (split == rolls.size()) file_.refuse("the dictionary has a key that is none of train, valid, test");
      if (std::exchange(seen[split], true)) file_.refuse(fmt::format("the key {} stands there twice", roll_split_names[split]));
      place_ = roll_split_names[split];
      for (const std::uint32_t piece : list(items[i + 1], "a list of pieces")) {
        place_ = fmt::format("{}, piece {}", roll_split_names[split], rolls[split].size() + 1);
        rolls[split].push_back(roll(piece));
      }
    }
    for (std::size_t i = 0; i < seen.size(); ++i)
      if (!seen[i]) file_.refuse(fmt::format("has no key {}", roll_split_names[i]));
    return rolls;
  }

 private:
  const std::vector<std::uint32_t>& list(std::uint32_t number, const char* what) const {
    const PickleValue& value = pickle_[number];
    if (value.kind != PickleKind::list && value.kind != PickleKind::tuple) file_.refuse(fmt::format("{}: {} is expected", place_, what));
    return pickle_.items_of(value);
  }

  PianoRoll roll(std::uint32_t piece) {
    const std::vector<std::uint32_t>& steps = list(piece, "a list of steps");
    if (steps.size() > room_ || room_ == 0) file_.refuse("has more steps than bytes");
    room_ -= std::max<std::size_t>(steps.size(), 1);
    PianoRoll roll(steps.size());
    for (std::size_t t = 0; t < steps.size(); ++t) {
      const std::vector<std::uint32_t>& notes = list(steps[t], "a list of notes");
      if (notes.size() > most_notes_at_once) file_.refuse(fmt::format("{}: {} notes at once", place_, notes.size()));
      for (const std::uint32_t note : notes) add(roll[t], pickle_[note]);
    }
    return roll;
  }

  void add(Frame& frame, const PickleValue& note) const {
    const double value = note.kind == PickleKind::integer ? double(note.number) : note.kind == PickleKind::real ? note.real() : 0.5;
    if (value == -1) return;
    if (!(std::abs(value) <= 1000) || value != std::floor(value) || !add_note(frame, static_cast<std::int64_t>(value)))
      file_.refuse(fmt::format("{}: something is not a note of a piano, {} to {}", place_, lowest_note, highest_note));
  }

  const Pickle& pickle_;
  const NamedFile& file_;
  std::size_t room_;
  std::string place_;
};

RollSet checked(RollSet rolls, const NamedFile& file) {
  for (std::size_t s = 0; s < rolls.size(); ++s)
    for (std::size_t i = 0; i < rolls[s].size(); ++i)
      if (rolls[s][i].size() < 2)
        file.refuse(fmt::format("{}, piece {}: {} steps, at least 2 are needed", roll_split_names[s], i + 1, rolls[s][i].size()));
  if (rolls[0].empty()) file.refuse("holds no training piece");
  return rolls;
}

enum class Kind { mat, json, pickle };

Kind kind_of(const NamedFile& file) {
  const std::string ending = fs::path(file.path).extension().string();
  if (ending == ".mat") return Kind::mat;
  if (ending == ".json") return Kind::json;
  if (ending != ".pickle" && ending != ".pkl")
    file.refuse("the name must end with .mat, .json, .pickle or .pkl, so that it is known what is in it");
  return Kind::pickle;
}

std::vector<fs::path> midi_files(const fs::path& folder, const NamedFile& named) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string ending = entry->path().extension().string();
    if (ending == ".mid" || ending == ".midi" || ending == ".MID") files.push_back(entry->path());
  }
  if (error) named.refuse(fmt::format("cannot read its folder {} ({})", folder.filename().string(), error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

RollSet read_roll_file(const NamedFile& file) {
  return read_rolls(bytes_of(file, kind_of(file) == Kind::pickle ? largest_pickle : largest_file), file);
}

RollSet read_rolls(std::string_view bytes, const NamedFile& file) {
  switch (kind_of(file)) {
    case Kind::mat:
      return checked(from_mat(bytes, file), file);
    case Kind::json:
      return checked(read_json_rolls(bytes, file), file);
    default: {
      const Pickle pickle = read_pickle(bytes, file);
      return checked(PickleRolls(pickle, bytes.size(), file).read(), file);
    }
  }
}

RollSet read_midi_folder(const NamedFile& folder, const MidiGrid& grid, std::vector<std::string>& paths) {
  RollSet rolls;
  for (std::size_t s = 0; s < rolls.size(); ++s)
    for (const fs::path& path : midi_files(fs::path(folder.path) / roll_split_names[s], folder)) {
      const NamedFile file{path.string(), folder.mend};
      rolls[s].push_back(roll_of(read_midi(bytes_of(file, largest_midi), file), grid, file));
      if (rolls[s].back().size() < 2) file.refuse("has fewer than two steps with notes");
      paths.push_back(file.path);
    }
  return checked(std::move(rolls), folder);
}

}  // namespace stiefel
