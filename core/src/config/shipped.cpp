#include "config/shipped.hpp"

#include "host/loader/load.hpp"

namespace stiefel {
namespace fs = std::filesystem;

fs::path installation_prefix() {
  // The library is in lib or lib/TRIPLET.
  fs::path folder = library_folder();
  while (folder.has_relative_path() && !fs::exists(folder / "share/stiefel")) folder = folder.parent_path();
  return folder.has_relative_path() ? folder : fs::path();
}

fs::path shipped_experiments() {
  const fs::path prefix = installation_prefix(), folder = prefix / "share/stiefel/experiments";
  return !prefix.empty() && fs::exists(folder / "papers/published.yaml") ? folder : fs::path();
}

fs::path file_of_experiment(const fs::path& file) {
  std::error_code unreadable;
  const fs::path ending = file.extension();  // that of "mnist_m0.1" belongs to its name
  const bool other = fs::exists(file, unreadable) && !fs::is_directory(file, unreadable);
  if (other || ending == ".yaml" || ending == ".yml" || file.is_absolute()) return file;
  const fs::path folder = shipped_experiments();
  const fs::path found = folder / (file.string() + ".yaml");
  return !folder.empty() && fs::exists(found, unreadable) ? found : file;
}

}  // namespace stiefel
