// `stiefel diff A B`: how two runs differ, from the configuration to the bits.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>
#include <stiefel/error.hpp>
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "results/analysis/comparison.hpp"
#include "results/analysis/isolated_reader.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/table_text.hpp"

namespace stiefel::cli {
namespace {

using Texts = std::map<std::string, std::string>;

RunData read(const std::filesystem::path& path, const std::string& other) {
  RunRequest request = comparison_request();
  request.provenance = true;
  request.other = other;
  request.memory = std::uint64_t(4) << 30;
  RunData run = read_runs({path}, request).at(0);
  if (!run.unreadable.empty())
    throw Error(fmt::format("cannot read {}: {}", path.string(), printable(run.unreadable)), Exit::damaged);
  return run;
}

Texts provenance_of(const RunData& run) {
  Texts texts(run.header.provenance.begin(), run.header.provenance.end());
  for (const PluginRow& row : run.header.plugins) {
    const std::string name = fmt::format("{} {}", row.kind, row.name);
    texts[name + " version"] = row.version;
    texts[name + " build_id"] = row.build_id;
    texts[name + " sha256"] = row.sha256;
  }
  for (const DatasetRow& row : run.header.datasets) texts["data " + row.name] = row.sha256;
  return texts;
}

/// The results of a run: its state, and metrics of the best model, with six digits unless `exact`.
Texts outcome_of(const RunData& run, bool exact) {
  const auto number = [&](double value) { return exact ? fmt::format("{}", value) : fmt::format("{:.6g}", value); };
  Texts texts{{"state", run.status.state}, {"committed_step", std::to_string(run.committed_step)}};
  if (run.header.parameters > 0) texts["parameters"] = std::to_string(run.header.parameters);
  if (run.status.best_step >= 0) texts["best_step"] = std::to_string(run.status.best_step);
  for (const RunDataset& dataset : run.datasets) {
    const std::string name = dataset.path.substr(dataset.path.rfind('/') + 1);
    if (name == "epoch" || name == "step" || name == "is_best" || name == "seconds") continue;
    const ComparedRun found = compared_run(run, {name, {}});
    if (!std::isnan(found.value)) texts[found.metric] = number(found.value);
  }
  return texts;
}

void add_rows(const std::string& part, const Texts& a, const Texts& b, bool equal_too, TextTable& table) {
  Texts both = a;
  both.insert(b.begin(), b.end());
  for (const auto& [key, ignored] : both) {
    const auto text = [&, &name = key](const Texts& texts) {
      return texts.contains(name) ? texts.at(name) : std::string("-");
    };
    if (equal_too || text(a) != text(b)) table.rows.push_back({part, key, text(a), text(b)});
  }
}

/// Shortens texts that are too long for a table to the part where they start to differ.
void shorten(std::string& a, std::string& b) {
  constexpr std::size_t longest = 40;
  if (a.size() <= longest && b.size() <= longest) return;
  const auto begins_character = [](const std::string& text, std::size_t i) {
    return i >= text.size() || (text[i] & 0xC0) != 0x80;
  };
  std::size_t same = std::size_t(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  while (same > 0 && !(begins_character(a, same) && begins_character(b, same))) --same;
  for (std::string* text : {&a, &b}) {
    std::size_t end = std::min(same + longest, text->size());
    while (!begins_character(*text, end)) ++end;
    *text = (same > 0 ? "…" : "") + text->substr(same, end - same) + (end < text->size() ? "…" : "");
  }
}

/// Reads the first run and compares it with the second bit by bit. If that fails, reads the second alone (compared with
/// itself) to report a fault in it.
RunData compared(const std::filesystem::path& path, const std::filesystem::path& other) {
  try {
    return read(path, other.string());
  } catch (const Error&) {
    read(other, other.string());
    throw;
  }
}

constexpr std::size_t most_places = 10;

}  // namespace

int diff_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("diff", words);
  if (arguments.positional.size() != 2) throw Error("name the folders of two runs: stiefel diff A B");
  std::vector<std::filesystem::path> paths;
  for (const std::string& name : arguments.positional) {
    paths.push_back(find_run({name}));
    if (!is_directory(paths.back())) throw Error(fmt::format("{} is not a run folder", name));
  }
  const RunData b = read(paths[1], ""), a = compared(paths[0], paths[1]);
  TextTable table{{"", "key", paths[0].string(), paths[1].string()}, {false, false, false, false}, {}};
  add_rows("configuration", a.configuration, b.configuration, false, table);
  add_rows("provenance", provenance_of(a), provenance_of(b), false, table);
  const bool json = arguments.has("--json");
  add_rows("outcome", outcome_of(a, json), outcome_of(b, json), true, table);
  if (json) {
    nlohmann::ordered_json document{{"a", paths[0].string()}, {"b", paths[1].string()}};
    for (const char* part : {"configuration", "provenance", "outcome"}) document[part] = nlohmann::json::object();
    for (const auto& row : table.rows) document[row[0]][row[1]] = {row[2], row[3]};
    document["differing"] = a.differing;
    fmt::print("{}\n", json_text(document, 2));
    return int(Exit::done);
  }
  for (auto& row : table.rows) shorten(row[2], row[3]);
  fmt::print("{}", aligned(table));
  if (a.differing.empty())
    fmt::print("all recorded numbers and networks are identical to the bit\n");
  else
    fmt::print("{} recorded arrays differ: {}{}\n", a.differing.size(),
               printable(fmt::format(
                   "{}", fmt::join(std::span(a.differing).first(std::min(a.differing.size(), most_places)), ", "))),
               a.differing.size() > most_places ? ", …" : "");
  return int(Exit::done);
}

}  // namespace stiefel::cli
