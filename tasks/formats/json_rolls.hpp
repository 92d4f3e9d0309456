/// Piano rolls as JSON: {"train": [piece, …], "valid": […], "test": […]}, a piece a list of steps, a step a list of
/// MIDI notes.
///
/// Whole numbers may be written with a fraction (60.0); the note −1 is silence. Notes must be those of a piano, 21 to
/// 108.
#pragma once

#include <string_view>

#include "tasks/formats/named_file.hpp"
#include "tasks/formats/piano_roll.hpp"

namespace stiefel {

/// Error(Exit::data) for anything else. Nothing is kept of the text but the steps: at most 16 times its size.
RollSet read_json_rolls(std::string_view bytes, const NamedFile& file);

}  // namespace stiefel
