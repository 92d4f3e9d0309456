/// A task: sequences, targets, a loss, and metrics.
///
/// fill() is pure in (seed, split, index), so batches can be prepared ahead, runs resumed and work split among ranks
/// without any state.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <stiefel/export.hpp>
#include <stiefel/losses.hpp>
#include <stiefel/matrix.hpp>
#include <stiefel/random.hpp>
#include <stiefel/schema.hpp>

namespace stiefel {

enum class Split { train, validation, test };
STIEFEL_API const char* name_of(Split split);

/// dense: input_size numbers per step; symbols: one of input_size symbols per step, or −1 for a zero vector; none: no
/// input at all.
enum class InputKind { dense, symbols, none };
/// every: an output is scored at each step; last: only at the last step of each sequence.
enum class ReadoutKind { every, last };

struct TaskShape {
  InputKind input = InputKind::dense;
  Index input_size = 0;   ///< d
  Index output_size = 0;  ///< k
  ReadoutKind readout = ReadoutKind::every;
  bool labels = false;     ///< targets are class numbers, else output_size numbers
  Index steps = 0;         ///< longest sequence
  bool streams = false;    ///< batch i + 1 continues the sequences of batch i, so the state may be carried over
  Index training_set = 0;  ///< sequences of a finite training set; 0: every sequence is new, or their number is unknown
  /// Targets are later inputs of the sequence, which a network that also reads it backwards would see.
  bool predicts_inputs = false;
};

/// One batch, filled by the task. Sequence b has length(b) steps; entries beyond are ignored.
template <class S> class STIEFEL_API Batch {
 public:
  /// Room for `sequences` sequences of up to `steps` steps; inputs, symbols, targets and labels 0, weights 1, lengths
  /// `steps`.
  void resize(const TaskShape& shape, Index sequences, Index steps);

  Index sequences() const { return sequences_; }
  Index steps() const { return steps_; }
  Index& length(Index b) { return lengths_[place(0, b, true, "length")]; }
  Index length(Index b) const { return lengths_[b]; }

  std::span<S> input(Index t, Index b) {
    return {inputs_.data() + input_rows_ * place(t, b, input_rows_ > 0, "input"), std::size_t(input_rows_)};
  }
  std::int32_t& symbol(Index t, Index b) { return symbols_[place(t, b, !symbols_.empty(), "symbol")]; }
  /// For the readout `last` every t names the same target.
  std::span<S> target(Index t, Index b) {
    return {targets_.data() + target_rows_ * output(t, b, target_rows_ > 0, "target"), std::size_t(target_rows_)};
  }
  std::int32_t& label(Index t, Index b) { return labels_[output(t, b, !labels_.empty(), "label")]; }
  /// Weight of an output in loss and metrics; 0 masks it.
  S& weight(Index t, Index b) { return weights_[output(t, b, true, "weight")]; }

  /// Column t·sequences + b.
  CMat<S> inputs() const { return cmat(inputs_.data(), input_rows_, sequences_ * steps_, input_rows_); }
  const std::vector<std::int32_t>& symbols() const { return symbols_; }
  /// Column scored(t, b).
  CMat<S> targets() const { return cmat(targets_.data(), target_rows_, Index(weights_.size()), target_rows_); }
  const std::vector<std::int32_t>& labels() const { return labels_; }
  const std::vector<S>& weights() const { return weights_; }
  Index scored(Index t, Index b) const { return every_ ? t * sequences_ + b : b; }

 private:
  /// Throws an Error (Exit::plugin) if the batch has no such place, or no such numbers at all.
  Index place(Index t, Index b, bool has, const char* what) const {
    if (!has || t < 0 || t >= steps_ || b < 0 || b >= sequences_) no_place(t, b, has, what);
    return t * sequences_ + b;
  }
  Index output(Index t, Index b, bool has, const char* what) const {
    const Index column = place(t, b, has, what);
    return every_ ? column : b;
  }
  [[noreturn]] void no_place(Index t, Index b, bool has, const char* what) const;

  Index sequences_ = 0, steps_ = 0, input_rows_ = 0, target_rows_ = 0;
  bool every_ = true;
  std::vector<Index> lengths_;
  std::vector<S> inputs_, targets_, weights_;  // not Eigen types: a batch may cross a library boundary
  std::vector<std::int32_t> symbols_, labels_;
};

/// What a trained network expects of new data, and what its outputs mean.
struct DataForm {
  enum class Output { identity, softmax, sigmoid };
  Output output = Output::identity;               ///< softmax: of classes; sigmoid: of independent probabilities
  std::vector<std::string> inputs;                ///< names of the d numbers of a step; empty: they have none
  std::vector<std::string> outputs;               ///< names of the k values or classes; empty: they have none
  std::vector<double> input_mean, input_scale;    ///< d each: the network reads (x − mean) / scale; empty: x
  std::vector<double> output_mean, output_scale;  ///< k each: a value is o·scale + mean; empty: o

  bool operator==(const DataForm&) const = default;
};
STIEFEL_API const char* name_of(DataForm::Output output);

/// What a trained network keeps of its task, so that it needs no data of its training: shape(), form() and alphabet().
struct Trained {
  TaskShape shape;
  DataForm form;
  std::vector<std::string> alphabet;
};

/// What a task is created for. Relative paths start in the folder in which the run was started only in the constructor
/// and in files(): read files there, or keep std::filesystem::absolute(path).
struct TaskContext {
  std::uint64_t seed = 0;
  Index batch = 1;             ///< sequences per training batch
  std::string data_directory;  ///< --data, STIEFEL_DATA or the cache; may be empty
  /// Null, except to evaluate a trained network. Then a task whose form() follows from its training data takes that of
  /// the network instead, and its training data may be missing.
  std::shared_ptr<const Trained> trained = {};
};

/// A file that the task read. A run of a changed file is another run, and `resume` refuses it.
struct DataFile {
  std::string name, path;
};

struct Ratio {
  double sum = 0, weight = 0;
};
/// A quantity in addition to the loss; its value is sum / weight over the split, unless `value` says another one.
struct Metric {
  std::string name;  ///< [a-z0-9_]+
  bool higher_is_better = true;
  std::string units = "1";
  bool exponential = false;  ///< the value is exp(sum / weight), e.g. a perplexity, else sum / weight
  Index parts = 1;           ///< how many ratios measure() adds to for this metric, one after another
  double (*value)(std::span<const Ratio> parts) = nullptr;  ///< from the sums over the split; needed with several parts
  /// The parts belong to the steps 0, 1, … of a sequence; they are recorded as a curve, too. The default value is then
  /// Σ sums / Σ weights.
  bool by_step = false;
  /// For a metric of whole sequences, such as the share of those without an error: measure() adds to a ratio for each of
  /// the targets.sequence_count sequences instead of `parts`, and this turns that of a sequence into what it adds to the
  /// split's. Thread-safe. With `streams`, a sequence is the part of it in one batch.
  Ratio (*of_sequence)(const Ratio& sequence) = nullptr;
};

/// Another predictor to compare with, such as the last value of a series, and the loss that it reaches.
struct Baseline {
  std::string name;  ///< shown before the loss
  double loss = 0;
};
/// Advice on an option of the task, for experiments that do not set it.
struct Remark {
  std::string option, sentence;
};

/// What a task reports about a trained network in addition to loss and metrics.
class STIEFEL_API Outcome {
 public:
  virtual ~Outcome();
  /// One value of a quantity, e.g. of one utterance: the weighted mean becomes /outcome/<name> of the result file.
  virtual void scalar(const std::string& name, double value, double weight = 1) = 0;
  /// A file, e.g. a waveform: outcome/<name> in the run's directory.
  virtual void file(const std::string& name, std::string_view bytes) = 0;
};

/// New sequences for a trained network, read piece by piece from a file.
template <class S> class STIEFEL_API SequenceReader {
 public:
  virtual ~SequenceReader();
  /// Advances to the next sequence; the first call advances to the first one. Returns false after the last.
  virtual bool next() = 0;
  /// The name of the sequence in the file; empty if it has none.
  virtual std::string name() const;
  /// Fills `batch` with the next steps of the sequence, at most `steps`; only its lengths and inputs are used. Returns
  /// false at the end of the sequence.
  virtual bool read(Index steps, Batch<S>& batch) = 0;
};

/// A task may also have a function that opens new sequences for a trained network, in a file that has the format of the
/// task's data. It returns null for another format; errors (Exit::data) name the place in the file. It is not called for
/// files NAME.npy, which are read for every task.
///
///   static std::unique_ptr<SequenceReader<S>> open(const Options&, const Trained&, const std::string& file);
template <class S> class STIEFEL_API Task {
 public:
  explicit Task(TaskContext context) : context_(std::move(context)) {}
  virtual ~Task();
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  const TaskContext& context() const { return context_; }

  virtual TaskShape shape() const = 0;
  /// Batches in a pass over the split; for generated data, any length of an epoch. 0: the split does not exist.
  virtual Index batches(Split split) const = 0;
  /// Batch number `index` = 0, 1, 2, … of the split (training continues past batches(train): the next epoch). Pure;
  /// thread-safe.
  virtual void fill(Split split, Index index, Batch<S>& batch) const = 0;

  /// Σ weight · loss over the columns of `output` (k × c). Assigns its gradient to `doutput` (k × c, or 0 columns if it
  /// is not needed). Columns of weight 0 have gradient 0, and their targets and labels may be anything. The engine
  /// divides both by the batch's weight. Thread-safe.
  virtual double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const = 0;
  virtual std::vector<Metric> metrics() const;
  /// Adds the columns' contribution to the parts of each metric, in the order of metrics(); columns of weight 0 add
  /// nothing. Thread-safe.
  virtual void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const;

  /// Loss that the constant predictor, which does not read the inputs, reaches, NaN if unknown; trivial() writes what
  /// it outputs at step t.
  virtual double baseline() const;
  virtual void trivial(Index t, std::span<S> output) const;
  virtual std::vector<DataFile> files() const;

  /// Whether to call report(): once for each batch of the test split, in order, with the best network at the end of a
  /// run.
  virtual bool reports() const;
  /// `outputs`: k × columns, column batch.scored(t, b); columns of steps beyond a sequence's length are zero.
  virtual void report(Index index, const Batch<S>& batch, CMat<S> outputs, Outcome& outcome) const;
  /// UTF-8 text of every class, for tasks whose classes are their input symbols and predict the next one: such a
  /// network can be sampled. Default: none.
  virtual std::vector<std::string> alphabet() const;
  /// Default: nothing has a name or is normalized; softmax for labels, else identity.
  virtual DataForm form() const;
  /// Further predictors, on the split of baseline().
  virtual std::vector<Baseline> baselines() const;
  /// What a new user may want to set; `run` warns of it.
  virtual std::vector<Remark> remarks() const;
  /// What the data hold, in a line for `--dry-run`; empty: nothing to say.
  virtual std::string summary() const;

 private:
  TaskContext context_;
};

/// The order of `size` ≥ 1 items that are traversed repeatedly and reshuffled for each pass: item(r) is the one at
/// place r of the running count, which is index·batch + i for place i of a batch. Pure; caches two passes. Thread-safe.
class STIEFEL_API Shuffle {
 public:
  Shuffle(Index size, std::uint64_t seed);
  ~Shuffle();
  std::int64_t item(std::uint64_t running) const;

 private:
  struct Order;
  Index size_;
  std::uint64_t seed_;
  mutable std::unique_ptr<Order> order_;
};

}  // namespace stiefel
