// MIDI files: notes and piano rolls, and that damaged files are refused with a sentence.
#include "music_files.hpp"

#include "tasks/formats/midi.hpp"

using namespace stiefel;
using namespace music_files;

namespace {

Midi read(const Bytes& bytes) { return read_midi(bytes, named); }
Bytes one(const Bytes& events) { return midi_header(0, 1) + track(events); }
/// A track whose events do not end with an end of track.
Bytes open(const Bytes& events) { return midi_header(0, 1) + chunk("MTrk", events); }

std::vector<std::vector<std::int64_t>> notes_of(const Bytes& bytes) {
  std::vector<std::vector<std::int64_t>> notes;
  for (const MidiNote& note : read(bytes).notes) notes.push_back({note.start, note.end, note.key, note.channel});
  return notes;
}
using Notes = std::vector<std::vector<std::int64_t>>;

std::string roll_text(const Bytes& bytes, std::int64_t steps_per_quarter, bool sampled = false) {
  std::string text;
  for (const Frame& frame : roll_of(read(bytes), {steps_per_quarter, sampled}, named))
    text += frame[60 - 21] ? 'x' : '.';
  return text;
}

const Bytes good = midi_header(1, 2) + track(note_on(0, 60) + note_off(480, 60)) +
                   track(note_on(10, 64) + Bytes{20, 64, 0} + Bytes{0, char(0xc0), 5});

std::vector<Damage> damages_of_chunks() {
  const Bytes header = midi_header(0, 1), whole = track("");
  return {
      {"not a MIDI file: it does not begin with MThd", ""},
      {"not a MIDI file", "MTh"},
      {"not a MIDI file", "RIFF" + zeros(4) + "RMID"},
      {"a MIDI file inside a RIFF file (RMI); extract it: tail -c +21 FILE > NEW.mid",
       "RIFF" + zeros(4) + "RMIDdata" + zeros(4) + good},
      {"not a MIDI file", whole},
      {"not a MIDI file", "\x89PNG\r\n\x1a\n"},
      {"not a MIDI file", "mthd" + header.substr(4)},
      {"ends before the header", "MThd"},
      {"ends before the header", "MThd" + zeros(3)},
      {"ends inside the header: 0 bytes are there of 6", header.substr(0, 8)},
      {"ends inside the header: 5 bytes are there of 6", header.substr(0, 13)},
      {"ends inside the header: 6 bytes are there of 4294967295", "MThd" + number(~0u, 4, true) + zeros(6)},
      {"has a header of 0 bytes, expected 6", chunk("MThd", "") + whole},
      {"has a header of 5 bytes, expected 6", chunk("MThd", zeros(5)) + whole},
      {"a MIDI file of format 2, expected 0 or 1; save each of its tracks as a file of format 0",
       midi_header(2, 1) + whole},
      {"a MIDI file of format 65535", midi_header(65535, 1) + whole},
      {"a MIDI file of format 0 with 2 tracks, expected one", midi_header(0, 2) + whole + whole},
      {"a MIDI file of format 0 with 0 tracks, expected one", midi_header(0, 0)},
      {"a MIDI file without tracks", midi_header(1, 0)},
      {"counts time in SMPTE frames", midi_header(1, 1, 0xe250) + whole},
      {"counts time in SMPTE frames", midi_header(1, 1, 0x8000) + whole},
      {"divides a quarter note into 0 ticks", midi_header(1, 1, 0) + whole},
      {"ends before track 1 of 1", header},
      {"ends before track 2 of 2", midi_header(1, 2) + whole},
      {"ends before track 65535 of 65535",
       [&] {
         Bytes all = midi_header(1, 65535);
         for (int i = 1; i < 65535; ++i) all += whole;
         return all;
       }()},
      {"ends before track 1 of 1", header + chunk("XFIH", "abc")},
      {"ends inside track 1 of 1: 0 bytes are there of 4294967295", header + "MTrk" + number(~0u, 4, true)},
      {"ends inside track 1 of 1: 4 bytes are there of 5", header + "MTrk" + number(5, 4, true) + end_of_track},
      {"ends inside track 1 of 1", header + "XFIH" + number(9, 4, true) + whole.substr(0, 8)},
  };
}

std::vector<Damage> damages_of_events() {
  const Bytes on = note_on(0, 60);
  return {
      {"track 1 ends without an end-of-track event", open("")},
      {"track 1 ends without an end-of-track event", open(on)},
      {"track 2 ends without an end-of-track event", midi_header(1, 2) + track("") + chunk("MTrk", on)},
      {"track 1 continues for 4 bytes after its end", one(end_of_track)},
      {"track 1 ends without", open("\x81")},
      {"track 1 ends without", open({0, char(0x90), 60})},
      {"track 1 ends without", open({0, char(0xff)})},
      {"track 1 has a number of more than four bytes", open(Bytes(9, '\xff') + '\0')},
      {"track 1 has a number of more than four bytes", one("\x80\x80\x80\x80" + on)},
      {"track 1 has a number of more than four bytes", one(Bytes{0, char(0xff), 1} + Bytes(5, '\x80') + '\0')},
      {"track 1 has data without a status before it", one({0, 60, 64})},
      {"track 1 has data without a status before it", one(Bytes{0, char(0xff), 1, 0} + Bytes{0, 60, 0})},
      {"track 1 has data without a status before it", one(on + Bytes{0, char(0xf0), 1, char(0xf7)} + Bytes{0, 60, 0})},
      {"track 2 has data without a status before it", midi_header(1, 2) + track(on) + track({0, 60, 0})},
      {"track 1 has the byte 0x80 where data below 0x80 is expected", one({0, char(0x90), char(0x80), 64})},
      {"track 1 has the byte 0xff where data", one({0, char(0x90), 60, char(0xff)})},
      {"track 1 has the byte 0x90 where data", one(on + Bytes{0, 60, char(0x90)})},
      {"track 1 has the status 0xf1, which files cannot have", one({0, char(0xf1), 0})},
      {"track 1 has the status 0xf8", one({0, char(0xf8)})},
      {"track 1 has the status 0xfe", one({0, char(0xfe)})},
      {"track 1 ends inside an event of 100 bytes", one({0, char(0xff), 1, 100})},
      {"track 1 ends inside an event of 268435455 bytes", one(Bytes{0, char(0xf0)} + "\xff\xff\xff\x7f")},
      {"track 1 ends inside an event of 1 bytes", open({0, char(0xff), 0x2f, 1})},
  };
}

}  // namespace

TEST_CASE("notes of format 0 and 1, with running status and a velocity of 0 for note-off") {
  const Midi midi = read(good);
  CHECK((midi.format == 1 && midi.tracks == 2 && midi.division == 480));
  CHECK(notes_of(good) == Notes{{0, 480, 60, 0}, {10, 30, 64, 0}});
  CHECK(notes_of(one(note_on(0, 60, 64, 3) + Bytes{5, 62, 64} + Bytes{5, 60, 0} + Bytes{5, 62, 0})) ==
        Notes{{0, 10, 60, 3}, {5, 15, 62, 3}});
  CHECK(notes_of(one(ticks(0x0fffffff) + Bytes{char(0x90), 60, 1} + note_off(200, 60))) ==
        Notes{{0x0fffffff, 0x0fffffff + 200, 60, 0}});
}

TEST_CASE("other events, other chunks and a longer header are passed over") {
  const Bytes others = Bytes{0, char(0xff), 0x51, 3, 0, 0, 0} + Bytes{0, char(0xf0), 2, 1, char(0xf7)} +
                       Bytes{0, char(0xf7), 1, 0} + Bytes{0, char(0xa0), 60, 1} + Bytes{0, char(0xb0), 7, 100} +
                       Bytes{0, char(0xc0), 1} + Bytes{0, char(0xd0), 1} + Bytes{1, char(0xe0), 0, 64};
  const Bytes header = chunk("MThd", midi_header(0, 1).substr(8) + "more");
  CHECK(notes_of(header + chunk("XFIH", "abc") + track(others + note_on(1, 60) + note_off(2, 60))) ==
        Notes{{2, 4, 60, 0}});
}

TEST_CASE("the running status outlasts meta events") {
  CHECK(notes_of(one(note_on(0, 60) + Bytes{0, char(0xff), 1, 0} + Bytes{5, 60, 0})) == Notes{{0, 5, 60, 0}});
}

TEST_CASE("notes that overlap, that are never released, and releases without a note") {
  CHECK(notes_of(one(note_on(0, 60) + note_on(5, 60) + note_off(5, 60) + note_off(5, 60))) ==
        Notes{{0, 10, 60, 0}, {5, 15, 60, 0}});
  CHECK(notes_of(one(note_on(0, 60) + note_on(7, 61) + note_off(1, 61))) == Notes{{0, 8, 60, 0}, {7, 8, 61, 0}});
  CHECK(notes_of(one(note_off(3, 60) + note_off(0, 61, 1))) == Notes{});
  CHECK(notes_of(one(note_on(0, 60, 64, 0) + note_off(4, 60, 1) + note_off(4, 60, 0))) == Notes{{0, 8, 60, 0}});
}

TEST_CASE("a note sounds from the step nearest to its start to the one nearest to its end, at least for one") {
  CHECK(roll_text(one(note_on(0, 60) + note_off(480, 60)), 1) == "x");
  CHECK(roll_text(one(note_on(0, 60) + note_off(480, 60)), 2) == "xx");
  CHECK(roll_text(one(note_on(480, 60) + note_off(480, 60) + note_on(480, 60) + note_off(480, 60)), 1) == ".x.x");
  CHECK(roll_text(one(note_on(119, 60) + note_off(242, 60) + note_on(119, 60) + note_off(1, 60)), 2) == "xxx");
  CHECK(roll_text(one(note_on(120, 60) + note_off(1, 60)), 2) == ".x");
  CHECK(roll_text(one(note_on(0, 60) + note_on(960, 60) + note_off(1, 60) + note_off(959, 60)), 1) == "xxxx");
  CHECK(roll_text(midi_header(0, 1, 100) + track(note_on(50, 60) + note_off(17, 60)), 3) ==
        "..x");  // 1.5 and 2.01 thirds of a quarter
}

TEST_CASE("a note that is sampled sounds at the steps that begin while it does") {
  CHECK(roll_text(one(note_on(0, 60) + note_off(480, 60)), 2, true) == "xx");
  CHECK(roll_text(one(note_on(1, 60) + note_off(480, 60)), 2, true) == ".xx");
  CHECK(roll_text(one(note_on(241, 60) + note_off(239, 60) + note_on(0, 60) + note_off(1, 60)), 2, true) == "..x");
  CHECK(roll_text(one(note_on(1, 60) + note_off(239, 60) + note_on(1, 60) + note_off(300, 60)), 2, true) == "..x");
  CHECK(roll_text(one(note_on(0, 60) + note_on(240, 60) + note_off(1, 60) + note_off(479, 60)), 2, true) == "xxx");
  CHECK(roll_text(one(note_on(5, 60) + note_off(5, 60)), 1, true) == ".");
}

TEST_CASE("keys of a piano are kept, others and percussion left out") {
  Bytes events;
  for (const int key : {0, 20, 21, 60, 108, 109, 127}) events += note_on(0, key);
  events += note_on(0, 62, 64, 9);
  const PianoRoll roll = roll_of(read(one(events + note_off(480, 60))), {1}, named);
  REQUIRE(roll.size() == 1);
  CHECK(roll[0].count() == 3);
  CHECK((roll[0][0] && roll[0][39] && roll[0][87]));
  CHECK(roll_of(read(one("")), {1}, named).empty());
}

TEST_CASE("a roll that was made into a file is read as it was") {
  PianoRoll roll(40);
  for (std::size_t t = 0; t < roll.size(); ++t)
    for (std::size_t key = 0; key < 88; ++key) roll[t][key] = (t * t + 3 * key) % 7 == 0;
  CHECK(roll_of(read(midi_of(roll)), {2}, named) == roll);
  CHECK(roll_of(read(midi_of(roll, 96, 4)), {4}, named) == roll);
}

TEST_CASE("a time beyond all pieces is refused before it takes memory") {
  CHECK(refusal([] { roll_of(read(one(note_on(0x0fffffff, 60) + note_off(1, 60))), {2}, named); }) ==
        "is 1118482 steps long, 2 to a quarter note; at most 1048576 are read");
  Bytes events = note_on(0, 60);
  for (int i = 0; i < 100; ++i) events += ticks(0x0fffffff) + Bytes{char(0xc0), 0};
  CHECK(refusal([&] { roll_of(read(one(events)), {96}, named); }).starts_with("is 5368709100 steps long"));
  Bytes many;
  for (int i = 0; i < 30000; ++i) many += note_on(0, 60 + i % 12);
  CHECK(roll_of(read(midi_header(0, 1, 1) + track(many + note_off(1000000, 60))), {1}, named).size() == 1000000);
}

TEST_CASE("damaged files are refused") {
  std::vector<Damage> all = damages_of_chunks();
  const std::vector<Damage> more = damages_of_events();
  all.insert(all.end(), more.begin(), more.end());
  check_damages(all, good, [](const Bytes& bytes) {
    const Midi midi = read(bytes);
    roll_of(midi, {2}, named);
  });
}
