#include "sweep/reproduction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "results/comparison.hpp"
#include "results/file_content.hpp"
#include "results/isolated_reader.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
const std::vector<std::string> plan_keys = {"name", "file", "set", "seed", "budget"};
enum PlanKey { plan_name, plan_file, plan_set, plan_seed, plan_budget };

double last(const std::vector<double>& values) { return values.empty() ? nothing : values.back(); }

/// The last row of a dataset with one row per snapshot.
std::vector<double> last_row(const RunDataset* dataset) {
  if (!dataset || dataset->shape.size() != 2 || dataset->shape[0] == 0) return {};
  return {dataset->values.end() - std::ptrdiff_t(dataset->shape[1]), dataset->values.end()};
}

const RunDataset* below(const RunData& run, const std::string& group, const std::string& name) {
  for (const RunDataset& dataset : run.datasets)
    if (dataset.path.starts_with(group) && dataset.path.ends_with("/" + name)) return &dataset;
  return nullptr;
}

// ---- quantities of figures

double singular_value(const RunData& run, const std::string& which) {
  const std::vector<double> s = last_row(below(run, "/spectrum/", "singular_values"));
  if (s.empty()) return nothing;
  if (which == "mean") return statistics_of(s).mean;
  return which == "largest" ? std::ranges::max(s) : std::ranges::min(s);
}

double orthogonality_drift(const RunData& run) {
  const RunDataset* defects = below(run, "/orthogonality/", "defect_fro");
  return !defects || defects->values.empty() ? nothing : last_row(defects)[0] / defects->values[0];
}

/// ‖∂L/∂h_1‖ / ‖∂L/∂h_T‖, of the last step's loss where figures show that.
double gradient_ratio(const RunData& run) {
  for (const char* name : {"last_step_grad_norm", "hidden_grad_norm"}) {
    std::vector<double> norms = last_row(run.find(std::string("/gradient/") + name));
    std::erase_if(norms, [](double x) { return std::isnan(x); });
    if (!norms.empty()) return norms.front() / norms.back();
  }
  return nothing;
}

/// Nothing for a metric of the task.
std::optional<double> quantity(const RunData& run, const std::string& metric) {
  for (const char* which : {"largest", "smallest", "mean"})
    if (metric == std::string(which) + "_singular_value") return singular_value(run, which);
  if (metric == "orthogonality_drift") return orthogonality_drift(run);
  if (metric == "gradient_ratio") return gradient_ratio(run);
  if (metric == "slope") {
    const std::vector<double> slopes = last_row(run.find("/blocks/activation_slope"));
    return statistics_of(slopes).mean;
  }
  return std::nullopt;
}

bool higher_is_better(const RunData& run, const std::string& metric) {
  const RunDataset* dataset = run.find("/epochs/valid_" + metric);
  return dataset && dataset->description == "higher is better";
}

/// The best so far, or where the network was chosen.
double validation_value(const RunData& run, const PublishedRow& row) {
  const std::vector<double>&values = run.column("/epochs/valid_" + row.metric), &best = run.column("/epochs/is_best");
  if (row.kind == "validation")
    for (std::size_t i = std::min(values.size(), best.size()); i-- > 0;)
      if (best[i] == 1) return values[i];
  const Statistics statistics = statistics_of(values);
  return higher_is_better(run, row.metric) ? statistics.largest : statistics.least;
}

double value_of(const RunData& run, const PublishedRow& row) {
  if (const std::optional<double> found = quantity(run, row.metric)) return *found;
  if (row.kind == "test" || row.kind == "best test") return last(run.column("/final/test_" + row.metric));
  return validation_value(run, row);
}

Index first_reached(const RunData& run, const PublishedRow& row) {
  const std::vector<double>&values = run.column("/epochs/valid_" + row.metric), &steps = run.column("/epochs/step");
  const bool higher = higher_is_better(run, row.metric);
  for (std::size_t i = 0; i < std::min(values.size(), steps.size()); ++i)
    if (higher ? values[i] >= row.judge->value : values[i] <= row.judge->value) return Index(steps[i]);
  return -1;
}

/// All but `better_than`, which needs another row.
bool fulfils(const PublishedRow& row, const Measurement& measurement) {
  const Criterion& judge = *row.judge;
  switch (judge.kind) {
    case Criterion::Kind::reaches:
      return measurement.reached_step >= 0 && measurement.reached_step <= judge.by;
    case Criterion::Kind::never:
      return measurement.reached_step < 0 && !std::isnan(measurement.value);
    case Criterion::Kind::within:
      return measurement.value >= judge.low && measurement.value <= judge.high;
    case Criterion::Kind::better_than:
      return false;
  }
  return false;
}

std::string provenance(const RunData& run, const std::string& name) {
  for (const auto& [key, value] : run.header.provenance)
    if (key == name) return value;
  return {};
}

void read_run(const RunData& run, const PublishedRow& row, Measurement& measurement) {
  measurement.state = run.status.state;
  measurement.run = run.path;
  measurement.step = run.committed_step;
  measurement.cpu_seconds = run.status.cpu_seconds;
  measurement.commit = provenance(run, "git_commit").substr(0, 10) + (provenance(run, "git_dirty") == "yes" ? "+" : "");
  measurement.value = value_of(run, row);
  if (!row.judge) return;
  measurement.reached_step = first_reached(run, row);
  measurement.fulfilled = fulfils(row, measurement);
}

// ---- judging

/// Of the finished runs those with the largest share of the budget.
void summarise(ReproducedRow& row) {
  double most = 0;
  for (const Measurement& seed : row.seeds)
    if (seed.state == "finished") most = std::max(most, std::min(seed.share, 1.));
  std::vector<double> values;
  for (const Measurement& seed : row.seeds)
    if (seed.state == "finished" && std::min(seed.share, 1.) == most) values.push_back(seed.value);
  const Statistics statistics = statistics_of(values);
  row.count = values.size();
  row.share = most;
  row.mean = statistics.mean;
  row.deviation = statistics.deviation;
  row.difference = row.mean - row.row->value;
}

Verdict verdict_of_value(const ReproducedRow& row, const std::map<std::string, double>& tolerances) {
  if (row.row->certainty == "remembered") return Verdict::remembered;
  const auto tolerance = tolerances.find(row.row->metric);
  if (tolerance == tolerances.end()) return Verdict::shown;
  const double gain = row.higher_is_better ? row.difference : -row.difference;
  if (!(gain >= -tolerance->second * (1 + 1e-9))) return Verdict::missed;
  return gain > tolerance->second ? Verdict::better : Verdict::matched;
}

Verdict verdict_of_curve(const ReproducedRow& row, const ReproducedRow* other) {
  const std::optional<Criterion>& judge = row.row->judge;
  if (!judge) return Verdict::shown;
  if (judge->kind == Criterion::Kind::better_than) {
    if (!other || other->count == 0 || other->share < 1) return Verdict::shown;
    return (row.higher_is_better ? row.mean > other->mean : row.mean < other->mean) ? Verdict::matched : Verdict::missed;
  }
  const auto judged = [](const Measurement& seed) { return !seed.counts() || seed.fulfilled; };
  return std::ranges::all_of(row.seeds, judged) ? Verdict::matched : Verdict::missed;
}

void judge(ReproducedRow& row, const std::vector<ReproducedRow>& all, const std::map<std::string, double>& tolerances) {
  const auto any = [&](auto&& is) { return std::ranges::any_of(row.seeds, is); };
  if (row.row->timing()) {
    row.verdict = row.count > 0 ? Verdict::shown : Verdict::none;
  } else if (any([](const Measurement& seed) { return seed.state == "diverged"; })) {
    row.verdict = Verdict::diverged;
  } else if (row.count == 0) {
    row.verdict = any([](const Measurement& seed) { return !seed.state.empty(); }) ? Verdict::unfinished : Verdict::none;
  } else if (row.share < 1) {
    row.verdict = Verdict::part;
  } else if (row.row->kind == "curve") {
    const auto other = std::ranges::find_if(all, [&](const ReproducedRow& found) {
      return row.row->judge && found.row->item_name() == row.row->item_name() && found.row->row == row.row->judge->row;
    });
    row.verdict = verdict_of_curve(row, other == all.end() ? nullptr : &*other);
  } else {
    row.verdict = verdict_of_value(row, tolerances);
  }
}

/// Seconds of the workload in the paper's unit.
void read_timing(const nlohmann::json& document, ReproducedRow& row) {
  if (!document.contains("epochs")) return;
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
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

}  // namespace

/// The run of a row and a seed.
struct Reproduction::Planned {
  LoadedExperiment loaded;
  double share = 1;
  std::map<std::string, std::string> settings, given;  // all, and those that the file or the row gives

  /// Whether a run agrees with all that is given but the length of the training.
  bool agrees(const std::map<std::string, std::string>& configuration) const {
    return std::ranges::all_of(given, [&](const auto& setting) {
      const auto found = configuration.find(setting.first);
      return setting.first == length_key() || (found != configuration.end() && found->second == setting.second);
    });
  }
  /// The length of a run's training over that of this one; 0 when it is counted otherwise.
  double share_of(const std::map<std::string, std::string>& configuration) const {
    const auto found = configuration.find(length_key());
    const TrainOptions& train = loaded.experiment.train;
    return found == configuration.end() ? 0 : std::atof(found->second.c_str()) / double(std::max(train.steps, train.epochs));
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
    const Index whole = std::max(train.steps, train.epochs), part = std::max<Index>(1, std::llround(double(whole) * budget));
    if (part != whole) {
      overrides.push_back(fmt::format("train.{}={}", train.steps > 0 ? "steps" : "epochs", part));
      planned.loaded = load_experiment(published_.folder / row.file, overrides, registry_);
      planned.share = double(part) / double(whole);
    }
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", row.where.text(), error.what()), error.code());
  }
  planned.settings = flat_configuration(planned.loaded.resolved_yaml, row.file);
  for (const std::string& origin : planned.loaded.origins) {
    const std::size_t sign = origin.find('=');
    const auto setting = planned.settings.find(origin.substr(0, sign));
    if (origin.substr(sign + 1) != "default" && setting != planned.settings.end()) planned.given.insert(*setting);
  }
  return planned;
}

std::vector<Measurement> Reproduction::measure(const std::vector<std::pair<const PublishedRow*, Index>>& wanted) const {
  std::vector<Measurement> measurements;
  std::vector<Planned> plans;
  std::multimap<std::string, std::size_t> candidates;  // by id: which of the wanted
  const std::optional<SweepFolder> folder = fs::exists(output_ / "runs.tsv") ? std::optional<SweepFolder>(output_) : std::nullopt;
  const bool planned_here = folder && folder->sweep().keys == plan_keys;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto& [row, seed] = wanted[i];
    measurements.emplace_back().seed = seed;
    plans.push_back(plan(*row, seed, 1));
    candidates.insert({plans[i].loaded.id, i});
    if (!planned_here) continue;
    for (const SweepRun& run : folder->sweep().runs)
      if (run.values[plan_file] == row->file && run.values[plan_set] == joined(row->overrides) &&
          run.values[plan_seed] == std::to_string(seed) && run.id != plans[i].loaded.id)
        candidates.insert({run.id, i});
  }
  if (!fs::exists(output_)) return measurements;

  std::vector<fs::path> paths = find_runs({output_.string()});
  const auto id_of = [](const fs::path& path) { return path.filename().string().substr(0, 10); };  // before the build of a neighbour
  std::erase_if(paths, [&](const fs::path& path) { return !candidates.contains(id_of(path)); });
  const RunRequest request{.paths = {"/epochs", "/final", "/outcome", "/spectrum", "/orthogonality", "/gradient", "/blocks"}};
  read_runs(paths, request, [&](RunData&& run) {
    const auto [first, end] = candidates.equal_range(id_of(run.path));
    for (auto candidate = first; candidate != end; ++candidate) {
      const std::size_t i = candidate->second;
      Measurement found;
      found.seed = wanted[i].second;
      found.share = plans[i].share_of(run.configuration);
      if (!run.unreadable.empty())
        found.state = "unreadable", found.run = run.path;
      else if (run.header.hash == plans[i].loaded.hash || (found.share > 0 && plans[i].agrees(run.configuration)))
        read_run(run, *wanted[i].first, found);
      else
        continue;
      const auto rank = [](const Measurement& m) { return std::tuple(m.state == "finished", !m.state.empty(), m.share, m.step); };
      if (rank(found) > rank(measurements[i])) measurements[i] = found;
    }
  });
  return measurements;
}

std::vector<ReproducedRow> Reproduction::look(const std::vector<const PublishedRow*>& rows) const {
  std::set<std::string> items;
  for (const PublishedRow* row : rows) items.insert(row->item_name());
  std::vector<std::pair<const PublishedRow*, Index>> wanted;  // with the rows that others are compared with
  std::vector<ReproducedRow> all;
  for (const PublishedRow& row : published_.rows) {
    if (!items.contains(row.item_name())) continue;
    all.push_back({&row, std::vector<Measurement>(row.timing() ? 1 : row.seeds.size())});
    if (!row.timing())
      for (const Index seed : row.seeds) wanted.emplace_back(&row, seed);
  }
  const std::vector<Measurement> measurements = measure(wanted);
  nlohmann::json timings;
  if (const std::optional<std::string> text = timings_.empty() ? std::nullopt : content_if_there(timings_)) {
    timings = nlohmann::json::parse(*text, nullptr, false);
    if (timings.is_discarded()) throw Error(fmt::format("{} is not JSON of tests/bench/run", timings_.string()), Exit::damaged);
  }
  for (std::size_t at = 0; ReproducedRow & row : all) {
    if (row.row->timing()) {
      read_timing(timings, row);
      continue;
    }
    for (Measurement& seed : row.seeds) seed = measurements[at++];
    row.higher_is_better = row.row->metric == "accuracy";
    summarise(row);
  }
  for (ReproducedRow& row : all) judge(row, all, published_.tolerances);
  std::erase_if(all, [&](const ReproducedRow& row) { return std::ranges::find(rows, row.row) == rows.end(); });
  return all;
}

Sweep Reproduction::missing(const std::vector<const PublishedRow*>& rows, double budget) const {
  Sweep sweep;
  sweep.name = "reproduction";
  sweep.keys = plan_keys;
  sweep.source = (published_.folder / "published.yaml").string();
  std::vector<std::pair<const PublishedRow*, Index>> wanted;
  for (const PublishedRow* row : rows)
    if (!row->timing())
      for (const Index seed : row->seeds) wanted.emplace_back(row, seed);
  const std::vector<Measurement> measurements = measure(wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto& [row, seed] = wanted[i];
    const Planned planned = plan(*row, seed, budget);
    if (measurements[i].state == "finished" && measurements[i].share >= planned.share * (1 - 1e-9)) continue;
    if (std::ranges::find(sweep.runs, planned.loaded.id, &SweepRun::id) != sweep.runs.end()) continue;
    sweep.runs.push_back(
        {planned.loaded.id,
         {planned.loaded.experiment.name, row->file, joined(row->overrides), std::to_string(seed), fmt::format("{:.4g}", planned.share)},
         planned.loaded.resolved_yaml});
  }
  sweep.combinations = sweep.runs.size();
  return sweep;
}

std::string state_of(const ReproducedRow& row) {
  switch (row.verdict) {
    case Verdict::none:
      return row.row->timing() ? "not measured" : row.row->needs.empty() ? "not run" : "needs " + row.row->needs;
    case Verdict::unfinished:
      for (const Measurement& seed : row.seeds)
        if (!seed.state.empty()) return fmt::format("{} at step {}", seed.state, seed.step);
      return "not run";
    case Verdict::part:
      return fmt::format("{:.2g} % of the budget", 100 * row.share);
    case Verdict::shown:
      return "measured";
    case Verdict::remembered:
      return "measured, published value uncertain";
    case Verdict::diverged:
      return "diverged";
    case Verdict::matched:
      return "matched";
    case Verdict::better:
      return "better";
    case Verdict::missed:
      return "missed";
  }
  return {};
}

std::string published_text(const ReproducedRow& reproduced) {
  const PublishedRow& row = *reproduced.row;
  if (!std::isnan(row.value))
    return fmt::format("{:.4g}{}{}", row.value, row.unit.empty() ? "" : " " + row.unit, row.certainty == "remembered" ? " ?" : "");
  if (!row.judge) return "a figure";
  const Criterion& judge = *row.judge;
  const char *reached = row.metric == "accuracy" ? "≥" : "≤", *missed = row.metric == "accuracy" ? "<" : ">";
  switch (judge.kind) {
    case Criterion::Kind::reaches:
      return fmt::format("{} {:.4g} by step {}", reached, judge.value, judge.by);
    case Criterion::Kind::never:
      return fmt::format("always {} {:.4g}", missed, judge.value);
    case Criterion::Kind::better_than:
      return fmt::format("better than {}", judge.row);
    case Criterion::Kind::within:
      return fmt::format("{:.4g} to {:.4g}", judge.low, judge.high);
  }
  return {};
}

std::string measured_text(const ReproducedRow& row) {
  if (row.count == 0) return "";
  std::string text = fmt::format("{:.4g}", row.mean);
  if (row.count > 1) text += fmt::format(" ± {:.2g}", row.deviation);
  if (!row.row->unit.empty()) text += " " + row.row->unit;
  if (!row.row->judge || row.row->judge->kind != Criterion::Kind::reaches) return text;
  std::vector<std::string> steps;
  for (const Measurement& seed : row.seeds)
    if (seed.state == "finished") steps.push_back(seed.reached_step < 0 ? "never" : fmt::format("step {}", seed.reached_step));
  return text + fmt::format(" ({})", fmt::join(steps, ", "));
}

}  // namespace stiefel
