// Tables by name; the layout is described in results/README.md.
#include "training/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "host/plugin_faults.hpp"
#include "results/record/provenance.hpp"
#include "sdk/diagnostics.hpp"

namespace stiefel {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

Column integer(std::string name, std::string units, std::string long_name) {
  return {std::move(name), std::move(units), std::move(long_name), "", ColumnType::i8, {}};
}
Column number(std::string name, std::string units, std::string long_name, std::vector<std::string> axes = {}) {
  return {std::move(name), std::move(units), std::move(long_name), "", ColumnType::f8, std::move(axes)};
}

Axis count_axis(std::string name, Index length, std::string long_name) {
  Axis axis{std::move(name), "1", std::move(long_name), std::vector<double>(length), true, {}};
  std::iota(axis.values.begin(), axis.values.end(), 0.0);
  return axis;
}

const Column snapshot{"snapshot", "1", "optimizer step of the snapshot", "", ColumnType::i8, {}};

std::string group_of(const std::string& kind, const MapSpec& spec) {
  return "/" + kind + "/" + (spec.name.empty() ? "recurrent" : spec.name);
}

std::string column_name(std::string text) {
  for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) ? char(std::tolower(static_cast<unsigned char>(c))) : '_';
  return text;
}

/// The description by which commands that compare runs know which of two is better.
std::string direction(bool higher_is_better) { return higher_is_better ? "higher is better" : "lower is better"; }

/// Names and values that a plugin records.
class NamedScalars final : public Recorder {
 public:
  void scalar(std::string_view name, double value) override {
    if (!plain_name(name)) throw Error(fmt::format("`{}` cannot name a scalar: [a-z0-9_]+", name), Exit::plugin);
    names.emplace_back(name);
    values.push_back(value);
  }
  std::vector<std::string> names;
  std::vector<double> values;
};

}  // namespace

template <class S> Recording<S>::Recording(RecorderThread& recorder, const Experiment& experiment, const Task<S>& task, Network<S>& network,
                                           const Updater<S>& updater)
    : recorder_(recorder), periods_(experiment.record), metrics_(task.metrics().size()), time_steps_(task.shape().steps) {
  define_steps(updater);
  define_epochs(task);
  if (periods_.gradient_norms > 0)
    gradient_ = recorder_.define({"/gradient",
                                  snapshot,
                                  {count_axis("t", time_steps_, "time step of the sequence")},
                                  {number("hidden_grad_norm", "1", "norm over batch and units of dL/dh_t, L the batch mean", {"t"}),
                                   number("last_step_grad_norm", "1", "the same for the loss of the last step alone", {"t"}),
                                   number("hidden_norm", "1", "norm over batch and units of h_t", {"t"})},
                                  16});
  define_maps(network);
  define_blocks(network.layout());
  Axis phases{"phase", "1", "part of a training step", {}, true, {}};
  for (const char* name : phase_names) phases.labels.push_back(name);
  timing_ = recorder_.define({"/timing",
                              integer("step", "1", "optimizer step"),
                              {phases},
                              {number("seconds", "s", "wall time since the row before", {"phase"})},
                              1024});
}

template <class S> void Recording<S>::define_steps(const Updater<S>& updater) {
  Axis groups{"group", "1", "group of the optimizer, by its blocks", {}, true, updater.group_names()};
  steps_ = recorder_.define(
      {"/steps",
       integer("step", "1", "optimizer step"),
       {groups},
       {number("loss", "1", "training loss, batch mean"), number("penalty", "1", "value of soft constraints"),
        number("grad_norm", "1", "norm of the gradient of all trained parameters, before clipping"),
        number("clipped_grad_norm", "1", "the same after clipping"),
        number("recurrent_grad_norm", "1", "norm of the gradient of the recurrent maps' parameters"),
        number("param_update_norm", "1", "norm of the change of all parameters in the step"), number("lr", "1", "learning rate", {"group"}),
        number("wall_time", "seconds since 1970-01-01T00:00:00Z", "end of the step"),
        number("step_seconds", "s", "mean duration of a training step since the row before"), integer("rss_bytes", "B", "resident memory")},
       1024});
}

template <class S> void Recording<S>::define_epochs(const Task<S>& task) {
  std::vector<Column> columns{integer("step", "1", "optimizer step of the evaluation"),
                              number("train_loss", "1", "mean training loss since the row before")};
  columns.back().description = direction(false);
  std::vector<Column> test;
  for (const std::string split : {"valid", "test"}) {
    columns.push_back(number(split + "_loss", "1", split + " loss"));
    columns.back().description = direction(false);
    for (const Metric& metric : task.metrics()) {
      columns.push_back(number(split + "_" + metric.name, metric.units, split + " " + metric.name));
      columns.back().description = direction(metric.higher_is_better);
    }
    if (split == "test") test.assign(columns.end() - 1 - Index(metrics_), columns.end());
  }
  columns.push_back({"is_best", "1", "best so far on the selecting split", "", ColumnType::u1, {}});
  columns.push_back(number("seconds", "s", "wall time since the row before"));
  epochs_ = recorder_.define({"/epochs", number("epoch", "1", "passes over the training split"), {}, columns, 1024});
  final_ = recorder_.define({"/final", integer("step", "1", "optimizer step of the best model"), {}, test, 1});
}

template <class S> void Recording<S>::define_maps(Network<S>& network) {
  NetworkMaps<S>& maps = *network.model().maps;
  for (Index i = 0; i < maps.count(); ++i) {
    const Parametrisation<S>& map = *maps[i].plugin();
    const Index n = std::min(map.rows(), map.cols()) / (map.complex_pairs() ? 2 : 1);
    const bool square = map.rows() == map.cols();
    const Axis k = count_axis("k", n, "number of the value, descending modulus");
    std::vector<Column> columns{number("singular_values", "1", "singular values of W, descending", {"k"})};
    if (square) {
      columns.push_back({"eigenvalues", "1", "eigenvalues of W, descending modulus", "", ColumnType::complex, {"k"}});
      columns.push_back(number("eigenvalue_modulus", "1", "modulus of the eigenvalues", {"k"}));
      columns.push_back(number("eigenvalue_phase", "rad", "argument of the eigenvalues", {"k"}));
    }
    for (const char* name : {"min", "max", "mean", "std"})
      columns.push_back(number(std::string("singular_") + name, "1", std::string(name) + " of the singular values"));
    columns.push_back(number("condition_number", "1", "largest over smallest singular value"));
    columns.push_back(number("log_abs_det", "1", "sum of the logarithms of the singular values"));
    spectrum_.push_back(periods_.spectrum > 0 ? recorder_.define({group_of("spectrum", maps.spec(i)), snapshot, {k}, columns, 16}) : -1);

    Axis blocks{"block", "1", "what must be orthogonal", {}, true, {"W"}};
    orthogonality_.push_back(periods_.orthogonality > 0
                                 ? recorder_.define({group_of("orthogonality", maps.spec(i)),
                                                     snapshot,
                                                     {blocks},
                                                     {number("defect_fro", "1", "Frobenius norm of W^H W - I", {"block"}),
                                                      number("defect_max", "1", "largest modulus of an entry of W^H W - I", {"block"})},
                                                     1024})
                                 : -1);
    NamedScalars scalars;
    if (periods_.scalars > 0) maps[i].plugin().call("record", [&] { map.record(scalars); });
    std::vector<Column> named;
    for (const std::string& name : scalars.names) named.push_back(number(name, "1", name + " of the map"));
    scalar_names_.push_back(std::move(scalars.names));
    scalars_.push_back(named.empty() ? -1 : recorder_.define({group_of("scalars", maps.spec(i)), snapshot, {}, named, 1024}));
  }
}

template <class S> void Recording<S>::define_blocks(const Layout& layout) {
  for (const auto& [name, period] : periods_.blocks) {
    const Index block = layout.find(name);
    if (block < 0) {
      std::string names;
      for (const BlockSpec& spec : layout.blocks()) names += (names.empty() ? "" : ", ") + spec.name;
      throw Error("record.blocks: there is no parameter block \"" + name + "\"; the blocks are " + names);
    }
    const Axis i = count_axis("i", layout.block(block).size, "number of the parameter, by columns");
    traces_.push_back(
        {block, period, recorder_.define({"/blocks/" + column_name(name), snapshot, {i}, {number("values", "1", name, {"i"})}, 64})});
  }
}

template <class S> void Recording<S>::step(const StepRow& row) {
  std::vector<double> values{row.loss, row.penalty, row.norms.gradient, row.norms.clipped, row.norms.recurrent_gradient, row.norms.update};
  values.insert(values.end(), row.rates.begin(), row.rates.end());
  values.insert(values.end(), {now(), row.seconds, double(current_rss_bytes())});
  recorder_.append(steps_, double(row.step), values);
}

template <class S> void Recording<S>::evaluation(const EvaluationRow& row) {
  std::vector<double> values{double(row.step), row.train_loss};
  for (const auto* split : {&row.validation, &row.test}) {
    const std::vector<double> none(metrics_ + 1, nan);
    const auto& found = split->empty() ? none : *split;
    values.insert(values.end(), found.begin(), found.end());
  }
  values.insert(values.end(), {row.best ? 1.0 : 0.0, row.seconds});
  recorder_.append(epochs_, row.epoch, values);
}

template <class S> void Recording<S>::final_test(Index step, const std::vector<double>& values) {
  recorder_.append(final_, double(step), values);
}

template <class S> void Recording<S>::outcome(Index step, const std::map<std::string, Ratio>& quantities) {
  std::vector<Column> columns;
  std::vector<double> values;
  for (const auto& [name, ratio] : quantities) {
    columns.push_back(number(name, "1", "what the task says of the best model: mean"));
    values.push_back(ratio.sum / ratio.weight);
  }
  const int table = recorder_.define({"/outcome", integer("step", "1", "optimizer step of the best model"), {}, columns, 1});
  recorder_.append(table, double(step), values);
}

template <class S> void Recording<S>::norms(Index step, const PassResult& pass) {
  std::vector<double> values;
  for (const auto* norms : {&pass.gradient_norm, &pass.last_gradient_norm, &pass.hidden_norm}) {
    const std::size_t from = values.size();
    values.insert(values.end(), norms->begin(), norms->end());
    values.resize(from + std::size_t(time_steps_), nan);
  }
  recorder_.append(gradient_, double(step), values);
}

template <class S> bool Recording<S>::maps_due(Index step) const {
  return map_due(periods_.spectrum, step) || map_due(periods_.orthogonality, step) || map_due(periods_.scalars, step) ||
         std::any_of(traces_.begin(), traces_.end(), [&](const Trace& trace) { return map_due(trace.period, step); });
}

template <class S> void Recording<S>::maps(Index step, Network<S>& network) {
  NetworkMaps<S>& maps = *network.model().maps;
  for (Index i = 0; i < maps.count(); ++i) {
    if (map_due(periods_.spectrum, step))
      spectrum(step, i, maps[i].plugin().call("spectrum", [&] { return maps[i].plugin()->spectrum(); }));
    if (map_due(periods_.orthogonality, step)) orthogonality(step, i, network);
    if (map_due(periods_.scalars, step) && scalars_[i] >= 0) scalars(step, i, network);
  }
  for (const Trace& trace : traces_)
    if (map_due(trace.period, step)) {
      const auto block = network.theta()[trace.block];
      recorder_.append(trace.table, double(step), std::vector<double>(block.begin(), block.end()));
    }
}

template <class S> void Recording<S>::spectrum(Index step, Index map, const Spectrum& spectrum) {
  const auto& s = spectrum.singular_values;
  std::vector<double> values(s.begin(), s.end());
  for (const auto& z : spectrum.eigenvalues) values.insert(values.end(), {z.real(), z.imag()});
  for (const auto& z : spectrum.eigenvalues) values.push_back(std::abs(z));
  for (const auto& z : spectrum.eigenvalues) values.push_back(std::arg(z));
  const double mean = std::accumulate(s.begin(), s.end(), 0.0) / double(s.size());
  double variance = 0, log_det = 0;
  for (double x : s) variance += (x - mean) * (x - mean) / double(s.size()), log_det += std::log(x);
  values.insert(values.end(), {s.back(), s.front(), mean, std::sqrt(variance), s.front() / s.back(), log_det});
  recorder_.append(spectrum_[map], double(step), values);
}

template <class S> void Recording<S>::orthogonality(Index step, Index map, Network<S>& network) {
  const Plugged<Parametrisation<S>>& shown = (*network.model().maps)[map].plugin();
  const Matrix<double> W = shown.call("apply", [&] { return matrix_of(*shown); });
  const Defect defect = orthogonality_defect(W, shown->complex_pairs());
  const double values[] = {defect.frobenius, defect.largest};
  recorder_.append(orthogonality_[map], double(step), values);
}

template <class S> void Recording<S>::scalars(Index step, Index map, Network<S>& network) {
  NamedScalars scalars;
  const Plugged<Parametrisation<S>>& shown = (*network.model().maps)[map].plugin();
  shown.call("record", [&] {
    shown->record(scalars);
    if (scalars.names != scalar_names_[map]) throw Error("record() gives other scalars than at the beginning of the run", Exit::plugin);
  });
  recorder_.append(scalars_[map], double(step), scalars.values);
}

template <class S> void Recording<S>::timing(Index step, const std::vector<double>& seconds) {
  recorder_.append(timing_, double(step), seconds);
}

template class Recording<float>;
template class Recording<double>;

}  // namespace stiefel
