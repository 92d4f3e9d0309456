#include "config/shipped.hpp"

#include "host/loader/load.hpp"

namespace stiefel {
namespace fs = std::filesystem;

fs::path shipped_experiments() {
  // They are next to lib or lib/TRIPLET or, in a build tree, a link to the sources.
  for (fs::path folder = library_folder(); folder.has_relative_path(); folder = folder.parent_path())
    if (const fs::path found = folder / "share/stiefel/experiments"; fs::exists(found / "papers/published.yaml"))
      return found;
  return {};
}

fs::path file_of_experiment(const fs::path& file) {
  std::error_code unreadable;
  if (file.has_extension() || fs::exists(file, unreadable) || file.is_absolute()) return file;
  const fs::path folder = shipped_experiments();
  const fs::path found = folder / (file.string() + ".yaml");
  return !folder.empty() && fs::exists(found, unreadable) ? found : file;
}

}  // namespace stiefel
