// A MIDI file is refused, or has notes in the order of time, fewer than bytes, and a piano roll that ends with the last
// of them.
#include <cstdlib>

#include <stiefel/error.hpp>
#include "tasks/formats/midi.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace stiefel;
  const NamedFile file{"f", ""};
  try {
    const Midi midi = read_midi({reinterpret_cast<const char*>(data), size}, file);
    if (midi.notes.size() > size || midi.division < 1) std::abort();
    for (const MidiNote& note : midi.notes)
      if (note.start < 0 || note.end < note.start || note.key > 127 || note.channel > 15) std::abort();
    for (const bool sampled : {false, true}) {
      const PianoRoll roll = roll_of(midi, {2, sampled}, file);
      if (!sampled && !roll.empty() && roll.back().none()) std::abort();
    }
  } catch (const Error& error) {
    if (error.code() != Exit::data) std::abort();
  }
  return 0;
}
