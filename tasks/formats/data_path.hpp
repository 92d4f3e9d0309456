/// Where a data set's file lies under the user's data directory.
#pragma once

#include <string>
#include <vector>

namespace stiefel {

/// What to look for: `folders` under the data directory ("" is the directory itself), in each the `names`, in this
/// order.
struct DataQuery {
  std::string task, what;  ///< for the sentence: "pixel_mnist", "the MNIST training images"
  std::vector<std::string> folders, names;
  std::string mend;  ///< how to get it, a sentence with 'DIR' for the data directory
};

/// Path of the first that exists; Error(Exit::data) that says what was looked for, where, and how to get it.
std::string find_data_file(const std::string& directory, const DataQuery& query);
/// The same; "" where there is none.
std::string existing_data_file(const std::string& directory, const DataQuery& query);

/// Path of the first folder under the data directory, in each of `folders` the `names`, that has a folder `inside`; ""
/// if there is none.
std::string find_data_folder(const std::string& directory, const DataQuery& query, const std::string& inside);

/// A file or folder of the user's own: `path` as it is, or under the data directory; Error(Exit::data) if it is in
/// neither place.
std::string find_own_data(const std::string& directory, const std::string& task, const std::string& path);

/// A text for between the single quotes of a shell.
std::string within_quotes(const std::string& text);
/// `mend` of the query with the data directory in place of DIR.
std::string mend_of(const std::string& directory, const DataQuery& query);

}  // namespace stiefel
