// Tables of texts for terminals, documents and programs.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stiefel::cli {

struct TextTable {
  std::vector<std::string> header;
  std::vector<bool> numeric;  ///< right-aligned columns
  std::vector<std::vector<std::string>> rows;
  std::set<std::pair<std::size_t, std::size_t>> bold = {};  ///< rows and columns of cells that latex() marks
};

/// How many columns the text takes on a terminal. East Asian letters take two if the locale knows them.
std::size_t columns_of(std::string_view text);
/// The beginning of the text, at most this many columns.
std::string cut(std::string_view text, std::size_t columns);
/// The beginning and the end of the text with `mark` for what is omitted, at most this many columns.
std::string shortened(std::string_view text, std::size_t columns, std::string_view mark);

/// A table for terminals, with cells of at most 200 columns.
std::string aligned(const TextTable& table);
std::string csv(const TextTable& table);
std::string markdown(const TextTable& table);
/// A tabular environment that uses the package booktabs.
std::string latex(const TextTable& table);

}  // namespace stiefel::cli
