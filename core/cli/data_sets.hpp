// The data sets that `stiefel data` knows, from a table in JSON: core/cli/data_sets.json and the user's file, if there
// is one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stiefel::cli {

struct SetFile {
  std::string name;
  std::uintmax_t bytes = 0;
  std::string sha256, url;        ///< no url: it cannot be downloaded
  std::vector<std::string> also;  ///< other names and forms that tasks read
};

struct DataSet {
  std::string name, title, task, terms, page;
  bool agreement = false;  ///< the terms must be agreed to before anything is fetched
  std::vector<std::string>
      folders;  ///< below the data directory, in the order in which tasks look there; fetched into the first
  std::vector<SetFile> files;  ///< empty if there are too many to list
};

/// Throws Error(Exit::usage) that names `origin` and the problem.
std::vector<DataSet> parse_data_sets(std::string_view json, const std::string& origin);
/// The data sets of the program and of the user's file, which replace those of the same name. "" means no file.
std::vector<DataSet> load_data_sets(const std::string& file);

/// A file of a set, where it was found.
struct FoundFile {
  std::filesystem::path path;
  bool named;  ///< found as SetFile::name, so that its checksum is known
};
std::optional<FoundFile> find_file(const DataSet& set, const SetFile& file, const std::filesystem::path& directory);
/// Whether the set's folder exists, for sets whose files are not listed.
bool folder_exists(const DataSet& set, const std::filesystem::path& directory);

/// What is wrong with the content of a file: its size or checksum, and the expected one. Empty if it is right.
std::string fault_of(const SetFile& file, const std::filesystem::path& path);

}  // namespace stiefel::cli
