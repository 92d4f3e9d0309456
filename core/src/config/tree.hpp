// Our own tree of a YAML document: every key and value knows its file, line and column. The only part that uses
// yaml-cpp.
//
// It accepts a safe subset of YAML: one document, string keys, no tags, no merge keys, no duplicate keys, aliases only
// while they stay small; at most 1 MB, 64 levels and 100,000 nodes after aliases are expanded.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/problems.hpp"

namespace stiefel {

constexpr std::size_t largest_configuration = 1'000'000;  ///< bytes, of all files together
constexpr std::size_t deepest_level = 64;

struct Member;

struct Node {
  enum class Kind { null, scalar, sequence, map };
  Kind kind = Kind::null;
  Location where;
  std::string text;             ///< of a scalar; of a map that was merged over a scalar: that scalar, an abbreviation
  bool quoted = false;          ///< the scalar was in quotes or in a block: it is text
  bool is_null = false;         ///< `null` or ~ is written, where a value of the kind null may also be absent
  bool abbreviated = false;     ///< the map also holds `text`
  Location text_where;          ///< of that text
  std::vector<Node> items;      ///< of a sequence
  std::vector<Member> members;  ///< of a map, in order

  STIEFEL_API const Member* find(std::string_view key) const;
  STIEFEL_API Member* find(std::string_view key);
};

struct Member {
  std::string key;
  Location where;  ///< of the key
  Node value;
};

/// Removes keys for which null is written.
STIEFEL_API void remove_nulls(Node& node);

/// Nothing if the text cannot be parsed; the reasons are in `problems`. An empty `file` means the command line.
STIEFEL_API std::optional<Node> parse_yaml(std::string_view text, const std::string& file, Problems& problems);

/// A value of the command line. It is a mapping, a list or a quoted text if it is written in {}, [] or quotes; any other
/// word is taken as it stands, but for blanks around it, so that # & ! % and : have no meaning in it.
std::optional<Node> parse_word(std::string_view text, Problems& problems);

/// The text of a configuration file, or nothing and a message in `fault`.
STIEFEL_API std::optional<std::string> read_configuration(const std::filesystem::path& file, std::string& fault);

}  // namespace stiefel
