#include "training/prediction.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/algorithm/string.hpp>
#include <cmath>

#include <stiefel/held_sequences.hpp>
#include <stiefel/npy.hpp>
#include "base/printable.hpp"
#include "engine/guarded_task.hpp"
#include "training/checkpoint.hpp"
#include "training/session.hpp"
#include "training/trained.hpp"

namespace stiefel {
namespace {

constexpr Index piece = 256;               // steps to read at once
constexpr Index longest = Index(1) << 24;  // most steps of a sequence that is read as a whole

[[noreturn]] void refuse_array(const std::string& file, const Npy& array, const std::string& wanted) {
  const std::string shape =
      array.shape.empty() ? "one number" : fmt::format("an array of {}", fmt::join(array.shape, " × "));
  throw Error(fmt::format("{} is {}; the network needs {}", file, shape, wanted), Exit::data);
}

/// Reads an array of inputs, N × T × d, T × d or, for d = 1, N × T, and normalizes them; or of symbols, N × T or T.
/// Throws Error (Exit::data) for another shape or an invalid number.
template <class S> std::unique_ptr<SequenceReader<S>> read_array(const std::string& file,
                                                                 const std::string& lengths_file,
                                                                 const TaskShape& shape, const DataForm& form) {
  const Npy array = read_npy(file);
  const bool symbols = shape.input == InputKind::symbols;
  const auto d = std::size_t(symbols ? 1 : shape.input_size);
  std::vector<std::size_t> sizes = array.shape;
  const std::string wanted = symbols  ? "symbols, N × T or T"
                             : d == 1 ? "N × T × 1 or N × T"
                                      : fmt::format("N × T × {0} or T × {0}", d);
  if (!symbols && d == 1 && sizes.size() == 2 && sizes[1] == 1 && sizes[0] > 1)
    refuse_array(file, array,
                 fmt::format("{0} × 1 × 1 for sequences of one step, or 1 × {0} × 1 for one sequence", sizes[0]));
  if (symbols || (d == 1 && sizes.size() == 2 && sizes[1] != 1)) sizes.push_back(1);
  if (sizes.size() == 2) sizes.insert(sizes.begin(), 1);
  if (sizes.size() != 3 || sizes[2] != d || array.values.empty()) refuse_array(file, array, wanted);
  std::vector<typename HeldSequences<S>::Sequence> sequences(sizes[0]);
  const std::size_t steps = sizes[1];
  const std::vector<std::size_t> lengths =
      lengths_file.empty() ? std::vector<std::size_t>(sizes[0], steps) : read_lengths(lengths_file, sizes[0], steps);
  for (std::size_t n = 0; n < sizes[0]; ++n) {
    sequences[n].name = sizes[0] > 1 ? std::to_string(n) : "";
    for (std::size_t i = n * steps * d; i < (n * steps + lengths[n]) * d; ++i) {
      const double x = array.values[i];
      const auto refuse = [&](const std::string& what) {
        throw Error(fmt::format("{}: the input [{}, {}, {}] is {}", file, n, i / d % steps, i % d, what), Exit::data);
      };
      if (!std::isfinite(x)) refuse("not finite");
      if (!symbols) {
        const S input = S(form.input_mean.empty() ? x : (x - form.input_mean[i % d]) / form.input_scale[i % d]);
        if (!std::isfinite(input)) refuse(fmt::format("{}, which is too large for the numbers of the network", x));
        sequences[n].inputs.push_back(input);
        continue;
      }
      if (x != std::floor(x) || x < -1 || x >= double(shape.input_size))
        refuse(fmt::format("{}, which is not one of the {} symbols", x, shape.input_size));
      sequences[n].symbols.push_back(std::int32_t(x));
    }
  }
  return std::make_unique<HeldSequences<S>>(shape, std::move(sequences));
}

template <class S> class Predictor {
 public:
  Predictor(Session<S>& session, const PredictionOptions& options, const RowWriter& write)
      : session_(session),
        options_(options),
        write_(write),
        shape_(session.task->shape()),
        form_(session.task->form()) {
    const char* option = options.states ? "--states" : "--every-step";
    if ((options.states || options.every_step) && session.network->model().bidirectional())
      throw Error(
          fmt::format("{} is for what a network has after each step, which a bidirectional one does not have; "
                      "remove {}",
                      option, option));
  }

  void run(SequenceReader<S>& reader) {
    bool any = false;
    Batch<S> batch;
    for (Index number = 0; reader.next(); ++number) {
      sequence_ = reader.name();
      if (!any) write_header();
      any = true;
      session_.network->take_state();
      Matrix<S> outputs;
      Index first = 0;
      for (; reader.read(steps_at_once(), batch); first += batch.steps()) {
        if (first > 0 && session_.network->model().bidirectional())
          throw Error(fmt::format("{}: the sequence {} is longer than the {} steps that a bidirectional network takes",
                                  options_.input, sequence_, first),
                      Exit::data);
        outputs = session_.network->advance(batch, session_.workers);
        for (Index t = 0; each_step() && t < batch.steps(); ++t) write_row(first + t, outputs.col(t));
      }
      if (first == 0) throw Error(fmt::format("{}: the sequence {} is empty", options_.input, sequence_), Exit::data);
      if (!each_step()) write_row(first - 1, outputs.col(0));
    }
    if (!any) throw Error(fmt::format("{} has no sequence", options_.input), Exit::data);
  }

 private:
  bool each_step() const { return options_.every_step || shape_.readout == ReadoutKind::every; }
  /// How many steps to read at once: all for a bidirectional network, one if states or all outputs are wanted.
  Index steps_at_once() const {
    if (session_.network->model().bidirectional()) return longest;
    return options_.states || options_.every_step ? 1 : piece;
  }
  bool classes() const { return form_.output == DataForm::Output::softmax && !options_.raw; }
  /// Returns the name in one line, because a symbol may be a line break.
  std::string name_of_output(Index k) const {
    return form_.outputs.empty() ? std::to_string(k) : printable(form_.outputs[std::size_t(k)]);
  }
  void write_header() {
    named_ = !sequence_.empty();
    std::vector<std::string> names = {"step"};
    if (named_) names.insert(names.begin(), "sequence");
    if (classes()) names.emplace_back("class");
    const bool values = form_.output == DataForm::Output::identity;
    const std::string prefix = values && !form_.outputs.empty() ? "" : values || options_.raw ? "o_" : "p_";
    for (Index k = 0; k < shape_.output_size; ++k) {
      const std::string name = prefix + name_of_output(k);
      names.push_back(std::ranges::count(names, name) > 0 ? "o_" + name : name);
    }
    if (options_.states)
      for (Index i = 0; i < session_.network->model().state_rows; ++i) names.push_back(fmt::format("state_{}", i));
    write_(names);
  }

  void write_row(Index step, const Matrix<S>& output) {
    if (!output.allFinite())
      throw Error(fmt::format("the output at step {} of {} is not finite", step, options_.input), Exit::diverged);
    std::vector<std::string> fields;
    if (named_) fields.push_back(sequence_);
    fields.push_back(std::to_string(step));
    Eigen::Array<S, Eigen::Dynamic, 1> values = output.col(0).array();
    if (classes()) {
      Index likeliest;
      const S largest = values.maxCoeff(&likeliest);
      values = (values - largest).exp();
      values /= values.sum();
      fields.push_back(name_of_output(likeliest));
    } else if (form_.output == DataForm::Output::sigmoid && !options_.raw) {
      values = 1 / (1 + (-values).exp());
    } else if (!form_.output_mean.empty() && !options_.raw) {
      for (Index k = 0; k < values.size(); ++k)
        values[k] = S(double(values[k]) * form_.output_scale[std::size_t(k)] + form_.output_mean[std::size_t(k)]);
    }
    for (const S x : values) fields.push_back(fmt::format("{}", x));
    if (options_.states)
      for (const S x : session_.network->carried().col(0)) fields.push_back(fmt::format("{}", x));
    write_(fields);
  }

  Session<S>& session_;
  const PredictionOptions& options_;
  const RowWriter& write_;
  TaskShape shape_;
  DataForm form_;
  std::string sequence_;
  bool named_ = false;
};

template <class S> void predict_as(const LoadedExperiment& loaded, Registry& registry, const RunOptions& run,
                                   const PredictionOptions& options, const RowWriter& write) {
  Session<S> session(loaded, registry, with_trained(run, options.network), Extent::application);
  const TaskShape shape = session.task->shape();
  if (shape.input == InputKind::none)
    throw Error(
        fmt::format("the task {} has no inputs, so there is nothing to predict from", loaded.experiment.task.plugin));
  read_network(options.network, *session.network);
  session.network->refresh();
  const bool array = boost::iends_with(options.input, ".npy");
  if (!array && !options.lengths.empty())
    throw Error("--lengths is for an --input that ends in .npy; remove it", Exit::usage);
  std::unique_ptr<SequenceReader<S>> reader;
  if (array)
    reader = read_array<S>(options.input, options.lengths, shape, session.task->form());
  else if (auto opened = loaded.experiment.task.open<S>(registry, trained_of(*session.task), options.input);
           opened.object)
    reader = std::make_unique<GuardedReader<S>>(std::move(opened), shape);
  else
    throw Error(fmt::format("the task {} does not read files like {}; give it a file in the format of its data, or a "
                            "file NAME.npy with an array of its inputs",
                            loaded.experiment.task.plugin, options.input),
                Exit::data);
  Predictor<S>(session, options, write).run(*reader);
}

}  // namespace

void predict(const LoadedExperiment& loaded, Registry& registry, const RunOptions& run,
             const PredictionOptions& options, const RowWriter& write) {
  loaded.experiment.with_scalar([&]<class S>(S) { predict_as<S>(loaded, registry, run, options, write); });
}

}  // namespace stiefel
