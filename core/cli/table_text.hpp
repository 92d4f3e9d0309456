// Tables of texts for terminals, documents and programs.
#pragma once

#include <string>
#include <vector>

namespace stiefel::cli {

struct TextTable {
  std::vector<std::string> header;
  std::vector<bool> numeric;  ///< columns set to the right
  std::vector<std::vector<std::string>> rows;
};

std::string aligned(const TextTable& table);
std::string csv(const TextTable& table);
std::string markdown(const TextTable& table);
/// A tabular environment with the lines of the package booktabs.
std::string latex(const TextTable& table);

}  // namespace stiefel::cli
