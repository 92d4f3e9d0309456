// What libsndfile does not notice in files of four formats: sound cut short, and in OGG pages that are damaged.
//
//   WAV     "RIFF" size "WAVE", then chunks (id, size, that many bytes, padded to even); "fmt " holds tag, channels,
//           rate, bytes/s, bytes a frame, bits; "data" the samples; little-endian
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

/// Place of the size of the sound if the header is unfinished, else 0.
std::size_t check_wav(const Header& h) {
  std::uint64_t frame_bytes = 0;
  bool plain = false;
  for (std::size_t place = 12;;) {
    h.require(place + 8 <= h.size(), "a WAV file that ends before its `data` chunk");
    const std::uint64_t bytes = h.little(place + 4, 4), there = h.size() - place - 8;
    if (h.holds(place, "data")) {
      h.require(frame_bytes > 0, "a WAV file without a `fmt ` chunk before its `data` chunk");
      if (is_unfinished(h.little(4, 4), bytes, there, frame_bytes, h.size())) return place + 4;
      h.require(bytes <= there,
                fmt::format("a WAV file cut short: its header names {} bytes of sound, {} are there", bytes, there));
      h.require(bytes % frame_bytes == 0,
                fmt::format("a WAV file whose {} bytes of sound are not a multiple of the {} bytes of a frame", bytes,
                            frame_bytes));
      for (std::size_t next = place; next + 8 <= h.size();
           next += 8 + h.little(next + 4, 4) + h.little(next + 4, 4) % 2)
        h.require(next == place || !h.holds(next, "data"), "a WAV file with two `data` chunks");
      return 0;
    }
    h.require(bytes <= there,
              fmt::format("a WAV file cut short: a chunk of {} bytes begins where {} are left", bytes, there));
    if (h.holds(place, "fmt ")) {
      h.require(bytes >= 16,
                fmt::format("a WAV file whose `fmt ` chunk has {} bytes, at least 16 were expected", bytes));
      const std::uint64_t tag = h.little(place + 8, 2), channels = h.little(place + 10, 2),
                          bits = h.little(place + 22, 2);
      frame_bytes = h.little(place + 20, 2);
      plain = tag == 1 || tag == 3 || tag == 0xfffe;
      h.require(channels > 0 && frame_bytes > 0, "a WAV file with 0 channels or 0 bytes per frame");
      h.require(h.little(place + 12, 4) > 0, "a WAV file whose sampling rate is 0");
      h.require(
          !plain || frame_bytes == channels * ((bits + 7) / 8),
          fmt::format("a WAV file of {} channels of {} bits, but with {} bytes a frame", channels, bits, frame_bytes));
    }
    place += 8 + std::size_t(bytes) + std::size_t(bytes % 2);
  }
}

void check_flac(const Header& h) {
  h.require(h.size() >= 42, "a FLAC file that ends inside its header");
  h.require((h.byte(4) & 0x7f) == 0 && h.big(5, 3) == 34, "a FLAC file that does not begin with the STREAMINFO block");
  h.require(h.big(18, 3) >> 4 > 0, "a FLAC file whose sampling rate is 0");
  h.require((h.big(21, 5) & 0xfffffffff) > 0,
            "a FLAC file that does not say how many samples it holds, as if written to a pipe");
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

std::size_t check_audio_header(std::span<const std::byte> bytes, const NamedFile& file) {
  const Header h(bytes, file);
  if (h.holds(0, "RIFF") && h.holds(8, "WAVE")) return check_wav(h);
  if (h.holds(0, "fLaC"))
    check_flac(h);
  else if (h.holds(0, "OggS"))
    check_ogg(h);
  else if (h.holds(0, "NIST_1A\n"))
    check_sphere(h);
  else
    file.refuse("neither a WAV nor a FLAC, OGG or NIST SPHERE file");
  return 0;
}

}  // namespace stiefel
