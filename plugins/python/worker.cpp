#include "python/worker.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

extern char** environ;

namespace stiefel::python {
namespace {

namespace fs = std::filesystem;

constexpr int out_of_reach = 64;  // descriptors from here on are not those that the worker gets
constexpr int socket_there = 3, lifeline_there = 4;
constexpr std::size_t largest_message = std::size_t(1) << 17;

[[noreturn]] void fail(const std::string& doing) { throw Error(doing + ": " + std::strerror(errno), Exit::exhausted); }

Descriptor moved_up(int number) {
  const Descriptor low(number);
  Descriptor high(fcntl(number, F_DUPFD_CLOEXEC, out_of_reach));
  if (high.number() < 0) fail("cannot open a descriptor for Python");
  return high;
}

/// python/stiefel/worker.py: in the wheel, in an installation, or in the source tree around a build.
std::string script() {
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&fail), &here);
  const fs::path plugin = fs::absolute(here.dli_fname ? here.dli_fname : "");
  for (fs::path folder = plugin.parent_path(); folder.has_relative_path(); folder = folder.parent_path())
    for (const char* place : {"stiefel", "lib/python3/dist-packages/stiefel", "python/stiefel"})
      if (const fs::path found = folder / place / "worker.py"; fs::is_regular_file(found)) return found.string();
  throw Error("there is no stiefel/worker.py in the folders above " + plugin.string() +
                  ": install the Python package of this stiefel",
              Exit::plugin);
}

std::string fate_of(int status) {
  if (WIFEXITED(status)) return "ended with exit code " + std::to_string(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  return "was ended by signal " + std::to_string(number) + " (" + strsignal(number) + ")" +
         (number == SIGKILL ? "; unless someone sent it, memory has run out" : "");
}

struct Spawned {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  Spawned() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  }
  ~Spawned() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  Spawned(const Spawned&) = delete;
  Spawned& operator=(const Spawned&) = delete;
};

}  // namespace

void Descriptor::reset() {
  if (number_ >= 0) close(number_);
  number_ = -1;
}

SharedMemory::~SharedMemory() {
  if (data_) munmap(data_, std::size_t(size_));
}

void SharedMemory::take(const Descriptor& descriptor) {
  if (descriptor.number() < 0) return;
  struct stat file {};
  if (fstat(descriptor.number(), &file) != 0) fail("cannot share memory with Python");
  void* memory = mmap(nullptr, std::size_t(file.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.number(), 0);
  if (memory == MAP_FAILED) fail("cannot share memory with Python");
  if (data_) munmap(data_, std::size_t(size_));
  data_ = static_cast<char*>(memory);
  size_ = file.st_size;
}

void SharedMemory::require(Index offset, Index bytes) const {
  if (offset < 0 || bytes < 0 || offset > size_ - bytes)
    throw Error("the worker of Python describes memory that it does not share", Exit::plugin);
}

std::shared_ptr<Worker> Worker::of(const Program& program) {
  static std::mutex mutex;
  static std::vector<std::weak_ptr<Worker>> all;
  const std::scoped_lock lock(mutex);
  std::erase_if(all, [](const auto& worker) { return worker.expired(); });
  for (const auto& worker : all)
    if (const auto held = worker.lock(); held && held->program_ == program) {
      const std::scoped_lock its(held->mutex_);
      if (held->fate_.empty()) return held;
    }
  auto worker = std::make_shared<Worker>(program);
  all.push_back(worker);
  return worker;
}

Worker::Worker(Program program) : program_(std::move(program)) {
  request_.reserve(largest_message);
  reply_.resize(largest_message);
  start();
  try {
    read_ready();
  } catch (...) {
    lifeline_.reset();
    if (process_ > 0) waitpid(process_, nullptr, 0);
    throw;
  }
}

/// A worker that is idle ends when its socket closes; any other is killed by the kernel when the lifeline does.
Worker::~Worker() {
  socket_.reset();
  constexpr int patience = 200;
  for (int k = 0; process_ > 0 && k < patience; ++k) {
    if (waitpid(process_, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  lifeline_.reset();
  if (process_ > 0) waitpid(process_, nullptr, 0);
}

void Worker::start() {
  int pair[2], ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) fail("cannot open a socket for Python");
  socket_ = Descriptor(pair[0]);
  const Descriptor theirs = moved_up(pair[1]);
  if (pipe2(ends, O_CLOEXEC) != 0) fail("cannot open a pipe for Python");
  lifeline_ = Descriptor(ends[1]);
  const Descriptor watched = moved_up(ends[0]);

  Program asked = program_;
  if (asked.interpreter.empty()) {
    const char* named = std::getenv("STIEFEL_PYTHON");
    asked.interpreter = named && *named ? named : "python3";
  }
  const std::string worker = script(), role = name_of(asked.role), threads = std::to_string(asked.threads);
  const char* words[] = {asked.interpreter.c_str(), worker.c_str(), asked.file.c_str(), role.c_str(),
                         threads.c_str(),           nullptr};
  Spawned spawned;
  posix_spawn_file_actions_addopen(&spawned.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&spawned.actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&spawned.actions, theirs.number(), socket_there);
  posix_spawn_file_actions_adddup2(&spawned.actions, watched.number(), lifeline_there);
  const int fault =
      posix_spawnp(&process_, words[0], &spawned.actions, &spawned.attributes, const_cast<char**>(words), environ);
  if (fault == 0) return;
  process_ = -1;
  throw Error("cannot start the Python interpreter " + asked.interpreter + ": " + std::strerror(fault) +
              "; name one with `python:` or STIEFEL_PYTHON");
}

void Worker::ended(std::string_view verb) {
  if (fate_.empty()) {
    int status = 0;
    socket_.reset();
    lifeline_.reset();
    if (process_ > 0) waitpid(process_, &status, 0);
    process_ = -1;
    fate_ = "Python " + fate_of(status) + " in " + std::string(verb) + "() of " + program_.file;
  }
  throw Error(fate_, Exit::plugin);
}

/// Reads the first message of a worker.
void Worker::read_ready() {
  Call ready(*this, Call::Ready());
  ready.receive();
  versions_ = ready.text();
  complex_ = ready.integer() != 0;
  for (Index count = ready.integer(); count > 0; --count) {
    Option option{ready.text(), ready.text(), ready.text(), ready.integer() != 0, {}, {}};
    option.fallback = ready.texts();
    option.choices = ready.texts();
    options_.push_back(std::move(option));
  }
}

Call::Call(Worker& worker, Ready) : worker_(worker), verb_("import") {}

Call::Call(Worker& worker, std::string_view verb) : worker_(worker), lock_(worker.mutex_), verb_(verb) {
  if (!worker_.fate_.empty()) throw Error(worker_.fate_, Exit::plugin);
  worker_.request_.clear();
  add(verb);
}

void Call::add(Index value) {
  auto& to = worker_.request_;
  to.push_back('i');
  to.insert(to.end(), reinterpret_cast<const char*>(&value), reinterpret_cast<const char*>(&value + 1));
}
void Call::add(double value) {
  auto& to = worker_.request_;
  to.push_back('d');
  to.insert(to.end(), reinterpret_cast<const char*>(&value), reinterpret_cast<const char*>(&value + 1));
}
void Call::add(std::string_view text) {
  auto& to = worker_.request_;
  const auto size = std::uint32_t(text.size());
  to.push_back('s');
  to.insert(to.end(), reinterpret_cast<const char*>(&size), reinterpret_cast<const char*>(&size + 1));
  to.insert(to.end(), text.begin(), text.end());
}

void Call::exchange() {
  const auto& request = worker_.request_;
  ssize_t sent = 0;
  do sent = send(worker_.socket_.number(), request.data(), request.size(), MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  if (sent < 0 && errno == EMSGSIZE)
    throw Error("the options are longer than " + std::to_string(largest_message) + " bytes");
  if (sent < 0) worker_.ended(verb_);
  receive();
}

void Call::receive() {
  iovec part{worker_.reply_.data(), largest_message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t count = 0;
  worker_.reply_.resize(largest_message);
  do count = recvmsg(worker_.socket_.number(), &message, MSG_CMSG_CLOEXEC);
  while (count < 0 && errno == EINTR);
  if (count <= 0) worker_.ended(verb_);
  worker_.reply_.resize(std::size_t(count));
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header && header->cmsg_type == SCM_RIGHTS) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(header), sizeof number);
    memory_ = Descriptor(number);
  }
  if (const Index code = integer(); code != 0) {
    const std::string sentence = text();
    throw Error(sentence, Exit(code));
  }
}

const char* Call::take(char type, std::size_t size) {
  const auto& reply = worker_.reply_;
  if (place_ + 1 + size > reply.size() || reply[place_] != type)
    throw Error("the worker of " + worker_.program_.file + " sends another reply than this stiefel expects to " +
                    std::string(verb_) + "(): install the Python package of this stiefel",
                Exit::plugin);
  const char* at = reply.data() + place_ + 1;
  place_ += 1 + size;
  return at;
}

Index Call::integer() {
  Index value = 0;
  std::memcpy(&value, take('i', sizeof value), sizeof value);
  return value;
}
double Call::number() {
  double value = 0;
  std::memcpy(&value, take('d', sizeof value), sizeof value);
  return value;
}
std::string Call::text() {
  std::uint32_t size = 0;
  std::memcpy(&size, take('s', sizeof size), sizeof size);
  place_ -= 1 + sizeof size;
  return {take('s', sizeof size + size) + sizeof size, size};
}
std::vector<std::string> Call::texts() {
  std::vector<std::string> all;
  for (Index count = integer(); count > 0; --count) all.push_back(text());
  return all;
}

}  // namespace stiefel::python
