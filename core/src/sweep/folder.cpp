// The plan of a sweep on the disk. runs.tsv is written last, so that it names only what is there.
#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "base/atomic_file.hpp"
#include "base/file_content.hpp"
#include "base/file_error.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "base/suggestion.hpp"
#include "config/tree.hpp"
#include "record/run_folder.hpp"
#include "record/run_lock.hpp"
#include "sweep/sweep.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

std::string table(const Sweep& sweep) {
  std::string text = fmt::format("id\t{}\n", fmt::join(sweep.keys, "\t"));
  for (const SweepRun& run : sweep.runs) text += fmt::format("{}\t{}\n", run.id, fmt::join(run.values, "\t"));
  return text;
}

std::string description(const Sweep& sweep) {
  nlohmann::ordered_json json = {{"format", 1}, {"name", sweep.name}};
  json["working_directory"] = sweep.working_directory.string();
  json["data_directory"] = sweep.data_directory.string();
  if (const auto& halving = sweep.halving)
    json["halving"] = {{"metric", halving->metric}, {"factor", halving->factor}, {"rungs", halving->rungs}};
  return json_text(json, 2) + "\n";
}

[[noreturn]] void damaged(const fs::path& path, const std::string& reason) {
  throw Error(
      fmt::format("{} is damaged: {}; `stiefel sweep run` with the sweep's file rewrites it", path.string(), reason),
      Exit::damaged);
}

void read_description(const fs::path& path, const std::string& text, Sweep& sweep) {
  try {
    const nlohmann::json json = parse_json(text);
    if (json.at("format") != 1)
      throw Error(fmt::format("{} has format {}, but this stiefel reads only format 1", path.string(),
                              json_text(json.at("format"))),
                  Exit::damaged);
    sweep.name = json.at("name");
    sweep.working_directory = json.value("working_directory", "");
    sweep.data_directory = json.value("data_directory", "");
    if (!json.contains("halving")) return;
    const nlohmann::json& halving = json.at("halving");
    sweep.halving = Halving{halving.at("metric"), halving.at("factor"), halving.at("rungs")};
    const std::vector<Index>& rungs = sweep.halving->rungs;
    if (sweep.halving->factor < 2 || rungs.empty() || rungs.front() < 1 ||
        std::ranges::adjacent_find(rungs, std::greater_equal()) != rungs.end())
      damaged(path, "its halving has a factor below 2, no rungs, or rungs that do not increase");
  } catch (const nlohmann::json::exception& error) {
    damaged(path, error.what());
  }
}

void read_table(const fs::path& path, const std::string& text, Sweep& sweep) {
  std::vector<std::string> lines, cells;
  boost::split(lines, text, boost::is_any_of("\n"));
  if (!lines.back().empty() || lines.size() < 3) damaged(path, "it does not end with a complete line");
  lines.pop_back();
  for (const std::string& line : lines) {
    boost::split(cells, line, boost::is_any_of("\t"));
    const std::string id = cells.front();
    cells.erase(cells.begin());
    if (&line == &lines.front()) {
      sweep.keys = cells;
      continue;
    }
    if (cells.size() != sweep.keys.size() || id.empty() || id.find_first_not_of("0123456789abcdef") != id.npos)
      damaged(path, fmt::format("the line of '{}' does not describe a run", id));
    sweep.runs.push_back({id, cells, {}});
  }
}

void make_folders(const fs::path& folder) {
  for (const char* name : {"configs", "claims", "failed", "runs"}) make_folder(folder / name);
}

/// The halving in a text of sweep.json; null if there is none, or if the text is damaged.
nlohmann::json halving_in(const std::string& text) {
  const nlohmann::json json = parse_json_or_discard(text);
  return json.is_object() && json.contains("halving") ? json.at("halving") : nlohmann::json();
}

void refuse_other(const fs::path& folder, const Sweep& sweep) {
  const nlohmann::json before = parse_json_or_discard(content_if_there(folder / "sweep.json").value_or(""));
  const std::string name = before.is_object() ? before.value("name", sweep.name) : sweep.name;
  if (name != sweep.name)
    throw Error(
        fmt::format("{} holds the sweep {}, not {}; use another folder (--output)", folder.string(), name, sweep.name));
}

void write_plan(const fs::path& folder, const Sweep& sweep, const std::string& command) {
  for (const SweepRun& run : sweep.runs)
    if (!run.yaml.empty()) {
      const fs::path config = folder / "configs" / (run.id + ".yaml");
      const std::string text = fmt::format("# {}: {}\n{}", sweep.name, assignments(sweep, run), run.yaml);
      if (content_if_there(config) != text) fs::remove(folder / "failed" / (run.id + ".json"));
      replace_when_new(config, text);
    }
  replace_when_new(folder / "sweep.yaml", fmt::format("# {}\n{}", printable(command), sweep.source));
  const std::string json = description(sweep), runs = table(sweep);
  const std::string before = content_if_there(folder / "sweep.json").value_or("");
  if (content_if_there(folder / "runs.tsv") != runs || halving_in(before) != halving_in(json))
    fs::remove_all(folder / "rungs");  // first, so that no decision about another plan can stay
  replace_when_new(folder / "sweep.json", json);
  replace_when_new(folder / "runs.tsv", runs);
}

}  // namespace

std::string assignments(const Sweep& sweep, const SweepRun& run, std::string_view without) {
  std::string text;
  for (std::size_t k = 0; k < sweep.keys.size(); ++k)
    if (sweep.keys[k] != without && !run.values[k].empty())
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", sweep.keys[k], run.values[k]);
  return text;
}

void write_sweep(const fs::path& folder, const Sweep& sweep, const std::string& command) {
  make_folders(folder);
  const DirectoryGuard one_planner(folder);
  refuse_other(folder, sweep);
  write_plan(folder, sweep, command);
}

void add_to_sweep(const fs::path& folder, const Sweep& sweep, const std::string& command) {
  make_folders(folder);
  const DirectoryGuard one_planner(folder);
  Sweep whole = sweep;
  if (fs::exists(folder / "runs.tsv")) {
    refuse_other(folder, sweep);
    const Sweep before = SweepFolder(folder).sweep();
    whole.working_directory = before.working_directory;
    std::error_code none;
    if (const fs::path& data = before.data_directory; sweep.data_directory.empty())
      whole.data_directory = data;
    else if (fs::is_directory(data, none) && !fs::equivalent(data, sweep.data_directory, none))
      throw Error(fmt::format("the runs in {} use the data in {}; leave --data out or use another folder (--output)",
                              folder.string(), data.string()));
    whole.keys = before.keys;
    whole.runs = before.runs;
    for (const std::string& key : sweep.keys)
      if (std::ranges::find(whole.keys, key) == whole.keys.end()) whole.keys.push_back(key);
    for (SweepRun& run : whole.runs) run.values.resize(whole.keys.size());
    for (const SweepRun& run : sweep.runs) {
      if (std::ranges::find(whole.runs, run.id, &SweepRun::id) != whole.runs.end()) continue;
      SweepRun& added =
          whole.runs.emplace_back(SweepRun{run.id, std::vector<std::string>(whole.keys.size()), run.yaml});
      for (std::size_t k = 0; k < sweep.keys.size(); ++k)
        added.values[std::size_t(std::ranges::find(whole.keys, sweep.keys[k]) - whole.keys.begin())] = run.values[k];
    }
  }
  write_plan(folder, whole, command);
}

SweepFolder::SweepFolder(fs::path folder) : folder_(std::move(folder)) {
  if (fs::is_regular_file(folder_))
    throw Error(fmt::format(
        "{} is a file; name the folder of a sweep, such as sweeps/NAME, which `stiefel sweep run FILE` creates",
        folder_.string()));
  const std::optional<std::string> runs = content_if_there(folder_ / "runs.tsv"),
                                   json = content_if_there(folder_ / "sweep.json");
  if (!runs || !json)
    throw Error(fmt::format("{} is not a sweep folder: it has no {}; `stiefel sweep run FILE` creates one, sweeps/NAME",
                            folder_.string(), json ? "runs.tsv" : "sweep.json"));
  read_description(folder_ / "sweep.json", *json, sweep_);
  read_table(folder_ / "runs.tsv", *runs, sweep_);
}

const SweepRun& SweepFolder::find(const std::string& id) const {
  const auto found = std::ranges::find(sweep_.runs, id, &SweepRun::id);
  if (found != sweep_.runs.end()) return *found;
  std::vector<std::string> ids;
  for (const SweepRun& run : sweep_.runs) ids.push_back(run.id);
  throw Error(fmt::format("there is no run '{}' in {}{}", id, folder_.string(), suggestion(id, ids)));
}

std::vector<fs::path> SweepFolder::other_runs() const {
  std::set<fs::path> planned;
  for (const SweepRun& one : sweep_.runs) planned.insert(run(one));
  std::vector<fs::path> others;
  for (const auto& name : fs::directory_iterator(runs()))
    if (name.is_directory())
      for (const auto& folder : fs::directory_iterator(name))
        if (!planned.contains(folder.path()) && fs::exists(RunFolder{folder.path()}.config()))
          others.push_back(folder.path());
  return others;
}

std::string SweepFolder::name(const SweepRun& run) const {
  const auto key = std::ranges::find(sweep_.keys, "name");
  if (key == sweep_.keys.end()) return sweep_.name;
  const std::string& value = run.values[std::size_t(key - sweep_.keys.begin())];  // quoted where YAML needs it
  if (value.empty()) return sweep_.name;
  Problems problems;
  const std::optional<Node> name = parse_yaml(value, "", problems);
  return name && name->kind == Node::Kind::scalar ? name->text : value;
}

fs::path SweepFolder::rung(Index step) const { return folder_ / "rungs" / fmt::format("{}.tsv", step); }

std::string SweepFolder::values(const SweepRun& run) const { return printable(assignments(sweep_, run)); }

}  // namespace stiefel
