/// Sets of piano rolls, whatever they are kept in.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/formats/midi.hpp"
#include "tasks/formats/named_file.hpp"
#include "tasks/formats/piano_roll.hpp"

namespace stiefel {

/// Whether the name is that of a MIDI file.
bool is_midi(const std::filesystem::path& path);

/// A file by the ending of its name: .mat (cells traindata, validdata, testdata of steps × 88 arrays of 0 and 1) or
/// .json (object of train, valid, test). Error(Exit::data) for damage, for pieces of fewer than two steps and for a set
/// without training pieces.
RollSet read_roll_file(const NamedFile& file);
/// The same of its bytes.
RollSet read_rolls(std::string_view bytes, const NamedFile& file);

/// A folder with the folders train, valid, test of MIDI files (.mid, .midi), which are taken in the order of their
/// names; `paths` receives those of the files. Names that begin with a dot are passed over; MIDI files in deeper
/// folders and those with other names, such as .kar, are refused. The folders valid and test may be empty.
RollSet read_midi_folder(const NamedFile& folder, const MidiGrid& grid, std::vector<std::string>& paths);

}  // namespace stiefel
