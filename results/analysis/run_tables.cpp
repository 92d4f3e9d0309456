// Makes the tables of a run, and writes them as CSV.
#include "results/analysis/run_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <cctype>
#include <cstring>

#include "base/atomic_file.hpp"
#include "base/number_from.hpp"
#include "base/printable.hpp"

namespace stiefel {
namespace {

constexpr std::size_t most_columns = 1 << 16;
constexpr std::size_t text_bytes_at_once = 1 << 20;

std::string group_of(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The texts in the group that label an axis of this length; null if there are none.
const std::vector<std::string>* labels_of(const RunData& run, const std::string& group, std::uint64_t length) {
  for (const RunDataset& dataset : run.datasets)
    if (dataset.is_text && group_of(dataset.path) == group && dataset.texts.size() == length) return &dataset.texts;
  return nullptr;
}

void add_columns(const RunData& run, const RunDataset& dataset, RunTable& table) {
  const std::size_t width = table.rows == 0 ? 1 : dataset.values.size() / table.rows;
  const std::size_t parts = dataset.complex ? 2 : 1, entries = width / parts;
  if (table.columns.size() + width > most_columns) {
    table.left_out.push_back(dataset.path);
    return;
  }
  const auto* labels = dataset.shape.size() == 2 ? labels_of(run, table.group, entries) : nullptr;
  for (std::size_t j = 0; j < width; ++j) {
    RunColumn column{name_of(dataset.path), dataset.values.data() + j, width};
    if (dataset.shape.size() > parts) column.name += "_" + (labels ? (*labels)[j] : std::to_string(j / parts));
    column.numbered = entries > 1 && !labels;
    if (dataset.complex) column.name += j % 2 ? "_im" : "_re";
    table.columns.push_back(std::move(column));
  }
}

std::string file_name(const std::string& group) {
  std::string name = group.substr(1);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-') c = '_';
  return name + ".csv";
}

}  // namespace

std::string csv_quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  return '"' + boost::replace_all_copy(text, "\"", "\"\"") + '"';
}

std::string csv_field(const std::string& text) {
  std::string field = printable(text);
  const bool formula = field.size() > 1 && std::strchr("=+-@", field[0]);
  if (formula && !number_from<double>(field.substr(field[0] == '+'))) field.insert(0, 1, '\'');
  return csv_quoted(field);
}

RunRequest export_request() {
  return {.paths = {"/steps", "/epochs", "/final", "/outcome", "/spectrum", "/gradient", "/orthogonality", "/scalars",
                    "/blocks", "/timing"},
          .most_values = std::uint64_t(1) << 27,
          .memory = std::uint64_t(4) << 30};
}

std::vector<RunTable> tables_of(const RunData& run) {
  std::vector<RunTable> tables;
  for (const RunDataset& dataset : run.datasets) {
    if (dataset.is_text || dataset.shape.empty()) continue;
    const std::string group = group_of(dataset.path);
    auto table = std::find_if(tables.begin(), tables.end(), [&](const RunTable& t) { return t.group == group; });
    if (table == tables.end()) {  // the row axis is made first
      if (dataset.shape.size() != 1) continue;
      table = tables.insert(tables.end(), {group, dataset.shape[0], {}, {}});
    } else if (dataset.scale || dataset.shape[0] != table->rows) {
      continue;
    }
    add_columns(run, dataset, *table);
  }
  return tables;
}

std::vector<std::filesystem::path> export_csv(const std::vector<RunTable>& tables,
                                              const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const RunTable& table : tables) {
    AtomicFile file(files.emplace_back(folder / file_name(table.group)));
    std::string text;
    for (const RunColumn& column : table.columns)
      text += (&column == &table.columns[0] ? "" : ",") + csv_field(column.name);
    text += '\n';
    for (std::size_t i = 0; i < table.rows; ++i) {
      for (const RunColumn& column : table.columns)
        fmt::format_to(std::back_inserter(text), "{}{}", &column == &table.columns[0] ? "" : ",", column[i]);
      text += '\n';
      if (text.size() < text_bytes_at_once) continue;
      file.write(text);
      text.clear();
    }
    file.write(text);
    file.replace();
    file.sync_directory();
  }
  return files;
}

}  // namespace stiefel
