// When a table gets a row; what is in it is in rows.hpp and described in results/README.md.
#include "training/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <limits>
#include <numeric>

#include "host/plugin_faults.hpp"
#include "sdk/diagnostics.hpp"

namespace stiefel {
namespace {

Axis count_axis(std::string name, Index length, std::string long_name) {
  Axis axis{std::move(name), "1", std::move(long_name), std::vector<double>(length), true, {}};
  std::iota(axis.values.begin(), axis.values.end(), 0.0);
  return axis;
}

/// An axis of texts.
Axis named_axis(std::string name, std::string long_name, std::vector<std::string> labels) {
  return {std::move(name), "1", std::move(long_name), {}, true, std::move(labels)};
}

std::string group_of(const std::string& kind, const MapSpec& spec) {
  return "/" + kind + "/" + (spec.name.empty() ? "recurrent" : spec.name);
}

std::string column_name(std::string text) {
  for (char& c : text)
    c = std::isalnum(static_cast<unsigned char>(c)) ? char(std::tolower(static_cast<unsigned char>(c))) : '_';
  return text;
}

/// Names and values that a plugin records.
class NamedScalars final : public Recorder {
 public:
  void scalar(std::string_view name, double value) override {
    if (!plain_name(name)) throw Error(fmt::format("`{}` cannot name a scalar: [a-z0-9_]+", name), Exit::plugin);
    row.names.emplace_back(name);
    row.values.push_back(value);
  }
  ScalarsRow row;
};

}  // namespace

template <class S> Recording<S>::Recording(RecorderThread& recorder, const Experiment& experiment, const Task<S>& task,
                                           Network<S>& network, const Updater<S>& updater)
    : recorder_(recorder), periods_(experiment.record), metrics_(task.metrics()), time_steps_(task.shape().steps) {
  const Axis groups = named_axis("group", "group of the optimizer, by its blocks", updater.group_names());
  steps_ = recorder_.define(table_of("/steps", {groups}, StepRow{}));
  epochs_ = recorder_.define(table_of("/epochs", {}, EvaluationRow{.metrics = metrics_}));
  final_ = recorder_.define(table_of("/final", {}, TestRow{metrics_}, 1));
  if (periods_.gradient_norms > 0)
    gradient_ = recorder_.define(
        table_of("/gradient", {count_axis("t", time_steps_, "time step of the sequence")}, NormRow{}, 16));
  define_maps(network);
  define_blocks(network.layout());
  const Axis phases = named_axis("phase", "part of a training step", {std::begin(phase_names), std::end(phase_names)});
  timing_ = recorder_.define(table_of("/timing", {phases}, TimingRow{}));
}

template <class S> void Recording<S>::define_maps(Network<S>& network) {
  NetworkMaps<S>& maps = *network.model().maps;
  for (Index i = 0; i < maps.count(); ++i) {
    const Parametrisation<S>& map = *maps[i].plugin();
    const Index n = std::min(map.rows(), map.cols()) / (map.complex_pairs() ? 2 : 1);
    const Axis k = count_axis("k", n, "number of the value, descending modulus");
    const SpectrumRow like(0, {{1.0}, std::vector<std::complex<double>>(map.rows() == map.cols())});
    spectrum_.push_back(
        periods_.spectrum > 0 ? recorder_.define(table_of(group_of("spectrum", maps.spec(i)), {k}, like, 16)) : -1);

    const Axis blocks = named_axis("block", "what must be orthogonal", {"W"});
    orthogonality_.push_back(
        periods_.orthogonality > 0
            ? recorder_.define(table_of(group_of("orthogonality", maps.spec(i)), {blocks}, OrthogonalityRow{{}, {}}))
            : -1);
    NamedScalars scalars;
    if (periods_.scalars > 0) maps[i].plugin().call("record", [&] { map.record(scalars); });
    scalars_.push_back(scalars.row.names.empty()
                           ? -1
                           : recorder_.define(table_of(group_of("scalars", maps.spec(i)), {}, scalars.row)));
    scalar_names_.push_back(std::move(scalars.row.names));
  }
}

template <class S> void Recording<S>::define_blocks(const Layout& layout) {
  for (const auto& [name, period] : periods_.blocks) {
    const Index block = layout.find(name);
    STIEFEL_ASSERT(block >= 0);
    const Axis i = count_axis("i", layout.block(block).size, "number of the parameter, by columns");
    traces_.push_back(
        {block, period, recorder_.define(table_of("/blocks/" + column_name(name), {i}, BlockRow<S>{{}, name}, 64))});
  }
}

template <class S> void Recording<S>::step(const StepRow& row) { append_row(recorder_, steps_, row); }

template <class S> void Recording<S>::evaluation(EvaluationRow row) {
  row.metrics = metrics_;
  append_row(recorder_, epochs_, row);
}

template <class S> void Recording<S>::final_test(Index step, std::vector<double> values) {
  append_row(recorder_, final_, TestRow{metrics_, step, std::move(values)});
}

template <class S> void Recording<S>::outcome(Index step, const std::map<std::string, Ratio>& quantities) {
  const OutcomeRow row{step, quantities};
  append_row(recorder_, recorder_.define(table_of("/outcome", {}, row, 1)), row);
}

template <class S> void Recording<S>::norms(Index step, const PassResult& pass) {
  NormRow row{{step}, pass.gradient_norm, pass.last_gradient_norm, pass.hidden_norm};
  for (auto* norms : {&row.hidden_gradient, &row.last_gradient, &row.hidden})
    norms->resize(std::size_t(time_steps_), std::numeric_limits<double>::quiet_NaN());
  append_row(recorder_, gradient_, row);
}

template <class S> bool Recording<S>::maps_due(Index step) const {
  return map_due(periods_.spectrum, step) || map_due(periods_.orthogonality, step) || map_due(periods_.scalars, step) ||
         std::any_of(traces_.begin(), traces_.end(), [&](const Trace& trace) { return map_due(trace.period, step); });
}

template <class S> void Recording<S>::maps(Index step, Network<S>& network) {
  NetworkMaps<S>& maps = *network.model().maps;
  for (Index i = 0; i < maps.count(); ++i) {
    if (map_due(periods_.spectrum, step))
      append_row(recorder_, spectrum_[i],
                 SpectrumRow(step, maps[i].plugin().call("spectrum", [&] { return maps[i].plugin()->spectrum(); })));
    if (map_due(periods_.orthogonality, step)) orthogonality(step, i, network);
    if (map_due(periods_.scalars, step) && scalars_[i] >= 0) scalars(step, i, network);
  }
  for (const Trace& trace : traces_)
    if (map_due(trace.period, step))
      append_row(recorder_, trace.table,
                 BlockRow<S>{{step}, network.layout().block(trace.block).name, network.theta()[trace.block]});
}

template <class S> void Recording<S>::orthogonality(Index step, Index map, Network<S>& network) {
  const Plugged<Parametrisation<S>>& shown = (*network.model().maps)[map].plugin();
  const Matrix<double> W = shown.call("apply", [&] { return matrix_of(*shown); });
  append_row(recorder_, orthogonality_[map], OrthogonalityRow{{step}, orthogonality_defect(W, shown->complex_pairs())});
}

template <class S> void Recording<S>::scalars(Index step, Index map, Network<S>& network) {
  NamedScalars scalars;
  scalars.row.step = step;
  const Plugged<Parametrisation<S>>& shown = (*network.model().maps)[map].plugin();
  shown.call("record", [&] {
    shown->record(scalars);
    if (scalars.row.names != scalar_names_[map])
      throw Error("record() gives other scalars than at the beginning of the run", Exit::plugin);
  });
  append_row(recorder_, scalars_[map], scalars.row);
}

template <class S> void Recording<S>::timing(Index step, std::vector<double> seconds) {
  append_row(recorder_, timing_, TimingRow{step, std::move(seconds)});
}

template class Recording<float>;
template class Recording<double>;

}  // namespace stiefel
