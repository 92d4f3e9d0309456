// When a table gets a row; what is in it is in rows.hpp and described in results/README.md.
#include "training/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <limits>
#include <set>

#include "host/plugin_faults.hpp"
#include "sdk/diagnostics.hpp"
#include "training/selection.hpp"

namespace stiefel {
namespace {

Axis named_axis(std::string name, std::string long_name, std::vector<std::string> labels) {
  return {.name = std::move(name), .long_name = std::move(long_name), .labels = std::move(labels)};
}

std::string column_name(std::string text) {
  for (char& c : text)
    c = std::isalnum(static_cast<unsigned char>(c)) ? char(std::tolower(static_cast<unsigned char>(c))) : '_';
  return text;
}

/// The group of a map's table: /spectrum/recurrent, /spectrum/forget, /spectrum/layers_1_forget.
std::string group_of(const std::string& kind, std::string map) {
  if (const std::size_t cell = map.find("recurrent."); cell != map.npos) map.erase(cell, 10);
  std::ranges::replace(map, '.', '_');
  return "/" + kind + "/" + map;
}

/// The loss of the evaluations over the steps: that of the validation set, or what a run without one has instead.
template <class S> Plot plot_of_evaluations(const Task<S>& task, const TrainOptions& train) {
  const bool validates = task.batches(Split::validation) > 0, tests = selecting_split(train) == Split::test;
  return {.signal = validates ? "valid_loss"
                    : tests   ? "test_loss"
                              : "train_loss",
          .x = "step",
          .logarithmic = true,
          .of_file = true};
}

/// Collects the names and values that a plugin records.
class NamedScalars final : public Recorder {
 public:
  void scalar(std::string_view name, double value) override {
    if (!plain_name(name)) throw Error(fmt::format("`{}` cannot name a scalar: [a-z0-9_]+", name), Exit::plugin);
    row.names.emplace_back(name);
    row.values.push_back(value);
  }
  ScalarsRow row;
};

/// Says how singular values break the map's claim, by more than rounding errors of a long training; else empty.
std::string broken_claim(const Claim& claim, const SpectrumRow& row) {
  constexpr double tolerance = 1e-3;
  if (claim.kind == Claim::none) return {};
  const bool isometry = claim.kind != Claim::bounded;
  const double low = isometry ? 1 : claim.low, high = isometry ? 1 : claim.high;
  const double least = row.spectrum.singular_values.back(), largest = row.spectrum.singular_values.front();
  if (least >= low - tolerance && largest <= high + tolerance) return {};
  return fmt::format("its singular values are from {:.4g} to {:.4g} after step {}, but should be {}", least, largest,
                     row.step, isometry ? "1" : fmt::format("from {:.4g} to {:.4g}", low, high));
}

}  // namespace

template <class S> Recording<S>::Recording(RecorderThread& recorder, const Experiment& experiment, const Task<S>& task,
                                           Network<S>& network, const Updater<S>& updater, Index steps)
    : recorder_(recorder),
      periods_(experiment.record),
      metrics_(measured(experiment, task)),
      time_steps_(task.shape().steps),
      last_step_(steps) {
  const Axis groups = named_axis("group", "group of the optimizer, by its blocks", updater.group_names());
  steps_ = recorder_.define(table_of("/steps", {groups}, StepRow{}, 1024, {.signal = "loss", .logarithmic = true}));
  const Axis time = count_axis("t", time_steps_, "time step of the sequence, from 0");
  std::vector<Axis> axes;
  if (std::ranges::any_of(metrics_, &Metric::by_step)) axes.push_back(time);
  if (const std::vector<Index>& lengths = periods_.lengths; !lengths.empty())
    axes.push_back({"length", "length of the task", {lengths.begin(), lengths.end()}});
  epochs_ = recorder_.define(table_of("/epochs", axes, EvaluationRow{metrics_, periods_.lengths.size()}, 1024,
                                      plot_of_evaluations(task, experiment.train)));
  final_ = recorder_.define(table_of("/final", axes, TestRow{metrics_, periods_.lengths.size()}, 1));
  recorder_.remove("/outcome");  // of a finished run that is continued
  const std::size_t layers = network.model().layers.size();
  for (std::size_t i = 0; i < layers; ++i)
    gradient_.push_back(define(periods_.gradient_norms,
                               table_of(layers == 1 ? "/gradient" : fmt::format("/gradient/layers_{}", i), {time},
                                        NormRow{}, 16, {.signal = "hidden_grad_norm", .logarithmic = true})));
  define_maps(network);
  define_blocks(network.layout());
  const Axis phases = named_axis("phase", "part of a training step", {std::begin(phase_names), std::end(phase_names)});
  timing_ = recorder_.define(table_of("/timing", {phases}, TimingRow{}));
}

template <class S> int Recording<S>::define(Index period, Table table) {
  return period > 0 || recorder_.continues(table.group) ? recorder_.define(std::move(table), period > 0) : -1;
}

template <class S> void Recording<S>::define_maps(Network<S>& network) {
  for (const auto& [name, of_network, own_blocks] : network.model().maps) {
    const Plugged<Parametrisation<S>>& plugin = of_network.plugin();
    const Parametrisation<S>& map = *plugin;
    const Index n = std::min(map.rows(), map.cols()) / (map.complex_pairs() ? 2 : 1);
    const Axis k = count_axis("k", n, "number of the value, descending modulus");
    const SpectrumRow like(0, {{1.0}, std::vector<std::complex<double>>(map.rows() == map.cols())});
    spectrum_.push_back(define(periods_.spectrum, table_of(group_of("spectrum", name), {k}, like, 16,
                                                           {.signal = "singular_values", .curves = true})));

    const Axis blocks = named_axis("block", "what must be orthogonal", {"W"});
    orthogonality_.push_back(
        define(periods_.orthogonality, table_of(group_of("orthogonality", name), {blocks}, OrthogonalityRow{{}, {}})));
    NamedScalars scalars;
    const std::string group = group_of("scalars", name);
    if (periods_.scalars > 0 || recorder_.continues(group)) plugin.call("record", [&] { map.record(scalars); });
    scalars_.push_back(scalars.row.names.empty() ? -1 : define(periods_.scalars, table_of(group, {}, scalars.row)));
    scalar_names_.push_back(std::move(scalars.row.names));
  }
}

template <class S> void Recording<S>::define_blocks(const Layout& layout) {
  const auto group = [](const BlockSpec& block) { return "/blocks/" + column_name(block.name); };
  const auto table = [&](const BlockSpec& block) {
    const Axis i = count_axis("i", block.size, "number of the parameter, by columns");
    return table_of(group(block), {i}, BlockRow<S>{{}, block.name}, 64);
  };
  std::set<std::string> recorded;
  for (const auto& [name, period] : periods_.blocks) {
    const Index block = layout.find(name);
    STIEFEL_ASSERT(block >= 0);
    recorded.insert(group(layout.block(block)));
    traces_.push_back({block, period, define(period, table(layout.block(block)))});
  }
  for (const BlockSpec& block : layout.blocks())
    if (recorder_.continues(group(block)) && recorded.insert(group(block)).second) define(0, table(block));
}

template <class S> void Recording<S>::step(const StepRow& row) { append_row(recorder_, steps_, row); }

template <class S> void Recording<S>::evaluation(EvaluationRow row) {
  row.metrics = metrics_, row.lengths = periods_.lengths.size();
  append_row(recorder_, epochs_, row);
}

template <class S> void Recording<S>::final_test(Index step, Scores scores) {
  append_row(recorder_, final_, TestRow{metrics_, periods_.lengths.size(), step, std::move(scores)});
}

template <class S> void Recording<S>::outcome(Index step, const std::map<std::string, Ratio>& quantities) {
  const OutcomeRow row{step, quantities};
  append_row(recorder_, recorder_.define(table_of("/outcome", {}, row, 1)), row);
}

template <class S> void Recording<S>::norms(Index step, const PassResult& pass) {
  const std::size_t layers = gradient_.size();
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const auto of_layer = [&](const std::vector<double>& all) {
      std::vector<double> norms(std::size_t(time_steps_), std::numeric_limits<double>::quiet_NaN());
      for (std::size_t t = 0; t < norms.size() && t * layers < all.size(); ++t) norms[t] = all[t * layers + layer];
      return norms;
    };
    append_row(
        recorder_, gradient_[layer],
        NormRow{{step}, of_layer(pass.gradient_norm), of_layer(pass.last_gradient_norm), of_layer(pass.hidden_norm)});
  }
}

template <class S> bool Recording<S>::due(int table, Index period, Index step, bool first) const {
  return period > 0 && table >= 0 && (step % period == 0 || step == last_step_ || (first && step == 1)) &&
         recorder_.last_row(table) != double(step);
}

template <class S> bool Recording<S>::maps_due(Index step) const {
  const auto any = [&](const std::vector<int>& tables, Index period) {
    return std::ranges::any_of(tables, [&](int table) { return due(table, period, step); });
  };
  return any(spectrum_, periods_.spectrum) || any(orthogonality_, periods_.orthogonality) ||
         any(scalars_, periods_.scalars) ||
         std::ranges::any_of(traces_, [&](const Trace& trace) { return due(trace.table, trace.period, step); });
}

template <class S> std::string Recording<S>::maps(Index step, Network<S>& network) {
  std::string broken;
  for (Index i = 0; i < Index(network.model().maps.size()); ++i) {
    const Plugged<Parametrisation<S>>& map = network.model().maps[std::size_t(i)]->plugin();
    if (due(spectrum_[i], periods_.spectrum, step)) {
      const SpectrumRow row(step, map.call("spectrum", [&] { return map->spectrum(); }));
      if (claims_kept_)
        if (const std::string fault = broken_claim(map.call("claim", [&] { return map->claim(); }), row);
            !fault.empty()) {
          broken = fmt::format("the map {} is not what it claims: {}", map.name, fault);
          claims_kept_ = false;
        }
      append_row(recorder_, spectrum_[i], row);
    }
    if (due(orthogonality_[i], periods_.orthogonality, step)) orthogonality(step, i, network);
    if (due(scalars_[i], periods_.scalars, step)) scalars(step, i, network);
  }
  for (const Trace& trace : traces_)
    if (due(trace.table, trace.period, step))
      append_row(recorder_, trace.table,
                 BlockRow<S>{{step}, network.layout().block(trace.block).name, network.theta()[trace.block]});
  return broken;
}

template <class S> void Recording<S>::orthogonality(Index step, Index map, Network<S>& network) {
  const Plugged<Parametrisation<S>>& shown = network.model().maps[std::size_t(map)]->plugin();
  const Matrix<double> W = shown.call("apply", [&] { return matrix_of(*shown); });
  append_row(recorder_, orthogonality_[map], OrthogonalityRow{{step}, orthogonality_defect(W, shown->complex_pairs())});
}

template <class S> void Recording<S>::scalars(Index step, Index map, Network<S>& network) {
  NamedScalars scalars;
  scalars.row.step = step;
  const Plugged<Parametrisation<S>>& shown = network.model().maps[std::size_t(map)]->plugin();
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
