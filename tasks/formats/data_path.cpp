// Looks a data file up, and says what to do when it is not there.
#include "data_path.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <filesystem>

#include <stiefel/error.hpp>

namespace stiefel {

std::string mend_of(const std::string& directory, const DataQuery& query) {
  std::string command = query.fetch;
  const std::size_t place = command.find("DIR");
  if (!directory.empty() && place != std::string::npos) command.replace(place, 3, directory);
  return "Fetch it with: " + command;
}

std::string find_data_file(const std::string& directory, const DataQuery& query) {
  if (directory.empty())
    throw Error(fmt::format("{} needs {} ({}), but no data directory is known. Say --data DIR or set STIEFEL_DATA. {}", query.task,
                            query.what, query.names.front(), mend_of(directory, query)),
                Exit::data);
  std::vector<std::string> looked_in;
  for (const std::string& folder : query.folders) {
    const std::filesystem::path place = folder.empty() ? std::filesystem::path(directory) : std::filesystem::path(directory) / folder;
    for (const std::string& name : query.names) {
      std::error_code ignored;
      if (std::filesystem::is_regular_file(place / name, ignored)) return (place / name).string();
    }
    looked_in.push_back(place.string());
  }
  throw Error(fmt::format("{} needs {}, but there is no {} in {}. {}", query.task, query.what, fmt::join(query.names, " or "),
                          fmt::join(looked_in, " or "), mend_of(directory, query)),
              Exit::data);
}

}  // namespace stiefel
