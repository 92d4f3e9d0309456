/// Where a data set's file lies under the user's data directory.
#pragma once

#include <string>
#include <vector>

namespace stiefel {

/// What to look for: `folders` under the data directory ("" is the directory itself), in each the `names`, in this order.
struct DataQuery {
  std::string task, what;  ///< for the sentence: "pixel_mnist", "the MNIST training images"
  std::vector<std::string> folders, names;
  std::string fetch;  ///< command that fetches it, with DIR for the data directory
};

/// Path of the first that exists; Error(Exit::data) that says what was looked for, where, and how to get it.
std::string find_data_file(const std::string& directory, const DataQuery& query);

/// "Fetch it with: …", `fetch` with the data directory in place of DIR.
std::string mend_of(const std::string& directory, const DataQuery& query);

}  // namespace stiefel
