// What libsndfile does not notice in files of four formats: sound cut short, and in OGG pages that are damaged.
//
//   WAV     "RIFF" size "WAVE", then chunks (id, size, that many bytes, padded to even); "fmt " holds tag, channels,
//           rate, bytes/s, bytes a frame, bits, and with the tag 0xfffe size (2), bits, mask (4), the true tag; "data"
//           the samples; little-endian. "RIFX" is big-endian. "RF64" has the sizes ffffffff; its chunk "ds64" holds those
//           of the file and the sound in 8 bytes
//   FLAC    "fLaC", a block header of 4 bytes, then STREAMINFO, whose bytes 13 … 17 hold the number of samples in 36
//           bits, big-endian
//   OGG     pages "OggS", version 0, flags (4: end of the stream), granule (8), serial (4), number (4), CRC-32 (4),
//           count of segments, their sizes, their bytes
//   SPHERE  "NIST_1A\n", size of the header in a line of 8 bytes, lines "name -i number" or "name -sN text" up to
//           "end_head"
#include "tasks/formats/audio_header.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stiefel {
namespace {

class Header {
 public:
  Header(std::span<const std::byte> bytes, const NamedFile& file)
      : text_(reinterpret_cast<const char*>(bytes.data()), bytes.size()), file_(file) {}

  std::size_t size() const { return text_.size(); }
  bool holds(std::size_t place, std::string_view word) const {
    return place <= size() && text_.substr(place).starts_with(word);
  }
  std::string_view text(std::size_t first, std::size_t count) const {
    return text_.substr(std::min(first, size()), count);
  }
  std::uint64_t byte(std::size_t place) const { return static_cast<unsigned char>(text_.at(place)); }
  std::uint64_t little(std::size_t place, int bytes) const {
    std::uint64_t value = 0;
    for (int i = bytes; i-- > 0;) value = value << 8 | byte(place + std::size_t(i));
    return value;
  }
  std::uint64_t big(std::size_t place, int bytes) const {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | byte(place + std::size_t(i));
    return value;
  }
  /// The number in the byte order of the file: only RIFX has the most significant byte first.
  std::uint64_t number(std::size_t place, int bytes) const {
    return holds(0, "RIFX") ? big(place, bytes) : little(place, bytes);
  }
  std::string written(std::uint64_t number, int bytes) const {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += char(number >> 8 * i);
    if (holds(0, "RIFX")) std::reverse(text.begin(), text.end());
    return text;
  }
  void require(bool holds, const std::string& what) const {
    if (!holds) file_.refuse(what);
  }

 private:
  std::string_view text_;
  const NamedFile& file_;
};

/// Whether the header was written before the sound, to a pipe or by a program that was stopped, and never completed. The
/// size of the sound is then 0, or a little below or at 2³¹ or 2³², which is more than is there; that of the file, too.
bool is_unfinished(std::uint64_t file, std::uint64_t bytes, std::uint64_t there, std::uint64_t frame,
                   std::size_t size) {
  constexpr std::uint64_t least = 0x7fff0000;
  if (bytes == 0) return file + 8 < size;
  const bool large = (bytes >= least - frame && bytes <= 0x80000000) || bytes >= 0xffff0000 - frame;
  return large && (file == 0 || file >= least - frame) && bytes > there;
}

/// Ways of coding sound, by the tag in the `fmt ` chunk.
constexpr std::uint64_t pcm = 1, ms_adpcm = 2, floats = 3, alaw = 6, mulaw = 7, ima_adpcm = 0x11, gsm = 0x31,
                        extensible = 0xfffe;
constexpr std::uint64_t read_codings[] = {pcm,       ms_adpcm, floats, alaw, mulaw,
                                          ima_adpcm, gsm,      0x38,   0x40, 0x55};  // and NMS ADPCM, G.721, MP3

std::string name_of_coding(std::uint64_t tag) {
  constexpr std::pair<std::uint64_t, const char*> names[] = {
      {0x20, "Yamaha ADPCM"}, {0x45, "G.726"},  {0x50, "MPEG layer 1 or 2"},
      {0xff, "AAC"},          {0x161, "WMA"},   {0x162, "WMA"},
      {0x28f, "G.722"},       {0x2000, "AC-3"}, {0xf1ac, "FLAC"}};
  for (const auto& [known, name] : names)
    if (known == tag) return name;
  return "an unknown format";
}

/// What the `fmt ` chunk says.
struct Format {
  std::uint64_t tag = 0, frame_bytes = 0;

  bool holds_samples() const { return tag == pcm || tag == floats || tag == alaw || tag == mulaw; }
  bool holds_blocks() const { return tag == ms_adpcm || tag == ima_adpcm || tag == gsm; }
};

Format check_format(const Header& h, std::size_t place, std::uint64_t bytes) {
  h.require(bytes >= 16, fmt::format("a WAV file whose `fmt ` chunk has {} bytes, at least 16 were expected", bytes));
  Format format{h.number(place, 2), h.number(place + 12, 2)};
  if (format.tag == extensible) {
    h.require(bytes >= 40, fmt::format("a WAV file whose `fmt ` chunk has {} bytes, at least 40 were expected", bytes));
    format.tag = h.number(place + 24, 2);
  }
  h.require(std::ranges::find(read_codings, format.tag) != std::end(read_codings),
            fmt::format("a WAV file with sound in {} (format tag {:#06x}), which is not read; {}",
                        name_of_coding(format.tag), format.tag, convert_sound));
  const std::uint64_t channels = h.number(place + 2, 2), bits = h.number(place + 14, 2);
  h.require(channels > 0 && format.frame_bytes > 0, "a WAV file with 0 channels or 0 bytes per frame");
  h.require(h.number(place + 4, 4) > 0, "a WAV file whose sampling rate is 0");
  const bool plain = format.tag == pcm || format.tag == floats;
  h.require(!plain || format.frame_bytes == channels * ((bits + 7) / 8),
            fmt::format("a WAV file of {} channels of {} bits, but with {} bytes a frame", channels, bits,
                        format.frame_bytes));
  h.require(format.tag != pcm || bits <= 32,
            fmt::format("a WAV file with integers of {} bits, which are not read; {}", bits, convert_sound));
  return format;
}

HeaderCorrection check_wav(const Header& h) {
  Format format;
  std::size_t ds64 = 0;
  for (std::size_t place = 12;;) {
    h.require(place + 8 <= h.size(), "a WAV file that ends before its `data` chunk");
    std::uint64_t bytes = h.number(place + 4, 4);
    const std::uint64_t there = h.size() - place - 8;
    if (h.holds(place, "data")) {
      h.require(format.frame_bytes > 0, "a WAV file without a `fmt ` chunk before its `data` chunk");
      const bool wide = ds64 > 0 && bytes == 0xffffffff;
      if (wide) bytes = h.number(ds64 + 8, 8);
      const bool unfinished =
          wide ? bytes == 0 : is_unfinished(h.number(4, 4), bytes, there, format.frame_bytes, h.size());
      h.require(unfinished || bytes <= there,
                fmt::format("a WAV file cut short: its header names {} bytes of sound, {} are there", bytes, there));
      h.require(unfinished || !format.holds_samples() || bytes % format.frame_bytes == 0,
                fmt::format("a WAV file whose {} bytes of sound are not a multiple of the {} bytes of a frame", bytes,
                            format.frame_bytes));
      for (std::size_t next = place + 8 + bytes + bytes % 2; !unfinished && next + 8 <= h.size();
           next += 8 + h.number(next + 4, 4) + h.number(next + 4, 4) % 2)
        h.require(!h.holds(next, "data"), "a WAV file with two `data` chunks");
      const bool whole = format.holds_samples() || format.holds_blocks();
      const std::uint64_t held = unfinished ? there : bytes, sound = held - (whole ? held % format.frame_bytes : 0);
      HeaderCorrection correction;
      if (sound != bytes) correction = {wide ? ds64 + 8 : place + 4, h.written(sound, wide ? 8 : 4)};
      if (format.tag == gsm) correction.most_samples = sound / format.frame_bytes * 320;  // of a block
      return correction;
    }
    h.require(bytes <= there,
              fmt::format("a WAV file cut short: a chunk of {} bytes begins where {} are left", bytes, there));
    if (h.holds(place, "fmt ")) format = check_format(h, place + 8, bytes);
    if (h.holds(0, "RF64") && h.holds(place, "ds64")) {
      h.require(bytes >= 16, fmt::format("an RF64 file whose `ds64` chunk has {} bytes, expected 28", bytes));
      ds64 = place + 8;
    }
    place += 8 + std::size_t(bytes) + std::size_t(bytes % 2);
  }
}

void check_flac(const Header& h) {
  h.require(h.size() >= 42, "a FLAC file that ends inside its header");
  h.require((h.byte(4) & 0x7f) == 0 && h.big(5, 3) == 34, "a FLAC file that does not begin with the STREAMINFO block");
  h.require(h.big(18, 3) >> 4 > 0, "a FLAC file whose sampling rate is 0");
  h.require((h.big(21, 5) & 0xfffffffff) > 0,
            fmt::format("a FLAC file that does not say how many samples it holds, as if written to a pipe; {}",
                        convert_sound));
}

/// CRC-32 of a page whose own field for it, bytes 22 … 25, counts as zeros: polynomial 04c11db7, highest bit first,
/// from 0.
std::uint32_t page_checksum(std::string_view page) {
  static constexpr auto table = [] {
    std::array<std::uint32_t, 256> values{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      values[i] = i << 24;
      for (int bit = 0; bit < 8; ++bit) values[i] = values[i] << 1 ^ (values[i] >> 31 ? 0x04c11db7u : 0);
    }
    return values;
  }();
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < page.size(); ++i) {
    const std::uint8_t byte = i >= 22 && i < 26 ? 0 : static_cast<std::uint8_t>(page[i]);
    sum = sum << 8 ^ table[sum >> 24 ^ byte];
  }
  return sum;
}

void check_ogg(const Header& h) {
  bool ended = false;
  for (std::size_t place = 0; place < h.size();) {
    h.require(h.holds(place, "OggS") && place + 27 <= h.size(),
              fmt::format("an OGG file cut short or damaged at byte {}", place));
    h.require(!ended && h.big(place + 14, 4) == h.big(14, 4),
              fmt::format("an OGG file in which another stream begins at byte {}", place));
    const std::size_t segments = std::size_t(h.byte(place + 26));
    h.require(place + 27 + segments <= h.size(), fmt::format("an OGG file cut short in the page at byte {}", place));
    std::size_t end = place + 27 + segments;
    for (std::size_t i = 0; i < segments; ++i) end += std::size_t(h.byte(place + 27 + i));
    h.require(end <= h.size(), fmt::format("an OGG file cut short in the page at byte {}", place));
    h.require(page_checksum(h.text(place, end - place)) == h.little(place + 22, 4),
              fmt::format("an OGG file whose page at byte {} is damaged: its checksum does not match", place));
    ended = (h.byte(place + 5) & 4) != 0;
    place = end;
  }
  h.require(ended, "an OGG file cut short: its last page is not marked as the end of the stream");
}

/// Value of "name -type value" in the lines of a SPHERE header; empty if it is not there.
std::string_view sphere_value(std::string_view lines, std::string_view name) {
  while (!lines.empty()) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (line == "end_head") break;
    if (!line.starts_with(name) || line.substr(name.size(), 2) != " -") continue;
    line.remove_prefix(name.size() + 1);
    const std::size_t blank = line.find(' ');
    return blank == line.npos ? "" : line.substr(blank + 1);
  }
  return {};
}

std::uint64_t sphere_number(const Header& h, std::string_view lines, std::string_view name,
                            std::optional<std::uint64_t> absent = {}) {
  const std::string_view text = sphere_value(lines, name);
  if (text.empty() && absent) return *absent;
  std::uint64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  h.require(fault == std::errc() && end == text.data() + text.size() && value > 0,
            fmt::format("a SPHERE file whose header does not say {}, or not as a number above 0", name));
  return value;
}

void check_sphere(const Header& h) {
  const std::string_view size_line = h.text(8, 8);
  const std::size_t digits = size_line.find_first_not_of(' ');
  std::uint64_t size = 0;
  if (digits != size_line.npos) std::from_chars(size_line.data() + digits, size_line.data() + size_line.size(), size);
  h.require(size >= 16 && size <= (1u << 20) && size_line.ends_with('\n'),
            "a SPHERE file whose second line is not the size of its header");
  h.require(size <= h.size(), fmt::format("a SPHERE file that ends inside its header of {} bytes", size));
  const std::string_view lines = h.text(16, std::size_t(size) - 16);
  h.require(("\n" + std::string(lines)).find("\nend_head") != std::string::npos,
            "a SPHERE file whose header has no `end_head`");
  const std::string_view coding = sphere_value(lines, "sample_coding");
  h.require(coding.find("shorten") == coding.npos,
            "a SPHERE file compressed by shorten, which cannot be read here; decompress it with `sph2pipe -p -f wav "
            "FILE.WAV FILE.wav`");
  h.require(coding.empty() || coding == "pcm" || coding == "ulaw" || coding == "mu-law" || coding == "alaw",
            "a SPHERE file whose sample_coding is neither pcm nor ulaw nor alaw");
  sphere_number(h, lines, "sample_rate");
  const std::uint64_t frames = sphere_number(h, lines, "sample_count"),
                      width = sphere_number(h, lines, "sample_n_bytes");
  const std::uint64_t channels = sphere_number(h, lines, "channel_count", 1), there = h.size() - size;
  h.require(width <= 4 && channels <= 1024,
            fmt::format("a SPHERE file of {} channels of {} bytes a sample", channels, width));
  const std::uint64_t held = there / (width * channels);
  h.require(frames == held && there % (width * channels) == 0,
            fmt::format("a SPHERE file whose header names {} samples, but {} are there", frames, held));
}

}  // namespace

HeaderCorrection check_audio_header(std::span<const std::byte> bytes, const NamedFile& file) {
  const Header h(bytes, file);
  if ((h.holds(0, "RIFF") || h.holds(0, "RIFX") || h.holds(0, "RF64")) && h.holds(8, "WAVE")) return check_wav(h);
  if (h.holds(0, "fLaC"))
    check_flac(h);
  else if (h.holds(0, "OggS"))
    check_ogg(h);
  else if (h.holds(0, "NIST_1A\n"))
    check_sphere(h);
  else
    file.refuse(fmt::format("neither a WAV nor a FLAC, OGG or NIST SPHERE file; if it holds sound, {}", convert_sound));
  return {};
}

}  // namespace stiefel
