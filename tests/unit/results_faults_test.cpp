// What is left of the result file when the process is killed, the disk is full or a system call fails: always the last
// published whole.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <random>
#include <thread>

#include <stiefel/error.hpp>

#include "record/progress.hpp"
#include "record/recorder_thread.hpp"
#include "results_files.hpp"

using namespace stiefel;

// These take the place of the C library's in libstiefel and libhdf5: call number `fail_from` and all later ones fail.
namespace {
struct Fault {
  std::atomic<int> calls{0}, fail_from{0};
  int error = ENOSPC;
  bool fails() { return ++calls >= fail_from && fail_from > 0; }
  void set(int from, int with) {
    calls = 0;
    error = with;
    fail_from = from;
  }
};
std::atomic<bool> fsync_held{false};
Fault pwrite_fault, fsync_fault, rename_fault, fallocate_fault;
}  // namespace

#pragma GCC visibility push(default)
extern "C" {
ssize_t pwrite(int file, const void* data, size_t bytes, off_t place) {
  if (pwrite_fault.fails()) return errno = pwrite_fault.error, -1;
  return syscall(SYS_pwrite64, file, data, bytes, place);
}
ssize_t pwrite64(int file, const void* data, size_t bytes, off64_t place) { return pwrite(file, data, bytes, place); }
int fsync(int file) {
  while (fsync_held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (fsync_fault.fails()) return errno = fsync_fault.error, -1;
  return int(syscall(SYS_fsync, file));
}
int rename(const char* from, const char* to) noexcept {
  if (rename_fault.fails()) return errno = rename_fault.error, -1;
  return int(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int fallocate(int file, int mode, off_t place, off_t bytes) {
  if (fallocate_fault.fails()) return errno = fallocate_fault.error, -1;
  return int(syscall(SYS_fallocate, file, mode, place, bytes));
}
}
#pragma GCC visibility pop

namespace {

constexpr Index n = 20;

class Run {
 public:
  explicit Run(const std::filesystem::path& folder)
      : writer_(folder, small_header()),
        steps_(writer_.define(steps_table())),
        spectrum_(writer_.define(spectrum_table(n))) {}
  void append(Index rows) {
    for (Index i = 0; i < rows; ++i) {
      ++row_;
      append_step(writer_, steps_, double(row_));
      append_spectrum(writer_, spectrum_, n, double(row_));
    }
  }
  void publish() { writer_.publish(row_, {}); }
  /// The exit code that publish() throws, done if none.
  Exit try_publish(std::string* text = nullptr) {
    try {
      publish();
    } catch (const Error& error) {
      if (text) *text = error.what();
      return error.code();
    }
    return Exit::done;
  }
  Index rows() const { return row_; }

 private:
  ResultWriter writer_;
  int steps_, spectrum_;
  Index row_ = 0;
};

int open_files() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

const char* const folder_variable = "STIEFEL_TEST_FOLDER";

/// This program again, as the child that publishes until it is killed.
pid_t start_publisher(const std::filesystem::path& folder) {
  ::setenv(folder_variable, folder.c_str(), 1);
  char program[] = "results_faults_test", which[] = "--test-case=publish for ever", all[] = "--no-skip",
       quiet[] = "--minimal";
  char* words[] = {program, which, all, quiet, nullptr};
  pid_t child = 0;
  const int result = ::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, words, environ);
  ::unsetenv(folder_variable);
  REQUIRE(result == 0);
  return child;
}

/// Waits for the first published file and then for `more` further ones.
void wait_for_publishes(const std::filesystem::path& file, int more) {
  std::filesystem::file_time_type last{};
  std::error_code absent;
  for (int seen = 0, polls = 0; seen <= more && polls < 60000; ++polls) {
    const auto time = std::filesystem::last_write_time(file, absent);
    if (!absent && time != last) {
      last = time;
      ++seen;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  REQUIRE(std::filesystem::exists(file));
}

void kill_and_wait(pid_t child) {
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));  // it was still publishing
}

}  // namespace

TEST_CASE("publish for ever" * doctest::skip()) {
  const char* folder = std::getenv(folder_variable);
  if (!folder) return;
  Run run(folder);
  while (true) {
    run.append(7);
    run.publish();
  }
}

TEST_CASE("a killed process leaves the last published file whole") {
  std::mt19937 random(1);
  Index published = 0;
  for (int kill = 0; kill < 20; ++kill) {
    const Folder folder;
    const pid_t child = start_publisher(folder.path());
    wait_for_publishes(folder.results(), kill % 4);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
    kill_and_wait(child);
    const auto step = Index(ResultReader(folder.results()).number_attribute("/", "committed_step"));
    CHECK(step > 0);
    CHECK(step % 7 == 0);
    CHECK(wrong_entries(folder.results(), step, n) == 0);
    published += step / 7;
  }
  CHECK(published >= 50);  // 20 first ones and 0 + 1 + 2 + 3 more in turn
}

TEST_CASE("a reader that opens the file all the time always finds it whole") {
  const Folder folder;
  const pid_t child = start_publisher(folder.path());
  wait_for_publishes(folder.results(), 0);
  int wrong = 0;
  Index last = 0;
  for (int i = 0; i < 100; ++i) {
    const ResultReader reader(folder.results());
    const auto step = Index(reader.number_attribute("/", "committed_step"));
    wrong += step < last || reader.shape("/steps/loss")[0] != std::uint64_t(step) ||
             Index(reader.read("/steps/step").values.back()) != step;
    last = step;
  }
  kill_and_wait(child);
  CHECK(wrong == 0);
}

TEST_CASE(
    "a disk that fills up at any write of HDF5 leaves the file byte-equal, and publishing goes on when there is room "
    "again") {
  const Folder folder;
  Run run(folder.path());
  run.append(20);
  run.publish();
  const std::string before = bytes_of(folder.results());
  run.append(30);
  const int files = open_files();
  int failures = 0;
  for (int k = 1;; ++k) {
    CAPTURE(k);
    std::string text;
    pwrite_fault.set(k, k % 3 ? ENOSPC : EDQUOT);
    const Exit code = run.try_publish(&text);
    const bool reached = pwrite_fault.calls >= k;
    pwrite_fault.set(0, 0);
    if (!reached) {
      CHECK(code == Exit::done);
      break;
    }
    ++failures;
    REQUIRE(code == Exit::exhausted);
    REQUIRE(text.find(folder.path().string()) != std::string::npos);
    REQUIRE(bytes_of(folder.results()) == before);
    REQUIRE_FALSE(folder.has_temporary_file());
    REQUIRE(open_files() == files);
  }
  CHECK(failures > 20);
  CHECK(wrong_entries(folder.results(), 50, n) == 0);
  run.append(5);
  run.publish();
  CHECK(wrong_entries(folder.results(), 55, n) == 0);
}

TEST_CASE("a write error inside HDF5 is one line that says why and what to do") {
  const Folder folder;
  Run run(folder.path());
  run.append(20);
  const std::pair<int, std::string> errors[] = {
      {EIO, "Input/output error; check the disk"},
      {EFBIG, "File too large; raise the limit on the size of files with ulimit -f"},
      {ENOSPC, "No space left on device; free some space there"}};
  for (const auto& [number, sentence] : errors)
    for (const int call : {1, 3, 10}) {
      CAPTURE(sentence);
      CAPTURE(call);
      std::string text;
      pwrite_fault.set(call, number);
      CHECK(run.try_publish(&text) == Exit::exhausted);
      pwrite_fault.set(0, 0);
      CAPTURE(text);
      CHECK(text.starts_with("HDF5 could not "));
      CHECK(text.ends_with(sentence));
      CHECK(text.find(folder.results().string()) != std::string::npos);
      CHECK(text.size() < folder.path().string().size() + 150);
      CHECK(text.find('\n') == std::string::npos);
    }
}

TEST_CASE("a result file that something has replaced or removed during the run is damage") {
  const Folder folder;
  Run run(folder.path());
  run.append(2);
  run.publish();
  std::filesystem::rename(folder.results(), folder.path() / "away");
  std::string text;
  CHECK(run.try_publish(&text) == Exit::damaged);
  CHECK(text.starts_with(folder.results().string() + " is not the file that this run wrote"));
  std::filesystem::create_directory(folder.results());
  CHECK(run.try_publish() == Exit::damaged);
  std::filesystem::remove(folder.results());
  std::filesystem::rename(folder.path() / "away", folder.results());
  CHECK(run.try_publish() == Exit::done);
}

TEST_CASE("the first publish on a full disk leaves nothing") {
  const Folder folder;
  Run run(folder.path());
  run.append(3);
  for (int k : {1, 2, 5, 20}) {
    pwrite_fault.set(k, ENOSPC);
    CHECK(run.try_publish() == Exit::exhausted);
    pwrite_fault.set(0, 0);
    CHECK(std::filesystem::is_empty(folder.path()));
  }
  run.publish();
  CHECK(wrong_entries(folder.results(), 3, n) == 0);
}

TEST_CASE("room is reserved before a byte is written, and the error says how much is needed") {
  const Folder folder;
  Run run(folder.path());
  run.append(20);
  run.publish();
  const auto size = std::filesystem::file_size(folder.results());
  run.append(1000);
  fallocate_fault.set(1, ENOSPC);
  pwrite_fault.set(0, 0);
  std::string text;
  CHECK(run.try_publish(&text) == Exit::exhausted);
  CHECK(pwrite_fault.calls == 0);
  const std::string start = "no room for " + folder.results().string() + ": ";
  REQUIRE(text.starts_with(start));
  const double needed = std::stod(text.substr(start.size()));
  fallocate_fault.set(1, EOPNOTSUPP);  // a file system that cannot reserve
  CHECK(run.try_publish() == Exit::done);
  fallocate_fault.set(0, 0);
  const auto grown = std::filesystem::file_size(folder.results());
  CHECK(grown > size);
  CHECK(double(grown) < needed);
  CHECK(needed < 4 * double(grown));
  CHECK(wrong_entries(folder.results(), 1020, n) == 0);
}

TEST_CASE("a limit on the size of files, at many sizes") {
  const Folder folder;
  Run run(folder.path());
  run.append(50);
  run.publish();
  const std::string before = bytes_of(folder.results());
  run.append(200);
  rlimit old;
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  int failures = 0;
  for (rlim_t limit = 0; limit < 4 * before.size(); limit += before.size() / 8) {
    const rlimit small{limit, old.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    const Exit code = run.try_publish();
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &old) == 0);
    if (code == Exit::done) break;
    ++failures;
    CHECK(code == Exit::exhausted);
    CHECK(bytes_of(folder.results()) == before);
  }
  ::signal(SIGXFSZ, handler);
  CHECK(failures > 8);
  CHECK(wrong_entries(folder.results(), 250, n) == 0);
}

TEST_CASE("fsync and rename that fail keep the old file; a failed sync of the directory never doubles rows") {
  const Folder folder;
  Run run(folder.path());
  run.append(4);
  run.publish();
  const std::string before = bytes_of(folder.results());
  run.append(4);
  fsync_fault.set(1, EIO);
  CHECK(run.try_publish() == Exit::exhausted);
  CHECK(bytes_of(folder.results()) == before);
  fsync_fault.set(0, 0);
  rename_fault.set(1, EIO);
  CHECK(run.try_publish() == Exit::exhausted);
  CHECK(bytes_of(folder.results()) == before);
  rename_fault.set(0, 0);
  fsync_fault.set(2, EIO);  // the second is the directory's
  CHECK(run.try_publish() == Exit::exhausted);
  fsync_fault.set(0, 0);
  CHECK(wrong_entries(folder.results(), 8, n) == 0);
  run.publish();
  CHECK(wrong_entries(folder.results(), 8, n) == 0);
}

TEST_CASE("a progress line that does not fit is taken back whole") {
  const Folder folder;
  const std::filesystem::path path = folder.path() / "progress.jsonl";
  ProgressLog progress(path);
  progress.write(1, 0.5, {});
  const std::string before = bytes_of(path);
  rlimit old;
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{before.size() + 10, old.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  Exit code = Exit::done;
  try {
    progress.write(2, 0.5, {});
  } catch (const Error& error) {
    code = error.code();
  }
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &old) == 0);
  ::signal(SIGXFSZ, handler);
  CHECK(code == Exit::exhausted);
  CHECK(bytes_of(path) == before);
}

TEST_CASE("while the disk is slow the recorder's callers go on until the queue is full") {
  const Folder folder;
  RecorderThread recorder(folder.path(), small_header(), {}, 3);
  const int steps = recorder.define(steps_table());
  const auto append = [&](double row) { recorder.append(steps, row, std::array{told(0, row), 1e9 + row}); };
  append(1);
  recorder.wait();
  fsync_held = true;
  recorder.publish(1, {});
  while (!folder.has_temporary_file()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (double row : {2.0, 3.0, 4.0}) append(row);  // returns although nothing moves
  std::atomic<bool> returned = false;
  std::thread caller([&] {
    append(5);
    returned = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK_FALSE(returned);
  fsync_held = false;
  caller.join();
  CHECK(returned);
  recorder.finish(5, {});
  CHECK(ResultReader(folder.results()).read("/steps/step").values == std::vector<double>{1, 2, 3, 4, 5});
}

TEST_CASE("a recorder that is left without finish drops what is queued and publishes nothing more") {
  const Folder folder;
  std::thread release;
  {
    RecorderThread recorder(folder.path(), small_header());
    const int steps = recorder.define(steps_table());
    fsync_held = true;
    recorder.publish(0, {});
    while (!folder.has_temporary_file()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    recorder.append(steps, 1, std::array{0.5, 1.0});
    recorder.publish(1, {});
    release = std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      fsync_held = false;
    });
  }
  release.join();
  CHECK(ResultReader(folder.results()).number_attribute("/", "committed_step") == 0);
}

TEST_CASE("a full disk in the recorder's thread reaches the caller, and the process ends in order") {
  const Folder folder;
  RecorderThread recorder(folder.path(), small_header());
  recorder.publish(0, {});
  recorder.wait();
  const std::string before = bytes_of(folder.results());
  fallocate_fault.set(1, ENOSPC);
  recorder.publish(1, {});
  Exit code = Exit::done;
  try {
    recorder.finish(2, {});
  } catch (const Error& error) {
    code = error.code();
  }
  fallocate_fault.set(0, 0);
  CHECK(code == Exit::exhausted);
  CHECK(bytes_of(folder.results()) == before);
}
