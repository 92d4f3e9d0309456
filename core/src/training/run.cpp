#include "training/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <fstream>
#include <limits>
#include <optional>
#include <ranges>

#include "base/file_content.hpp"
#include "base/printable.hpp"
#include "config/resolved.hpp"
#include "record/header_file.hpp"
#include "record/reader.hpp"
#include "record/run_folder.hpp"
#include "training/changes.hpp"
#include "training/checkpoint_index.hpp"
#include "training/trained.hpp"
#include "training/trainer.hpp"

namespace stiefel {
namespace {

/// Whether this process writes the files of the run. Of several ranks, only the first one does.
bool writes(const RunOptions& options) { return !options.ranks || options.ranks->first(); }

template <class S> RunHeader header_of(const LoadedExperiment& loaded, const Registry& registry,
                                       const RunOptions& options, const Session<S>& session) {
  RunHeader header = header_of(loaded, registry, options, session.files, session.workers.threads());
  header.parameters = session.network->layout().size();
  header.baseline = session.task->baseline();
  return header;
}

std::string first_difference(const std::string& a, const std::string& b) {
  std::vector<std::string> lines_of_a, lines_of_b;
  boost::split(lines_of_a, a, boost::is_any_of("\n"));
  boost::split(lines_of_b, b, boost::is_any_of("\n"));
  const auto [mine, other] = std::ranges::mismatch(lines_of_a, lines_of_b);
  return fmt::format("'{}' and '{}'", mine == lines_of_a.end() ? "" : *mine, other == lines_of_b.end() ? "" : *other);
}

/// Throws Error if ranks differ in anything that affects the numbers, because each computes on its own after a pass.
/// Also a barrier: no folder is created unless every rank can start.
void demand_same_ranks(const RunHeader& header, const RunOptions& options) {
  if (!options.ranks) return;
  const std::vector<std::string> all =
      options.ranks->texts(lines_of_values(header) + fmt::format("--until={}\n", options.until));
  const auto other = std::ranges::find_if(all, [&](const std::string& lines) { return lines != all.front(); });
  if (other != all.end())
    throw Error(
        fmt::format("the processes 0 and {} of mpirun differ, in {}; start all with the same program, settings, "
                    "plugins and data, on hosts with the same type of CPU",
                    other - all.begin(), first_difference(all.front(), *other)));
}

template <class S> RunSummary run_in_scalar(const LoadedExperiment& loaded, Registry& registry,
                                            const RunOptions& options, RunObserver& observer) {
  Session<S> session(loaded, registry, options);
  RunHeader header = header_of(loaded, registry, options, session);
  demand_same_ranks(header, options);
  RunRecord record = writes(options) ? RunRecord(std::move(header), options.output) : RunRecord();
  if (options.ranks ? options.ranks->largest(record.finished_before()) != 0 : record.finished_before())
    return {"existing", record.message(), record.directory(), 0};
  if (!record.message().empty()) observer.note(record.message());
  for (const std::string& remark : session.remarks) observer.warning(remark);
  observer.note(fmt::format("{}: {}, {}, {}, {}", loaded.experiment.name,
                            counted(session.network->layout().size(), "parameter"),
                            counted(session.total_steps(), "step"), counted(session.workers.threads(), "thread"),
                            record.directory().string()));
  record.keep(trained_of(*session.task));
  return train<S>(loaded, session, record, options, observer, nullptr);
}

/// Appends a line to the run's log while no RunRecord has it open.
void log(const std::filesystem::path& run, const std::string& line) {
  std::ofstream(RunFolder{run}.log(), std::ios::app) << line << std::endl;
}

/// Throws Error if a trained network's results were moved away: training again would replace it.
void demand_results(const std::filesystem::path& run) {
  if (exists(RunFolder{run}.network("last")) && !read_checkpoint_index(run).entries_of("results.h5").empty())
    throw Error(fmt::format("{} is missing, but {} has the trained network; restore the results, or start another run "
                            "with `stiefel run` and move this folder away",
                            RunFolder{run}.results().string(), RunFolder{run}.network("last").string()),
                Exit::damaged);
}

/// Throws Error if the settings of a run without results have changed. Only config.yaml says how it began.
void refuse_changes(const std::filesystem::path& run, const RunHeader& header) {
  RunHeader before = header;
  before.yaml = file_content(RunFolder{run}.config());
  if (!changes(before, header).empty())
    throw Error(
        fmt::format("{} has no results yet, so it cannot be changed; start another run with `stiefel run` and "
                    "the new values",
                    run.string()));
}

/// Reads a checkpoint. Throws Error if one of the changes does not fit it.
template <class S> void read_changed_checkpoint(const std::filesystem::path& file, const Layout& layout,
                                                const std::vector<Change>& changed, Checkpoint<S>& checkpoint) {
  try {
    read_checkpoint(file, layout, checkpoint);
  } catch (const Misfit& error) {
    if (changed.empty()) throw;
    throw Error(
        fmt::format("the change of {} does not fit the checkpoint ({}); undo it, or start another run with "
                    "`stiefel run`",
                    fmt::join(changed | std::views::transform(&Change::name), ", "), error.what()));
  }
  for (const Change& change : changed)
    if (checkpoint.carried.size() > 0 && (change.name == "train.batch" || change.name.starts_with("task.")))
      throw Error(
          fmt::format("{} cannot be changed: the checkpoint holds the state that is carried to the next "
                      "batch; start another run with `stiefel run`",
                      change.name));
}

const char* key_of_length(const Experiment& experiment) {
  return experiment.train.epochs > 0 ? "train.epochs" : "train.steps";
}

/// Returns the learning rate schedule that depends on the number of steps; empty if there is none.
std::string schedule_of_length(const Experiment& experiment) {
  for (const OptimizerGroup& group : experiment.optimizer)
    if (group.schedule.kind == "cosine" || group.schedule.kind == "one_cycle") return group.schedule.kind;
  return {};
}

RunSummary already_finished(const std::filesystem::path& run, const Experiment& experiment) {
  std::string message = run.string() + " is already finished";
  if (experiment.train.patience == 0 && experiment.train.target == 0 && schedule_of_length(experiment).empty())
    message += fmt::format("; to train it for longer, use stiefel resume {0} {1}=N --allow-change {1}",
                           shell_word(run.string()), key_of_length(experiment));
  return {"existing", message, run, 0};
}

Index steps_made(const std::filesystem::path& run) {
  return Index(ResultReader(RunFolder{run}.results()).number_attribute("/", "committed_step"));
}

/// Throws Error unless changes only lengthen a finished run: the steps after its newest checkpoint are repeated.
void demand_longer(const std::filesystem::path& run, const LoadedExperiment& loaded, const std::vector<Change>& changed,
                   Index steps, Index until) {
  const auto refused =
      std::ranges::find_if_not(changed, [&](const Change& change) { return only_lengthens(change, loaded.origins); });
  if (refused != changed.end())
    throw Error(
        fmt::format("{} is finished, so {} cannot become {}: such a run can only be trained for longer, with "
                    "more train.steps, train.epochs or train.patience, or train.target=0; start another run "
                    "with `stiefel run`",
                    run.string(), refused->name, refused->is.value_or("absent")));
  const Index made = steps_made(run);
  if (steps <= made)
    throw Error(fmt::format("{} is finished after {}, and would now end at step {}; set {} to more", run.string(),
                            counted(made, "step"), steps, key_of_length(loaded.experiment)));
  if (until > 0 && until < made)
    throw Error(fmt::format("{} is finished after {}; --until must be at least that, got {}", run.string(),
                            counted(made, "step"), until));
  const std::string schedule = schedule_of_length(loaded.experiment);
  const bool more = std::ranges::any_of(
      changed, [](const Change& change) { return change.name == "train.steps" || change.name == "train.epochs"; });
  if (more && !schedule.empty())
    throw Error(
        fmt::format("{} is finished, and its learning rates depend on the number of steps (schedule {}), so it "
                    "cannot be trained for longer; start another run with `stiefel run`",
                    run.string(), schedule));
}

/// Returns the names of changes that config.yaml has but results.h5 lacks: an earlier process was allowed them, and was
/// killed between replacing the two. An edited config.yaml does not count.
std::vector<std::string> accepted_before(const std::filesystem::path& run, const std::vector<Change>& changed) {
  const std::filesystem::path file = RunFolder{run}.config();
  std::vector<std::string> names;
  if (std::ranges::none_of(read_checkpoint_index(run).entries_of("config.yaml"),
                           [&](const ListedFile& entry) { return entry.is_content_of(file); }))
    return names;
  const std::map<std::string, std::string> values = flat_configuration(file_content(file), "config.yaml");
  for (const Change& change : changed)
    if (const auto found = values.find(change.name); found != values.end() && found->second == change.is)
      names.push_back(change.name);
  return names;
}

/// Resumes the run at `path`. `directory`: its lock; nothing in ranks that do not write. `finished`: the run may only
/// become longer. `training` becomes true when train() begins, which records its errors.
template <class S> RunSummary go_on(const std::filesystem::path& path, const LoadedExperiment& loaded,
                                    Registry& registry, const RunOptions& options,
                                    const std::vector<std::string>& allowed, RunObserver& observer,
                                    std::optional<RunDirectory> directory, bool finished, bool& training) {
  Session<S> session(loaded, registry, options);
  RunHeader header = header_of(loaded, registry, options, session);
  demand_same_ranks(header, options);
  std::vector<Change> changed;
  if (exists(RunFolder{path}.results())) {
    const RunHeader before = read_header(ResultReader(RunFolder{path}.results()));
    changed = changes(before, header);
    if (finished && changed.empty()) return already_finished(path, loaded.experiment);
    if (finished) demand_longer(path, loaded, changed, session.total_steps(), options.until);
    std::vector<std::string> names = allowed;
    std::ranges::copy(accepted_before(path, changed), std::back_inserter(names));
    header.segments.back().changes = allowed_changes(before, header, names, loaded.fixed);
  } else {
    refuse_changes(path, header);
  }
  Checkpoint<S> checkpoint{0, session.network->state(), {}, session.updater->state(), {}, {}};
  checkpoint.parts["trainer"] = state_of_training();
  // A checkpoint of the last step may hold an evaluation that a longer run would not have made.
  const Index end = finished ? steps_made(path) : std::numeric_limits<Index>::max();
  const auto fall_back = [&](const std::string& line) {
    observer.warning(line + "; falling back to the previous one");
    if (directory) log(path, line + "; falling back to the previous one");
  };
  const auto file = newest_checkpoint(path, fall_back, end);
  if (file) read_changed_checkpoint(*file, session.network->layout(), changed, checkpoint);
  if (checkpoint.step > session.total_steps())
    throw Error(
        fmt::format("{} has already trained for {}, but would now end at step {}; set train.steps or "
                    "train.epochs to at least as many, or start another run with `stiefel run`",
                    path.string(), counted(checkpoint.step, "step"), session.total_steps()));
  for (const Change& change : changed)
    if (file && change.name.starts_with("model."))
      observer.warning(fmt::format(
          "{} has changed: networks saved so far, including the best one, may compute other outputs", change.name));
  if (options.ranks) options.ranks->largest(0);
  if (directory) remove_unlisted_checkpoints(path);
  RunRecord record =
      directory ? RunRecord(std::move(header), std::move(*directory), checkpoint.step, checkpoint.rows) : RunRecord();
  observer.note(fmt::format("{} resumes after step {} of {}, {}", path.string(), checkpoint.step, session.total_steps(),
                            counted(session.workers.threads(), "thread")));
  training = true;
  record.keep(trained_of(*session.task));
  return train<S>(loaded, session, record, options, observer, file ? &checkpoint : nullptr);
}

template <class S> RunSummary resume(const std::filesystem::path& path, const LoadedExperiment& loaded,
                                     Registry& registry, const RunOptions& options,
                                     const std::vector<std::string>& allowed, RunObserver& observer) {
  if (exists(RunFolder{path}.results()))
    demand_whole(path, "results.h5");  // libhdf5 must not read a damaged file
  else
    demand_results(path);
  // Whether `here` holds in any rank.
  const auto agreed = [&](bool here) { return options.ranks ? options.ranks->largest(here) != 0 : here; };
  // Whether the settings are those of the run.
  const auto as_it_was = [&] {
    return !has_other_settings(read_header(ResultReader(RunFolder{path}.results())), loaded);
  };
  if (!agreed(run_state(path) != RunState::finished || !as_it_was())) return already_finished(path, loaded.experiment);
  std::optional<RunDirectory> directory;
  if (writes(options)) directory.emplace(RunDirectory::open(path));
  const bool held = directory.has_value(), finished = agreed(held && is_finished(path));
  // Another process may just have finished it.
  if (finished && !agreed(!as_it_was())) return already_finished(path, loaded.experiment);
  bool training = false;
  try {
    return go_on<S>(path, loaded, registry, options, allowed, observer, std::move(directory), finished, training);
  } catch (const std::exception& error) {
    const auto* refusal = dynamic_cast<const Error*>(&error);
    const bool elsewhere = refusal && refusal->code() == Exit::in_use;  // another host can resume it
    if (held && !training && !finished && !elsewhere) log(path, std::string("failed: ") + error.what());
    throw;
  }
}

}  // namespace

RunObserver::~RunObserver() = default;

StartedIn started_in(const std::filesystem::path& run) {
  try {
    if (!is_regular_file(RunFolder{run}.results())) {
      const CheckpointIndex index = read_checkpoint_index(run);
      return {index.working_directory, index.data_directory};
    }
    demand_whole(run, "results.h5");
    const ResultReader results(RunFolder{run}.results());
    const auto folder = [&](const char* name) {
      return results.has_attribute("/provenance", name) ? results.text_attribute("/provenance", name) : "";
    };
    return {folder("working_directory"), folder("data_directory")};
  } catch (const Error&) {  // whoever needs the results reports the error
    return {};
  }
}

RunSummary run_experiment(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
                          RunObserver& observer) {
  return loaded.experiment.with_scalar(
      [&]<class S>(S) { return run_in_scalar<S>(loaded, registry, options, observer); });
}

RunSummary resume_experiment(const std::filesystem::path& directory, const LoadedExperiment& loaded, Registry& registry,
                             const RunOptions& options, const std::vector<std::string>& allowed,
                             RunObserver& observer) {
  return loaded.experiment.with_scalar(
      [&]<class S>(S) { return resume<S>(directory, loaded, registry, options, allowed, observer); });
}

}  // namespace stiefel
