// The data sets that `stiefel data` knows: a table in JSON, core/cli/data_sets.json or one of the user's own.
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
  std::vector<SetFile> files;  ///< none: a set of too many files to name
};

/// Throws Error(Exit::usage) that names `origin` and the problem.
std::vector<DataSet> parse_data_sets(std::string_view json, const std::string& origin);
/// The program's table, and that of the user's file, whose sets replace those of the same name. No file: "".
std::vector<DataSet> load_data_sets(const std::string& file);

/// Where a file of a set is.
struct FoundFile {
  std::filesystem::path path;
  bool named;  ///< under its first name, so that its sum is known
};
std::optional<FoundFile> find_file(const DataSet& set, const SetFile& file, const std::filesystem::path& directory);
/// Whether the set's folder exists, for sets whose files are not listed.
bool folder_exists(const DataSet& set, const std::filesystem::path& directory);

/// What is wrong with the content of a file: empty, or its size or sum and what they should be.
std::string fault_of(const SetFile& file, const std::filesystem::path& path);

}  // namespace stiefel::cli
