// The run directory: names, states, and a lock that one living process holds and a dead one loses.
#include <doctest/doctest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include <stiefel/error.hpp>

#include "base/atomic_file.hpp"
#include "record/run_directory.hpp"
#include "results_files.hpp"
#include "training/outcome.hpp"

using namespace stiefel;

namespace {

const char* const folder_variable = "STIEFEL_TEST_FOLDER";

pid_t start_child(const std::filesystem::path& folder, const std::string& test) {
  ::setenv(folder_variable, folder.c_str(), 1);
  std::string which = "--test-case=" + test;
  char program[] = "run_directory_test", all[] = "--no-skip", quiet[] = "--minimal";
  char* words[] = {program, which.data(), all, quiet, nullptr};
  pid_t child = 0;
  const int result = ::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, words, environ);
  ::unsetenv(folder_variable);
  REQUIRE(result == 0);
  return child;
}

void wait_for(const std::filesystem::path& path) {
  for (int i = 0; i < 24000 && !std::filesystem::exists(path); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  REQUIRE(std::filesystem::exists(path));
}

std::string refusal(const std::function<void()>& call, Exit expected) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code() == expected);
    return error.what();
  }
  return "not refused";
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  REQUIRE(place != std::string::npos);
  text.replace(place, from.size(), to);
}

}  // namespace

TEST_CASE("hold the lock" * doctest::skip()) {
  if (!std::getenv(folder_variable)) return;
  const RunLock lock(std::getenv(folder_variable));
  std::ofstream(std::filesystem::path(std::getenv(folder_variable)) / "held") << "yes";
  while (true) ::pause();
}

TEST_CASE("race for the lock" * doctest::skip()) {
  if (!std::getenv(folder_variable)) return;
  const std::filesystem::path folder = std::getenv(folder_variable);
  while (!std::filesystem::exists(folder / "go")) std::this_thread::yield();
  try {
    const RunLock lock(folder);
    std::ofstream(folder / ("won." + std::to_string(::getpid()))) << "yes";
    while (!std::filesystem::exists(folder / "stop")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } catch (const Error& error) {
    CHECK(error.code() == Exit::in_use);
    std::ofstream(folder / ("lost." + std::to_string(::getpid()))) << "yes";
  }
}

TEST_CASE("a run's directory is made once, with its configuration, and has a state") {
  const Folder folder;
  const std::filesystem::path path = folder.path() / "adding" / "0123abcd";
  CHECK(run_state(path) == RunState::none);
  {
    std::vector<std::filesystem::path> told;
    const RunDirectory run = RunDirectory::create(folder.path(), "adding", "0123abcd", "name: adding\n",
                                                  [&](const std::filesystem::path& made) {
                                                    told.push_back(made);
                                                    CHECK(std::filesystem::is_directory(made));
                                                    CHECK_FALSE(std::filesystem::exists(made / "config.yaml"));
                                                  });
    CHECK(told == std::vector<std::filesystem::path>{path});
    CHECK(run.path() == path);
    CHECK(bytes_of(path / "config.yaml") == "name: adding\n");
    CHECK(run_state(path) == RunState::running);
    CHECK(refusal([&] { RunDirectory::create(folder.path(), "adding", "0123abcd", ""); }, Exit::in_use)
              .find("is in use by process") != std::string::npos);
  }
  CHECK(run_state(path) == RunState::unfinished);
  CHECK_FALSE(std::filesystem::exists(path / "lock"));
  CHECK(refusal([&] { RunDirectory::create(folder.path(), "adding", "0123abcd", ""); }, Exit::usage)
            .find("nothing is overwritten") != std::string::npos);
  CHECK(bytes_of(path / "config.yaml") == "name: adding\n");
  for (const char* half_written : {"results.h5.0123abcd.tmp", "lock.12.tmp", "outcome/sound.wav.tmp"}) {
    std::filesystem::create_directories((path / half_written).parent_path());
    std::ofstream(path / half_written) << "x";
  }
  {
    const RunDirectory again = RunDirectory::open(path);
    CHECK(run_state(path) == RunState::running);
    CHECK_FALSE(std::filesystem::exists(path / "results.h5.0123abcd.tmp"));
    CHECK_FALSE(std::filesystem::exists(path / "lock.12.tmp"));
    CHECK(std::filesystem::is_empty(path / "outcome"));
    ResultWriter writer(path, small_header());
    writer.publish(0, {});
    Status status;
    status.state = "finished";
    writer.publish(1, status);
  }
  CHECK(run_state(path) == RunState::finished);
  CHECK(refusal([&] { RunDirectory::open(folder.path()); }, Exit::usage).find("no config.yaml") != std::string::npos);
}

TEST_CASE("a run starts again unless it has saved something") {
  const Folder folder;
  const std::filesystem::path path = folder.path() / "adding" / "0123abcd";
  const auto create = [&] { return RunDirectory::create(folder.path(), "adding", "0123abcd", "name: adding\n"); };
  {
    const RunDirectory run = create();
    ResultWriter(path, small_header()).publish(0, {});
    std::filesystem::create_directory(path / "checkpoints");
    for (const char* file : {"checkpoints/index.json", "progress.jsonl", "log.txt"}) std::ofstream(path / file) << "x";
    CHECK(refusal([&] { start_again(path); }, Exit::in_use).find("is in use by process") != std::string::npos);
  }
  CHECK_FALSE(has_saved(path));
  start_again(path);
  CHECK(run_state(path) == RunState::none);
  CHECK_FALSE(std::filesystem::exists(path / "checkpoints"));
  CHECK(bytes_of(path / "log.txt") == "x");
  {
    const RunDirectory run = create();
    ResultWriter(path, small_header()).publish(5, {});
  }
  CHECK(has_saved(path));
  start_again(path);
  CHECK(run_state(path) == RunState::unfinished);
  std::ofstream(path / "results.h5") << "damaged";
  CHECK(has_saved(path));
  std::filesystem::remove(path / "results.h5");
  CHECK_FALSE(has_saved(path));
  std::filesystem::create_directory(path / "checkpoints");
  std::ofstream(path / "checkpoints/best.h5") << "x";
  CHECK(has_saved(path));
}

TEST_CASE("of two that replace a file at the same time, the second wins, and both write all of it") {
  const Folder folder;
  AtomicFile first(folder.results()), second(folder.results());
  first.write("first");
  second.write("second");
  first.replace();
  CHECK(bytes_of(folder.results()) == "first");
  second.replace();
  CHECK(bytes_of(folder.results()) == "second");
  CHECK_FALSE(folder.has_temporary_file());
}

TEST_CASE("names that would leave the folder of the runs are refused") {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("../x"),
        std::string("/tmp"), std::string("a\nb"), std::string("a\0b", 3), std::string(201, 'a'), std::string("-x")}) {
    CAPTURE(name);
    CHECK(refusal([&] { run_path("runs", name, "id"); }, Exit::usage).find(" of a run must ") != std::string::npos);
    CHECK(refusal([&] { run_path("runs", "name", name); }, Exit::usage).find("the id ") != std::string::npos);
  }
  CHECK(run_path("runs", "große Läufe 1", "0a") == "runs/große Läufe 1/0a");
  CHECK(run_path("runs", std::string(200, 'a'), "0a").string().size() == 208);
}

TEST_CASE("files of an outcome stay in its folder") {
  const Folder folder;
  RunOutcome outcome(folder.path() / "outcome");
  for (const char* name : {"", ".", "..", "../x", "/absolute", "a/b", ".hidden", "-dash", "new\nline", "esc\x1b[2J",
                           "c1\xc2\x9b", "caf\xe9"})
    CHECK(refusal([&] { outcome.file(name, "x"); }, Exit::plugin).find("cannot name a file of the outcome") !=
          std::string::npos);
  CHECK(refusal([&] { outcome.file(std::string(201, 'x'), "x"); }, Exit::plugin).find("at most 200 bytes") !=
        std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "outcome"));
  for (const std::string name : {"two words.wav", "it's", "Löwdin", "x"}) {
    outcome.file(name, "bytes");
    CHECK(bytes_of(folder.path() / "outcome" / name) == "bytes");
  }
}

TEST_CASE("a folder that cannot be a run's is not left behind") {
  const Folder folder;
  std::filesystem::create_directory(folder.path() / "elsewhere");
  std::filesystem::create_directory_symlink(folder.path() / "elsewhere", folder.path() / "linked");
  CHECK(
      refusal([&] { RunDirectory::create(folder.path(), "linked", "0123abcd", ""); }, Exit::usage).find("is a link") !=
      std::string::npos);
  for (const std::string file : {"log.txt", "progress.jsonl", "checkpoints"}) {
    const std::filesystem::path run = folder.path() / "made" / file;
    std::filesystem::create_directories(run);
    std::filesystem::create_directory_symlink(folder.path() / "elsewhere", run / file);
    CHECK(refusal([&] { RunDirectory::create(folder.path(), "made", file, ""); }, Exit::usage)
              .find(file + " is a link") != std::string::npos);
  }
  CHECK(std::filesystem::is_empty(folder.path() / "elsewhere"));
  const std::filesystem::path root = folder.path() / "new" / std::string(256, 'x');
  CHECK(
      refusal([&] { RunDirectory::create(root, "adding", "0123abcd", ""); }, Exit::usage).find("File name too long") !=
      std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "new"));
}

TEST_CASE("the lock of a living process holds, that of a killed one is taken over") {
  const Folder folder;
  const pid_t child = start_child(folder.path(), "hold the lock");
  wait_for(folder.path() / "held");
  const std::string text = refusal([&] { RunLock lock(folder.path()); }, Exit::in_use);
  CHECK(text.find("is in use by process " + std::to_string(child) + " on ") != std::string::npos);
  CHECK(run_state(folder.path()) == RunState::running);
  ::kill(child, SIGKILL);
  int status = 0;
  siginfo_t information;
  REQUIRE(::waitid(P_PID, id_t(child), &information, WEXITED | WNOWAIT) == 0);  // dead, not yet reaped
  CHECK(run_state(folder.path()) == RunState::none);
  ::waitpid(child, &status, 0);
  CHECK(std::filesystem::exists(folder.path() / "lock"));
  {
    const RunLock lock(folder.path());
    CHECK(run_state(folder.path()) == RunState::running);
  }
  CHECK_FALSE(std::filesystem::exists(folder.path() / "lock"));
}

TEST_CASE("who was taken for dead and has lost the lock is told to write nothing more") {
  const Folder folder;
  const RunDirectory run = RunDirectory::create(folder.path(), "adding", "0123abcd", "a: 1\n");
  const std::filesystem::path lock = run.path() / "lock";
  CHECK_NOTHROW(run.require_lock());
  std::string other = bytes_of(lock);
  replace(other, "\"host\":\"", "\"host\":\"elsewhere-");
  replace(other, "\"boot\":\"", "\"boot\":\"x");
  std::ofstream(lock, std::ios::trunc) << other;
  CHECK(refusal([&] { run.require_lock(); }, Exit::in_use).find("its lock was taken over by process ") !=
        std::string::npos);
  std::filesystem::remove(lock);
  CHECK(refusal([&] { run.require_lock(); }, Exit::in_use).find("its lock was removed") != std::string::npos);
}

TEST_CASE("a lock from before a restart, of a used-again pid or without sense is stale; one of another host holds") {
  const Folder folder;
  std::string own;
  {
    const RunLock lock(folder.path());
    own = bytes_of(folder.path() / "lock");
  }
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string content = own;
    replace(content, from, to);
    std::ofstream(folder.path() / "lock", std::ios::trunc) << content;
  };
  with("\"boot\":\"", "\"boot\":\"x");
  CHECK_NOTHROW(RunLock(folder.path()));
  with("\"boot\":\"", "\"machine\":\"\",\"boot\":\"x");  // of an older version
  CHECK_NOTHROW(RunLock(folder.path()));
  with("\"start\":\"", "\"start\":\"9");
  CHECK_NOTHROW(RunLock(folder.path()));
  std::string renamed = own;  // the host, while the owner was dead
  replace(renamed, "\"host\":\"", "\"host\":\"once-");
  replace(renamed, "\"start\":\"", "\"start\":\"9");
  std::ofstream(folder.path() / "lock", std::ios::trunc) << renamed;
  CHECK_NOTHROW(RunLock(folder.path()));
  std::ofstream(folder.path() / "lock", std::ios::trunc) << "";
  CHECK_NOTHROW(RunLock(folder.path()));
  std::ofstream(folder.path() / "lock", std::ios::trunc) << "{\"host\": 3}";
  CHECK_NOTHROW(RunLock(folder.path()));
  replace(own, "\"boot\":\"", "\"boot\":\"y");
  with("\"host\":\"", "\"host\":\"elsewhere-");
  CHECK(refusal([&] { RunLock lock(folder.path()); }, Exit::in_use).find(" on elsewhere-") != std::string::npos);
  CHECK(bytes_of(folder.path() / "lock").find("elsewhere-") != std::string::npos);
  with("\"machine\":\"", "\"machine\":\"9");  // of the same name
  CHECK(refusal([&] { RunLock lock(folder.path()); }, Exit::in_use).find("is in use by process ") != std::string::npos);
}

TEST_CASE("a lock is touched while its owner lives, so that no worker on another host takes it for lost") {
  const Folder folder;
  const RunLock lock(folder.path());
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(folder.path() / "lock", old);
  const auto limit = std::chrono::steady_clock::now() + usual_patience / 2;
  while (std::filesystem::last_write_time(folder.path() / "lock") == old && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(std::filesystem::last_write_time(folder.path() / "lock") > old);
}

TEST_CASE("a lock that cannot be read is an error that names it, and no end of the program") {
  const Folder folder;
  std::filesystem::create_directory(folder.path() / "lock");
  CHECK(refusal([&] { RunLock lock(folder.path()); }, Exit::usage).find("lock failed: Is a directory") !=
        std::string::npos);
  std::filesystem::remove(folder.path() / "lock");
  {
    const RunLock lock(folder.path());
    std::filesystem::remove(folder.path() / "lock");
    std::filesystem::create_directory(folder.path() / "lock");
  }
  CHECK(std::filesystem::is_directory(folder.path() / "lock"));
}

TEST_CASE("of processes that race for a stale lock exactly one wins") {
  for (int race = 0; race < 10; ++race) {
    const Folder folder;
    std::ofstream(folder.path() / "lock") << "{}";
    std::vector<pid_t> children;
    for (int i = 0; i < 6; ++i) children.push_back(start_child(folder.path(), "race for the lock"));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::ofstream(folder.path() / "go") << "yes";
    int won = 0, lost = 0;
    for (int i = 0; i < 24000 && won + lost < 6; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      won = lost = 0;
      for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
        won += entry.path().stem() == "won";
        lost += entry.path().stem() == "lost";
      }
    }
    std::ofstream(folder.path() / "stop") << "yes";
    for (pid_t child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      CHECK(status == 0);
    }
    CHECK(won == 1);
    CHECK(lost == 5);
  }
}
