// From yaml-cpp's events to the tree: the events, unlike yaml-cpp's own nodes, show duplicate keys, quotes and aliases
// before they act.
#include "config/tree.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <istream>
#include <map>
#include <sstream>

#include "base/file_content.hpp"
#include "base/printable.hpp"
#include "base/suggestion.hpp"
#include "config/scalars.hpp"

namespace stiefel {
namespace {

/// Characters of UTF-8 text.
int characters(std::string_view text) {
  return int(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

constexpr std::size_t most_nodes = 100'000;

/// A fault after which no tree can be made.
struct Refused {
  Location where;
  std::string sentence;
};

std::size_t count_nodes(const Node& node) {
  std::size_t count = 1;
  for (const Node& item : node.items) count += count_nodes(item);
  for (const Member& member : node.members) count += count_nodes(member.value);
  return count;
}

std::size_t depth_of(const Node& node) {
  std::size_t depth = 0;
  for (const Node& item : node.items) depth = std::max(depth, depth_of(item));
  for (const Member& member : node.members) depth = std::max(depth, depth_of(member.value));
  return depth + 1;
}

bool is_null_word(std::string_view word) { return word == "~" || word == "null" || word == "Null" || word == "NULL"; }

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, const std::string& file, Problems& problems)
      : text_(text), file_(file), problems_(problems) {}

  Node root;

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) throw Refused{place(mark), "a second document begins here; write one experiment per file"};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node = leaf(Node::Kind::null, mark);
    node.is_null = written_null(std::size_t(std::max(mark.pos, 0)));
    add(std::move(node), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_tag(mark, tag, /*plain_marks=*/true);
    if (value.find('\0') != std::string::npos)
      throw Refused{place(mark), "the text contains a NUL character; remove it"};
    Node node = leaf(Node::Kind::scalar, mark);
    node.text = value;
    node.quoted = tag == "!";
    add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      throw Refused{place(mark), "this alias refers to a value that contains it; write the value out"};
    if (open_.size() + depth_of(found->second) > deepest_level) refuse_depth(mark);
    count(count_nodes(found->second), place(mark));
    add(found->second, 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::sequence, mark, tag, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::map, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  /// A collection that is still being read.
  struct Open {
    Node node;
    YAML::anchor_t anchor;
    bool has_key, skips_value;
    std::string key;
    Location key_place;
    std::map<std::string, Location, std::less<>> seen;
  };

  /// Whether `null` or `~` stands there; the mark of an absent value is that of whatever follows.
  bool written_null(std::size_t at) const {
    if (at >= text_.size()) return false;
    std::string_view rest = text_.substr(at);
    if (rest.starts_with('&'))
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t", rest.find_first_of(" \t")), rest.size()));
    return is_null_word(rest.substr(0, rest.find_first_of(" \t\r\n,}]#")));
  }

  Location place(const YAML::Mark& mark) {
    if (file_.empty()) return {};
    const std::size_t end = std::min(std::size_t(mark.pos), text_.size());
    if (mark.line != counted_.line || end < counted_.byte) {
      const std::size_t line_end = end == 0 ? text_.npos : text_.rfind('\n', end - 1);
      counted_ = {mark.line, line_end == text_.npos ? 0 : line_end + 1, 0};
    }
    counted_.characters += characters(text_.substr(counted_.byte, end - counted_.byte));
    counted_.byte = end;
    return {file_, mark.line + 1, counted_.characters + 1};
  }

  Node leaf(Node::Kind kind, const YAML::Mark& mark) {
    count(1, place(mark));
    Node node;
    node.kind = kind;
    node.where = place(mark);
    return node;
  }

  void count(std::size_t nodes, const Location& where) {
    nodes_ += nodes;
    if (nodes_ > most_nodes)
      throw Refused{where,
                    fmt::format("more than {} values once aliases are expanded; write a smaller file", most_nodes)};
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag, bool plain_marks) {
    if (tag.empty() || tag == "?" || (plain_marks && tag == "!")) return;
    throw Refused{place(mark), fmt::format("the tag {} is not supported; write the plain value", tag)};
  }

  [[noreturn]] void refuse_depth(const YAML::Mark& mark) {
    throw Refused{place(mark),
                  fmt::format("nested deeper than {} levels; no key of an experiment is that deep", deepest_level)};
  }

  void open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_tag(mark, tag, /*plain_marks=*/false);
    if (open_.size() >= deepest_level) refuse_depth(mark);
    open_.push_back({leaf(kind, mark), anchor, false, false, {}, {}, {}});
  }

  void close() {
    Open finished = std::move(open_.back());
    open_.pop_back();
    add(std::move(finished.node), finished.anchor);
  }

  void add(Node node, YAML::anchor_t anchor) {
    if (anchor != 0) {
      count(count_nodes(node), node.where);  // the copy
      anchors_[anchor] = node;
    }
    if (open_.empty()) {
      root = std::move(node);
    } else if (open_.back().node.kind == Node::Kind::sequence) {
      open_.back().node.items.push_back(std::move(node));
    } else if (!open_.back().has_key) {
      begin_member(std::move(node));
    } else {
      end_member(std::move(node));
    }
  }

  void begin_member(Node key) {
    if (key.kind != Node::Kind::scalar) throw Refused{key.where, "a key must be a plain word"};
    Open& map = open_.back();
    map.has_key = true;
    map.skips_value = true;
    if (key.text == "<<" && !key.quoted) {
      problems_.add(key.where, "merge keys (<<) are not supported; use extends: [base.yaml] at the top of the file");
    } else if (const auto [first, is_new] = map.seen.emplace(key.text, key.where); !is_new) {
      problems_.add(key.where,
                    fmt::format("'{}' is given twice; the first is at {}", shortened(key.text), first->second.text()));
    } else {
      map.skips_value = false;
    }
    map.key = std::move(key.text);
    map.key_place = std::move(key.where);
  }

  void end_member(Node value) {
    Open& map = open_.back();
    map.has_key = false;
    if (map.skips_value) return;
    // The mark of an absent value is that of whatever follows.
    if (value.kind == Node::Kind::null) value.where = map.key_place;
    map.node.members.push_back({std::move(map.key), std::move(map.key_place), std::move(value)});
  }

  struct Counted {
    int line = -1;
    std::size_t byte = 0;
    int characters = 0;  // from the start of the line to the byte
  };

  std::string_view text_;
  const std::string& file_;
  Counted counted_;  // marks mostly come in order
  Problems& problems_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
};

Location place_of_byte(std::string_view text, std::size_t byte, const std::string& file) {
  if (file.empty()) return {};
  const std::string_view before = text.substr(0, byte);
  const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return {file, int(std::ranges::count(before, '\n')) + 1, characters(before.substr(line_start)) + 1};
}

/// What yaml-cpp would let pass: size, control characters, bytes that are no UTF-8, tabs as indentation.
void check_characters(std::string_view text, const std::string& file) {
  if (text.size() > largest_configuration)
    throw Refused{{file, 0, 0},
                  fmt::format("{} bytes; a configuration can have at most {}", text.size(), largest_configuration)};
  bool indentation = true;
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    const std::size_t length = utf8_length(text, i);
    if (length == 0)
      throw Refused{place_of_byte(text, i, file), fmt::format("byte 0x{:02X} is not UTF-8; save the file as UTF-8", c)};
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F)
      throw Refused{place_of_byte(text, i, file), fmt::format("control character 0x{:02X}; remove it", c)};
    if (c == '\r' && i + 1 < text.size() && text[i + 1] != '\n')
      throw Refused{place_of_byte(text, i, file), "a carriage return inside a line; convert the file's line ends"};
    if (c == '\t' && indentation)
      throw Refused{place_of_byte(text, i, file), "a tab in the indentation; YAML is indented with spaces"};
    indentation = c == '\n' || (indentation && (c == ' ' || c == '\r'));
    i += length;
  }
}

/// What is still open at the end: the byte of the quotation mark, and how many brackets.
struct Unclosed {
  std::size_t quotation = 0;
  std::ptrdiff_t brackets = 0;
};

Unclosed open_at_end(std::string_view text) {
  char quote = 0, before = '\n';  // the last character that is not a blank
  Unclosed open;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (text.substr(i, 2) == "''" ? quote == '\'' : c == '\\' && quote == '"')
        ++i;
      else if (c == quote)
        quote = 0;
    } else if ((c == '"' || c == '\'') && std::strchr("\n:,[{-", before)) {
      quote = c, open.quotation = i;
    } else if (c == '#' && (i == 0 || std::strchr(" \t\n", text[i - 1]))) {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else {
      open.brackets += (c == '{' || c == '[') - (c == '}' || c == ']');
    }
    if (c != ' ' && c != '\t') before = c;
  }
  return open;
}

/// The fault of the line above when a ':' is unexpected behind the first word of its line.
std::optional<Refused> fault_above(std::string_view text, std::size_t colon, const Location& where) {
  const std::size_t start = text.rfind('\n', colon) + 1;
  const std::size_t end = start == 0 ? text.npos : text.find_last_not_of(" \t\r\n", start - 1);
  if (end == text.npos || text.substr(start, colon - start).find(':') != text.npos) return std::nullopt;
  const std::size_t begin = text.find_first_not_of(" \t", text.rfind('\n', end) + 1);
  const std::string_view above = text.substr(begin, end + 1 - begin);
  const std::size_t at = above.find(':') + 1;
  if (at == 0 || at == above.size()) return std::nullopt;
  if (above[at] != ' ')
    return Refused{place_of_byte(text, begin + at - 1, where.file),
                   fmt::format("a space is missing after ':' in '{}'", shortened(above))};
  const std::string value = shortened(above.substr(above.find_first_not_of(' ', at)));
  return Refused{where,
                 fmt::format("unexpected ':', because the line above already has the value '{0}'; indent this line "
                             "like that one, or, if '{0}' is a method, write 'plugin: {0}' on a separate line",
                             value)};
}

std::string in_plain_words(const std::string& message) {
  static const std::map<std::string, std::string> words = {
      {"illegal EOF in scalar", "a quotation mark is never closed"},
      {"end of sequence flow not found", "a [ is never closed"},
      {"end of map flow not found", "a { is never closed"},
      {"illegal flow end", "this bracket does not match an open one"},
      {"end of map not found", "the indentation of this line matches no line above it, or a ':' is missing"},
      {"end of sequence not found", "the indentation of this line matches no line above it, or a '-' is missing"},
      {"alias not found after *", "no name follows the *; put text that begins with * in quotes"},
      {"the referenced anchor is not defined", "no anchor has this name; put text that begins with * in quotes"},
      {"illegal map value", "unexpected ':'; put text that contains ': ' in quotes"},
  };
  const auto begins = [&](const auto& word) { return message.starts_with(word.first); };  // some end with a name
  const auto found = std::ranges::find_if(words, begins);
  return found == words.end() ? message : found->second;
}

/// Files in the folder of one that is missing.
std::vector<std::string> names_next_to(const std::filesystem::path& file) {
  std::vector<std::string> names;
  std::error_code code;
  std::filesystem::directory_iterator entry(file.has_parent_path() ? file.parent_path() : ".", code), end;
  for (; !code && entry != end; entry.increment(code)) names.push_back(printable(entry->path().filename().string()));
  std::ranges::sort(names);
  return names;
}

}  // namespace

const Member* Node::find(std::string_view key) const {
  const auto found = std::ranges::find(members, key, &Member::key);
  return found == members.end() ? nullptr : &*found;
}
Member* Node::find(std::string_view key) { return const_cast<Member*>(std::as_const(*this).find(key)); }

std::optional<Node> parse_yaml(std::string_view text, const std::string& file, Problems& problems) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
  try {
    check_characters(text, file);
    // yaml-cpp closes an open quotation automatically when the file ends with a line end.
    text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder(text, file, problems);
    while (parser.HandleNextDocument(builder)) {
    }
    return std::move(builder.root);
  } catch (const Refused& refused) {
    problems.add(refused.where, refused.sentence);
  } catch (const YAML::Exception& exception) {
    const Location where = file.empty() ? Location{}
                           : exception.msg == YAML::ErrorMsg::EOF_IN_SCALAR
                               ? place_of_byte(text, open_at_end(text).quotation, file)
                               : Location{file, exception.mark.line + 1, exception.mark.column + 1};
    Refused refused{where, in_plain_words(exception.msg)};
    const bool unended =
        exception.msg == YAML::ErrorMsg::END_OF_MAP_FLOW || exception.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW;
    if (unended && open_at_end(text).brackets <= 0)
      refused.sentence = "a comma is missing between two entries, before this place";
    if (exception.msg == YAML::ErrorMsg::MAP_VALUE)
      refused = fault_above(text, std::size_t(exception.mark.pos), where).value_or(refused);
    problems.add(refused.where, "not valid YAML: " + refused.sentence);
  }
  return std::nullopt;
}

std::optional<Node> parse_word(std::string_view text, Problems& problems) {
  const std::size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  const std::string_view word = first == text.npos ? "" : text.substr(first, last - first + 1);
  const auto between = [&](char first, char last) {
    return word.size() > 1 && word.front() == first && word.back() == last;
  };
  if (word.starts_with('{') || between('[', ']') || between('"', '"') || between('\'', '\''))
    return parse_yaml(word, "", problems);
  try {
    check_characters(word, "");
  } catch (const Refused& refused) {
    problems.add(refused.where, refused.sentence);
    return std::nullopt;
  }
  Node node;
  node.is_null = is_null_word(word);
  if (word.empty() || node.is_null) return node;
  node.kind = Node::Kind::scalar;
  node.text = word;
  return node;
}

void remove_nulls(Node& node) {
  std::erase_if(node.members, [](const Member& member) { return member.value.is_null; });
  for (Member& member : node.members) remove_nulls(member.value);
  for (Node& item : node.items) remove_nulls(item);
}

std::optional<std::string> read_configuration(const std::filesystem::path& file, std::string& fault) {
  std::error_code code;
  const auto status = std::filesystem::status(file, code);
  if (status.type() == std::filesystem::file_type::not_found) {
    fault = "there is no such file" + suggestion(file.filename().string(), names_next_to(file));
  } else if (status.type() == std::filesystem::file_type::none) {
    fault = code.message();
  } else if (!std::filesystem::is_regular_file(status)) {
    fault =
        std::filesystem::is_directory(status) ? "it is a folder; name the YAML file in it" : "it is not a regular file";
  } else if (const auto size = std::filesystem::file_size(file, code); !code && size > largest_configuration) {
    fault = fmt::format("it has {} bytes; a configuration can have at most {}", size, largest_configuration);
  } else {
    try {
      return file_content(file);
    } catch (const Error&) {
      fault = "it cannot be read; check its permissions";
    }
  }
  return std::nullopt;
}

}  // namespace stiefel
