// Builds a run, and makes its passes and evaluations.
#include "training/session.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <thread>

#include "base/machine.hpp"
#include "base/printable.hpp"
#include "base/say.hpp"
#include "base/sha256.hpp"
#include "base/suggestion.hpp"
#include "config/resolved.hpp"
#include "engine/contents.hpp"
#include "engine/guarded_task.hpp"
#include "host/metric_values.hpp"
#include "training/memory_check.hpp"
#include "training/selection.hpp"
#include "training/trained.hpp"
#include "training/watchdog.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

/// While this exists, the process works in another folder; if that is empty, nothing changes.
class WorkingDirectory {
 public:
  explicit WorkingDirectory(const fs::path& folder) : before_(folder.empty() ? fs::path() : fs::current_path()) {
    if (!folder.empty()) fs::current_path(folder);
  }
  ~WorkingDirectory() {
    std::error_code gone;
    if (!before_.empty()) fs::current_path(before_, gone);
  }
  WorkingDirectory(const WorkingDirectory&) = delete;
  WorkingDirectory& operator=(const WorkingDirectory&) = delete;

 private:
  fs::path before_;
};

bool is_trained(Extent extent) { return extent == Extent::network || extent == Extent::application; }

}  // namespace

template <class S> std::unique_ptr<Task<S>> make_task(const Experiment& experiment, Registry& registry,
                                                      const RunOptions& options, Extent extent) {
  if (extent == Extent::application && options.trained) return std::make_unique<AppliedTask<S>>(options.trained);
  const WorkingDirectory there(options.working_directory);
  const TaskContext context{std::uint64_t(experiment.seed), experiment.train.batch, options.data_directory,
                            options.trained};
  return experiment.task.located([&] {
    try {
      return std::make_unique<GuardedTask<S>>(experiment.task.make<Task<S>>(registry, &context));
    } catch (const Error& error) {
      if (!is_trained(extent) || !error.is_missing()) throw;
      throw Error(fmt::format("{} A trained network needs the data files of its run, for normalization and names; put "
                              "them where they were, or into a folder DIR with --data DIR.",
                              error.what()),
                  error);
    }
  });
}

namespace {

/// Whether a message contains the name of a file as a whole word.
bool names(std::string_view message, std::string_view file) {
  for (std::size_t at = message.find(file); at != message.npos; at = message.find(file, at + 1)) {
    const std::size_t end = at + file.size();
    if ((at == 0 || message[at - 1] == ' ') && (end == message.size() || std::strchr(" :;,", message[end])))
      return true;
  }
  return false;
}

/// Threads to use; 0: all cores. Ranks that can run on the same cores share them.
int threads_of(const Experiment& experiment, const RunOptions& options) {
  if (experiment.threads > 0 || !options.ranks) return int(experiment.threads);
  return std::max(1, usable_cores() / options.ranks->on_cores());
}

/// Returns the extent for make_task(). For a trained network, its errors advise the user to restore the run's data,
/// which a changed task may not need.
Extent extent_of_data(const LoadedExperiment& loaded, Extent extent) {
  const bool changed =
      std::ranges::any_of(loaded.overrides, [](const std::string& text) { return text.starts_with("task."); });
  return changed ? Extent::training : extent;
}

/// Whether a file belongs to a method of the model, so that it is not data.
bool is_part(const Experiment& experiment, const std::string& path) {
  const auto has = [&](const PluginChoice& choice) {
    return std::ranges::find(choice.parts, path, &PluginPart::path) != choice.parts.end();
  };
  return std::ranges::any_of(experiment.model.layers, [&](const LayerOptions& layer) {
    return has(layer.cell) || has(layer.recurrent) || std::ranges::any_of(layer.maps, has);
  });
}

/// Hashes of the different sequences of a split.
template <class S> std::set<std::size_t> sequences_of(const Task<S>& task, Split split) {
  std::set<std::size_t> hashes;
  Batch<S> batch;
  for (Index index = 0; index < task.batches(split); ++index) {
    task.fill(split, index, batch);
    for (const std::string& sequence : contents(batch, task.shape())) hashes.insert(std::hash<std::string>()(sequence));
  }
  return hashes;
}

}  // namespace

template <class S>
Session<S>::Session(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options, Extent extent)
    : experiment(loaded.experiment),
      task(make_task<S>(experiment, registry, options, extent_of_data(loaded, extent))),
      workers(extent == Extent::sizes ? 1 : threads_of(experiment, options)) {
  const WorkingDirectory there(options.working_directory);
  remarks = loaded.remarks;
  const bool trained = is_trained(extent), applied = extent == Extent::application && options.trained;
  if (!trained) {
    if (task->batches(Split::train) < 1)
      throw Error(
          "the task " + experiment.task.plugin + " has no training batch; give it a training set of at least one batch",
          Exit::data);
    make_tasks_of_lengths(loaded, registry, options);
    require_selection(experiment, *task);
    total_steps();
  }
  files = task->files();
  if (!trained) add_files_of_model(loaded);
  for (DataFile& file : files) file.path = fs::absolute(file.path);
  if (options.check_data && !applied) options.check_data(files);
  network = std::make_unique<Network<S>>(experiment, registry, *task);
  if (!experiment.record.analysis.empty() && network->model().bidirectional())
    throw Error(experiment.place_of("record.analysis") +
                "record.analysis: a bidirectional network has no state that passes from step to step; remove this");
  if (!trained) {
    Index longest = task->shape().steps;
    for (const auto& other : tasks_of_lengths) longest = std::max(longest, other->shape().steps);
    const Index steps = std::exchange(network->model().task.steps, longest);
    require_memory(loaded, registry, options, *task, network->model());
    network->model().task.steps = steps;
    updater = std::make_unique<Updater<S>>(experiment, registry, *network, total_steps());
    require_recorded_blocks();
    require_blocks_to_start();
    remark_on_batch();
    remark_on_directions();
    remark_on_length();
    remark_on_splits(loaded);
    remark_on_data(loaded);
  }
  if (extent == Extent::sizes) {
    if (!experiment.model.init_file.empty()) network->allocate();  // require_memory() has checked that it fits
    start_from_file();
    return;
  }
  if (options.ranks) network->share(*options.ranks);
  if (trained) {
    network->allocate();
    return;
  }
  const double limit = experiment.train.step_limit;
  Watchdog watchdog(limit, [limit, first = !options.ranks || options.ranks->first()] {
    if (!first)
      std::this_thread::sleep_for(std::chrono::seconds(3));  // the first rank reports it before mpirun ends the others
    end_in_any_case();
    say("stiefel: the initial values have not been set within train.step_limit = {} s: a plugin hangs, or the limit is "
        "too small\n",
        limit);
    std::_Exit(int(Exit::plugin));
  });
  watchdog.watch([&] {
    initialise();
    start_from_file();
    updater->find_averaged(*network);
    network->refresh();
  });
}

template <class S>
void Session<S>::make_tasks_of_lengths(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options) {
  const std::vector<Index>& lengths = experiment.record.lengths;
  if (lengths.empty()) return;
  experiment.located("record.lengths", [&] {
    if (std::ranges::none_of(whole_numbers(loaded, registry),
                             [](const auto& key) { return key.path == "task.length"; }))
      throw Error(
          fmt::format("record.lengths: the task {} has no option `length`; remove this", experiment.task.plugin));
    for (const Index length : lengths) {
      const std::string setting = fmt::format("task.length={}", length);
      const auto other = [&] {
        try {
          return load_experiment_text(loaded.resolved_yaml, "", {setting}, registry);
        } catch (const Error& error) {
          const std::string what = error.what();
          const std::size_t begin = what.find("task.length");
          throw Error("record.lengths: " +
                      (begin == what.npos ? what : what.substr(begin, what.find('\n', begin) - begin)));
        }
      }();
      tasks_of_lengths.push_back(make_task<S>(other.experiment, registry, options, Extent::training));
    }
  });
}

/// Adds the .npy files of initial values, which are data of the run, too.
template <class S> void Session<S>::add_files_of_model(const LoadedExperiment& loaded) {
  for (const auto& [key, value] : flat_configuration(loaded.resolved_yaml, "the experiment")) {
    if (!key.starts_with("model.") || !(key.ends_with(".file") || key.ends_with("_file")) || value.empty()) continue;
    const std::string path = fs::absolute(value).lexically_normal();
    if (is_part(experiment, path)) continue;
    if (fs::is_directory(path))
      throw Error(fmt::format("{}{}: {} is a folder; name a file in it", experiment.place_of(key), key, path));
    if (!fs::is_regular_file(path))
      throw Error::missing(
          fmt::format("{}{}: there is no file {}{}", experiment.place_of(key), key, path, home_hint(value)));
    files.push_back({key, value});
    files_of_model_.emplace_back(key, value);
  }
}

template <class S> void Session<S>::initialise() {
  try {
    network->initialise(std::uint64_t(experiment.seed));
  } catch (const Error& error) {
    std::vector<std::string> keys;
    for (const auto& [key, file] : files_of_model_)
      if (names(error.what(), file)) keys.push_back(key);
    if (keys.empty()) throw;
    throw Error(fmt::format("{}{}: {}", experiment.place_of(keys[0]), fmt::join(keys, " or "), error.what()), error);
  }
}

template <class S> bool Session<S>::starts_from_file(const std::string& block) const {
  return std::ranges::any_of(experiment.model.init_blocks,
                             [&](const std::string& pattern) { return matches_block(pattern, block); });
}

template <class S> void Session<S>::start_from_file() {
  const std::string& file = experiment.model.init_file;
  if (file.empty()) return;
  const std::string key = experiment.place_of("model.init_file") + "model.init_file: ";
  try {
    read_blocks(fs::canonical(file), *network, [&](const std::string& name) { return starts_from_file(name); });
  } catch (const Misfit& error) {
    throw Error(fmt::format("{}{}. Choose blocks that fit with model.init_blocks", key, error.what()));
  } catch (const Error& error) {
    throw Error(key + error.what(), error);
  }
}

template <class S> void Session<S>::require_blocks_to_start() const {
  const Layout& layout = network->layout();
  if (!experiment.model.init_file.empty() && experiment.model.init_blocks.empty())
    throw Error(experiment.place_of("model.init_blocks") +
                "model.init_blocks is empty, so model.init_file would have no effect; name blocks, or leave it out");
  for (const std::string& pattern : experiment.model.init_blocks)
    if (std::ranges::none_of(layout.blocks(),
                             [&](const BlockSpec& block) { return matches_block(pattern, block.name); }))
      throw Error(fmt::format("{}model.init_blocks: there is no parameter block \"{}\"; the blocks are {}",
                              experiment.place_of("model.init_blocks"), pattern, layout.names()));
}

template <class S> void Session<S>::require_recorded_blocks() const {
  const Layout& layout = network->layout();
  for (const auto& [name, period] : experiment.record.blocks)
    if (layout.find(name) < 0)
      throw Error(fmt::format("{}record.blocks: there is no parameter block \"{}\"; the blocks are {}",
                              experiment.place_of("record.blocks." + name), name, layout.names()));
    else if (layout.block(layout.find(name)).size == 0)
      throw Error(fmt::format("{}record.blocks: the block \"{}\" has no parameter in this network; remove it",
                              experiment.place_of("record.blocks." + name), name));
}

template <class S> void Session<S>::remark_on_batch() {
  const Index batch = experiment.train.batch, held = task->shape().training_set;
  if (held > 0 && batch > held)
    remarks.push_back(
        fmt::format("{}train.batch is {}, but the training set has {}: every batch holds some of them more than once",
                    experiment.place_of("train.batch"), batch, counted(held, "sequence")));
}

template <class S> void Session<S>::remark_on_directions() {
  if (network->model().bidirectional() && task->shape().readout == ReadoutKind::last)
    remarks.push_back(
        fmt::format("{}model.bidirectional: at the last step, where the output is read, the reverse direction of the "
                    "top layer has read only the last input, and its recurrent map has no effect",
                    experiment.place_of("model.bidirectional")));
}

/// Remarks on settings that would act only after the end of the training.
template <class S> void Session<S>::remark_on_length() {
  const Index steps = total_steps(), period = evaluation_period(), evaluations = (steps - 1) / period + 1;
  const auto remark = [&](const std::string& key, const std::string& sentence) {
    remarks.push_back(fmt::format("{}{} has no effect: {}", experiment.place_of(key), key, sentence));
  };
  const std::string few = "the training has only " + counted(evaluations, "evaluation");
  if (const Index patience = experiment.train.patience; patience > 0 && patience >= evaluations - 1)
    remark("train.patience", few);
  for (std::size_t g = 0; g < experiment.optimizer.size(); ++g) {
    const ScheduleOptions& schedule = experiment.optimizer[g].schedule;
    if (schedule.kind == "step" && schedule.every >= steps - schedule.warmup)
      remark(experiment.key_of_group(g, "schedule.every"), "the training has only " + counted(steps, "step"));
    if (schedule.kind == "plateau" && schedule.patience >= evaluations - 2)
      remark(experiment.key_of_group(g, "schedule.patience"), few);
  }
}

/// Remarks on splits of the user's own files that have the same file, files with the same content, or, if they are not
/// too many, most of the sequences of training.
template <class S> void Session<S>::remark_on_splits(const LoadedExperiment& loaded) {
  const std::map<std::string, std::string> values = flat_configuration(loaded.resolved_yaml, "the experiment");
  const auto same_content = [](const fs::path& a, const fs::path& b) {
    return fs::file_size(a) == fs::file_size(b) && sha256_of_file(a) == sha256_of_file(b);
  };
  const std::size_t others = remarks.size();
  std::vector<std::pair<std::string, fs::path>> before;
  for (const std::string split : {"data", "train", "validation", "test"})
    for (const std::string& key : {"task." + split, "task." + split + ".file"}) {
      const auto value = values.find(key);
      if (value == values.end() || value->second.empty()) continue;
      const auto file = std::ranges::find_if(
          files, [&](const DataFile& data) { return data.name == value->second || data.name == split; });
      if (file == files.end()) continue;
      for (const auto& [other, path] : before) {
        const bool same = fs::equivalent(file->path, path);
        if (!same && !same_content(file->path, path)) continue;
        remarks.push_back(fmt::format("{0}task.{1} {2} task.{3}: its score says little about new data",
                                      experiment.place_of(key), split,
                                      same ? "is the same file as" : "has the same content as", other));
        break;
      }
      before.emplace_back(split, file->path);
    }
  constexpr Index most = 20'000;
  const TaskShape shape = task->shape();
  if (before.empty() || remarks.size() > others || shape.streams || shape.training_set < 1 || shape.training_set > most)
    return;
  const std::set<std::size_t> train = sequences_of(*task, Split::train);
  for (const Split split : {Split::validation, Split::test}) {
    const std::set<std::size_t> held = sequences_of(*task, split);
    const auto shared = std::size_t(std::ranges::count_if(held, [&](std::size_t s) { return train.contains(s); }));
    if (2 * shared > held.size())
      remarks.push_back(
          fmt::format("{}{} of the {} different sequences of the {} split are also in training: its score says little "
                      "about new data",
                      experiment.place_of("task"), shared, held.size(), name_of(split)));
  }
}

/// The task's remarks on options that the experiment leaves at their defaults.
template <class S> void Session<S>::remark_on_data(const LoadedExperiment& loaded) {
  for (const Remark& remark : task->remarks())
    if (std::ranges::count(loaded.origins, "task." + remark.option + "=default"))
      remarks.push_back(experiment.place_of("task") + remark.sentence);
}

template <class S> Index Session<S>::total_steps() const {
  const TrainOptions& train = experiment.train;
  const Index batches = task->batches(Split::train), most = std::numeric_limits<Index>::max();
  if (train.epochs > (most - train.accumulate) / batches)
    throw Error(fmt::format("{}train.epochs = {} of {} batches are more steps than can be counted; give fewer",
                            experiment.place_of("train.epochs"), train.epochs, batches));
  if (train.steps > most / train.accumulate)
    throw Error(fmt::format("{}train.steps = {} of {} batches are more batches than can be counted; give fewer",
                            experiment.place_of("train.steps"), train.steps, train.accumulate));
  return train.steps > 0 ? train.steps : steps_of(train.epochs * batches);
}

template <class S> Index Session<S>::evaluation_period() const {
  return experiment.train.evaluate_every > 0 ? experiment.train.evaluate_every : steps_of(task->batches(Split::train));
}

template <class S> double Session<S>::epochs(Index batches) const {
  const Index batch = experiment.train.batch, held = task->shape().training_set;
  return held > 0 && batch > held ? double(batches) * double(batch) / double(held)
                                  : double(batches) / double(task->batches(Split::train));
}

template <class S> Index Session<S>::steps_of(Index batches) const {
  return (batches + experiment.train.accumulate - 1) / experiment.train.accumulate;
}

template <class S> void Session<S>::refresh(Index step) {
  Workers::Lent idle(&workers);
  if (experiment.train.weight_noise > 0) {
    noisy_ = network->values();
    Rng rng(std::uint64_t(experiment.seed), "weight_noise", std::uint64_t(step));
    const Blocks<S> noisy = network->layout().all(noisy_.data());
    for (Index i = 0; i < network->layout().count(); ++i)
      if (const BlockSpec& block = network->layout().block(i);
          updater->moves(i) && block.takes_noise && block.manifold == Manifold::flat)
        for (S& x : noisy[i]) x += S(experiment.train.weight_noise * rng.normal());
    network->refresh(noisy_);
  } else {
    network->refresh();
  }
}

template <class S> UpdateNorms Session<S>::update(Index step, PassResult& pass) {
  if (experiment.train.weight_noise > 0) {
    Workers::Lent idle(&workers);
    network->refresh();
    pass.penalty = network->regularise();
  }
  return updater->step(step, *network, workers);
}

template <class S> PassRequest Session<S>::request(Index step, Index number) const {
  return {.regularise = experiment.train.weight_noise == 0,
          .summed = experiment.train.loss == "sum",
          .seed = std::uint64_t(experiment.seed),
          .dropout = fmt::format("{}/{}", step, number)};
}

template <class S> PassResult Session<S>::pass(const Batch<S>& batch, Index step, const PassRequest& request) {
  refresh(step);
  return network->train(batch, workers, request);
}

template <class S> Scores Session<S>::evaluate(Split split, Watchdog& watchdog, const Evaluation& evaluation) {
  Scores scores = evaluate(*task, split, watchdog, evaluation);
  if (scores.empty()) return scores;
  for (const auto& other : tasks_of_lengths) {
    const Scores found = evaluate(*other, split, watchdog, {.stopped = evaluation.stopped});
    if (evaluation.stopped && evaluation.stopped()) return {};
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    scores.by_length.push_back(found.empty() ? std::vector<double>(scores.values.size(), nan) : found.values);
  }
  return scores;
}

template <class S>
Scores Session<S>::evaluate(const Task<S>& of, Split split, Watchdog& watchdog, const Evaluation& evaluation) {
  const Index count = of.batches(split);
  if (count == 0) return {};
  watchdog.watch([&] { network->refresh(); });
  const Matrix<S> carried = network->take_state();
  Prefetch<S> batches(of, split, 0, count, watchdog);
  const std::vector<Metric> metrics = of.metrics();
  std::vector<Ratio> sums(1 + count_of_parts(metrics));
  for (Index i = 0; i < count; ++i) {
    if (evaluation.stopped && evaluation.stopped()) {
      network->give_state(carried);
      return {};
    }
    const Batch<S>* batch = nullptr;
    const PassResult result = watchdog.watch([&] {
      batch = &batches.next();
      Matrix<S> outputs;
      PassResult passed = network->evaluate(of, *batch, workers, evaluation.outcome ? &outputs : nullptr);
      if (evaluation.outcome && std::isfinite(passed.loss)) of.report(i, *batch, outputs, *evaluation.outcome);
      return passed;
    });
    if (!std::isfinite(result.loss)) {
      network->give_state(carried);
      if (evaluation.not_finite) evaluation.not_finite(*batch, result.loss);
      return {};
    }
    sums[0].sum += result.loss * result.weight;
    sums[0].weight += result.weight;
    for (std::size_t m = 0; m < result.metrics.size(); ++m)
      sums[m + 1].sum += result.metrics[m].sum, sums[m + 1].weight += result.metrics[m].weight;
  }
  network->give_state(carried);
  Scores scores;
  scores.values.push_back(sums[0].sum / sums[0].weight);
  std::span<const Ratio> rest = std::span(sums).subspan(1);
  for (const double value : metric_values(metrics, rest)) scores.values.push_back(value);
  if (!experiment.record.analysis.empty()) {
    const std::vector<double> found = watchdog.watch([&] { return lyapunov_summary(*network, of, split, workers); });
    scores.values.insert(scores.values.end(), found.begin(), found.end());
    network->give_state(carried);
  }
  for (const Metric& metric : metrics) {
    if (metric.by_step)
      for (std::vector<double>& curve = scores.by_step.emplace_back();
           const Ratio& part : rest.first(std::size_t(metric.parts)))
        curve.push_back(part.sum / part.weight);
    rest = rest.subspan(std::size_t(metric.parts));
  }
  return scores;
}

template <class S> std::string Session<S>::baselines_text(int digits) const {
  std::string text;
  const auto add = [&](const std::string& name, double loss) {
    if (std::isfinite(loss)) text += fmt::format("{}{}: {:.{}g}", text.empty() ? "" : ", ", name, loss, digits);
  };
  add("constant predictor", task->baseline());
  for (const Baseline& other : task->baselines()) add(other.name, other.loss);
  return text;
}

template <class S> std::string Session<S>::broken_block() {
  for (const Blocks<S>& blocks : {network->gradient(), network->theta()})
    for (Index i = 0; i < blocks.count(); ++i)
      for (S x : blocks[i])
        if (!std::isfinite(x)) return network->layout().block(i).name;
  return "";
}

template std::unique_ptr<Task<float>> make_task(const Experiment&, Registry&, const RunOptions&, Extent);
template std::unique_ptr<Task<double>> make_task(const Experiment&, Registry&, const RunOptions&, Extent);
template struct Session<float>;
template struct Session<double>;

}  // namespace stiefel
