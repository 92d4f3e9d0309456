// `stiefel check FILE.so…` or FILE.py… tests what plugins promise. Each file is tested in a child of this program, so that a plugin
// that crashes, hangs or ends the program is a failed check like any other.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include "base/printable.hpp"

#include <stiefel/error.hpp>
#include "base/file_error.hpp"
#include "base/say.hpp"
#include "conformance/check.hpp"

#include "cli/allocation.hpp"
#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/running.hpp"

extern char** environ;

namespace stiefel::cli {
namespace {

using conformance::CheckSettings;

/// The progress of a child, in memory that parent and child share. The child gets the descriptor of that memory as an
/// argument.
class SharedProgress {
 public:
  /// Opens the memory with this descriptor, or makes it if that is negative.
  explicit SharedProgress(int descriptor = -1) : descriptor_(descriptor), owner_(descriptor < 0) {
    if (owner_) descriptor_ = memfd_create("stiefel-check", 0);
    if (descriptor_ < 0 || (owner_ && ftruncate(descriptor_, sizeof(conformance::Progress)) != 0)) fail();
    void* memory = mmap(nullptr, sizeof(conformance::Progress), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (memory == MAP_FAILED) fail();
    progress_ = owner_ ? new (memory) conformance::Progress : static_cast<conformance::Progress*>(memory);
  }
  ~SharedProgress() {
    munmap(progress_, sizeof(conformance::Progress));
    if (owner_) close(descriptor_);
  }
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  conformance::Progress& operator*() const { return *progress_; }
  conformance::Progress* operator->() const { return progress_; }
  int descriptor() const { return descriptor_; }

 private:
  [[noreturn]] static void fail() {
    throw Error(fmt::format("cannot allocate shared memory for the check: {}", std::strerror(errno)), Exit::exhausted);
  }
  int descriptor_;
  bool owner_;
  conformance::Progress* progress_;
};

constexpr int without_method = 64;  // exit code of the check of a file without the requested method

struct Request {
  std::vector<std::string> files;
  CheckSettings settings;
  std::string method;  // check only this one; empty: all
  int limit = 60;      // seconds for a call
};

/// The file itself, or the plugins in a folder. If a folder has none, those in its folder build and in the folders
/// */build. Throws Error (Exit::plugin) if there are none either.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& place) {
  std::error_code failure;
  if (!std::filesystem::is_directory(place, failure)) return {place};
  std::vector<std::filesystem::path> files = plugin_files_in(place, failure), folders = {place};
  if (failure) throw file_error("listing", place, failure.value());
  if (!files.empty()) return files;
  for (const auto& project : std::filesystem::directory_iterator(place)) folders.push_back(project.path());
  for (const std::filesystem::path& folder : folders)
    for (std::filesystem::path& file : plugin_files_in(folder / "build", failure)) files.push_back(std::move(file));
  if (files.empty())
    throw Error(fmt::format("there are no plugins in {0}, {0}/build or {0}/*/build; name a folder with files that end "
                            "in .so",
                            place.string()),
                Exit::plugin);
  std::ranges::sort(files);
  return files;
}

Request read_request(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("check", words);
  Request request;
  for (const std::string& word : arguments.positional)
    if (word.find('=') == word.npos || std::filesystem::exists(word))
      for (const std::filesystem::path& file : files_of(word)) request.files.push_back(file.string());
    else
      request.settings.options.push_back(word);
  const std::string scalar = arguments.value("--scalar");
  if (scalar != "" && scalar != "float32" && scalar != "float64")
    throw Error(fmt::format("--scalar must be float32 or float64, got '{}'", scalar));
  if (scalar != "") request.settings.scalars = {scalar};
  if (arguments.has("--seed") && arguments.has("--seeds")) throw Error("choose one of --seed and --seeds");
  if (arguments.has("--seed"))
    request.settings.seeds = {std::uint64_t(whole_number(arguments, "--seed", 1, 1, LONG_MAX))};
  if (arguments.has("--seeds")) {
    request.settings.seeds.resize(std::size_t(whole_number(arguments, "--seeds", 1)));
    std::iota(request.settings.seeds.begin(), request.settings.seeds.end(), 1);
  }
  request.limit = int(whole_number(arguments, "--limit", request.limit));
  if (arguments.has("--shape")) {
    const std::string shape = arguments.value("--shape");
    const std::size_t cross = shape.find('x');
    if (cross == shape.npos) throw Error(fmt::format("--shape must be ROWSxCOLUMNS, such as 12x8, got '{}'", shape));
    request.settings.rows = whole_number(shape.substr(0, cross), "ROWS of --shape");
    request.settings.cols = whole_number(shape.substr(cross + 1), "COLUMNS of --shape");
  }
  if (allocation_counter) request.settings.allocations = allocation_counter();
  request.method = arguments.value("--method");
  request.settings.data_directory = data_directory(arguments);
  if (!arguments.has("--all")) {
    if (request.files.empty())
      throw Error("name the plugins to check: stiefel check FILE.so…, FILE.py…, stiefel check FOLDER, or --all");
    return request;
  }
  if (!request.files.empty()) throw Error("--all checks every plugin that is found; do not name files as well");
  const Registry registry;
  for (const PluginFile& file : registry.files()) request.files.push_back(file.path.string());
  return request;
}

/// The command that repeats the check of one method.
std::string check_again_command(const std::string& file, const Entry& entry, std::size_t methods,
                                const Request& request) {
  const CheckSettings& settings = request.settings;
  std::string command = "stiefel check " + shell_word(file);
  if (settings.rows) command += fmt::format(" --shape {}x{}", settings.rows, settings.cols);
  if (methods > 1) command += std::string(" --method ") + entry.name;
  if (entry.role == Role::task && !settings.data_directory.empty())
    command += " --data " + shell_word(settings.data_directory);
  for (const std::string& option : settings.options) command += " " + shell_word(option);
  return command;
}

/// The exit code that matters most: a failed check, then other errors, then missing data.
int worst_of(const std::vector<int>& codes) {
  if (codes.empty()) return without_method;
  if (std::ranges::count(codes, int(Exit::plugin)) > 0) return int(Exit::plugin);
  const auto failed = std::ranges::find_if(codes, [](int code) { return code != 0 && code != int(Exit::data); });
  return failed != codes.end() ? *failed : std::ranges::max(codes);
}

/// Checks the methods of one file from number `first` on. Returns the exit code.
int check_file(const std::string& path, int first, const Request& request, conformance::Progress& progress) {
  const Registry registry = is_script(path) ? Registry() : Registry({path});
  CheckSettings settings = request.settings;
  std::vector<const Entry*> entries;
  if (is_script(path)) {
    settings.options.insert(settings.options.begin(), option_of_script(path));
    entries = methods_of_script(registry, path);
  } else {
    const PluginFile* file = nullptr;
    std::error_code ignored;
    for (const PluginFile& f : registry.files())
      if (f.path == path || std::filesystem::equivalent(f.path, path, ignored)) file = &f;
    if (!file) throw Error(fmt::format("there is no plugin file {}", path), Exit::plugin);
    if (!file->unusable.empty()) {
      fmt::print("{}\n  FAIL unusable: {}\n", printable(path), printable(file->unusable));
      return int(Exit::plugin);
    }
    entries = file->entries;
  }
  const auto takes_options = [&](const Entry* entry) {
    return conformance::takes_options(registry, *entry, settings.options);
  };
  const bool some_take_them = request.method.empty() && std::ranges::any_of(entries, takes_options);
  std::vector<int> codes;
  for (int number = first; number < int(entries.size()); ++number) {
    const Entry* entry = entries[std::size_t(number)];
    if (!request.method.empty() && request.method != entry->name) continue;
    if (some_take_them && !takes_options(entry)) {
      fmt::print("{} ({}) of {}\n  not checked: it does not take the options that are given\n", entry->name,
                 name_of(entry->role), printable(path));
      continue;
    }
    progress.entry = number;
    try {
      const auto report = conformance::check_method(registry, *entry, settings, progress);
      fmt::print("{}", report.text(check_again_command(path, *entry, entries.size(), request)));
      codes.push_back(int(!report.passed() ? Exit::plugin : report.unchecked() ? Exit::data : Exit::done));
    } catch (const Error& error) {
      say("stiefel: {}\n", error.what());
      codes.push_back(int(error.code()));
    }
    std::fflush(stdout);
  }
  return worst_of(codes);
}

/// Prints each warning about files and folders once. Children that load the plugins print none.
void warn_once(const std::vector<std::string>& files) {
  std::set<std::string> said;
  const auto warn = [&](const std::filesystem::path& place) {
    for (const std::string& sentence : warnings_about(place))
      if (said.insert(sentence).second) print_warning(sentence);
  };
  for (const std::string& file : files) warn(file);
  for (const std::filesystem::path& folder : plugin_search_path()) warn(folder);
}

int check_in_child(int descriptor, int first, std::span<const std::string> words) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const SharedProgress progress(descriptor);
  const Request request = read_request(words);
  int code = int(Exit::internal);
  try {
    code = check_file(request.files.at(0), first, request, *progress);
  } catch (const Error& error) {
    say("stiefel: {}\n", error.what());
    code = int(error.code());
  }
  std::fflush(stdout);
  progress->done = true;
  return code;
}

/// Starts this program as a child, in a process group of the child and all that the plugin starts.
pid_t start_child(const std::vector<std::string>& words) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<char*> arguments = {const_cast<char*>(program.c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  std::fflush(nullptr);
  setenv("OPENBLAS_NUM_THREADS", "1", 0);  // the threads of its pool would only spin
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int fault = posix_spawn(&child, program.c_str(), nullptr, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (fault != 0)
    throw Error(fmt::format("cannot restart {} for the check: {}", program, std::strerror(fault)), Exit::exhausted);
  return child;
}

/// The child's status, or nothing if it was stopped because one call took longer than `limit` seconds. Also ends what
/// is left of its process group.
std::optional<int> wait_for(pid_t child, int limit, const conformance::Progress& progress) {
  using namespace std::chrono;
  auto end = steady_clock::now() + seconds(limit);
  std::uint64_t calls = progress.calls;
  int status = 0;
  while (true) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) {
      kill(-child, SIGKILL);
      return status;
    }
    if (ended < 0 && errno != EINTR)
      throw Error(fmt::format("lost track of the check: {}", std::strerror(errno)), Exit::internal);
    if (const std::uint64_t now = progress.calls; now != calls) {
      calls = now;
      end = steady_clock::now() + seconds(limit);
    }
    if (steady_clock::now() >= end) break;
    std::this_thread::sleep_for(milliseconds(10));
  }
  kill(-child, SIGKILL);
  waitpid(child, &status, 0);
  return std::nullopt;
}

/// Checks the methods of a file in a child, from number `first` on. If one does not return, `first` becomes the number
/// of the next one, else −1. Returns the exit code.
int check_apart(const std::string& file, int& first, const std::vector<std::string>& rest, int limit) {
  const SharedProgress progress;
  std::vector<std::string> words = {"check", "--in-child", std::to_string(progress.descriptor()), std::to_string(first),
                                    file};
  words.insert(words.end(), rest.begin(), rest.end());
  const std::optional<int> status = wait_for(start_child(words), limit, *progress);
  first = -1;
  if (status && WIFEXITED(*status) && progress->done) return WEXITSTATUS(*status);

  std::string fate = fmt::format("did not return within {} s (--limit)", limit);
  if (status && WIFSIGNALED(*status))
    fate = fmt::format(
        "ended the program with signal {} ({}); most likely an index or a pointer is wrong: build the plugin with "
        "-DCMAKE_BUILD_TYPE=Debug, which checks indices (-D_GLIBCXX_ASSERTIONS), and check it again; docs/PLUGINS.md "
        "says how to use AddressSanitizer",
        WTERMSIG(*status), strsignal(WTERMSIG(*status)));
  if (status && WIFEXITED(*status)) fate = fmt::format("ended the program with exit code {}", WEXITSTATUS(*status));
  const conformance::Progress& at = *progress;
  if (*at.method) {
    fmt::print("{} of {}\n  FAIL {:<22} {} {}\n  FAILED\n", at.method, printable(file), at.check,
               *at.verb ? at.verb : "the method", fate);
    first = at.entry + 1;
  } else {
    fmt::print("{}\n  FAIL loading it {}\n  FAILED\n", printable(file), fate);
  }
  return int(Exit::plugin);
}

/// Checks all methods of a file, even if some of them end the process that they run in. Returns the exit code.
int check_all_of(const std::string& file, const std::vector<std::string>& rest, int limit) {
  std::vector<int> codes;
  for (int first = 0; first >= 0;)
    if (const int code = check_apart(file, first, rest, limit); code != without_method) codes.push_back(code);
  return worst_of(codes);
}

}  // namespace

int check_command(std::span<const std::string> words) {
  if (words.size() > 2 && words[0] == "--in-child")
    return check_in_child(std::stoi(words[1]), std::stoi(words[2]), words.subspan(3));
  const Request request = read_request(words);
  std::vector<std::string> rest;
  for (const std::string& option : request.settings.options) rest.push_back(option);
  if (request.settings.scalars.size() == 1) rest.push_back("--scalar=" + request.settings.scalars[0]);
  if (const auto& seeds = request.settings.seeds; seeds.size() == 1)
    rest.push_back(fmt::format("--seed={}", seeds[0]));
  else if (!seeds.empty())
    rest.push_back(fmt::format("--seeds={}", seeds.size()));
  if (request.settings.rows) rest.push_back(fmt::format("--shape={}x{}", request.settings.rows, request.settings.cols));
  if (!request.method.empty()) rest.push_back("--method=" + request.method);
  if (!request.settings.data_directory.empty()) rest.push_back("--data=" + request.settings.data_directory);
  warn_once(request.files);
  std::vector<int> codes;
  for (const std::string& file : request.files) {
    const int code = check_all_of(file, rest, request.limit);
    if (code != without_method) codes.push_back(code);
  }
  if (codes.empty())
    throw Error(request.files.size() > 1
                    ? fmt::format("none of the {} files has a method '{}'", request.files.size(), request.method)
                    : fmt::format("{} has no method '{}'", request.files[0], request.method));
  if (codes.size() == 1) return codes[0];
  const auto unchecked = std::ranges::count(codes, int(Exit::data));
  fmt::print("{} of {} files passed{}\n", std::ranges::count(codes, 0), codes.size(),
             unchecked > 0 ? fmt::format(", {} not checked without their data", unchecked) : "");
  const int worst = worst_of(codes);
  return worst == int(Exit::data) ? int(Exit::done) : worst;
}

}  // namespace stiefel::cli
