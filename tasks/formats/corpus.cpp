// Reads the parts, finds the alphabet of the training part and writes all parts in it.
#include "tasks/formats/corpus.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <limits>

#include <stiefel/error.hpp>
#include "tasks/formats/data_path.hpp"

namespace stiefel {

void CorpusOptions::describe(Schema& s) {
  s.field("set", set,
          "published text, unless `train` or `file` names your own: ptb, the Penn Treebank as Mikolov prepared it")
      .one_of({"ptb"});
  s.field("train", train, "UTF-8 text to train on, from the current folder or the data directory");
  s.field("validation", validation, "UTF-8 text for validation, used with `train`");
  s.field("test", test, "UTF-8 text for the test, used with `train`");
  s.field("file", file,
          "one UTF-8 text for all: its end is the test text, and the part before that the validation text");
  s.field("validation_fraction", validation_fraction, "fraction of `file` for validation").at_least(0).less_than(1);
  s.field("test_fraction", test_fraction, "fraction of `file` for the test").at_least(0).less_than(1);
  s.field("trim", trim, "spaces to strip from every line: none, those at its end, or those at both ends")
      .one_of({"none", "end", "both"});
  s.field("unk", unk, "whether `<unk>` is five letters or one symbol").one_of({"letters", "symbol"});
  s.field("unknown", unknown,
          "what to do with characters missing from the training text: report an error, or use the symbol `<unk>`")
      .one_of({"error", "symbol"});
  s.field("longest", longest, "skip lines of more characters than this, line end included; 0: none").at_least(0);
  s.field("train_lines", train_lines,
          "number of lines at the beginning of the training text to train on; the alphabet is that of the whole text; "
          "0: all")
      .at_least(0);
  s.check(train.empty() || file.empty(), "file",
          "cannot be combined with `train`: name either one file or one for each split");
  s.check(!train.empty() || (validation.empty() && test.empty()), "train",
          "must be given with `validation` and `test`");
  s.check(validation_fraction + test_fraction < 1, "test_fraction",
          "leaves nothing to train on together with `validation_fraction`");
}

LineRules line_rules(const CorpusOptions& options, bool ends, bool last_end) {
  return {options.trim == "none"  ? LineRules::Trim::none
          : options.trim == "end" ? LineRules::Trim::end
                                  : LineRules::Trim::both,
          options.unk == "symbol", ends, last_end, static_cast<std::size_t>(options.longest)};
}

std::vector<std::uint16_t> encode_text(std::u32string_view text, const std::vector<char32_t>& alphabet,
                                       const CorpusOptions& options, const std::string& file, std::size_t line) {
  std::vector<std::uint16_t> codes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto found = std::ranges::lower_bound(alphabet, text[i]);
    const bool known = found != alphabet.end() && *found == text[i];
    if (!known && options.unknown != "symbol")
      throw Error(fmt::format("{}: line {} holds U+{:04X} ({}), which the training text does not have", file,
                              line + std::size_t(std::ranges::count(text.substr(0, i), U'\n')), std::uint32_t(text[i]),
                              text[i] < 0x20 ? "a control character" : encode_utf8(text[i])),
                  Exit::data);
    codes.push_back(std::uint16_t(known ? found - alphabet.begin() : std::ptrdiff_t(alphabet.size()) - 1));
  }
  return codes;
}

std::string text_of(char32_t point) { return point == unk_symbol ? "<unk>" : encode_utf8(point); }

namespace {

/// Lines a part of a text has, and where their text is for messages.
struct Source {
  Lines lines;
  std::string path;
};

std::string find_ptb(const std::string& directory, const char* part, const char* what) {
  return find_data_file(directory, {"characters",
                                    fmt::format("the Penn Treebank's {} text", what),
                                    {"ptb", "", "simple-examples/data"},
                                    {fmt::format("ptb.{}.txt", part)},
                                    "stiefel data fetch ptb --data 'DIR'"});
}

Lines cut(const Lines& lines, std::size_t first, std::size_t last, bool by_lines) {
  const std::size_t from = by_lines ? lines.begins[first] : first, to = by_lines ? lines.begins[last] : last;
  Lines part{lines.points.substr(from, to - from), {}};
  for (const std::size_t begin : lines.begins)
    if (begin >= from && begin < to) part.begins.push_back(begin - from);
  part.begins.push_back(to - from);
  return part;
}

std::array<Source, 3> cut_by_fractions(const Source& whole, const CorpusOptions& options, bool by_lines) {
  const std::size_t all = by_lines ? whole.lines.begins.size() - 1 : whole.lines.points.size();
  const auto test = static_cast<std::size_t>(options.test_fraction * double(all)),
             validation = static_cast<std::size_t>(options.validation_fraction * double(all)),
             train = all - test - validation;
  return {{{cut(whole.lines, 0, train, by_lines), whole.path},
           {cut(whole.lines, train, train + validation, by_lines), whole.path},
           {cut(whole.lines, train + validation, all, by_lines), whole.path}}};
}

std::vector<char32_t> alphabet_of(const Source& train, bool unk) {
  std::vector<bool> seen(unk_symbol + 1, false);
  for (const char32_t point : train.lines.points) seen[point] = true;
  if (unk) seen[unk_symbol] = true;
  std::vector<char32_t> alphabet;
  for (char32_t point = 0; point <= unk_symbol; ++point)
    if (seen[point]) alphabet.push_back(point);
  if (alphabet.size() >= std::numeric_limits<std::uint16_t>::max())
    throw Error(fmt::format("{}: {} different characters are too many to predict", train.path, alphabet.size()),
                Exit::data);
  return alphabet;
}

[[noreturn]] void refuse_unknown(char32_t point, const Source& source) {
  const std::u32string text = read_text(source.path);
  const std::size_t place = std::min(text.find(point), text.size());
  throw Error(fmt::format("{}: line {} holds U+{:04X} ({}), which the training text does not have. Use `unknown: "
                          "symbol` to read such characters "
                          "as the symbol <unk>.",
                          source.path, std::count(text.begin(), text.begin() + std::ptrdiff_t(place), U'\n') + 1,
                          std::uint32_t(point), point < 0x20 ? "a control character" : encode_utf8(point)),
              Exit::data);
}

Corpus::Part encode(const Source& source, const std::vector<char32_t>& alphabet, bool unknown) {
  constexpr std::uint16_t none = std::numeric_limits<std::uint16_t>::max();
  std::vector<std::uint16_t> codes(unk_symbol + 1, unknown ? std::uint16_t(alphabet.size() - 1) : none);
  for (std::size_t i = 0; i < alphabet.size(); ++i) codes[alphabet[i]] = std::uint16_t(i);
  Corpus::Part part{{}, source.lines.begins};
  part.codes.reserve(source.lines.points.size());
  for (const char32_t point : source.lines.points) {
    if (codes[point] == none) refuse_unknown(point, source);
    part.codes.push_back(codes[point]);
  }
  return part;
}

class Loader {
 public:
  Loader(const CorpusOptions& options, const std::string& directory, bool ends, bool last_end)
      : options_(options), directory_(directory), rules_(line_rules(options, ends, last_end)) {}

  std::array<Source, 3> load(bool by_lines) {
    if (!options_.file.empty()) return cut_by_fractions(user("text", options_.file), options_, by_lines);
    if (!options_.train.empty())
      return {{user("train", options_.train), user("validation", options_.validation), user("test", options_.test)}};
    return {{read("ptb/ptb.train.txt", find_ptb(directory_, "train", "training")),
             read("ptb/ptb.valid.txt", find_ptb(directory_, "valid", "validation")),
             read("ptb/ptb.test.txt", find_ptb(directory_, "test", "test"))}};
  }
  std::vector<DataFile> files;

 private:
  Source read(const std::string& name, const std::string& path) {
    files.push_back({name, path});
    return {take_lines(read_text(path), rules_), path};
  }
  Source user(const std::string& what, const std::string& name) {
    return name.empty() ? Source{{{}, {0}}, ""} : read(what, find_own_data(directory_, "characters", name));
  }

  const CorpusOptions& options_;
  const std::string& directory_;
  LineRules rules_;
};

}  // namespace

Corpus load_corpus(const CorpusOptions& options, const std::string& directory, bool ends, bool last_end,
                   bool by_lines) {
  Loader loader(options, directory, ends, last_end);
  std::array<Source, 3> sources = loader.load(by_lines);
  Corpus corpus;
  corpus.files = loader.files;
  if (sources[0].lines.points.empty())
    throw Error(fmt::format("{}: there is no text to train on{}.", sources[0].path,
                            options.longest > 0 ? fmt::format(" in lines of at most {} characters", options.longest)
                                                : ". Replace the file"),
                Exit::data);
  const bool unknown = options.unknown == "symbol";
  corpus.alphabet = alphabet_of(sources[0], unknown || options.unk == "symbol");
  const auto lines = static_cast<std::size_t>(options.train_lines);
  if (lines > 0 && lines + 1 < sources[0].lines.begins.size())
    sources[0].lines = cut(sources[0].lines, 0, lines, /*by_lines=*/true);
  for (std::size_t i = 0; i < sources.size(); ++i) corpus.parts[i] = encode(sources[i], corpus.alphabet, unknown);
  return corpus;
}

}  // namespace stiefel
