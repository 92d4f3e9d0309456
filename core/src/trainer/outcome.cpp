#include "trainer/outcome.hpp"

#include <algorithm>
#include <cctype>

#include "results/atomic_file.hpp"

namespace stiefel {

void RunOutcome::scalar(const std::string& name, double value, double weight) {
  const bool fit = !name.empty() && std::islower(static_cast<unsigned char>(name[0])) &&
                   name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
  if (!fit) throw Error("\"" + name + "\" cannot name a quantity: use small letters, digits and _, a letter first", Exit::plugin);
  Ratio& ratio = quantities_[name];
  ratio.sum += weight * value;
  ratio.weight += weight;
}

void RunOutcome::file(const std::string& name, std::string_view bytes) {
  const bool plain = !name.empty() && name[0] != '.' && name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
  if (!plain) throw Error("\"" + name + "\" cannot name a file of the outcome: it must be a plain file name", Exit::plugin);
  if (folder_.empty()) return;
  std::filesystem::create_directories(folder_);
  replace_file(folder_ / name, bytes);
}

}  // namespace stiefel
