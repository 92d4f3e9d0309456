// Sets of piano rolls: the same pieces from every kind of file, and what is refused.
#include "idx_files.hpp"
#include "music_files.hpp"

#include <fmt/format.h>

#include "tasks/formats/roll_set.hpp"

using namespace stiefel;
using namespace music_files;
using idx_files::Folder;
namespace fs = std::filesystem;

namespace {

/// Every piece begins and ends with a sounding note, so that a MIDI file holds as many steps.
RollSet small_set() {
  RollSet rolls;
  for (std::size_t s = 0; s < 3; ++s)
    for (std::size_t i = 0; i < 3 - s; ++i) {
      PianoRoll piece(5 + 4 * i + s);
      for (std::size_t t = 0; t < piece.size(); ++t)
        for (std::size_t key = s; key < 88; key += 11) piece[t][key] = (t * (key + i) + i) % 3 == 0;
      piece.front().set(10 * i + s);
      piece.back().set(87);
      rolls[s].push_back(piece);
    }
  return rolls;
}

template <class F> Bytes joined(std::size_t count, const char* between, F&& part) {
  Bytes all;
  for (std::size_t i = 0; i < count; ++i) all += (i ? between : "") + part(i);
  return all;
}
Bytes json_of(const RollSet& rolls) {
  const auto step = [](const Frame& frame) {
    Bytes notes;
    for (int key = 0; key < 88; ++key)
      if (frame[std::size_t(key)]) notes += (notes.empty() ? "" : ", ") + std::to_string(21 + key);
    return "[" + notes + "]";
  };
  return "{" +
         joined(3, ", ",
                [&](std::size_t s) {
                  return "\"" + Bytes(roll_split_names[s]) + "\": [" +
                         joined(rolls[s].size(), ", ",
                                [&](std::size_t i) {
                                  const PianoRoll& piece = rolls[s][i];
                                  return "[" +
                                         joined(piece.size(), ", ", [&](std::size_t t) { return step(piece[t]); }) +
                                         "]";
                                }) +
                         "]";
                }) +
         "}";
}
void write_midi_folder(const fs::path& folder, const RollSet& rolls) {
  for (std::size_t s = 0; s < 3; ++s) {
    fs::create_directories(folder / roll_split_names[s]);
    for (std::size_t i = 0; i < rolls[s].size(); ++i)
      idx_files::write(folder / roll_split_names[s] / fmt::format("piece_{}.mid", i), midi_of(rolls[s][i]));
  }
}

RollSet read(const fs::path& file) { return read_roll_file({file.string(), "Fetch it again."}); }

std::string refusal_of(const Folder& folder, const std::string& name, const Bytes& bytes) {
  const fs::path file = folder.path / name;
  idx_files::write(file, bytes);
  try {
    read(file);
  } catch (const Error& error) {
    CHECK(error.code() == Exit::data);
    const std::string text = error.what();
    REQUIRE(text.starts_with(file.string() + ": "));
    return text.substr(file.string().size() + 2);
  }
  return "accepted";
}

}  // namespace

TEST_CASE("the same pieces from every kind of file") {
  const Folder folder;
  const RollSet rolls = small_set();
  idx_files::write(folder.path / "rolls.mat", music_files::Mat{}.set(rolls));
  idx_files::write(folder.path / "big.mat", music_files::Mat{true}.set(rolls));
  idx_files::write(folder.path / "UPPER.MAT", music_files::Mat{}.set(rolls));
  idx_files::write(folder.path / "rolls.json", json_of(rolls));
  idx_files::write(folder.path / "UPPER.JSON", json_of(rolls));
  for (const char* name : {"rolls.mat", "big.mat", "UPPER.MAT", "rolls.json", "UPPER.JSON"}) {
    CAPTURE(name);
    CHECK(read(folder.path / name) == rolls);
  }
  write_midi_folder(folder.path / "midi", rolls);
  idx_files::write(folder.path / "midi/train/notes.txt", "not a piece");
  idx_files::write(folder.path / "midi/train/._piece_0.mid", "what macOS keeps about piece_0.mid");
  idx_files::write(folder.path / "midi/train/.hidden/piece_0.mid", "not read");
  idx_files::write(folder.path / "midi/train/about/notes.txt", "not a piece");
  std::vector<std::string> paths;
  CHECK(read_midi_folder({(folder.path / "midi").string(), ""}, {}, paths) == rolls);
  REQUIRE(paths.size() == 6);
  CHECK(paths[4] == (folder.path / "midi/valid/piece_1.mid").string());
}

TEST_CASE("files whose contents are no set of piano rolls") {
  const Folder folder;
  const auto mat = [&](const Bytes& array) {
    const music_files::Mat m;
    return refusal_of(folder, "a.mat",
                      m.header() + m.cell("traindata", {array}) + m.cell("validdata", {}) + m.cell("testdata", {}));
  };
  CHECK(mat(music_files::Mat{}.array(2, 88, zeros(176))) == "accepted");
  CHECK(mat(music_files::Mat{}.array(2, 87, zeros(174)))
            .starts_with("traindata{1} has 87 columns, expected 88, one per key"));
  CHECK(mat(music_files::Mat{}.array(1, 88, zeros(88)))
            .starts_with("train, piece 1: 1 steps, at least 2 are needed. Fetch it again."));
  CHECK(mat(music_files::Mat{}.array(0, 88, "")).starts_with("train, piece 1: 0 steps"));
  CHECK(mat(music_files::Mat{}.array(2, 88, zeros(175) + '\x02'))
            .starts_with("traindata{1} holds 2 at step 2, key 88; expected 0 or 1"));
  CHECK(mat(music_files::Mat{}.array(2, 88, Bytes(704, '\xff'), 7)).starts_with("traindata{1} holds "));
  CHECK(mat(music_files::Mat{}.array(2, 88, Bytes(1408, '\xff'), 9)).starts_with("traindata{1} holds "));

  CHECK(refusal_of(folder, "a.json", json_of({})).starts_with("holds no training piece"));
  CHECK(refusal_of(folder, "a.npz", "").starts_with("the name must end with .mat or .json"));
  for (const char* name : {"a.pkl", "a.pickle", "A.PKL"})
    CHECK(refusal_of(folder, name, "").starts_with("pickles are not read; docs/DATA_SOUND.md"));
  CHECK(refusal_of(folder, "json", json_of(small_set())).starts_with("the name must end with"));
  fs::create_directories(folder.path / "folder.mat");
  CHECK_THROWS_WITH_AS(read(folder.path / "folder.mat"), doctest::Contains("not a file"), Error);
  CHECK_THROWS_WITH_AS(read(folder.path / "absent.json"), doctest::Contains("No such file or directory"), Error);
}

TEST_CASE("folders that are no set of MIDI files") {
  const Folder folder;
  const auto says = [&](const std::string& part) {
    std::vector<std::string> paths;
    CHECK_THROWS_WITH_AS(read_midi_folder({folder.path.string(), ""}, {}, paths), doctest::Contains(part.c_str()),
                         Error);
  };
  says("cannot read its folder train (No such file or directory)");
  for (const char* split : roll_split_names) fs::create_directories(folder.path / split);
  says("holds no training piece");
  fs::create_directories(folder.path / "valid/deeper");
  says("its folder valid has no .mid file; folders in it are not read");
  idx_files::write(folder.path / "valid/a.mid", midi_of(small_set()[1][0]));
  says("holds no training piece");
  idx_files::write(folder.path / "valid/deeper/still/b.mid", "");
  says("its folder valid has .mid files in deeper/still, which would not be read; move them into valid or elsewhere");
  fs::remove_all(folder.path / "valid/deeper");
  const Bytes midi = midi_of(small_set()[0][0]);
  idx_files::write(folder.path / "train/song.kar", midi);
  idx_files::write(folder.path / "train/._song.kar", midi);
  idx_files::write(folder.path / "train/notes.txt", "not a piece");
  says(
      "its folder train has MIDI files whose names do not end with .mid or .midi, which would not be read: song.kar; "
      "rename them, or move them elsewhere");
  idx_files::write(folder.path / "train/deeper/a.rmi", "RIFF" + zeros(4) + "RMIDdata" + zeros(4) + midi);
  says("which would not be read: deeper/a.rmi, song.kar; rename them");
  fs::remove_all(folder.path / "train/deeper");
  fs::remove(folder.path / "train/song.kar");
  idx_files::write(folder.path / "train/a.mid", midi_header(0, 1) + track(note_on(0, 60) + note_off(240, 60)));
  says("a.mid: has fewer than two steps with notes. Repair the file");
  const Bytes drum{0, char(0x99), 36, 64}, low = note_on(0, 20), high = note_on(0, 109);
  idx_files::write(folder.path / "train/a.mid",
                   midi_header(0, 1) + track(drum + low + high + Bytes{100, char(0xc0), 5}));
  says(
      "a.mid: has fewer than two steps with notes; 3 of its 3 notes are left out, which are percussion (channel 10) or "
      "outside the keys 21 to 108 of a piano. Repair the file");
  idx_files::write(folder.path / "train/a.mid", "MThd");
  says("train/a.mid: ends before the header. Repair the file, or move it out of the folder to train without it");
}
