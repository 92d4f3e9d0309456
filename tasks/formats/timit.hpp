/// Finds the utterances of the TIMIT corpus, or of a part of it, in a folder.
///
///   TRAIN/DR1/FCJF0/SA1.WAV    as the LDC distributes it; upper or lower case, also without TRAIN and TEST
///   dr1-fvmh0/sa1.wav          as in NLTK's sample
///
/// A speaker is F or M, three letters and a digit; a sentence SA (two, read by all), SI or SX and a number.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stiefel {

struct Utterance {
  std::string part;               ///< train, test, or empty where the folders do not say
  std::string speaker, sentence;  ///< fcjf0, sa1: lower case
  int dialect = 0;                ///< 1 … 8
  std::string audio, phones;      ///< paths; phones is empty if there is no .phn next to the sound

  bool female() const { return speaker[0] == 'f'; }
  bool read_by_all() const { return sentence.starts_with("sa"); }
};

struct TimitCorpus {
  std::string folder;
  std::vector<Utterance> utterances;  ///< by part, dialect, speaker, sentence
};

/// What the path of a sound file below the corpus's folder says, without `audio` and `phones`; nothing if it is none of
/// TIMIT's.
std::optional<Utterance> utterance_at(std::string_view path);

/// Looks in `folder` of the data directory or, if `folder` is empty, where TIMIT usually lies there. Error(Exit::data)
/// that says what was looked for, where, and how to get it. `task` is named in it.
TimitCorpus find_timit(const std::string& data_directory, const std::string& folder, const std::string& task);

/// What to do about a missing or damaged file of TIMIT.
std::string timit_mend(const std::string& data_directory);

}  // namespace stiefel
