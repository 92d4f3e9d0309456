// What a task may report at the end of a run.
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>

#include <sys/resource.h>

#include "training/outcome.hpp"

#include "scratch.hpp"

using namespace stiefel;
using scratch::Folder;
namespace fs = std::filesystem;

TEST_CASE("the outcome of a task: names that are refused") {
  Folder folder;
  RunOutcome outcome(folder.path / "outcome");
  for (const char* name : {"", "A", "a/b", "a-b", "a b"}) CHECK_THROWS_AS(outcome.scalar(name, 1, 1), Error);
  for (const char* name : {"", ".", "..", ".x", "a/b", "/a"}) CHECK_THROWS_AS(outcome.file(name, "x"), Error);
  CHECK(!fs::exists(folder.path / "outcome"));
  outcome.scalar("mean", 1, 1);
  outcome.scalar("mean", 4, 2);
  CHECK(outcome.quantities().at("mean").sum / outcome.quantities().at("mean").weight == 3);
}

TEST_CASE("the outcome of a task: a file for which there is no room is an error and leaves nothing") {
  Folder folder;
  RunOutcome outcome(folder.path / "outcome");
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  Exit code = Exit::done;
  try {
    outcome.file("wave.wav", std::string(5000, 'x'));
  } catch (const Error& error) {
    code = error.code();
  }
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK(code == Exit::exhausted);
  CHECK(fs::is_empty(folder.path / "outcome"));
}
