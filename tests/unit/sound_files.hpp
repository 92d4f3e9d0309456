/// Sounds and sound files for tests, and a folder for them.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "scratch.hpp"

namespace sound_files {

using scratch::Folder, scratch::write;

inline std::string little(std::uint64_t x, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += char(x >> 8 * i);
  return text;
}
inline std::string big(std::uint64_t x, int bytes) {
  const std::string text = little(x, bytes);
  return {text.rbegin(), text.rend()};
}

inline std::string chunk(const std::string& id, const std::string& bytes) {
  return id + little(bytes.size(), 4) + bytes + std::string(bytes.size() % 2, '\0');
}
inline std::string wav_format(int tag, int channels, int rate, int bits) {
  const int frame = channels * bits / 8;
  return chunk("fmt ", little(tag, 2) + little(channels, 2) + little(rate, 4) + little(std::uint64_t(rate) * frame, 4) +
                           little(frame, 2) + little(bits, 2));
}
inline std::string riff(const std::string& chunks) { return "RIFF" + little(4 + chunks.size(), 4) + "WAVE" + chunks; }

inline std::string pcm(const std::vector<int>& samples, int bytes = 2) {
  std::string text;
  for (const int x : samples) text += little(std::uint64_t(std::int64_t(x)), bytes);
  return text;
}
inline std::string wav(const std::vector<int>& samples, int rate = 16000, int channels = 1) {
  return riff(wav_format(1, channels, rate, 16) + chunk("data", pcm(samples)));
}

/// `fields`: lines such as "sample_count -i 3\n".
inline std::string sphere(const std::string& fields, const std::string& sound, std::size_t size = 1024) {
  std::string header = "NIST_1A\n   " + std::to_string(size) + "\n" + fields + "end_head\n";
  header.resize(size, ' ');
  return header + sound;
}
inline std::string sphere_fields(std::size_t count, const std::string& order = "01") {
  return "sample_rate -i 16000\nsample_count -i " + std::to_string(count) +
         "\nsample_n_bytes -i 2\nsample_byte_format -s2 " + order + "\nchannel_count -i 1\n";
}

/// Uniform in [−1, 1), from a linear congruential generator, as in tests/golden/signal_processing.py.
inline std::vector<double> noise(std::size_t count, std::uint32_t seed) {
  std::vector<double> values;
  for (std::uint32_t state = seed; values.size() < count;) {
    state = 1664525 * state + 1013904223;
    values.push_back(double(state) / 2147483648. - 1);
  }
  return values;
}

/// Something like speech, as in tests/golden/signal_processing.py.
inline std::vector<double> speech(std::size_t count, double rate, std::uint32_t seed) {
  using std::numbers::pi;
  std::vector<double> values = noise(count, seed);
  for (std::size_t i = 0; i < count; ++i) {
    const double t = double(i) / rate, rise = std::max(std::sin(2 * pi * 3 * t + seed), 0.);
    double tone = 0;
    for (int h = 1; h < 13; ++h) tone += std::sin(2 * pi * h * (110 * t + 15 * t * t)) / h;
    values[i] = rise * rise * (0.1 * tone + 0.05 * values[i]);
  }
  return values;
}

/// Samples as 16-bit integers.
inline std::vector<int> rounded(const std::vector<double>& x) {
  std::vector<int> values;
  for (const double value : x) values.push_back(int(std::lround(value * 32767)));
  return values;
}

/// A part of TIMIT in the manner of NLTK's sample: `women` and `men` speakers with `sentences` sentences each and SA1,
/// of `samples` samples and up to 400 more each.
inline void write_timit(const std::filesystem::path& folder, int women, int men, int sentences = 2,
                        std::size_t samples = 4000) {
  for (int i = 0; i < women + men; ++i) {
    const bool woman = i < women;
    const std::string speaker = std::string("dr") + char('1' + i % 8) + (woman ? "-faa" : "-maa") + char('a' + i) + "0";
    for (int k = 0; k <= sentences; ++k) {
      const std::string sentence = k == 0 ? "sa1" : "sx" + std::to_string(10 * i + k);
      const std::size_t count = samples + std::size_t(137 * (3 * i + k) % 400);
      const std::vector<double> x = speech(count, 16000, std::uint32_t(7 * i + k + 1));
      write(folder / speaker / (sentence + ".wav"), wav(rounded(x)));
      const std::string third = std::to_string(count / 3), two_thirds = std::to_string(2 * count / 3);
      write(folder / speaker / (sentence + ".phn"), "0 " + third + " h#\n" + third + " " + two_thirds +
                                                        (k % 2 ? " ao\n" : " q\n") + two_thirds + " " +
                                                        std::to_string(count) + " iy\n");
    }
  }
}

}  // namespace sound_files
