#include "cli/table_text.hpp"

#include <wchar.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/printable.hpp"
#include "results/analysis/latex_text.hpp"
#include "results/analysis/run_tables.hpp"

namespace stiefel::cli {
namespace {

constexpr std::size_t widest_cell = 200;

/// The bytes of the first character of a text, which must not be empty.
std::size_t character(std::string_view text) { return std::max<std::size_t>(utf8_length(text, 0), 1); }

std::size_t columns_of_character(std::string_view bytes) {
  static constexpr unsigned lead[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  unsigned code = static_cast<unsigned char>(bytes[0]) & lead[bytes.size()];
  for (const char c : bytes.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3F);
  const int columns = wcwidth(wchar_t(code));
  return columns < 0 ? 1 : std::size_t(columns);
}

/// A row as one line: write(i) for each cell, with `between` in between.
std::string line(const std::vector<std::string>& row, const std::string& between,
                 const std::function<std::string(std::size_t)>& write) {
  std::string text;
  for (std::size_t i = 0; i < row.size(); ++i) text += (i ? between : "") + write(i);
  return text;
}

std::string all_lines(const TextTable& table,
                      const std::function<std::string(const std::vector<std::string>&)>& write) {
  std::string text;
  for (const auto& row : table.rows) text += write(row);
  return text;
}

std::string escaped(const std::string& text, const std::function<std::string(char)>& escape) {
  std::string result;
  for (char c : printable(text)) result += escape(c);
  return result;
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t length; !text.empty(); text.remove_prefix(length)) {
    length = character(text);
    columns += columns_of_character(text.substr(0, length));
  }
  return columns;
}

std::string cut(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t length; end < text.size(); end += length) {
    length = character(text.substr(end));
    const std::size_t wide = columns_of_character(text.substr(end, length));
    if (wide > columns) break;
    columns -= wide;
  }
  return std::string(text.substr(0, end));
}

std::string shortened(std::string_view text, std::size_t columns, std::string_view mark) {
  std::size_t left = columns_of(text);
  if (left <= columns) return std::string(text);
  if (columns == 0) return {};
  const std::string beginning = cut(text, (columns - 1) / 2);
  const std::size_t taken = columns_of(beginning) + 1;
  while (taken + left > columns) {
    const std::size_t bytes = character(text);
    left -= columns_of(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return beginning + std::string(mark) + std::string(text);
}

std::string aligned(const TextTable& table) {
  const auto cell = [](const std::string& text) { return shortened(printable(text), widest_cell, "…"); };
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    widths.push_back(columns_of(cell(table.header[i])));
    for (const auto& row : table.rows) widths[i] = std::max(widths[i], columns_of(cell(row[i])));
  }
  const auto write = [&](const std::vector<std::string>& row) {
    std::string text = line(row, "  ", [&](std::size_t i) {
      const std::string shown = cell(row[i]), blanks(widths[i] - columns_of(shown), ' ');
      return table.numeric[i] ? blanks + shown : shown + blanks;
    });
    text.resize(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  return write(table.header) + all_lines(table, write);
}

std::string csv(const TextTable& table) {
  const auto write = [](const std::vector<std::string>& row) {
    return line(row, ",", [&](std::size_t i) { return csv_field(row[i]); }) + "\n";
  };
  return write(table.header) + all_lines(table, write);
}

std::string markdown(const TextTable& table) {
  const auto write = [](const std::vector<std::string>& row) {
    return "| " +
           line(row, " | ",
                [&](std::size_t i) {
                  return escaped(row[i], [](char c) {
                    return c == '<'   ? std::string("&lt;")
                           : c == '&' ? std::string("&amp;")
                                      : (std::strchr("|\\`*[", c) ? "\\" : "") + std::string(1, c);
                  });
                }) +
           " |\n";
  };
  return write(table.header) + "|" +
         line(table.header, "", [&](std::size_t i) { return table.numeric[i] ? "---:|" : "---|"; }) + "\n" +
         all_lines(table, write);
}

std::string latex(const TextTable& table) {
  TextTable escaped = table;
  for (std::string& title : escaped.header) title = latex_text(title);
  for (auto& row : escaped.rows) std::ranges::transform(row, row.begin(), latex_text);
  for (const auto& [row, column] : table.bold)
    escaped.rows[row][column] = "\\textbf{" + escaped.rows[row][column] + "}";
  const auto write = [](const std::vector<std::string>& row) {
    return line(row, " & ", [&](std::size_t i) { return row[i]; }) + " \\\\\n";
  };
  return "\\begin{tabular}{" + line(table.header, "", [&](std::size_t i) { return table.numeric[i] ? "r" : "l"; }) +
         "}\n\\toprule\n" + write(escaped.header) + "\\midrule\n" + all_lines(escaped, write) +
         "\\bottomrule\n\\end{tabular}\n";
}

}  // namespace stiefel::cli
