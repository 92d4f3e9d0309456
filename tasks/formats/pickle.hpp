/// Python pickles, protocols 0 to 5, as data: nothing in them is imported, called or executed.
///
/// None, truth values, integers, floats, text and bytes, lists, tuples and dictionaries; of objects only NumPy's numbers. Everything
/// else that a pickle can ask for is refused by name.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/formats/named_file.hpp"

namespace stiefel {

enum class PickleKind : std::uint8_t { none, truth, integer, real, text, list, tuple, dictionary, global, dtype };

struct PickleValue {
  PickleKind kind = PickleKind::none;
  std::int64_t number = 0;  ///< truth, integer; of containers their place in `items`; of reals the bits
  std::string_view text;

  double real() const;
};

struct Pickle {
  std::vector<PickleValue> values;
  std::vector<std::vector<std::uint32_t>> items;  ///< of containers, numbers of values; of a dictionary key, value, key, value, …
  std::uint32_t root = 0;
  std::deque<std::string> unescaped;  ///< texts point into it or into the bytes of the file

  const PickleValue& operator[](std::uint32_t number) const { return values[number]; }
  const std::vector<std::uint32_t>& items_of(const PickleValue& container) const {
    return items[static_cast<std::size_t>(container.number)];
  }
};

/// `bytes` must outlive the result. A value may stand in several containers, even in itself: who walks through it must bound the walk.
/// Memory: at most about 100 bytes for each of the file. Error(Exit::data) for damage and for what is refused.
Pickle read_pickle(std::string_view bytes, const NamedFile& file);

}  // namespace stiefel
