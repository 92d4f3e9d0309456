// What is read of progress.jsonl and log.txt while they grow.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include "base/printable.hpp"
#include "cli/progress.hpp"
#include "record/progress.hpp"
#include "results/analysis/progress_reader.hpp"
#include "scratch.hpp"

using namespace stiefel;
using scratch::Folder;

namespace {

void append(const std::filesystem::path& path, const std::string& text) { std::ofstream(path, std::ios::app) << text; }

}  // namespace

TEST_CASE("--quiet prints warnings and --no-progress no progress") {
  CHECK(cli::choose_verbosity(true, true) == cli::Verbosity::quiet);
  CHECK(cli::choose_verbosity(false, false) == cli::Verbosity::notes);
  CHECK(cli::choose_verbosity(false, true) > cli::Verbosity::notes);
}

TEST_CASE("durations") {
  const std::pair<double, std::string> durations[] = {{0, "0 s"},           {0.4321, "0.43 s"},  {12.4, "12 s"},
                                                      {59.7, "1 min 00 s"}, {245, "4 min 05 s"}, {12000, "3 h 20 min"}};
  for (const auto& [seconds, text] : durations) CHECK(duration_text(seconds) == text);
  CHECK(duration_text(std::nan("")) == "?");
}

TEST_CASE("a line of progress.jsonl: its content, and invalid lines") {
  const auto line =
      parse_progress(R"({"step":5,"wall_time":1.5e9,"step_seconds":0.25,"steps":20.0,"loss":null,"best":-1})");
  REQUIRE(line);
  CHECK(line->step == 5);
  CHECK(line->steps == 20);
  CHECK(line->step_seconds == 0.25);
  CHECK(std::isnan(line->loss));
  CHECK(line->best == -1);
  for (const std::string text :
       {"", "{", "5", "[]", R"({"loss":1})", R"({"step":-1})", R"({"step":1e300})", R"({"step":"5"})"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_progress(text));
  }
  CHECK_FALSE(parse_progress(std::string(1'000'000, '[')));
}

TEST_CASE("lines that are damaged or of another run are left out") {
  Folder folder;
  const auto file = folder.path / "one" / "progress.jsonl";
  std::filesystem::create_directory(file.parent_path());
  {
    const std::pair<std::string, double> values[] = {{"steps", 10}, {"loss", 0.125}, {"best", 0.25}};
    ProgressLog(file).write(7, 0.5, values);
  }
  std::ifstream stream(file);
  const std::string whole{std::istreambuf_iterator<char>(stream), {}};
  const auto shown = [](const std::filesystem::path& run) {
    ProgressReader reader(run);
    reader.update();
    return std::array<double, 5>{double(reader.latest().step), double(reader.latest().steps),
                                 reader.latest().step_seconds, reader.latest().loss, reader.latest().best};
  };
  const std::array<double, 5> right{7, 10, 0.5, 0.125, 0.25};
  CHECK(shown(file.parent_path()) == right);
  CHECK(shown(folder.path / "." / "one" / "") == right);
  int left_out = 0;
  for (std::size_t bit = 0; bit < 8 * (whole.size() - 1); ++bit) {
    std::string text = whole;
    text[bit / 8] = char(text[bit / 8] ^ (1 << bit % 8));
    std::ofstream(file) << text;
    CAPTURE(text);
    const auto found = shown(file.parent_path());
    if (found[0] == -1)
      ++left_out;
    else
      CHECK(found == right);
  }
  CHECK(left_out > 4 * int(whole.size()));
  std::ofstream(file) << whole;
  rename(file.parent_path(), folder.path / "other");
  CHECK(shown(folder.path / "other")[0] == -1);
}

TEST_CASE("the length of a run is the latest one, and a run without a folder waits") {
  Folder folder;
  for (const char* steps : {"2000", "1000"})
    append(folder.path / "progress.jsonl", std::string(R"({"step":500,"steps":)") + steps + "}\n");
  ProgressReader reader(folder.path), planned(folder.path / "planned");
  reader.update();
  planned.update();
  CHECK(reader.latest().steps == 1000);
  CHECK(planned.state() == "waiting");
}

TEST_CASE("a growing run: what is new, torn lines, a resumed run, and how it ended") {
  Folder folder;
  ProgressReader reader(folder.path);
  reader.update();
  CHECK(reader.state() == "stopped");
  CHECK(reader.latest().step == -1);
  CHECK(std::isnan(reader.seconds_left()));
  {
    ProgressLog log(folder.path / "progress.jsonl");
    for (int step = 1; step <= 3; ++step) {
      const std::pair<std::string, double> values[] = {{"steps", 10}, {"loss", 1.0 / step}, {"best", std::nan("")}};
      log.write(step, 0.5, values);
    }
  }
  append(folder.path / "progress.jsonl", R"({"step":4,"st)");
  reader.update();
  CHECK(reader.latest().step == 3);
  CHECK(reader.losses() == std::vector<double>{1, 0.5, 1.0 / 3});
  append(folder.path / "progress.jsonl", "eps\":10,\"loss\":0.25,\"best\":0.3}\nnot JSON\n");
  reader.update();
  CHECK(reader.latest().step == 4);
  CHECK(reader.latest().best == 0.3);
  append(folder.path / "progress.jsonl", "{\"step\":2,\"loss\":0.5}\n");
  reader.update();
  CHECK(reader.losses() == std::vector<double>{0.5});
  CHECK(reader.latest().steps == 10);

  append(folder.path / "log.txt", "step 2 epoch 1.00 train loss 0.5\npreempted: stopped by signal 15\n");
  reader.update();
  CHECK(reader.state() == "stopped");
  append(folder.path / "log.txt", "failed: disk full\n");
  reader.update();
  CHECK(reader.state() == "failed");
  append(folder.path / "log.txt", "resumed after step 2\n");
  reader.update();
  CHECK(reader.state() == "stopped");
  append(folder.path / "log.txt", "finished: test loss 0.3\n");
  reader.update();
  CHECK(reader.state() == "finished");
}

TEST_CASE("the time left follows from that since the run was started or resumed, evaluations included") {
  Folder folder;
  ProgressReader reader(folder.path);
  const auto left_after = [&](const std::string& line) {
    append(folder.path / "progress.jsonl", line + "\n");
    reader.update();
    return reader.seconds_left();
  };
  CHECK(left_after(R"({"step":1,"steps":10,"wall_time":1000,"step_seconds":0.5,"seconds":2})") == 4.5);
  CHECK(left_after(R"({"step":3,"steps":10,"wall_time":87408,"step_seconds":0.5,"seconds":10})") == 7 * 4.0);
  CHECK(left_after(R"({"step":3,"steps":10,"wall_time":87409,"step_seconds":0.5,"valid_loss":1})") == 7 * 4.0);
  CHECK(left_after(R"({"resumed_after":2,"wall_time":9000})") == 8 * 0.5);
  CHECK(left_after(R"({"step":3,"steps":10,"wall_time":9004,"step_seconds":0.5,"seconds":8})") == 7 * 0.5);
  CHECK(left_after(R"({"step":4,"steps":10,"wall_time":9006,"step_seconds":0.5,"seconds":10})") == 6 * 2.0);
}

TEST_CASE("rates have three digits and no exponent") {
  for (const auto& [rate, text] : {std::pair(0.01234, "0.0123"),
                                   {98.76, "98.8"},
                                   {999.4, "999"},
                                   {999.6, "1,000"},
                                   {1223.4, "1,220"},
                                   {1234567.0, "1,230,000"}})
    CHECK(cli::rate_text(rate) == text);
  Progress progress;
  progress.step = 1220, progress.steps = 2440, progress.seconds = 1;
  CHECK(cli::progress_line(progress, 120).find("  1,220 steps/s  ") != std::string::npos);
}

TEST_CASE("a long run keeps at most 1,024 losses, from all of it") {
  Folder folder;
  std::string text;
  for (int step = 1; step <= 100'000; ++step)
    text += "{\"step\":" + std::to_string(step) + ",\"loss\":" + std::to_string(step) + "}\n";
  append(folder.path / "progress.jsonl", text);
  ProgressReader reader(folder.path);
  reader.update();
  CHECK(reader.losses().size() <= 1024);
  CHECK(reader.losses().size() > 500);
  CHECK(reader.losses().front() == 1);
  CHECK(reader.losses().back() > 99'000);
  CHECK(std::is_sorted(reader.losses().begin(), reader.losses().end()));
}
