/// A text as class numbers of its characters, in three parts: those of a published set, or the user's own.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <stiefel/task.hpp>
#include "tasks/formats/text.hpp"

namespace stiefel {

struct CorpusOptions {
  std::string set = "ptb", train, validation, test, file;
  double validation_fraction = 0.05, test_fraction = 0.05;
  std::string trim = "none", unk = "letters", unknown = "error";
  Index longest = 0, train_lines = 0;

  void describe(Schema& s);
};

struct Corpus {
  struct Part {
    std::vector<std::uint16_t> codes;  ///< alphabet[code] is the character
    std::vector<std::size_t> begins;   ///< of each line, then the size of codes
  };
  std::array<Part, 3> parts;       ///< by Split; empty where there is none
  std::vector<char32_t> alphabet;  ///< of the training part, ascending, unk_symbol last
  std::vector<DataFile> files;
};

/// `ends`, `last_end`: whether lines keep their ends, as in LineRules; `by_lines`: fractions of one file are cut
/// between lines.
Corpus load_corpus(const CorpusOptions& options, const std::string& directory, bool ends, bool last_end, bool by_lines);

/// How load_corpus takes lines from a text.
LineRules line_rules(const CorpusOptions& options, bool ends, bool last_end);
/// Class numbers of the text of some lines that begin with number `line` of a file. Error(Exit::data) names the place of
/// a character that the alphabet does not have, unless unknown ones are a symbol.
std::vector<std::uint16_t> encode_text(std::u32string_view text, const std::vector<char32_t>& alphabet,
                                       const CorpusOptions& options, const std::string& file, std::size_t line);

/// As UTF-8; unk_symbol is `<unk>`.
std::string text_of(char32_t point);

}  // namespace stiefel
