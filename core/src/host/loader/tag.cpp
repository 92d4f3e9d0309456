// "\x01stiefel-abi key=value …\x02": every field must equal this library's, with two exceptions: `standard` may be any
// from C++20 on, and `isa` may be any set of extensions that this CPU has. The layout of a type is a field, too.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <stiefel/abi.hpp>
#include "base/number_from.hpp"
#include "host/loader/tag.hpp"

namespace stiefel {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

constexpr auto tag_of_this_library = STIEFEL_ABI_TAG;
constexpr std::string_view own_tag = tag_of_this_library.data();
// Part of the tag itself, so that this library contains the opening only where the whole tag is.
constexpr std::string_view opening = own_tag.substr(0, 13);
constexpr char closing = own_tag.back();
constexpr std::size_t longest_tag = 16384;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// The distinct tags in `bytes`, without their opening and closing bytes. A tag that is not closed counts as an empty
/// text. Equal tags count once, because a compiler need not merge equal literals.
std::vector<std::string_view> find_tags(std::string_view bytes) {
  std::vector<std::string_view> tags;
  for (std::size_t place = bytes.find(opening); place != bytes.npos; place = bytes.find(opening, place + 1)) {
    const std::string_view text = bytes.substr(place + opening.size(), longest_tag);
    const std::size_t end = text.find(closing);
    const std::string_view tag = end == text.npos ? std::string_view() : text.substr(0, end);
    if (std::ranges::find(tags, tag) == tags.end()) tags.push_back(tag);
  }
  return tags;
}

Fields parse(std::string_view tag) {
  Fields fields;
  for (const std::string_view part : split(tag, ' ')) {
    const std::size_t equals = std::min(part.find('='), part.size());
    fields.emplace_back(part.substr(0, equals), part.substr(std::min(equals + 1, part.size())));
  }
  return fields;
}

std::string value_of(const Fields& fields, const std::string& key) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.first == key; });
  return found == fields.end() ? "(not stated)" : found->second;
}

std::string words_for(const std::string& key) {
  static const Fields words = {{"sdk", "SDK headers"},
                               {"standard", "C++ standard"},
                               {"string", "std::string ABI"},
                               {"eigen", "Eigen"},
                               {"containers", "containers"}};
  const std::string known = value_of(words, key);
  return known == "(not stated)" ? key : known;
}

/// Whether two values of a field agree. All standards from C++20 on do: the C++ library lays out its classes alike.
bool agree(const std::string& key, const std::string& theirs, const std::string& ours) {
  const auto modern = [](std::string_view standard) {
    return number_from<long>(standard.substr(0, 6)).value_or(0) >= 202002;
  };
  return theirs == ours || (key == "standard" && modern(theirs) && modern(ours));
}

/// Both values of a field, in words. Those of the layout of a type are told by the first number that differs.
std::pair<std::string, std::string> in_words(const std::string& key, const std::string& theirs,
                                             const std::string& ours) {
  const std::vector<std::string_view> a = split(theirs, '/'), b = split(ours, '/');
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (x == a.end() || y == b.end() || b.size() < 2)
    return {fmt::format("{} {}", words_for(key), theirs), fmt::format("{} {}", words_for(key), ours)};
  const auto told = [&](std::string_view part, std::ptrdiff_t place) {
    const std::size_t at = part.find('@');
    if (place == 0) return fmt::format("a {} of {} bytes", key, part);
    if (place == 1 || at == part.npos) return fmt::format("a {} aligned to {} bytes", key, part);
    return fmt::format("{}::{} at byte {}", key, part.substr(0, at), part.substr(at + 1));
  };
  return {told(*x, x - a.begin()), told(*y, y - b.begin())};
}

/// CMake options that set these fields to our values. A fresh configuration alone would make the same choices again.
std::string options_for(const std::vector<std::string>& keys, const Fields& fields) {
  std::string options;
  std::vector<std::string> flags;
  bool other_flags = false;
  for (const std::string& key : keys) {
    const std::string ours = value_of(fields, key);
    if (key == "standard") options += "-DCMAKE_CXX_STANDARD=20 ";
    if (key == "eigen") options += fmt::format("-DEigen3_DIR=FOLDER_OF_EIGEN_{} ", ours);
    if (key == "string") flags.push_back("-D_GLIBCXX_USE_CXX11_ABI=" + ours);
    if (key == "containers" && ours == "debug") flags.emplace_back("-D_GLIBCXX_DEBUG");
    other_flags |= key == "string" || key == "containers";
  }
  if (!other_flags) return options;
  const std::string all = fmt::format("{}", fmt::join(flags, " "));
  return options + "-DCMAKE_CXX_FLAGS=" + (flags.size() > 1 ? "\"" + all + "\" " : all + " ");
}

/// A sentence that names every field in which the two differ, both of its values, and the command that fixes it; empty
/// if they agree.
std::string compare(const Fields& theirs, const Fields& ours, const Rebuild& rebuild) {
  std::vector<std::string> keys;
  for (const Fields* fields : {&ours, &theirs})
    for (const auto& [key, value] : *fields)
      if (key != "isa" && std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  std::vector<std::string> plugin, host, different;
  for (const std::string& key : keys) {
    if (agree(key, value_of(theirs, key), value_of(ours, key))) continue;
    different.push_back(key);
    auto [of_plugin, of_host] = in_words(key, value_of(theirs, key), value_of(ours, key));
    plugin.push_back(std::move(of_plugin));
    host.push_back(std::move(of_host));
  }
  if (plugin.empty()) return {};
  return fmt::format("it was built with {} and this stiefel with {}; rebuild it with {}", fmt::join(plugin, ", "),
                     fmt::join(host, ", "), rebuild(options_for(different, ours)));
}

/// The instruction sets in a tag's field `isa` that this CPU lacks, as "avx2, fma"; empty if it has all.
std::string missing_instruction_sets(std::string_view isa) {
  std::vector<std::string_view> missing;
  for (const std::string_view name : split(isa, '+')) {
    bool supported = name == STIEFEL_PROCESSOR;
#if defined(__x86_64__)
#define STIEFEL_ASK_CPU(extension) \
  if (name == extension) supported = __builtin_cpu_supports(extension) > 0;
    STIEFEL_ISA_EXTENSIONS(STIEFEL_ASK_CPU)
#undef STIEFEL_ASK_CPU
#endif
    if (!supported) missing.push_back(name);
  }
  return fmt::format("{}", fmt::join(missing, ", "));
}

}  // namespace

std::string check_tag(std::string_view bytes, const Rebuild& rebuild) {
  const std::vector<std::string_view> tags = find_tags(bytes);
  if (tags.empty())
    return fmt::format("it has no stiefel-abi tag; end its source with STIEFEL_PLUGIN(...) and build it with {}",
                       rebuild({}));
  if (tags.size() > 1)
    return fmt::format(
        "it carries {} stiefel-abi tags and a plugin carries 1; write STIEFEL_PLUGIN(...) once per library and rebuild "
        "it with {}",
        tags.size(), rebuild({}));
  const Fields theirs = parse(tags[0]), ours = parse(find_tags(own_tag)[0]);
  std::string refusal = compare(theirs, ours, rebuild);
  if (!refusal.empty()) return refusal;
  const std::string isa = value_of(theirs, "isa"), missing = missing_instruction_sets(isa);
  if (!missing.empty())
    return fmt::format(
        "it was built for {} and this CPU has no {}; rebuild it on this machine or without -march, with {}", isa,
        missing, rebuild({}));
  return {};
}

}  // namespace stiefel
