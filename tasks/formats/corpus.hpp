/// A text as class numbers of its characters or words, in three parts: those of a published set, or the user's own.
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
  std::string units = "characters", trim = "none", unk = "letters", unknown = "error";
  Index longest = 0, train_lines = 0;

  void describe(Schema& s);
  bool words() const { return units == "words"; }
};

/// The classes of a text, in ascending order: its characters, or its words and the ends of its lines. `<unk>` as one
/// symbol comes after all characters.
class Alphabet {
 public:
  Alphabet() = default;
  /// Reads a training text; `path` is for errors.
  Alphabet(const Lines& train, const CorpusOptions& options, const std::string& path);
  /// That of a trained network, whose texts() it has, with or without blanks at the end of words.
  Alphabet(const std::vector<std::string>& texts, const CorpusOptions& options);

  std::size_t size() const { return symbols_.size(); }
  /// Appends the classes of a text. Its first character or word without a class, unless unknown ones are a symbol, ends
  /// that and is returned.
  std::u32string encode(std::u32string_view text, std::vector<std::uint16_t>& codes) const;
  /// UTF-8 of every class. Words end in the blank that separates them.
  std::vector<std::string> texts() const;

 private:
  void index(const CorpusOptions& options);
  std::uint16_t code(std::u32string_view symbol) const;

  bool words_ = false;
  std::vector<std::u32string> symbols_;
  std::vector<std::uint16_t> of_point_;  // classes of the symbols of one code point
  std::uint16_t unknown_ = 0;            // class of the others, or `no_class`
};

struct Corpus {
  struct Part {
    std::vector<std::uint16_t> codes;
    std::vector<std::size_t> begins;  ///< of each line, then the size of codes
  };
  std::array<Part, 3> parts;  ///< by Split; empty where there is none
  Alphabet alphabet;
  std::vector<DataFile> files;
};

/// `ends`: whether lines keep their ends, as in LineRules; `by_lines`: the last one ends too, and fractions of one file
/// are cut between lines. The alphabet is that of the training text, or that of a trained network.
Corpus load_corpus(const CorpusOptions& options, const TaskContext& context, bool ends, bool by_lines);

/// How load_corpus takes lines from a text.
LineRules line_rules(const CorpusOptions& options, bool ends, bool last_end);
/// Error(Exit::data): a character or a word in a line of a file is not in the training text. `hint` says what to do.
[[noreturn]] void refuse_unknown(std::u32string_view symbol, const std::string& file, std::size_t line,
                                 const std::string& hint);

}  // namespace stiefel
