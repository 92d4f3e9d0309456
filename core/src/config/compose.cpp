// Files over files: extends and the rules of merging.
#include "config/compose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/suggestion.hpp"
#include "config/overrides.hpp"
#include "config/shipped.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t most_files = 64;

/// The plugin that a node names, or nothing.
const std::string* plugin_of(const Node& node) {
  if (node.kind == Node::Kind::scalar) return &node.text;
  if (node.kind != Node::Kind::map) return nullptr;
  if (const Member* plugin = node.find("plugin")) return &plugin->value.text;
  return node.abbreviated ? &node.text : nullptr;
}

/// The same for all names of one file; the path itself if the system refuses it (too long, a cycle of links).
fs::path identity_of(const fs::path& path) {
  std::error_code refused;
  const fs::path identity = fs::weakly_canonical(path, refused);
  return refused ? path : identity;
}

/// Merges `later` over `base`.
void merge(Node& base, Node later) {
  const std::string* before = plugin_of(base);
  const std::string* after = plugin_of(later);
  const bool named_again = before && after && *before == *after;
  if (later.kind == Node::Kind::scalar && base.kind == Node::Kind::map && named_again) return;
  if (later.kind != Node::Kind::map || (base.kind != Node::Kind::map && base.kind != Node::Kind::scalar) ||
      (before && after && !named_again)) {
    base = std::move(later);
    return;
  }
  if (base.kind == Node::Kind::scalar) {  // `activation: tanh` and then `activation: {slope: 0.1}`
    base.kind = Node::Kind::map;
    base.abbreviated = true;
    base.text_where = std::exchange(base.where, later.where);
  }
  std::map<std::string, std::size_t, std::less<>> places;
  for (std::size_t i = 0; i < base.members.size(); ++i) places.emplace(base.members[i].key, i);
  std::set<std::string, std::less<>> removed;
  for (Member& member : later.members) {
    if (const auto place = places.find(member.key); place != places.end()) {
      if (member.value.is_null) {
        removed.insert(member.key);
        continue;
      }
      Member& existing = base.members[place->second];
      merge(existing.value, std::move(member.value));
      existing.where = member.where;
    } else {
      base.members.push_back(std::move(member));
    }
  }
  std::erase_if(base.members, [&](const Member& member) { return removed.contains(member.key); });
}

class Composer {
 public:
  explicit Composer(Problems& problems, std::vector<Node> more = {}) : problems_(problems), more_(std::move(more)) {}

  std::vector<SourceFile> sources;

  /// The tree of one file with everything that it extends beneath it.
  std::optional<Node> compose(std::string text, const std::string& name) {
    sources.push_back({name, std::move(text)});
    std::optional<Node> tree = parse_yaml(sources.back().text, name, problems_);
    if (!tree) return std::nullopt;
    if (tree->kind == Node::Kind::null) {
      problems_.add({name, 1, 1}, "the file is empty; `stiefel describe experiment` prints one to start from");
      return std::nullopt;
    }
    if (tree->kind != Node::Kind::map) {
      problems_.add(tree->where,
                    fmt::format("an experiment must be a mapping of keys to values, got {}", shown_kind(*tree)));
      return std::nullopt;
    }
    return extend(std::move(*tree), name);
  }

  std::vector<fs::path> open_files;  // from the experiment's own file down to the one being read

 private:
  static const char* shown_kind(const Node& node) {
    return node.kind == Node::Kind::sequence ? "a list" : "plain text";
  }

  std::optional<Node> extend(Node tree, const std::string& name) {
    std::optional<Node> base;
    bool complete = true;
    for (const Node& entry : take_extends(tree)) {
      std::optional<Node> part = base_file(entry, name);
      complete = complete && part.has_value();
      if (part && base)
        merge(*base, std::move(*part));
      else if (part)
        base = std::move(part);
    }
    if (!complete) return std::nullopt;
    if (!base) return tree;
    const Location where = tree.where;
    merge(*base, std::move(tree));
    base->where = where;
    return base;
  }

  std::vector<Node> take_extends(Node& tree) {
    std::vector<Node> files;
    if (const auto extends = std::ranges::find(tree.members, "extends", &Member::key); extends != tree.members.end()) {
      Node list = std::move(extends->value);
      tree.members.erase(extends);
      if (list.kind == Node::Kind::sequence)
        files = std::move(list.items);
      else
        files.push_back(std::move(list));
    }
    std::ranges::move(std::exchange(more_, {}), std::back_inserter(files));
    return files;
  }

  std::optional<Node> base_file(const Node& entry, const std::string& from) {
    if (entry.kind != Node::Kind::scalar || entry.text.empty()) {
      problems_.add(entry.where, "extends must be a file name or a list of file names");
      return std::nullopt;
    }
    const fs::path path = file_of_experiment(entry.text, fs::path(from).parent_path()).lexically_normal();
    const fs::path identity = identity_of(path);
    if (std::ranges::find(open_files, identity) != open_files.end()) {
      problems_.add(entry.where, fmt::format("{} extends itself: {}", path.string(), cycle(identity)));
      return std::nullopt;
    }
    if (sources.size() >= most_files) {
      problems_.add(entry.where, fmt::format("extends reads more than {} files", most_files));
      return std::nullopt;
    }
    std::string fault;
    std::optional<std::string> text = read_configuration(path, fault);
    if (!text) {
      const std::string hint = home_hint(entry.text) + experiment_hint(entry.text, path);
      problems_.add(entry.where, fmt::format("cannot extend {}: {}{}", path.string(), fault, hint));
      return std::nullopt;
    }
    std::size_t bytes = text->size();
    for (const SourceFile& source : sources) bytes += source.text.size();
    if (bytes > largest_configuration) {
      problems_.add(
          entry.where,
          fmt::format("with {} the configuration has {} bytes; at most {} are allowed, including all that it extends",
                      path.string(), bytes, largest_configuration));
      return std::nullopt;
    }
    open_files.push_back(identity);
    std::optional<Node> tree = compose(std::move(*text), path.string());
    open_files.pop_back();
    return tree;
  }

  std::string cycle(const fs::path& again) const {
    std::string text;
    for (auto file = std::ranges::find(open_files, again); file != open_files.end(); ++file)
      text += file->filename().string() + " extends ";
    return text + again.filename().string();
  }

  Problems& problems_;
  std::vector<Node> more_;  // of the experiment's own file, which is read first
};

std::vector<Member> take_many(Node& root) {
  std::vector<Member> many;
  for (const char* key : {"sweep", "seeds"}) {
    const auto member = std::ranges::find(root.members, key, &Member::key);
    if (member == root.members.end()) continue;
    many.push_back(std::move(*member));
    root.members.erase(member);
  }
  return many;
}

std::optional<Composed> compose(Composer& composer, std::string text, const std::string& name,
                                std::span<const std::string> overrides, Problems& problems) {
  std::optional<Node> root = composer.compose(std::move(text), name);
  if (!root) return std::nullopt;
  apply_overrides(*root, overrides, problems);
  std::vector<Member> many = take_many(*root);
  return Composed{std::move(*root), std::move(many), std::move(composer.sources)};
}

}  // namespace

std::optional<Composed> compose_file(const fs::path& named, std::span<const std::string> overrides, Problems& problems,
                                     std::vector<Node> more) {
  const fs::path file = file_of_experiment(named);
  std::string fault;
  std::optional<std::string> text = read_configuration(file, fault);
  if (!text) {
    problems.add({file.string(), 0, 0}, "cannot be read: " + fault + experiment_hint(named, file));
    return std::nullopt;
  }
  Composer composer(problems, std::move(more));
  composer.open_files.push_back(identity_of(file));
  return compose(composer, std::move(*text), file.string(), overrides, problems);
}

std::optional<Composed> compose_text(std::string text, const std::string& name, std::span<const std::string> overrides,
                                     Problems& problems) {
  Composer composer(problems);
  composer.open_files.push_back(identity_of(name));
  return compose(composer, std::move(text), name, overrides, problems);
}

}  // namespace stiefel
