// Checkpoints: what is written comes back, and what is damaged is never used.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include <stiefel/error.hpp>
#include <stiefel/random.hpp>

#include "record/hdf5.hpp"
#include "scratch.hpp"
#include "training/checkpoint.hpp"
#include "training/checkpoint_index.hpp"

using namespace stiefel;
namespace fs = std::filesystem;

namespace {

Layout layout_of_two() {
  Layout layout;
  layout.add("recurrent.", {{"A", 12, 3, 4}, {"angles", 5}});
  return layout;
}

Checkpoint<double> checkpoint_of(Index step) {
  Checkpoint<double> checkpoint;
  checkpoint.step = step;
  Rng rng(std::uint64_t(step), "checkpoint");
  for (int i = 0; i < 17; ++i) checkpoint.network.values.push_back(rng.normal());
  checkpoint.network.values[3] = -0.0;
  checkpoint.network.values[4] = std::numeric_limits<double>::denorm_min();
  checkpoint.best = checkpoint.network;
  checkpoint.best.values[0] = 1;
  MemoryArchive archive;
  double number = 1.0 / 3;
  std::int64_t count = 1234567890123;
  archive.value("number", number);
  archive.value("count", count);
  checkpoint.network.plugins["recurrent"] = checkpoint.best.plugins["recurrent"] = checkpoint.parts["trainer"] =
      archive.items();
  checkpoint.carried = Matrix<double>::Random(3, 2);
  checkpoint.rows = {{"/steps", 40}, {"/spectrum/recurrent", 2}};
  return checkpoint;
}

/// The same in form, other in every number.
Checkpoint<double> blank() {
  Checkpoint<double> checkpoint = checkpoint_of(1);
  for (double& x : checkpoint.network.values) x = 7;
  for (StateItems* items : {&checkpoint.network.plugins["recurrent"], &checkpoint.parts["trainer"]})
    for (auto& [name, item] : *items) std::fill(item.bytes.begin(), item.bytes.end(), 0);
  return checkpoint;
}

}  // namespace

TEST_CASE("a checkpoint comes back as it was") {
  const scratch::Folder run;
  const Layout layout = layout_of_two();
  const Checkpoint<double> written = checkpoint_of(20);
  write_checkpoint(run.path, layout, written, 2, 0);
  const auto file = newest_checkpoint(run.path, [](const std::string& line) { FAIL(line); });
  REQUIRE(file);
  Checkpoint<double> read = blank();
  read_checkpoint(*file, layout, read);
  CHECK(read.step == 20);
  CHECK(read.network.values == written.network.values);
  CHECK(std::signbit(read.network.values[3]));
  CHECK(read.best.values == written.best.values);
  CHECK(read.network.plugins == written.network.plugins);
  CHECK(read.parts == written.parts);
  CHECK(read.carried == written.carried);
  CHECK(read.rows == written.rows);
  CHECK(!newest_checkpoint(run.path / "elsewhere", [](const std::string&) {}));
}

TEST_CASE("files of steps that the index does not name are removed, but not when there is no index") {
  const scratch::Folder run;
  write_checkpoint(run.path, layout_of_two(), checkpoint_of(20), 2, 0);
  const fs::path whole = RunFolder{run.path}.network("step_00000020"),
                 unlisted = RunFolder{run.path}.network("step_00000010");
  const fs::path best = RunFolder{run.path}.network("best");
  for (const fs::path& copy : {unlisted, best}) fs::copy_file(whole, copy);
  remove_unlisted_checkpoints(run.path);
  CHECK(fs::exists(whole));
  CHECK(fs::exists(best));
  CHECK_FALSE(fs::exists(unlisted));
  fs::remove(run.path / "checkpoints/index.json");
  remove_unlisted_checkpoints(run.path);
  CHECK(fs::exists(whole));
}

TEST_CASE("checkpoints without their index are not taken for none") {
  const scratch::Folder run;
  const auto ignored = [](const std::string&) {};
  write_checkpoint(run.path, layout_of_two(), checkpoint_of(20), 2, 0);
  scratch::write(run.path / "checkpoints/index.json", R"({"format_version": 1, "checkpoints": []})");
  CHECK_FALSE(newest_checkpoint(run.path, ignored));  // as a kill between the first checkpoint and its entry leaves it
  fs::remove(run.path / "checkpoints/index.json");
  CHECK_THROWS_WITH_AS(newest_checkpoint(run.path, ignored),
                       doctest::Contains("index.json is missing, without which step_00000020.h5"), Error);
}

TEST_CASE("another network's checkpoint is refused") {
  const scratch::Folder run;
  write_checkpoint(run.path, layout_of_two(), checkpoint_of(20), 2, 0);
  const fs::path file = run.path / "checkpoints/step_00000020.h5";
  Layout larger = layout_of_two();
  larger.add("readout.", {{"U", 2}});
  Checkpoint<double> read = blank();
  read.network.values.resize(19);
  CHECK_THROWS_WITH_AS(read_checkpoint(file, larger, read),
                       doctest::Contains("/weights/readout.U: it belongs to a different network"), Error);
  read = blank();
  read.parts["optimizer_0"];
  read.parts["optimizer_0"]["moment"] = {StateItem::float64, std::vector<char>(8)};
  CHECK_THROWS_WITH_AS(read_checkpoint(file, layout_of_two(), read), doctest::Contains("/run/optimizer_0/moment"),
                       Error);
  Checkpoint<float> single;
  single.network.values.resize(17);
  CHECK_THROWS_WITH_AS(read_checkpoint(file, layout_of_two(), single), doctest::Contains("precision"), Error);
}

TEST_CASE("flipped bits and cut ends are found before a file is used") {
  const scratch::Folder run;
  const Layout layout = layout_of_two();
  for (const Index step : {10, 20, 30}) write_checkpoint(run.path, layout, checkpoint_of(step), 3, 0);
  const std::vector<std::string> names = {"step_00000010.h5", "step_00000020.h5", "step_00000030.h5", "index.json"};
  Rng rng(1, "damage");
  Index passed_over = 0, refused = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::string& name = names[std::size_t(rng.integer(0, 4))];
    const fs::path path = run.path / "checkpoints" / name;
    const std::string good = scratch::read(path);
    std::string bad = good;
    const auto place = std::size_t(rng.integer(0, std::int64_t(good.size())));
    if (rng.integer(0, 4) == 0)
      bad.resize(place);
    else
      bad[place] = char(bad[place] ^ (1 << rng.integer(0, 8)));
    scratch::write(path, bad);
    CAPTURE(name);
    CAPTURE(place);
    std::vector<std::string> told;
    try {
      const auto chosen = newest_checkpoint(run.path, [&](const std::string& line) { told.push_back(line); });
      if (name == "index.json") {
        if (chosen) {  // whole, whatever the index says of the others
          Checkpoint<double> read = blank();
          read_checkpoint(*chosen, layout, read);
          CHECK(read.network.values == checkpoint_of(read.step).network.values);
        }
      } else {
        REQUIRE(chosen);
        CHECK(chosen->filename() != name);
        CHECK(chosen->filename() == (name == names[2] ? names[1] : names[2]));
        CHECK(told.size() == (name == names[2] ? 1 : 0));
      }
      ++passed_over;
    } catch (const Error& error) {
      CHECK(error.code() == Exit::damaged);
      CHECK(name == "index.json");
      ++refused;
    }
    scratch::write(path, good);
  }
  MESSAGE(passed_over, " passed over, ", refused, " refused");
  CHECK(passed_over > 0);
  CHECK(refused > 0);
}

TEST_CASE("every single bit and every length of a file of 200 kB is found" * doctest::skip()) {  // soak.checkpoint
  const scratch::Folder run;
  Layout layout;
  layout.add("recurrent.", {{"A", 12000, 120, 100}});
  Checkpoint<double> checkpoint = checkpoint_of(1);
  checkpoint.network.values.resize(12000, 0.5);
  checkpoint.best.values = checkpoint.network.values;
  write_checkpoint(run.path, layout, checkpoint, 3, 0);
  const auto is_used = [&] {
    try {
      return newest_checkpoint(run.path, [](const std::string&) {}).has_value();
    } catch (const Error& error) {
      return error.code() != Exit::damaged;
    }
  };
  REQUIRE(is_used());
  const fs::path path = run.path / "checkpoints/step_00000001.h5";
  const std::string good = scratch::read(path);
  REQUIRE(good.size() >= 200'000);
  std::size_t used = 0;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](std::size_t place, char byte) {
    file.seekp(std::streamoff(place));
    file.put(byte).flush();
  };
  for (std::size_t place = 0; place < good.size(); ++place) {
    for (int bit = 0; bit < 8; ++bit) {
      put(place, char(good[place] ^ (1 << bit)));
      used += is_used();
    }
    put(place, good[place]);
  }
  REQUIRE(is_used());
  for (std::size_t size = good.size(); size-- > 0;) {
    fs::resize_file(path, size);
    used += is_used();
  }
  MESSAGE((8 * good.size()), " flipped bits and ", good.size(), " lengths, ", used, " of them used");
  CHECK(used == 0);
}

TEST_CASE("an invalid index is refused with a remedy") {
  const scratch::Folder run;
  const auto refusal = [&](const std::string& text) {
    scratch::write(run.path / "checkpoints/index.json", text);
    try {
      newest_checkpoint(run.path, [](const std::string&) {});
    } catch (const Error& error) {
      CHECK(error.code() == Exit::damaged);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto entry = [](const std::string& file, const std::string& step = "1",
                        const std::string& sum = std::string(64, '0')) {
    return "{\"file\": \"" + file + "\", \"step\": " + step + ", \"bytes\": 1, \"sha256\": \"" + sum + "\"}";
  };
  const auto index = [](const std::string& entries) {
    return "{\"format_version\": 1, \"checkpoints\": [" + entries + "]}";
  };
  CHECK(refusal("").find("is not a JSON document") != std::string::npos);
  CHECK(refusal("[]").find("is damaged") != std::string::npos);
  CHECK(refusal("{\"format_version\": 0, \"checkpoints\": []}").find("is damaged: it has format version 0") !=
        std::string::npos);
  CHECK(refusal("{\"format_version\": 99, \"checkpoints\": []}").find("newer stiefel") != std::string::npos);
  const std::string whole = "step_00000001.h5";
  CHECK(refusal(index(entry(whole))).find("no checkpoint of") == 0);
  for (const char* name :
       {"../x.h5", "/etc/passwd", "a/b.h5", ".", "..", "", "step_1.h5", "step_00000002.h5", "\\u001b[2J"})
    CHECK(refusal(index(entry(name))).find("a file that is not a checkpoint") != std::string::npos);
  for (const char* step : {"-1", "1.0", "1e300", "18446744073709551615", "null", "\"1\""})
    CHECK(refusal(index(entry(whole, step))).find("its step is not a valid number") != std::string::npos);
  CHECK(refusal(index(entry(whole, "1", "00"))).find("not a SHA-256") != std::string::npos);
  CHECK(refusal(index(entry(whole) + "," + entry(whole))).find("do not increase") != std::string::npos);
  CHECK(refusal("{\"format_version\": 1, \"checkpoints\": {}}").find("not a list") != std::string::npos);
  CHECK(refusal("{\"format_version\": 2, \"checkpoints\": []}").find("is damaged") != std::string::npos);
  for (const char* name : {"../x.h5", "/etc/passwd", "step_00000001.h5", "log.txt", ""})
    CHECK(refusal("{\"format_version\": 2, \"checkpoints\": [], \"files\": [" + entry(name) + "]}")
              .find("not a network") != std::string::npos);
  CHECK(refusal(std::string(100000, '[')).find("index.json") != std::string::npos);
}

TEST_CASE("numbers are stored in their own type") {
  const scratch::Folder run;
  Checkpoint<float> checkpoint;
  checkpoint.step = 1;
  checkpoint.network.values.assign(17, 0.1f);
  std::int64_t huge = (std::int64_t(1) << 60) + 1, least = std::numeric_limits<std::int64_t>::min();
  std::vector<float> single = {1.0f / 3, -0.0f};
  MemoryArchive archive;
  archive.value("huge", huge);
  archive.value("least", least);
  archive.array("single", single);
  checkpoint.parts["optimizer_0"] = archive.items();
  checkpoint.carried = Matrix<float>::Random(3, 2);
  write_checkpoint(run.path, layout_of_two(), checkpoint, 1, 0);
  const fs::path file = RunFolder{run.path}.network("step_00000001");
  {
    const hdf5::File stored = hdf5::File::open(file);
    CHECK(stored.root().dataset("/weights/recurrent.A").type() == hdf5::Type::f4);
    CHECK(stored.root().dataset("/run/carried").type() == hdf5::Type::f4);
    CHECK(stored.root().dataset("/run/optimizer_0/single").type() == hdf5::Type::f4);
    CHECK(stored.root().dataset("/run/optimizer_0/huge").read<std::int64_t>() == std::vector{huge});
  }
  Checkpoint<float> read = checkpoint;
  read.network.values.assign(17, 0);
  for (auto& [name, item] : read.parts["optimizer_0"]) std::fill(item.bytes.begin(), item.bytes.end(), 0);
  read.carried.resize(0, 0);
  read_checkpoint(file, layout_of_two(), read);
  CHECK(read.network.values == checkpoint.network.values);
  CHECK(read.parts == checkpoint.parts);
  CHECK(read.carried == checkpoint.carried);
}

TEST_CASE("a file whose name stays is refused unless it is the one that was listed, or the one before") {
  const scratch::Folder run;
  const NetworkState<double> first = checkpoint_of(1).network, second = checkpoint_of(2).network;
  const auto is_whole = [&](const std::string& file) {
    try {
      demand_whole(run.path, file);
      return true;
    } catch (const Error& error) {
      CHECK(error.code() == Exit::damaged);
      CHECK(std::string(error.what()).find(listed_path(run.path, file).string() + " is damaged") == 0);
      return false;
    }
  };
  write_network(run.path, "best", layout_of_two(), first, 1);
  const std::string before = scratch::read(RunFolder{run.path}.network("best"));
  CHECK(is_whole("best.h5"));
  write_network(run.path, "best", layout_of_two(), second, 2);
  const std::string after = scratch::read(RunFolder{run.path}.network("best"));
  REQUIRE(before != after);
  scratch::write(RunFolder{run.path}.network("best"),
                 before);  // as a kill between the entry and the renaming leaves it
  CHECK(is_whole("best.h5"));
  settle_files(run.path);
  CHECK(is_whole("best.h5"));
  scratch::write(RunFolder{run.path}.network("best"), after);
  CHECK_FALSE(is_whole("best.h5"));

  write_network(run.path, "last", layout_of_two(), second, 2);
  scratch::write(run.path / "results.h5.new", "rows");
  list_file(run.path, "results.h5", run.path / "results.h5.new");
  fs::rename(run.path / "results.h5.new", run.path / "results.h5");
  scratch::write(RunFolder{run.path}.network("best"), before);
  Rng rng(1, "flips");
  Index refused = 0;
  for (int round = 0; round < 300; ++round) {
    const std::string file =
        std::vector<std::string>{"best.h5", "last.h5", "results.h5"}[std::size_t(rng.integer(0, 3))];
    const std::string good = scratch::read(listed_path(run.path, file));
    std::string bad = good;
    const auto place = std::size_t(rng.integer(0, std::int64_t(good.size())));
    bad[place] = char(bad[place] ^ (1 << rng.integer(0, 8)));
    CHECK(is_whole(file));
    scratch::write(listed_path(run.path, file), bad);
    refused += !is_whole(file);
    scratch::write(listed_path(run.path, file), good);
  }
  CHECK(refused == 300);
}

TEST_CASE("files of format 1 have no sums until they are replaced") {
  const scratch::Folder run;
  write_network(run.path, "best", layout_of_two(), checkpoint_of(1).network, 1);
  const std::string before = scratch::read(RunFolder{run.path}.network("best"));
  scratch::write(run.path / "checkpoints/index.json", R"({"format_version": 1, "checkpoints": []})");
  demand_whole(run.path, "best.h5");
  write_network(run.path, "best", layout_of_two(), checkpoint_of(2).network, 2);
  CHECK(read_checkpoint_index(run.path).entries_of("best.h5").size() == 2);
  scratch::write(RunFolder{run.path}.network("best"), before);
  demand_whole(run.path, "best.h5");
  scratch::write(RunFolder{run.path}.network("best"), before + "x");
  CHECK_THROWS_WITH_AS(demand_whole(run.path, "best.h5"), doctest::Contains("it is not what was written"), Error);
}

TEST_CASE("a lost index is not taken for format 1") {
  const scratch::Folder run;
  write_network(run.path, "best", layout_of_two(), checkpoint_of(1).network, 1);
  fs::remove(run.path / "checkpoints/index.json");
  CHECK_THROWS_WITH_AS(demand_whole(run.path, "best.h5"), doctest::Contains("index.json is missing"), Error);
}
