// The keys of an experiment, their ranges and meanings.
#include "config/experiment.hpp"

#include "base/file_name.hpp"
#include "config/config_schema.hpp"

namespace stiefel {

void Initialiser::describe(Schema& s, const std::string& prefix) {
  s.field(prefix + "init", kind, "initial values")
      .one_of({"glorot_uniform", "glorot_normal", "kaiming", "uniform", "normal", "hidden_uniform", "orthogonal",
               "identity", "constant", "zero", "file"});
  s.field(prefix + "scale", scale,
          "factor of the initial values; uniform is U(±1), normal N(0, 1) and constant 1 times this");
  s.field(prefix + "file", file, ".npy file with the initial values, for `init: file`");
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
          .at_least(0);
      input.embedding_init.describe(inner);
    }
  };
  init.describe(s);
  s.field("bias", bias, "whether V x + b includes the bias b");
  bias_init.describe(s, "bias_");
  Embedding embedding{*this};
  s.section("embedding", embedding, "learned vectors for the symbols of a task");
}

void ReadoutOptions::describe(Schema& s) {
  init.describe(s);
  s.field("bias", bias, "whether the readout has a bias");
  bias_init.describe(s, "bias_");
  s.field("rows", rows, "rows of the state that are read out; real: without imaginary parts").one_of({"all", "real"});
}

void InitialStateOptions::describe(Schema& s) {
  s.shorthand("kind");
  s.field("kind", kind, "zero, learned, or carried over from the batch before (streaming tasks)")
      .one_of({"zero", "learned", "carried"});
  init.describe(s);
}

void ModelOptions::describe_size(Schema& s) { s.field("hidden", hidden, "hidden units n").at_least(1).required(); }

void ModelOptions::describe(ConfigSchema& s) {
  s.plugin("cell", cell, Role::cell, "one step of the recurrence", "elman",
           [this](ConfigSchema& c) { describe_size(c); });
  s.plugin("recurrent", recurrent, Role::parametrisation, "the recurrent map, for every map of the cell", "householder",
           [this](ConfigSchema& c) { recurrent.describe(c); });
  s.maps("maps", maps, "other parametrisations for single maps of the cell, by name: {forget: {plugin: dense}}");
  s.section("input", input, "the input map V x + b");
  s.section("readout", readout, "the output map");
  s.section("initial_state", initial_state, "the state before the first step");
}

void ScheduleOptions::describe(Schema& s) {
  s.shorthand("kind");
  s.field("kind", kind, "how the rate changes").one_of({"constant", "step", "plateau"});
  s.field("factor", factor, "factor by which the rate is multiplied").more_than(0).at_most(1);
  s.field("every", every, "step: number of optimizer steps between changes").at_least(1).units("steps");
  s.field("patience", patience, "plateau: number of evaluations without improvement to tolerate").at_least(0);
}

void OptimizerGroup::describe(Schema& s) {
  s.field("blocks", blocks,
          "blocks of this group, a pattern with * and ?; the first group that matches takes the block");
  if (frozen) return;
  s.field("rate", rate, "learning rate").at_least(0);
  s.field("weight_decay", weight_decay, "λ of the penalty λ‖θ‖²").at_least(0);
  s.field("composite", composite, "for recurrent maps: the penalty is λ‖W‖² on the matrix, not on its parameters");
  s.section("schedule", schedule, "how the rate changes during training");
}

void ClipOptions::describe(Schema& s) {
  s.shorthand("kind");
  s.field("kind", kind, "clipping of the gradient: of each entry, or of the norm of all of them together")
      .one_of({"none", "elementwise", "norm"});
  s.field("bound", bound, "largest entry or norm").more_than(0);
}

void TrainOptions::describe(Schema& s) {
  s.field("batch", batch, "sequences in a batch").at_least(1).at_most(1e9);
  s.field("steps", steps, "length of the training; either this or epochs").at_least(0).units("optimizer steps");
  s.field("epochs", epochs, "length of the training; either this or steps")
      .at_least(0)
      .units("passes over the training data");
  s.field("evaluate_every", evaluate_every, "period of the evaluation on the validation split; 0: once an epoch")
      .at_least(0)
      .units("steps");
  s.section("clip", clip, "clipping of the gradient");
  s.field("message_clip", message_clip, "bound of each entry of the gradient that is passed back through time; 0: none")
      .at_least(0);
  s.field("weight_noise", weight_noise, "standard deviation of the noise on the weights; 0: none").at_least(0);
  s.field("patience", patience, "evaluations without improvement before training stops; 0: it never stops early")
      .at_least(0);
  s.field("target", target, "value of the quantity `select` that is good enough to stop training; 0: none").at_least(0);
  s.field("select", select, "quantity that selects the best model: loss or a metric of the task");
  s.field("select_on", select_on,
          "split on which it is measured; best_test is for papers that report the best test value")
      .one_of({"validation", "best_test"});
  s.field("chunk", chunk, "time steps processed at once; 0: chosen from the shape").at_least(0).units("steps");
  s.field("recompute", recompute,
          "recompute hidden states in the backward pass instead of keeping them: the same results with the memory of "
          "one chunk, in a "
          "third more time; auto: when they would take more than a quarter of the machine's memory")
      .one_of({"auto", "always", "never"});
  s.field(
       "step_limit", step_limit,
       "time limit of a step or a batch of an evaluation, after which the run ends, e.g. when a plugin hangs; 0: none")
      .at_least(0)
      .units("s");
  s.check(steps == 0 || epochs == 0, "epochs", "give either train.steps or train.epochs, not both");
  s.check(steps > 0 || epochs > 0, "steps", "give one of train.steps and train.epochs");
}

void RecordOptions::describe(ConfigSchema& s) {
  const auto period = [&s](const char* key, Index& value, const char* meaning) {
    s.field(key, value, meaning).at_least(0).units("steps");
  };
  period("loss", loss, "period of the training loss; 0: never, here and for all below");
  period("spectrum", spectrum, "singular values and eigenvalues of the recurrent maps");
  period("gradient_norms", gradient_norms,
         "norms of dL/dh_t, of the whole loss and of the last step alone, and of h_t, at each time step");
  period("orthogonality", orthogonality, "distance of the recurrent maps from orthogonality");
  period("scalars", scalars, "values that plugins record");
  s.periods("blocks", blocks, "periods by name of a block of parameters: {activation.slope: 100}");
}

void CheckpointOptions::describe(Schema& s) {
  s.field("every", every, "period at which all that is needed to resume is stored as checkpoints/step_N.h5; 0: none")
      .at_least(0)
      .units("steps");
  s.field("minutes", minutes, "the same, after this much time without one; 0: never").at_least(0);
  s.field("keep", keep, "number of these files to keep").at_least(1);
  s.field("keep_every", keep_every, "also keep those of steps that are multiples of this number; 0: none")
      .at_least(0)
      .units("steps");
}

void Experiment::describe(ConfigSchema& s) {
  s.field("name", name, "name of the run's folder").required();
  const std::string name_fault = file_name_fault(name);
  s.check(name_fault.empty(), "name", name_fault);
  s.field("seed", seed, "every random number follows from it").at_least(0);
  s.field("scalar", scalar, "type of all numbers of the network").one_of({"float32", "float64"});
  s.field("threads", threads, "worker threads; 0: one for each core").at_least(0).at_most(1024);
  s.field("plugins", plugins, "additional plugin files, or folders of them");
  s.plugin("task", task, Role::task, "the task to learn", "adding");
  s.mapping("model", model, "the network");
  s.groups("optimizer", optimizer, "the optimizer, or a list of {blocks: pattern, plugin: …}");
  s.section("train", train, "the training");
  s.mapping("record", record, "what is recorded, and how often");
  s.section("checkpoint", checkpoint, "what is stored in addition to the networks of the best and of the last step");
}

}  // namespace stiefel
