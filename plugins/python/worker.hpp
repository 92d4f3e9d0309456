// The process of python/stiefel/worker.py that runs the methods of one role in one file.
//
// Requests and replies are messages on a socket: fields of 'i' and 8 bytes, 'd' and 8 bytes, or 's', 4 bytes of length
// and text. A reply begins with an exit code; unless that is 0, a sentence follows. Arrays are in memory that the worker
// shares with this process; a reply may carry its descriptor.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <stiefel/plugin.hpp>

namespace stiefel::python {

/// What a worker is started for.
struct Program {
  Role role;
  std::string file, interpreter;  // interpreter: empty for STIEFEL_PYTHON or python3
  Index threads = 1;
  bool operator==(const Program&) const = default;
};

/// An annotated field of the class.
struct Option {
  std::string key, meaning, type;  // bool int float str, or a list of the last three: list[int]
  bool required = false;
  std::vector<std::string> fallback, choices;  // of no list one value
};

/// An open descriptor, closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  void reset();
  int number() const { return number_; }

 private:
  int number_;
};

/// Memory that the worker shares.
class SharedMemory {
 public:
  SharedMemory() = default;
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  /// Maps the memory of this descriptor, if it is one, instead of the present memory.
  void take(const Descriptor& descriptor);
  /// `count` values from this byte on; throws Error (Exit::plugin) if the memory is smaller.
  template <class T> std::span<T> values(Index offset, Index count) const {
    require(offset, count * Index(sizeof(T)));
    return {reinterpret_cast<T*>(data_ + offset), std::size_t(count)};
  }

 private:
  void require(Index offset, Index bytes) const;
  char* data_ = nullptr;
  Index size_ = 0;
};

class Worker {
 public:
  /// The worker of this program, started unless one is alive. Throws Error if it cannot be started, or if the file has
  /// no method of the role.
  static std::shared_ptr<Worker> of(const Program& program);
  explicit Worker(Program program);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  const std::string& versions() const { return versions_; }  ///< "Python 3.11.2, NumPy 1.24.2"
  bool complex() const { return complex_; }                  ///< whether the map is
  const std::vector<Option>& options() const { return options_; }

 private:
  friend class Call;
  void start();
  void read_ready();
  [[noreturn]] void ended(std::string_view verb);

  Program program_;
  std::string versions_;
  bool complex_ = false;
  std::vector<Option> options_;
  std::mutex mutex_;  // of everything below
  Descriptor socket_, lifeline_;
  pid_t process_ = -1;
  std::string fate_;  // once it has ended
  std::vector<char> request_, reply_;
};

/// A request and its reply. No other request is served while it exists, so that memory which the reply describes can be
/// read. Throws Error if the request fails or the worker ends.
class Call {
 public:
  template <class... Values> Call(Worker& worker, std::string_view verb, const Values&... values) : Call(worker, verb) {
    (add(values), ...);
    exchange();
  }
  /// For requests of many values: add() them, then exchange().
  Call(Worker& worker, std::string_view verb);
  void add(Index value);
  void add(double value);
  void add(std::string_view text);
  void exchange();

  /// The next field of the reply.
  Index integer();
  double number();
  std::string text();
  std::vector<std::string> texts();  ///< their number, then each
  const Descriptor& memory() const { return memory_; }

 private:
  friend class Worker;
  struct Ready {};
  Call(Worker& worker, Ready);
  void receive();
  const char* take(char type, std::size_t size);

  Worker& worker_;
  std::unique_lock<std::mutex> lock_;
  std::string_view verb_;
  std::size_t place_ = 0;  // in the reply
  Descriptor memory_;
};

}  // namespace stiefel::python
