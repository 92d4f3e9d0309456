// Finds runs and reads them as plain data.
#include "results/analysis/run_data.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ranges>

#include "base/json_text.hpp"
#include "config/resolved.hpp"
#include "config/tree.hpp"
#include "record/hdf5.hpp"
#include "record/header_file.hpp"
#include "record/reader.hpp"
#include "record/run_folder.hpp"
#include "record/run_lock.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

constexpr int deepest_group = 8;
constexpr std::size_t most_datasets = 4096;

bool is_run(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(RunFolder{folder}.config(), ignored) ||
         fs::is_regular_file(RunFolder{folder}.results(), ignored);
}

/// Whether the first bytes of a file, as far as they can be read, are the signature of HDF5.
bool may_be_result(const fs::path& file) {
  const std::string signature = "\x89HDF\r\n\x1a\n";
  std::string start = signature;
  std::ifstream(file, std::ios::binary).read(start.data(), std::streamsize(start.size()));
  return start == signature;
}

/// The folders in a folder, sorted by name. `fault` says why some may be missing, except those that vanish meanwhile.
std::vector<fs::path> folders_in(const fs::path& folder, std::error_code& fault) {
  std::vector<fs::path> inside;
  for (fs::directory_iterator entry(folder, fault), end; !fault && entry != end; entry.increment(fault)) {
    std::error_code hidden;
    const fs::file_type type = fs::symlink_status(entry->path(), hidden).type();
    if (type == fs::file_type::directory) inside.push_back(entry->path());
    if (type != fs::file_type::none) continue;
    fault = hidden;
    break;
  }
  if (fault == std::errc::no_such_file_or_directory) fault.clear();
  std::sort(inside.begin(), inside.end());
  return inside;
}

void find_below(const fs::path& folder, std::vector<fs::path>& found) {
  if (is_run(folder)) {
    found.push_back(folder);
    return;
  }
  std::error_code fault;
  for (const fs::path& path : folders_in(folder, fault)) find_below(path, found);
  if (fault) found.push_back(folder);
}

void show_changes(const std::vector<std::string>& segments, std::map<std::string, std::string>& configuration) {
  for (const std::string& text : segments) {
    if (text.empty()) continue;
    const nlohmann::json changed = parse_json_or_discard(text);
    if (!changed.is_object()) throw Error("/provenance/segments/changes is damaged", Exit::damaged);
    for (const auto& [name, value] : changed.items()) {
      const bool key = configuration.contains(name) || (name.find('.') != name.npos && name.find(':') == name.npos);
      if (!key) continue;  // a plugin, a data file or the build
      const auto before = configuration.try_emplace(name, "-").first;
      before->second += std::string(changed_to) + (value.is_string() ? value.get<std::string>() : "-");
    }
  }
}

/// Reads the requested datasets, and limits their total size.
class DatasetReader {
 public:
  DatasetReader(const RunRequest& request, std::vector<RunDataset>& datasets)
      : left_(request.most_values), except_(request.except), datasets_(datasets) {}

  /// Reads the object `name` in the group `above`; its path in the file is `path`.
  void read(const hdf5::Group& above, const std::string& name, const std::string& path, int depth = 0) {
    if (!above.is_group(name)) {
      if (std::ranges::find(except_, name) == except_.end()) read_dataset(above.dataset(name), path);
      return;
    }
    if (depth == deepest_group) throw Error(fmt::format("groups are nested too deeply at {}", path), Exit::damaged);
    const hdf5::Group group = above.group(name);
    for (const std::string& inner : group.children()) read(group, inner, path + "/" + inner, depth + 1);
  }

 private:
  void read_dataset(const hdf5::Dataset& file, const std::string& path) {
    if (datasets_.size() == most_datasets)
      throw Error(fmt::format("there are more than {} datasets", most_datasets), Exit::damaged);
    RunDataset& dataset = datasets_.emplace_back();
    dataset.path = path;
    dataset.shape = file.shape();
    const hdf5::Type type = file.type();
    dataset.is_text = type == hdf5::Type::text;
    dataset.complex = type == hdf5::Type::complex;
    dataset.scale = file.has_attribute("CLASS");
    take(hdf5::element_count(dataset.shape), path);
    if (dataset.is_text) {
      dataset.texts = file.read_text();
      for (const std::string& text : dataset.texts) take(text.size(), path);
    } else {
      dataset.values = file.read();
    }
    if (dataset.complex) dataset.shape.push_back(2);
    const auto read_said = [&](const char* name, std::string& text) {
      if (file.has_attribute(name)) text = file.text_attribute(name);
      take(text.size(), path);
    };
    read_said("units", dataset.units);
    read_said("description", dataset.description);
  }

  void take(std::uint64_t count, const std::string& path) {
    if (count > left_)
      throw Error(fmt::format("{} and what was read before it are larger than a run should be", path), Exit::damaged);
    left_ -= count;
  }

  std::uint64_t left_;
  const std::vector<std::string>& except_;
  std::vector<RunDataset>& datasets_;
};

std::int64_t whole_number(double number) { return std::abs(number) < 0x1p53 ? std::int64_t(number) : -1; }

void read_status(const ResultReader& file, RunData& run) {
  run.committed_step = whole_number(file.number_attribute("/", "committed_step"));
  run.status.state = file.text_attribute("/", "state");
  run.status.message = file.text_attribute("/status", "message");
  run.status.exit_code = int(whole_number(file.number_attribute("/status", "exit_code")));
  run.status.best_metric = file.number_attribute("/status", "best_metric");
  run.status.best_step = whole_number(file.number_attribute("/status", "best_step"));
  if (file.has_attribute("/status", "cpu_seconds"))
    run.status.cpu_seconds = file.number_attribute("/status", "cpu_seconds");
}

std::string content(const fs::path& path) {
  std::string fault;
  const auto text = read_configuration(path, fault);
  if (!text) throw Error(fault, Exit::damaged);
  return *text;
}

/// The keys of config.yaml; none if it is missing or not a configuration.
std::map<std::string, std::string> written_configuration(const fs::path& run) {
  std::string fault;
  const std::optional<std::string> text = read_configuration(RunFolder{run}.config(), fault);
  try {
    return text ? flat_configuration(*text, "config.yaml") : std::map<std::string, std::string>();
  } catch (const Error&) {
    return {};
  }
}

/// Throws Error (Exit::damaged) if config.yaml has a value of a key that the run of the results next to it never had.
/// The configuration of the run has all values of a key, joined by changed_to. Names of data files are not compared,
/// because they may have been renamed.
void demand_own_results(const RunData& run, const std::map<std::string, std::string>& written) {
  for (const auto& [key, value] : written) {
    const auto found = run.configuration.find(key);
    if (found == run.configuration.end() || !affects_results(key)) continue;
    if (std::ranges::find(run.header.datasets, found->second, &DatasetRow::name) != run.header.datasets.end()) continue;
    const auto between = [](const std::string& text) {
      return std::string(changed_to) + text + std::string(changed_to);
    };
    if (between(found->second).find(between(value)) == std::string::npos)
      throw Error(fmt::format("results.h5 and config.yaml are of different runs, or one of them was edited: {} is {} "
                              "and {}",
                              key, found->second, value),
                  Exit::damaged);
  }
}

/// Adds a column such as /epochs/valid_loss_at_256 for each length of a dataset such as /epochs/valid_loss_by_length.
void add_columns_of_lengths(RunData& run) {
  constexpr std::string_view ending = "_by_length";
  for (std::size_t i = 0, all = run.datasets.size(); i < all; ++i) {
    const RunDataset by_length = run.datasets[i];
    if (!by_length.path.ends_with(ending) || by_length.shape.size() != 2) continue;
    const std::vector<double> lengths = run.column(by_length.path.substr(0, by_length.path.rfind('/')) + "/length");
    for (std::size_t l = 0; l < lengths.size() && lengths.size() == by_length.shape[1]; ++l) {
      RunDataset& column = run.datasets.emplace_back(by_length);
      column.path.replace(column.path.size() - ending.size(), ending.size(), fmt::format("_at_{}", lengths[l]));
      column.shape = {by_length.shape[0]};
      column.values.clear();
      for (std::size_t row = 0; row < by_length.shape[0]; ++row)
        column.values.push_back(by_length.values[row * lengths.size() + l]);
    }
  }
}

}  // namespace

const RunDataset* RunData::find(const std::string& path) const {
  const auto found =
      std::find_if(datasets.begin(), datasets.end(), [&](const RunDataset& dataset) { return dataset.path == path; });
  return found == datasets.end() ? nullptr : &*found;
}

const std::vector<double>& RunData::column(const std::string& path) const {
  static const std::vector<double> none;
  const RunDataset* dataset = find(path);
  return dataset ? dataset->values : none;
}

std::vector<fs::path> find_runs(const std::vector<std::string>& paths) {
  std::vector<fs::path> found;
  std::set<fs::path> seen;
  for (const std::string& name : paths) {
    const fs::path path = name;
    if (fs::is_directory(path))
      find_below(path, found);
    else if (!fs::exists(path))
      throw Error(fmt::format("{} does not exist; name folders of runs, such as runs or runs/NAME/ID", name));
    else if (fs::is_regular_file(path) && !may_be_result(path))
      throw Error(fmt::format("{} is not a result file; name folders of runs, such as runs or runs/NAME/ID", name));
    else
      found.push_back(path);
  }
  std::erase_if(found, [&](const fs::path& path) { return !seen.insert(fs::weakly_canonical(path)).second; });
  return found;
}

fs::path find_run(const std::vector<std::string>& paths) {
  constexpr std::size_t most_listed = 10;
  std::vector<fs::path> found = find_runs(paths);
  if (found.empty())
    throw Error(fmt::format("{} has no run; name the folder of one, such as runs/NAME/ID", fmt::join(paths, ", ")));
  if (found.size() == 1) return found[0];
  const std::size_t all = found.size();
  found.resize(std::min(all, most_listed));
  throw Error(
      fmt::format("{} has {} runs; name the folder of one: {}{}", fmt::join(paths, ", "), all,
                  fmt::join(found | std::views::transform([](const fs::path& path) { return path.string(); }), ", "),
                  all > most_listed ? fmt::format(" and {} more", all - most_listed) : ""));
}

RunData read_run(const fs::path& path, const RunRequest& request) {
  RunData run;
  run.path = path;
  const bool in_folder = fs::is_directory(path);
  const fs::path results = in_folder ? RunFolder{path}.results() : path;
  if (std::error_code fault; in_folder && !is_run(path)) {
    folders_in(path, fault);
    throw Error(fault ? "cannot search the folder for runs: " + fault.message() : "the folder has no run",
                Exit::damaged);
  }
  if (in_folder && fs::symlink_status(results).type() == fs::file_type::not_found) {
    run.header.yaml = content(RunFolder{path}.config());
    run.configuration = flat_configuration(run.header.yaml, "config.yaml");
    run.header.title = run.configuration["name"];
    run.header.run_id = path.filename().string();
  } else {
    std::error_code ignored;
    if (!fs::is_regular_file(results, ignored)) throw Error(results.string() + " is not a file", Exit::damaged);
    const ResultReader file(results);
    if (!request.network) {
      const auto written = in_folder ? written_configuration(path) : std::map<std::string, std::string>();
      run.header = read_header(file, request.provenance);
      run.configuration = flat_configuration(run.header.yaml, "/config/yaml");
      if (const std::string changes = "/provenance/segments/changes"; file.exists(changes))
        show_changes(file.root().dataset(changes).read_text(), run.configuration);
      demand_own_results(run, written);
      read_status(file, run);
    }
    DatasetReader reader(request, run.datasets);
    for (const std::string& wanted : request.paths)
      if (file.exists(wanted)) reader.read(file.root(), wanted, wanted);
    add_columns_of_lengths(run);
  }
  const bool killed = in_folder && run.status.state == "running" && shown_owner(RunFolder{path}.lock()).empty();
  if (killed || run.status.state == "preempted") run.status.state = "stopped";
  return run;
}

}  // namespace stiefel
