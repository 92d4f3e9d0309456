#include "training/outcome.hpp"

#include <fmt/format.h>

#include "base/atomic_file.hpp"
#include "base/file_name.hpp"
#include "config/scalars.hpp"
#include "host/plugin_faults.hpp"

namespace stiefel {

void RunOutcome::scalar(const std::string& name, double value, double weight) {
  if (!plain_name(name))
    throw Error(fmt::format("'{}' cannot name a quantity: use lower-case letters, digits and _", shortened(name)),
                Exit::plugin);
  Ratio& ratio = quantities_[name];
  ratio.sum += weight * value;
  ratio.weight += weight;
}

void RunOutcome::file(const std::string& name, std::string_view bytes) {
  const std::string fault = file_name_fault(name);
  if (!fault.empty())
    throw Error(fmt::format("'{}' cannot name a file of the outcome: it {}", shortened(name), fault), Exit::plugin);
  if (folder_.empty()) return;
  std::filesystem::create_directories(folder_);
  replace_file(folder_ / name, bytes);
}

}  // namespace stiefel
