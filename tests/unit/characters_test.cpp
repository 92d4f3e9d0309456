// The task of characters on small texts made here and, where STIEFEL_DATA names a folder with it, on the Penn Treebank.
#include "scratch.hpp"
#include "task_plugins.hpp"

#include <doctest/doctest.h>
#include <cmath>
#include <iostream>
#include <map>
#include <set>

#include <fmt/format.h>

using namespace stiefel;
using namespace task_plugins;
using scratch::Folder;
namespace fs = std::filesystem;

namespace {

constexpr Split splits[] = {Split::train, Split::validation, Split::test};

template <class S = float>
auto characters(const Folder& folder, const std::string& options, Index batch = 1, std::uint64_t seed = 1) {
  return make<S>("characters", options, {seed, batch, folder.path.string()});
}

/// Four lines of training text over a, b, c, and two of the others.
struct Small : Folder {
  Small() {
    scratch::write(path / "train.txt", " abca \n bb \nc\n\n");
    scratch::write(path / "valid.txt", "abc\ncab\n");
    scratch::write(path / "test.txt", "ca\nbbbb");
  }
};
const std::string files = "train: train.txt, validation: valid.txt, test: test.txt";

/// "inputs>targets" of sequence b, −1 as `_`, masked targets in brackets; by the alphabet given.
std::string shown(Batch<float>& batch, Index b, const std::string& alphabet) {
  std::string inputs, targets;
  for (Index t = 0; t < batch.length(b); ++t) {
    inputs += batch.symbol(t, b) < 0 ? '_' : alphabet[std::size_t(batch.symbol(t, b))];
    const char target = alphabet[std::size_t(batch.label(t, b))];
    targets += batch.weight(t, b) > 0 ? std::string{target} : "[]";
  }
  return inputs + ">" + targets;
}

std::multiset<std::string> all_of(const Task<float>& task, Split split, const std::string& alphabet) {
  std::multiset<std::string> all;
  for (Index i = 0; i < task.batches(split); ++i) {
    Batch<float> batch = batch_of(task, split, i);
    for (Index b = 0; b < batch.sequences(); ++b) all.insert(shown(batch, b, alphabet));
  }
  return all;
}

using Texts = std::multiset<std::string>;

std::string refusal(const Folder& folder, const std::string& options, Exit code = Exit::data) {
  return refusal_of([&] { return characters(folder, options); }, code);
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("sentences: inputs, targets, classes") {
  const Small folder;
  const auto task = characters(folder, "{" + files + "}");
  const TaskShape shape = task->shape();
  CHECK((shape.input == InputKind::symbols && shape.input_size == 4 && shape.output_size == 4 && shape.labels &&
         !shape.streams));
  CHECK((shape.readout == ReadoutKind::every && shape.steps == 5));
  CHECK(all_of(*task, Split::train, " abc") == Texts{" abca>abca ", " bb>bb "});
  CHECK(all_of(*task, Split::validation, " abc") == Texts{"ab>bc", "ca>ab"});
  CHECK(all_of(*task, Split::test, " abc") == Texts{"c>a", "bbb>bbb"});
  CHECK(task->files().size() == 3);
  const auto trimmed = characters(folder, "{trim: end, ahead: 2, " + files + "}");
  CHECK(all_of(*trimmed, Split::train, " abc") == Texts{" ab>bca", " >b"});
  const auto ended = characters(folder, "{trim: both, end_symbol: true, " + files + "}");
  CHECK(all_of(*ended, Split::train, "\nabc") == Texts{"abca>bca\n", "bb>b\n", "c>\n"});
  CHECK(all_of(*ended, Split::test, "\nabc") == Texts{"ca>a\n", "bbbb>bbb\n"});
  CHECK(characters(folder, "{least_targets: 4, train: train.txt}")->batches(Split::train) == 1);
}

TEST_CASE("sentences: batches of unequal lengths, epochs, weights") {
  const Small folder;
  const auto task = characters(folder, "{average: {validation: sentences}, " + files + "}", 2);
  CHECK((task->batches(Split::train) == 1 && task->batches(Split::validation) == 1));
  for (Index i = 0; i < 4; ++i) {
    Batch<float> batch = batch_of(*task, Split::train, i);
    REQUIRE(batch.sequences() == 2);
    CHECK(std::set<Index>{batch.length(0), batch.length(1)} == std::set<Index>{3, 5});
    CHECK(batch.steps() == 5);
  }
  Batch<float> validation = batch_of(*task, Split::validation, 0), test = batch_of(*task, Split::test, 0);
  for (Index b = 0; b < 2; ++b)
    for (Index t = 0; t < validation.length(b); ++t) CHECK(validation.weight(t, b) == 0.5f);
  for (Index b = 0; b < 2; ++b)
    for (Index t = 0; t < test.length(b); ++t) CHECK(test.weight(t, b) == 1);
  const auto larger = characters(folder, "{evaluation_batch: 2, " + files + "}");
  CHECK((larger->batches(Split::train) == 2 && larger->batches(Split::test) == 1 &&
         batch_of(*larger, Split::test, 0).sequences() == 2));
  std::string text;
  for (int i = 0; i < 40; ++i) text += fmt::format("{} {}\n", i, 'a' + i);
  scratch::write(folder.path / "many.txt", text);
  const auto many = characters(folder, "{train: many.txt}", 4), other = characters(folder, "{train: many.txt}", 4, 2);
  CHECK(
      (many->batches(Split::train) == 10 && many->batches(Split::validation) == 0 && many->batches(Split::test) == 0));
  std::vector<std::vector<std::int32_t>> epochs(2);
  for (Index i = 0; i < 20; ++i) {
    const Batch<float> batch = batch_of(*many, Split::train, i);
    for (const std::int32_t symbol : batch.symbols()) epochs[std::size_t(i / 10)].push_back(symbol);
  }
  CHECK(epochs[0] != epochs[1]);
  CHECK(batch_of(*many, Split::train, 7).symbols() == batch_of(*many, Split::train, 7).symbols());
  CHECK(batch_of(*many, Split::train, 7).symbols() != batch_of(*other, Split::train, 7).symbols());
}

TEST_CASE("streams continue from batch to batch, and each epoch reads the same pieces") {
  const Folder folder;
  std::string text;  // character number i is 'A' + i
  for (int i = 0; i < 26; ++i) text += char('A' + i);
  scratch::write(folder.path / "train.txt", text);
  scratch::write(folder.path / "test.txt", "DEFGHIJKLMNO");
  const auto task = characters(folder, "{mode: stream, bptt: 3, train: train.txt, test: test.txt}", 3);
  CHECK((task->shape().streams && task->shape().steps == 3 && task->shape().input_size == 26));
  CHECK((task->batches(Split::train) == 3 && task->batches(Split::test) == 2 && task->batches(Split::validation) == 0));
  // Together the sequences read the circle once; the rest of the last piece is masked: 3 · 9 − 26 = 1.
  std::array<std::string, 3> read;
  for (Index i = 0; i < 3; ++i) {
    Batch<float> batch = batch_of(*task, Split::train, i);
    for (Index b = 0; b < 3; ++b)
      for (Index t = 0; t < batch.length(b); ++t) {
        const std::int32_t symbol = batch.symbol(t, b);
        CHECK((symbol < 0) == (batch.weight(t, b) == 0));
        if (symbol < 0) continue;
        CHECK(batch.label(t, b) == (symbol + 1) % 26);
        read[std::size_t(b)] += char('A' + symbol);
      }
  }
  const std::string line = read[0] + read[1] + read[2];
  CHECK(line.size() == 26);
  for (std::size_t i = 1; i < line.size(); ++i) CHECK(line[i] == (line[i - 1] == 'Z' ? 'A' : line[i - 1] + 1));
  for (Index i = 0; i < 3; ++i)
    CHECK(batch_of(*task, Split::train, i + 3).symbols() == batch_of(*task, Split::train, i).symbols());
  CHECK(all_of(*task, Split::test, text) == Texts{"DEF>EFG", "HIJ>IJK", "LMN>MNO", "G>H", "K>L", "_>[]"});
  bool other_origin = false;
  for (std::uint64_t seed = 2; seed < 6; ++seed) {
    const auto again = characters(folder, "{mode: stream, bptt: 3, train: train.txt}", 3, seed);
    other_origin =
        other_origin || batch_of(*again, Split::train, 0).symbols() != batch_of(*task, Split::train, 0).symbols();
  }
  CHECK(other_origin);
}

TEST_CASE("streams: line ends are symbols, a batch larger than the text is masked") {
  const Small folder;
  const auto one = characters(folder, "{mode: stream, trim: both, bptt: 30, ahead: 2, " + files + "}", 1);
  CHECK(all_of(*one, Split::test, "\nabc") == Texts{"ca\nbb>\nbbbb"});
  const auto many = characters(folder, "{mode: stream, trim: both, " + files + "}", 20);
  Batch<float> batch = batch_of(*many, Split::validation, 0);
  CHECK((batch.sequences() == 20 && batch.steps() == 1 && many->batches(Split::validation) == 1));
  double weight = 0;
  for (Index b = 0; b < 20; ++b) weight += batch.weight(0, b);
  CHECK(weight == 7);
}

TEST_CASE("one file is cut by fractions") {
  const Folder folder;
  std::string lines, letters;
  for (int i = 0; i < 20; ++i) (lines += char('a' + i)) += "!\n", letters += char('a' + i % 3);
  scratch::write(folder.path / "lines.txt", lines);
  scratch::write(folder.path / "letters.txt", letters);
  const auto sentences =
      characters(folder, "{file: lines.txt, test_fraction: 0.2, validation_fraction: 0.1, unknown: symbol}");
  CHECK((sentences->batches(Split::train) == 14 && sentences->batches(Split::validation) == 2 &&
         sentences->batches(Split::test) == 4));
  CHECK(sentences->shape().output_size == 16);  // ! and 14 letters and the symbol
  CHECK(all_of(*sentences, Split::test, "!abcdefghijklmn?") == Texts{"?>!", "?>!", "?>!", "?>!"});
  CHECK(sentences->files().size() == 1);
  const auto few = characters(
      folder, "{file: lines.txt, test_fraction: 0.2, validation_fraction: 0.1, unknown: symbol, train_lines: 3}");
  CHECK((few->batches(Split::train) == 3 && few->batches(Split::test) == 4 && few->shape().output_size == 16));
  const auto stream = characters(
      folder, "{mode: stream, file: letters.txt, test_fraction: 0.25, validation_fraction: 0.25, bptt: 100}");
  CHECK(all_of(*stream, Split::validation, "abc") == Texts{"bcab>cabc"});
  CHECK(all_of(*stream, Split::test, "abc") == Texts{"abca>bcab"});
}

TEST_CASE("code points are characters; <unk> may be one") {
  const Folder folder;
  scratch::write(folder.path / "train.txt", "\xc3\xa4\xe2\x82\xac<unk>\xf0\x9f\x98\x80\n");
  CHECK(characters(folder, "{train: train.txt}")->shape().output_size == 8);
  const auto task = characters(folder, "{train: train.txt, unk: symbol}");
  CHECK(task->shape().output_size == 4);
  CHECK(all_of(*task, Split::train, "aE:u") == Texts{"aEu>Eu:"});
}

TEST_CASE("words are what is between blanks, and ends of lines") {
  const Folder folder;
  scratch::write(folder.path / "train.txt", " the cat\tsaw  <unk>\nthe a\n\n\xc3\xa4rger saw\n");
  scratch::write(folder.path / "test.txt", "cat the <unk>");
  const std::string texts = "units: words, train: train.txt, test: test.txt";
  const std::string options = "{mode: stream, " + texts + "}";
  const auto stream = characters(folder, options);
  CHECK(stream->alphabet() == std::vector<std::string>{"\n", "a ", "cat ", "saw ", "the ", "\xc3\xa4rger ", "<unk> "});
  CHECK(all_of(*stream, Split::test, "/acstru") == Texts{"ct>tu"});
  const auto ahead = characters(folder, "{mode: stream, ahead: 2, " + texts + "}");
  CHECK(ahead->alphabet().empty());
  CHECK(ahead->form().outputs == std::vector<std::string>{"\n", "a", "cat", "saw", "the", "\xc3\xa4rger", "<unk>"});
  const auto sentences = characters(folder, "{" + texts + "}");
  CHECK(sentences->shape().output_size == 6);
  CHECK(all_of(*sentences, Split::train, "acstru") == Texts{"tcs>csu", "t>a", "r>s"});
  const auto ended = characters(folder, "{end_symbol: true, longest: 0, " + texts + "}");
  CHECK(all_of(*ended, Split::train, "/acstru") == Texts{"tcsu>csu/", "ta>a/", "rs>s/"});
  CHECK((stream->metrics()[0].name == "perplexity" && stream->metrics()[0].exponential));

  scratch::write(folder.path / "new.txt", "the saw\nthe dog\n");
  CHECK(refusal_of([&] { open("characters", options, *stream, folder.path.string()); }) ==
        folder.path.string() + ": cannot be read");
  const auto reader = open("characters", options, *stream, (folder.path / "new.txt").string());
  Batch<float> batch;
  REQUIRE((reader->next() && reader->read(3, batch)));
  CHECK(batch.symbols() == std::vector<std::int32_t>{4, 3, 0});
  CHECK_THROWS_WITH_AS(reader->read(3, batch),
                       doctest::Contains("line 2 holds the word \"dog\", which the training text does not have"),
                       Error);
  const std::string split = "{units: words, train: train.txt, test: new.txt}";
  CHECK(contains(refusal(folder, split),
                 "new.txt: line 2 holds the word \"dog\", which the training text does not "
                 "have. Use `unknown: symbol` to read such words as the symbol <unk>."));
  const auto lenient =
      characters(folder, "{unknown: symbol, mode: stream, units: words, train: train.txt, test: new.txt}");
  CHECK(all_of(*lenient, Split::test, "/acstru") == Texts{"ts/tu>s/tu/"});
  CHECK(contains(refusal(folder, "{trim: end, " + texts + "}", Exit::usage), "is for `units: characters`"));
  CHECK(contains(refusal(folder, "{longest: 5, " + texts + "}", Exit::usage), "is for `units: characters`"));
  scratch::write(folder.path / "plural.txt", "the <unk>s saw <unk>\n");
  const auto plural =
      characters(folder, "{unknown: symbol, mode: stream, units: words, train: plural.txt, test: new.txt}");
  CHECK(plural->alphabet().back() == "<unk>s ");
  CHECK(all_of(*plural, Split::test, "/stup") == Texts{"ts/tu>s/tu/"});
  scratch::write(folder.path / "one.txt",
                 "one two three four five six seven eight nine ten\neins zwei\ndrei vier\nf\nb\n");
  const auto cut = characters(folder,
                              "{file: one.txt, units: words, unknown: symbol, mode: stream, test_fraction: 0.2, "
                              "validation_fraction: 0.2, bptt: 9}");
  CHECK((cut->batches(Split::train) == 2 && cut->shape().output_size == 16));
  CHECK(all_of(*cut, Split::validation, "/abcdefghijklmnu") == Texts{"u>/"});
  CHECK(all_of(*cut, Split::test, "/abcdefghijklmnu") == Texts{"u>/"});
}

TEST_CASE("the frequencies of the training targets reach the baseline on the test split") {
  const Small folder;
  for (const char* options : {"", "average: {test: sentences}, ", "mode: stream, ", "ahead: 2, "}) {
    CAPTURE(options);
    const auto task = characters<double>(folder, std::string("{") + options + files + "}", 2);
    double sum = 0, weights = 0;
    for (Index i = 0; i < task->batches(Split::test); ++i) {
      const Batch<double> batch = batch_of(*task, Split::test, i);
      Matrix<double> output = Matrix<double>::Zero(task->shape().output_size, Index(batch.weights().size()));
      for (Index c = 0; c < output.cols(); ++c) task->trivial(0, {output.col(c).data(), std::size_t(output.rows())});
      std::vector<double> weight = batch.weights();
      for (Index b = 0; b < batch.sequences(); ++b)
        for (Index t = batch.length(b); t < batch.steps(); ++t) weight[std::size_t(batch.scored(t, b))] = 0;
      const Targets<double> targets{batch.targets(), batch.labels(), weight};
      sum += task->loss(output, targets, mat<double>(nullptr, 0, 0, 0));
      weights += total_weight(targets);
    }
    CHECK(task->baseline() == doctest::Approx(sum / weights).epsilon(1e-12));
  }
  const auto task = characters<double>(folder, "{" + files + "}");
  // Training targets: a twice, b three times, c once, a blank twice; the test asks for a once, b three times.
  CHECK(task->baseline() == doctest::Approx(-(std::log(2. / 8) + 3 * std::log(3. / 8)) / 4));
  const Batch<double> batch = batch_of(*task, Split::test, 0);
  std::vector<Ratio> ratios(2);
  const Matrix<double> output = trivial_output(*task, batch);
  task->measure(output, targets_of(batch), ratios);
  CHECK(ratios[0].sum / ratios[0].weight == doctest::Approx(trivial_loss(*task, batch) / std::log(2.)));
  CHECK((task->metrics()[0].name == "bpc" && !task->metrics()[0].higher_is_better &&
         task->metrics()[1].name == "accuracy"));
}

TEST_CASE("what cannot be is refused with the mend") {
  const Small folder;
  const auto says = [&](const std::string& options, const std::string& part, Exit code = Exit::data) {
    const std::string text = refusal(folder, options, code);
    CAPTURE(text);
    CHECK(contains(text, part));
  };
  says("", "characters needs the Penn Treebank's training text, but there is no ptb.train.txt in");
  says("", "It may not be redistributed: `stiefel data fetch ptb --data '" + folder.path.string() + "'` says where");
  says("{train: absent.txt}", "characters: there is no absent.txt, and none in " + folder.path.string());
  says("{train: /absent.txt}", "characters: there is no /absent.txt. Give its path");
  scratch::write(folder.path / "other.txt", "abc\nab\xc3\xa4\n");
  says("{train: train.txt, test: other.txt}",
       "other.txt: line 2 holds U+00E4 (\xc3\xa4), which the training text does not have. Use `unknown: symbol`");
  scratch::write(folder.path / "other.txt", "cbcbcb\xc3\xa4\ncb\ncb\xc3\xa4\n");
  says("{train: train.txt, test: other.txt, longest: 5}", "other.txt: line 3 holds U+00E4");
  scratch::write(folder.path / "latin1.txt", "abc\nab\xe4\n");
  says("{train: latin1.txt}", "latin1.txt: byte 6 (line 2) is e4");
  scratch::write(folder.path / "empty.txt", "");
  scratch::write(folder.path / "short.txt", "a\nb\n");
  says("{train: empty.txt, validation: train.txt}", "empty.txt: there is no text to train on. Replace the file.");
  says("{train: short.txt}", "the train text has no character 1 ahead of another in any line that is kept");
  says("{train: train.txt, validation: short.txt}", "the validation text has no character 1 ahead");
  says("{least_targets: 3, " + files + "}", "the validation text has no character 1 ahead");
  says("{train: train.txt, longest: 1}", "train.txt: there is no text to train on in lines of at most 1 characters.");
  for (const char* part : {"train", "valid", "test"})
    scratch::write(folder.path / fmt::format("ptb.{}.txt", part), *part == 't' && part[1] == 'r' ? "" : "a b c\n");
  says("", "ptb.train.txt: there is no text to train on. Replace the file.");
  says("{train: train.txt, file: train.txt}", "cannot be combined with `train`", Exit::usage);
  says("{test: test.txt}", "must be given with", Exit::usage);
  says("{file: train.txt, test_fraction: 0.6, validation_fraction: 0.4}", "leaves nothing to train on", Exit::usage);
  CHECK(characters(folder, "{test_fraction: 0.6, validation_fraction: 0.4, " + files + "}"));
  scratch::write(folder.path / "line.txt", "abc abc abc abc abc abc abc\n");
  says("{file: line.txt}",
       "line.txt has 1 line: too few for a `validation_fraction` of 0.05. Raise it, set it to 0, or use `mode: "
       "stream`.");
  says("{file: line.txt, units: words, mode: stream, validation_fraction: 0}",
       "line.txt has 1 line: too few for a `test_fraction` of 0.05. Raise it, set it to 0, or break the text into more "
       "lines.");
  says("{file: short.txt, mode: stream}",
       "short.txt has 4 characters: too few for a `validation_fraction` of 0.05. Raise it, set it to 0, or give a "
       "longer text.");
  says("{mode: stream, end_symbol: true}", "is for `mode: sentences`", Exit::usage);
  says("{mode: stream, average: {test: sentences}}", "must be `sentences`", Exit::usage);
}

TEST_CASE("new text: every line, whatever its length, and errors name the line of the file") {
  const Small folder;
  const std::string file = (folder.path / "new.txt").string();
  for (const char* options : {"{longest: 5, train: train.txt}", "{mode: stream, longest: 5, train: train.txt}"}) {
    const auto task = characters(folder, options);
    const auto steps_of = [&](const std::string& text) {
      scratch::write(file, text);
      const auto reader = open("characters", options, *task, file);
      std::vector<Index> steps;
      Batch<float> batch;
      while (reader->next())
        while (reader->read(100, batch)) steps.push_back(batch.steps());
      return steps;
    };
    const Index end = task->shape().streams;
    CHECK(steps_of("\xef\xbb\xbf"
                   "cbcbcbcbcb\nb b\n") == std::vector<Index>{10 + end, 3 + end});
    CHECK_THROWS_WITH_AS(steps_of("cb\r\ncb\nb\xe4\n"),
                         doctest::Contains((file + ": byte 8 (line 3) is e4, which is not valid UTF-8").c_str()),
                         Error);
    CHECK_THROWS_WITH_AS(steps_of("cb\n\xef\xbb\xbf"
                                  "b\n"),
                         doctest::Contains("line 2 holds U+FEFF"), Error);
  }
}

TEST_CASE("the Penn Treebank") {
  const char* data = std::getenv("STIEFEL_DATA");
  if (!data || !fs::exists(fs::path(data) / "ptb/ptb.train.txt")) {
    std::cout << "skipped: the Penn Treebank; STIEFEL_DATA names no folder with ptb/\n";
    return;
  }
  const auto task = [&](const std::string& options, Index batch = 1) {
    return make<float>("characters", options, {1, batch, data});
  };
  const auto characters_in = [](const Task<float>& made, Split split) {
    double count = 0;
    for (Index i = 0; i < made.batches(split); ++i) count += total_weight(targets_of(batch_of(made, split, i)));
    return Index(count);
  };
  // In a stream every character of the training text is a target, of the others all but the first.
  const auto stream = task("{mode: stream, trim: both, bptt: 1000}", 50);
  CHECK(stream->shape().output_size == 50);
  CHECK(characters_in(*stream, Split::train) == 5017482);
  CHECK(characters_in(*stream, Split::validation) == 393042 - 1);
  CHECK(characters_in(*stream, Split::test) == 442423 - 1);
  const auto unk = task("{mode: stream, trim: both, unk: symbol, bptt: 1000}", 50);
  CHECK(unk->shape().output_size == 49);
  CHECK(characters_in(*unk, Split::train) == 4837402);
  CHECK(characters_in(*unk, Split::validation) == 379102 - 1);
  CHECK(characters_in(*unk, Split::test) == 423247 - 1);
  CHECK(task("{trim: both}")->shape().output_size == 49);
  CHECK(task("{trim: both, unk: symbol}")->shape().output_size == 48);

  // Lines with a blank before them and none behind: as many targets as the trimmed line has characters, on 42,068
  // lines.
  const auto ornn = task("{trim: end}");
  CHECK(ornn->shape().output_size == 49);
  const Index lines[] = {42068, 3370, 3761}, without_ends[] = {4975414, 389672, 438662};
  for (std::size_t s = 0; s < 3; ++s) {
    CHECK(ornn->batches(splits[s]) == lines[s]);
    CHECK(characters_in(*ornn, splits[s]) == without_ends[s]);
  }
  CHECK(task("{trim: end, ahead: 5}")->batches(Split::train) < 42068);

  // Vorontsov et al.: 23 % and 99 % of the lines.
  const auto at_most_75 = task("{unk: symbol, end_symbol: true, longest: 75}"),
             at_most_300 = task("{unk: symbol, end_symbol: true, longest: 300}");
  CHECK(at_most_75->shape().output_size == 49);
  // Zaremba, Sutskever & Vinyals 2014: 10,000 words with the end of a line, 929,589 in the training text.
  const auto words = task("{units: words, mode: stream, bptt: 1000}", 50);
  CHECK(words->shape().output_size == 10000);
  CHECK(characters_in(*words, Split::train) == 929589);
  CHECK(characters_in(*words, Split::validation) == 73760 - 1);
  CHECK(characters_in(*words, Split::test) == 82430 - 1);

  CHECK(double(at_most_75->batches(Split::train)) / 42068 == doctest::Approx(0.23426).epsilon(1e-4));
  CHECK(double(at_most_300->batches(Split::train)) / 42068 == doctest::Approx(0.99368).epsilon(1e-4));
  CHECK((at_most_75->shape().steps < 75 && at_most_300->shape().steps < 300));
}

TEST_CASE("averages over sentences weigh every split as its key says; the accuracy") {
  const Small folder;
  for (const char* key : {"train", "validation", "test"}) {
    CAPTURE(key);
    const auto task = characters(folder, fmt::format("{{average: {{{}: sentences}}, {}}}", key, files), 2);
    for (const Split split : splits) {
      Batch<float> batch = batch_of(*task, split, 0);
      for (Index b = 0; b < 2; ++b)
        for (Index t = 0; t < batch.length(b); ++t)
          CHECK(batch.weight(t, b) == (name_of(split) == std::string(key) ? 1 / float(batch.length(b)) : 1));
    }
  }
  const auto task = characters<double>(folder, "{" + files + "}");
  const Batch<double> batch = batch_of(*task, Split::test, 0);  // ca: the target is a
  Matrix<double> output = Matrix<double>::Zero(4, 1);
  for (const Index answer : {1, 2}) {
    std::vector<Ratio> ratios(2);
    output.setZero();
    output(answer, 0) = 1;
    task->measure(output, targets_of(batch), ratios);
    CHECK((ratios[1].sum == (answer == 1) && ratios[1].weight == 1));
  }
}

TEST_CASE("streams: validation and test are cut into `evaluation_batch` pieces") {
  const Folder folder;
  scratch::write(folder.path / "train.txt", "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
  scratch::write(folder.path / "test.txt", "DEFGHIJKLMNO");
  const auto task =
      characters(folder, "{mode: stream, bptt: 3, train: train.txt, test: test.txt, evaluation_batch: 2}", 5);
  CHECK(batch_of(*task, Split::train, 0).sequences() == 5);
  CHECK(task->batches(Split::test) == 2);
  CHECK(all_of(*task, Split::test, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == Texts{"DEF>EFG", "GHI>HIJ", "JKL>KLM", "MN_>NO[]"});
}
