#include "sweep/reproduction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file_content.hpp"
#include "base/json_text.hpp"
#include "base/sha256.hpp"
#include "config/resolved.hpp"
#include "record/run_directory.hpp"
#include "results/analysis/isolated_reader.hpp"
#include "training/changes.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> plan_keys = {"name", "file", "set", "seed", "budget"};
enum PlanKey { plan_name, plan_file, plan_set, plan_seed, plan_budget };

/// Fills in the time of the row's workload, in the paper's unit.
void read_timing(const nlohmann::json& document, const fs::path& file, ReproducedRow& row) try {
  if (document.is_null()) return;
  for (const nlohmann::json& found : document.at("epochs")) {
    if (found.at("model") != row.row->bench) continue;
    const double seconds = double(found.at("seconds").at("median")) * double(found.at("steps"));
    row.mean = row.row->unit.starts_with("min") ? seconds / 60 : seconds;
    row.difference = row.mean - row.row->value;
    row.count = 1;
    row.seeds.front().state = "finished";
    row.seeds.front().value = row.mean;
    row.seeds.front().commit = std::string(found.at("made").at("stiefel").value("git_commit", "")).substr(0, 10);
  }
} catch (const nlohmann::json::exception&) {
  throw Error(fmt::format("{} is not JSON from `tools/bench/run epochs`; name its file with --timings", file.string()),
              Exit::damaged);
}

/// Orders measurements of a seed by how much they tell: whether the run finished or diverged, whether there is one, its
/// share of the budget, whether it finished, and its steps.
std::tuple<bool, bool, double, bool, Index> rank(const Measurement& m) {
  const bool finished = m.state == "finished";
  return {finished || m.state == "diverged", !m.state.empty(), std::min(m.share, 1.), finished, m.step};
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

/// The name of a measurement in a record: its run and what is measured of it, whichever rows show that.
std::string recorded_name(const PublishedRow& row, Index seed) {
  return fmt::format("{}{}{}: {} ({}), seed {}", row.file, row.overrides.empty() ? "" : " ", joined(row.overrides),
                     row.metric, row.measured_as, seed);
}

nlohmann::json read_json(const std::filesystem::path& path, const char* writer) {
  const std::optional<std::string> text = path.empty() ? std::nullopt : content_if_there(path);
  if (!text) return {};
  nlohmann::json document = parse_json_or_discard(*text);
  if (document.is_discarded()) throw Error(fmt::format("{} is not JSON from {}", path.string(), writer), Exit::damaged);
  return document;
}

/// Throws Error if the folder holds a run that was resumed with other values.
void refuse_changed(const fs::path& run) {
  if (!fs::is_directory(run)) return;
  const RunData made = read_runs({run}, {}).at(0);
  if (!made.unreadable.empty()) return;
  if (const std::vector<std::string> names = changed_by_resuming(made.header); !names.empty())
    throw Error(fmt::format("{} was resumed with another {}, so it is not the published run; move it away",
                            run.string(), fmt::join(names, ", ")));
}

}  // namespace

/// The run of a row and a seed.
struct Reproduction::Planned {
  LoadedExperiment loaded;
  double share = 1;
  std::map<std::string, std::string> given;  // settings that the file or the row gives

  /// Whether a run has all given settings, except for the length of the training.
  bool agrees(const std::map<std::string, std::string>& configuration) const {
    return std::ranges::all_of(given, [&](const auto& setting) {
      const auto found = configuration.find(setting.first);
      return setting.first == length_key() || (found != configuration.end() && found->second == setting.second);
    });
  }
  /// Returns the length of a run's training over that of this one; 0 if one counts steps and the other epochs.
  double share_of(const std::map<std::string, std::string>& configuration) const {
    const auto found = configuration.find(length_key());
    const TrainOptions& train = loaded.experiment.train;
    return found == configuration.end()
               ? 0
               : std::atof(found->second.c_str()) / double(std::max(train.steps, train.epochs));
  }
  /// Digest of all given settings except the length of the training.
  std::string digest() const {
    std::string text;
    for (const auto& [key, value] : given)
      if (key != length_key()) text += fmt::format("{}={}\n", key, value);
    return sha256(text).substr(0, 12);
  }
  std::string length_key() const { return loaded.experiment.train.steps > 0 ? "train.steps" : "train.epochs"; }
};

Reproduction::Planned Reproduction::plan(const PublishedRow& row, Index seed, double budget) const {
  std::vector<std::string> overrides = row.overrides;
  overrides.push_back(fmt::format("seed={}", seed));
  Planned planned;
  try {
    planned.loaded = load_experiment(published_.folder / row.file, overrides, registry_);
    const TrainOptions& train = planned.loaded.experiment.train;
    const Index whole = std::max(train.steps, train.epochs),
                part = std::max<Index>(1, std::llround(double(whole) * budget));
    if (part != whole) {
      overrides.push_back(fmt::format("train.{}={}", train.steps > 0 ? "steps" : "epochs", part));
      planned.loaded = load_experiment(published_.folder / row.file, overrides, registry_);
      planned.share = double(part) / double(whole);
    }
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", row.where.text(), error.what()), error.code());
  }
  const std::map<std::string, std::string> settings = flat_configuration(planned.loaded.resolved_yaml, row.file);
  for (const std::string& origin : planned.loaded.origins) {
    const std::size_t sign = origin.find('=');
    const auto setting = settings.find(origin.substr(0, sign));
    if (origin.substr(sign + 1) != "default" && setting != settings.end() && affects_results(setting->first))
      planned.given.insert(*setting);
  }
  return planned;
}

std::vector<Measurement> Reproduction::measurements_of(
    const std::vector<std::pair<const PublishedRow*, Index>>& wanted) const {
  std::vector<Measurement> measurements;
  std::vector<Planned> plans;
  std::multimap<std::string, std::size_t> candidates;  // by id: index in `wanted`
  const std::optional<SweepFolder> folder =
      fs::exists(output_ / "runs.tsv") ? std::optional<SweepFolder>(output_) : std::nullopt;
  const bool planned_here = folder && folder->sweep().keys == plan_keys;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto& [row, seed] = wanted[i];
    plans.push_back(plan(*row, seed, 1));
    const TrainOptions& train = plans.back().loaded.experiment.train;
    measurements.push_back(
        {.seed = seed, .length = std::max(train.steps, train.epochs), .settings = plans.back().digest()});
    candidates.insert({plans[i].loaded.id, i});
    if (!planned_here) continue;
    for (const SweepRun& run : folder->sweep().runs)
      if (run.values[plan_file] == row->file && run.values[plan_set] == joined(row->overrides) &&
          run.values[plan_seed] == std::to_string(seed) && run.id != plans[i].loaded.id)
        candidates.insert({run.id, i});
  }
  if (!fs::exists(output_)) return measurements;

  std::vector<fs::path> paths = find_runs({output_.string()});
  const auto id_of = [](const fs::path& path) {
    return path.filename().string().substr(0, 10);
  };  // without the suffix of a second build
  std::erase_if(paths, [&](const fs::path& path) { return !candidates.contains(id_of(path)); });
  RunRequest request;
  for (const auto& [row, seed] : wanted)
    for (const std::string& group : groups_for(*row))
      if (std::ranges::find(request.paths, group) == request.paths.end()) request.paths.push_back(group);
  read_runs(paths, request, [&](RunData&& run) {
    const auto [first, end] = candidates.equal_range(id_of(run.path));
    for (auto candidate = first; candidate != end; ++candidate) {
      const std::size_t i = candidate->second;
      Measurement found{
          .seed = wanted[i].second, .length = measurements[i].length, .settings = measurements[i].settings};
      found.share = plans[i].share_of(run.configuration);
      if (!run.unreadable.empty())
        found.state = "unreadable", found.run = run.path;
      else if (changed_by_resuming(run.header).empty() &&
               (run.header.hash == plans[i].loaded.hash || (found.share > 0 && plans[i].agrees(run.configuration))))
        measure(run, *wanted[i].first, found);
      else
        continue;
      if (rank(found) > rank(measurements[i])) measurements[i] = found;
    }
  });
  return measurements;
}

std::vector<ReproducedRow> Reproduction::look(const std::vector<const PublishedRow*>& rows,
                                              const fs::path& record) const {
  std::set<std::string> items;
  for (const PublishedRow* row : rows) items.insert(row->item_name());
  std::vector<std::pair<const PublishedRow*, Index>> wanted;  // includes rows that others are compared with
  std::vector<ReproducedRow> all;
  for (const PublishedRow& row : published_.rows) {
    if (!items.contains(row.item_name())) continue;
    all.push_back({&row, std::vector<Measurement>(row.timing() ? 1 : row.seeds.size())});
    if (!row.timing())
      for (const Index seed : row.seeds) wanted.emplace_back(&row, seed);
  }
  const std::vector<Measurement> measurements = measurements_of(wanted);
  const nlohmann::json timings = read_json(timings_, "`tools/bench/run epochs`"),
                       recorded = read_json(record, "`stiefel reproduce report`");
  for (std::size_t at = 0; ReproducedRow & row : all) {
    if (row.row->timing()) {
      read_timing(timings, timings_, row);
      continue;
    }
    for (Measurement& seed : row.seeds) {
      seed = measurements[at++];
      const std::string name = recorded_name(*row.row, seed.seed);
      if (!recorded.contains(name)) continue;
      try {
        Measurement earlier = measurement_from(recorded.at(name));
        const double share = earlier.share * double(earlier.length) / double(seed.length);
        if (earlier.length > 0) earlier.share = std::abs(share - 1) < 1e-9 ? 1 : share;
        earlier.length = seed.length;
        if (earlier.settings == seed.settings && rank(earlier) > rank(seed)) seed = earlier;
      } catch (const nlohmann::json::exception& error) {
        throw Error(fmt::format("{}: \"{}\" is damaged: {}", record.string(), name, error.what()), Exit::damaged);
      }
    }
    summarise(row);
  }
  for (ReproducedRow& row : all) judge(row, all, published_.tolerances);
  std::erase_if(all, [&](const ReproducedRow& row) { return std::ranges::find(rows, row.row) == rows.end(); });
  return all;
}

std::string record_of(const std::vector<ReproducedRow>& rows) {
  std::vector<std::string> names;
  std::map<std::string, std::string> lines;
  for (const ReproducedRow& row : rows)
    for (Measurement seed : row.seeds) {
      if (seed.state == "running") seed.state = "stopped";
      if (row.row->timing() || seed.state.empty() || seed.state == "unreadable") continue;
      const std::string name = recorded_name(*row.row, seed.seed);
      std::string& line = lines[name];
      if (line.empty()) names.push_back(name);
      // Of rows that share the measurement, the longer text has the trace.
      if (const std::string text = json_text(json_of(seed)); text.size() > line.size()) line = text;
    }
  for (std::string& name : names) name = fmt::format("  {}: {}", json_text(nlohmann::json(name)), lines.at(name));
  return fmt::format("{{\n{}\n}}\n", fmt::join(names, ",\n"));
}

Sweep Reproduction::missing(const std::vector<const PublishedRow*>& rows, double budget) const {
  Sweep sweep;
  sweep.name = "reproduction";
  sweep.keys = plan_keys;
  sweep.source = (published_.folder / "papers/published.yaml").string();
  std::vector<std::pair<const PublishedRow*, Index>> wanted;
  for (const PublishedRow* row : rows)
    if (!row->timing())
      for (const Index seed : row->seeds) wanted.emplace_back(row, seed);
  const std::vector<Measurement> measurements = measurements_of(wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto& [row, seed] = wanted[i];
    const Planned planned = plan(*row, seed, budget);
    const bool ended = measurements[i].state == "finished" || measurements[i].state == "diverged";
    if (ended && measurements[i].share >= planned.share * (1 - 1e-9)) continue;
    if (std::ranges::find(sweep.runs, planned.loaded.id, &SweepRun::id) != sweep.runs.end()) continue;
    refuse_changed(run_path(output_ / "runs", planned.loaded.experiment.name, planned.loaded.id));
    sweep.runs.push_back({planned.loaded.id,
                          {planned.loaded.experiment.name, row->file, joined(row->overrides), std::to_string(seed),
                           fmt::format("{:.4g}", planned.share)},
                          planned.loaded.resolved_yaml});
  }
  return sweep;
}

}  // namespace stiefel
