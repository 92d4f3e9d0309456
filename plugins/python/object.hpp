// An object of a Python class in its worker, and what it shares with this process.
#pragma once

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "python/worker.hpp"

namespace stiefel::python {

/// The request for an object, to be continued with what it is made for: the folder in which relative paths start, and
/// the type of numbers.
template <class S> Call creation(Worker& worker) {
  Call call(worker, "create");
  call.add(std::filesystem::current_path().string());
  call.add(std::is_same_v<S, float> ? "float32" : "float64");
  return call;
}

class Object {
 public:
  /// `create` is the finished request of this object, whose reply begins with its number.
  Object(std::shared_ptr<Worker> worker, Call& create) : worker_(std::move(worker)), number_(create.integer()) {}
  ~Object() {
    try {
      Call(*worker_, "delete", number_);
    } catch (const Error&) {  // it has ended, and has been reported
    }
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  template <class... Values> Call call(std::string_view verb, const Values&... values) const {
    return Call(*worker_, verb, number_, values...);
  }
  /// For requests of many values, which end with exchange().
  Call begin(std::string_view verb) const {
    Call call(*worker_, verb);
    call.add(number_);
    return call;
  }

  /// Reads names, types and sizes of what the object must save.
  void read_state(Call& call) {
    state_.clear();
    for (Index count = call.integer(); count > 0; --count) {
      std::string name = call.text(), type = call.text();
      state_.push_back({std::move(name), std::move(type), call.integer()});
    }
  }
  /// Takes the memory of the reply, and where its parts begin; those of the state come last.
  void read_memory(Call& call) {
    memory_.take(call.memory());
    offsets_.clear();
    for (Index count = call.integer(); count > 0; --count) offsets_.push_back(call.integer());
    if (offsets_.size() < state_.size()) throw Error("the worker of Python has no memory for its state", Exit::plugin);
  }
  SharedMemory& memory() { return memory_; }
  template <class T> std::span<T> part(std::size_t number, Index count) const {
    return memory_.values<T>(offsets_.at(number), count);
  }

  /// Saves the state, or loads it if the archive holds another one.
  void serialise(Archive& archive) {
    if (state_.empty()) return;
    call("save");
    bool changed = false;
    for (std::size_t i = 0; i < state_.size(); ++i) {
      if (state_[i].type == "float32") changed |= pass<float>(archive, i);
      if (state_[i].type == "float64") changed |= pass<double>(archive, i);
      if (state_[i].type == "int64") changed |= pass<std::int64_t>(archive, i);
    }
    if (changed) call("load");
  }

 private:
  struct Item {
    std::string name, type;
    Index size;
  };

  template <class T> bool pass(Archive& archive, std::size_t i) {
    const std::span<T> values = part<T>(offsets_.size() - state_.size() + i, state_[i].size);
    const std::vector<T> before(values.begin(), values.end());
    archive.array(state_[i].name, values);
    return std::memcmp(before.data(), values.data(), values.size_bytes()) != 0;
  }

  std::shared_ptr<Worker> worker_;
  Index number_;
  SharedMemory memory_;
  std::vector<Index> offsets_;
  std::vector<Item> state_;
};

}  // namespace stiefel::python
