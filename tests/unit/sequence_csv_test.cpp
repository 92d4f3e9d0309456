// A user's own sequences: CSV files and NumPy arrays made here.
#include "scratch.hpp"
#include "task_plugins.hpp"

#include "host/metric_values.hpp"

#include <doctest/doctest.h>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

using namespace stiefel;
using namespace task_plugins;
using namespace std::string_literals;
using scratch::Folder;

namespace {

template <class S = float>
auto sequences(const Folder& folder, const std::string& options, Index batch = 1, std::uint64_t seed = 1) {
  return make<S>("sequence_csv", options, {seed, batch, folder.path.string()});
}

std::string refusal(const Folder& folder, const std::string& options, Exit code = Exit::data) {
  return refusal_of([&] { return sequences(folder, options); }, code);
}

std::string npy(const std::string& type, const std::string& shape, const std::string& numbers) {
  const std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
  return "\x93NUMPY\1\0"s + char(header.size()) + '\0' + header + numbers;
}
std::string doubles(const std::vector<double>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)};
}

/// Sequence `name` of `steps` rows; its rows are (10 n + t, −t), its target is n at the last row and t/2 at the others.
std::string rows(int name, int steps) {
  std::string text;
  for (int t = 0; t < steps; ++t)
    text += fmt::format("s{},{},{},{}\n", name, 10 * name + t, -t, t + 1 < steps ? t / 2.0 : name);
  return text;
}
const std::string header = "id,x,z,y\n";

/// The first inputs of the sequences of a split.
std::multiset<double> firsts(const Task<float>& task, Split split) {
  std::multiset<double> all;
  for (Index i = 0; i < task.batches(split); ++i) {
    Batch<float> batch = batch_of(task, split, i);
    for (Index b = 0; b < batch.sequences(); ++b) all.insert(batch.input(0, b)[0]);
  }
  return all;
}

}  // namespace

TEST_CASE("regression at the last step and at every one") {
  const Folder folder;
  scratch::write(folder.path / "train.csv", header + rows(1, 3) + rows(2, 2));
  scratch::write(folder.path / "test.csv", header + rows(7, 4));
  const std::string files = "train: train.csv, test: {file: test.csv}, sequence: id, targets: [y]";
  const auto task = sequences(folder, "{" + files + "}", 2);
  const TaskShape shape = task->shape();
  CHECK((shape.input == InputKind::dense && shape.input_size == 2 && shape.output_size == 1 && !shape.labels &&
         shape.steps == 4));
  CHECK(shape.readout == ReadoutKind::last);
  CHECK((task->batches(Split::train) == 1 && task->batches(Split::validation) == 0 && task->batches(Split::test) == 1));
  Batch<float> batch = batch_of(*task, Split::train, 0);
  for (Index b = 0; b < 2; ++b) {
    const float name = batch.target(0, b)[0];
    CHECK(batch.length(b) == (name == 1 ? 3 : 2));
    for (Index t = 0; t < batch.length(b); ++t)
      CHECK((batch.input(t, b)[0] == 10 * name + float(t) && batch.input(t, b)[1] == -float(t)));
  }
  CHECK(task->files().size() == 2);
  CHECK(task->metrics().at(0).name == "mae");

  const auto every = sequences(folder, "{readout: every, features: [z], " + files + "}");
  CHECK((every->shape().readout == ReadoutKind::every && every->shape().input_size == 1));
  Batch<float> test = batch_of(*every, Split::test, 0);
  const float expected[] = {0, 0.5, 1, 7};
  for (Index t = 0; t < 4; ++t) CHECK((test.input(t, 0)[0] == -float(t) && test.target(t, 0)[0] == expected[t]));
}

TEST_CASE("targets that are later inputs are reported, so that no network reads them backwards") {
  const Folder folder;
  std::string next = "id,x,z,next,x_last,first\n";
  for (int id = 0; id < 20; ++id)
    for (int t = 0; t < 5; ++t)
      next +=
          fmt::format("{},{},{},{},{},{}\n", id, id * t, t % 3, id * (t + 1), t == 4 ? std::to_string(id * 4) : "", 7);
  scratch::write(folder.path / "next.csv", next);
  const auto forecasts = [&](const char* options) {
    return sequences(folder, fmt::format("{{data: next.csv, sequence: id, {}}}", options), 2)->shape().predicts_inputs;
  };
  CHECK(forecasts("readout: every, features: [x, z], targets: [next]"));
  CHECK(forecasts("readout: every, features: [z, x], targets: [first, next], target_normalisation: standard"));
  CHECK(!forecasts("readout: every, features: [z], targets: [next]"));
  CHECK(!forecasts("readout: every, features: [x, z], targets: [first]"));
  CHECK(!forecasts("readout: every, features: [x, z], targets: [x_last]"));
  CHECK(!forecasts("readout: last, features: [x, z], targets: [next]"));
}

TEST_CASE("rows of sequences may alternate, targets be missing, a file be one sequence") {
  const Folder folder;
  scratch::write(folder.path / "mixed.csv", "t;id;x\n1;a;10\n5;b;50\n;a;20\n6;b;60\n2;a;30\n");
  const auto task =
      sequences(folder, "{train: mixed.csv, sequence: id, targets: [t], readout: every, separator: \";\"}", 2);
  Batch<float> batch = batch_of(*task, Split::train, 0);
  for (Index b = 0; b < 2; ++b) {
    const bool a = batch.input(0, b)[0] == 10;
    CHECK(batch.length(b) == (a ? 3 : 2));
    CHECK(batch.input(1, b)[0] == (a ? 20 : 60));
    CHECK(batch.weight(1, b) == (a ? 0 : 1));
    CHECK(batch.target(1, b)[0] == (a ? 0 : 6));
  }
  scratch::write(folder.path / "whole.csv", "w;x\n1;10\n2;50\n3;20\n4;60\n5;30\n");
  const auto whole = sequences(folder, "{train: whole.csv, targets: [x], separator: \";\"}");
  CHECK((whole->shape().steps == 5 && batch_of(*whole, Split::train, 0).targets()(0, 0) == 30));
  CHECK(refusal(folder, "{train: whole.csv, targets: [x], separator: \";\", kind: classification}")
            .ends_with("whole.csv is one sequence of 5 steps."));
  CHECK(refusal(folder, "{data: whole.csv, targets: [x], separator: \";\"}")
            .ends_with("set it to 0, or set `sequence` to the column that names the sequences."));
  CHECK(refusal(folder, "{train: mixed.csv, sequence: id, targets: [t, x], separator: \";\"}")
            .find("no column is left for the features") != std::string::npos);
}

TEST_CASE("classes by name and by number") {
  const Folder folder;
  scratch::write(folder.path / "names.csv", "id,x,y\n1,1,no\n2,2,yes\n3,3,maybe\n4,4,no\n");
  const auto names = sequences(folder, "{train: names.csv, sequence: id, targets: [y], kind: classification}", 4);
  CHECK((names->shape().output_size == 3 && names->shape().labels));
  Batch<float> batch = batch_of(*names, Split::train, 0);
  const std::int32_t by_name[] = {1, 2, 0, 1};
  for (Index b = 0; b < 4; ++b) CHECK(batch.label(0, b) == by_name[int(batch.input(0, b)[0]) - 1]);
  CHECK(names->metrics().at(0).name == "accuracy");

  scratch::write(folder.path / "numbers.csv", "id,x,y\n1,1,10\n2,2,9\n3,3,-1\n4,4,10\n");
  const auto numbers = sequences(folder, "{train: numbers.csv, sequence: id, targets: [y], kind: classification}", 4);
  batch = batch_of(*numbers, Split::train, 0);
  const std::int32_t by_number[] = {2, 1, 0, 2};
  for (Index b = 0; b < 4; ++b) CHECK(batch.label(0, b) == by_number[int(batch.input(0, b)[0]) - 1]);

  scratch::write(folder.path / "other.csv", "id,x,y\n1,1,no\n2,2,never\n");
  CHECK(refusal(folder, "{train: names.csv, validation: other.csv, sequence: id, targets: [y], kind: classification}")
            .ends_with("other.csv:3:5: column \"y\" holds the class \"never\", which no training sequence has"));
  scratch::write(folder.path / "one.csv", "id,x,y\n1,1,no\n");
  scratch::write(folder.path / "twice.csv", "id,x,y\n1,1,1\n2,1,1.0\n3,1,2\n");
  CHECK(refusal(folder, "{train: twice.csv, sequence: id, targets: [y], kind: classification}")
            .find("the classes 1 and 1.0 are the same number") != std::string::npos);
  for (const auto& [first, second] : std::vector<std::pair<std::string, std::string>>{
           {"1", "+1"}, {"010", "10"}, {"1000", "1e3"}, {"1000", "1.0E+03"}, {"-10", "-100e-1"}, {"0", "0e5"}}) {
    scratch::write(folder.path / "same.csv", fmt::format("id,x,y\n1,1,{}\n2,1,{}\n3,1,2\n", first, second));
    CHECK(refusal(folder, "{train: same.csv, sequence: id, targets: [y], kind: classification}")
              .find(fmt::format("the classes {} and {} are the same number", first, second)) != std::string::npos);
  }
  scratch::write(folder.path / "long.csv", "id,x,y\n1,1,9007199254740993\n2,1,9007199254740992\n");
  CHECK(sequences(folder, "{train: long.csv, sequence: id, targets: [y], kind: classification}", 2)
            ->shape()
            .output_size == 2);
  scratch::write(folder.path / "fractions.csv", "id,x,y\n1,1,1.0\n2,1,0.0\n");
  scratch::write(folder.path / "integers.csv", "id,x,y\n1,1,1\n2,1,0\n");
  CHECK(refusal(folder, "{train: fractions.csv, test: integers.csv, sequence: id, targets: [y], kind: classification}")
            .ends_with("integers.csv:2:5: column \"y\" holds the class \"1\", which no training sequence has; training "
                       "has \"1.0\", the same number: write it in one way"));
  scratch::write(folder.path / "zeros.csv", "id,x,y\n1,1,0.0\n2,1,-0.0\n3,1,2\n");
  CHECK(refusal(folder, "{train: zeros.csv, sequence: id, targets: [y], kind: classification}")
            .find("the classes 0.0 and -0.0 are the same number") != std::string::npos);
  scratch::write(folder.path / "blanks.csv", "id,x,y\n1,1,no\n2,2,no \n3,3, yes\n4,4,yes\n");
  CHECK(sequences(folder, "{train: blanks.csv, sequence: id, targets: [y], kind: classification}", 4)->form().outputs ==
        std::vector<std::string>{"no", "yes"});
  CHECK(refusal(folder, "{train: blanks.csv, sequence: id, targets: [id]}", Exit::usage).find("holds the column of") !=
        std::string::npos);
  CHECK(refusal(folder, "{train: blanks.csv, sequence: id, features: [x, x], targets: [y]}", Exit::usage)
            .find("names a column twice") != std::string::npos);
  scratch::write(folder.path / "scores.csv", "id,x,y\n1,1,1\n2,2,0.25\n");
  CHECK(
      refusal(folder, "{train: scores.csv, sequence: id, targets: [y], kind: classification}")
          .ends_with("scores.csv:3:5: column \"y\" holds \"0.25\", but classes must be integers or words; numbers need "
                     "`kind: regression`"));
  CHECK(
      refusal(folder, "{train: one.csv, sequence: id, targets: [y], kind: classification}").find("all of one class") !=
      std::string::npos);
}

TEST_CASE("words for missing values are neither classes, nor numbers, nor names of sequences") {
  const Folder folder;
  const auto refused = [&](const std::string& text, const std::string& options) {
    scratch::write(folder.path / "gaps.csv", "id,x,y\n" + text);
    return refusal(folder, "{train: gaps.csv, sequence: id, targets: [y], " + options + "}");
  };
  for (const std::string word : {"NA", "NaN", "nan", "NULL", "N/A", "#N/A", "None", "<NA>", "\\N"}) {
    CAPTURE(word);
    const std::string rows = "1,1,no\n2,2,yes\n2,3, " + word + "\n";
    CHECK(refused(rows, "kind: classification, readout: every")
              .ends_with("gaps.csv:4:5: column \"y\" holds \" " + word +
                         "\", a missing value; leave missing targets empty; rename the class if it is one"));
    CHECK(refused(rows, "kind: classification").find("`readout: last` needs a target here") != std::string::npos);
    CHECK(refused("1,1,0\n1,1," + word + "\n", "readout: every").ends_with("leave missing targets empty"));
    CHECK(refused("1,1,0\n" + word + ",1,1\n", "readout: every")
              .ends_with("gaps.csv:3:1: column \"id\" holds \"" + word +
                         "\", a missing value, but must name the sequence of this row; rename the sequence if this is "
                         "its name"));
  }
  for (const std::string word : {"na", "none", "N", "nan1", "Naan"}) {
    scratch::write(folder.path / "words.csv", "id,x,y\n" + word + ",1,no\n2,2," + word + "\n");
    CHECK(sequences(folder, "{train: words.csv, sequence: id, targets: [y], kind: classification}", 2)
              ->shape()
              .output_size == 2);
  }
}

TEST_CASE("sequences of one file are dealt by chance, the same for every seed of a run") {
  const Folder folder;
  std::string text = header;
  for (int i = 0; i < 20; ++i) text += rows(i, 2);
  scratch::write(folder.path / "all.csv", text);
  const std::string options =
      "data: all.csv, sequence: id, targets: [y], validation_fraction: 0.25, test_fraction: 0.2";
  const auto task = sequences(folder, "{" + options + "}", 5), other = sequences(folder, "{" + options + "}", 5, 2),
             dealt = sequences(folder, "{split_seed: 2, " + options + "}", 5);
  std::multiset<double> all;
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    const auto some = firsts(*task, split);
    CHECK(some.size() == (split == Split::train ? 10u : split == Split::validation ? 5u : 4u));  // 11 in batches of 5
    CHECK((split == Split::train || firsts(*other, split) == some));
    CHECK((split == Split::train || firsts(*dealt, split) != some));
    if (split != Split::train) all.insert(some.begin(), some.end());
  }
  CHECK(std::set<double>(all.begin(), all.end()).size() == 9);
  CHECK(batch_of(*task, Split::train, 0).inputs() != batch_of(*other, Split::train, 0).inputs());
  CHECK(batch_of(*task, Split::train, 5).inputs() == batch_of(*task, Split::train, 5).inputs());

  scratch::write(folder.path / "new.csv", header + rows(20, 2) + rows(21, 2));
  const auto tested = sequences(folder, "{test: new.csv, normalisation: standard, " + options + "}", 5),
             normalised = sequences(folder, "{normalisation: standard, " + options + "}", 5);
  CHECK(tested->form() == normalised->form());
  CHECK(firsts(*tested, Split::validation) == firsts(*normalised, Split::validation));
  CHECK(firsts(*tested, Split::test).size() == 2);
  CHECK(firsts(*tested, Split::test) != firsts(*normalised, Split::test));
  scratch::write(folder.path / "other.csv", "id,x,z,w,y\na,1,2,3,4\n");
  CHECK(refusal(folder, "{test: other.csv, " + options + "}").find("all.csv") != std::string::npos);
}

TEST_CASE("with a target at the last step, only the last row of a sequence is asked for one") {
  const Folder folder;
  scratch::write(folder.path / "train.csv", "id,x,y\na,1,-\na,2,up\nb,3,-\nb,4,down\n");
  scratch::write(folder.path / "test.csv", "id,x,y\na,1,?\na,2,up\n");
  const std::string options = "{train: train.csv, test: test.csv, sequence: id, targets: [y], kind: classification}";
  CHECK(sequences(folder, options)->form().outputs == std::vector<std::string>{"down", "up"});
  scratch::write(folder.path / "test.csv", "id,x,y\na,1,up\na,2,?\n");
  CHECK(refusal(folder, options)
            .ends_with("test.csv:3:5: column \"y\" holds the class \"?\", which no training sequence has"));
}

TEST_CASE("normalisation by the training sequences") {
  const Folder folder;
  scratch::write(folder.path / "train.csv", "id,x,c,y\na,1,5,10\na,2,5,\nb,3,5,30\n");
  scratch::write(folder.path / "test.csv", "id,x,c,y\na,4,6,50\n");
  const auto task = sequences<double>(folder,
                                      "{train: train.csv, test: test.csv, sequence: id, targets: [y], readout: every, "
                                      "normalisation: standard, target_normalisation: standard}");
  Batch<double> test = batch_of(*task, Split::test, 0);
  CHECK(test.input(0, 0)[0] == doctest::Approx(2 / std::sqrt(2. / 3)));
  CHECK(test.input(0, 0)[1] == 1);
  CHECK(test.target(0, 0)[0] == doctest::Approx(3));  // mean 20, deviation 10
  CHECK(task->baseline() == doctest::Approx(9));
  Ratio ratio;
  const Matrix<double> output = trivial_output(*task, test);
  task->measure(output, targets_of(test), {&ratio, 1});
  CHECK(ratio.sum / ratio.weight == doctest::Approx(30));  // in the units of the file
}

TEST_CASE("large numbers with a small spread are scaled, numbers that are all equal are only shifted") {
  const Folder folder;
  const auto scales = [&](const std::string& options) {
    return sequences<double>(folder,
                             "{train: t.csv, targets: [y], readout: every, normalisation: standard" + options + "}")
        ->form();
  };
  std::string text = "t,seconds,z,same,y\n";
  for (int i = 0; i < 60; ++i)
    text += fmt::format("{},{},{},{},{}\n", 1700000000000000000 + 65536 * (i % 4), 1e6 + std::ldexp(i % 4, -23),
                        1e-3 * (i % 4), 1e9 / 3, i);
  scratch::write(folder.path / "t.csv", text);
  const DataForm form = scales("");
  const double deviation = std::sqrt(1.25);  // of 0, 1, 2, 3
  CHECK(form.input_scale[0] == doctest::Approx(65536 * deviation).epsilon(1e-12));
  CHECK(form.input_scale[1] == doctest::Approx(std::ldexp(deviation, -23)).epsilon(1e-12));
  CHECK(form.input_scale[2] == doctest::Approx(1e-3 * deviation).epsilon(1e-12));
  CHECK((form.input_scale[3] == 1 && form.input_mean[3] == 1e9 / 3));
  scratch::write(folder.path / "t.csv", "x,y\n1e-170,1\n2e-170,2\n");
  CHECK(refusal(folder, "{train: t.csv, targets: [y], normalisation: standard}")
            .find("the column \"x\" of the training sequences has numbers whose standard deviation is too large or too "
                  "small for a double; scale them") != std::string::npos);
}

TEST_CASE("the constant predictor reaches the baseline") {
  const Folder folder;
  std::string text = "id,x,u,v\n", classes = "id,x,y\n";
  Rng rng(1);
  for (int i = 0; i < 30; ++i) {
    text += fmt::format("{},{},{},{}\n", i / 3, i, rng.normal(), rng.uniform());
    classes += fmt::format("{},{},{}\n", i / 3, i, i % 7 == 0 ? "" : std::string(1, char('a' + rng.integer(0, 3))));
  }
  scratch::write(folder.path / "numbers.csv", text);
  scratch::write(folder.path / "classes.csv", classes);
  for (const char* options :
       {"{data: numbers.csv, sequence: id, targets: [u, v], test_fraction: 0.3}",
        "{data: numbers.csv, sequence: id, targets: [u, v], test_fraction: 0.3, readout: every}",
        "{data: classes.csv, sequence: id, targets: [y], test_fraction: 0.3, kind: classification, readout: every}"}) {
    CAPTURE(options);
    const auto task = sequences<double>(folder, options, 3);
    const Batch<double> test = batch_of(*task, Split::test, 0);
    REQUIRE(task->batches(Split::test) == 1);
    CHECK(trivial_loss(*task, test) == doctest::Approx(task->baseline()).epsilon(1e-12));
  }
}

TEST_CASE("NumPy arrays") {
  const Folder folder;
  // Input (n, t, i) is 100 n + 10 t + i.
  std::vector<double> x, y, last;
  for (int n = 0; n < 3; ++n) {
    last.push_back(n % 2);
    for (int t = 0; t < 4; ++t) {
      y.push_back(t == 1 ? std::nan("") : n + t);
      for (int i = 0; i < 2; ++i) x.push_back(100 * n + 10 * t + i);
    }
  }
  scratch::write(folder.path / "x.npy", npy("<f8", "(3, 4, 2)", doubles(x)));
  scratch::write(folder.path / "y.npy", npy("<f8", "(3, 4)", doubles(y)));
  scratch::write(folder.path / "last.npy", npy("<f8", "(3,)", doubles(last)));
  scratch::write(folder.path / "lengths.npy", npy("|u1", "(3,)", "\x04\x01\x02"));
  const auto every =
      sequences(folder, "{train: {file: x.npy, targets: y.npy, lengths: lengths.npy}, readout: every}", 3);
  CHECK((every->shape().input_size == 2 && every->shape().output_size == 1 && every->shape().steps == 4));
  Batch<float> batch = batch_of(*every, Split::train, 0);
  for (Index b = 0; b < 3; ++b) {
    const float n = batch.input(0, b)[0] / 100;
    CHECK(batch.length(b) == (n == 0 ? 4 : n == 1 ? 1 : 2));
    for (Index t = 0; t < batch.length(b); ++t) {
      CHECK(batch.input(t, b)[1] == 100 * n + 10 * float(t) + 1);
      CHECK(batch.weight(t, b) == (t == 1 ? 0 : 1));
      if (t != 1) CHECK(batch.target(t, b)[0] == n + float(t));
    }
  }
  const auto classes = sequences(folder, "{train: {file: x.npy, targets: last.npy}, kind: classification}", 3);
  batch = batch_of(*classes, Split::train, 0);
  for (Index b = 0; b < 3; ++b) CHECK(batch.label(0, b) == int(batch.input(0, b)[0] / 100) % 2);
  CHECK(classes->files().size() == 2);
  scratch::write(folder.path / "zeros.npy", npy("<f8", "(3,)", doubles({-0.0, 0, 1})));
  CHECK(sequences(folder, "{train: {file: x.npy, targets: zeros.npy}, kind: classification}", 3)->form().outputs ==
        std::vector<std::string>{"0", "1"});

  const auto says = [&](const std::string& options, const std::string& part, Exit code = Exit::data) {
    const std::string text = refusal(folder, options, code);
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  const auto integers = [](const std::vector<std::int64_t>& values) {
    return npy("<i8", "(3,)", {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0])});
  };
  scratch::write(folder.path / "hashes.npy", integers({5, 9007199254740992, 9007199254740993}));
  says("{train: {file: x.npy, targets: hashes.npy}, kind: classification}",
       "hashes.npy: the target [1] is 2^53 or more in size, where integers are no longer told apart; number the "
       "classes");
  scratch::write(folder.path / "hashes.npy", integers({-9007199254740991, 9007199254740991, 5}));
  CHECK(sequences(folder, "{train: {file: x.npy, targets: hashes.npy}, kind: classification}", 3)->form().outputs ==
        std::vector<std::string>{"-9007199254740991", "5", "9007199254740991"});
  scratch::write(folder.path / "UPPER.NPY", npy("<f8", "(3, 4, 2)", doubles(x)));
  CHECK(sequences(folder, "{train: {file: UPPER.NPY, targets: last.npy}}", 3)->shape().input_size == 2);
  says("{train: {file: UPPER.NPY, targets: last.npy}, features: [a]}", "name columns of a CSV file", Exit::usage);
  says("{train: {file: x.npy, targets: last.npy}, features: [a]}",
       "name columns of a CSV file, which a file of arrays does", Exit::usage);
  says("{train: x.npy}", "targets are missing; use {file: x.npy, targets: FILE.npy}");
  says("{train: {file: x.npy, targets: absent.npy}}", "there is no absent.npy");
  scratch::write(folder.path / "one.npy", npy("<f8", "()", doubles({1})));
  says("{train: {file: one.npy, targets: last.npy}}", "one.npy: one number; inputs must be N × T × d or N × T");
  says("{train: {file: x.npy, targets: y.npy, lengths: one.npy}}", "one.npy: one number; lengths must be 3 numbers");
  says("{train: {file: last.npy, targets: last.npy}}", "an array of 3; inputs must be N × T × d or N × T");
  says("{train: {file: x.npy, targets: y.npy}, kind: classification}",
       "an array of 3 × 4; classes need one number per target; save targets.argmax(-1)");
  says("{train: {file: x.npy, targets: last.npy}, readout: every}",
       "an array of 3; targets at every step must be 3 × 4 or 3 × 4 × k");
  says("{train: {file: x.npy, targets: last.npy, lengths: y.npy}}", "an array of 3 × 4; lengths must be 3 numbers");
  says("{train: {file: x.npy, targets: last.npy, lengths: last.npy}}", "the length 0 is not an integer from 1 to 4");
  scratch::write(folder.path / "infinite.npy", npy("<f8", "(1, 2)", doubles({1, INFINITY})));
  scratch::write(folder.path / "one.npy", npy("<f8", "(1,)", doubles({1})));
  says("{train: {file: infinite.npy, targets: one.npy}}", "the input [0, 1, 0] is not finite");
  says("{train: {file: one.npy, targets: infinite.npy}}", "inputs must be");
  scratch::write(folder.path / "two.npy", npy("<f8", "(1, 2)", doubles({1, 2})));
  says("{train: {file: two.npy, targets: infinite.npy}, readout: every}", "the target [0, 1] is not finite");
  scratch::write(folder.path / "other.npy", npy("<f8", "(3,)", doubles({0, 1, 2})));
  says("{train: {file: x.npy, targets: last.npy}, test: {file: x.npy, targets: other.npy}, kind: classification}",
       "the target [2] is the class 2, which no training sequence has");
  says("{train: {file: x.npy, targets: last.npy}, test: {file: two.npy, targets: one.npy}}",
       "two.npy has 1 features and 1 targets, but x.npy has 2 and 1");
  scratch::write(folder.path / "part.npy", npy("<f8", "(3, 1)", doubles({0, 1, 0.37})));
  says("{train: {file: x.npy, targets: part.npy}, kind: classification}",
       "part.npy: the target [2, 0] is 0.37, but classes must be integers; numbers need `kind: regression`");
  says("{train: {file: x.npy, inputs: x, targets: last.npy}}",
       "train.inputs is the name of an array in an .npz or HDF5 file, which `file` is not", Exit::usage);
  says("{train: {file: x.mat, targets: y.npy}}",
       "train.file must be a CSV, .npy, .npz or HDF5 file, got x.mat; convert it: python3 -m stiefel.convert x.mat "
       "x.npz",
       Exit::usage);
}

TEST_CASE("what cannot be is refused with its place") {
  const Folder folder;
  scratch::write(folder.path / "good.csv", header + rows(1, 3) + rows(2, 2));
  scratch::write(folder.path / "columns.csv", "id,z,x,y\n1,1,1,1\n");
  scratch::write(folder.path / "last.csv", "id,x,y\n1,1,1\n1,2,\n2,1,1\n");
  scratch::write(folder.path / "narrow.csv", "id,x,y\n1,1,1\n");
  scratch::write(folder.path / "word.csv", "id,x,y\n1,1,1\n1,two,2\n");
  scratch::write(folder.path / "rows.csv", "id,x,y\n");
  scratch::write(folder.path / "large.csv", "id,x,y\n1,1e300,1\n1,-1e300,1\n");
  scratch::write(folder.path / "none.csv", "id,x,y\n1,1,\n");
  scratch::write(folder.path / "some.csv", "id,x,y\n1,1,2\n");
  const auto says = [&](const std::string& options, const std::string& part, Exit code = Exit::data) {
    const std::string text = refusal(folder, options, code);
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  const std::string columns = ", sequence: id, targets: [y]}";
  says("", "sequence_csv: no file is named; set `data: FILE.csv`");
  says("{train: good.csv}", "targets must name the columns of the target in a CSV file: `targets: [NAME]`",
       Exit::usage);
  says("{train: good.csv, targets: [q]}",
       "good.csv:1:1: there is no column \"q\"; the header has \"id\", \"x\", \"z\", \"y\"");
  says("{train: good.csv, targets: [y]}", "good.csv:2:1: column \"id\" holds \"s1\", expected a finite number");
  says("{train: good.csv, test: columns.csv" + columns,
       "the columns of columns.csv differ from those of good.csv; name the `features`");
  says("{train: good.csv, test: narrow.csv" + columns,
       "narrow.csv has 1 features and 1 targets, but good.csv has 2 and 1");
  says("{train: last.csv" + columns,
       "last.csv:3:1: the last row of a sequence has no target; `readout: last` needs it");
  scratch::write(folder.path / "unnamed.csv", "id,x,y\n1,1,1\n,2,1\n");
  says("{train: unnamed.csv" + columns,
       "unnamed.csv:3:1: column \"id\" is empty; it must name the sequence of this row");
  says(
      "{data: good.csv" + columns,
      "good.csv has 2 sequences: too few for a `validation_fraction` of 0.1. Raise it, set it to 0, or add sequences.");
  says("{train: word.csv" + columns, "word.csv:3:3: column \"x\" holds \"two\", expected a finite number");
  says("{train: rows.csv" + columns, "rows.csv:1:1: a header, but no rows");
  says("{train: large.csv" + columns, "1e+300 in sequence 1 of the train split is too large for `scalar: float32`");
  says("{train: large.csv, normalisation: standard" + columns,
       "the column \"x\" of the training sequences has numbers");
  says("{train: good.csv, sequence: id, features: [x, y], targets: [y]}", "holds the target y", Exit::usage);
  says("{train: none.csv, readout: every" + columns, "no sequence of the train split has a target");
  says("{train: some.csv, test: none.csv, readout: every" + columns, "no sequence of the test split has a target");
  says("{train: {file: good.csv, targets: y.npy}" + columns, "`targets` and `lengths` go with .npy files", Exit::usage);
  says("{train: good.csv, data: good.csv" + columns, "cannot be combined with `data`", Exit::usage);
  says("{test: good.csv" + columns, "test: needs `train` or `data`", Exit::usage);
  says("{data: good.csv, validation: good.csv" + columns,
       "needs `train`; with `data`, set `validation_fraction` instead", Exit::usage);
  const std::string fractions = "validation_fraction: 0.6, test_fraction: 0.5" + columns;
  says("{data: good.csv, " + fractions, "leaves nothing to train on", Exit::usage);
  CHECK(make<float>("sequence_csv", "{train: good.csv, " + fractions, {1, 1, folder.path.string()}));
  says("{train: table.XLSX" + columns,
       "must be a CSV, .npy, .npz or HDF5 file, got table.XLSX; convert it: ", Exit::usage);
  says("{train: ~/good.csv" + columns, "there is no ~/good.csv, and none in");
  says("{train: ~/good.csv" + columns, "~ is not expanded here: write the full path, or $HOME in a shell.");
  says("{train: {targets: y.npy}" + columns, "must be given with `targets`", Exit::usage);
  says("{train: good.csv, kind: classification, targets: [x, y]}", "must be one column", Exit::usage);
  says("{train: good.csv, kind: classification, target_normalisation: standard" + columns, "is for `kind: regression`",
       Exit::usage);
}

namespace {

/// The values of the metrics of outputs for a batch.
std::map<std::string, double> measured(const Task<double>& task, const Matrix<double>& output,
                                       const Batch<double>& batch) {
  const std::vector<Metric> metrics = task.metrics();
  std::vector<Ratio> sums(count_of_parts(metrics));
  task.measure(output, targets_of(batch), sums);
  const std::vector<double> values = metric_values(metrics, sums);
  std::map<std::string, double> named;
  for (std::size_t i = 0; i < metrics.size(); ++i) named[metrics[i].name] = values[i];
  return named;
}

}  // namespace

TEST_CASE("metrics of numbers are those of each target, in the units of its column") {
  const Folder folder;
  scratch::write(folder.path / "train.csv", "id,x,u,V m\na,1,0,0\na,2,2,200\n");  // deviations 1 and 100
  scratch::write(folder.path / "test.csv", "id,x,u,V m\na,1,3,300\na,2,,400\na,3,5,200\na,4,,\n");
  const std::string options =
      "train: train.csv, test: test.csv, sequence: id, targets: [u, V m], readout: every, target_normalisation: "
      "standard";
  const auto task = sequences<double>(folder, "{" + options + ", metrics: [mae, rmse, r2, nrmse]}");
  const Batch<double> test = batch_of(*task, Split::test, 0);
  CHECK(test.weights() == std::vector<double>{1, 0.5, 1, 0});
  const Matrix<double> output = trivial_output(*task, test);  // 1 and 100: the errors are 2, 4, and 200, 300, 100
  const auto values = measured(*task, output, test);
  const auto is = [&](const char* name, double value) {
    CAPTURE(name);
    CHECK(values.at(name) == doctest::Approx(value).epsilon(1e-12));
  };
  is("mae", (2 + 4 + 200 + 300 + 100) / 5.);
  is("mae_u", 3);
  is("mae_v_m", 200);
  is("rmse_u", std::sqrt(10));
  is("rmse_v_m", std::sqrt(140000 / 3.));
  is("rmse", (std::sqrt(10) + std::sqrt(140000 / 3.)) / 2);
  is("r2_u", 1 - 20 / 2.);  // the targets are 3 and 5, their mean is 4
  is("r2_v_m", 1 - 140000 / 20000.);
  is("r2", (-9 - 6) / 2.);
  is("nrmse_u", std::sqrt(10));
  is("nrmse_v_m", std::sqrt(7));
  is("nrmse", (std::sqrt(10) + std::sqrt(7)) / 2);
  CHECK(values.size() == 12);
  const auto plain = sequences<double>(folder, "{" + options + "}");
  CHECK(measured(*plain, output, test).size() == 3);
  CHECK(measured(*plain, output, test).at("mae") == values.at("mae"));
}

TEST_CASE("a missing target leaves out only itself") {
  const Folder folder;
  scratch::write(folder.path / "gaps.csv", "id,x,u,v\na,1,3,5\na,2,,7\na,3,1,\na,4,,\n");
  scratch::write(folder.path / "whole.csv", "id,x,u,v\na,1,3,5\na,2,2,7\na,3,1,0\na,4,1,1\n");
  const auto of = [&](const char* file) {
    return sequences<double>(folder, fmt::format("{{train: {}, sequence: id, targets: [u, v], readout: every}}", file));
  };
  const auto task = of("gaps.csv");
  const Batch<double> batch = batch_of(*task, Split::train, 0);
  const Targets<double> targets = targets_of(batch);
  Matrix<double> output(2, 4), gradient(2, 4);
  output << 1, 2, 3, 4, 5, 6, 7, 8;
  const auto at = [](Matrix<double>& m) { return mat<double>(m.data(), 2, 4, 2); };
  const double loss = task->loss(output, targets, at(gradient));
  CHECK(loss == doctest::Approx(((3 - 1) * (3 - 1) + 0 + 1 + (3 - 1) * (3 - 1)) / 2.));
  Matrix<double> expected(2, 4);
  expected << 1 - 3, 0, 3 - 1, 0, 0, 6 - 7, 0, 0;
  CHECK((gradient - expected).norm() < 1e-12);
  CHECK(total_weight(targets) == 2);
  CHECK(trivial_loss(*task, batch) == doctest::Approx(task->baseline()).epsilon(1e-12));
  CHECK(task->baseline() == doctest::Approx((1 + 1 + 1 + 1) / 4.));
  CHECK(task->summary() == "4 of 8 train, 0 validation, 0 test targets");
  const auto whole = of("whole.csv");
  const Batch<double> all = batch_of(*whole, Split::train, 0);
  CHECK(whole->loss(output, targets_of(all), at(gradient)) ==
        mean_square(CMat<double>(output), targets_of(all), at(expected)));
  CHECK(gradient == expected);
}

TEST_CASE("metrics of classes") {
  const Folder folder;
  scratch::write(folder.path / "three.csv", "id,x,y\na,1,p\na,1,q\na,1,p\na,1,p\na,1,r\n");
  const std::string options = "sequence: id, targets: [y], readout: every, kind: classification, metrics: ";
  const auto task =
      sequences<double>(folder, "{train: three.csv, " + options + "[accuracy, macro_f1, balanced_accuracy]}");
  Batch<double> batch = batch_of(*task, Split::train, 0);
  Matrix<double> output = Matrix<double>::Zero(3, 5);
  const int said[] = {0, 1, 1, 0, 0};
  for (Index c = 0; c < 5; ++c) output(said[c], c) = 1;
  auto values = measured(*task, output, batch);
  CHECK(values.at("accuracy") == doctest::Approx(3 / 5.));
  CHECK(values.at("macro_f1") == doctest::Approx((2 * 2 / (3 + 3.) + 2 * 1 / (1 + 2.) + 0) / 3));
  CHECK(values.at("balanced_accuracy") == doctest::Approx((2 / 3. + 1 + 0) / 3));

  scratch::write(folder.path / "two.csv", "id,x,y\na,1,p\na,1,q\na,1,p\na,1,q\na,1,q\n");
  const auto two = sequences<double>(folder, "{train: two.csv, " + options + "[auroc]}");
  batch = batch_of(*two, Split::train, 0);
  output = Matrix<double>::Zero(2, 5);
  output.row(1) << -1, 2, 5e5, 5, 1e-3;
  CHECK(measured(*two, output, batch).at("auroc") == doctest::Approx(3 / 6.));
  output.row(1) << 1, 1, 1, 1, 2;
  CHECK(measured(*two, output, batch).at("auroc") == doctest::Approx(4 / 6.));
  CHECK(refusal(folder, "{train: three.csv, " + options + "[auroc]}")
            .find("is for two classes, but the targets have 3") != std::string::npos);
  CHECK(refusal(folder, "{train: three.csv, " + options + "[mae]}", Exit::usage)
            .find("holds mae, which is not for `kind: classification`") != std::string::npos);
  CHECK(refusal(folder, "{train: three.csv, " + options + "[accuracy, accuracy]}", Exit::usage)
            .find("names a metric twice") != std::string::npos);
}

TEST_CASE("inputs with gaps are filled, and marked if wanted") {
  const Folder folder;
  scratch::write(folder.path / "train.csv", "id,x,z,y\na,,1,0\na,2,1,0\na,NA,3,0\nb,,3,1\n");
  scratch::write(folder.path / "test.csv", "id,x,z,y\nc,6,2,0\nc, ,,0\n");
  const std::string options = "train: train.csv, sequence: id, targets: [y], readout: every, missing: ";
  const auto inputs = [](const Task<double>& task, Split split, Index b, Index t) {
    Batch<double> batch = batch_of(task, split, 0);
    const auto x = batch.input(t, b);
    return std::vector<double>(x.begin(), x.end());
  };
  const auto filled = sequences<double>(folder, "{test: test.csv, " + options + "forward}");
  CHECK(inputs(*filled, Split::test, 0, 1) == std::vector<double>{6, 2});
  const auto marked = sequences<double>(folder, "{" + options + "mask}", 2);
  CHECK(marked->form().inputs == std::vector<std::string>{"x", "z", "x_missing"});
  const Index a = batch_of(*marked, Split::train, 0).length(0) == 3 ? 0 : 1;
  CHECK(inputs(*marked, Split::train, a, 0) == std::vector<double>{0, 1, 1});
  CHECK(inputs(*marked, Split::train, a, 1) == std::vector<double>{2, 1, 0});
  CHECK(inputs(*marked, Split::train, a, 2) == std::vector<double>{2, 3, 1});
  CHECK(inputs(*marked, Split::train, 1 - a, 0) == std::vector<double>{0, 3, 1});
  const auto scaled = sequences<double>(folder, "{normalisation: standard, " + options + "mask}", 2);
  CHECK(inputs(*scaled, Split::train, a, 2) == std::vector<double>{0, 1, 1});
  CHECK((scaled->form().input_mean == std::vector<double>{2, 2, 0} &&
         scaled->form().input_scale == std::vector<double>{1, 1, 1}));
  CHECK(refusal(folder, "{test: test.csv, " + options + "mask}")
            .find("test split: column \"z\" has a gap here, but none in the training sequences") != std::string::npos);
  CHECK(refusal(folder, "{" + options + "refuse}")
            .ends_with("train.csv:2:3: column \"x\" holds \"\", expected a finite number; fill it first, or set "
                       "`missing: forward` or `missing: mask`"));
  scratch::write(folder.path / "train.csv", "id,x,x_missing,y\na,,1,0\na,2,1,0\n");
  CHECK(refusal(folder, "{" + options + "mask}").find("rename it, or leave it out with `features`") !=
        std::string::npos);
  for (const auto& [text, advice] : std::vector<std::pair<std::string, std::string>>{
           {"True", "write 1 for true and 0 for false"},
           {"2024-01-02", "to leave the column out, name the others in `features`"},
           {"\"0,5\"", "write it with a decimal point and without commas"}}) {
    scratch::write(folder.path / "train.csv", "id,x,y\na,1,0\na," + text + ",0\n");
    CHECK(refusal(folder, "{" + options + "forward}").ends_with(advice));
  }
}

TEST_CASE("forecasts are compared with persistence") {
  const Folder folder;
  scratch::write(folder.path / "next.csv", "id,x,next\na,1,3\na,3,7\na,7,5\na,5,\n");
  const std::string options = "train: next.csv, sequence: id, readout: every";
  const auto task = sequences<double>(folder, "{season: 2, targets: [next], " + options + "}");
  const std::vector<Baseline> found = task->baselines();
  REQUIRE(found.size() == 2);
  CHECK((found[0].name == "persistence" && found[1].name == "seasonal persistence"));
  CHECK(found[0].loss == doctest::Approx((4 + 16 + 4) / 3.));
  CHECK(found[1].loss == doctest::Approx((4 + 36 + 4) / 3.));  // 1 for 3, 1 for 7, 3 for 5
  const auto scaled = sequences<double>(
      folder, "{targets: [next], normalisation: standard, target_normalisation: standard, " + options + "}");
  REQUIRE(scaled->baselines().size() == 1);
  CHECK(scaled->baselines()[0].loss == doctest::Approx(8 / (8 / 3.)));
  CHECK(sequences<double>(folder, "{targets: [x], missing: forward, " + options + "}")->baselines().empty());
}
