/// Piano rolls: which of the 88 keys sound at each time step.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

namespace stiefel {

constexpr std::int64_t lowest_note = 21, highest_note = 108;  ///< MIDI notes of the first and the last key of a piano

/// Key k is the MIDI note 21 + k.
using Frame = std::bitset<std::size_t(highest_note - lowest_note + 1)>;
using PianoRoll = std::vector<Frame>;

/// Pieces for training, validation and test.
using RollSet = std::array<std::vector<PianoRoll>, 3>;
constexpr std::array<const char*, 3> roll_split_names = {"train", "valid", "test"};

/// Whether the note is one of a piano; if so it sounds.
inline bool add_note(Frame& frame, std::int64_t note) {
  if (note < lowest_note || note > highest_note) return false;
  frame.set(static_cast<std::size_t>(note - lowest_note));
  return true;
}

}  // namespace stiefel
