// Reads MIDI files; every event stays inside its track, every track inside the file.
#include "tasks/formats/midi.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <queue>
#include <unordered_map>

namespace stiefel {
namespace {

constexpr std::uint8_t percussion = 9, note_off = 8, note_on = 9, program_change = 12, channel_pressure = 13,
                       system = 15;
constexpr std::uint8_t exclusive = 0xf0, exclusive_rest = 0xf7, meta = 0xff, end_of_track = 0x2f;
constexpr std::int64_t most_steps = std::int64_t(1) << 20;

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<std::uint8_t>(byte);
  return value;
}

/// The events of one track.
class Track {
 public:
  Track(std::string_view bytes, std::uint32_t number, const NamedFile& file)
      : rest_(bytes), number_(number), file_(file) {}

  void read(std::vector<MidiNote>& notes) {
    const std::size_t first = notes.size();
    bool ended = false;
    while (!ended) {
      time_ += variable_length();
      const std::uint8_t lead = byte();
      if (lead == meta || lead == exclusive || lead == exclusive_rest) {
        ended = lead == meta && byte() == end_of_track;
        skip(variable_length());
        if (lead != meta) running_ = 0;  // which other readers keep after a meta event, too
      } else {
        channel_event(lead, notes);
      }
    }
    if (!rest_.empty()) refuse(fmt::format("continues for {} bytes after its end", rest_.size()));
    for (auto note = notes.begin() + static_cast<std::ptrdiff_t>(first); note != notes.end(); ++note)
      if (note->end < 0) note->end = time_;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { file_.refuse(fmt::format("track {} {}", number_, what)); }

  std::uint8_t byte() {
    if (rest_.empty()) refuse("ends without an end-of-track event");
    const auto value = static_cast<std::uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return value;
  }
  std::uint8_t data() {
    const std::uint8_t value = byte();
    if (value >= 0x80) refuse(fmt::format("has the byte {:#04x} where data below 0x80 is expected", value));
    return value;
  }
  std::uint32_t variable_length() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      const std::uint8_t next = byte();
      value = value << 7 | (next & 0x7f);
      if (next < 0x80) return value;
    }
    refuse("has a number of more than four bytes");
  }
  void skip(std::uint32_t count) {
    if (count > rest_.size()) refuse(fmt::format("ends inside an event of {} bytes", count));
    rest_.remove_prefix(count);
  }

  void channel_event(std::uint8_t lead, std::vector<MidiNote>& notes) {
    const bool repeated = lead < 0x80;
    const std::uint8_t status = repeated ? running_ : lead;
    if (status == 0) refuse("has data without a status before it");
    const std::uint8_t kind = status >> 4, channel = status & 0xf;
    if (kind == system) refuse(fmt::format("has the status {:#04x}, which files cannot have", status));
    running_ = status;
    const std::uint8_t first = repeated ? lead : data();
    if (kind == program_change || kind == channel_pressure) return;
    const std::uint8_t second = data();
    if (kind == note_on && second > 0) {
      sounding_[key_of(channel, first)].push(notes.size());
      notes.push_back({time_, -1, first, channel});
    } else if (kind == note_on || kind == note_off) {
      release(sounding_[key_of(channel, first)], notes);
    }
  }

  /// The one that has sounded longest; a note-off without a note means nothing.
  void release(std::queue<std::size_t>& sounding, std::vector<MidiNote>& notes) const {
    if (sounding.empty()) return;
    notes[sounding.front()].end = time_;
    sounding.pop();
  }

  static std::uint32_t key_of(std::uint8_t channel, std::uint8_t key) { return channel * 128u + key; }

  std::string_view rest_;
  std::uint32_t number_;
  const NamedFile& file_;
  std::int64_t time_ = 0;
  std::uint8_t running_ = 0;
  std::unordered_map<std::uint32_t, std::queue<std::size_t>> sounding_;  // by channel and key, numbers of notes
};

class Chunks {
 public:
  Chunks(std::string_view bytes, const NamedFile& file) : rest_(bytes), file_(file) {}

  /// The next chunk of that name; of other names, which the format allows, there may be some before it.
  std::string_view next(std::string_view name, const std::string& what) {
    for (;;) {
      if (rest_.size() < 8) file_.refuse(fmt::format("ends before {}", what));
      const std::string_view found = rest_.substr(0, 4);
      const std::uint32_t size = big_endian(rest_.substr(4, 4));
      const std::size_t there = rest_.size() - 8;
      if (size > there) file_.refuse(fmt::format("ends inside {}: {} bytes are there of {}", what, there, size));
      const std::string_view data = rest_.substr(8, size);
      rest_.remove_prefix(8 + std::size_t(size));
      if (found == name) return data;
    }
  }

 private:
  std::string_view rest_;
  const NamedFile& file_;
};

/// The steps first … end − 1 at which a note sounds.
struct Steps {
  std::int64_t first, end;
};
Steps steps_of(const MidiNote& note, std::int64_t division, const MidiGrid& grid) {
  const auto first_not_before = [&](std::int64_t ticks) {
    return (ticks * grid.steps_per_quarter + division - 1) / division;
  };
  const auto nearest = [&](std::int64_t ticks) {
    return (2 * ticks * grid.steps_per_quarter + division) / (2 * division);
  };
  if (grid.sampled) return {first_not_before(note.start), first_not_before(note.end)};
  return {nearest(note.start), std::max(nearest(note.start) + 1, nearest(note.end))};
}

}  // namespace

Midi read_midi(std::string_view bytes, const NamedFile& file) {
  if (bytes.starts_with("RIFF") && bytes.substr(std::min<std::size_t>(bytes.size(), 20)).starts_with("MThd"))
    file.refuse("a MIDI file inside a RIFF file (RMI); extract it: tail -c +21 FILE > NEW.mid");
  if (!bytes.starts_with("MThd")) file.refuse("not a MIDI file: it does not begin with MThd");
  Chunks chunks(bytes, file);
  const std::string_view header = chunks.next("MThd", "the header");
  if (header.size() < 6) file.refuse(fmt::format("has a header of {} bytes, expected 6", header.size()));
  const std::uint32_t tracks = big_endian(header.substr(2, 2)), division = big_endian(header.substr(4, 2));
  Midi midi{static_cast<int>(big_endian(header.substr(0, 2))), static_cast<int>(tracks), division, {}};
  if (midi.format > 1)
    file.refuse(fmt::format("a MIDI file of format {}, expected 0 or 1; save each of its tracks as a file of format 0",
                            midi.format));
  if (midi.format == 0 && tracks != 1)
    file.refuse(fmt::format("a MIDI file of format 0 with {} tracks, expected one", tracks));
  if (tracks == 0) file.refuse("a MIDI file without tracks");
  if (division & 0x8000)
    file.refuse(
        "counts time in SMPTE frames, expected fractions of a quarter note; export it again with ticks per quarter "
        "note");
  if (division == 0) file.refuse("divides a quarter note into 0 ticks");
  for (std::uint32_t i = 1; i <= tracks; ++i)
    Track(chunks.next("MTrk", fmt::format("track {} of {}", i, tracks)), i, file).read(midi.notes);
  return midi;
}

bool is_of_piano(const MidiNote& note) {
  return note.channel != percussion && note.key >= lowest_note && note.key <= highest_note;
}

PianoRoll roll_of(const Midi& midi, const MidiGrid& grid, const NamedFile& file) {
  std::vector<MidiNote> notes = midi.notes;
  std::stable_sort(notes.begin(), notes.end(), [](const MidiNote& a, const MidiNote& b) { return a.start < b.start; });
  PianoRoll roll;
  std::array<std::int64_t, 128>
      filled{};  // of each key the step until which the roll is right: no step is written twice
  for (const MidiNote& note : notes) {
    if (!is_of_piano(note)) continue;
    const auto [first, end] = steps_of(note, midi.division, grid);
    if (end > most_steps)
      file.refuse(fmt::format("is {} steps long, {} to a quarter note; at most {} are read", end,
                              grid.steps_per_quarter, most_steps));
    if (static_cast<std::size_t>(end) > roll.size()) roll.resize(static_cast<std::size_t>(end));
    for (std::int64_t t = std::max(first, filled[note.key]); t < end; ++t)
      add_note(roll[static_cast<std::size_t>(t)], note.key);
    filled[note.key] = std::max(filled[note.key], end);
  }
  return roll;
}

}  // namespace stiefel
