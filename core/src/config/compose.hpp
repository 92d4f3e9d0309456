// One tree from a file, the files it extends, and the command line.
//
// `extends: [a.yaml, b.yaml]` (paths relative to the file that lists them) is read first, each in turn, depth first;
// later values win, key by key. A node with another `plugin:` than before replaces the whole node, so no option of one
// plugin is handed to another. `key.path=value` comes last: the value is read by the rules of YAML and replaces what
// was there. `….plugin=name` comes before the others and drops the other plugin's options, but keeps the keys next to
// them that belong to stiefel (hidden, route, rate, …). `seeds:` and `sweep:`, which make many runs of one file, are
// kept separately.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/tree.hpp"

namespace stiefel {

struct SourceFile {
  std::string path, text;
};

struct Composed {
  Node root;                        ///< a map
  std::vector<Member> many;         ///< `seeds:` and `sweep:`, which are not in the root
  std::vector<SourceFile> sources;  ///< the experiment's own file first
};

/// `named` is a file, or the name of an experiment that comes with stiefel. `more` is appended to the file's own `extends:`.
STIEFEL_API std::optional<Composed> compose_file(const std::filesystem::path& named,
                                                 std::span<const std::string> overrides, Problems& problems,
                                                 std::vector<Node> more = {});
/// `name` represents the file in messages; extends: is relative to its folder.
STIEFEL_API std::optional<Composed> compose_text(std::string text, const std::string& name,
                                                 std::span<const std::string> overrides, Problems& problems);

}  // namespace stiefel
