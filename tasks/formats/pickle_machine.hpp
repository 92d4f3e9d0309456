/// The stack machine that reads pickles: its state and what all opcodes share.
#pragma once

#include <fmt/format.h>
#include <bit>
#include <charconv>
#include <unordered_map>

#include "tasks/formats/pickle.hpp"
#include "tasks/formats/pickle_opcodes.hpp"

namespace stiefel {

/// Little-endian.
inline std::uint64_t unsigned_number(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(bytes[i]);
  return value;
}
inline std::int64_t signed_number(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const auto unused = static_cast<int>(64 - 8 * bytes.size());
  return static_cast<std::int64_t>(unsigned_number(bytes) << unused) >> unused;
}

class PickleMachine {
 public:
  using Number = std::uint32_t;  // of a value

  PickleMachine(std::string_view bytes, const NamedFile& file) : bytes_(bytes), file_(file) {}

  Pickle run();

 private:
  [[noreturn]] void refuse(const std::string& what) const { file_.refuse(fmt::format("{}, at byte {}", what, position_)); }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - position_) refuse("ends too early");
    const std::string_view taken = bytes_.substr(position_, count);
    position_ += count;
    return taken;
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', position_);
    if (end == std::string_view::npos) refuse("ends too early, inside a line");
    const std::string_view taken = bytes_.substr(position_, end - position_);
    position_ = end + 1;
    return taken;
  }
  /// As many bytes as the number in the next `width` bytes says.
  std::string_view counted(std::size_t width) { return take(unsigned_number(take(width))); }

  void push(const PickleValue& value) {
    stack_.push_back(static_cast<Number>(pickle_.values.size()));
    pickle_.values.push_back(value);
  }
  void push_integer(std::int64_t value) { push({PickleKind::integer, value, {}}); }
  void push_real(double value) { push({PickleKind::real, std::bit_cast<std::int64_t>(value), {}}); }
  void push_text(std::string_view text) { push({PickleKind::text, 0, text}); }
  void push_container(PickleKind kind, std::vector<Number> items) {
    push({kind, static_cast<std::int64_t>(pickle_.items.size()), {}});
    pickle_.items.push_back(std::move(items));
  }

  Number pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("takes a value from an empty stack");
    const Number top = stack_.back();
    stack_.pop_back();
    return top;
  }
  Number top() {
    const Number number = pop();
    stack_.push_back(number);
    return number;
  }
  std::vector<Number> pop_last(std::size_t count) {
    std::vector<Number> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }
  std::vector<Number> pop_to_mark() {
    if (marks_.empty()) refuse("looks for a mark that is not there");
    std::vector<Number> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }

  template <class T> T parsed(std::string_view digits) {
    T value{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) refuse("has a number that cannot be read");
    return value;
  }
  std::int64_t long_number(std::string_view digits) {
    if (digits.size() > 8) refuse("has an integer of more than 64 bits");
    return signed_number(digits);
  }

  bool number(std::uint8_t code);
  bool text(std::uint8_t code);
  bool container(std::uint8_t code);
  bool stack_and_memo(std::uint8_t code);
  bool numpy(std::uint8_t code);

  void quoted(std::string_view line);
  void extend(PickleKind kind, const std::vector<Number>& items);
  void remember(std::uint64_t key) { memo_[key] = top(); }
  void recall(std::uint64_t key);
  void global(std::string_view module, std::string_view name);
  void reduce();
  void make_dtype(const std::vector<Number>& arguments);
  void make_scalar(const std::vector<Number>& arguments);
  void set_byte_order();
  std::string_view text_of(Number number, const char* what);

  /// The type of NumPy's number: i integer, u without sign, b truth, f floating; the number of bytes.
  struct Dtype {
    char kind;
    std::size_t size;
    bool big_endian;
  };

  std::string_view bytes_;
  const NamedFile& file_;
  std::size_t position_ = 0;
  Pickle pickle_;
  std::vector<Number> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, Number> memo_;
  std::vector<Dtype> dtypes_;
};

}  // namespace stiefel
