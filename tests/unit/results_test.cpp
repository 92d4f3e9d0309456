// The result file as it is written and read back: layout, rows, texts, complex numbers, the recorder's thread, progress
// lines, SHA-256.
#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <thread>

#include <stiefel/error.hpp>

#include "base/sha256.hpp"
#include "record/progress.hpp"
#include "record/provenance.hpp"
#include "record/recorder_thread.hpp"
#include "results_files.hpp"

using namespace stiefel;
using Names = std::vector<std::string>;

namespace {

Exit code_of(const std::function<void()>& call, std::string* text = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (text) *text = error.what();
    return error.code();
  }
  return Exit::done;
}

std::string error_text(const std::function<void()>& call) {
  std::string text;
  code_of(call, &text);
  return text;
}

}  // namespace

TEST_CASE("the layout of a published file") {
  const Folder folder;
  ResultWriter writer(folder.path(), small_header());
  const int steps = writer.define(steps_table());
  append_step(writer, steps, 1);
  CHECK_FALSE(std::filesystem::exists(folder.results()));
  writer.publish(1, {});
  const ResultReader reader(folder.results());

  CHECK(reader.children("/") == Names{"config", "provenance", "steps", "status"});
  CHECK(reader.text_attribute("/", "Conventions") == "stiefel-run-1");
  CHECK(reader.number_attribute("/", "format_version") == 2);
  CHECK(reader.text_attribute("/", "title") == "adding, größer");
  CHECK(reader.text_attribute("/", "run_id") == "0123abcd");
  CHECK(reader.text_attribute("/", "created").size() == 20);
  CHECK(reader.number_attribute("/", "committed_step") == 1);
  CHECK(reader.text_attribute("/", "state") == "running");
  CHECK(reader.text_attribute("/", "array_order").find("MATLAB") != std::string::npos);

  CHECK(reader.text("/config/yaml") == "name: adding\n");
  CHECK(reader.text("/config/source") == "name: adding # ∂L/∂h\n");
  CHECK(reader.texts("/config/overrides") == Names{"seed=1", ""});
  CHECK(reader.texts("/config/origins") == Names{"name=adding.yaml:1"});
  CHECK(reader.text_attribute("/config", "hash") == "ff");
  CHECK(reader.attributes("/provenance") == Names{"git_commit", "hostname"});
  CHECK(reader.text_attribute("/provenance", "hostname").empty());
  CHECK(reader.texts("/provenance/plugins/kind") == Names{"parametrisation"});
  CHECK(reader.read("/provenance/datasets/bytes").values == std::vector<double>{9912422});
  CHECK(reader.texts("/provenance/segments/host") == Names{"here"});
  CHECK(reader.children("/steps") == Names{"step", "loss", "rss_bytes"});
  CHECK(reader.text_attribute("/steps/loss", "long_name") == "training loss");
  CHECK(reader.text_attribute("/steps/loss", "description") == "mean over the batch");
  CHECK(reader.text_attribute("/steps/rss_bytes", "units") == "byte");
}

TEST_CASE("every array has units and a long name, and a scale or scales") {
  const Folder folder;
  ResultWriter writer(folder.path(), small_header());
  writer.define(steps_table());
  writer.define(spectrum_table(3));
  Status status;
  writer.publish(0, status);
  const ResultReader reader(folder.results());
  int arrays = 0;
  const std::function<void(const std::string&)> visit = [&](const std::string& path) {
    if (reader.is_group(path)) {
      for (const std::string& name : reader.children(path)) visit((path == "/" ? "" : path) + "/" + name);
      return;
    }
    ++arrays;
    CAPTURE(path);
    CHECK_FALSE(reader.text_attribute(path, "units").empty());
    CHECK_FALSE(reader.text_attribute(path, "long_name").empty());
    const bool scale = reader.has_attribute(path, "CLASS") && reader.text_attribute(path, "CLASS") == "DIMENSION_SCALE";
    CHECK((reader.shape(path).empty() || scale || reader.has_attribute(path, "DIMENSION_LIST")));
  };
  visit("/");
  CHECK(arrays == 34);
}

TEST_CASE("rows of several publishes follow each other") {
  const Folder folder;
  constexpr Index n = 5;
  ResultWriter writer(folder.path(), small_header());
  const int steps = writer.define(steps_table()), spectrum = writer.define(spectrum_table(n));
  Index row = 0;
  for (Index batch : {1, 0, 3, 40, 2, 17}) {  // within a chunk, over its edge, several chunks, none
    for (Index i = 0; i < batch; ++i) {
      ++row;
      append_step(writer, steps, double(row));
      append_spectrum(writer, spectrum, n, double(row));
    }
    writer.publish(row, {});
    CAPTURE(row);
    CHECK(wrong_entries(folder.results(), row, n) == 0);
    CHECK(ResultReader(folder.results()).number_attribute("/status", "committed_step") == double(row));
    CHECK_FALSE(folder.has_temporary_file());
  }
}

TEST_CASE("a table may come later, and NaN, infinities and large integers keep their value") {
  const Folder folder;
  ResultWriter writer(folder.path(), small_header());
  const int steps = writer.define(steps_table());
  append_step(writer, steps, 1);
  writer.publish(1, {});
  const int late = writer.define({.group = "/blocks/slope",
                                  .row = {.name = "snapshot", .type = ColumnType::i8},
                                  .columns = {{.name = "value"}, {.name = "count", .type = ColumnType::i8}}});
  const double infinity = std::numeric_limits<double>::infinity();
  writer.append(late, 1, std::array{std::nan(""), 0x1p53});
  writer.append(late, 2, std::array{-infinity, -0x1p53});
  writer.append(late, 3, std::array{5e-324, 0.0});
  writer.publish(3, {});
  const ResultReader reader(folder.results());
  const Array value = reader.read("/blocks/slope/value");
  CHECK(std::isnan(value.values[0]));
  CHECK(value.values[1] == -infinity);
  CHECK(value.values[2] == 5e-324);
  CHECK(reader.read("/blocks/slope/count").values == std::vector<double>{0x1p53, -0x1p53, 0});
  CHECK(reader.shape("/steps/loss") == std::vector<std::uint64_t>{1});
}

TEST_CASE("axes of texts, two axes, rows longer than a chunk") {
  const Folder folder;
  ResultWriter writer(folder.path(), small_header());
  const Axis block{.name = "block", .labels = {"recurrent.U", "ä"}},
      phase{.name = "phase", .labels = {"data", "forward", "log"}};
  const int timing = writer.define({.group = "/timing",
                                    .row = {.name = "epoch", .type = ColumnType::i8},
                                    .axes = {block, phase},
                                    .columns = {{.name = "seconds", .units = "s", .axes = {"block", "phase"}}}});
  writer.append(timing, 1, std::array{1.0, 2.0, 3.0, 4.0, 5.0, 6.0});
  Axis t{.name = "t"};
  for (Index i = 0; i < 1500000; ++i) t.values.push_back(double(i));
  const int gradient = writer.define(
      {.group = "/gradient", .row = {.name = "snapshot"}, .axes = {t}, .columns = {{.name = "norm", .axes = {"t"}}}});
  writer.append(gradient, 1, t.values);
  writer.publish(1, {});
  const ResultReader reader(folder.results());
  CHECK(reader.texts("/timing/block") == Names{"recurrent.U", "ä"});
  CHECK(reader.texts("/timing/phase") == Names{"data", "forward", "log"});
  CHECK(reader.shape("/timing/seconds") == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(reader.read("/timing/seconds").values == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(reader.read("/gradient/norm").values == t.values);
}

TEST_CASE("the status is that of the last publish") {
  const Folder folder;
  ResultWriter writer(folder.path(), small_header());
  Status status;
  writer.publish(0, status);
  writer.publish(5, status);
  status = {.state = "diverged",
            .message = "NaN in block recurrent at step 7",
            .exit_code = 5,
            .best_metric = 0.25,
            .best_step = 4};
  writer.publish(7, status);
  const ResultReader reader(folder.results());
  CHECK(reader.text_attribute("/", "state") == "diverged");
  CHECK(reader.text_attribute("/status", "state") == "diverged");
  CHECK(reader.text_attribute("/status", "message") == "NaN in block recurrent at step 7");
  CHECK(reader.number_attribute("/status", "exit_code") == 5);
  CHECK(reader.number_attribute("/status", "best_metric") == 0.25);
  CHECK(reader.number_attribute("/status", "best_step") == 4);
  CHECK(reader.read("/provenance/segments/end_step").values == std::vector<double>{7});
  CHECK(reader.texts("/provenance/segments/reason") == Names{"diverged"});
}

TEST_CASE("chunks rewritten many times do not fill the file with holes") {
  const Folder folder;
  constexpr Index n = 1000, publishes = 60;
  ResultWriter writer(folder.path(), small_header());
  const int steps = writer.define(steps_table()), spectrum = writer.define(spectrum_table(n));
  for (Index row = 1; row <= publishes; ++row) {
    append_step(writer, steps, double(row));
    append_spectrum(writer, spectrum, n, double(row));
    writer.publish(row, {});
  }
  CHECK(wrong_entries(folder.results(), publishes, n) == 0);
  const double plain = double(publishes) * 3 * n * 8;
  CHECK(double(std::filesystem::file_size(folder.results())) < 2 * plain + 1e6);
}

TEST_CASE("names that cannot be recorded are refused with a sentence") {
  const Folder folder;
  ResultWriter writer(folder.path(), small_header());
  writer.define(steps_table());
  const auto refusal = [&](Table table) { return error_text([&] { writer.define(std::move(table)); }); };
  CHECK(refusal(steps_table()) == "/steps is recorded twice; rename one of the two");
  CHECK(refusal({.group = "/status"}) == "nothing can be recorded in /status: it belongs to the result file itself");
  CHECK(refusal({.group = "steps"}) == "result group 'steps' must be an absolute path such as /steps");
  CHECK(refusal({.group = "/a/../b"}).find("'..' is not a valid name") != std::string::npos);
  CHECK(refusal({.group = "/a", .row = {.name = "2d"}}).find("'2d' cannot be recorded in /a") != std::string::npos);
  CHECK(refusal({.group = "/a", .row = {.name = "x"}, .columns = {{.name = "x"}}}) ==
        "'x' is recorded twice in /a; rename one of them");
  CHECK(refusal({.group = "/a", .row = {.name = "x"}, .columns = {{.name = "y", .axes = {"t"}}}}) ==
        "result group /a has no axis 't'");
  CHECK(refusal({.group = "/a", .row = {.name = "x"}, .axes = {{.name = "t"}}}) == "axis 't' of /a is empty");
  CHECK(refusal({.group = "/a", .row = {.name = "x"}, .plot = {.signal = "y"}}) == "result group /a has no column 'y'");
}

TEST_CASE("a result file is never overwritten") {
  const Folder folder;
  ResultWriter(folder.path(), small_header()).publish(0, {});
  const std::string before = bytes_of(folder.results());
  CHECK(error_text([&] { ResultWriter(folder.path(), small_header()); }).find("never overwritten") !=
        std::string::npos);
  CHECK(bytes_of(folder.results()) == before);
}

TEST_CASE("reading what is not there or not a result file") {
  const Folder folder;
  CHECK(code_of([&] { ResultReader reader(folder.results()); }) == Exit::usage);
  std::ofstream(folder.results()) << "not HDF5";
  const auto damage = [&](const std::string& what) {
    std::string text;
    CHECK(code_of([&] { ResultReader reader(folder.results()); }, &text) == Exit::damaged);
    CHECK(text.starts_with(folder.results().string() + " is damaged: it is " + what + "; restore it from a copy, or "));
    std::filesystem::remove(folder.results());
    ResultWriter(folder.path(), small_header()).publish(0, {});
  };
  damage("not an HDF5 file");
  std::filesystem::resize_file(folder.results(), 1000);
  damage("truncated");
  const ResultReader reader(folder.results());
  CHECK_FALSE(reader.exists("/steps/loss"));
  std::string text;
  CHECK(code_of([&] { reader.read("/steps/loss"); }, &text) == Exit::damaged);
  CHECK(text == "there is no " + folder.results().string() + ":/steps/loss");
  CHECK(code_of([&] { reader.read("/config/yaml"); }) == Exit::damaged);
  CHECK(code_of([&] { reader.texts("/provenance/segments/started"); }) == Exit::damaged);
  CHECK(code_of([&] { reader.text_attribute("/", "absent"); }) == Exit::damaged);
  CHECK(code_of([&] { reader.text_attribute("/", "format_version"); }) == Exit::damaged);
  CHECK(code_of([&] { reader.number_attribute("/", "title"); }) == Exit::damaged);
}

TEST_CASE("a damaged file gives an error and never a crash") {
  const Folder folder;
  constexpr Index n = 4;
  ResultWriter writer(folder.path(), small_header());
  const int steps = writer.define(steps_table()), spectrum = writer.define(spectrum_table(n));
  for (double row = 1; row <= 40; ++row) {
    append_step(writer, steps, row);
    append_spectrum(writer, spectrum, n, row);
  }
  writer.publish(40, {});
  const std::string whole = bytes_of(folder.results());
  const std::filesystem::path damaged = folder.path() / "damaged.h5";
  int errors = 0;
  for (std::size_t length = 0; length < whole.size(); length += 997) {
    std::ofstream(damaged, std::ios::binary | std::ios::trunc) << whole.substr(0, length);
    errors += code_of([&] { wrong_entries(damaged, 40, n); }) == Exit::damaged;
  }
  CHECK(errors == int(whole.size() / 997 + 1));

  // One bit of each compressed chunk: the checksum tells. They begin with zlib's two bytes for level 4.
  std::string flipped = whole;
  int chunks = 0;
  for (std::size_t place = 0;
       (place = flipped.find("\x78\x5e", place)) != std::string::npos && place + 12 < flipped.size();
       place += 12, ++chunks)
    flipped[place + 12] ^= 1;
  CHECK(chunks > 5);
  std::ofstream(damaged, std::ios::binary | std::ios::trunc) << flipped;
  CHECK(code_of([&] { wrong_entries(damaged, 40, n); }) == Exit::damaged);
}

TEST_CASE("the recorder writes what the writer writes, from its own thread") {
  const Folder folder;
  RecorderThread recorder(folder.path(), small_header(), {}, 4);
  const int steps = recorder.define(steps_table());
  for (double step = 1; step <= 500; ++step) {
    recorder.append(steps, step, std::array{told(0, step), 1e9});
    if (step == 250) recorder.publish(250, {});
  }
  recorder.wait();
  CHECK(ResultReader(folder.results()).shape("/steps/loss") == std::vector<std::uint64_t>{250});
  Status status;
  status.state = "finished";
  recorder.finish(500, status);
  const ResultReader reader(folder.results());
  CHECK(reader.text_attribute("/", "state") == "finished");
  const Array loss = reader.read("/steps/loss");
  REQUIRE(loss.values.size() == 500);
  CHECK(loss.values[499] == told(0, 500));
}

TEST_CASE("networks that wait for a slow disk do not pile up in memory") {
  const Folder folder;
  RecorderThread recorder(folder.path(), small_header());
  const auto network = std::make_shared<int>(0);
  for (int i = 0; i < 20; ++i) {
    recorder.call([network] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ++*network;
    });
    CHECK(network.use_count() <= 4);
  }
  recorder.wait();
  CHECK(*network == 20);
}

TEST_CASE("a slow disk gets the last of several publishes and networks, and all before a checkpoint") {
  const Folder folder;
  RecorderThread recorder(folder.path(), small_header());
  int publishes = 0;
  std::vector<int> networks;
  recorder.before_replacing([&](const std::filesystem::path&) { ++publishes; });
  std::promise<void> disk;
  recorder.call([ready = disk.get_future().share()] { ready.wait(); });
  for (int step = 1; step <= 5; ++step) {
    recorder.publish(step, {});
    recorder.call([&, step] { networks.push_back(step); }, "best");
    if (step == 3) disk.set_value(), recorder.call([] {});
  }
  recorder.wait();
  CHECK(ResultReader(folder.results()).number_attribute("/", "committed_step") == 5);
  CHECK(networks.front() == 3);
  CHECK(networks.back() == 5);
  CHECK(publishes >= 2);
  CHECK(publishes <= 3);
}

TEST_CASE("a failure in the recorder's thread is thrown by the next call and by finish") {
  const Folder folder;
  RecorderThread recorder(folder.path(), small_header());
  const int steps = recorder.define(steps_table());
  recorder.append(steps, 1, std::array{1.0, 2.0});
  std::filesystem::create_directory(folder.results());
  recorder.publish(1, {});
  CHECK_THROWS_AS(recorder.wait(), Error);
  CHECK_THROWS_AS(recorder.append(steps, 2, std::array{1.0, 2.0}), Error);
  CHECK_THROWS_AS(recorder.finish(2, {}), Error);
  CHECK(std::filesystem::remove(folder.results()));
  CHECK_THROWS_AS(RecorderThread(folder.path(), small_header()).define({.group = "no"}), Error);
}

TEST_CASE("progress lines are whole; a resumed run removes later and torn ones and marks the restart") {
  const Folder folder;
  const std::filesystem::path path = folder.path() / "progress.jsonl";
  const auto lines = [&] {
    std::vector<std::string> found;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) found.push_back(line);
    return found;
  };
  {
    ProgressLog progress(path);
    const std::pair<std::string, double> values[] = {{"loss", 0.5}, {"bad \xff", std::nan("")}};
    for (int step : {10, 20, 30}) progress.write(step, 0.25, values);
  }
  const std::vector<std::string> before = lines();
  REQUIRE(before.size() == 3);
  CHECK(before[0].starts_with("{\"step\":10,\"wall_time\":"));
  CHECK(before[0].find("\"step_seconds\":0.25,\"loss\":0.5,\"bad \xEF\xBF\xBD\":null,\"check\":\"") !=
        std::string::npos);
  std::ofstream(path, std::ios::app) << "{\"step\":40,\"wall_";
  ProgressLog(path, 25).write(30, 0, {});
  const std::vector<std::string> resumed = lines();
  REQUIRE(resumed.size() == 4);
  CHECK(std::equal(resumed.begin(), resumed.begin() + 2, before.begin()));
  CHECK(resumed[2].starts_with("{\"resumed_after\":25,\"wall_time\":"));
  CHECK(resumed[3].find("\"step_seconds\":0.0,\"check\":\"") != std::string::npos);
  ProgressLog(path, 25);
  CHECK(lines().size() == 4);
  ProgressLog(path, 0);
  CHECK(lines().size() == 1);
  {
    ProgressLog progress(path);
    for (int step = 1; step <= 5000; ++step) progress.write(step, 0.25, {});
  }
  REQUIRE(std::filesystem::file_size(path) > 4 * 65536);  // more than is read at first
  for (const int step : {4999, 3500, 1200, 3, 0}) {
    ProgressLog(path, step);
    const std::vector<std::string> left = lines();
    REQUIRE(left.size() == std::size_t(step) + 2);  // with the marks of the first restart and of this one
    CHECK(left.back().starts_with("{\"resumed_after\":" + std::to_string(step) + ","));
    if (step > 0) CHECK(left[std::size_t(step)].starts_with("{\"step\":" + std::to_string(step) + ","));
  }
}

TEST_CASE("SHA-256 of FIPS 180-4's examples, of texts and of files") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  const Folder folder;
  const std::filesystem::path path = folder.path() / "million";
  std::ofstream(path) << std::string(1000000, 'a');
  CHECK(sha256_of_file(path) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(code_of([&] { sha256_of_file(folder.path() / "absent"); }) == Exit::usage);
}

TEST_CASE("provenance names compiler, libraries and machine; memory is measured") {
  const auto rows = gather_provenance({"AVX2", 4, {"stiefel", "run", "a b.yaml"}});
  const auto text = [&](const std::string& name) {
    for (const auto& [key, value] : rows)
      if (key == name) return value;
    return std::string("absent");
  };
  CHECK(text("compiler").find(__VERSION__) != std::string::npos);
  CHECK(text("eigen_version").starts_with("3.4"));
  CHECK(text("hdf5_version").starts_with("1."));
  CHECK(text("blas").starts_with("OpenBLAS"));
  CHECK(text("simd_target") == "AVX2");
  CHECK(text("threads") == "4");
  CHECK(text("command_line") == "stiefel run 'a b.yaml'");
  for (const char* name : {"git_commit", "git_dirty", "version", "cxx_flags", "blas_core", "os", "kernel", "libc",
                           "cpu_model", "cpu_flags", "hostname"})
    CHECK_FALSE(text(name).empty());
  CHECK(text("kernel").starts_with("Linux"));

  const std::int64_t before = current_rss_bytes();
  std::vector<char> block(std::size_t(64) << 20, 1);
  CHECK(current_rss_bytes() > before + (std::int64_t(32) << 20));
  CHECK(peak_rss_bytes() > before + (std::int64_t(32) << 20));
  CHECK(block.back() == 1);
}
