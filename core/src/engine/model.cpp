// Builds a network from its description: blocks of the layers, the readout, the initial states, and the maps last.
#include "engine/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stiefel/parallel.hpp>

#include "base/machine.hpp"
#include "host/plugin_call.hpp"
#include "host/plugin_faults.hpp"

namespace stiefel {
namespace {

const RecurrentMap& choice_for(const LayerOptions& layer, const std::string& name) {
  for (const RecurrentMap& map : layer.maps)
    if (map.name == name) return map;
  return layer.recurrent;
}

void refuse_unknown_maps(const Experiment& experiment, const LayerOptions& layer, const std::vector<MapSpec>& specs) {
  for (const RecurrentMap& map : layer.maps)
    if (std::none_of(specs.begin(), specs.end(), [&](const MapSpec& spec) { return spec.name == map.name; })) {
      std::string names;
      for (const MapSpec& spec : specs)
        names += (names.empty() ? "" : ", ") + (spec.name.empty() ? std::string("(unnamed)") : spec.name);
      const std::string key = layer.path + ".maps." + map.name;
      throw Error(experiment.place_of(key) + key + ": the cell " + layer.cell.plugin +
                  (names.empty() ? " has no maps" : " has no such map; its maps are: " + names));
    }
}

bool is_complex(const Experiment& experiment, const LayerOptions& layer, const Registry& registry) {
  const auto asked = [&](const PluginChoice& map) {
    return guarded("complex_pairs", map.plugin, registry.file_of(*map.entry).path,
                   [&] { return map.entry->complex_pairs(map.options.get()); });
  };
  if (!layer.recurrent.entry && layer.maps.empty()) return false;
  const RecurrentMap& first = layer.recurrent.entry ? layer.recurrent : layer.maps[0];
  const bool complex = asked(first);
  for (const RecurrentMap& map : layer.maps)
    if (asked(map) != complex) {
      const std::string key = layer.path + ".maps." + map.name;
      throw Error(experiment.place_of(key) + key + ": complex and real maps cannot be mixed in one cell; " +
                  map.plugin + " and " + first.plugin + " differ");
    }
  return complex;
}

std::string path_of_key(const LayerOptions& layer, const char* key) { return layer.path + "." + key; }

[[noreturn]] void refuse(const Experiment& experiment, const LayerOptions& layer, const char* key,
                         const std::string& sentence) {
  const std::string path = path_of_key(layer, key);
  throw Error(experiment.place_of(path) + path + ": " + sentence);
}

void check_initial_state(const Experiment& experiment, const TaskShape& task) {
  const std::vector<LayerOptions>& layers = experiment.model.layers;
  for (const LayerOptions& layer : layers) {
    const bool carried = layer.initial_state.kind == "carried";
    if (carried != (layers[0].initial_state.kind == "carried"))
      refuse(experiment, layer, "initial_state.kind", "either all layers carry their states over, or none");
    if (carried && !task.streams)
      refuse(experiment, layer, "initial_state.kind",
             "carried needs a task whose batches continue each other, and those of " + experiment.task.plugin +
                 " do not with these options; use zero or learned");
    if (layer.bidirectional && (carried || task.streams))
      refuse(experiment, layer, "bidirectional",
             "needs whole sequences, but the batches of " + experiment.task.plugin + " continue each other");
    if (layer.bidirectional && task.predicts_inputs)
      refuse(experiment, layer, "bidirectional",
             "the targets of " + experiment.task.plugin +
                 " are later inputs, which a cell that reads the sequence from its end has seen; remove it");
  }
}

}  // namespace

template <class S> bool Model<S>::bidirectional() const {
  return std::ranges::any_of(layers, [](const Layer<S>& layer) { return layer.recurrences.size() > 1; });
}

template <class S> Recurrence<S> Model<S>::recurrence(const Experiment& experiment, const Registry& registry,
                                                      const LayerOptions& options, InputKind kind, Index size) const {
  Recurrence<S> made;
  const CellContext context{options.hidden, is_complex(experiment, options, registry), task.steps};
  made.cell = options.cell.located([&] { return options.cell.make<Cell<S>>(registry, &context); });

  const std::vector<MapSpec> specs = made.cell.call("maps", [&] { return made.cell->maps(); });
  for (const std::string& fault :
       {made.cell.call("saved_rows", [&] { return rows_fault(*made.cell); }), maps_fault(specs)})
    refuse_fault("cell", made.cell.name, made.cell.file, fault);
  refuse_unknown_maps(experiment, options, specs);
  if (specs.empty() && options.recurrent.entry)
    throw Error(fmt::format("{}: the cell {} has no recurrent map; remove {}", options.recurrent.where, made.cell.name,
                            path_of_key(options, "recurrent")));
  const Index batch = experiment.train.batch, batch_columns = (batch + slice_count(batch) - 1) / slice_count(batch);
  const double columns = double(task.steps) * double(batch);
  std::vector<NetworkMap<S>> maps;
  for (const MapSpec& spec : specs) {
    const RecurrentMap& choice = choice_for(options, spec.name);
    if (!choice.entry)
      throw Error(fmt::format("{}: the cell {} has a recurrent map, so {} is required", options.cell.where,
                              made.cell.name, path_of_key(options, "recurrent")));
    const Shape map_shape{spec.rows, spec.cols, context.complex};
    choice.located([&] {
      maps.emplace_back(choice.make<Parametrisation<S>>(registry, &map_shape),
                        RouteContext{choice.route, batch_columns, columns});
    });
  }
  made.maps = std::make_unique<NetworkMaps<S>>(specs, std::move(maps));
  experiment.located(path_of_key(options, "input"),
                     [&] { made.input.emplace(options.input, kind, size, made.cell->input_rows()); });
  Vector<S> bias = Vector<S>::Zero(options.input.bias ? made.cell->input_rows() : 0);
  options.cell.located([&] {
    made.cell.call("initialise_bias", [&] { made.cell->initialise_bias({bias.data(), std::size_t(bias.size())}); });
  });
  return made;
}

template <class S> void Model<S>::add_layer(const Experiment& experiment, const Registry& registry, Index number,
                                            InputKind kind, Index size) {
  const LayerOptions& options = experiment.model.layers[std::size_t(number)];
  const std::string prefix = experiment.model.layers.size() > 1 ? fmt::format("layers.{}.", number) : "";
  Layer<S>& layer = layers.emplace_back();
  layer.initial = options.initial_state;
  layer.dropout = options.dropout;
  layer.hidden = options.hidden;
  layer.residual = options.residual && number > 0;
  for (int direction = 0; direction < (options.bidirectional ? 2 : 1); ++direction) {
    Recurrence<S> made = recurrence(experiment, registry, options, kind, size);
    made.reversed = direction == 1;
    made.prefix = prefix + (made.reversed ? "reverse." : "");
    made.state = state_rows;
    state_rows += made.cell->state_rows();
    made.input_blocks = layout.add(made.prefix + "input.", made.input->blocks());
    made.cell.call("blocks", [&] { made.cell_blocks = layout.add(made.prefix, made.cell->blocks()); });
    layer.rows += made.cell->output_rows();
    layer.recurrences.push_back(std::move(made));
  }
  if (layer.residual && layer.rows != size)
    refuse(experiment, options, "residual",
           fmt::format("the layer has {} outputs, but the layer below it has {}: make them equal", layer.rows, size));
  if (number > 0) layer.norm = Norm<S>(options.norm, size);
  layer.norm_blocks = layout.add(prefix + "norm.", layer.norm.blocks());
  layer.gate = Gate<S>(options.gate, layer.rows);
  layer.gate_blocks = layout.add(prefix + "gate.", layer.gate.blocks());
}

template <class S> Model<S>::Model(const Experiment& experiment, const Registry& registry, const TaskShape& shape)
    : task(shape) {
  message_clip = S(experiment.train.message_clip);
  check_initial_state(experiment, task);
  const std::size_t count = experiment.model.layers.size();
  layers.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    add_layer(experiment, registry, Index(i), i == 0 ? task.input : InputKind::dense,
              i == 0 ? task.input_size : layers[i - 1].rows);

  chunk = bidirectional() ? std::numeric_limits<Index>::max() : experiment.train.chunk;
  const std::string& wanted = experiment.train.recompute;
  double saved_rows = 0;
  each_recurrence([&](const auto&, const Recurrence<S>& r) {
    saved_rows += double(r.cell.call("saved_rows", [&] { return r.cell->saved_rows(); }));
  });
  const double columns = double(task.steps) * double(experiment.train.batch);
  const bool large = saved_rows * columns * sizeof(S) > 0.25 * memory_limit().bytes;
  recompute = !bidirectional() && (wanted == "always" || (wanted == "auto" && large));

  if (layers.back().recurrences.size() > 1 && experiment.model.readout.rows == "real")
    throw Error(experiment.place_of("model.readout.rows") +
                "model.readout.rows: real reads one cell, and the last layer has two; use all");
  if (layers.back().gate.present() && experiment.model.readout.rows == "real")
    throw Error(experiment.place_of("model.readout.rows") +
                "model.readout.rows: real reads a cell, and the last layer ends with a gate; use all");
  const bool complex = layers.back().recurrences[0].cell->context().complex;
  experiment.located("model.readout",
                     [&] { readout.emplace(experiment.model.readout, task.output_size, layers.back().rows, complex); });
  readout_blocks = layout.add("readout.", readout->blocks());
  for (Layer<S>& layer : layers)
    for (Recurrence<S>& r : layer.recurrences)
      if (layer.learned_state())
        r.state_block = layout.add(r.prefix, {{"initial_state", r.cell->state_rows(), r.cell->state_rows(), 1}});
  for (Layer<S>& layer : layers)
    for (Recurrence<S>& r : layer.recurrences) {
      r.first_map = Index(maps.size());
      for (Index i = 0; i < r.maps->count(); ++i) {
        const std::string& own = r.maps->spec(i).name;
        const std::string name = r.prefix + "recurrent" + (own.empty() ? "" : "." + own);
        NetworkMap<S>& map = (*r.maps)[i];
        map.plugin().call("blocks", [&] {
          maps.push_back({name, map, layout.add(name + ".", map.plugin()->blocks())});
        });
      }
    }
}

template <class S> void Model<S>::initialise(S* data, std::uint64_t seed) const {
  std::fill_n(data, layout.size(), S(0));
  const auto stream = [seed](const std::string& prefix, const std::string& name) {
    return Rng(seed, "initialise/" + prefix + name);
  };
  each_recurrence([&](const Layer<S>& layer, const Recurrence<S>& r) {
    Rng rng = stream(r.prefix, "input");
    const Blocks<S> input = layout.part(data, r.input_blocks);
    r.input->initialise(input, rng);
    r.cell.call("initialise_bias", [&] { r.cell->initialise_bias(r.input->bias(input)); });
    Rng cell_rng = stream(r.prefix, "cell");
    r.cell.call("initialise", [&] { r.cell->initialise(layout.part(data, r.cell_blocks), cell_rng); });
    if (!layer.learned_state()) return;
    Rng state_rng = stream(r.prefix, "initial_state");
    const Index rows = r.cell->state_rows(),
                part_rows = layer.initial.init.kind != "file" && rows % layer.hidden == 0 ? layer.hidden : rows;
    const std::span<S> state = layout.part(data, r.state_block)[0];  // such as (h; c) or (Re h; Im h), n rows each
    for (Index row = 0; row < rows; row += part_rows)
      layer.initial.init.fill(as_matrix(state.subspan(row, part_rows), part_rows, 1), state_rng);
  });
  for (const Layer<S>& layer : layers) {
    layer.norm.initialise(layout.part(data, layer.norm_blocks));
    Rng rng = stream(layer.recurrences[0].prefix, "gate");
    layer.gate.initialise(layout.part(data, layer.gate_blocks), rng);
  }
  Rng readout_rng = stream("", "readout");
  readout->initialise(layout.part(data, readout_blocks), readout_rng);
  each_recurrence([&](const Layer<S>&, const Recurrence<S>& r) {
    for (Index i = 0; i < r.maps->count(); ++i) {
      const Map& map = maps[std::size_t(r.first_map + i)];
      Rng map_rng = stream(r.prefix, "recurrent/" + r.maps->spec(i).name);
      map->plugin().call("initialise", [&] { map->plugin()->initialise(layout.part(data, map.blocks), map_rng); });
    }
  });
}

template <class S> void Model<S>::refresh(const S* data) {
  theta = data;
  for (Layer<S>& layer : layers) {
    for (Recurrence<S>& r : layer.recurrences) {
      r.input->refresh(part(r.input_blocks));
      if (&layer != &layers.front()) r.input->refresh_adjoint(part(r.input_blocks));
    }
    layer.gate.refresh(part(layer.gate_blocks));
  }
  readout->refresh(part(readout_blocks));
  in_parallel(Index(maps.size()), [&](Index i) { maps[std::size_t(i)]->refresh(part(maps[std::size_t(i)].blocks)); });
  each_recurrence([](const Layer<S>&, const Recurrence<S>& r) { r.maps->pack(); });
}

template struct Model<float>;
template struct Model<double>;

}  // namespace stiefel
