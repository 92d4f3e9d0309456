// Reads piano rolls from the events of a JSON parser, which has no recursion; lists may be nested as deeply as rolls
// are, no deeper.
#include "tasks/formats/json_rolls.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "tasks/formats/text.hpp"

namespace stiefel {
namespace {

class Events final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Events(const NamedFile& file) : file_(file) {}

  bool start_object(std::size_t) override {
    if (depth_ != outside) unexpected("an object");
    depth_ = object;
    return true;
  }
  bool end_object() override { return true; }

  bool key(string_t& name) override {
    if (name == "validation") name = "valid";
    split_ = static_cast<std::size_t>(std::find(roll_split_names.begin(), roll_split_names.end(), name) -
                                      roll_split_names.begin());
    if (split_ == rolls_.size()) file_.refuse("the object has a key other than train, valid and test");
    if (std::exchange(seen_[split_], true)) file_.refuse(fmt::format("the key {} is given twice", name));
    return true;
  }

  bool start_array(std::size_t) override {
    if (depth_ == outside || depth_ == step) unexpected("a list");
    if (depth_ == pieces) rolls_[split_].emplace_back();
    if (depth_ == piece) rolls_[split_].back().emplace_back();
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }

  bool number_integer(number_integer_t value) override { return note(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return note(static_cast<std::int64_t>(std::min<number_unsigned_t>(value, 1000)));
  }
  bool number_float(number_float_t value, const string_t&) override {
    if (std::abs(value) > 1000 || value != std::floor(value))
      file_.refuse(fmt::format("{}: {} is not a MIDI note", place(), value));
    return note(static_cast<std::int64_t>(value));
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool string(string_t&) override { return unexpected("text"); }
  bool binary(binary_t&) override { return unexpected("bytes"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    file_.refuse(fmt::format("not JSON, at byte {}", position));
  }

  RollSet take() {
    for (std::size_t i = 0; i < seen_.size(); ++i)
      if (!seen_[i]) file_.refuse(fmt::format("has no key {}", roll_split_names[i]));
    return std::move(rolls_);
  }

 private:
  enum Depth { outside, object, pieces, piece, step };

  std::string place() const {
    static constexpr std::array names = {"an object", "a list of pieces", "a list of steps", "a list of notes",
                                         "a MIDI note"};
    std::string text = depth_ > outside ? roll_split_names[split_] : "at the beginning";
    if (depth_ > pieces) text += fmt::format(", piece {}", rolls_[split_].size());
    if (depth_ > piece) text += fmt::format(", step {}", rolls_[split_].back().size());
    return text + fmt::format(", where {} is expected", names[static_cast<std::size_t>(depth_)]);
  }

  [[noreturn]] bool unexpected(const char* what) const { file_.refuse(fmt::format("{}: there is {}", place(), what)); }

  bool note(std::int64_t value) {
    if (depth_ != step) unexpected("a number");
    if (value != -1 && !add_note(rolls_[split_].back().back(), value))
      file_.refuse(fmt::format("{}: {} is not a note of a piano, {} to {}", place(), value, lowest_note, highest_note));
    return true;
  }

  const NamedFile& file_;
  int depth_ = outside;
  std::size_t split_ = 0;
  std::array<bool, 3> seen_{};
  RollSet rolls_;
};

}  // namespace

RollSet read_json_rolls(std::string_view bytes, const NamedFile& file) {
  if (const std::string_view other = other_than_text(bytes); !other.empty())
    file.refuse(fmt::format("begins as {}", other));
  const std::size_t end = bytes.find('\0');  // where the parser would take the text to end
  if (end != std::string_view::npos) file.refuse(fmt::format("not JSON, at byte {}", end + 1));
  Events events(file);
  nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &events);
  return events.take();
}

}  // namespace stiefel
