// Reads the table strictly: missing and unknown keys are errors.
#include "cli/data_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include <stiefel/error.hpp>
#include "base/file_content.hpp"
#include "base/json_text.hpp"
#include "base/sha256.hpp"

namespace stiefel::cli {

extern const char* const data_sets_json;  // built into the program

namespace {
namespace fs = std::filesystem;

/// The entries of a JSON object, each requested once; other entries are refused.
class Entries {
 public:
  Entries(const nlohmann::json& object, std::string what) : object_(object), what_(std::move(what)) {
    if (!object.is_object()) throw Error(fmt::format("{} is not an object {{…}}", what_));
  }
  template <class T> T take(const char* key) {
    known_.emplace_back(key);
    const auto found = object_.find(key);
    if (found == object_.end()) throw Error(fmt::format("{} has no \"{}\"", what_, key));
    return value<T>(*found, key);
  }
  template <class T> T take(const char* key, T otherwise) {
    known_.emplace_back(key);
    const auto found = object_.find(key);
    return found == object_.end() ? otherwise : value<T>(*found, key);
  }
  void finish() const {
    for (const auto& [key, value] : object_.items())
      if (std::find(known_.begin(), known_.end(), key) == known_.end())
        throw Error(fmt::format("{} has the unknown key \"{}\"", what_, key));
  }

 private:
  template <class T> T value(const nlohmann::json& json, const char* key) const {
    try {
      return json.get<T>();
    } catch (const nlohmann::json::exception&) {
      throw Error(fmt::format("{}: \"{}\" has the wrong type", what_, key));
    }
  }
  const nlohmann::json& object_;
  std::string what_;
  std::vector<std::string> known_;
};

/// Throws Error unless a path stays inside the data directory.
void refuse_outside(const std::string& path, const std::string& what) {
  const fs::path p(path);
  if (p.is_absolute() || std::find(p.begin(), p.end(), "..") != p.end())
    throw Error(fmt::format("{}: \"{}\" must be a path inside the data directory", what, path));
}

SetFile read_file(const nlohmann::json& json, const std::string& what) {
  Entries entries(json, what);
  SetFile file{entries.take<std::string>("name"), entries.take<std::uintmax_t>("bytes"),
               entries.take<std::string>("sha256"), entries.take<std::string>("url", ""),
               entries.take<std::vector<std::string>>("also", {})};
  entries.finish();
  refuse_outside(file.name, what);
  if (file.name.empty() || fs::path(file.name).filename().empty())
    throw Error(fmt::format("{}: \"name\" must name a file", what));
  const bool digits = std::all_of(file.sha256.begin(), file.sha256.end(),
                                  [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (file.sha256.size() != 64 || !digits)
    throw Error(fmt::format("{}: \"sha256\" must be 64 lower-case hexadecimal digits", what));
  return file;
}

DataSet read_set(const nlohmann::json& json, const std::string& origin) {
  Entries entries(json, origin + ": a set");
  DataSet set{entries.take<std::string>("name"),
              entries.take<std::string>("title"),
              entries.take<std::string>("task", ""),
              entries.take<std::string>("terms"),
              entries.take<std::string>("page", ""),
              entries.take<bool>("agreement", false),
              entries.take<std::vector<std::string>>("folders"),
              {}};
  const nlohmann::json files = entries.take<nlohmann::json>("files");
  entries.finish();
  const std::string what = fmt::format("{}: the set {}", origin, set.name);
  if (set.folders.empty())
    throw Error(fmt::format("{}: \"folders\" is empty; [\"\"] is the data directory itself", what));
  for (const std::string& folder : set.folders) refuse_outside(folder, what);
  if (!files.is_array()) throw Error(fmt::format("{}: \"files\" is not a list […]", what));
  for (const nlohmann::json& file : files) set.files.push_back(read_file(file, what + ": a file"));
  return set;
}

}  // namespace

std::vector<DataSet> parse_data_sets(std::string_view text, const std::string& origin) {
  const nlohmann::json json = parse_json_or_discard(text);
  if (json.is_discarded()) throw Error(fmt::format("{} is not valid JSON", origin));
  Entries entries(json, origin);
  const nlohmann::json list = entries.take<nlohmann::json>("sets");
  entries.finish();
  if (!list.is_array()) throw Error(fmt::format("{}: \"sets\" is not a list […]", origin));
  std::vector<DataSet> sets;
  for (const nlohmann::json& set : list) sets.push_back(read_set(set, origin));
  return sets;
}

std::vector<DataSet> load_data_sets(const std::string& file) {
  std::vector<DataSet> sets = parse_data_sets(data_sets_json, "data_sets.json");
  if (file.empty()) return sets;
  for (DataSet& own : parse_data_sets(file_content(file), file)) {
    const auto same = std::find_if(sets.begin(), sets.end(), [&](const DataSet& set) { return set.name == own.name; });
    if (same != sets.end())
      *same = std::move(own);
    else
      sets.push_back(std::move(own));
  }
  return sets;
}

std::optional<FoundFile> find_file(const DataSet& set, const SetFile& file, const fs::path& directory) {
  std::error_code ignored;
  for (const std::string& folder : set.folders) {
    const fs::path place = folder.empty() ? directory : directory / folder;
    if (fs::is_regular_file(place / file.name, ignored)) return FoundFile{place / file.name, true};
    for (const std::string& name : file.also)
      if (fs::is_regular_file(place / name, ignored)) return FoundFile{place / name, false};
  }
  return std::nullopt;
}

bool folder_exists(const DataSet& set, const fs::path& directory) {
  std::error_code ignored;
  return std::any_of(set.folders.begin(), set.folders.end(),
                     [&](const std::string& folder) { return fs::is_directory(directory / folder, ignored); });
}

std::string fault_of(const SetFile& file, const fs::path& path) {
  const std::uintmax_t bytes = fs::file_size(path);
  if (bytes != file.bytes) return fmt::format("has {} bytes, expected {}", bytes, file.bytes);
  const std::string sum = sha256_of_file(path);
  return sum == file.sha256 ? "" : fmt::format("has the sha256 {}, expected {}", sum, file.sha256);
}

}  // namespace stiefel::cli
