/// Standard MIDI files of format 0 and 1: their notes, and piano rolls of them.
///
///   "MThd", size, format, number of tracks, ticks of a quarter note; then tracks: "MTrk", size, events. An event:
///     ticks since the last
///   one (7 bits a byte, most significant first, the top bit set in all but the last byte), status, data. A status ≥
///     0x80 may be left out
///   where it is that of the event before (running status); a note-on of velocity 0 is a note-off.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tasks/formats/named_file.hpp"
#include "tasks/formats/piano_roll.hpp"

namespace stiefel {

struct MidiNote {
  std::int64_t start = 0, end = 0;  ///< ticks
  std::uint8_t key = 0, channel = 0;
};
struct Midi {
  int format = 0, tracks = 0;
  std::int64_t division = 0;  ///< ticks of a quarter note
  std::vector<MidiNote> notes;
};

/// Error(Exit::data) for a damaged file, for format 2 and for times that are not in fractions of a quarter note. A note
/// that is never released ends with its track. Memory is bounded by the size of the file.
Midi read_midi(std::string_view bytes, const NamedFile& file);

/// Whether it is not percussion (channel 10), and a key that a piano has (21 to 108).
bool is_of_piano(const MidiNote& note);

/// The time steps of a piano roll.
struct MidiGrid {
  std::int64_t steps_per_quarter = 2;
  bool sampled = false;  ///< else nearest
};

/// nearest: a note sounds from the step nearest to its start until the step nearest to its end, at least for one.
/// sampled: it sounds at the steps that begin while it does, which loses short notes. Notes that are not of a piano
/// are left out. Refused when that is more than 2²⁰ steps.
PianoRoll roll_of(const Midi& midi, const MidiGrid& grid, const NamedFile& file);

}  // namespace stiefel
