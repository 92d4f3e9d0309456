// Sound files: what is read of each format, and that damaged ones are refused with a sentence.
#include <doctest/doctest.h>
#include <sndfile.h>
#include <algorithm>
#include <iostream>

#include <stiefel/error.hpp>
#include "sound_files.hpp"
#include "tasks/formats/audio.hpp"

using namespace stiefel;
using namespace sound_files;
namespace fs = std::filesystem;

namespace {

const std::string mend = "Fetch it again.";
const std::vector<int> values = {0, 1, -1, 32767, -32768, 256, -257, 1000};
const std::string sound = pcm(values);
const std::string good_wav = wav(values), good_sphere = sphere(sphere_fields(8), sound);

Audio parse(const std::string& bytes) { return parse_audio(std::as_bytes(std::span(bytes)), "sound", mend); }

/// The sentence without the name and the mend, which must stand at its ends.
std::string refusal(const std::string& bytes) {
  try {
    parse(bytes);
  } catch (const Error& error) {
    const std::string text = error.what(), begin = "sound: ", end = ". " + mend;
    CHECK(error.code() == Exit::data);
    REQUIRE(text.starts_with(begin));
    REQUIRE(text.ends_with(end));
    return text.substr(begin.size(), text.size() - begin.size() - end.size());
  }
  return "accepted";
}

/// Samples as integers of 16 bits.
std::vector<double> scaled(const Audio& audio) {
  std::vector<double> samples = audio.samples;
  for (double& x : samples) x *= 32768;
  return samples;
}

/// A file written by libsndfile.
std::string encoded(const std::vector<double>& samples, int format, int channels = 1) {
  const Folder folder;
  const std::string path = (folder.path / "sound").string();
  SF_INFO info{};
  info.samplerate = 8000;
  info.channels = channels;
  info.format = format;
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
  REQUIRE(file);
  sf_writef_double(file, samples.data(), sf_count_t(samples.size()) / channels);
  sf_close(file);
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string with(std::string bytes, std::size_t place, const std::string& other) {
  return bytes.replace(place, other.size(), other);
}

std::string extensible(int tag) {
  const std::string plain = wav_format(0xfffe, 1, 16000, 16).substr(8), mask(4, '\0');
  return chunk("fmt ", plain + little(22, 2) + little(16, 2) + mask + little(std::uint64_t(tag), 2) +
                           std::string("\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14));
}

/// An RF64 file that names that many bytes of sound.
std::string rf64(std::uint64_t bytes) {
  const std::string sizes = little(80, 8) + little(bytes, 8) + little(8, 8) + little(0, 4);
  const std::string all = riff(chunk("ds64", sizes) + wav_format(1, 1, 16000, 16) + chunk("data", sound));
  return with(with(with(all, 0, "RF64"), 4, little(0xffffffff, 4)), all.size() - sound.size() - 4,
              little(0xffffffff, 4));
}

struct Damage {
  const char* sentence;
  std::string bytes;
};

std::vector<Damage> damaged_wav() {
  const std::string format = wav_format(1, 1, 16000, 16), data = chunk("data", sound);
  return {
      {"a WAV file that ends before its `data` chunk", riff("")},
      {"a WAV file that ends before its `data` chunk", riff(format)},
      {"a WAV file that ends before its `data` chunk", riff(format + "data")},
      {"a WAV file that ends before its `data` chunk", riff(format + chunk("LIST", "INFO"))},
      {"a WAV file without a `fmt ` chunk", riff(data)},
      {"a WAV file without a `fmt ` chunk", riff(data + format)},
      {"a WAV file whose `fmt ` chunk has 0 bytes", riff(chunk("fmt ", "") + data)},
      {"a WAV file whose `fmt ` chunk has 14 bytes", riff(chunk("fmt ", std::string(14, '\x01')) + data)},
      {"a WAV file with 0 channels", riff(wav_format(1, 0, 16000, 16) + data)},
      {"a WAV file with 0 channels or 0 bytes per frame", riff(wav_format(1, 1, 16000, 0) + data)},
      {"a WAV file of 2 channels of 16 bits, but with 2 bytes a frame", with(good_wav, 22, little(2, 2))},
      {"a WAV file of 1 channels of 24 bits, but with 2 bytes a frame", with(good_wav, 34, little(24, 2))},
      {"a WAV file of 1 channels of 16 bits, but with 65535 bytes a frame", with(good_wav, 32, little(65535, 2))},
      {"a WAV file of 65535 channels of 16 bits, but with", with(good_wav, 22, little(65535, 2))},
      {"a WAV file cut short: its header names 17 bytes of sound, 16 are there", with(good_wav, 40, little(17, 4))},
      {"a WAV file cut short: its header names 16 bytes of sound, 15 are there",
       good_wav.substr(0, good_wav.size() - 1)},
      {"a WAV file cut short: its header names 16 bytes of sound, 0 are there", good_wav.substr(0, 44)},
      {"a WAV file cut short: its header names 4294967295 bytes of sound", with(good_wav, 40, little(0xffffffff, 4))},
      {"a WAV file cut short: its header names 1000 bytes of sound, 16 are there",
       with(with(good_wav, 4, little(0xffffffff, 4)), 40, little(1000, 4))},
      {"a WAV file cut short: its header names 2147483648 bytes of sound", with(good_wav, 40, little(0x80000000, 4))},
      {"a WAV file cut short: its header names 2147352576 bytes of sound",
       with(with(good_wav, 4, little(0xffffffff, 4)), 40, little(0x7ffe0000, 4))},
      {"a WAV file cut short: its header names 2147483650 bytes of sound",
       with(with(good_wav, 4, little(0xffffffff, 4)), 40, little(0x80000002, 4))},
      {"a WAV file cut short: a chunk of 4294967295 bytes", riff(format + "LIST" + little(0xffffffff, 4) + data)},
      {"a WAV file cut short: a chunk of 4294967295 bytes", riff("fmt " + little(0xffffffff, 4) + format + data)},
      {"a WAV file whose 15 bytes of sound are not a multiple of the 2 bytes of a frame",
       riff(format + chunk("data", sound.substr(1)))},
      {"it has no samples", riff(format + chunk("data", "") + sound)},
      {"it has no samples", riff(format + chunk("data", ""))},
      {"a WAV file with sound in an unknown format (format tag 0x7777), which is not read; convert it: ffmpeg",
       riff(wav_format(0x7777, 1, 16000, 16) + data)},
      {"a WAV file with sound in AAC (format tag 0x00ff)", riff(wav_format(0xff, 1, 16000, 1000) + data)},
      {"a WAV file with sound in FLAC (format tag 0xf1ac)", riff(extensible(0xf1ac) + data)},
      {"a WAV file whose `fmt ` chunk has 16 bytes, at least 40", riff(wav_format(0xfffe, 1, 16000, 16) + data)},
      {"a WAV file with integers of 64 bits, which are not read", riff(wav_format(1, 1, 16000, 64) + data)},
      {"a WAV file whose 15 bytes of sound are not a multiple of the 2 bytes of a frame",
       riff(extensible(1) + chunk("data", sound.substr(1)))},
      {"a WAV file cut short: its header names 17 bytes of sound, 16 are there", rf64(17)},
      {"an RF64 file whose `ds64` chunk has 8 bytes, expected 28",
       with(riff(chunk("ds64", std::string(8, '\0')) + format + data), 0, "RF64")},
      {"a WAV file cut short: its header names 4294967295 bytes of sound, 16 are there",
       with(with(good_wav, 0, "RF64"), 40, little(0xffffffff, 4))},
      {"a WAV file whose sampling rate is 0", riff(wav_format(1, 1, 0, 16) + data)},
      {"a WAV file with two `data` chunks", riff(format + data + data)},
      {"a WAV file with two `data` chunks", riff(format + data + chunk("LIST", "INFO") + data)},
      {"cannot be read as sound", riff(wav_format(1, 2000, 16000, 8) + chunk("data", std::string(2000, '\1')))},
      {"sample 1 is not a finite number",
       riff(wav_format(3, 1, 16000, 32) + chunk("data", little(0, 4) + little(0x7fc00000, 4)))},
      {"sample 0 is not a finite number", riff(wav_format(3, 1, 16000, 32) + chunk("data", little(0x7f800000, 4)))},
  };
}

std::vector<Damage> damaged_sphere() {
  const std::string fields = sphere_fields(8);
  const auto without = [&](const std::string& line) {
    return std::string(fields).replace(fields.find(line), line.size(), "");
  };
  const auto changed = [&](const std::string& line, const std::string& other) {
    return sphere(std::string(fields).replace(fields.find(line), line.size(), other), sound);
  };
  return {
      {"a SPHERE file whose second line is not the size", "NIST_1A\n"},
      {"a SPHERE file whose second line is not the size", with(good_sphere, 8, "   xxxx\n")},
      {"a SPHERE file whose second line is not the size", with(good_sphere, 8, "      8\n")},
      {"a SPHERE file whose second line is not the size", with(good_sphere, 8, "  -1024\n")},
      {"a SPHERE file whose second line is not the size", with(good_sphere, 8, "9999999\n")},
      {"a SPHERE file whose second line is not the size", with(good_sphere, 8, "   1024 ")},
      {"a SPHERE file that ends inside its header of 1024 bytes", good_sphere.substr(0, 1023)},
      {"a SPHERE file that ends inside its header of 999999 bytes", with(good_sphere, 8, " 999999\n")},
      {"a SPHERE file whose header has no `end_head`", with(good_sphere, good_sphere.find("end_head"), "END_HEAD")},
      {"a SPHERE file whose header does not say sample_count", sphere(without("sample_count -i 8\n"), sound)},
      {"a SPHERE file whose header does not say sample_rate, or not as a number above 0",
       changed("sample_rate -i 16000", "sample_rate -i 0")},
      {"a SPHERE file whose header does not say sample_n_bytes", sphere(without("sample_n_bytes -i 2\n"), sound)},
      {"a SPHERE file whose header does not say sample_count, or not as a number",
       changed("sample_count -i 8", "sample_count -i")},
      {"a SPHERE file whose header does not say sample_count, or not as a number",
       changed("sample_count -i 8", "sample_count -i -8")},
      {"a SPHERE file whose header does not say sample_count, or not as a number",
       changed("sample_count -i 8", "sample_count -i 8x")},
      {"a SPHERE file whose header does not say sample_count, or not as a number",
       changed("sample_count -i 8", "sample_count -i 0")},
      {"a SPHERE file whose header does not say sample_count, or not as a number",
       changed("sample_count -i 8", "sample_count -i 99999999999999999999")},
      {"a SPHERE file whose header names 18446744073709551615 samples, but 8 are there",
       changed("sample_count -i 8", "sample_count -i 18446744073709551615")},
      {"a SPHERE file of 1 channels of 9 bytes a sample", changed("sample_n_bytes -i 2", "sample_n_bytes -i 9")},
      {"a SPHERE file of 99999 channels", changed("channel_count -i 1", "channel_count -i 99999")},
      {"a SPHERE file of 18446744073709551615 channels",
       changed("channel_count -i 1", "channel_count -i 18446744073709551615")},
      {"a SPHERE file whose header names 8 samples, but 7 are there", good_sphere.substr(0, good_sphere.size() - 2)},
      {"a SPHERE file whose header names 8 samples, but 7 are there", good_sphere.substr(0, good_sphere.size() - 1)},
      {"a SPHERE file whose header names 8 samples, but 9 are there", good_sphere + "ab"},
      {"a SPHERE file whose header names 8 samples, but 8 are there", good_sphere + "a"},
      {"a SPHERE file whose header names 8 samples, but 0 are there", good_sphere.substr(0, 1024)},
      {"a SPHERE file compressed by shorten, which cannot be read here; decompress it",
       sphere(fields + "sample_coding -s26 pcm,embedded-shorten-v2.00\n", "ajkg\2" + sound)},
      {"a SPHERE file whose sample_coding is neither pcm nor ulaw nor alaw",
       sphere(fields + "sample_coding -s7 wavpack\n", sound)},
  };
}

std::vector<Damage> damaged_compressed() {
  const std::string flac = encoded(speech(2000, 8000, 1), SF_FORMAT_FLAC | SF_FORMAT_PCM_16);
  const std::string ogg = encoded(speech(2000, 8000, 1), SF_FORMAT_OGG | SF_FORMAT_VORBIS);
  const std::size_t last_page = ogg.rfind("OggS");
  return {
      {"a FLAC file that ends inside its header", flac.substr(0, 41)},
      {"a FLAC file that ends inside its header", "fLaC"},
      {"a FLAC file that does not begin with the STREAMINFO block", with(flac, 4, "\x01")},
      {"a FLAC file that does not begin with the STREAMINFO block", with(flac, 5, big(35, 3))},
      {"a FLAC file that does not say how many samples it holds",
       with(flac, 21, little(std::uint8_t(flac[21]) & 0xf0, 1) + little(0, 4))},
      {"a FLAC file whose sampling rate is 0", with(flac, 18, little(0, 2) + little(std::uint8_t(flac[20]) & 0x0f, 1))},
      {"its header names 2001 samples, but 2000 are there", with(flac, 22, big(2001, 4))},
      {"its header names 4294967295 samples, but 2000 are there", with(flac, 22, big(0xffffffff, 4))},
      {"an OGG file cut short or damaged at byte 0", "OggS"},
      {"an OGG file cut short or damaged at byte ", ogg + "OggX"},
      {"an OGG file cut short in the page at byte 0", ogg.substr(0, 40)},
      {"an OGG file cut short in the page at byte 0", ogg.substr(0, 27)},
      {"an OGG file cut short in the page at byte ", ogg.substr(0, ogg.size() - 1)},
      {"an OGG file cut short: its last page is not marked as the end", ogg.substr(0, last_page)},
      {"an OGG file in which another stream begins at byte ", ogg + ogg},
      {"an OGG file in which another stream begins at byte ", with(ogg, last_page + 14, big(1, 4))},
      {"neither a WAV nor a FLAC, OGG or NIST SPHERE file", ""},
      {"neither a WAV nor a FLAC, OGG or NIST SPHERE file", "R"},
      {"neither a WAV nor a FLAC, OGG or NIST SPHERE file", "RIFF"},
      {"neither a WAV nor a FLAC, OGG or NIST SPHERE file", good_wav.substr(0, 11)},
      {"neither a WAV nor a FLAC, OGG or NIST SPHERE file", with(good_wav, 8, "AVI ")},
      {"neither a WAV nor a FLAC, OGG or NIST SPHERE file", "<!DOCTYPE html><html>Not found</html>"},
      {"neither a WAV nor a FLAC, OGG or NIST SPHERE file", "ID3" + std::string(100, '\0')},
      {"neither a WAV nor a FLAC, OGG or NIST SPHERE file",
       encoded(speech(100, 8000, 1), SF_FORMAT_AIFF | SF_FORMAT_PCM_16)},
      {"neither a WAV nor a FLAC, OGG or NIST SPHERE file",
       encoded(speech(100, 8000, 1), SF_FORMAT_AU | SF_FORMAT_PCM_16)},
  };
}

}  // namespace

TEST_CASE("WAV files of every width, with other chunks, and of several channels") {
  const std::vector<double> expected(values.begin(), values.end());
  CHECK(scaled(parse(good_wav)) == expected);
  CHECK((parse(good_wav).rate == 16000 && parse(good_wav).channels == 1));
  const std::string format = wav_format(1, 1, 44100, 16), data = chunk("data", sound);
  const Audio chunks =
      parse(riff(chunk("LIST", "odd") + format + chunk("fact", little(8, 4)) + data + chunk("id3 ", "more")));
  CHECK(scaled(chunks) == expected);
  CHECK(chunks.rate == 44100);
  CHECK(scaled(parse(riff(wav_format(1, 1, 16000, 24) + chunk("data", pcm({256, -512, 8388352}, 3))))) ==
        std::vector<double>{1, -2, 32767});
  CHECK(scaled(parse(riff(wav_format(1, 1, 16000, 32) + chunk("data", pcm({65536, -131072}, 4))))) ==
        std::vector<double>{1, -2});
  CHECK(scaled(parse(riff(wav_format(1, 1, 16000, 8) + chunk("data", pcm({128, 0, 255}, 1))))) ==
        std::vector<double>{0, -32768, 32512});
  CHECK(parse(riff(wav_format(3, 1, 16000, 32) + chunk("data", little(0x3f000000, 4)))).samples ==
        std::vector<double>{0.5});
  for (const int coding : {SF_FORMAT_ULAW, SF_FORMAT_ALAW, SF_FORMAT_IMA_ADPCM, SF_FORMAT_MS_ADPCM, SF_FORMAT_GSM610})
    CHECK(parse(encoded(speech(1000, 8000, 1), SF_FORMAT_WAV | coding)).samples.size() >= 1000);
  const Audio stereo = parse(wav({10, 20, -5, 6, 1, 2}, 8000, 2));
  CHECK(scaled(stereo) == std::vector<double>{15, 0.5, 1.5});
  CHECK(stereo.channels == 2);
}

TEST_CASE("a WAV file that was written to a pipe, or never finished, is read to its end") {
  const std::vector<double> expected(values.begin(), values.end());
  const auto sized = [](std::uint64_t file, std::uint64_t data) {
    return with(with(good_wav, 4, little(file, 4)), 40, little(data, 4));
  };
  // ffmpeg; sox, also with frames of three bytes; nothing; arecord; GStreamer; lame; the largest multiples of a frame
  for (const auto& [file, data] : {std::pair(0xffffffff, 0xffffffff),
                                   {0x7ffff024, 0x7ffff000},
                                   {0x7ffff048, 0x7fffefff},
                                   {0, 0},
                                   {36, 0},
                                   {0x80000024, 0x80000000},
                                   {0x7fff0024, 0x7fff0000},
                                   {0x80000023, 0x7fffffff},
                                   {0x7fffffff, 0x7fffffdb},
                                   {0, 0xffffffff},
                                   {0xffffffff, 0xfffffff0}}) {
    CAPTURE(data);
    CHECK(scaled(parse(sized(file, data))) == expected);
    CHECK(scaled(parse(sized(file, data) + "?")) == expected);  // half a frame
  }
}

TEST_CASE("WAV files with the most significant byte first, with sizes of 64 bits, and with a format GUID") {
  const std::vector<double> expected(values.begin(), values.end());
  std::string swapped = sound;
  for (std::size_t i = 0; i < swapped.size(); i += 2) std::swap(swapped[i], swapped[i + 1]);
  const std::string format = big(1, 2) + big(1, 2) + big(16000, 4) + big(32000, 4) + big(2, 2) + big(16, 2);
  const std::string rifx =
      "RIFX" + big(52, 4) + "WAVEfmt " + big(16, 4) + format + "LIST" + big(0, 4) + "data" + big(16, 4) + swapped;
  CHECK(scaled(parse(rifx)) == expected);
  CHECK(scaled(parse(with(with(rifx, 4, big(0x80000024, 4)), 48, big(0x80000000, 4)))) == expected);
  CHECK(refusal(with(rifx, 48, big(17, 4))) ==
        "a WAV file cut short: its header names 17 bytes of sound, 16 are there");
  CHECK(scaled(parse(rf64(16))) == expected);
  CHECK(scaled(parse(rf64(0))) == expected);
  CHECK(scaled(parse(riff(extensible(1) + chunk("data", sound)))) == expected);
}

TEST_CASE("compressed WAV files are read in whole blocks") {
  const std::string wav = encoded(speech(900, 8000, 1), SF_FORMAT_WAV | SF_FORMAT_GSM610);
  const std::size_t data = wav.find("data"), bytes = wav.size() - data - 8;
  REQUIRE((bytes % 65 <= 1 && bytes / 65 == 3));
  const std::size_t samples = bytes / 65 * 320;
  const std::vector<double> x = parse(wav).samples;
  CHECK(x.size() == samples);
  for (const std::size_t more : {1, 20}) {  // sox counts the byte that makes the chunk even
    const std::string padded =
        wav.substr(0, data) + chunk("data", wav.substr(data + 8, bytes / 65 * 65) + std::string(more, '\0'));
    CHECK(parse(padded).samples == x);
    CHECK(parse(with(with(padded, 4, little(0, 4)), data + 4, little(0xffffffff, 4))).samples == x);
  }
  for (const int coding : {SF_FORMAT_MS_ADPCM, SF_FORMAT_IMA_ADPCM, SF_FORMAT_G721_32}) {
    const std::string whole = encoded(speech(3000, 8000, 1), SF_FORMAT_WAV | coding);
    const std::size_t place = whole.find("data");
    const std::string half =
        whole.substr(0, place) + chunk("data", whole.substr(place + 8, (whole.size() - place - 8) / 2 + 3));
    const std::vector<double> all = parse(whole).samples, first = parse(half).samples;
    CAPTURE(coding);
    REQUIRE((first.size() > 1000 && first.size() < all.size()));
    CHECK(std::equal(first.begin(), first.end(), all.begin()));
  }
}

TEST_CASE("an MP3 stream in a WAV file is read as far as it goes, whatever its header says") {
  const std::string stream = encoded(speech(20000, 8000, 1), SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III);
  const std::string format = little(0x55, 2) + little(1, 2) + little(8000, 4) + little(1000, 4) + little(576, 2) +
                             little(0, 2) + little(12, 2) + little(1, 2) + little(2, 4) + little(576, 2) +
                             little(1, 2) + little(0, 2);
  const auto samples = [&](const std::string& mp3) {
    return parse(riff(chunk("fmt ", format) + chunk("fact", little(12345, 4)) + chunk("data", mp3))).samples.size();
  };
  CHECK(samples(stream) >= 20000);
  CHECK(samples(stream.substr(0, stream.size() / 2)) > 5000);
}

TEST_CASE("SPHERE files of both byte orders and of µ-law") {
  const std::vector<double> expected(values.begin(), values.end());
  CHECK(scaled(parse(good_sphere)) == expected);
  std::string swapped = sound;
  for (std::size_t i = 0; i < swapped.size(); i += 2) std::swap(swapped[i], swapped[i + 1]);
  CHECK(scaled(parse(sphere(sphere_fields(8, "10"), swapped))) == expected);
  const Audio law = parse(sphere(
      "channel_count -i 1\nsample_count -i 3\nsample_n_bytes -i 1\nsample_rate -i 8000\nsample_coding -s4 ulaw\n",
      "\xff\x80\x01"));
  CHECK((law.samples.size() == 3 && law.rate == 8000));
  CHECK(scaled(law)[1] == 32124);
}

TEST_CASE("FLAC without loss, OGG with a little") {
  const std::vector<double> x = speech(3000, 8000, 2);
  std::vector<double> both;
  for (const double value : x) both.insert(both.end(), {value, value});
  const std::string bytes = wav_of(x, 8000);
  const std::vector<double> exact = parse(bytes).samples;
  CHECK(parse(encoded(exact, SF_FORMAT_FLAC | SF_FORMAT_PCM_24)).samples.size() == 3000);
  const std::vector<double> flac = parse(encoded(x, SF_FORMAT_FLAC | SF_FORMAT_PCM_16)).samples;
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(std::abs(flac[i] - x[i]) < 1e-4);
  const Audio ogg = parse(encoded(both, SF_FORMAT_OGG | SF_FORMAT_VORBIS, 2));
  REQUIRE(ogg.samples.size() == 3000);
  CHECK(ogg.channels == 2);
  double error = 0, energy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) error += std::pow(ogg.samples[i] - x[i], 2), energy += x[i] * x[i];
  CHECK(error < 0.1 * energy);
}

TEST_CASE("what is written is read again") {
  std::vector<double> x;
  for (int i = -32768; i < 32768; i += 17) x.push_back(i / 32768.);
  const std::string bytes = wav_of(x, 8000);
  CHECK(bytes.size() == 44 + 2 * x.size());
  CHECK(parse(bytes).samples == x);
  CHECK(parse(bytes).rate == 8000);
  const std::vector<double> beyond = {2, -2, 1, -1, 0.5 / 32768, std::nan(""), 1e300};
  CHECK(scaled(parse(wav_of(beyond, 16000))) == std::vector<double>{32767, -32768, 32767, -32768, 1, 0, 32767});
}

TEST_CASE("a sentence without a mend ends with its full stop") {
  const std::string bytes = wav({});
  CHECK_THROWS_WITH_AS(parse_audio(std::as_bytes(std::span(bytes)), "sound", ""), "sound: it has no samples.", Error);
}

TEST_CASE("damaged files are refused") {
  std::vector<Damage> all = damaged_wav();
  for (const auto& more : {damaged_sphere(), damaged_compressed()}) all.insert(all.end(), more.begin(), more.end());
  CHECK(all.size() >= 40);
  for (const Damage& damage : all) {
    const std::string expected = damage.sentence, sentence = refusal(damage.bytes);
    CAPTURE(expected);
    CAPTURE(sentence);
    CHECK(sentence.starts_with(expected));
  }
}

TEST_CASE("a file of any format that is cut anywhere is refused") {
  for (const std::string& whole :
       {good_wav, good_sphere, encoded(speech(300, 8000, 1), SF_FORMAT_FLAC | SF_FORMAT_PCM_16),
        encoded(speech(300, 8000, 1), SF_FORMAT_OGG | SF_FORMAT_VORBIS)}) {
    REQUIRE(refusal(whole) == "accepted");
    std::size_t accepted = 0;
    for (std::size_t size = 0; size < whole.size(); ++size) accepted += refusal(whole.substr(0, size)) == "accepted";
    CHECK(accepted == 0);
  }
}

TEST_CASE("a changed bit is refused, or changes a little") {
  for (const std::string& whole :
       {good_wav, good_sphere, encoded(speech(300, 8000, 1), SF_FORMAT_FLAC | SF_FORMAT_PCM_16)}) {
    const std::size_t samples = parse(whole).samples.size();
    for (std::size_t place = 0; place < whole.size(); ++place)
      for (int bit = 0; bit < 8; ++bit) {
        std::string bytes = whole;
        bytes[place] = char(bytes[place] ^ 1 << bit);
        try {
          const std::size_t read = parse(bytes).samples.size();
          CHECK(read <= 2 * samples);
        } catch (const Error& error) {
          CHECK(error.code() == Exit::data);
        }
      }
  }
}

TEST_CASE("a changed bit of an OGG file is refused") {
  const std::string whole = encoded(speech(300, 8000, 1), SF_FORMAT_OGG | SF_FORMAT_VORBIS);
  std::size_t accepted = 0;
  for (std::size_t place = 0; place < whole.size(); ++place) {
    std::string bytes = whole;
    bytes[place] = char(bytes[place] ^ 1 << place % 8);
    accepted += refusal(bytes) == "accepted";
  }
  CHECK(accepted == 0);
  CHECK(refusal(with(whole, 60, "?")) == "an OGG file cut short or damaged at byte 58");
  CHECK(refusal(with(whole, 120, "?")) == "an OGG file whose page at byte 58 is damaged: its checksum does not match");
}

TEST_CASE("what is not a file") {
  const Folder folder;
  const auto refused = [&](const fs::path& path) {
    try {
      read_audio(path.string(), mend);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused(folder.path / "absent").find("absent: No such file or directory. Fetch it again.") !=
        std::string::npos);
  CHECK(refused(folder.path).ends_with(": not a file. Fetch it again."));
  CHECK(refused("/dev/zero") == "/dev/zero: not a file. Fetch it again.");
}

TEST_CASE("real recordings") {
  const char* data = std::getenv("STIEFEL_DATA");
  if (!data || !fs::exists(fs::path(data) / "song") || !fs::exists(fs::path(data) / "speech")) {
    std::cout << "skipped: real recordings; STIEFEL_DATA names no folder with song/ and speech/\n";
    return;
  }
  const auto read = [&](const std::string& name) { return read_audio((fs::path(data) / name).string(), mend); };
  const auto expect = [&](const std::string& name, std::size_t count, std::int64_t rate, int channels) {
    CAPTURE(name);
    const Audio audio = read(name);
    CHECK((audio.samples.size() == count && audio.rate == rate && audio.channels == channels));
    return audio;
  };
  expect("song/guit_em9.flac", 439768, 44100, 2);
  const Audio flac = expect("song/loop_tabla.flac", 470723, 44100, 2);
  const Audio guitar = expect("song/guitar_44100_mono.wav", 439768, 44100, 1),
              tabla = expect("song/tabla_10s_44100_mono.wav", 441000, 44100, 1);
  const auto range = [](const Audio& audio) {
    const auto [low, high] = std::minmax_element(audio.samples.begin(), audio.samples.end());
    return std::pair(*low * 32768, *high * 32768);
  };
  CHECK(range(tabla) == std::pair(-9315., 10657.));
  CHECK(range(guitar) == std::pair(-18936., 20166.));
  double most = 0;
  for (std::size_t i = 0; i < tabla.samples.size(); ++i)
    most = std::max(most, std::abs(tabla.samples[i] - flac.samples[i]));
  CHECK(most <= 0.5 / 32768);
  const std::pair<const char*, double> seconds[] = {{"librivox/sense_and_sensibility_01_austen_64kb-0870.wav", 7.10},
                                                    {"librivox/sense_and_sensibility_01_austen_64kb-0880.wav", 2.99},
                                                    {"librivox/sense_and_sensibility_01_austen_64kb-0890.wav", 5.30},
                                                    {"librivox/sense_and_sensibility_01_austen_64kb-0920.wav", 6.05},
                                                    {"librivox/sense_and_sensibility_01_austen_64kb-0930.wav", 3.29},
                                                    {"cards/001.wav", 1.10},
                                                    {"cards/002.wav", 1.96},
                                                    {"cards/003.wav", 1.54},
                                                    {"cards/004.wav", 1.55},
                                                    {"cards/005.wav", 3.50}};
  for (const auto& [name, length] : seconds) {
    CAPTURE(name);
    const Audio audio = read(std::string("speech/") + name);
    CHECK((audio.rate == 16000 && audio.channels == 1));
    CHECK(std::abs(double(audio.samples.size()) / 16000 - length) <= 0.005 + 1e-9);
  }
}
