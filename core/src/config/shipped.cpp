#include "config/shipped.hpp"

#include <algorithm>
#include <vector>

#include "base/suggestion.hpp"
#include "host/loader/load.hpp"

namespace stiefel {
namespace fs = std::filesystem;

namespace {
bool can_be_shipped(const fs::path& name) {
  const fs::path ending = name.extension();  // that of "mnist_m0.1" belongs to its name
  return ending != ".yaml" && ending != ".yml" && !name.is_absolute();
}
}  // namespace

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

fs::path file_of_experiment(const fs::path& name, const fs::path& folder) {
  std::error_code unreadable;
  const fs::path file = folder / name;
  const bool exists = fs::exists(file, unreadable) && !fs::is_directory(file, unreadable);
  if (exists || !can_be_shipped(name)) return file;
  const fs::path shipped = shipped_experiments();
  const fs::path found = shipped / (name.string() + ".yaml");
  return !shipped.empty() && fs::exists(found, unreadable) ? found : file;
}

std::string experiment_hint(const fs::path& name, const fs::path& file) {
  std::error_code unreadable;
  const fs::path shipped = shipped_experiments();
  if (shipped.empty() || !can_be_shipped(name) || fs::exists(file, unreadable)) return {};
  std::vector<std::string> names;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(shipped, fs::directory_options::skip_permission_denied))
    if (entry.path().extension() == ".yaml")
      names.push_back(entry.path().lexically_relative(shipped).replace_extension().string());
  std::ranges::sort(names);
  return suggestion(name.string(), names);
}

}  // namespace stiefel
