// Reads the parts, finds the alphabet of the training part and writes all parts in it.
#include "tasks/formats/corpus.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <unordered_set>

#include <stiefel/error.hpp>
#include "tasks/formats/data_path.hpp"
#include "tasks/formats/fraction.hpp"

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
  s.field("validation_fraction", validation_fraction, "fraction of `file` for validation")
      .at_least(0)
      .less_than(1)
      .only_if(!file.empty(), "`file`");
  s.field("test_fraction", test_fraction, "fraction of `file` for the test")
      .at_least(0)
      .less_than(1)
      .only_if(!file.empty(), "`file`");
  s.field("units", units, "a symbol is a character, or a word between spaces or tabs; so is the end of a line")
      .one_of({"characters", "words"})
      .not_in_id_at_default();
  s.field("trim", trim, "characters: spaces to strip from every line: none, those at its end, or those at both ends")
      .one_of({"none", "end", "both"});
  s.field("unk", unk, "characters: whether `<unk>` is five letters or one symbol; among words it is one")
      .one_of({"letters", "symbol"});
  s.field("unknown", unknown,
          "what to do with characters or words missing from the training text: report an error, or use the symbol "
          "`<unk>`")
      .one_of({"error", "symbol"});
  s.field("longest", longest,
          "characters: skip lines of more than this many characters, line end included; 0: no limit")
      .at_least(0);
  s.field("train_lines", train_lines,
          "number of lines at the beginning of the training text to train on; the alphabet is that of the whole text; "
          "0: all")
      .at_least(0)
      .not_in_id_at_default();
  s.check(!words() || trim == "none", "trim", "is for `units: characters`; words have no blanks");
  s.check(!words() || longest == 0, "longest", "is for `units: characters`");
  s.check(train.empty() || file.empty(), "file",
          "cannot be combined with `train`: name either one file or one for each split");
  s.check(!train.empty() || (validation.empty() && test.empty()), "train",
          "must be given with `validation` and `test`");
  s.check(file.empty() || validation_fraction + test_fraction < 1, "test_fraction",
          "leaves nothing to train on together with `validation_fraction`");
}

LineRules line_rules(const CorpusOptions& options, bool ends, bool last_end) {
  return {options.trim == "none"  ? LineRules::Trim::none
          : options.trim == "end" ? LineRules::Trim::end
                                  : LineRules::Trim::both,
          options.words() || options.unk == "symbol", ends, last_end, static_cast<std::size_t>(options.longest)};
}

namespace {

constexpr std::uint16_t no_class = std::numeric_limits<std::uint16_t>::max();
constexpr std::u32string_view blanks = U" \t\v\f";

/// The first character or word of a text, which it loses; empty at its end.
std::u32string_view take_symbol(std::u32string_view& text, bool words) {
  if (words) text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  std::size_t length = std::min<std::size_t>(text.size(), 1);
  if (words && !text.empty() && text[0] != U'\n') length = std::min(text.find_first_of(U" \t\v\f\n"), text.size());
  const std::u32string_view symbol = text.substr(0, length);
  text.remove_prefix(length);
  return symbol;
}

std::u32string_view line_of(const Lines& lines, std::size_t i) {
  return std::u32string_view(lines.points).substr(lines.begins[i], lines.begins[i + 1] - lines.begins[i]);
}

std::string text_of(std::u32string_view symbol) {
  std::string text;
  for (const char32_t point : symbol) text += point == unk_symbol ? "<unk>" : encode_utf8(point);
  return text;
}

}  // namespace

Alphabet::Alphabet(const Lines& train, const CorpusOptions& options, const std::string& path)
    : words_(options.words()) {
  std::vector<bool> points(unk_symbol + 1, false);
  std::unordered_set<std::u32string_view> words;
  points[unk_symbol] = options.unknown == "symbol" || (!words_ && options.unk == "symbol");
  for (std::size_t i = 0; i + 1 < train.begins.size(); ++i) {
    std::u32string_view rest = line_of(train, i);
    for (std::u32string_view symbol; !(symbol = take_symbol(rest, words_)).empty();)
      if (symbol.size() == 1)
        points[symbol[0]] = true;
      else
        words.insert(symbol);
  }
  symbols_.assign(words.begin(), words.end());
  for (char32_t point = 0; point <= unk_symbol; ++point)
    if (points[point]) symbols_.push_back({point});
  std::ranges::sort(symbols_);
  if (symbols_.size() >= no_class)
    throw Error(fmt::format("{}: {} different {} are too many to predict{}", path, symbols_.size(), options.units,
                            words_ ? ": at most 65534. Replace rare words with <unk>" : ""),
                Exit::data);
  index(options);
}

Alphabet::Alphabet(const std::vector<std::string>& texts, const CorpusOptions& options) : words_(options.words()) {
  for (std::string text : texts) {
    if (words_ && text.size() > 1 && text.ends_with(' ')) text.pop_back();
    symbols_.push_back(text == "<unk>" ? std::u32string{unk_symbol} : decode_text(text, "the trained network"));
  }
  index(options);
}

void Alphabet::index(const CorpusOptions& options) {
  of_point_.assign(unk_symbol + 1, no_class);
  for (std::size_t i = 0; i < symbols_.size(); ++i)
    if (symbols_[i].size() == 1) of_point_[symbols_[i][0]] = std::uint16_t(i);
  unknown_ = options.unknown == "symbol" ? of_point_[unk_symbol] : no_class;
  std::ranges::replace(of_point_, no_class, unknown_);
}

std::uint16_t Alphabet::code(std::u32string_view symbol) const {
  if (symbol.size() == 1) return of_point_[symbol[0]];
  const auto found = std::ranges::lower_bound(symbols_, symbol);
  return found != symbols_.end() && *found == symbol ? std::uint16_t(found - symbols_.begin()) : unknown_;
}

std::u32string Alphabet::encode(std::u32string_view text, std::vector<std::uint16_t>& codes) const {
  for (std::u32string_view symbol; !(symbol = take_symbol(text, words_)).empty();) {
    const std::uint16_t found = code(symbol);
    if (found == no_class) return std::u32string(symbol);
    codes.push_back(found);
  }
  return {};
}

std::vector<std::string> Alphabet::texts() const {
  std::vector<std::string> texts;
  for (const std::u32string& symbol : symbols_)
    texts.push_back(text_of(symbol) + (words_ && symbol != U"\n" ? " " : ""));
  return texts;
}

void refuse_unknown(std::u32string_view symbol, const std::string& file, std::size_t line, const std::string& hint) {
  const std::string what = symbol.size() > 1  ? fmt::format("the word \"{}\"", text_of(symbol))
                           : symbol[0] < 0x20 ? fmt::format("U+{:04X} (a control character)", std::uint32_t(symbol[0]))
                                              : fmt::format("U+{:04X} ({})", std::uint32_t(symbol[0]), text_of(symbol));
  throw Error(fmt::format("{}: line {} holds {}, which the training text does not have{}", file, line, what, hint),
              Exit::data);
}

namespace {

/// Lines a part of a text has, and where their text is for messages.
struct Source {
  Lines lines;
  std::string path;
};

std::string find_ptb(const std::string& directory, const char* part, const char* what) {
  return find_data_file(
      directory,
      {"characters",
       fmt::format("the Penn Treebank's {} text", what),
       {"ptb", "", "simple-examples/data"},
       {fmt::format("ptb.{}.txt", part)},
       "It may not be redistributed: `stiefel data fetch ptb --data 'DIR'` says where to get it and where to put it."});
}

Lines cut(const Lines& lines, std::size_t first, std::size_t last, bool by_lines) {
  const std::size_t from = by_lines ? lines.begins[first] : first, to = by_lines ? lines.begins[last] : last;
  Lines part{lines.points.substr(from, to - from), {}};
  for (const std::size_t begin : lines.begins)
    if (begin >= from && begin < to) part.begins.push_back(begin - from);
  part.begins.push_back(to - from);
  if (part.begins.front() > 0) part.begins.insert(part.begins.begin(), 0);  // cut within a line
  return part;
}

std::array<Source, 3> cut_by_fractions(const Source& whole, const CorpusOptions& options, bool by_lines) {
  const std::size_t all = by_lines ? whole.lines.begins.size() - 1 : whole.lines.points.size();
  const char* remedy = !by_lines         ? "give a longer text"
                       : options.words() ? "break the text into more lines"
                                         : "use `mode: stream`";
  const auto share = [&](const char* key, double fraction) {
    return std::size_t(share_of(Index(all), fraction, key, whole.path, by_lines ? "line" : "character", remedy));
  };
  const std::size_t validation = share("validation_fraction", options.validation_fraction),
                    test = share("test_fraction", options.test_fraction), train = all - test - validation;
  return {{{cut(whole.lines, 0, train, by_lines), whole.path},
           {cut(whole.lines, train, train + validation, by_lines), whole.path},
           {cut(whole.lines, train + validation, all, by_lines), whole.path}}};
}

/// Names the first line that is read and holds the symbol.
[[noreturn]] void refuse_unknown_in(const std::string& path, std::u32string_view symbol, const CorpusOptions& options) {
  const LineRules rules = line_rules(options, /*ends=*/true, /*last_end=*/false);
  const std::u32string text = read_text(path);
  std::u32string_view rest = text;
  std::size_t number = 0;
  for (bool found = false; !found && !rest.empty(); ++number) {
    const std::size_t length = std::min(rest.find(U'\n'), rest.size() - 1) + 1;
    const Lines line = take_lines(rest.substr(0, length), rules);
    rest.remove_prefix(length);
    std::u32string_view left = line.points, next;
    while (!found && !(next = take_symbol(left, options.words())).empty()) found = next == symbol;
  }
  refuse_unknown(symbol, path, number,
                 fmt::format(". Use `unknown: symbol` to read such {} as the symbol <unk>.", options.units));
}

Corpus::Part encode(const Source& source, const Alphabet& alphabet, const CorpusOptions& options) {
  Corpus::Part part;
  const Lines& lines = source.lines;
  for (std::size_t i = 0; i + 1 < lines.begins.size(); ++i) {
    part.begins.push_back(part.codes.size());
    const std::u32string unknown = alphabet.encode(line_of(lines, i), part.codes);
    if (!unknown.empty()) refuse_unknown_in(source.path, unknown, options);
  }
  part.begins.push_back(part.codes.size());
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

Corpus load_corpus(const CorpusOptions& options, const TaskContext& context, bool ends, bool by_lines) {
  Loader loader(options, context.data_directory, ends, by_lines);
  std::array<Source, 3> sources = loader.load(by_lines || options.words());
  Corpus corpus;
  corpus.files = loader.files;
  if (sources[0].lines.points.empty())
    throw Error(fmt::format("{}: there is no text to train on{}.", sources[0].path,
                            options.longest > 0 ? fmt::format(" in lines of at most {} characters", options.longest)
                                                : ". Replace the file"),
                Exit::data);
  corpus.alphabet = context.trained ? Alphabet(context.trained->form.outputs, options)
                                    : Alphabet(sources[0].lines, options, sources[0].path);
  const auto lines = static_cast<std::size_t>(options.train_lines);
  if (lines > 0 && lines + 1 < sources[0].lines.begins.size())
    sources[0].lines = cut(sources[0].lines, 0, lines, /*by_lines=*/true);
  for (std::size_t i = 0; i < sources.size(); ++i) corpus.parts[i] = encode(sources[i], corpus.alphabet, options);
  return corpus;
}

}  // namespace stiefel
