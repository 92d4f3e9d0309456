// The checks of a task: shapes, batches that depend on (seed, split, index) alone, splits that share nothing.
#include <fmt/format.h>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <thread>

#include "base/file_name.hpp"
#include "conformance/interleaved.hpp"
#include "conformance/task_probe.hpp"

namespace stiefel::conformance {

namespace {

constexpr Split splits[] = {Split::train, Split::validation, Split::test};
constexpr std::size_t sequences_compared = 1000, bytes_compared = 1 << 25;
constexpr Index more_compared = 20;  // times as many, from the rest of the epoch

template <class S> void check_values(Batch<S>& batch, const TaskShape& shape, CheckReport& report) {
  const std::string fault = batch_fault(batch, shape);
  report.demand("batches", fault.empty(), fault);
  const std::string broken = broken_number(batch, shape);
  report.demand("batches", broken.empty(), broken);
}

// Hashes of the first sequences of a split, and of these and more from everywhere in its epoch.
struct Sample {
  std::vector<std::size_t> first, spread;
};

template <class S> Sample sample_of(const TaskProbe<S>& probe, Split split, CheckReport& report) {
  Sample sample;
  const Index count = probe.batches(split);
  std::size_t bytes = 0;
  const auto add = [&](Index index, std::vector<std::size_t>& to) {
    Batch<S> batch = probe.fill(split, index);
    check_values(batch, probe.shape, report);
    for (const std::string& text : contents(batch, probe.shape)) {
      to.push_back(std::hash<std::string>()(text));
      bytes += text.size();
    }
  };
  Index next = 0;
  while (next < count && sample.first.size() < sequences_compared) add(next++, sample.first);
  sample.spread = sample.first;
  if (next == count) return sample;
  const Index affordable = std::clamp<Index>(Index(bytes_compared / bytes), 1, more_compared) * next;
  const Index stride = (count - next + affordable - 1) / affordable;
  for (Index index = next; index < count; index += stride) add(index, sample.spread);
  return sample;
}

// Tasks with few possible sequences meet some of them twice by chance: within a split half as often as between two. The
// bound adds five standard deviations of both shares, each as if one more sequence had been met. Where all sequences of
// `among` are few and differ, none is met by chance.
void check_shared(const std::vector<std::size_t>& among, const std::vector<std::size_t>& some, const std::string& note,
                  CheckReport& report) {
  const std::set<std::size_t> distinct(among.begin(), among.end());
  const double count = double(among.size());
  const double chance = 1 - double(distinct.size()) / count;
  const auto deviation = [](double share, double of) { return std::sqrt((share + 1 / of) / of); };
  const double shared = double(std::ranges::count_if(some, [&](std::size_t hash) { return distinct.contains(hash); })) /
                        double(some.size());
  const double spread = 5 * (2 * deviation(chance, count) + deviation(2 * chance, double(some.size())));
  const double bound = chance > 0 || among.size() >= sequences_compared ? 2 * chance + spread : 0.01;
  if (bound < 1)
    report.measure("splits disjoint", shared, bound, {}, note);
  else
    report.skip("splits disjoint", "too few distinct sequences to tell");
}

// Splits that have the same sequences in the same order are the same, however few sequences are possible.
bool same_beginning(const Sample& one, const Sample& other) {
  const auto [end, other_end] = std::ranges::mismatch(one.first, other.first);
  return (end == one.first.end() || other_end == other.first.end()) && std::set(one.first.begin(), end).size() > 2;
}

// How many of the sequences of one sample are in another.
double common(const Sample& one, const Sample& other) {
  const std::set<std::size_t> distinct(one.spread.begin(), one.spread.end()),
      among(other.spread.begin(), other.spread.end());
  return double(std::ranges::count_if(distinct, [&](std::size_t hash) { return among.contains(hash); }));
}

constexpr double few = 5;  // sequences that splits may share in any case

// Sequences of test that are also in validation may be so by chance, but then as many are in as many of train.
void check_overlap(const Sample& train, const Sample& validation, const Sample& test, CheckReport& report) {
  const double met = common(test, validation), part = double(validation.spread.size()) / double(train.spread.size()),
               mean = part * common(test, train);
  report.require(
      "splits disjoint", met <= std::max(few, mean + 5 * std::sqrt((mean + part) * (1 + part))),
      fmt::format("{} sequences of test are also in validation, but only {:.2g} in as many of train: networks "
                  "are selected by sequences of the test set",
                  met, mean));
}

// Sequences of a held-out split that are also in train may be so by chance, but then in the train of another seed as well.
template <class S> void check_stolen(const TaskProbe<S>& probe, const Sample& train, const Sample& other,
                                     const char* name, std::uint64_t seed, CheckReport& report) {
  const std::size_t held = std::set(other.spread.begin(), other.spread.end()).size();
  constexpr int others = 4;
  const double met = common(other, train);
  if (met <= few) return;
  double sum = 0;
  for (int k = 1; k <= others; ++k)
    sum += common(other,
                  sample_of(TaskProbe<S>(probe.subject, report, seed + 1000 + std::uint64_t(k)), Split::train, report));
  const double mean = sum / others;
  report.require(
      "splits disjoint", met <= mean + 5 * std::sqrt((mean + 1. / others) * (1 + 1. / others)),
      fmt::format("{} of {} sequences of {} are also in train, but on average {} in the train of another seed: draw "
                  "each split from Rng(context().seed, name_of(split), number)",
                  met, held, name, mean));
}

// Sequences of one seed that the next seed has as well, more of them than a seed far away has.
template <class S>
void check_next_seed(const TaskProbe<S>& probe, const Sample& train, std::uint64_t seed, CheckReport& report) {
  constexpr int others = 4;
  const auto met_with = [&](std::uint64_t other) {
    return common(train, sample_of(TaskProbe<S>(probe.subject, report, other), Split::train, report));
  };
  const double met = met_with(seed + 1);
  report.require("seeds apart", true, "");
  if (met <= few) return;
  double sum = 0;
  for (int k = 1; k <= others; ++k) sum += met_with(seed + 1000 + std::uint64_t(k) * 7919);
  const double mean = sum / others;
  report.require(
      "seeds apart", met <= mean + 5 * std::sqrt((mean + 1. / others) * (1 + 1. / others)),
      fmt::format("{} of {} training sequences of the seed {} are also those of the seed {}, but on average {} "
                  "of seeds far away: draw them from Rng(context().seed, name_of(split), number), not from "
                  "a sum of seed and number",
                  met, std::set(train.spread.begin(), train.spread.end()).size(), seed, seed + 1, mean));
}

template <class S> void check_disjoint(const TaskProbe<S>& probe, std::uint64_t seed, CheckReport& report) {
  std::vector<Sample> samples;
  for (const Split split : splits) samples.push_back(sample_of(probe, split, report));
  const Sample& train = samples[0];
  check_next_seed(probe, train, seed, report);
  for (const std::size_t i : {1, 2}) {
    const Sample& other = samples[i];
    const char* name = name_of(splits[i]);
    if (other.first.empty()) continue;
    if (same_beginning(train, other)) {
      report.fail("splits disjoint",
                  fmt::format("{} has the same sequences as train, in the same order: draw them from "
                              "Rng(context().seed, name_of(split), index)",
                              name));
      continue;
    }
    const std::string note = fmt::format("share of {} sequences that are also in train", name);
    check_shared(train.first, other.first, note, report);
    check_shared(train.spread, other.spread, note, report);
    check_stolen(probe, train, other, name, seed, report);
  }
  if (same_beginning(samples[1], samples[2]))
    report.remark("selection", "test has the same sequences as validation: networks are selected by the test set");
  else if (!samples[1].spread.empty() && !samples[2].spread.empty())
    check_overlap(train, samples[1], samples[2], report);
  report.skip("splits disjoint", "there is no validation or test split");
}

// What is held out is the same for any batch, and a pass over a finite training set has as many batches as it fills.
template <class S> void check_other_batch(const TaskProbe<S>& probe, std::uint64_t seed, CheckReport& report) {
  constexpr Index batch = 3;
  constexpr std::size_t compared = 100;
  const TaskProbe<S> other(probe.subject, report, seed, batch);
  if (const Index held = probe.shape.training_set; held > 0)
    for (const auto& [task, size] : {std::pair{&probe, probe.task->context().batch}, std::pair{&other, batch}})
      report.require("batches", task->batches(Split::train) == std::max<Index>(held / size, 1),
                     fmt::format("batches(train) is {} for a training set of {} in batches of {}; it must be {}",
                                 task->batches(Split::train), held, size, std::max<Index>(held / size, 1)));
  if (probe.shape.streams) return;
  for (const Split split : {Split::validation, Split::test}) {
    const auto first_of = [&](const TaskProbe<S>& task) {
      std::vector<std::string> all;
      for (Index index = 0; index < task.batches(split) && all.size() < compared; ++index) {
        Batch<S> filled = task.fill(split, index);
        std::ranges::move(contents(filled, task.shape), std::back_inserter(all));
      }
      return all;
    };
    const std::vector<std::string> one = first_of(probe), two = first_of(other);
    const auto [differs, ignored] = std::ranges::mismatch(one, two);
    const std::size_t same = std::size_t(differs - one.begin()), least = std::min({one.size(), two.size(), compared});
    report.require(
        "held-out sets", same >= least && (one.size() == two.size() || least == compared),
        fmt::format(
            "sequence {} of {} is another one with train.batch = {} than with {}: held-out sets must not depend on "
            "the training batch",
            same, name_of(split), batch, probe.task->context().batch));
  }
}

// A training set whose second pass has the sequences of the first is finite, unless few sequences are possible.
template <class S> void check_finite(const TaskProbe<S>& probe, CheckReport& report) {
  constexpr std::size_t most = 20'000;
  const Index count = probe.batches(Split::train);
  if (probe.shape.streams || probe.shape.training_set > 0 || std::size_t(count) > most) return;
  const auto sequences = [&](Index index) {
    Batch<S> batch = probe.fill(Split::train, index);
    return contents(batch, probe.shape);
  };
  std::set<std::size_t> first;
  const std::hash<std::string> hash;
  for (Index index = 0; index < count; ++index)
    for (const std::string& text : sequences(index))
      if (!first.insert(hash(text)).second || first.size() > most) return;
  for (Index index = count; index < 2 * count; ++index)
    for (const std::string& text : sequences(index))
      if (!first.contains(hash(text))) return;
  report.fail("batches", fmt::format("the second pass over train has the {} sequences of the first: shape() must set "
                                     "training_set to their number, as for every finite training set",
                                     first.size()));
}

// In streams of symbols whose labels are the next symbols, the last label of a batch is the first symbol of the next.
template <class S> void check_streams(const TaskProbe<S>& probe, CheckReport& report) {
  constexpr Index most = 20;
  const TaskShape& shape = probe.shape;
  if (!shape.streams || !shape.predicts_inputs || !shape.labels || shape.input != InputKind::symbols ||
      shape.readout != ReadoutKind::every)
    return report.skip("streams", "needs streams of symbols with labels that are the next symbols");
  // Where an output counts and a symbol is given.
  const auto differ = [](Batch<S>& one, Index t, Batch<S>& other, Index next, Index b) {
    return one.weight(t, b) != 0 && other.symbol(next, b) >= 0 && one.label(t, b) != other.symbol(next, b);
  };
  for (const Split split : splits) {
    const Index count = std::min(most, probe.batches(split));
    Batch<S> before;
    for (Index index = 0; index < count; ++index) {
      Batch<S> batch = probe.fill(split, index);
      for (Index b = 0; b < batch.sequences(); ++b)
        for (Index t = 0; t + 1 < batch.length(b); ++t)
          if (differ(batch, t, batch, t + 1, b)) return report.skip("streams", "the labels are not the next symbols");
      for (Index b = 0; b < std::min(before.sequences(), batch.sequences()); ++b) {
        const Index last = before.length(b) - 1;
        report.require(
            "streams", !differ(before, last, batch, 0, b),
            fmt::format("batch {} of {} ends sequence {} with the label {}, but batch {} begins it with the symbol {}: "
                        "fill() must continue the sequences, as shape() says by `streams`",
                        index - 1, name_of(split), b, before.label(last, b), index, batch.symbol(0, b)));
      }
      before = std::move(batch);
    }
  }
}

// What nothing can be learned from, and what a network that also reads backwards would see.
template <class S> void check_content(const TaskProbe<S>& probe, CheckReport& report) {
  const TaskShape& shape = probe.shape;
  std::set<std::vector<double>> inputs, targets;
  Index scored = 0, compared = 0;
  bool next_input = shape.input != InputKind::none && shape.readout == ReadoutKind::every &&
                    shape.input_size == shape.output_size && shape.labels == (shape.input == InputKind::symbols);
  const auto numbers = [](const auto& span) { return std::vector<double>(span.begin(), span.end()); };
  for (Index i = 0; i < std::min<Index>(2, probe.batches(Split::train)); ++i) {
    Batch<S> batch = probe.fill(Split::train, i);
    const auto input = [&](Index t, Index b) {
      return shape.input == InputKind::dense ? numbers(batch.input(t, b))
                                             : std::vector<double>{double(batch.symbol(t, b))};
    };
    for (Index b = 0; b < batch.sequences(); ++b)
      for (Index t = 0; t < batch.length(b); ++t) {
        if (shape.input != InputKind::none) inputs.insert(input(t, b));
        if ((shape.readout == ReadoutKind::last && t < batch.length(b) - 1) || batch.weight(t, b) == 0) continue;
        const std::vector<double> target =
            shape.labels ? std::vector<double>{double(batch.label(t, b))} : numbers(batch.target(t, b));
        targets.insert(target);
        ++scored;
        if (!next_input || t + 1 == batch.length(b)) continue;
        next_input = target == input(t + 1, b);
        ++compared;
      }
  }
  if (shape.input != InputKind::none && inputs.size() == 1)
    report.remark("inputs", "all inputs of the first training batches are the same");
  if (scored > 2 && targets.size() == 1)
    report.remark("targets", "all targets of the first training batches are the same");
  if (next_input && compared > 2 && targets.size() > 2)
    report.require("batches", shape.predicts_inputs,
                   "the targets are the inputs of the next step: shape() must set predicts_inputs, or bidirectional "
                   "networks read what they are to predict");
}

template <class S> void check_task_threads(const TaskProbe<S>& probe, CheckReport& report) {
  constexpr Index threads = 4, each = 4;
  constexpr int repeats = 10;
  // Batches of two passes; every thread fills those of one and the other by turns.
  const auto index_of = [pass = probe.batches(Split::train)](Index i) { return i + (i + i / threads) % 2 * pass; };
  std::vector<std::vector<std::string>> expected;
  for (Index i = 0; i < threads * each; ++i) {
    Batch<S> batch = probe.fill(Split::train, index_of(i));
    expected.push_back(contents(batch, probe.shape));
  }
  std::vector<std::string> faults(threads);
  std::vector<int> wrong(threads);
  {
    std::vector<std::jthread> pool;
    for (Index k = 0; k < threads; ++k)
      pool.emplace_back([&, k] {
        try {
          guarded("fill", probe.subject.entry.name, probe.subject.file, [&] {
            Batch<S> batch;
            for (int n = 0; n < repeats; ++n)
              for (Index i = k; i < threads * each; i += threads) {
                probe.task->fill(Split::train, index_of(i), batch);
                wrong[std::size_t(k)] += contents(batch, probe.shape) != expected[std::size_t(i)];
              }
          });
        } catch (const std::exception& e) {
          faults[std::size_t(k)] = e.what();
        }
      });
  }
  for (const std::string& fault : faults) report.require("threads", fault.empty(), fault);
  report.require("threads", std::ranges::count(wrong, 0) == threads,
                 "batches filled by four threads differ from those filled in turn");

  struct Filling {
    Index index;
    Batch<S> batch = {};
    std::string fault = {};
    bool same = true;
  };
  Filling one{0}, other{1};
  const auto fill = [&](Filling& f) {
    if (!f.same || !f.fault.empty()) return;
    try {
      guarded("fill", probe.subject.entry.name, probe.subject.file,
              [&] { probe.task->fill(Split::train, index_of(f.index), f.batch); });
      f.same = contents(f.batch, probe.shape) == expected[std::size_t(f.index)];
    } catch (const std::exception& e) {
      f.fault = e.what();
    }
  };
  interleave([&] { fill(one); }, [&] { fill(other); });
  for (const Filling* f : {&one, &other})
    report.require("threads", f->same && f->fault.empty(),
                   f->same ? f->fault
                           : "a call of fill() that is stopped midway by another one fills another batch: a const "
                             "function changes a member or a static variable, a race");
}

}  // namespace

template <class S> void check_batches(const TaskProbe<S>& probe, CheckReport& report, std::uint64_t seed) {
  report.demand("batches", probe.batches(Split::train) > 0, "there is no training batch");
  const std::string wrong_form =
      form_fault(probe.subject.call("form", [&] { return probe.task->form(); }), probe.shape);
  report.require("form", wrong_form.empty(), wrong_form);
  const auto in_other_memory = [&] {
    const FilledMemory filled(0x3f);
    return std::make_unique<TaskProbe<S>>(probe.subject, report, seed);
  };
  const auto made = in_other_memory();
  const TaskProbe<S>&twin = *made, other(probe.subject, report, seed + 1000);
  for (const Split split : splits) {
    const Index count = probe.batches(split);
    report.demand("batches", count >= 0, fmt::format("batches({}) is {}", name_of(split), count));
    if (count <= 0) continue;
    Batch<S> dirty = probe.fill(split, count - 1);
    check_values(dirty, probe.shape, report);
    Batch<S> first = probe.fill(split, 0);
    check_values(first, probe.shape, report);
    const auto expected = contents(first, probe.shape);
    const auto demand = [&](Batch<S> again, const char* fault) {
      report.demand("determinism", contents(again, probe.shape) == expected,
                    fmt::format("batch 0 of {} {}", name_of(split), fault));
    };
    demand(
        probe.fill(split, 0),
        "differs when it is filled again: fill() must be a function of seed, split and index alone; draw random "
        "numbers from Rng(context().seed, name_of(split), index), not from std::random_device, the time or a member");
    demand(twin.fill(split, 0),
           "differs in another object with the same seed: the constructor must draw random numbers from "
           "Rng(context().seed, …) alone, and write every member");
    probe.fill_into(dirty, split, 0);
    demand(dirty, "depends on what the Batch held before: resize() it first, then write all that is not 0");
    if (count < 2) continue;
    Batch<S> second = probe.fill(split, 1);
    report.require("determinism", contents(second, probe.shape) != expected,
                   fmt::format("batches 0 and 1 of {} are the same", name_of(split)));
  }
  Batch<S> next_epoch = probe.fill(Split::train, probe.batches(Split::train));
  check_values(next_epoch, probe.shape, report);
  Batch<S> here = probe.fill(Split::train, 0), there = other.fill(Split::train, 0);
  if (probe.batches(Split::train) > 1 && contents(here, probe.shape) == contents(there, probe.shape))
    report.remark("seed",
                  "another seed gives the same first training batch: unless the order of the data is fixed, draw it "
                  "from Shuffle(size, context().seed), and what is random from Rng(context().seed, name_of(split), "
                  "index)");
  check_content(probe, report);
  check_disjoint(probe, seed, report);
  check_other_batch(probe, seed, report);
  check_finite(probe, report);
  check_streams(probe, report);
  Index filled = 0;
  require_no_growth(report, "fill", [&] { probe.fill(Split::train, filled++); });
  check_task_threads(probe, report);
}

namespace {

/// What a task reports about a batch; names that a run would refuse are the task's mistake.
struct Reported final : Outcome {
  std::string all, wrong;
  std::vector<std::string> files;
  void scalar(const std::string& name, double value, double weight) override {
    all += name;
    append_bytes(all, value);
    append_bytes(all, weight);
    if (!plain_name(name)) wrong = "the quantity \"" + name + "\" has no plain name";
    if (!std::isfinite(value) || !(weight >= 0))
      wrong = fmt::format("the quantity {} is {} with the weight {}", name, value, weight);
  }
  void file(const std::string& name, std::string_view bytes) override {
    (all += name) += bytes;
    files.push_back(name);
    if (const std::string fault = file_name_fault(name); !fault.empty())
      wrong = "the name \"" + name + "\" of a file " + fault;
  }
};

// Numbers beyond the outputs that differ show in what is reported, if it reads them.
template <class S> void check_reports(const TaskProbe<S>& probe, CheckReport& report) {
  std::set<std::string> files;
  for (Index index = 0; index < std::min<Index>(2, probe.batches(Split::test)); ++index) {
    const Batch<S> batch = probe.fill(Split::test, index);
    const Index count = Index(batch.weights().size());
    const auto reported = [&](const char* beyond) {
      Rng inside(1, "outputs", std::uint64_t(index)), outside(1, beyond, std::uint64_t(index));
      Real numbers(probe.shape.output_size, count + batch.steps() * batch.sequences());
      numbers << random_matrix(inside, numbers.rows(), count),
          random_matrix(outside, numbers.rows(), numbers.cols() - count);
      if (probe.shape.readout == ReadoutKind::every)
        for (Index b = 0; b < batch.sequences(); ++b)
          for (Index t = batch.length(b); t < batch.steps(); ++t) numbers.col(batch.scored(t, b)).setZero();
      const Panel<S> outputs(numbers);
      Reported outcome;
      probe.subject.call("report", [&] { probe.task->report(index, batch, outputs.read(0, count), outcome); });
      return outcome;
    };
    const Reported outcome = reported("beyond");
    report.require("report", index > 0 || !outcome.all.empty(), "report() reports nothing for the first test batch");
    report.require("report", outcome.wrong.empty(), outcome.wrong);
    for (const std::string& name : outcome.files)
      report.require(
          "report", files.insert(name).second,
          fmt::format("report() writes the file {} twice, of which a run keeps the last only: file names must "
                      "differ per index",
                      name));
    if (reported("others").all == outcome.all) continue;
    if (reported("beyond").all == outcome.all)
      report.fail("memory", "report reads outside the outputs: column batch.scored(t, b) is that of step t");
    else
      report.fail("report", "report() reports something else when it is called again: it must not change a member");
  }
}

template <class S> void check_report(const TaskProbe<S>& probe, CheckReport& report) {
  const std::vector<std::string> alphabet = probe.subject.call("alphabet", [&] { return probe.task->alphabet(); });
  const std::set<std::string> distinct(alphabet.begin(), alphabet.end());
  report.require(
      "alphabet",
      alphabet.empty() ||
          (Index(alphabet.size()) == probe.shape.output_size && probe.shape.input_size == probe.shape.output_size &&
           probe.shape.input == InputKind::symbols),
      fmt::format("alphabet() has {} entries; it needs one for each class, and the classes must be the input symbols",
                  alphabet.size()));
  report.require("alphabet", distinct.size() == alphabet.size() && !distinct.contains(""),
                 "an entry of alphabet() is empty or duplicate");
  if (!probe.subject.call("reports", [&] { return probe.task->reports(); }))
    return report.skip("report", "reports() is false");
  check_reports(probe, report);
}

template <class S> void check_task_as(const Subject& subject, CheckReport& report, std::uint64_t seed) {
  report.at({scalar_name<S>, "", seed});
  std::optional<TaskProbe<S>> made;
  attempt(subject, report, "shape", [&] {
    made.emplace(subject, report, seed);
    const std::string fault = shape_fault(made->shape);
    report.demand("shape", fault.empty(), fault);
  });
  attempt(subject, report, "batches", [&] { check_batches(*made, report, seed); });
  attempt(subject, report, "loss", [&] { check_loss(*made, report, seed); });
  if constexpr (std::is_same_v<S, double>) attempt(subject, report, "baseline", [&] { check_baseline(*made, report); });
  attempt(subject, report, "report", [&] { check_report(*made, report); });
  attempt(subject, report, "files", [&] {
    for (const DataFile& f : subject.call("files", [&] { return made->task->files(); }))
      report.require("files", std::filesystem::exists(f.path),
                     fmt::format("the file {} named by files() does not exist", f.path));
  });
}

void check_task_scalars(const Subject& subject, CheckReport& report, std::uint64_t seed) {
  const TaskProbe<float> single(subject, report, seed);
  const TaskProbe<double> reference(subject, report, seed);
  Batch<float> f = single.fill(Split::train, 0);
  Batch<double> d = reference.fill(Split::train, 0);
  Comparison comparison;
  report.require("float as double",
                 f.sequences() == d.sequences() && f.steps() == d.steps() && f.labels() == d.labels() &&
                     f.symbols() == d.symbols(),
                 "a seed gives different sequences, labels or symbols in the other scalar type");
  if (f.sequences() != d.sequences() || f.steps() != d.steps()) return;
  comparison.matrices("inputs", f.inputs(), d.inputs());
  const auto nan_as_number = [](double x) { return std::isnan(x) ? guard_value : x; };  // targets of weight 0
  comparison.matrices("targets", f.targets().template cast<double>().unaryExpr(nan_as_number),
                      d.targets().unaryExpr(nan_as_number));
  report.measure("float as double", comparison, 1e-5 * std::max(1., comparison.scale()));
}

}  // namespace

void check_task(const Subject& subject, CheckReport& report) {
  subject.enter("create");
  try {
    const TaskProbe<float> probe(subject, report, 1);
  } catch (const Error& e) {
    if (e.code() == Exit::data) return report.leave("create", e.what());
    report.demand("create", false, e.what());
  }
  report.require("memory", true, "");
  for (const std::uint64_t seed : subject.seeds(2)) {
    if (subject.wants<float>()) check_task_as<float>(subject, report, seed);
    if (subject.wants<double>()) check_task_as<double>(subject, report, seed);
    if (!subject.wants<float>() || !subject.wants<double>()) continue;
    report.at({"", "", seed});
    attempt(subject, report, "float as double", [&] { check_task_scalars(subject, report, seed); });
  }
}

template void check_batches<float>(const TaskProbe<float>&, CheckReport&, std::uint64_t);
template void check_batches<double>(const TaskProbe<double>&, CheckReport&, std::uint64_t);

}  // namespace stiefel::conformance
