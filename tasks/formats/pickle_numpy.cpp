// NumPy's numbers in pickles: what looks like imports and calls there is compared with the few that are known, and is no call.
#include <algorithm>

#include "tasks/formats/pickle_machine.hpp"

namespace stiefel {

bool PickleMachine::numpy(std::uint8_t code) {
  switch (code) {
    case op::global: {
      const std::string_view module = line();
      global(module, line());
      return true;
    }
    case op::stack_global: {
      const std::vector<Number> names = pop_last(2);
      const std::string_view module = text_of(names[0], "a module");
      global(module, text_of(names[1], "a name"));
      return true;
    }
    case op::reduce:
      reduce();
      return true;
    case op::build:
      set_byte_order();
      return true;
    default:
      return false;
  }
}

std::string_view PickleMachine::text_of(Number number, const char* what) {
  if (pickle_[number].kind != PickleKind::text) refuse(fmt::format("has something that is no text where {} is expected", what));
  return pickle_[number].text;
}

void PickleMachine::global(std::string_view module, std::string_view name) {
  const bool scalar = name == "scalar" && (module == "numpy.core.multiarray" || module == "numpy._core.multiarray");
  if (!scalar && !(module == "numpy" && name == "dtype"))
    refuse(fmt::format("asks for the Python object {}, which is not data; nothing of it was executed", op::printable(module, name)));
  push({PickleKind::global, 0, name});
}

/// Calls by name, which are no calls: numpy.dtype("i8", …) and numpy.core.multiarray.scalar(dtype, bytes).
void PickleMachine::reduce() {
  const Number arguments = pop(), callable = pop();
  if (pickle_[callable].kind != PickleKind::global || pickle_[arguments].kind != PickleKind::tuple)
    refuse("calls something that is not one of NumPy's numbers");
  const std::vector<Number>& items = pickle_.items_of(pickle_[arguments]);
  pickle_[callable].text == "dtype" ? make_dtype(items) : make_scalar(items);
}

void PickleMachine::make_dtype(const std::vector<Number>& arguments) {
  if (arguments.empty()) refuse("makes a NumPy type out of nothing");
  std::string_view text = text_of(arguments[0], "the name of a NumPy type");
  Dtype dtype{'\0', 0, false};
  if (!text.empty() && std::string_view("<>|=").find(text[0]) != std::string_view::npos) {
    dtype.big_endian = text[0] == '>';
    text.remove_prefix(1);
  }
  static constexpr std::string_view known[] = {"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1", "f4", "f8"};
  if (std::find(std::begin(known), std::end(known), text) == std::end(known))
    refuse(fmt::format("has the NumPy type {}, expected one of i1 … i8, u1 … u8, b1, f4, f8", op::printable(text, "")));
  dtype.kind = text[0];
  dtype.size = static_cast<std::size_t>(text[1] - '0');
  push({PickleKind::dtype, static_cast<std::int64_t>(dtypes_.size()), {}});
  dtypes_.push_back(dtype);
}

/// The state of a NumPy type: (version, byte order, …).
void PickleMachine::set_byte_order() {
  const Number state = pop(), object = top();
  if (pickle_[object].kind != PickleKind::dtype) refuse("gives a state to something that is no NumPy type");
  if (pickle_[state].kind != PickleKind::tuple || pickle_.items_of(pickle_[state]).size() < 2)
    refuse("gives a NumPy type a state that is none");
  const std::string_view order = text_of(pickle_.items_of(pickle_[state])[1], "a byte order");
  if (order != "<" && order != ">" && order != "|" && order != "=") refuse("gives a NumPy type a byte order that is none");
  dtypes_[static_cast<std::size_t>(pickle_[object].number)].big_endian = order == ">";
}

void PickleMachine::make_scalar(const std::vector<Number>& arguments) {
  if (arguments.size() != 2 || pickle_[arguments[0]].kind != PickleKind::dtype) refuse("makes a NumPy number without a type and bytes");
  const Dtype dtype = dtypes_[static_cast<std::size_t>(pickle_[arguments[0]].number)];
  const std::string_view stored = text_of(arguments[1], "the bytes of a NumPy number");
  if (stored.size() != dtype.size) refuse(fmt::format("has {} bytes for a NumPy number of {}", stored.size(), dtype.size));
  std::string bytes(stored);
  if (dtype.big_endian) std::reverse(bytes.begin(), bytes.end());
  const std::uint64_t bits = unsigned_number(bytes);
  if (dtype.kind == 'f') {
    push_real(dtype.size == 8 ? std::bit_cast<double>(bits) : double(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
  } else if (dtype.kind == 'i') {
    push_integer(signed_number(bytes));
  } else {
    if (bits >> 63) refuse("has an integer of more than 64 bits");
    push_integer(static_cast<std::int64_t>(bits));
  }
}

}  // namespace stiefel
