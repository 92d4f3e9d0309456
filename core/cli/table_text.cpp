#include "table_text.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include <printable.hpp>
#include <results/run_tables.hpp>

namespace stiefel::cli {
namespace {

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::size_t characters(const std::string& text) {
  return std::size_t(std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); }));
}

/// `row` as one line, its cells written by `write` with `between` in between.
std::string line(const std::vector<std::string>& row, const std::string& between, const std::function<std::string(std::size_t)>& write) {
  std::string text;
  for (std::size_t i = 0; i < row.size(); ++i) text += (i ? between : "") + write(i);
  return text;
}

std::string all_lines(const TextTable& table, const std::function<std::string(const std::vector<std::string>&)>& write) {
  std::string text;
  for (const auto& row : table.rows) text += write(row);
  return text;
}

std::string escaped(const std::string& text, const std::function<std::string(char)>& escape) {
  std::string result;
  for (char c : printable(text)) result += escape(c);
  return result;
}

std::string latex_character(char c) {
  switch (c) {
    case '\\':
      return "\\textbackslash{}";
    case '~':
      return "\\textasciitilde{}";
    case '^':
      return "\\textasciicircum{}";
    // In LaTeX's first font encoding these are other characters.
    case '<':
      return "\\textless{}";
    case '>':
      return "\\textgreater{}";
    case '|':
      return "\\textbar{}";
    // After the end of a row it would begin an option.
    case '[':
      return "{[}";
    case '#':
    case '$':
    case '%':
    case '&':
    case '_':
    case '{':
    case '}':
      return std::string("\\") + c;
    default:
      return std::string(1, c);
  }
}

/// ± is no letter of LaTeX's own encoding.
std::string latex_cell(const std::string& text) {
  std::string cell = escaped(text, latex_character);
  const std::string sign = "±";
  if (const std::size_t at = cell.find(sign); at != cell.npos) cell.replace(at, sign.size(), "$\\pm$");
  return cell;
}

}  // namespace

std::string aligned(const TextTable& table) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    widths.push_back(characters(table.header[i]));
    for (const auto& row : table.rows) widths[i] = std::max(widths[i], characters(printable(row[i])));
  }
  const auto write = [&](const std::vector<std::string>& row) {
    std::string text = line(row, "  ", [&](std::size_t i) {
      const std::string cell = printable(row[i]), blanks(widths[i] - std::min(widths[i], characters(cell)), ' ');
      return table.numeric[i] ? blanks + cell : cell + blanks;
    });
    text.resize(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  return write(table.header) + all_lines(table, write);
}

std::string csv(const TextTable& table) {
  const auto write = [](const std::vector<std::string>& row) {
    return line(row, ",", [&](std::size_t i) { return csv_field(printable(row[i])); }) + "\n";
  };
  return write(table.header) + all_lines(table, write);
}

std::string markdown(const TextTable& table) {
  const auto write = [](const std::vector<std::string>& row) {
    return "| " +
           line(row, " | ",
                [&](std::size_t i) {
                  return escaped(row[i], [](char c) { return (std::strchr("|\\`*<", c) ? "\\" : "") + std::string(1, c); });
                }) +
           " |\n";
  };
  return write(table.header) + "|" + line(table.header, "", [&](std::size_t i) { return table.numeric[i] ? "---:|" : "---|"; }) + "\n" +
         all_lines(table, write);
}

std::string latex(const TextTable& table) {
  const auto write = [](const std::vector<std::string>& row) {
    return line(row, " & ", [&](std::size_t i) { return latex_cell(row[i]); }) + " \\\\\n";
  };
  return "\\begin{tabular}{" + line(table.header, "", [&](std::size_t i) { return table.numeric[i] ? "r" : "l"; }) + "}\n\\toprule\n" +
         write(table.header) + "\\midrule\n" + all_lines(table, write) + "\\bottomrule\n\\end{tabular}\n";
}

}  // namespace stiefel::cli
