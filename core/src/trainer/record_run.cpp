// Where a run is stored, and what is written beside its tables.
#include "trainer/record_run.hpp"

#include <fmt/format.h>

#include <stiefel/product.hpp>

#include "results/atomic_file.hpp"
#include "results/hdf5.hpp"
#include "results/provenance.hpp"
#include "results/reader.hpp"
#include "results/sha256.hpp"

namespace stiefel {
namespace {

void add_plugin(std::vector<PluginRow>& rows, const Registry& registry, const Entry* entry) {
  if (!entry) return;
  const PluginFile& file = registry.file_of(*entry);
  for (const PluginRow& row : rows)
    if (row.name == entry->name && row.kind == name_of(entry->role)) return;
  const bool in_file = std::filesystem::is_regular_file(file.path);
  rows.push_back(
      {entry->name, name_of(entry->role), file.path.string(), file.version, 1, file.build_id, in_file ? sha256_of_file(file.path) : ""});
}

std::vector<PluginRow> plugins_of(const Experiment& experiment, const Registry& registry) {
  std::vector<PluginRow> rows;
  add_plugin(rows, registry, experiment.task.entry);
  add_plugin(rows, registry, experiment.model.cell.entry);
  add_plugin(rows, registry, experiment.model.recurrent.entry);
  for (const RecurrentMap& map : experiment.model.maps) add_plugin(rows, registry, map.entry);
  for (const OptimizerGroup& group : experiment.optimizer) add_plugin(rows, registry, group.entry);
  return rows;
}

std::vector<DatasetRow> datasets_of(const std::vector<DataFile>& files) {
  std::vector<DatasetRow> rows;
  for (const DataFile& file : files)
    rows.push_back({file.name, file.path, std::int64_t(std::filesystem::file_size(file.path)), sha256_of_file(file.path)});
  return rows;
}

/// A hash of everything that computed: the build of the program and of the plugins used.
std::string build_of(const std::vector<PluginRow>& plugins, const std::vector<std::pair<std::string, std::string>>& provenance) {
  std::string text;
  for (const auto& [name, value] : provenance)
    if (name == "git_commit" || name == "git_diff_sha256" || name == "cxx_flags" || name == "compiler") text += value + "\n";
  for (const PluginRow& row : plugins) text += row.name + " " + row.sha256 + "\n";
  return sha256(text).substr(0, 6);
}

std::string stored_build(const std::filesystem::path& directory) {
  return ResultReader(directory / "results.h5").text_attribute("/provenance", "build");
}

template <class S> void write_weights(const std::filesystem::path& path, const Layout& layout, const std::vector<S>& values, Index step) {
  std::filesystem::create_directories(path.parent_path());
  AtomicFile target(path);
  hdf5::File file = hdf5::File::create(target.temporary());
  {
    file.root().set_number("format_version", 1, hdf5::Type::i4);
    file.root().set_number("step", double(step), hdf5::Type::i8);
    file.root().set_text("float_type", sizeof(S) == 4 ? "float32" : "float64");
    const hdf5::Group group = file.root().make_group("weights");
    const auto blocks = layout.all(values.data());
    for (Index i = 0; i < blocks.count(); ++i) {
      const BlockSpec& spec = layout.block(i);
      const bool square = spec.rows * spec.cols == spec.size;
      const auto rows = std::uint64_t(square ? spec.rows : spec.size), cols = std::uint64_t(square ? spec.cols : 1);
      hdf5::Dataset dataset = group.create_dataset(spec.name, {hdf5::Type::f8, {rows, cols}, {}});
      const Matrix<double> row_major =
          mat(const_cast<S*>(blocks[i].data()), Index(rows), Index(cols), Index(rows)).transpose().template cast<double>();
      dataset.write(0, rows, std::span(row_major.data(), std::size_t(row_major.size())));
      dataset.close();
    }
  }
  file.close();
  target.replace();
  target.sync_directory();
}

}  // namespace

RunRecord::RunRecord(const LoadedExperiment& loaded, const Registry& registry, const RunOptions& options, const std::vector<DataFile>& data,
                     int threads) {
  ProvenanceRequest request;
  request.simd_target = product_target();
  request.threads = threads;
  request.command_line = {options.command_line};
  RunHeader header;
  header.provenance = gather_provenance(request);
  header.plugins = plugins_of(loaded.experiment, registry);
  const std::string build = build_of(header.plugins, header.provenance);
  header.provenance.emplace_back("build", build);

  std::string id = loaded.id;
  path_ = run_path(options.output, loaded.experiment.name, id);
  if (run_state(path_) == RunState::finished && stored_build(path_) != build) {
    message_ = fmt::format("{} was made by another build of stiefel or of a plugin; this run is stored beside it", path_.string());
    id += "-" + build;
    path_ = run_path(options.output, loaded.experiment.name, id);
  }
  switch (run_state(path_)) {
    case RunState::none:
      break;
    case RunState::finished:
      message_ = fmt::format("{} is finished already; change the configuration or the seed for another run", path_.string());
      return;
    case RunState::running: {
      const RunLock refused(path_);
    }
      [[fallthrough]];  // names the owner; falls through when it ended just now
    case RunState::unfinished:
      throw Error(fmt::format("{} holds a run that was not finished; move or delete the folder to run it again", path_.string()),
                  Exit::in_use);
  }
  header.title = loaded.experiment.name;
  header.run_id = id;
  header.yaml = loaded.resolved_yaml;
  header.source = loaded.source;
  header.overrides = loaded.overrides;
  header.hash = loaded.hash;
  header.origins = loaded.origins;
  header.datasets = datasets_of(data);
  header.host = host_name();
  directory_.emplace(RunDirectory::create(options.output, loaded.experiment.name, id, loaded.resolved_yaml));
  recorder_ = std::make_unique<RecorderThread>(path_, std::move(header));
  progress_ = std::make_unique<ProgressLog>(path_ / "progress.jsonl");
  log_.open(path_ / "log.txt", std::ios::app);
}

void RunRecord::publish(Index step, Status status) {
  committed_ = step;
  status.state = "running";
  recorder_->publish(step, std::move(status));
}

template <class S> void RunRecord::weights(const std::string& which, const Layout& layout, const std::vector<S>& values, Index step) const {
  const std::filesystem::path path = path_ / "checkpoints" / (which + ".h5");
  recorder_->call([path, layout, values, step] { write_weights(path, layout, values, step); });
}

template <class S> void RunRecord::snapshot(const Layout& layout, const std::vector<S>& values, Index step, Index keep) {
  snapshots_.push_back(fmt::format("step_{:08}", step));
  weights(snapshots_.back(), layout, values, step);
  for (; Index(snapshots_.size()) > keep; snapshots_.erase(snapshots_.begin()))
    recorder_->call([old = path_ / "checkpoints" / (snapshots_.front() + ".h5")] { std::filesystem::remove(old); });
}

void RunRecord::finish(Index step, const Status& status) {
  log(status.state + ": " + status.message);
  recorder_->finish(step, status);
}

void RunRecord::fail(const std::string& message, int exit_code) noexcept {
  try {
    log("failed: " + message);
    Status status;
    status.state = "failed";
    status.message = message;
    status.exit_code = exit_code;
    recorder_->finish(committed_, status);
  } catch (...) {  // the error that is being reported is the one that counts
  }
}

template void RunRecord::snapshot(const Layout&, const std::vector<float>&, Index, Index);
template void RunRecord::snapshot(const Layout&, const std::vector<double>&, Index, Index);
template void RunRecord::weights(const std::string&, const Layout&, const std::vector<float>&, Index) const;
template void RunRecord::weights(const std::string&, const Layout&, const std::vector<double>&, Index) const;

}  // namespace stiefel
