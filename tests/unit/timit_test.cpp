// Finding the utterances of TIMIT in folders of both kinds, and dividing them.
#include <doctest/doctest.h>
#include <iostream>
#include <map>
#include <set>

#include <stiefel/error.hpp>
#include "sound_files.hpp"
#include "tasks/formats/audio.hpp"
#include "tasks/formats/phones.hpp"
#include "tasks/formats/timit_splits.hpp"

using namespace stiefel;
using namespace sound_files;
namespace fs = std::filesystem;

namespace {

using Names = std::set<std::string>;

std::string name_of(const Utterance& u) {
  return u.part + "/dr" + std::to_string(u.dialect) + "/" + u.speaker + "/" + u.sentence;
}

Names speakers(const TimitCorpus& corpus, const std::vector<std::size_t>& places) {
  Names names;
  for (const std::size_t i : places) names.insert(corpus.utterances[i].speaker);
  return names;
}

std::size_t women(const Names& names) {
  std::size_t count = 0;
  for (const std::string& name : names) count += name[0] == 'f';
  return count;
}

std::string refusal(auto act) {
  try {
    act();
  } catch (const Error& error) {
    CHECK(error.code() == Exit::data);
    return error.what();
  }
  return "accepted";
}

/// The whole corpus without sounds: 462 training and 168 test speakers of 10 sentences, among them the published ones.
TimitCorpus whole() {
  const std::string published[] = {
      "mdab0", "mwbt0", "felc0", "mtas1", "mwew0", "fpas0", "mjmp0", "mlnt0", "fpkt0", "mlll0", "mtls0",
      "fjlm0", "mbpm0", "mklt0", "fnlp0", "mcmj0", "mjdh0", "fmgd0", "mgrt0", "mnjm0", "fdhc0", "mjln0",
      "mpam0", "fmld0", "faks0", "fdac1", "fjem0", "mgwt0", "mjar0", "mmdb1", "mmdm2", "mpdf0", "fcmh0",
      "fkms0", "mbdg0", "mbwm0", "mcsh0", "fadg0", "fdms0", "fedw0", "mgjf0", "mglb0", "mrtk0", "mtaa0",
      "mtdt0", "mthc0", "mwjg0", "fnmr0", "frew0", "fsem0", "mbns0", "mmjr0", "mdls0", "mdlf0", "mdvc0",
      "mers0", "fmah0", "fdrw0", "mrcs0", "mrjm4", "fcal1", "mmwh0", "fjsj0", "majc0", "mjsw0", "mreb0",
      "fgjd0", "fjmg0", "mroa0", "mteb0", "mjfc0", "mrjr0", "fmml0", "mrws1"};
  TimitCorpus corpus{"corpus", {}};
  const auto add = [&](const std::string& part, const std::string& speaker) {
    for (int k = 0; k < 10; ++k)
      corpus.utterances.push_back({part, speaker, (k < 2 ? "sa" : "sx") + std::to_string(k), 1, "a.wav", "a.phn"});
  };
  for (int i = 0; i < 462; ++i)
    add("train", std::string(i % 3 ? "m" : "f") + char('a' + i / 26) + char('a' + i % 26) + "z9");
  for (const std::string& speaker : published) add("test", speaker);
  for (int i = 0; i < 94; ++i)
    add("test", std::string(i % 3 ? "m" : "f") + char('a' + i / 26) + char('a' + i % 26) + "y9");
  return corpus;
}

}  // namespace

TEST_CASE("names of utterances") {
  const auto name = [](const std::string& path) {
    const std::optional<Utterance> u = utterance_at(path);
    return u ? name_of(*u) : std::string("none");
  };
  CHECK(name("TRAIN/DR1/FCJF0/SA1.WAV") == "train/dr1/fcjf0/sa1");
  CHECK(name("test/dr8/mslb0/sx113.wav") == "test/dr8/mslb0/sx113");
  CHECK(name("Train/dr4/Fcag0/SI1503.Wav") == "train/dr4/fcag0/si1503");
  CHECK(name("DR1/FCJF0/SA1.WAV") == "/dr1/fcjf0/sa1");
  CHECK(name("dr1-fvmh0/sa1.wav") == "/dr1/fvmh0/sa1");
  const char* others[] = {"",
                          "/",
                          "sa1.wav",
                          "fcjf0/sa1.wav",
                          "dr1/sa1.wav",
                          "dr9-fvmh0/sa1.wav",
                          "dr0-fvmh0/sa1.wav",
                          "dr11-fvmh0/sa1.wav",
                          "drx-fvmh0/sa1.wav",
                          "dr1_fvmh0/sa1.wav",
                          "dr1-fvmh/sa1.wav",
                          "dr1-fvmh00/sa1.wav",
                          "dr1-xvmh0/sa1.wav",
                          "dr1-f1mh0/sa1.wav",
                          "dr1-fvmhh/sa1.wav",
                          "dr1-fvmh0/sb1.wav",
                          "dr1-fvmh0/sa.wav",
                          "dr1-fvmh0/sax.wav",
                          "dr1-fvmh0/sa12345.wav",
                          "dr1-fvmh0/sa-1.wav",
                          "dr1-fvmh0/sa1.wav.wav",
                          "dr1-fvmh0/sa1.phn",
                          "dr1-fvmh0/sa1",
                          "dr1-fvmh0/sa1.wav/",
                          "dr1-fvmh0/.wav",
                          "/dr1-fvmh0/sa1.wav",
                          "dr1-fvmh0//sa1.wav",
                          "train/dr1-fvmh0/sa1.wav",
                          "TRAIN/DR1/FCJF0/x/SA1.WAV",
                          "TRAIN/DR1/SA1.WAV",
                          "TRAIN/FCJF0/SA1.WAV",
                          "TRAINING/DR1/FCJF0/SA1.WAV",
                          "dev/DR1/FCJF0/SA1.WAV",
                          "x/TRAIN/DR1/FCJF0/SA1.WAV",
                          "TRAIN/DR1/FCJF0/SA1.WAV/SA1.WAV",
                          "TRAIN/DR9/FCJF0/SA1.WAV",
                          "TRAIN/DR1/FCJF0/SA1.FLAC",
                          "TRAIN/DR1/FCJF/SA1.WAV",
                          "../DR1/FCJF0/SA1.WAV",
                          "TRAIN/DR1/FCJF0/..",
                          "TRAIN\\DR1\\FCJF0\\SA1.WAV",
                          "dr1-f\xc3\xa4mh0/sa1.wav",
                          "////",
                          "a/b/c/d/e/f/g/h/i/j/k/l/m/n/sa1.wav"};
  CHECK(std::size(others) >= 40);
  for (const char* path : others) {
    CAPTURE(path);
    CHECK(name(path) == "none");
  }
  CHECK(name(std::string("dr1-fvmh0/sa1.wav\0", 18)) == "none");
  CHECK(name(std::string(100000, '/')) == "none");
}

TEST_CASE("the corpus is found in folders of every kind") {
  const struct {
    const char *place, *file, *transcription, *expected;
  } layouts[] = {{"timit", "TRAIN/DR1/FCJF0/SA1.WAV", "TRAIN/DR1/FCJF0/SA1.PHN", "train/dr1/fcjf0/sa1"},
                 {"TIMIT", "test/dr8/mslb0/sx113.wav", "test/dr8/mslb0/sx113.phn", "test/dr8/mslb0/sx113"},
                 {"timit/data", "TRAIN/DR1/FCJF0/SA1.WAV", "TRAIN/DR1/FCJF0/sa1.Phn", "train/dr1/fcjf0/sa1"},
                 {"", "dr1-fvmh0/si836.wav", "dr1-fvmh0/si836.phn", "/dr1/fvmh0/si836"},
                 {"timit_sample/timit", "dr1-fvmh0/si836.wav", "dr1-fvmh0/si836.phn", "/dr1/fvmh0/si836"},
                 {"TIMIT", "DR3/mabc0/sx1.wav", "DR3/mabc0/sx1.phn", "/dr3/mabc0/sx1"}};
  for (const auto& layout : layouts) {
    CAPTURE(layout.file);
    const Folder folder;
    write(folder.path / layout.place / layout.file, "x");
    write(folder.path / layout.place / layout.transcription, "x");
    write(folder.path / layout.place / "README", "x");
    write(folder.path / layout.place / "DOC/SPKRINFO.TXT", "x");
    write((folder.path / layout.place / layout.file).string() + ".wav", "x");
    const TimitCorpus corpus = find_timit(folder.path.string(), "", "a task");
    REQUIRE(corpus.utterances.size() == 1);
    CHECK(name_of(corpus.utterances[0]) == layout.expected);
    CHECK(corpus.utterances[0].audio == (folder.path / layout.place / layout.file).string());
    CHECK(corpus.utterances[0].phones == (folder.path / layout.place / layout.transcription).string());
    CHECK(find_timit(folder.path.string(), *layout.place ? layout.place : ".", "a task").utterances.size() == 1);
  }
}

TEST_CASE("speakers and sounds may be links") {
  const Folder folder;
  write(folder.path / "store/one/SA1.WAV", "x");
  write(folder.path / "store/two.wav", "x");
  fs::create_directories(folder.path / "timit/TRAIN/DR1/FCJF0");
  fs::create_directory_symlink(folder.path / "store/one", folder.path / "timit/TRAIN/DR1/MABC0");
  fs::create_symlink(folder.path / "store/two.wav", folder.path / "timit/TRAIN/DR1/FCJF0/SA2.WAV");
  const TimitCorpus corpus = find_timit(folder.path.string(), "", "a task");
  REQUIRE(corpus.utterances.size() == 2);
  CHECK(name_of(corpus.utterances[0]) == "train/dr1/fcjf0/sa2");
  CHECK(name_of(corpus.utterances[1]) == "train/dr1/mabc0/sa1");
}

TEST_CASE("missing files are reported") {
  const Folder folder;
  const auto find = [&](const std::string& data, const std::string& place) {
    return refusal([&] { find_timit(data, place, "a task"); });
  };
  CHECK(
      find("", "").starts_with("a task needs the TIMIT corpus, but the data directory is not set. Use --data DIR or "
                               "set STIEFEL_DATA. The corpus"));
  CHECK(find("", "").find("put its folders TRAIN and TEST into DIR/timit") != std::string::npos);
  const std::string text = find(folder.path.string(), "");
  CHECK(text.starts_with(
      "a task needs the TIMIT corpus, but there is no TRAIN/DR1/FCJF0/SA1.WAV or dr1-fvmh0/sa1.wav in " +
      (folder.path / "timit").string() + " or "));
  CHECK(text.find("curl -f -L -o '" + folder.path.string() + "/timit.zip'") != std::string::npos);
  write(folder.path / "elsewhere/dr1-fvmh0/sa1.wav", "x");
  CHECK(find(folder.path.string(), "") != "accepted");
  CHECK(find(folder.path.string(), "elsewhere") == "accepted");
  CHECK(find(folder.path.string(), "nowhere").find("in " + (folder.path / "nowhere").string() + ". The corpus") !=
        std::string::npos);
  write(folder.path / "elsewhere/DR1/FVMH0/SA1.WAV", "x");
  CHECK(find(folder.path.string(), "elsewhere").ends_with(" are the same utterance. Remove one of them."));
}

TEST_CASE("a folder that leads back to itself is not followed for ever") {
  const Folder folder;
  const fs::path dialect = folder.path / "TRAIN/DR1";
  write(dialect / "FCJF0/SA1.WAV", "x");
  fs::create_directory_symlink(folder.path, folder.path / "TEST");
  fs::create_directory_symlink(dialect, dialect / "FCJF1");
  fs::create_directory_symlink(folder.path / "TRAIN", dialect / "DR2");
  CHECK(find_timit(folder.path.string(), "", "a task").utterances.size() == 1);
}

TEST_CASE("the published sets") {
  const TimitCorpus corpus = whole();
  TimitOptions options;
  const TimitSplits standard = split_timit(corpus, options, "");
  CHECK((standard.train.size() == 3696 && standard.validation.size() == 400 && standard.test.size() == 192));
  CHECK((speakers(corpus, standard.validation).size() == 50 && speakers(corpus, standard.test).size() == 24));
  CHECK((women(speakers(corpus, standard.test)) == 8 && speakers(corpus, standard.test).contains("fdhc0")));
  options.sa = true;
  CHECK(split_timit(corpus, options, "").train.size() == 4620);
  options = {};
  options.test = "complete", options.validation = "held_out";
  const TimitSplits large = split_timit(corpus, options, "");
  CHECK((large.train.size() == 3512 && large.validation.size() == 184 && large.test.size() == 1344));
  CHECK(speakers(corpus, large.test).size() == 168);
  Names held_out, train;
  for (const std::size_t i : large.validation) held_out.insert(name_of(corpus.utterances[i]));
  for (const std::size_t i : large.train) train.insert(name_of(corpus.utterances[i]));
  CHECK((held_out.size() == 184 && train.size() == 3512));
  for (const std::string& name : held_out) CHECK(!train.contains(name));
  options.split_seed = 2;
  CHECK(split_timit(corpus, options, "").validation != large.validation);
}

TEST_CASE("a corpus that is not whole has no published sets") {
  TimitCorpus corpus = whole();
  corpus.utterances.pop_back();
  TimitOptions options;
  for (const char* split : {"auto", "published"}) {
    options.split = split;
    CHECK(refusal([&] { split_timit(corpus, options, "/data"); })
              .starts_with("the published sets of TIMIT need the whole corpus, but 1343 of the 1344 test utterances "
                           "are in corpus. The corpus is"));
  }
  options.split = "speakers";
  CHECK(refusal([&] { split_timit(corpus, options, "/data"); }) == "accepted");
  corpus = whole();
  for (Utterance& u : corpus.utterances)
    if (u.speaker == "mdab0") u.speaker = "mxyz0";
  options.split = "auto";
  CHECK(refusal([&] { split_timit(corpus, options, ""); }).find("but 184 of the 192 core test utterances are in") !=
        std::string::npos);
}

TEST_CASE("speakers are divided, both sexes in each set") {
  const Folder folder;
  write_timit(folder.path, 8, 7, 1, 500);
  const TimitCorpus corpus = find_timit(folder.path.string(), "", "a task");
  TimitOptions options;
  const TimitSplits splits = split_timit(corpus, options, "");
  const Names train = speakers(corpus, splits.train), validation = speakers(corpus, splits.validation),
              test = speakers(corpus, splits.test);
  CHECK((train.size() == 9 && validation.size() == 2 && test.size() == 4));
  CHECK((women(train) == 5 && women(validation) == 1 && women(test) == 2));
  Names all = train;
  for (const Names& more : {validation, test}) all.insert(more.begin(), more.end());
  CHECK(all.size() == 15);
  CHECK((splits.train.size() == 9 && splits.test.size() == 4));
  for (const std::size_t i : splits.train) CHECK(!corpus.utterances[i].read_by_all());
  options.sa = true;
  CHECK(split_timit(corpus, options, "").train.size() == 18);
  Names seen;
  for (options.split_seed = 1; options.split_seed < 20; ++options.split_seed)
    for (const std::string& name : speakers(corpus, split_timit(corpus, options, "").test)) seen.insert(name);
  CHECK(seen.size() == 15);
  options.validation_speakers = 0, options.test_speakers = 12;
  CHECK(women(speakers(corpus, split_timit(corpus, options, "").train)) == 2);
  options.test_speakers = 14;
  CHECK(refusal([&] {
          split_timit(corpus, options, "");
        }).find("holds 8 women and 7 men: too few for 14 test and 0 validation speakers") != std::string::npos);
}

TEST_CASE("the real sample") {
  const char* data = std::getenv("STIEFEL_DATA");
  if (!data || !fs::exists(fs::path(data) / "timit_sample/timit")) {
    std::cout << "skipped: the real sample of TIMIT; STIEFEL_DATA names no folder with timit_sample/timit/\n";
    return;
  }
  const TimitCorpus corpus = find_timit(data, "timit_sample/timit", "a task");
  CHECK(corpus.utterances.size() == 160);
  std::map<std::string, int> of_speaker;
  std::set<std::pair<int, bool>> regions;
  Names sentences;
  std::set<std::int32_t> labels;
  std::size_t samples = 0, segments = 0, behind = 0;
  for (const Utterance& u : corpus.utterances) {
    const Audio audio = read_audio(u.audio, "");
    const std::vector<Phone> phones = read_phones(u.phones, "");
    CHECK((audio.rate == 16000 && audio.channels == 1));
    ++of_speaker[u.speaker];
    regions.emplace(u.dialect, u.female());
    sentences.insert(u.sentence);
    samples += audio.samples.size();
    segments += phones.size();
    behind += phones.back().end > std::int64_t(audio.samples.size());
    for (const Phone& phone : phones) labels.insert(phone.label);
  }
  CHECK((samples == 7841548 && segments == 6185 && labels.size() == 61 && behind == 0));
  CHECK((of_speaker.size() == 16 && regions.size() == 16 && sentences.size() == 130));
  for (const auto& [speaker, count] : of_speaker) CHECK(count == 10);
  const TimitSplits splits = split_timit(corpus, {}, data);
  CHECK((splits.train.size() == 80 && splits.validation.size() == 16 && splits.test.size() == 32));
}

TEST_CASE("as many training utterances are held out as `held_out` says") {
  TimitOptions options;
  options.test = "complete", options.validation = "held_out", options.held_out = 100;
  const TimitSplits splits = split_timit(whole(), options, "");
  CHECK((splits.validation.size() == 100 && splits.train.size() == 3596));
}
