// One experiment as given in YAML: every key, its default and its meaning. The tree that is read is in tree.hpp, the
// plugins' own options behind PluginChoice.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <stiefel/entry.hpp>
#include <stiefel/error.hpp>
#include <stiefel/initialiser.hpp>
#include <stiefel/schema.hpp>
#include <stiefel/task.hpp>
#include "host/plugin_call.hpp"
#include "host/process_state.hpp"
#include "host/registry.hpp"

namespace stiefel {

class ConfigSchema;

/// A file that belongs to a method in addition to its plugin, such as a script, and the versions of what it works with.
struct PluginPart {
  std::string path, works_with;
};

/// A node `{plugin: name, …options…}`, read and checked, with its options created.
struct PluginChoice {
  std::string plugin;
  const Entry* entry = nullptr;
  std::shared_ptr<void> options;  // has the plugin's type
  std::vector<PluginPart> parts;
  std::string where;  // "file:3:5: model.cell"

  /// Runs work(), such as the plugin's constructor, whose errors begin with the place of this node, not of an option.
  template <class F> decltype(auto) located(F&& work) const {
    try {
      return std::forward<F>(work)();
    } catch (const Error& error) {
      throw Error(where.empty() ? error.what() : where + ": " + error.what(), error);
    }
  }
  /// The script that defines the method, else the plugin's file.
  std::filesystem::path file_of_method(const Registry& registry) const {
    if (parts.empty()) return registry.file_of(*entry).path;
    return parts.front().path;
  }
  /// An object of the role's base class, e.g. make<Cell<float>>(registry, &context).
  template <class T> Plugged<T> make(const Registry& registry, const void* context = nullptr) const {
    const std::filesystem::path file = file_of_method(registry);
    const Confined here(plugin, "in its constructor", file);
    return {guarded("create", plugin, file, [&] { return created<T>(*entry, options.get(), context); }), plugin, file};
  }
  /// New sequences for a trained network, in a file in the format of this task's data; null for another format.
  template <class S>
  Plugged<SequenceReader<S>> open(const Registry& registry, const Trained& trained, const std::string& data) const {
    const std::filesystem::path& file = registry.file_of(*entry).path;
    const auto open = std::is_same_v<S, float> ? entry->open_float : entry->open_double;
    if (!open) return {};
    void* reader = guarded("open", plugin, file, [&] { return open(options.get(), trained, data); });
    return {std::unique_ptr<SequenceReader<S>>(static_cast<SequenceReader<S>*>(reader)), plugin, file};
  }
};

struct RecurrentMap : PluginChoice {
  std::string name;            // of the map in the cell; empty in model.recurrent
  std::string route = "auto";  // auto structured dense

  void describe(Schema& s);
};

struct InputOptions {
  Initialiser init{"glorot_uniform"};
  bool bias = true;
  Initialiser bias_init{"zero"};
  Index embedding_size = 0;  // embedding: {size, init, scale}; 0: none
  Initialiser embedding_init{"normal", 0.01};

  void describe(Schema& s);
};
struct ReadoutOptions {
  Initialiser init{"glorot_uniform"};
  bool bias = true;
  Initialiser bias_init{"zero"};
  std::string rows = "all";  // all | real

  void describe(Schema& s);
};
struct InitialStateOptions {
  std::string kind = "zero";  // zero | learned | carried
  Initialiser init{"zero"};

  void describe(Schema& s);
};
/// A cell with its maps, and what stands between it and the layers below and above.
struct LayerOptions {
  PluginChoice cell;  // hidden: units, read in addition to the cell's own options
  Index hidden = 0;
  RecurrentMap recurrent;          // without an entry if the cell has no maps, or `maps` names them all
  std::vector<RecurrentMap> maps;  // overrides by the name of the map: maps: {forget: {plugin: …}}
  InputOptions input;
  InitialStateOptions initial_state;
  std::string norm = "none";  // none | layer | rms
  std::string gate = "none";  // none | glu
  double dropout = 0;
  bool residual = false, bidirectional = false;
  std::string path;  // "model", "model.layers.1"

  void describe_size(Schema& s);  // the keys next to a cell's options
  void describe_recurrence(ConfigSchema& s);
  void describe_surroundings(ConfigSchema& s);
  void check_first(ConfigSchema& s) const;

 private:
  void check_maps(ConfigSchema& s) const;
};

struct ModelOptions {
  std::vector<LayerOptions> layers{1};
  ReadoutOptions readout;
  std::string init_file;                      // network of another run; empty: none
  std::vector<std::string> init_blocks{"*"};  // globs over block names

  void describe(ConfigSchema& s);

 private:
  void describe_start(ConfigSchema& s);
};

struct ScheduleOptions {  // schedule: constant | {kind: step, factor: 0.5, every: 1000} | {kind: plateau, factor: 0.3,
                          // patience: 0} | {kind: cosine, warmup: 500, final: 0.01}
  std::string kind = "constant";
  double factor = 0.5;
  Index every = 1000;        // step, exponential: optimizer steps
  Index patience = 0;        // plateau: number of evaluations without improvement to tolerate
  Index warmup = 0;          // optimizer steps
  double last_fraction = 0;  // cosine, one_cycle: rate at the end, as a fraction
  double start = 0.1;        // one_cycle
  double rise = 0.45;        // one_cycle: fraction of the steps

  void describe(Schema& s);
};
struct OptimizerGroup : PluginChoice {
  std::string blocks = "*";  // glob over block names; first match wins
  bool frozen = false;       // plugin: frozen
  double rate = 1e-3;
  double weight_decay = 0;  // λ of λ‖θ‖²: adds 2λθ to the gradient; with composite λ‖W‖²; decoupled: θ ← (1 − rate·λ)θ
  bool composite = false;
  ScheduleOptions schedule;

  void describe(Schema& s);
};

struct ClipOptions {  // clip: none | {kind: elementwise, bound: 1} | {kind: norm, bound: 1}
  std::string kind = "none";
  double bound = 1;

  void describe(Schema& s);
};
struct TrainOptions {
  Index batch = 50;
  Index accumulate = 1;       // batches of an optimizer step
  Index steps = 0;            // optimizer steps; or
  Index epochs = 0;           // passes over the training split; exactly one of the two
  Index evaluate_every = 0;   // steps; 0: once an epoch
  std::string loss = "mean";  // mean | sum over the steps of a sequence
  ClipOptions clip;
  double message_clip = 0;      // elementwise bound of the back-propagated message; 0: none
  double weight_noise = 0;      // standard deviation
  double average = 0;           // decay of the moving average of the parameters; 0: none
  Index patience = 0;           // early stopping: evaluations without improvement; 0: off
  double target = 0;            // early stopping: value of the quantity below that is good enough; 0: off
  double step_limit = 0;        // s; 0: none
  std::string select = "loss";  // validation quantity that selects the best model and stops early: loss or a metric
  std::string select_on = "validation";  // validation | best_test
  Index chunk = 0;                       // steps of a chunk; 0: from the shape
  std::string recompute = "auto";        // auto | always | never

  void describe(ConfigSchema& s);
};
struct RecordOptions {  // periods in steps; 0: never
  Index loss = 10;
  Index spectrum = 100;
  Index gradient_norms = 100;
  Index orthogonality = 100;
  Index scalars = 100;
  std::vector<std::pair<std::string, Index>> blocks;  // {"activation.slope": 100}
  std::vector<Index> lengths;                         // of the task, at which each evaluation is repeated
  std::vector<std::string> analysis;                  // what each evaluation computes besides loss and metrics

  void describe(ConfigSchema& s);
};
struct CheckpointOptions {
  Index every = 1000;
  double minutes = 10;
  Index keep = 2;
  Index keep_every = 0;

  void describe(Schema& s);
};

struct Experiment {
  std::string name;
  Index seed = 1;
  std::string scalar = "float32";    // float32 | float64; see with_scalar()
  std::vector<std::string> plugins;  // further files or folders
  PluginChoice task;
  ModelOptions model;
  std::vector<OptimizerGroup> optimizer;
  TrainOptions train;
  RecordOptions record;
  CheckpointOptions checkpoint;
  Index threads = 0;                          // 0: all cores
  std::map<std::string, std::string> places;  // "file:3:5" of every key that was given, by its path

  /// "file:3:5: " of the key, or else of the nearest node around it that was given.
  STIEFEL_API std::string place_of(std::string key) const;
  /// Path of a key of one entry of `optimizer`.
  STIEFEL_API std::string key_of_group(std::size_t group, const char* key) const;
  /// Runs work(), whose errors begin with the place of the key.
  template <class F> decltype(auto) located(const std::string& key, F&& work) const {
    try {
      return std::forward<F>(work)();
    } catch (const Error& error) {
      throw Error(place_of(key) + error.what(), error);
    }
  }
  /// f(S()) for the type S of all numbers of the network.
  template <class F> decltype(auto) with_scalar(F&& f) const { return scalar == "float64" ? f(double()) : f(float()); }
  void describe(ConfigSchema& s);
};

/// Whether this key next to `plugin` belongs to the experiment and not to the plugin, like `hidden` and `rate`.
bool is_beside_options(std::string_view key);

}  // namespace stiefel
