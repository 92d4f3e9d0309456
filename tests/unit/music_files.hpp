/// Files of music for tests: MATLAB cells and MIDI files, and the sentences with which readers refuse damaged ones.
#pragma once

#include <doctest/doctest.h>
#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include <stiefel/error.hpp>
#include "tasks/formats/named_file.hpp"
#include "tasks/formats/piano_roll.hpp"

namespace music_files {

using Bytes = std::string;

struct Damage {
  std::string sentence;
  Bytes bytes;
};

inline const stiefel::NamedFile named{"the file", "Fetch it again."};

/// What `read` is refused with, without the file's name, which must stand at the beginning, and the mend, which must
/// stand at the end.
template <class F> std::string refusal(F&& read) {
  try {
    read();
  } catch (const stiefel::Error& error) {
    const std::string text = error.what(), begin = "the file: ", end = ". Fetch it again.";
    CHECK(error.code() == stiefel::Exit::data);
    REQUIRE(text.starts_with(begin));
    REQUIRE(text.ends_with(end));
    return text.substr(begin.size(), text.size() - begin.size() - end.size());
  }
  return "accepted";
}

/// Every damaged file is refused with its sentence; so is every beginning of the good one; one with a changed byte is
/// refused or read.
template <class F> void check_damages(const std::vector<Damage>& damages, const Bytes& good, F&& read) {
  CHECK(damages.size() >= 40);
  for (const Damage& damage : damages) {
    CAPTURE(damage.sentence);
    const std::string text = refusal([&] { read(damage.bytes); });
    CAPTURE(text);
    CHECK(text.starts_with(damage.sentence));
  }
  REQUIRE(refusal([&] { read(good); }) == "accepted");
  for (std::size_t length = 0; length < good.size(); ++length) {
    CAPTURE(length);
    CHECK(refusal([&] { read(good.substr(0, length)); }) != "accepted");
  }
  for (std::size_t place = 0; place < good.size(); ++place)
    for (const int change : {0x01, 0x04, 0x10, 0x80, 0xff}) {
      Bytes bytes = good;
      bytes[place] = char(bytes[place] ^ change);
      refusal([&] { read(bytes); });
    }
}

inline Bytes number(std::uint64_t value, int width, bool big_endian) {
  Bytes bytes;
  for (int i = 0; i < width; ++i) bytes += char(value >> 8 * (big_endian ? width - 1 - i : i));
  return bytes;
}
inline Bytes zeros(std::size_t count) { return Bytes(count, '\0'); }

inline Bytes deflated(const Bytes& bytes) {
  uLongf size = compressBound(uLong(bytes.size()));
  Bytes out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
           uLong(bytes.size()));
  return out.substr(0, size);
}

/// MATLAB elements in one byte order.
struct Mat {
  bool big = false;

  Bytes word(std::uint64_t value) const { return number(value, 4, big); }
  Bytes element(std::uint32_t type, const Bytes& data) const {
    return word(type) + word(data.size()) + data + zeros(type == 15 ? 0 : (8 - data.size() % 8) % 8);
  }
  Bytes small(std::uint32_t type, const Bytes& data) const {
    return word(data.size() << 16 | type) + data + zeros(4 - data.size());
  }
  Bytes sizes(const std::vector<std::uint32_t>& sizes) const {
    Bytes bytes;
    for (const std::uint32_t size : sizes) bytes += word(size);
    return element(5, bytes);
  }
  Bytes head(std::uint32_t flags, const std::vector<std::uint32_t>& all, const Bytes& name) const {
    return element(6, word(flags) + word(0)) + sizes(all) + element(1, name);
  }
  /// An array of class double whose numbers are stored as `type`.
  Bytes array(std::uint32_t rows, std::uint32_t columns, const Bytes& stored, std::uint32_t type = 2) const {
    return element(14, head(6, {rows, columns}, "") + element(type, stored));
  }
  Bytes cell(const Bytes& name, const std::vector<Bytes>& arrays) const {
    Bytes all;
    for (const Bytes& array : arrays) all += array;
    return element(14, head(1, {1, std::uint32_t(arrays.size())}, name) + all);
  }
  Bytes roll(const stiefel::PianoRoll& roll) const {
    Bytes stored;
    for (std::size_t key = 0; key < 88; ++key)
      for (const stiefel::Frame& frame : roll) stored += char(frame[key]);
    return array(std::uint32_t(roll.size()), 88, stored);
  }
  Bytes compressed(const Bytes& variable) const { return element(15, deflated(variable)); }
  Bytes header() const {
    Bytes text = "MATLAB 5.0 MAT-file, made by a test";
    text.resize(124, ' ');
    return text + number(0x0100, 2, big) + (big ? "MI" : "IM");
  }
  Bytes set(const stiefel::RollSet& rolls) const {
    Bytes bytes = header();
    for (std::size_t s = 0; s < 3; ++s) {
      std::vector<Bytes> arrays;
      for (const stiefel::PianoRoll& piece : rolls[s]) arrays.push_back(roll(piece));
      bytes += compressed(cell(std::vector<Bytes>{"traindata", "validdata", "testdata"}[s], arrays));
    }
    return bytes;
  }
};

/// MIDI chunks and events.
inline Bytes chunk(const Bytes& name, const Bytes& data) { return name + number(data.size(), 4, true) + data; }
inline Bytes midi_header(int format, int tracks, int division = 480) {
  return chunk("MThd", number(std::uint64_t(format), 2, true) + number(std::uint64_t(tracks), 2, true) +
                           number(std::uint64_t(division), 2, true));
}
inline Bytes ticks(std::uint32_t value) {
  Bytes bytes(1, char(value & 0x7f));
  for (value >>= 7; value > 0; value >>= 7) bytes.insert(bytes.begin(), char(0x80 | (value & 0x7f)));
  return bytes;
}
inline Bytes note_on(std::uint32_t after, int key, int velocity = 64, int channel = 0) {
  return ticks(after) + Bytes{char(0x90 | channel), char(key), char(velocity)};
}
inline Bytes note_off(std::uint32_t after, int key, int channel = 0) {
  return ticks(after) + Bytes{char(0x80 | channel), char(key), 64};
}
inline const Bytes end_of_track{'\0', '\xff', '\x2f', '\0'};
inline Bytes track(const Bytes& events) { return chunk("MTrk", events + end_of_track); }

/// One note a step at most: every change of the key ends the note before.
inline Bytes midi_of(const stiefel::PianoRoll& roll, int division = 480, int steps_per_quarter = 2) {
  const auto step = std::uint32_t(division / steps_per_quarter);
  Bytes events;
  std::uint32_t waited = 0;
  for (std::size_t t = 0; t <= roll.size(); ++t, waited += step)
    for (int key = 0; key < 88; ++key) {
      const bool before = t > 0 && roll[t - 1][std::size_t(key)], now = t < roll.size() && roll[t][std::size_t(key)];
      if (before == now) continue;
      events += now ? note_on(waited, key + 21) : note_off(waited, key + 21);
      waited = 0;
    }
  return midi_header(0, 1, division) + track(events);
}

}  // namespace music_files
