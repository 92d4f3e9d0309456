// Walks through the folders of a TIMIT corpus, into those only whose names belong to it.
#include "tasks/formats/timit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <filesystem>
#include <locale>
#include <tuple>

#include <stiefel/error.hpp>
#include "tasks/formats/data_path.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string lower(std::string_view text) { return boost::to_lower_copy(std::string(text), std::locale::classic()); }

bool is_part(std::string_view name) { return name == "train" || name == "test"; }
bool is_dialect(std::string_view name) {
  return name.size() == 3 && name.starts_with("dr") && name[2] >= '1' && name[2] <= '8';
}
bool is_speaker(std::string_view name) {
  return name.size() == 5 && (name[0] == 'f' || name[0] == 'm') && is_letter(name[1]) && is_letter(name[2]) &&
         is_letter(name[3]) && is_digit(name[4]);
}
bool is_flat_speaker(std::string_view name) {
  return name.size() == 9 && is_dialect(name.substr(0, 3)) && name[3] == '-' && is_speaker(name.substr(4));
}
bool is_sentence(std::string_view name) {
  return name.size() >= 3 && name.size() <= 6 &&
         (name.starts_with("sa") || name.starts_with("si") || name.starts_with("sx")) &&
         std::all_of(name.begin() + 2, name.end(), is_digit);
}

/// The folders and files in a folder, by name.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> all;
  std::error_code fault;
  for (fs::directory_iterator i(folder, fault), end; !fault && i != end; i.increment(fault)) all.push_back(i->path());
  if (fault)
    throw Error(fmt::format("{}: cannot be listed ({}). Check its permissions.", folder.string(), fault.message()),
                Exit::data);
  std::sort(all.begin(), all.end());
  return all;
}

/// Calls `visit` with every path of a folder of speakers below `folder`.
template <class Visit> void visit_speakers(const fs::path& folder, Visit visit) {
  const auto among = [](const fs::path& within, auto fits, auto then) {
    std::error_code ignored;
    for (const fs::path& path : entries(within))
      if (fits(lower(path.filename().string())) && fs::is_directory(path, ignored)) then(path);
  };
  const auto dialects = [&](const fs::path& within) {
    among(within, is_dialect, [&](const fs::path& dialect) { among(dialect, is_speaker, visit); });
  };
  among(folder, is_part, dialects);
  dialects(folder);
  among(folder, is_flat_speaker, visit);
}

void add_speaker(const fs::path& root, const fs::path& folder, std::vector<Utterance>& utterances) {
  const std::vector<fs::path> files = entries(folder);
  for (const fs::path& path : files) {
    std::optional<Utterance> utterance = utterance_at(path.lexically_relative(root).generic_string());
    if (!utterance) continue;
    utterance->audio = path.string();
    for (const fs::path& other : files)
      if (lower(other.filename().string()) == utterance->sentence + ".phn") utterance->phones = other.string();
    utterances.push_back(std::move(*utterance));
  }
}

auto place(const Utterance& u) { return std::tie(u.part, u.dialect, u.speaker, u.sentence); }

void refuse_twice(const std::vector<Utterance>& utterances) {
  for (std::size_t i = 1; i < utterances.size(); ++i)
    if (place(utterances[i - 1]) == place(utterances[i]))
      throw Error(fmt::format("{} and {} are the same utterance. Remove one of them.", utterances[i - 1].audio,
                              utterances[i].audio),
                  Exit::data);
}

}  // namespace

std::optional<Utterance> utterance_at(std::string_view path) {
  std::vector<std::string> names;
  for (std::string rest = lower(path); names.size() < 5;) {
    const std::size_t slash = rest.find('/');
    names.push_back(rest.substr(0, slash));
    if (slash == rest.npos) break;
    rest.erase(0, slash + 1);
  }
  if (names.size() < 2 || names.size() > 4 || !names.back().ends_with(".wav")) return std::nullopt;
  Utterance u;
  u.sentence = names.back().substr(0, names.back().size() - 4);
  std::string& speaker = names[names.size() - 2];
  if (names.size() == 2) {
    if (!is_flat_speaker(speaker)) return std::nullopt;
    names.insert(names.begin(), speaker.substr(0, 3));
    names[1].erase(0, 4);
  }
  if (names.size() == 4) {
    u.part = names[0];
    if (!is_part(u.part)) return std::nullopt;
  }
  const std::string& dialect = names[names.size() - 3];
  u.speaker = names[names.size() - 2];
  if (!is_dialect(dialect) || !is_speaker(u.speaker) || !is_sentence(u.sentence)) return std::nullopt;
  u.dialect = dialect[2] - '0';
  return u;
}

std::string timit_mend(const std::string& data_directory) {
  const std::string folder = data_directory.empty() ? "DIR" : data_directory;
  return fmt::format(
      "The corpus is licensed by the Linguistic Data Consortium (LDC93S1): put its folders TRAIN and TEST into "
      "{0}/timit. A sample of 16 "
      "speakers is free for non-commercial use: curl -f -L -o '{1}/timit.zip' "
      "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/corpora/timit.zip && unzip -d '{1}' "
      "'{1}/timit.zip'",
      folder, within_quotes(folder));
}

TimitCorpus find_timit(const std::string& data_directory, const std::string& folder, const std::string& task) {
  if (data_directory.empty())
    throw Error::missing(fmt::format(
        "{} needs the TIMIT corpus, but the data directory is not set. Use --data DIR or set STIEFEL_DATA. {}", task,
        timit_mend(data_directory)));
  std::vector<std::string> places = {"timit", "TIMIT", "timit/TIMIT", "timit/timit", "timit/data", "timit_sample/timit",
                                     ""};
  if (!folder.empty()) places = {folder};
  std::vector<std::string> looked_in;
  for (const std::string& name : places) {
    TimitCorpus corpus;
    const fs::path root = name.empty() ? fs::path(data_directory) : fs::path(data_directory) / name;
    corpus.folder = root.string();
    looked_in.push_back(corpus.folder);
    std::error_code ignored;
    if (!fs::is_directory(root, ignored)) continue;
    visit_speakers(root, [&](const fs::path& speaker) { add_speaker(root, speaker, corpus.utterances); });
    if (corpus.utterances.empty()) continue;
    std::sort(corpus.utterances.begin(), corpus.utterances.end(),
              [](const Utterance& a, const Utterance& b) { return place(a) < place(b); });
    refuse_twice(corpus.utterances);
    return corpus;
  }
  throw Error::missing(
      fmt::format("{} needs the TIMIT corpus, but there is no TRAIN/DR1/FCJF0/SA1.WAV or dr1-fvmh0/sa1.wav in {}. {}",
                  task, fmt::join(looked_in, " or "), timit_mend(data_directory)));
}

}  // namespace stiefel
