// The opcodes of pickles that make data.
#include "tasks/formats/pickle.hpp"

#include <map>

#include "tasks/formats/pickle_machine.hpp"

namespace stiefel {

Pickle PickleMachine::run() {
  for (;;) {
    const auto code = static_cast<std::uint8_t>(take(1)[0]);
    if (code == op::stop) break;
    if (!number(code) && !text(code) && !container(code) && !stack_and_memo(code) && !numpy(code))
      refuse(fmt::format("asks for {}, which is not data", op::name_of(code)));
  }
  pickle_.root = pop();
  if (!stack_.empty() || !marks_.empty()) refuse("leaves more than one value");
  if (position_ != bytes_.size()) refuse("goes on after its end");
  const PickleKind kind = pickle_[pickle_.root].kind;
  if (kind == PickleKind::global || kind == PickleKind::dtype) refuse("holds a NumPy type and no data");
  return std::move(pickle_);
}

bool PickleMachine::number(std::uint8_t code) {
  switch (code) {
    case op::none:
      push({});
      return true;
    case op::newtrue:
    case op::newfalse:
      push({PickleKind::truth, code == op::newtrue, {}});
      return true;
    case op::binint:
      push_integer(signed_number(take(4)));
      return true;
    case op::binint1:
    case op::binint2:
      push_integer(static_cast<std::int64_t>(unsigned_number(take(code == op::binint1 ? 1 : 2))));
      return true;
    case op::long1:
    case op::long4:
      push_integer(long_number(counted(code == op::long1 ? 1 : 4)));
      return true;
    case op::int_: {
      const std::string_view digits = line();
      if (digits == "00" || digits == "01")
        push({PickleKind::truth, digits == "01", {}});
      else
        push_integer(parsed<std::int64_t>(digits));
      return true;
    }
    case op::long_: {
      std::string_view digits = line();
      if (digits.ends_with('L')) digits.remove_suffix(1);
      push_integer(parsed<std::int64_t>(digits));
      return true;
    }
    case op::float_:
      push_real(parsed<double>(line()));
      return true;
    case op::binfloat: {
      const std::string_view big = take(8);
      push_real(std::bit_cast<double>(unsigned_number(std::string(big.rbegin(), big.rend()))));
      return true;
    }
    default:
      return false;
  }
}

bool PickleMachine::text(std::uint8_t code) {
  switch (code) {
    case op::string:
      quoted(line());
      return true;
    case op::unicode:
      push_text(line());
      return true;
    case op::short_binstring:
    case op::short_binbytes:
    case op::short_binunicode:
      push_text(counted(1));
      return true;
    case op::binstring:
    case op::binbytes:
    case op::binunicode:
      push_text(counted(4));
      return true;
    case op::binbytes8:
    case op::binunicode8:
    case op::bytearray8:
      push_text(counted(8));
      return true;
    default:
      return false;
  }
}

/// Text as Python's repr writes it: in quotation marks, with \x41 \n \r \t \\ \' \".
void PickleMachine::quoted(std::string_view text) {
  if (text.size() < 2 || text.front() != text.back() || (text.front() != '\'' && text.front() != '"'))
    refuse("has a string without quotation marks");
  text = text.substr(1, text.size() - 2);
  if (text.find('\\') == std::string_view::npos) return push_text(text);
  static const std::map<char, char> letters = {{'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'\\', '\\'}, {'\'', '\''}, {'"', '"'}};
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      plain += text[i];
      continue;
    }
    const char letter = ++i < text.size() ? text[i] : '\0';
    if (const auto found = letters.find(letter); found != letters.end()) {
      plain += found->second;
      continue;
    }
    std::uint8_t byte = 0;
    const char* const digits = text.data() + i + 1;
    if (letter != 'x' || text.size() - i < 3 || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2)
      refuse("has a string with an escape that cannot be read");
    plain += static_cast<char>(byte);
    i += 2;
  }
  push_text(pickle_.unescaped.emplace_back(std::move(plain)));
}

bool PickleMachine::container(std::uint8_t code) {
  switch (code) {
    case op::empty_list:
    case op::empty_tuple:
    case op::empty_dict:
      push_container(code == op::empty_list ? PickleKind::list : code == op::empty_tuple ? PickleKind::tuple : PickleKind::dictionary, {});
      return true;
    case op::list:
    case op::tuple:
      push_container(code == op::list ? PickleKind::list : PickleKind::tuple, pop_to_mark());
      return true;
    case op::dict: {
      push_container(PickleKind::dictionary, {});
      const Number made = pop();
      const std::vector<Number> items = pop_to_mark();
      stack_.push_back(made);
      extend(PickleKind::dictionary, items);
      return true;
    }
    case op::tuple1:
    case op::tuple2:
    case op::tuple3:
      push_container(PickleKind::tuple, pop_last(code - op::tuple1 + 1u));
      return true;
    case op::append:
      extend(PickleKind::list, pop_last(1));
      return true;
    case op::appends:
      extend(PickleKind::list, pop_to_mark());
      return true;
    case op::setitem:
      extend(PickleKind::dictionary, pop_last(2));
      return true;
    case op::setitems:
      extend(PickleKind::dictionary, pop_to_mark());
      return true;
    default:
      return false;
  }
}

/// Adds to the container at the top of the stack.
void PickleMachine::extend(PickleKind kind, const std::vector<Number>& items) {
  const PickleValue& container = pickle_[top()];
  if (container.kind != kind) refuse(fmt::format("adds to something that is no {}", kind == PickleKind::list ? "list" : "dictionary"));
  if (kind == PickleKind::dictionary && items.size() % 2 != 0) refuse("has a key without a value");
  std::vector<Number>& all = pickle_.items[static_cast<std::size_t>(container.number)];
  all.insert(all.end(), items.begin(), items.end());
}

bool PickleMachine::stack_and_memo(std::uint8_t code) {
  switch (code) {
    case op::proto: {
      const auto protocol = static_cast<std::uint8_t>(take(1)[0]);
      if (protocol > 5) refuse(fmt::format("is a pickle of protocol {}, expected 0 to 5", protocol));
      return true;
    }
    case op::frame: {
      const std::uint64_t size = unsigned_number(take(8));
      if (size > bytes_.size() - position_) refuse("ends too early, inside a frame");
      return true;
    }
    case op::mark:
      marks_.push_back(stack_.size());
      return true;
    case op::pop:
      if (!marks_.empty() && marks_.back() == stack_.size())
        marks_.pop_back();
      else
        pop();
      return true;
    case op::pop_mark:
      pop_to_mark();
      return true;
    case op::dup:
      stack_.push_back(top());
      return true;
    case op::put:
      remember(parsed<std::uint64_t>(line()));
      return true;
    case op::binput:
    case op::long_binput:
      remember(unsigned_number(take(code == op::binput ? 1 : 4)));
      return true;
    case op::memoize:
      remember(memo_.size());
      return true;
    case op::get:
      recall(parsed<std::uint64_t>(line()));
      return true;
    case op::binget:
    case op::long_binget:
      recall(unsigned_number(take(code == op::binget ? 1 : 4)));
      return true;
    default:
      return false;
  }
}

void PickleMachine::recall(std::uint64_t key) {
  const auto found = memo_.find(key);
  if (found == memo_.end()) refuse("recalls a value that it has not stored");
  stack_.push_back(found->second);
}

double PickleValue::real() const { return std::bit_cast<double>(number); }

Pickle read_pickle(std::string_view bytes, const NamedFile& file) { return PickleMachine(bytes, file).run(); }

}  // namespace stiefel
