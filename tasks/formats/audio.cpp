// Decodes sound from memory by libsndfile's virtual files.
#include "tasks/formats/audio.hpp"

#include <fmt/format.h>
#include <sndfile.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include <stiefel/error.hpp>
#include "tasks/formats/audio_header.hpp"
#include "tasks/formats/named_file.hpp"

namespace stiefel {
namespace {

constexpr std::int64_t most_frames = std::int64_t(1) << 26;

/// A file of libsndfile in memory: reads from `source`, or writes to `target`.
struct MemoryFile {
  std::span<const std::byte> source;
  std::string* target = nullptr;
  sf_count_t place = 0;

  sf_count_t size() const { return sf_count_t(target ? target->size() : source.size()); }
};

MemoryFile& memory(void* user) { return *static_cast<MemoryFile*>(user); }

sf_count_t seek(sf_count_t offset, int whence, void* user) {
  MemoryFile& file = memory(user);
  const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file.place : file.size();
  if (offset < -base || offset > file.size() - base) return -1;
  return file.place = base + offset;
}

sf_count_t read(void* data, sf_count_t count, void* user) {
  MemoryFile& file = memory(user);
  const sf_count_t got = std::clamp<sf_count_t>(file.size() - file.place, 0, std::max<sf_count_t>(count, 0));
  if (got > 0) std::memcpy(data, file.source.data() + file.place, std::size_t(got));
  file.place += got;
  return got;
}

sf_count_t write(const void* data, sf_count_t count, void* user) {
  MemoryFile& file = memory(user);
  if (count <= 0) return 0;
  file.target->resize(std::size_t(std::max(file.size(), file.place + count)));
  std::memcpy(file.target->data() + file.place, data, std::size_t(count));
  file.place += count;
  return count;
}

using Sound = std::unique_ptr<SNDFILE, int (*)(SNDFILE*)>;

Sound open(MemoryFile& file, int mode, SF_INFO& info) {
  SF_VIRTUAL_IO io{[](void* user) { return memory(user).size(); }, &seek, &read, &write,
                   [](void* user) { return memory(user).place; }};
  return {sf_open_virtual(&io, mode, &info, &file), &sf_close};
}

bool is_compressed(const SF_INFO& info) {
  const int type = info.format & SF_FORMAT_TYPEMASK;
  return type == SF_FORMAT_FLAC || type == SF_FORMAT_OGG || (info.format & SF_FORMAT_SUBMASK) > SF_FORMAT_ALAW;
}

/// All samples, channels averaged.
std::vector<double> decode(SNDFILE* sound, const SF_INFO& info, const NamedFile& file) {
  const sf_count_t block = std::max<sf_count_t>(65536 / info.channels, 1);
  std::vector<double> all, piece(std::size_t(block * info.channels));
  while (true) {
    const sf_count_t got = sf_readf_double(sound, piece.data(), block);
    if (got <= 0) break;
    if (is_compressed(info) && std::int64_t(all.size()) + got > most_frames)
      file.refuse(
          fmt::format("longer than the limit of {} samples for compressed sound; {}", most_frames, convert_sound));
    for (sf_count_t i = 0; i < got; ++i) {
      double sum = 0;
      for (int c = 0; c < info.channels; ++c) sum += piece[std::size_t(i * info.channels + c)];
      if (!std::isfinite(sum)) file.refuse(fmt::format("sample {} is not a finite number", all.size()));
      all.push_back(sum / info.channels);
    }
  }
  if (sf_error(sound) != SF_ERR_NO_ERROR)
    file.refuse(fmt::format("damaged after {} samples ({})", all.size(), sf_strerror(sound)));
  return all;
}

}  // namespace

Audio parse_audio(std::span<const std::byte> bytes, const std::string& name, const std::string& mend) {
  const NamedFile file{name, mend};
  MemoryFile source{bytes};
  std::vector<std::byte> corrected;
  const HeaderCorrection correction = check_audio_header(bytes, file);
  if (!correction.bytes.empty()) {
    corrected.assign(bytes.begin(), bytes.end());
    std::memcpy(corrected.data() + correction.place, correction.bytes.data(), correction.bytes.size());
    source.source = corrected;
  }
  SF_INFO info{};
  const Sound sound = open(source, SFM_READ, info);
  if (!sound) file.refuse(fmt::format("cannot be read as sound ({}); {}", sf_strerror(nullptr), convert_sound));
  if (info.channels < 1 || info.samplerate < 1) file.refuse("has no channels or no sampling rate");
  Audio audio{decode(sound.get(), info, file), info.samplerate, info.channels};
  const auto held = std::int64_t(audio.samples.size());
  const bool mpeg = (info.format & SF_FORMAT_SUBMASK) >= SF_FORMAT_MPEG_LAYER_I &&
                    (info.format & SF_FORMAT_SUBMASK) <= SF_FORMAT_MPEG_LAYER_III;  // names an estimate
  if (held != info.frames && !mpeg)
    file.refuse(fmt::format("its header names {} samples, but {} are there", info.frames, held));
  if (held == 0) file.refuse("it has no samples");
  audio.samples.resize(std::min<std::size_t>(audio.samples.size(), correction.most_samples));
  return audio;
}

Audio read_audio(const std::string& path, const std::string& mend) {
  const std::string bytes = bytes_of({path, mend});
  return parse_audio(std::as_bytes(std::span(bytes)), path, mend);
}

std::string wav_of(std::span<const double> samples, int rate) {
  std::string bytes;
  MemoryFile file{{}, &bytes};
  SF_INFO info{};
  info.samplerate = rate;
  info.channels = 1;
  info.format = SF_FORMAT_WAV | SF_FORMAT_PCM_16;
  Sound sound = open(file, SFM_WRITE, info);
  STIEFEL_ASSERT(sound);
  std::vector<short> rounded(samples.size());
  std::transform(samples.begin(), samples.end(), rounded.begin(), [](double x) {
    return std::isfinite(x) ? short(std::lround(std::clamp(x * 32768, -32768., 32767.))) : short(0);
  });
  STIEFEL_ASSERT(sf_writef_short(sound.get(), rounded.data(), sf_count_t(rounded.size())) ==
                 sf_count_t(rounded.size()));
  sound.reset();
  return bytes;
}

}  // namespace stiefel
