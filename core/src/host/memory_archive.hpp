// An Archive in memory: named arrays as bytes, to be written to a checkpoint or passed to another object.
#pragma once

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <stiefel/archive.hpp>
#include <stiefel/error.hpp>

namespace stiefel {

/// One named array.
struct StateItem {
  enum Type { float32, float64, int64 } type;
  std::vector<char> bytes;
  bool operator==(const StateItem&) const = default;
};
using StateItems = std::map<std::string, StateItem, std::less<>>;

class MemoryArchive final : public Archive {
 public:
  /// An archive for serialise() to fill.
  MemoryArchive() = default;
  /// An archive for serialise() to read. unread() has the names that it did not request.
  explicit MemoryArchive(StateItems items) : items_(std::move(items)), loading_(true) {}

  using Archive::array;
  void array(std::string_view name, std::span<float> values) override {
    any(name, StateItem::float32, std::as_writable_bytes(values));
  }
  void array(std::string_view name, std::span<double> values) override {
    any(name, StateItem::float64, std::as_writable_bytes(values));
  }
  void array(std::string_view name, std::span<std::int64_t> values) override {
    any(name, StateItem::int64, std::as_writable_bytes(values));
  }

  const StateItems& items() const { return items_; }
  std::vector<std::string> unread() const {
    std::vector<std::string> names;
    for (const auto& [name, item] : items_)
      if (!seen_.contains(name)) names.push_back(name);
    return names;
  }

 private:
  void any(std::string_view name, StateItem::Type type, std::span<std::byte> bytes) {
    const std::string text(name);
    if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != name.npos)
      throw Error("the name `" + text + "` given to Archive must be made of a–z, 0–9 and _", Exit::plugin);
    if (!seen_.insert(text).second) throw Error("the name `" + text + "` was given to Archive twice", Exit::plugin);
    if (!loading_) {
      const char* first = reinterpret_cast<const char*>(bytes.data());
      items_.emplace(text, StateItem{type, std::vector<char>(first, first + bytes.size())});
      return;
    }
    const auto found = items_.find(name);
    if (found == items_.end()) throw Error("the saved state has no `" + text + "`", Exit::damaged);
    if (found->second.type != type || found->second.bytes.size() != bytes.size())
      throw Error("the saved state holds `" + text + "` with another size or type", Exit::damaged);
    if (!bytes.empty()) std::memcpy(bytes.data(), found->second.bytes.data(), bytes.size());
  }

  StateItems items_;
  std::set<std::string, std::less<>> seen_;
  bool loading_ = false;
};

}  // namespace stiefel
