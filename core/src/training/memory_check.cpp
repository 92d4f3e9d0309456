#include "training/memory_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/machine.hpp"
#include "engine/guarded_task.hpp"
#include "engine/memory.hpp"

namespace stiefel {
namespace {

constexpr Index usual = 128;  // up to this size, no key is blamed

int ranks_of(const RunOptions& options) { return options.ranks ? options.ranks->count() : 1; }

bool may_be_a_size(const std::string& key) {
  return key.starts_with("model.") || key.starts_with("task.") || key == "train.batch" || key == "train.chunk";
}

/// Returns the bytes that training takes with this value of `key`. Throws Error if it is not valid.
template <class S> double bytes_with(const WholeNumber& key, Index value, const LoadedExperiment& loaded,
                                     Registry& registry, const RunOptions& options, const Task<S>& task) {
  const LoadedExperiment other =
      load_experiment_text(loaded.resolved_yaml, "", {fmt::format("{}={}", key.path, value)}, registry);
  const Experiment& experiment = other.experiment;
  std::unique_ptr<Task<S>> made;
  if (key.path.starts_with("task.")) {
    const TaskContext context{std::uint64_t(experiment.seed), experiment.train.batch, options.data_directory};
    made = std::make_unique<GuardedTask<S>>(experiment.task.make<Task<S>>(registry, &context));
  }
  const Model<S> model(experiment, registry, made ? made->shape() : task.shape());
  return training_bytes(model, experiment, ranks_of(options));
}

/// Returns the key that frees the most memory when divided by 1,000, but not below its default or `usual`; nothing if
/// none does.
template <class S> std::optional<WholeNumber> key_to_change(const LoadedExperiment& loaded, Registry& registry,
                                                            const RunOptions& options, const Task<S>& task,
                                                            double bytes) {
  std::optional<WholeNumber> worst;
  for (const WholeNumber& key : whole_numbers(loaded, registry)) {
    const Index less = std::max({key.value / 1000, key.fallback, usual});
    if (!may_be_a_size(key.path) || less >= key.value) continue;
    try {
      const double rest = bytes_with(key, less, loaded, registry, options, task);
      if (rest < bytes) bytes = rest, worst = key;
    } catch (const Error&) {  // the smaller value is not valid
    }
  }
  return worst;
}

}  // namespace

template <class S> void require_memory(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
                                       const Task<S>& task, const Model<S>& model) {
  const double bytes = training_bytes(model, loaded.experiment, ranks_of(options));
  const int on_host = options.ranks ? options.ranks->on_host() : 1;
  const MemoryLimit limit = memory_limit("/", on_host);
  const int sharing = limit.of_process ? 1 : on_host;
  if (sharing * bytes <= limit.bytes) return;
  const std::string sentence =
      fmt::format("training would take {} of memory or more{}, but {} {}", bytes_text(sharing * bytes),
                  sharing > 1 ? fmt::format(" in its {} processes on this host", sharing) : "", limit.source,
                  bytes_text(limit.bytes));
  const auto key = key_to_change(loaded, registry, options, task, bytes);
  if (!key) throw Error(sentence + "; make the batch, the network or the sequences smaller", Exit::exhausted);
  throw Error(fmt::format("{}{} is {}: {}; choose a smaller value", loaded.experiment.place_of(key->path), key->path,
                          key->value, sentence),
              Exit::exhausted);
}

template void require_memory(const LoadedExperiment&, Registry&, const RunOptions&, const Task<float>&,
                             const Model<float>&);
template void require_memory(const LoadedExperiment&, Registry&, const RunOptions&, const Task<double>&,
                             const Model<double>&);

}  // namespace stiefel
