// Where a run is stored, and what is written in addition to its tables.
#include "training/run_record.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include <stiefel/product.hpp>

#include "base/atomic_file.hpp"
#include "base/file_content.hpp"
#include "base/printable.hpp"
#include "base/sha256.hpp"
#include "config/resolved.hpp"
#include "record/header_file.hpp"
#include "record/provenance.hpp"
#include "record/reader.hpp"
#include "record/run_folder.hpp"
#include "training/changes.hpp"
#include "training/checkpoint_index.hpp"

namespace stiefel {
namespace {

void add_plugin(std::vector<PluginRow>& rows, const Registry& registry, const PluginChoice& choice) {
  const Entry* entry = choice.entry;
  if (!entry) return;
  for (const PluginPart& part : choice.parts)
    if (std::ranges::find(rows, part.path, &PluginRow::path) == rows.end())
      rows.push_back({std::filesystem::path(part.path).filename(),
                      fmt::format("{}{}", name_of(entry->role), PluginRow::part), part.path, part.works_with, "",
                      sha256_of_file(part.path)});
  const PluginFile& file = registry.file_of(*entry);
  for (const PluginRow& row : rows)
    if (row.name == entry->name && row.kind == name_of(entry->role)) return;
  const bool in_file = std::filesystem::is_regular_file(file.path);
  rows.push_back({entry->name, name_of(entry->role), file.path.string(), file.version, file.build_id,
                  in_file ? sha256_of_file(file.path) : ""});
}

/// Returns a hash of the builds of the program and of the plugins used.
std::string build_of(const std::vector<PluginRow>& plugins,
                     const std::vector<std::pair<std::string, std::string>>& provenance) {
  std::string text;
  for (const auto& [name, value] : provenance)
    if (name == "git_commit" || name == "git_diff_sha256" || name == "cxx_flags" || name == "compiler")
      text += value + "\n";
  for (const PluginRow& row : plugins) text += row.name + " " + row.sha256 + (row.is_part() ? row.version : "") + "\n";
  return sha256(text).substr(0, 6);
}

/// Says how the scripts of a finished run differ from those of `header`; else empty.
std::string difference_of_scripts(const RunHeader& made, const RunHeader& header) {
  for (const PluginRow& was : made.plugins)
    for (const PluginRow& is : header.plugins) {
      if (!was.is_part() || is.name != was.name || is.kind != was.kind) continue;
      if (is.sha256 != was.sha256) return fmt::format("before {} changed", is.path);
      if (is.version != was.version) return fmt::format("with {}", was.version);
    }
  return {};
}

/// Says how a finished run was made if not as in `header`: by another build, with other data, or with changes; else
/// empty.
std::string difference(const std::filesystem::path& directory, const RunHeader& header) {
  const ResultReader results(RunFolder{directory}.results());
  const RunHeader made = read_header(results);
  if (results.text_attribute("/provenance", "build") != *header.find_provenance("build")) {
    const std::string scripts = difference_of_scripts(made, header);
    return scripts.empty() ? "by a different build of stiefel or of a plugin" : scripts;
  }
  if (const std::vector<std::string> names = changed_by_resuming(made); !names.empty())
    return fmt::format("with changes when it was resumed ({})", fmt::join(names, ", "));
  const std::vector<Change> changed = made.datasets.empty() ? std::vector<Change>() : changes_of_data(made, header);
  return changed.empty() ? "" : fmt::format("with other data ({})", changed.front().name.substr(5));
}

/// Throws Error (Exit::in_use) if the run has diverged, because it would do so again.
void refuse_diverged(const std::filesystem::path& directory) {
  if (!exists(RunFolder{directory}.results())) return;
  const ResultReader results(RunFolder{directory}.results());
  if (results.text_attribute("/", "state") == "diverged")
    throw Error(fmt::format("{} holds a diverged run; move or delete the folder to run it again. Its message: {}",
                            directory.string(), results.text_attribute("/status", "message")),
                Exit::in_use);
}

void replace_configuration(const std::filesystem::path& run, std::string_view yaml) {
  AtomicFile file(RunFolder{run}.config());
  file.write(yaml);
  list_file(run, "config.yaml", file.temporary());
  file.replace();
  file.sync_directory();
  settle_files(run);
}

/// A suffix of the ID that distinguishes runs of one configuration by their build and data.
std::string suffix_of(const RunHeader& header) {
  std::string text = *header.find_provenance("build");
  for (const DatasetRow& row : header.datasets) text += " " + row.sha256;
  return header.datasets.empty() ? text : sha256(text).substr(0, 6);
}

/// Whether config.yaml of a run differs from `yaml`. Keys without effect on the results count as well, such as the
/// paths of plugins, but not `threads`, which depends on the machine.
bool reads_otherwise(const std::filesystem::path& run, const std::string& yaml) {
  const auto settings = [](const std::string& text) {
    auto values = flat_configuration(text, "config.yaml");
    values.erase("threads");
    return values;
  };
  return settings(file_content(RunFolder{run}.config())) != settings(yaml);
}

}  // namespace

std::vector<DatasetRow> datasets_of(const std::vector<DataFile>& files) {
  std::vector<DatasetRow> rows;
  for (const DataFile& file : files)
    rows.push_back(
        {file.name, file.path, std::int64_t(std::filesystem::file_size(file.path)), sha256_of_file(file.path)});
  return rows;
}

std::vector<PluginRow> plugins_of(const Experiment& experiment, const Registry& registry) {
  std::vector<PluginRow> rows;
  add_plugin(rows, registry, experiment.task);
  for (const LayerOptions& layer : experiment.model.layers) {
    add_plugin(rows, registry, layer.cell);
    add_plugin(rows, registry, layer.recurrent);
    for (const RecurrentMap& map : layer.maps) add_plugin(rows, registry, map);
  }
  for (const OptimizerGroup& group : experiment.optimizer) add_plugin(rows, registry, group);
  return rows;
}

RunHeader header_of(const LoadedExperiment& loaded, const Registry& registry, const RunOptions& options,
                    const std::vector<DataFile>& data, int threads) {
  ProvenanceRequest request;
  request.simd_target = product_target();
  request.threads = threads;
  if (options.ranks) request.mpi_ranks = options.ranks->count();
  request.command_line = options.command_line;
  RunHeader header;
  header.title = loaded.experiment.name;
  header.run_id = loaded.id;
  header.yaml = loaded.resolved_yaml;
  header.source = loaded.sources.front().text;
  header.overrides = loaded.overrides;
  header.hash = loaded.hash;
  header.origins = loaded.origins;
  header.provenance = gather_provenance(request);
  const auto folder = [&](const char* name, const std::filesystem::path& path) {
    header.provenance.emplace_back(name, path.empty() ? "" : absolute(path).lexically_normal().string());
  };
  folder("working_directory",
         options.working_directory.empty() ? std::filesystem::current_path() : options.working_directory);
  folder("data_directory", options.data_directory);
  header.plugins = plugins_of(loaded.experiment, registry);
  header.provenance.emplace_back("build", build_of(header.plugins, header.provenance));
  header.datasets = datasets_of(data);
  header.segments = {{.host = host_name()}};
  return header;
}

RunRecord::RunRecord(RunHeader header, const std::filesystem::path& root) {
  path_ = run_path(root, header.title, header.run_id);
  if (run_state(path_) == RunState::finished) {
    if (const std::string made = difference(path_, header); !made.empty()) {
      message_ = fmt::format("{} was made {}; this run is stored next to it", path_.string(), made);
      header.run_id += "-" + suffix_of(header);
      path_ = run_path(root, header.title, header.run_id);
      if (const std::string changed = run_state(path_) == RunState::finished ? difference(path_, header) : "";
          !changed.empty())
        throw Error(fmt::format("{} was made {}; move it away", path_.string(), changed), Exit::in_use);
    }
  }
  switch (run_state(path_)) {
    case RunState::none:
      break;
    case RunState::finished:
      message_ = fmt::format(
          "{} is already finished; to train another run, change the configuration or the seed (threads, plugins, "
          "checkpoint, train.recompute and train.step_limit do not count)",
          path_.string());
      return;
    case RunState::running: {
      const RunLock refused(path_);
    }
      [[fallthrough]];  // RunLock throws and names the owner, unless that has just ended
    case RunState::unfinished:
      refuse_diverged(path_);
      if (has_saved(path_))
        throw Error(fmt::format("{} holds an unfinished run: continue with `stiefel resume {}`, or move or delete the "
                                "folder to run it again",
                                path_.string(), shell_word(path_.string())),
                    Exit::in_use);
      start_again(path_);
      message_ = fmt::format("{} holds a run that ended before it saved anything; it starts again", path_.string());
  }
  // Once config.yaml exists, the run can be resumed, so these folders must be known by then.
  directory_.emplace(
      RunDirectory::create(root, header.title, header.run_id, header.yaml, [&](const std::filesystem::path& run) {
        CheckpointIndex index;
        index.working_directory = *header.find_provenance("working_directory");
        index.data_directory = *header.find_provenance("data_directory");
        write_checkpoint_index(run, index);
      }));
  open(std::make_unique<RecorderThread>(path_, std::move(header)));
}

RunRecord::RunRecord(RunHeader header, RunDirectory directory, Index step, const RowCounts& kept) {
  path_ = directory.path();
  if (reads_otherwise(path_, header.yaml)) configuration_ = header.yaml;
  directory_.emplace(std::move(directory));
  settle_files(path_);
  committed_ = step;
  if (!std::filesystem::exists(RunFolder{path_}.results())) {
    if (std::ranges::any_of(kept, [](const auto& table) { return table.second > 0; }))
      throw Error(
          fmt::format("{} is missing, but the checkpoint of step {} needs it; restore it, or remove {} to start over",
                      RunFolder{path_}.results().string(), step, RunFolder{path_}.checkpoints().string()),
          Exit::damaged);
    open(std::make_unique<RecorderThread>(path_, std::move(header)), step);
    return;
  }
  continued_ = true;
  const ResultReader results(RunFolder{path_}.results());
  if (results.has_attribute("/status", "cpu_seconds")) cpu_before_ = results.number_attribute("/status", "cpu_seconds");
  RunHeader stored = read_header(results);
  seconds_before_ = wall_seconds(stored.segments);
  if (const auto epochs = kept.find("/epochs"); epochs != kept.end() && epochs->second > 0)
    for (const double seconds : results.root().dataset("/epochs/seconds").read(0, epochs->second))
      evaluated_before_ += seconds;
  seconds_before_ = std::max(seconds_before_, evaluated_before_);  // the clock may have been set back
  for (auto& [name, text] : stored.provenance)
    if (const std::string* now = header.find_provenance(name);
        now && (name == "working_directory" || name == "data_directory"))
      text = *now;
  if (!stored.segments.empty() && stored.segments.back().reason == "running") stored.segments.back().reason = "killed";
  stored.segments.push_back(header.segments.back());
  stored.segments.back().start_step = stored.segments.back().end_step = step;
  open(std::make_unique<RecorderThread>(path_, std::move(stored), kept), step);
}

void RunRecord::open(std::unique_ptr<RecorderThread> recorder, std::optional<Index> after) {
  if (!has_checkpoint_index(path_)) write_checkpoint_index(path_, {});
  if (read_checkpoint_index(path_).entries_of("config.yaml").empty())
    list_file(path_, "config.yaml", RunFolder{path_}.config());
  recorder_ = std::move(recorder);
  recorder_->before_replacing(
      [run = path_](const std::filesystem::path& content) { list_file(run, "results.h5", content); });
  progress_ = std::make_unique<ProgressLog>(RunFolder{path_}.progress(), after);
  log_.open(RunFolder{path_}.log(), std::ios::app);
  if (after) log(fmt::format("resumed after step {}", *after));
}

void RunRecord::require_lock() const {
  if (directory_) directory_->require_lock();
}

void RunRecord::call(std::function<void()> work, const std::string& name) const {
  recorder_->call(
      [this, work = std::move(work)] {
        require_lock();
        work();
      },
      name);
}

void RunRecord::publish(Index step, Status status) {
  committed_ = step;
  status.state = "running";
  published_ = status;
  begun_ = true;
  if (!configuration_.empty())
    call([run = path_, yaml = std::exchange(configuration_, {})] { replace_configuration(run, yaml); });
  recorder_->publish(step, with_time(std::move(status)), [this] { require_lock(); });
}

void RunRecord::remove_outcome() const {
  const std::filesystem::path folder = path_ / "outcome";
  if (!directory_ || !std::filesystem::is_directory(folder)) return;
  recorder_->wait();
  std::filesystem::remove_all(folder);
}

void RunRecord::remove_network(const std::string& which) const {
  call([path = RunFolder{path_}.network(which)] { std::filesystem::remove(path); });
}

template <class S> void RunRecord::network(const std::string& which, const Layout& layout, const NetworkState<S>& state,
                                           Index step) const {
  call([run = path_, trained = trained_, which, layout, state,
        step] { write_network(run, which, layout, state, step, *trained); },
       which);
}

template <class S>
void RunRecord::diverged(const Layout& layout, const NetworkState<S>& state, const Batch<S>& batch, Index step) const {
  call([run = path_, layout, state, batch, step] { write_diverged(run, layout, state, batch, step); });
}

template <class S>
void RunRecord::save(const Layout& layout, Checkpoint<S> checkpoint, const CheckpointOptions& options) {
  checkpoint.rows = recorder_->rows();
  call([path = path_, trained = trained_, layout, checkpoint = std::move(checkpoint), options] {
    write_checkpoint(path, layout, checkpoint, options.keep, options.keep_every, *trained);
  });
}

void RunRecord::finish(Index step, const Status& status) {
  call([] {});
  recorder_->finish(step, with_time(status));
  log(status.state + ": " + status.message);
}

Status RunRecord::with_time(Status status) const {
  status.cpu_seconds = cpu_before_ + processor_seconds();
  return status;
}

void RunRecord::fail(const std::string& message, int exit_code) noexcept {
  try {
    Status status = published_;
    status.state = exit_code == int(Exit::diverged) ? "diverged" : "failed";
    log(status.state + ": " + message);
    if (continued_ && !begun_) return;
    call([] {});
    status.message = message.substr(0, message.find('\n'));
    status.exit_code = exit_code;
    recorder_->finish(committed_, with_time(status));
  } catch (...) {  // the error that is being reported matters more
  }
}

RunRecord::ShownLog::ShownLog(const RunRecord& record, std::atomic<int>* shown)
    : shown_(record.path_.empty() ? nullptr : shown) {
  if (shown_) *shown_ = ::open(RunFolder{record.path_}.log().c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
}

RunRecord::ShownLog::~ShownLog() {
  if (shown_) ::close(shown_->exchange(-1));
}

template void RunRecord::save(const Layout&, Checkpoint<float>, const CheckpointOptions&);
template void RunRecord::save(const Layout&, Checkpoint<double>, const CheckpointOptions&);
template void RunRecord::diverged(const Layout&, const NetworkState<float>&, const Batch<float>&, Index) const;
template void RunRecord::diverged(const Layout&, const NetworkState<double>&, const Batch<double>&, Index) const;
template void RunRecord::network(const std::string&, const Layout&, const NetworkState<float>&, Index) const;
template void RunRecord::network(const std::string&, const Layout&, const NetworkState<double>&, Index) const;

}  // namespace stiefel
