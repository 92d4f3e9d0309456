/// The opcodes of Python's pickles: those that make data, and the names of the others.
#pragma once

#include <fmt/format.h>
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace stiefel::op {

enum Code : std::uint8_t {
  mark = '(',
  stop = '.',
  pop = '0',
  pop_mark = '1',
  dup = '2',
  float_ = 'F',
  binfloat = 'G',
  int_ = 'I',
  binint = 'J',
  binint1 = 'K',
  long_ = 'L',
  binint2 = 'M',
  none = 'N',
  reduce = 'R',
  string = 'S',
  binstring = 'T',
  short_binstring = 'U',
  unicode = 'V',
  binunicode = 'X',
  append = 'a',
  build = 'b',
  global = 'c',
  dict = 'd',
  empty_dict = '}',
  appends = 'e',
  get = 'g',
  binget = 'h',
  long_binget = 'j',
  list = 'l',
  empty_list = ']',
  put = 'p',
  binput = 'q',
  long_binput = 'r',
  setitem = 's',
  tuple = 't',
  empty_tuple = ')',
  setitems = 'u',
  binbytes = 'B',
  short_binbytes = 'C',
  proto = 0x80,
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  newtrue = 0x88,
  newfalse = 0x89,
  long1 = 0x8a,
  long4 = 0x8b,
  short_binunicode = 0x8c,
  binunicode8 = 0x8d,
  binbytes8 = 0x8e,
  stack_global = 0x93,
  memoize = 0x94,
  frame = 0x95,
  bytearray8 = 0x96,
};

/// An opcode that is not among them, for a sentence.
inline std::string name_of(std::uint8_t code) {
  static constexpr struct {
    std::uint8_t code;
    const char* name;
  } others[] = {{'i', "an object (INST)"},
                {'o', "an object (OBJ)"},
                {0x81, "an object (NEWOBJ)"},
                {0x92, "an object (NEWOBJ_EX)"},
                {0x82, "an object of the extension registry (EXT1)"},
                {0x83, "an object of the extension registry (EXT2)"},
                {0x84, "an object of the extension registry (EXT4)"},
                {'P', "an object kept elsewhere (PERSID)"},
                {'Q', "an object kept elsewhere (BINPERSID)"},
                {0x8f, "a set (EMPTY_SET)"},
                {0x90, "a set (ADDITEMS)"},
                {0x91, "a set (FROZENSET)"},
                {0x97, "a buffer kept elsewhere (NEXT_BUFFER)"},
                {0x98, "a buffer kept elsewhere (READONLY_BUFFER)"}};
  for (const auto& other : others)
    if (other.code == code) return other.name;
  return fmt::format("the opcode {:#04x}, which no pickle has", code);
}

/// Text of a file, shortened and without anything that a terminal would obey.
inline std::string printable(std::string_view module, std::string_view name) {
  std::string text(module.substr(0, 40));
  if (!name.empty()) text.append(".").append(name.substr(0, 40));
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

}  // namespace stiefel::op
