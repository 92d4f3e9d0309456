// The keys of an experiment, their ranges and meanings.
#include "config/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <stiefel/cell.hpp>

#include "base/file_name.hpp"
#include "config/config_schema.hpp"

namespace stiefel {
namespace {

/// Initial values of what the network has only if `holds`; else the keys have no effect.
void describe_if(bool holds, std::string_view where, Schema& s, Initialiser& init, const std::string& prefix = "") {
  std::string& only_where = static_cast<ConfigSchema&>(s).own_section().only_where;
  if (!holds) only_where = where;
  init.describe(s, prefix);
  only_where.clear();
}

}  // namespace

void Initialiser::describe(Schema& s, const std::string& prefix) {
  s.field(prefix + "init", kind, "initial values")
      .one_of({"glorot_uniform", "glorot_normal", "kaiming", "uniform", "normal", "hidden_uniform", "orthogonal",
               "identity", "constant", "zero", "file"});
  s.field(
      prefix + "scale", scale,
      "number that multiplies the initial values, which are U(±1) for uniform, N(0, 1) for normal and 1 for constant");
  s.field(prefix + "file", file, ".npy file with the initial values, for `" + prefix + "init: file`")
      .only_if(kind == "file", "`" + prefix + "init: file`");
  s.check(kind != "file" || !file.empty(), prefix + "file",
          "names the .npy file that `" + prefix + "init: file` reads");
}

void RecurrentMap::describe(Schema& s) {
  s.field("route", route,
          "how products are formed: by the map's own algorithm, by an explicit matrix, or whichever is faster")
      .one_of({"auto", "structured", "dense"});
}

void InputOptions::describe(Schema& s) {
  struct Embedding {
    InputOptions& input;
    void describe(Schema& inner) {
      inner.field("size", input.embedding_size, "size of the vector for each symbol; 0: none, symbols are one-hot")
          .at_least(0)
          .at_most(1e8);
      describe_if(input.embedding_size > 0, "a `size` above 0", inner, input.embedding_init);
    }
  };
  init.describe(s);
  s.field("bias", bias, "whether V x + b includes the bias b");
  describe_if(bias, "`bias: true`", s, bias_init, "bias_");
  Embedding embedding{*this};
  s.section("embedding", embedding, "learned vectors for the symbols of a task");
}

void ReadoutOptions::describe(Schema& s) {
  init.describe(s);
  s.field("bias", bias, "whether the readout has a bias");
  describe_if(bias, "`bias: true`", s, bias_init, "bias_");
  s.field("rows", rows, "rows of the state that are read out; real: without imaginary parts").one_of({"all", "real"});
}

void InitialStateOptions::describe(Schema& s) {
  s.shorthand("kind");
  s.field("kind", kind, "zero, learned, or carried over from the previous batch of the epoch (streaming tasks)")
      .one_of({"zero", "learned", "carried"});
  describe_if(kind == "learned", "`kind: learned`", s, init);
}

void LayerOptions::describe_size(Schema& s) {
  s.field("hidden", hidden, "hidden units n").at_least(1).at_most(1e8).required();
}

void LayerOptions::describe_recurrence(ConfigSchema& s) {
  path = s.own_section().path;
  s.plugin("cell", cell, Role::cell, "one step of the recurrence", "elman",
           [this](ConfigSchema& c) { describe_size(c); });
  s.plugin(
      "recurrent", recurrent, Role::parametrisation,
      "the recurrent map, for every map of the cell; required, except that a cell without maps, such as lru, has none",
      "householder", [this](ConfigSchema& c) { recurrent.describe(c); }, false);
  s.maps("maps", maps, "other parametrisations for individual maps of the cell, by name: {forget: {plugin: dense}}");
  if (s.reads()) check_maps(s);
  s.section("input", input, "the input map V x + b; V has the rows of all gates of the cell");
}

void LayerOptions::describe_surroundings(ConfigSchema& s) {
  s.section("initial_state", initial_state, "the state before the first step");
  // The keys of a list's entries have always been part of the ID.
  const auto declared = [&]<class T>(Field<T>&& field) -> Field<T> {
    return path == "model" ? field.not_in_id_at_default() : field;
  };
  declared(s.field("norm", norm,
                   "normalizes what a layer reads from the layer below it, over the units, with a learned scale and, "
                   "for `layer`, a learned shift"))
      .one_of({"none", "layer", "rms"});
  declared(s.field("gate", gate, "acts on a layer's outputs h; glu: (G1 h + c1) * sigmoid(G2 h + c2)"))
      .one_of({"none", "glu"});
  declared(s.field("dropout", dropout,
                   "probability, in steps of 1/65536, that training sets an output of a layer to zero; the others are "
                   "scaled up"))
      .at_least(0)
      .less_than(1);
  declared(s.field("residual", residual, "whether a layer adds its outputs to those of the layer below it"));
  declared(s.field("bidirectional", bidirectional,
                   "whether a second cell reads the sequence backward; a layer then outputs the states of both"));
}

/// The first layer reads the task's input.
void LayerOptions::check_first(ConfigSchema& s) const {
  constexpr const char* sentence = "acts between two layers, and below this one there is none; remove it";
  if (norm != "none") s.fault("norm", sentence);
  if (residual) s.fault("residual", sentence);
}

void ModelOptions::describe(ConfigSchema& s) {
  if (const Node* list = s.given("layers"); list && list->kind == Node::Kind::sequence) {
    layers.clear();
    s.list("layers", "layers from the input to the readout", [this](ConfigSchema& entry) {
      LayerOptions& layer = layers.emplace_back();
      layer.describe_recurrence(entry);
      layer.describe_surroundings(entry);
      if (layers.size() == 1) layer.check_first(entry);
    });
    s.section("readout", readout, "the output map");
    describe_start(s);
    return;
  }
  Index count = 1;
  LayerOptions& layer = layers.front();
  layer.describe_recurrence(s);
  s.section("readout", readout, "the output map");
  layer.describe_surroundings(s);
  describe_start(s);
  s.field("layers", count, "number of layers of this kind, each with its own parameters; or a list of different layers")
      .at_least(1)
      .at_most(1000)
      .not_in_id_at_default();
  if (count == 1 && !s.given("layers")) layer.check_first(s);
  layers.resize(std::size_t(std::clamp<Index>(count, 1, 1000)), LayerOptions(layer));
  for (std::size_t i = 1; i < layers.size(); ++i) layers[i].input.embedding_size = 0;  // of the symbols of the task
}

void ModelOptions::describe_start(ConfigSchema& s) {
  constexpr const char* begun = "its training has begun from other parameters";
  s.field("init_file", init_file, "network of another run, such as its checkpoints/best.h5, to start from")
      .not_in_id_at_default()
      .fixed_once_begun(begun);
  s.field("init_blocks", init_blocks, "blocks that `init_file` sets, by patterns with * and ?")
      .only_if(!init_file.empty(), "`init_file`")
      .not_in_id_at_default()
      .fixed_once_begun(begun);
}

/// Whether `recurrent` is there exactly when a map of the cell needs it. A cell that cannot be made yet, e.g. because it
/// needs a complex map, is judged when the network is built.
void LayerOptions::check_maps(ConfigSchema& s) const {
  const bool given = s.given("recurrent") != nullptr;
  if (!cell.entry) {
    if (!given) s.require_plugin("recurrent", Role::parametrisation);
    return;
  }
  if (!cell.entry->create_float) return;  // only described
  std::vector<MapSpec> needed;
  const CellContext context{std::max<Index>(hidden, 1)};
  try {
    const Plugged<Cell<float>> made = cell.make<Cell<float>>(*s.registry(), &context);
    needed = made.call("maps", [&] { return made->maps(); });
  } catch (const Error&) {
    return;
  }
  const auto has_its_own = [&](const MapSpec& map) {
    return std::ranges::find(maps, map.name, &RecurrentMap::name) != maps.end();
  };
  const bool all_have = std::ranges::all_of(needed, has_its_own);
  if (!given && !all_have) s.require_plugin("recurrent", Role::parametrisation);
  if (given && all_have && !needed.empty()) s.remark("recurrent", "has no effect: `maps` names every map of the cell");
  if (given && needed.empty())
    s.fault("recurrent",
            fmt::format(
                "the cell {0} has no recurrent map; remove {1}.recurrent, on the command line by {1}.recurrent=null",
                cell.plugin, path));
}

void ScheduleOptions::describe(Schema& s) {
  s.shorthand("kind");
  s.field("kind", kind, "how the rate changes")
      .one_of({"constant", "step", "exponential", "plateau", "cosine", "one_cycle"});
  s.field("factor", factor, "step, exponential, plateau: factor by which the rate is multiplied")
      .more_than(0)
      .at_most(1)
      .only_if(kind == "step" || kind == "exponential" || kind == "plateau",
               "`kind: step`, `exponential` and `plateau`");
  s.field("every", every, "step, exponential: number of optimizer steps over which the rate changes by `factor`")
      .at_least(1)
      .units("steps")
      .only_if(kind == "step" || kind == "exponential", "`kind: step` and `exponential`");
  s.field("patience", patience, "plateau: number of evaluations without improvement to tolerate")
      .at_least(0)
      .only_if(kind == "plateau", "`kind: plateau`");
  s.field("warmup", warmup, "length of the initial linear rise of the rate, after which the schedule begins; 0: none")
      .at_least(0)
      .units("steps")
      .not_in_id_at_default();
  s.field("final", last_fraction, "cosine, one_cycle: learning rate at the end of training, as a fraction of `rate`")
      .at_least(0)
      .at_most(1)
      .not_in_id_at_default();
  const bool cycle = kind == "one_cycle";
  s.field("start", start, "one_cycle: learning rate at the beginning, as a fraction of `rate`")
      .more_than(0)
      .at_most(1)
      .only_if(cycle, "`kind: one_cycle`")
      .not_in_id_at_default();
  s.field("rise", rise,
          "one_cycle: fraction of the steps in which the rate rises; it falls back to `start` in as many steps, then "
          "to `final`; the momentum stays as it is")
      .more_than(0)
      .at_most(0.5)
      .only_if(cycle, "`kind: one_cycle`")
      .not_in_id_at_default();
  s.check(warmup == 0 || !cycle, "warmup", "one_cycle already begins with a rise; set `warmup: 0`");
  s.check(last_fraction == 0 || cycle || kind == "cosine", "final",
          "a schedule of kind " + kind + " has no final rate; choose `kind: cosine` or set `final: 0`");
  s.check(!cycle || last_fraction <= start, "final",
          "one_cycle ends below the rate at which it starts; choose at most `start`");
}

void OptimizerGroup::describe(Schema& s) {
  s.field("blocks", blocks,
          "blocks of this group, a pattern with * and ?; the first group that matches takes the block")
      .fixed_once_begun("its optimizers have a state for these blocks");
  if (frozen) return;
  s.field("rate", rate, "learning rate").at_least(0);
  s.field("weight_decay", weight_decay,
          "λ of the penalty λ‖θ‖², whose gradient is 2λθ, of all blocks but those of constant norm, such as orthogonal "
          "matrices; with decoupled weight decay, each step instead multiplies θ by 1 − rate·λ")
      .at_least(0);
  s.field("composite", composite, "for recurrent maps: the penalty is λ‖W‖² on the matrix, not on its parameters")
      .only_if(weight_decay > 0, "a `weight_decay` above 0");
  s.section("schedule", schedule, "how the rate changes during training");
}

void ClipOptions::describe(Schema& s) {
  s.shorthand("kind");
  s.field("kind", kind, "what is clipped: nothing, each entry, or the norm of the whole gradient")
      .one_of({"none", "elementwise", "norm"});
  s.field("bound", bound, "largest allowed entry or norm")
      .more_than(0)
      .only_if(kind != "none", "`kind: elementwise` and `norm`");
}

void TrainOptions::describe(ConfigSchema& s) {
  s.field("batch", batch, "sequences per batch").at_least(1).at_most(1e9);
  s.field("accumulate", accumulate,
          "batches per optimizer step, which uses the weighted mean of their gradients; `steps` counts optimizer steps")
      .at_least(1)
      .at_most(1e9)
      .not_in_id_at_default()
      .fixed_once_begun("its place in the data is counted with it");
  s.field("steps", steps, "length of training; 0: `epochs` gives it").at_least(0).units("optimizer steps");
  s.field("epochs", epochs, "length of training; 0: `steps` gives it")
      .at_least(0)
      .units("passes over the training data, of whole batches");
  s.field("evaluate_every", evaluate_every, "interval between evaluations on the validation split; 0: once per epoch")
      .at_least(0)
      .units("steps");
  s.field("loss", loss,
          "what training minimizes: the mean loss of all scored steps, or the sum over the steps of a sequence, in the "
          "mean over sequences; evaluations are means")
      .one_of({"mean", "sum"})
      .not_in_id_at_default();
  s.section("clip", clip, "gradient clipping");
  s.field("message_clip", message_clip,
          "largest allowed entry of the gradient at the cell's pre-activations, in every time step; 0: no limit. Paths "
          "around the nonlinearity, such as the cell state of an LSTM or the states of lru and mingru, are not "
          "limited; with elman's `transition: outside`, the gradient of the state is limited instead.")
      .at_least(0);
  s.field("weight_noise", weight_noise,
          "standard deviation of noise added to all trained parameters, except for those on a manifold, the matrix of "
          "low_rank_projection and the sign u1 of householder; 0: none")
      .at_least(0);
  s.field("average", average,
          "decay of the moving average of the parameters that is evaluated and saved as the best and the last network; "
          "0: none")
      .at_least(0)
      .less_than(1)
      .not_in_id_at_default();
  s.field("patience", patience, "evaluations without improvement before training stops early; 0: never").at_least(0);
  s.field("target", target, "training stops when `select` reaches this value; 0: never").at_least(0);
  s.field("select", select,
          "quantity that selects the best model: loss or a metric of the task; at a length of record.lengths: "
          "accuracy_at_256")
      .fixed_once_begun("its best network was chosen with it");
  s.field("select_on", select_on,
          "split on which `select` is measured; best_test is for papers that report the best test value")
      .one_of({"validation", "best_test"})
      .fixed_once_begun("its best network was chosen with it");
  s.field("chunk", chunk, "time steps processed at once; 0: chosen automatically").at_least(0).units("steps");
  s.field(
       "recompute", recompute,
       "recompute hidden states in the backward pass instead of keeping them: the same results, in the memory of one "
       "chunk and a third more time; auto: if they would take more than a quarter of the memory that this process may "
       "use")
      .one_of({"auto", "always", "never"});
  s.no_effect_on_results();
  s.field("step_limit", step_limit,
          "time limit for one training step or evaluation batch, in case a plugin hangs; 0: none")
      .at_least(0)
      .units("s");
  s.no_effect_on_results();
  s.check(steps == 0 || epochs == 0, "epochs",
          "cannot be combined with train.steps; remove one of them, on the command line with train.steps=null or "
          "train.epochs=null");
  s.check(steps > 0 || epochs > 0, "steps", "give one of train.steps and train.epochs, at least 1");
}

void RecordOptions::describe(ConfigSchema& s) {
  const auto period = [&s](const char* key, Index& value, const char* meaning) {
    s.field(key, value, meaning).at_least(0).units("steps");
  };
  period("loss", loss, "interval of the training loss; 0: never, here and for all below");
  period("spectrum", spectrum, "singular values and eigenvalues of the recurrent maps");
  period("gradient_norms", gradient_norms,
         "norms at each time step: of h_t, and of dL/dh_t for the whole loss and for that of the last step alone");
  period("orthogonality", orthogonality, "distance of the recurrent maps from orthogonality");
  period("scalars", scalars, "values that plugins record");
  s.periods("blocks", blocks, "intervals for blocks of parameters, by name: {activation.slope: 100}");
  s.field("lengths", lengths, "values of the task's option `length` at which each evaluation is repeated")
      .not_in_id_at_default()
      .fixed_once_begun("its results have columns of these lengths");
  s.check(std::set<Index>(lengths.begin(), lengths.end()).size() == lengths.size(), "lengths",
          "must name each length once");
  s.field("analysis", analysis,
          "[lyapunov]: each evaluation also finds the largest, median and smallest Lyapunov exponent along a sequence")
      .not_in_id_at_default()
      .fixed_once_begun("its results have columns of it");
  s.check(analysis.empty() || analysis == std::vector<std::string>{"lyapunov"}, "analysis", "must be [] or [lyapunov]");
}

void CheckpointOptions::describe(Schema& s) {
  s.field("every", every, "interval between the files checkpoints/step_N.h5, from which a run resumes; 0: none")
      .at_least(0)
      .units("steps");
  s.field("minutes", minutes, "also write one this many minutes after the last one; 0: never").at_least(0);
  s.field("keep", keep, "number of these files to keep").at_least(1);
  s.field("keep_every", keep_every, "also keep the files of all steps that are multiples of this; 0: none")
      .at_least(0)
      .units("steps");
}

std::string Experiment::place_of(std::string key) const {
  for (; !key.empty(); key.erase(key.rfind('.') == key.npos ? 0 : key.rfind('.')))
    if (const auto place = places.find(key); place != places.end()) return place->second + ": ";
  return {};
}

std::string Experiment::key_of_group(std::size_t group, const char* key) const {
  const auto first = places.lower_bound("optimizer.0");
  const bool listed = optimizer.size() > 1 || (first != places.end() && first->first.starts_with("optimizer.0"));
  return listed ? fmt::format("optimizer.{}.{}", group, key) : fmt::format("optimizer.{}", key);
}

void Experiment::describe(ConfigSchema& s) {
  s.field("name", name, "name of the run's folder").required();
  const std::string name_fault = file_name_fault(name);
  s.check(name_fault.empty(), "name", name_fault);
  s.field("seed", seed, "seed of all random numbers").at_least(0);
  s.field("scalar", scalar, "number type of the network").one_of({"float32", "float64"});
  s.field("threads", threads, "worker threads; 0: one for each core that this process may use")
      .at_least(0)
      .at_most(1024);
  s.no_effect_on_results();
  s.field("plugins", plugins, "plugin files to load, or folders with them");
  s.no_effect_on_results();
  s.plugin("task", task, Role::task, "the task to learn", "adding");
  s.mapping("model", model, "the network");
  s.groups("optimizer", optimizer, "the optimizer, or a list of {blocks: pattern, plugin: …}");
  s.mapping("train", train, "training");
  s.mapping("record", record, "what is recorded, and how often");
  s.section("checkpoint", checkpoint, "checkpoints to resume from, in addition to the best and the last network");
  s.no_effect_on_results();
}

bool is_beside_options(std::string_view key) {
  static const std::set<std::string, std::less<>> keys = [] {
    Reading description;
    ConfigSchema schema(description, "", nullptr, {});
    LayerOptions().describe_size(schema);
    RecurrentMap().describe(schema);
    OptimizerGroup().describe(schema);
    std::set<std::string, std::less<>> names;
    for (const auto& declaration : schema.own_section().declarations) names.insert(declaration->key);
    return names;
  }();
  return keys.contains(key);
}

}  // namespace stiefel
