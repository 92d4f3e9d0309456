// Sweeps: what one file expands to, where errors point, draws, halving, plans on the disk, claims.
#include "sweep/sweep.hpp"
#include <doctest/doctest.h>
#include <set>
#include <thread>
#include "base/file_content.hpp"
#include "record/run_directory.hpp"
#include "record/run_lock.hpp"
#include "record/writer.hpp"
#include "sweep/halving.hpp"
#include "sweep/worker.hpp"

#include "config_plugins.hpp"

using namespace stiefel;
using config_test::contains, config_test::Folder, config_test::valid;
namespace fs = std::filesystem;

namespace {

struct Sweeps {
  Folder folder;
  Registry registry = config_test::registry();

  Sweep load(const std::string& many, const std::vector<std::string>& overrides = {}) {
    return *load_sweep(folder.write("sweep.yaml", valid + many), overrides, registry);
  }
  std::string refusal(const std::string& many, const std::vector<std::string>& overrides = {}) {
    try {
      load(many, overrides);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
};

std::vector<std::string> column(const Sweep& sweep, const std::string& key) {
  const auto k = std::size_t(std::ranges::find(sweep.keys, key) - sweep.keys.begin());
  REQUIRE(k < sweep.keys.size());
  std::vector<std::string> values;
  for (const SweepRun& run : sweep.runs) values.push_back(run.values[k]);
  return values;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a grid with seeds is the product of the lists, and each run is the ordinary run with these values") {
  Sweeps sweeps;
  const Sweep sweep = sweeps.load(
      "seeds: 0..1\nsweep:\n  model.recurrent: [{plugin: householder, reflections: 2}, dense]\n  optimizer.rate: [0.1, "
      "0.02]\n");
  CHECK(sweep.keys == Texts{"model.recurrent", "optimizer.rate", "seed"});
  REQUIRE(sweep.runs.size() == 8);
  CHECK(sweep.runs[0].values == Texts{"{plugin: householder, reflections: 2}", "0.1", "0"});
  CHECK(sweep.runs[1].values == Texts{"{plugin: householder, reflections: 2}", "0.1", "1"});
  CHECK(sweep.runs[7].values == Texts{"dense", "0.02", "1"});
  CHECK(sweep.runs[7].id == config_test::load(valid, {"model.recurrent=dense", "optimizer.rate=0.02", "seed=1"}).id);
  CHECK(sweep.runs[2].id ==
        config_test::load(valid, {"model.recurrent.reflections=2", "optimizer.rate=0.02", "seed=0"}).id);
  CHECK(config_test::load(sweep.runs[2].yaml).id == sweep.runs[2].id);
}

TEST_CASE("values that mean the same run are one run") {
  Sweeps sweeps;
  const Sweep sweep =
      sweeps.load("sweep: {model.recurrent: [householder, {plugin: householder, reflections: 4}], threads: [1, 2]}\n");
  CHECK(sweep.combinations == 4);
  CHECK(sweep.runs.size() == 1);
}

TEST_CASE(
    "a sweep over files that are extended: each run is the ordinary run of a file with the sweep's keys over it") {
  Sweeps sweeps;
  sweeps.folder.write("dense.yaml", "extends: [plain.yaml]\nmodel: {recurrent: dense}\ntrain: {batch: 30}\n");
  sweeps.folder.write("narrow.yaml", "model: {cell: {hidden: 3}}\n");
  const std::string common = "name: table\nseeds: 1..2\ntrain: {steps: 7}\n";
  const std::string plain = sweeps.folder.write("plain.yaml", valid);
  const auto load = [&](const std::string& text) {
    return *load_sweep(sweeps.folder.write("sweep.yaml", text), {}, sweeps.registry);
  };
  const Sweep sweep = load(common + "sweep: {extends: [plain.yaml, dense.yaml, [dense.yaml, narrow.yaml]]}\n");
  CHECK(sweep.keys == Texts{"extends", "seed"});
  CHECK(column(sweep, "extends") == Texts{"plain.yaml", "plain.yaml", "dense.yaml", "dense.yaml",
                                          "[dense.yaml, narrow.yaml]", "[dense.yaml, narrow.yaml]"});
  const Texts said = {"name=table", "train.steps=7", "seed=2"};
  const auto with = [&](Texts more) {
    more.insert(more.end(), said.begin(), said.end());
    return config_test::load(valid, more).id;
  };
  CHECK(sweep.runs[1].id == with({}));
  CHECK(sweep.runs[3].id == with({"model.recurrent=dense", "train.batch=30"}));
  CHECK(sweep.runs[5].id == with({"model.recurrent=dense", "train.batch=30", "model.cell.hidden=3"}));

  const auto refusal = [&](const std::string& text) {
    try {
      load(text);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(contains(refusal(common + "sweep: {extends: [plain.yaml, absent.yaml]}\n"), "sweep.yaml:4:31: cannot extend"));
  CHECK(contains(refusal(common + "sweep: {extends: [sweep.yaml]}\n"), "extends itself"));
  sweeps.folder.write("many.yaml", valid + "seeds: 0..9\n");
  sweeps.folder.write("other.yaml", "extends: [plain.yaml]\nsweep: {optimizer.rate: [0.1, 0.2]}\n");
  for (const char* base : {"many.yaml", "other.yaml"})
    CHECK(contains(refusal("name: table\nsweep: {extends: [" + std::string(base) + "]}\n"),
                   "has its own seeds: or sweep:"));
  sweeps.folder.write("named.yaml", "extends: [plain.yaml]\nname: named\n");
  CHECK(contains(refusal("sweep: {extends: [plain.yaml, named.yaml]}\n"), "give the sweep a name"));
}

TEST_CASE("draws do not depend on how many there are, and lie within their bounds") {
  Sweeps sweeps;
  const std::string keys =
      "sweep:\n  optimizer.rate: {log_uniform: [1e-5, 1e-2]}\n  model.cell.hidden: {integer: [2, 5]}\n"
      "  train.batch: {choice: [10, 20]}\n  optimizer.weight_decay: {uniform: [0.25, 0.5]}\n";
  const Sweep few = sweeps.load(keys + "  samples: 5\n"), many = sweeps.load(keys + "  samples: 400\n");
  REQUIRE(few.runs.size() == 5);
  REQUIRE(many.runs.size() == 400);
  for (std::size_t i = 0; i < few.runs.size(); ++i) CHECK(few.runs[i].id == many.runs[i].id);
  std::set<std::string> hidden, batches;
  int below = 0, rates_low = 0, decays_low = 0, both_low = 0;
  for (std::size_t i = 0; i < many.runs.size(); ++i) {
    const double rate = std::stod(column(many, "optimizer.rate")[i]),
                 decay = std::stod(column(many, "optimizer.weight_decay")[i]);
    CHECK((rate >= 1e-5 && rate <= 1e-2));
    CHECK((decay >= 0.25 && decay < 0.5));
    below += rate < std::sqrt(1e-5 * 1e-2);
    rates_low += rate < 1e-5 * std::pow(1e3, 0.25);
    decays_low += decay < 0.3125;
    both_low += rate < std::sqrt(1e-5 * 1e-2) && decay < 0.375;
    hidden.insert(column(many, "model.cell.hidden")[i]);
    batches.insert(column(many, "train.batch")[i]);
  }
  CHECK((below > 160 && below < 240));  // the middle of the logarithm, 200 ± 4 standard deviations
  for (const int quarter : {rates_low, decays_low, both_low})  // both_low: the keys are drawn independently
    CHECK((quarter > 65 && quarter < 135));                    // 100 ± 4 standard deviations
  // A file means the same runs in every version; without a seed, those of the default.
  CHECK(few.runs[0].values == Texts{"6.0608e-05", "4", "10", "0.3598870037187626"});
  CHECK(sweeps.load("seed: 1\n" + keys + "  samples: 5\n").runs[0].id == few.runs[0].id);
  CHECK(hidden == std::set<std::string>{"2", "3", "4", "5"});
  CHECK(batches == std::set<std::string>{"10", "20"});
  CHECK(sweeps.load("seed: 2\n" + keys + "  samples: 5\n").runs[0].values != few.runs[0].values);
  CHECK(sweeps.load(keys + "  samples: 5\n  train.steps: [100, 200]\n").runs.size() == 10);
}

TEST_CASE("what is wrong in a sweep is said once, at the value, whatever the number of runs") {
  Sweeps sweeps;
  const std::string text =
      sweeps.refusal("seeds: [1, two]\nsweep:\n  model.recurrent.reflections: [4, x, 0]\n  model.cell.hiden: [3]\n");
  CHECK(contains(text, "sweep.yaml:9:12: seed must be an integer, got 'two'"));
  CHECK(contains(text, "sweep.yaml:11:36: model.recurrent.reflections must be an integer, got 'x'"));
  CHECK(contains(text, "sweep.yaml:11:39: model.recurrent.reflections must be at least 1, got 0"));
  CHECK(contains(text, "sweep.yaml:12:3: model.cell.hiden is not"));
  CHECK(std::ranges::count(text, '\n') == 3);
  std::string rates = "sweep: {optimizer.rate: [";
  for (int i = 0; i < 100; ++i) rates += (i ? ", a" : "a") + std::to_string(i);
  CHECK(std::ranges::count(sweeps.refusal(rates + "]}\n"), '\n') < 12);
}

TEST_CASE("an override that every run overwrites is refused, one of which something is left is not") {
  Sweeps sweeps;
  const std::string rates = "sweep: {optimizer.rate: [0.1, 0.2]}\n";
  std::string text = sweeps.refusal(rates, {"optimizer.rate=fast"});
  CHECK(contains(text, "command line: optimizer.rate has no effect, because sweep: varies it ("));
  CHECK(contains(text,
                 "sweep.yaml:9:9); leave it out, or replace the values there with 'sweep.\"optimizer.rate\"=[fast]'"));
  CHECK(sweeps.load(rates, {"sweep.\"optimizer.rate\"=[0.5]"}).runs.size() == 1);
  CHECK(contains(sweeps.refusal("seeds: 1..2\n", {"seed=3"}), "sweep.yaml:9:1); use seeds=[3]"));

  const std::string maps = "sweep: {model.recurrent: [{plugin: householder, reflections: 2}, scaled_cayley]}\n",
                    names = "sweep: {model.recurrent: [householder, scaled_cayley]}\n";
  CHECK(contains(sweeps.refusal(maps, {"model.recurrent=dense"}), "varies it ("));
  CHECK(contains(sweeps.refusal(maps, {"model.recurrent.reflections=3"}),
                 "model.recurrent.reflections has no effect, because sweep: varies model.recurrent ("));
  CHECK(contains(sweeps.load(names, {"model.recurrent.reflections=3"}).runs[0].yaml, "reflections: 3\n"));

  const std::string optimizers = "sweep: {optimizer: [adam, sgd]}\n";
  for (const char* kept : {"optimizer.rate=0.5", "optimizer={plugin: sgd, rate: 0.5}"})
    for (const SweepRun& run : sweeps.load(optimizers, {kept}).runs) CHECK(contains(run.yaml, "rate: 0.5\n"));
  CHECK(contains(sweeps.refusal(optimizers, {"optimizer=sgd"}), "varies it ("));
  CHECK(contains(sweeps.load(rates, {"optimizer=sgd"}).runs[0].yaml, "plugin: sgd\n"));

  const std::string draws = "seeds: 1..2\nsweep: {optimizer.rate: {uniform: [0.1, 0.2]}, samples: 1}\n";
  CHECK(sweeps.load(draws, {"seed=3"}).runs[0].values != sweeps.load(draws).runs[0].values);

  sweeps.folder.write("base.yaml", valid);
  const auto over_base = [&](const std::string& override) {
    const std::string over = "name: over\nsweep: {extends: [base.yaml], model.recurrent: [householder, dense]}\n";
    return load_sweep(sweeps.folder.write("over.yaml", over), {override}, sweeps.registry)->runs[0].yaml;
  };
  CHECK(contains(over_base("model.recurrent.reflections=3"), "reflections: 3\n"));
  CHECK_THROWS_WITH_AS(over_base("model.recurrent=dense"), doctest::Contains("has no effect"), Error);
}

TEST_CASE("a file without seeds and sweep is not a sweep, and the command line can make it one") {
  Sweeps sweeps;
  const fs::path file = sweeps.folder.write("one.yaml", valid);
  CHECK(!load_sweep(file, {}, sweeps.registry));
  CHECK(load_sweep(file, {"seeds=[4, 5]"}, sweeps.registry)->runs.size() == 2);
}

TEST_CASE("a range of seeds ends where it says") {
  Sweeps sweeps;
  CHECK(column(sweeps.load("seeds: 9223372036854775806..9223372036854775807\n"), "seed") ==
        Texts{"9223372036854775806", "9223372036854775807"});
  CHECK(contains(sweeps.refusal("seeds: 18446744073709551614..18446744073709551615\n"), "seed must be"));
}

TEST_CASE("halving demands what rungs need") {
  Sweeps sweeps;
  const std::string sweep = "sweep: {optimizer.rate: [0.1, 0.2], halving: {first: 10}";
  CHECK(
      contains(sweeps.refusal(sweep + "}\n"), "sweep.yaml:9:37: sweep.halving: runs are ranked by their evaluations"));
  CHECK(contains(sweeps.refusal("sweep: {optimizer.rate: [0.1, 0.2], halving: {first: 100}}\n"),
                 "must be below train.steps = 100"));
  CHECK(sweeps
            .load("sweep: {optimizer.rate: [0.1, 0.2], halving: {first: 10, factor: 4000000000000000000}, "
                  "train.evaluate_every: [5]}\n")
            .halving->rungs == std::vector<Index>{10});
  const Sweep loaded = sweeps.load(sweep + ", train.evaluate_every: [5]}\n");
  CHECK(loaded.halving->rungs == std::vector<Index>{10, 30, 90});
  CHECK(contains(sweeps.refusal(sweep + ", train.evaluate_every: [5], train.steps: [100, 10000]}\n"),
                 "different numbers of steps"));
}

TEST_CASE("the best of a rung") {
  const double nan = std::nan("");
  using Runs = std::vector<std::size_t>;
  CHECK(best_of({3, 1, 2, 5, 4, 0}, 3, false) == Runs{1, 5});
  CHECK(best_of({3, 1, 2, 5, 4, 0}, 3, true) == Runs{3, 4});
  CHECK(best_of({3, nan, 2, nan}, 2, true) == Runs{0, 2});
  CHECK(best_of({nan, nan, 2, nan}, 2, false) == Runs{2});
  CHECK(best_of({7, 7, 7}, 3, false) == Runs{0});
  CHECK(best_of({1, 2}, 3, true) == Runs{1});
  CHECK(best_of({nan}, 3, true).empty());
  // Seeds of a setting stay together, whatever a single one has.
  CHECK(best_settings({{"a"}, {"a"}, {"b"}, {"b"}, {"c"}, {"c"}}, {1, 9, 4, 4, 7, 2}, 3, false) == Runs{2, 3});
  CHECK(best_settings({{"a"}, {"b"}, {"a"}, {"b"}}, {1, 2, 1, 2}, 2, true) == Runs{1, 3});
  CHECK(best_settings({{"a"}, {"b"}, {"a"}, {"b"}}, {1, 2, nan, 2}, 2, false) == Runs{1, 3});
  CHECK(best_settings({{"a"}, {"b"}, {"c"}}, {3, 3, 3}, 2, false) == Runs{0});
}

TEST_CASE("a plan is read as it was written, and a damaged one is refused") {
  Sweeps sweeps;
  const Sweep sweep = sweeps.load(
      "seeds: 0..2\nsweep: {record.blocks.\"activation.slope\": [1, 2], halving: {first: 20, metric: valid_accuracy}, "
      "train.evaluate_every: [10]}\n");
  const fs::path path = sweeps.folder.path / "sweeps" / "it";
  write_sweep(path, sweep, "stiefel sweep run sweep.yaml");
  const SweepFolder folder(path);
  CHECK(folder.sweep().name == "first");
  CHECK(folder.sweep().keys == sweep.keys);
  REQUIRE(folder.sweep().runs.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    const SweepRun& run = folder.sweep().runs[i];
    CHECK(run.id == sweep.runs[i].id);
    CHECK(run.values == sweep.runs[i].values);
    CHECK(load_experiment(folder.config(run), {}, sweeps.registry).id == run.id);
    CHECK(look_at(folder, run, {}).state == SweepState::waiting);
  }
  CHECK(folder.sweep().halving->metric == "valid_accuracy");
  CHECK(folder.sweep().halving->rungs == std::vector<Index>{20, 60});
  const fs::path table = path / "runs.tsv";
  fs::resize_file(table, fs::file_size(table) - 4);
  CHECK_THROWS_WITH_AS(SweepFolder{path}, doctest::Contains("runs.tsv is damaged"), Error);
  CHECK_THROWS_WITH_AS(SweepFolder{sweeps.folder.path}, doctest::Contains("is not a sweep folder"), Error);
  CHECK_THROWS_WITH_AS(SweepFolder{table}, doctest::Contains("runs.tsv is a file; name the folder of a sweep"), Error);
}

TEST_CASE("the command that planned a sweep is one line of a comment") {
  Sweeps sweeps;
  const fs::path path = sweeps.folder.path / "sweeps" / "it";
  write_sweep(path, sweeps.load("seeds: 0..2\n"), "stiefel sweep run 'two\nlines.yaml'");
  CHECK(file_content(path / "sweep.yaml").starts_with("# stiefel sweep run 'two\\nlines.yaml'\n" + valid));
}

TEST_CASE("runs that are added to a plan leave its folders as they are, and another sweep is refused") {
  Sweeps sweeps;
  const fs::path path = sweeps.folder.path / "sweeps" / "it", data = sweeps.folder.path / "data",
                 others = sweeps.folder.path / "others";
  for (const fs::path& folder : {data, others}) fs::create_directories(folder);
  Sweep sweep = sweeps.load("seeds: [1]\n"), more = sweeps.load("seeds: [2]\n");
  sweep.working_directory = "/planned";
  sweep.data_directory = data;
  add_to_sweep(path, sweep, "");
  more.working_directory = "/elsewhere";
  add_to_sweep(path, more, "");
  CHECK(SweepFolder(path).sweep().runs.size() == 2);
  CHECK(SweepFolder(path).sweep().working_directory == "/planned");
  CHECK(SweepFolder(path).sweep().data_directory == data);
  more.data_directory = others;
  const std::string refusal = "use the data in " + data.string() + "; leave --data out or use another folder";
  CHECK_THROWS_WITH_AS(add_to_sweep(path, more, ""), doctest::Contains(refusal.c_str()), Error);
  fs::remove(data);
  add_to_sweep(path, more, "");
  CHECK(SweepFolder(path).sweep().data_directory == others);
  more.name = "second";
  CHECK_THROWS_WITH_AS(add_to_sweep(path, more, ""), doctest::Contains("holds the sweep first, not second"), Error);
}

TEST_CASE("other rungs or other runs make the old comparisons void, the same plan leaves them") {
  Sweeps sweeps;
  const fs::path path = sweeps.folder.path / "sweeps" / "it";
  const auto plan = [&](const std::string& rates, int first) {
    write_sweep(path,
                sweeps.load("sweep: {optimizer.rate: [" + rates + "], halving: {first: " + std::to_string(first) +
                            "}, train.evaluate_every: [5]}\n"),
                "");
  };
  const auto old_comparison = [&] {
    fs::create_directories(path / "rungs");
    std::ofstream(path / "rungs" / "10.tsv") << "old";
  };
  plan("0.1, 0.2", 10);
  old_comparison();
  plan("0.1, 0.2", 10);
  CHECK(fs::exists(path / "rungs" / "10.tsv"));
  plan("0.1, 0.2", 20);
  CHECK(!fs::exists(path / "rungs" / "10.tsv"));
  old_comparison();
  plan("0.1, 0.2, 0.3", 20);
  CHECK(!fs::exists(path / "rungs" / "10.tsv"));
  CHECK(SweepFolder(path).other_runs().empty());
  const fs::path old = path / "runs" / "first" / "0123456789";
  fs::create_directories(old);
  std::ofstream(old / "config.yaml") << "";
  CHECK(SweepFolder(path).other_runs() == std::vector<fs::path>{old});
}

namespace {

/// The lock of a process on another host.
fs::path foreign_lock(Folder& folder) {
  return folder.write(
      "lock", R"({"host": "elsewhere", "pid": 1, "boot": "b", "namespace": "n", "start": "1", "since": "2024"})");
}

void make_old(const fs::path& lock, std::chrono::milliseconds age) {
  fs::last_write_time(lock, fs::file_time_type::clock::now() - age);
}

}  // namespace

TEST_CASE("a rung is decided by what its runs stored up to it, also while one of them goes on") {
  Sweeps sweeps;
  const fs::path path = sweeps.folder.path / "sweeps" / "it";
  write_sweep(path, sweeps.load("seeds: 0..3\nsweep: {halving: {first: 20, factor: 2}, train.evaluate_every: [10]}\n"),
              "");
  const SweepFolder folder(path);
  const std::vector<SweepRun>& runs = folder.sweep().runs;
  const auto store = [&](std::size_t i, Index committed, double added = 0) {
    fs::create_directories(folder.run(runs[i]));
    fs::remove(folder.run(runs[i]) / "results.h5");
    RunHeader header;
    header.segments = {{.host = "here"}};
    ResultWriter writer(folder.run(runs[i]), header);
    const int epochs = writer.define({.group = "/epochs",
                                      .row = {.name = "step", .type = ColumnType::i8},
                                      .columns = {{.name = "valid_loss", .description = "lower is better"}}});
    for (Index step = 10; step <= committed; step += 10) {
      // Earlier the order is another one, and beyond the rung all are worse.
      const double loss = (step < 20 ? -double(i) : double(i)) + (step > 20 ? 100 : 0) + added;
      writer.append(epochs, double(step), {&loss, 1});
    }
    writer.publish(committed, {});
  };
  const auto looks = [&] {
    std::vector<RunLook> all;
    for (const SweepRun& run : runs) all.push_back(look_at(folder, run, {}));
    return all;
  };
  const auto targets = [&] { return Rungs(folder).targets(looks()); };
  for (std::size_t i = 0; i < 3; ++i) store(i, 20);
  CHECK(targets()[0].step == 20);
  CHECK(!targets()[3].left_out);

  store(3, 20);
  store(0, 30);
  const RunLock at_work(folder.run(runs[0]));
  REQUIRE(look_at(folder, runs[0], {}).state == SweepState::running);
  const std::vector<Target> decided = targets();
  for (std::size_t i = 0; i < 4; ++i) CHECK(decided[i].left_out == (i >= 2));
  CHECK(decided[1].step == 40);
  CHECK(Rungs(folder).why_none_continues(looks()) == "");

  const auto left_out = [&](std::size_t broken, Index step) {
    fs::remove(folder.run(runs[0]) / "lock");
    for (std::size_t i = 0; i < 4; ++i) store(i, i == broken ? step : 20);
    std::ofstream(folder.failure(runs[broken])) << R"({"exit_code": 5, "message": "diverged"})";
    std::vector<bool> found;
    for (const Target& target : targets()) found.push_back(target.left_out);
    fs::remove(folder.failure(runs[broken]));
    return found;
  };
  CHECK(left_out(1, 30) == std::vector<bool>{false, false, true, true});  // broke after it was chosen
  CHECK(left_out(1, 10) == std::vector<bool>{false, true, false, true});  // before it was compared

  fs::remove_all(path / "rungs");
  for (std::size_t i = 0; i < 4; ++i) store(i, 20, std::nan(""));
  for (const Target& target : targets()) CHECK(target.left_out);
  CHECK(Rungs(folder).why_none_continues(looks()).find(
            "no run continues: every setting has a seed without a value of valid_loss where they are compared") == 0);
}

TEST_CASE(
    "a lock of another host is taken over when it was not seen to change for so long, whatever the clock there says") {
  using std::chrono::hours, std::chrono::milliseconds, std::chrono::seconds;
  Folder folder;
  const fs::path lock = foreign_lock(folder);
  CHECK_THROWS_AS(RunLock{folder.path}, Error);
  const LockPatience patience = by_watching(seconds(1));
  make_old(lock, hours(1));
  for (int beat = 0; beat < 20; ++beat) {  // an hour behind, and living
    make_old(lock, hours(1) - milliseconds(beat));
    CHECK_THROWS_WITH_AS(RunLock(folder.path, patience), doctest::Contains("is in use by process 1 on elsewhere"),
                         Error);
    std::this_thread::sleep_for(milliseconds(100));
  }
  make_old(lock, hours(-1));  // an hour ahead, and dead
  int looks = 0;
  while (!living_owner(lock, patience).empty() && looks < 300) {
    std::this_thread::sleep_for(milliseconds(20));
    ++looks;
  }
  CHECK((looks >= 6 && looks < 300));
  const RunLock taken(folder.path, patience);
  CHECK(taken.held());
  foreign_lock(folder);
  CHECK(!taken.held());
}

TEST_CASE("a time without looks is no time without signs of life") {
  Folder folder;
  const fs::path lock = foreign_lock(folder);
  const LockPatience patience = by_watching(std::chrono::seconds(1));
  CHECK(!living_owner(lock, patience).empty());
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // the file server hangs, for its owner as well
  CHECK(!living_owner(lock, patience).empty());
}

TEST_CASE(
    "where nobody watches, the time of the file says how a lock stands; a lost one is removed, a living one is not") {
  Folder folder;
  const fs::path lock = foreign_lock(folder);
  const LockPatience patience = by_file_time(std::chrono::seconds(60));
  remove_lost_lock(lock, patience);
  CHECK(!living_owner(lock, patience).empty());
  make_old(lock, std::chrono::seconds(61));
  CHECK(living_owner(lock, patience).empty());
  touch(lock);
  CHECK(!living_owner(lock, patience).empty());
  make_old(lock, std::chrono::seconds(61));
  remove_lost_lock(lock, {});
  CHECK(fs::exists(lock));
  remove_lost_lock(lock, patience);
  CHECK(!fs::exists(lock));
}

TEST_CASE("a signal that comes more than a second after the first one is not its echo") {
  StopSignals signals;
  const auto begin = StopSignals::Clock::now();
  const auto after = [&](int milliseconds) {
    signals.stop_by(15, begin + std::chrono::milliseconds(milliseconds));
    return signals.insisted.exchange(false);
  };
  CHECK_FALSE(after(0));
  CHECK_FALSE(after(5));
  CHECK_FALSE(after(1000));
  CHECK(after(1001));
  CHECK(after(5000));
  CHECK(signals.stop == 15);
  signals.stop_by(SIGXCPU, begin + std::chrono::seconds(10));
  CHECK_FALSE(signals.insisted);
  CHECK(signals.stop == SIGXCPU);
}
