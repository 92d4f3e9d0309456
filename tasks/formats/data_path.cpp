// Looks a data file up, and says what to do when it is not there.
#include "tasks/formats/data_path.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/algorithm/string.hpp>
#include <filesystem>

#include <stiefel/error.hpp>

namespace stiefel {
namespace {

std::filesystem::path place_of(const std::string& directory, const std::string& folder) {
  return folder.empty() ? std::filesystem::path(directory) : std::filesystem::path(directory) / folder;
}

}  // namespace

std::string within_quotes(const std::string& text) { return boost::replace_all_copy(text, "'", "'\\''"); }

std::string mend_of(const std::string& directory, const DataQuery& query) {
  std::string mend = query.mend;
  const std::size_t place = mend.find("DIR");
  if (!directory.empty() && place != std::string::npos) mend.replace(place, 3, within_quotes(directory));
  return mend;
}

std::string existing_data_file(const std::string& directory, const DataQuery& query) {
  if (directory.empty()) return {};
  for (const std::string& folder : query.folders)
    for (const std::string& name : query.names) {
      std::error_code ignored;
      if (std::filesystem::is_regular_file(place_of(directory, folder) / name, ignored))
        return (place_of(directory, folder) / name).string();
    }
  return {};
}

std::string find_data_file(const std::string& directory, const DataQuery& query) {
  if (directory.empty())
    throw Error::missing(
        fmt::format("{} needs {} ({}), but the data directory is not set. Use --data DIR or set STIEFEL_DATA. {}",
                    query.task, query.what, query.names.front(), mend_of(directory, query)));
  const std::string path = existing_data_file(directory, query);
  if (!path.empty()) return path;
  std::vector<std::string> looked_in;
  for (const std::string& folder : query.folders) looked_in.push_back(place_of(directory, folder).string());
  throw Error::missing(fmt::format("{} needs {}, but there is no {} in {}. {}", query.task, query.what,
                                   fmt::join(query.names, " or "), fmt::join(looked_in, " or "),
                                   mend_of(directory, query)));
}

std::string find_data_folder(const std::string& directory, const DataQuery& query, const std::string& inside) {
  if (directory.empty()) return {};
  for (const std::string& folder : query.folders)
    for (const std::string& name : query.names) {
      const std::filesystem::path place = place_of(directory, folder) / name;
      std::error_code ignored;
      if (std::filesystem::is_directory(place / inside, ignored)) return place.string();
    }
  return {};
}

std::string find_own_data(const std::string& directory, const std::string& task, const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return path;
  const std::filesystem::path below = std::filesystem::path(directory) / path;
  if (!directory.empty() && std::filesystem::exists(below, ignored)) return below.string();
  const bool elsewhere = !directory.empty() && std::filesystem::path(path).is_relative();
  throw Error::missing(
      fmt::format("{}: there is no {}{}. Give its path relative to the current folder or the data directory "
                  "(--data DIR), or an absolute path.{}",
                  task, path, elsewhere ? fmt::format(", and none in {}", directory) : "",
                  path.starts_with('~') ? " ~ is not expanded here: write the full path, or $HOME in a shell." : ""));
}

}  // namespace stiefel
