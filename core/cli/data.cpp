// `stiefel data list|fetch|verify NAME`: where the data sets are searched for, which are present, and how to obtain the
// others.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include <stiefel/error.hpp>
#include "base/atomic_file.hpp"
#include "base/json_text.hpp"
#include "base/say.hpp"
#include "base/suggestion.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/data_sets.hpp"
#include "cli/download.hpp"

namespace stiefel::cli {
namespace {
namespace fs = std::filesystem;

class DataCommand {
 public:
  explicit DataCommand(const Arguments& arguments)
      : arguments_(arguments), directory_(data_directory(arguments)), sets_(load_data_sets(arguments.value("--sets"))) {
    if (directory_.empty()) throw Error("the data directory is not set; use --data DIR or set STIEFEL_DATA");
    for (std::size_t i = 1; i < arguments.positional.size(); ++i) chosen_.push_back(find_set(arguments.positional[i]));
  }

  int list() const;
  int verify() const;
  int fetch() const;

 private:
  const DataSet* find_set(const std::string& name) const;
  fs::path folder_of(const DataSet& set) const { return directory_ / set.folders.front(); }
  std::vector<std::string> places(const DataSet& set) const;
  std::string state(const DataSet& set) const;
  void describe(const DataSet& set) const;
  nlohmann::json row(const DataSet& set) const;
  struct Verdict {
    std::string name, path = {};  // no path: the file is missing
    std::string fault = {}, remark = "ok";
  };
  std::vector<Verdict> verdicts(const DataSet& set, bool complete) const;
  bool verify(const DataSet& set, bool complete) const;
  bool verify_as_json(const std::vector<const DataSet*>& sets) const;
  std::vector<const SetFile*> missing(const DataSet& set) const;
  std::string by_hand(const DataSet& set, const std::vector<const SetFile*>& files) const;
  std::string address(const SetFile& file) const;
  void agree(const DataSet& set) const;
  void fetch(const DataSet& set, const SetFile& file) const;

  const Arguments& arguments_;
  fs::path directory_;
  std::vector<DataSet> sets_;
  std::vector<const DataSet*> chosen_;
};

const DataSet* DataCommand::find_set(const std::string& name) const {
  std::vector<std::string> names;
  for (const DataSet& set : sets_) {
    if (set.name == name) return &set;
    names.push_back(set.name);
  }
  const std::string close = suggestion(name, names);
  throw Error(fmt::format("there is no data set '{}'{}", name,
                          close.empty() ? fmt::format("; choose from {}", fmt::join(names, ", ")) : close));
}

std::vector<std::string> DataCommand::places(const DataSet& set) const {
  std::vector<std::string> places;
  for (const std::string& folder : set.folders)
    places.push_back((folder.empty() ? directory_ : directory_ / folder).string());
  return places;
}

std::vector<const SetFile*> DataCommand::missing(const DataSet& set) const {
  std::vector<const SetFile*> files;
  for (const SetFile& file : set.files)
    if (!find_file(set, file, directory_)) files.push_back(&file);
  return files;
}

/// "here", "partly here" or "missing"; "folder here" if the files of the set are not listed.
std::string DataCommand::state(const DataSet& set) const {
  if (set.files.empty()) return folder_exists(set, directory_) ? "folder here" : "missing";
  const std::size_t absent = missing(set).size();
  return absent == 0 ? "here" : absent < set.files.size() ? "partly here" : "missing";
}

void DataCommand::describe(const DataSet& set) const {
  fmt::print("{}: {}\n  state      {}\n  task       {}\n  terms      {}\n  source     {}\n  looked for in {}\n",
             set.name, set.title, state(set), set.task, set.terms, set.page, fmt::join(places(set), ", "));
  for (const SetFile& file : set.files) {
    const auto found = find_file(set, file, directory_);
    fmt::print("  {:<28} {:>9} bytes  {}\n", file.name, file.bytes, found ? found->path.string() : "missing");
  }
}

nlohmann::json DataCommand::row(const DataSet& set) const {
  nlohmann::json files = nlohmann::json::array();
  for (const SetFile& file : set.files) {
    const auto found = find_file(set, file, directory_);
    files.push_back({{"name", file.name},
                     {"bytes", file.bytes},
                     {"sha256", file.sha256},
                     {"url", file.url.empty() ? nlohmann::json() : nlohmann::json(file.url)},
                     {"path", found ? nlohmann::json(found->path.string()) : nlohmann::json()}});
  }
  return {{"name", set.name},   {"title", set.title}, {"state", state(set)},      {"task", set.task},
          {"terms", set.terms}, {"source", set.page}, {"looked_in", places(set)}, {"files", files}};
}

int DataCommand::list() const {
  nlohmann::json rows = nlohmann::json::array();
  if (!arguments_.has("--json") && chosen_.empty()) fmt::print("data directory: {}\n", directory_.string());
  for (const DataSet& set : sets_) {
    const bool named = std::find(chosen_.begin(), chosen_.end(), &set) != chosen_.end();
    if (!named && !chosen_.empty()) continue;
    if (arguments_.has("--json"))
      rows.push_back(row(set));
    else if (named)
      describe(set);
    else
      fmt::print("{:<12} {:<12} {}\n", set.name, state(set), set.title);
  }
  if (arguments_.has("--json")) fmt::print("{}\n", json_text(rows, 2));
  return int(Exit::done);
}

/// Verdicts on the files that are present and, if `complete`, on missing ones.
std::vector<DataCommand::Verdict> DataCommand::verdicts(const DataSet& set, bool complete) const {
  std::vector<Verdict> verdicts;
  for (const SetFile& file : set.files) {
    const auto found = find_file(set, file, directory_);
    if (!found && !complete) continue;
    Verdict verdict{file.name, found ? found->path.string() : ""};
    if (!found)
      verdict.fault = "missing";
    else if (found->named)
      verdict.fault = fault_of(file, found->path);
    else
      verdict.remark = fmt::format("another form of {}, with no known checksum", file.name);
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

/// Prints a line for each verdict. Returns whether all files are fine.
bool DataCommand::verify(const DataSet& set, bool complete) const {
  bool sound = true;
  if (set.files.empty() && complete) fmt::print("{}: its files are not listed, so nothing is verified\n", set.name);
  for (const Verdict& file : verdicts(set, complete)) {
    sound = sound && file.fault.empty();
    fmt::print("{}: {}\n", file.path.empty() ? file.name : file.path, file.fault.empty() ? file.remark : file.fault);
  }
  return sound;
}

/// Prints [{name, files: [{name, path, sound, message}]}]. Returns whether all files are fine.
bool DataCommand::verify_as_json(const std::vector<const DataSet*>& sets) const {
  const auto text = [](const std::string& value) { return value.empty() ? nlohmann::json() : nlohmann::json(value); };
  bool sound = true;
  nlohmann::json rows = nlohmann::json::array();
  for (const DataSet* set : sets) {
    nlohmann::json files = nlohmann::json::array();
    for (const Verdict& file : verdicts(*set, !chosen_.empty())) {
      sound = sound && file.fault.empty();
      files.push_back({{"name", file.name},
                       {"path", text(file.path)},
                       {"sound", file.fault.empty()},
                       {"message", file.fault.empty() ? file.remark : file.fault}});
    }
    rows.push_back({{"name", set->name}, {"files", std::move(files)}});
  }
  fmt::print("{}\n", json_text(rows, 2));
  return sound;
}

int DataCommand::verify() const {
  std::vector<const DataSet*> sets = chosen_;
  if (chosen_.empty())
    for (const DataSet& set : sets_) sets.push_back(&set);
  const auto absent = [&](const DataSet* set) { return missing(*set).size() == set->files.size(); };
  bool sound = true;
  if (arguments_.has("--json"))
    sound = verify_as_json(sets);
  else if (chosen_.empty() && std::ranges::all_of(sets, absent))
    fmt::print("no files with known checksums are in {}\n", directory_.string());
  else
    for (const DataSet* set : sets) sound = verify(*set, !chosen_.empty()) && sound;
  if (!sound)
    throw Error("files are missing or wrong (see above); run `stiefel data fetch NAME` for how to obtain them",
                Exit::data);
  return int(Exit::done);
}

std::string DataCommand::address(const SetFile& file) const {
  if (!arguments_.has("--from")) return file.url;
  const std::string from = arguments_.value("--from");
  return from + (from.ends_with('/') ? "" : "/") + fs::path(file.name).filename().string();
}

std::string DataCommand::by_hand(const DataSet& set, const std::vector<const SetFile*>& files) const {
  std::string text = fmt::format("To install {} by hand, get it from {}. ", set.name, set.page);
  if (files.empty()) return text + fmt::format("Put it into {}", folder_of(set).string());
  text += fmt::format("Put these files into {}:", folder_of(set).string());
  for (const SetFile* file : files)
    text += fmt::format("\n  {}  {} bytes  sha256 {}{}", file->name, file->bytes, file->sha256,
                        file->url.empty() ? "" : "\n    " + file->url);
  return text + fmt::format("\nThen run: stiefel data verify {} --data {}", set.name, shell_word(directory_.string()));
}

void DataCommand::agree(const DataSet& set) const {
  say("{}: {}\nterms: {}\n", set.name, set.title, set.terms);
  if (!set.agreement || arguments_.has("--yes")) return;
  if (!isatty(STDIN_FILENO))
    throw Error(fmt::format(
        "{} can be fetched only if you agree to its terms (see above); add --yes, or answer on a terminal", set.name));
  say("Do you agree to these terms, and do you hold any license that they require? [yes/no] ");
  std::string answer;
  std::getline(std::cin, answer);
  if (answer != "yes") throw Error(fmt::format("{} cannot be fetched without your agreement", set.name));
}

void DataCommand::fetch(const DataSet& set, const SetFile& file) const {
  const fs::path target = folder_of(set) / file.name;
  Download wanted{address(file), fs::path(target) += ".part", file.bytes, arguments_.positive("--stall", 60), {}};
  if (wanted.stall > 1e6) throw Error(fmt::format("--stall must be at most 1000000 seconds, got {:g}", wanted.stall));
  if (isatty(STDERR_FILENO))
    wanted.progress = [&](std::uintmax_t have) {
      say("\r{} {:3}%", file.name, 100 * have / std::max<std::uintmax_t>(file.bytes, 1));
    };
  std::error_code fault;
  fs::create_directories(target.parent_path(), fault);
  if (fault)
    throw Error(fmt::format("cannot create {} ({})", target.parent_path().string(), fault.message()), Exit::data);
  download(wanted);
  if (wanted.progress) say("\r\x1b[K");
  if (const std::string wrong = fault_of(file, wanted.part); !wrong.empty()) {
    fs::remove(wanted.part);
    throw Error(fmt::format("{} {}: it is a different file and was discarded", wanted.url, wrong), Exit::data);
  }
  rename_written(wanted.part, target);
  fmt::print("{}\n", target.string());
}

int DataCommand::fetch() const {
  if (chosen_.empty()) throw Error("name what to fetch: stiefel data fetch NAME; `stiefel data list` shows the names");
  for (const DataSet* set : chosen_) {
    if (!verify(*set, false))
      throw Error(
          fmt::format(
              "a file of {} exists with different content (see above); move it away, because nothing is overwritten",
              set->name),
          Exit::data);
    std::vector<const SetFile*> files = missing(*set);
    if (files.empty() && (!set->files.empty() || folder_exists(*set, directory_))) {
      fmt::print("{}: {}\n", set->name,
                 set->files.empty() ? "its folder is there; the files in it were not checked" : "nothing is missing");
      continue;
    }
    const bool given = !files.empty() && std::none_of(files.begin(), files.end(),
                                                      [&](const SetFile* file) { return address(*file).empty(); });
    if (!given)
      throw Error(fmt::format("cannot fetch {}: {} {}", set->name, set->terms, by_hand(*set, files)), Exit::data);
    agree(*set);
    while (!files.empty()) {
      try {
        fetch(*set, *files.front());
      } catch (const Error& error) {
        if (error.code() != Exit::data) throw;
        throw Error(fmt::format("{}. {}", error.what(), by_hand(*set, files)), Exit::data);
      }
      files.erase(files.begin());
    }
  }
  return int(Exit::done);
}

}  // namespace

int data_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("data", words);
  const std::string what = arguments.positional.empty() ? "" : arguments.positional.front();
  if (what != "list" && what != "fetch" && what != "verify")
    throw Error("choose an action: stiefel data list [NAME...], fetch NAME... or verify [NAME...]");
  const DataCommand command(arguments);
  return what == "list" ? command.list() : what == "fetch" ? command.fetch() : command.verify();
}

}  // namespace stiefel::cli
