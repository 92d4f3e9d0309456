/// Files that the user names in an experiment.
#pragma once

#include <string>

namespace stiefel {

/// `name` as it is, or else under the data directory; Error(Exit::data) that says where it was looked for.
std::string find_user_file(const std::string& task, const std::string& name, const std::string& directory);

/// All bytes of a regular file; Error(Exit::data) naming it.
std::string read_bytes(const std::string& path);

}  // namespace stiefel
