// Builds a network from its description: blocks in the order input, cell, readout, initial state, maps.
#include "engine/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stiefel/parallel.hpp>

#include "base/machine.hpp"
#include "host/plugin_call.hpp"

namespace stiefel {
namespace {

const RecurrentMap& choice_for(const ModelOptions& model, const std::string& name) {
  for (const RecurrentMap& map : model.maps)
    if (map.name == name) return map;
  return model.recurrent;
}

void refuse_unknown_maps(const Experiment& experiment, const std::vector<MapSpec>& specs) {
  const ModelOptions& model = experiment.model;
  for (const RecurrentMap& map : model.maps)
    if (std::none_of(specs.begin(), specs.end(), [&](const MapSpec& spec) { return spec.name == map.name; })) {
      std::string names;
      for (const MapSpec& spec : specs)
        names += (names.empty() ? "" : ", ") + (spec.name.empty() ? std::string("(unnamed)") : spec.name);
      throw Error(experiment.place_of("model.maps." + map.name) + "model.maps." + map.name + ": the cell " +
                  model.cell.plugin + (names.empty() ? " has no maps" : " has no such map; its maps are: " + names));
    }
}

bool is_complex(const Experiment& experiment, const Registry& registry) {
  const ModelOptions& model = experiment.model;
  const auto asked = [&](const PluginChoice& map) {
    return guarded("complex_pairs", map.plugin, registry.file_of(*map.entry).path,
                   [&] { return map.entry->complex_pairs(map.options.get()); });
  };
  if (!model.recurrent.entry && model.maps.empty()) return false;
  const RecurrentMap& first = model.recurrent.entry ? model.recurrent : model.maps[0];
  const bool complex = asked(first);
  for (const RecurrentMap& map : model.maps)
    if (asked(map) != complex)
      throw Error(experiment.place_of("model.maps." + map.name) + "model.maps." + map.name +
                  ": complex and real maps cannot be mixed in one cell; " + map.plugin + " and " + first.plugin +
                  " differ");
  return complex;
}

}  // namespace

template <class S> Model<S>::Model(const Experiment& experiment, const Registry& registry, const TaskShape& shape)
    : task(shape) {
  const ModelOptions& model = experiment.model;
  message_clip = S(experiment.train.message_clip);
  chunk = experiment.train.chunk;
  initial = model.initial_state;
  hidden = model.hidden;
  if (carried_state() && !task.streams)
    throw Error(experiment.place_of("model.initial_state.kind") +
                "model.initial_state.kind: carried needs a task whose batches continue each other; " +
                experiment.task.plugin + " does not (task.plugin), use zero or learned");

  const CellContext context{model.hidden, is_complex(experiment, registry), shape.steps};
  cell = model.cell.located([&] { return model.cell.make<Cell<S>>(registry, &context); });

  const std::string& wanted = experiment.train.recompute;
  const Index saved_rows = cell.call("saved_rows", [&] { return cell->saved_rows(); });
  const double columns = double(shape.steps) * double(experiment.train.batch);
  recompute = wanted == "always" ||
              (wanted == "auto" && double(saved_rows) * columns * sizeof(S) > 0.25 * memory_limit().bytes);

  const std::vector<MapSpec> specs = cell.call("maps", [&] { return cell->maps(); });
  refuse_unknown_maps(experiment, specs);
  if (specs.empty() && model.recurrent.entry)
    throw Error(
        fmt::format("{}: the cell {} has no recurrent map; remove model.recurrent", model.recurrent.where, cell.name));
  const Index batch_columns =
      (experiment.train.batch + slice_count(experiment.train.batch) - 1) / slice_count(experiment.train.batch);
  std::vector<NetworkMap<S>> made;
  for (const MapSpec& spec : specs) {
    const RecurrentMap& choice = choice_for(model, spec.name);
    if (!choice.entry)
      throw Error(fmt::format("{}: the cell {} has a recurrent map, so model.recurrent is required", model.cell.where,
                              cell.name));
    const Shape map_shape{spec.rows, spec.cols, context.complex};
    choice.located([&] {
      made.emplace_back(choice.make<Parametrisation<S>>(registry, &map_shape),
                        RouteContext{choice.route, batch_columns, columns});
    });
  }
  maps = std::make_unique<NetworkMaps<S>>(specs, std::move(made));

  experiment.located("model.input", [&] { input.emplace(model.input, task, cell->input_rows()); });
  experiment.located("model.readout",
                     [&] { readout.emplace(model.readout, task.output_size, cell->output_rows(), context.complex); });
  input_blocks = layout.add("input.", input->blocks());
  cell.call("blocks", [&] { cell_blocks = layout.add("", cell->blocks()); });
  readout_blocks = layout.add("readout.", readout->blocks());
  if (learned_state()) state_block = layout.add("", {{"initial_state", cell->state_rows(), cell->state_rows(), 1}});
  for (Index i = 0; i < maps->count(); ++i) {
    const std::string& name = maps->spec(i).name;
    const NetworkMap<S>& map = (*maps)[i];
    const std::string prefix = name.empty() ? "recurrent." : "recurrent." + name + ".";
    map.plugin().call("blocks", [&] { map_blocks.push_back(layout.add(prefix, map.plugin()->blocks())); });
  }
}

template <class S> void Model<S>::initialise(S* data, std::uint64_t seed) const {
  std::fill_n(data, layout.size(), S(0));
  Rng rng(seed, "initialise/input");
  input->initialise(layout.part(data, input_blocks), rng);
  cell.call("initialise_bias", [&] { cell->initialise_bias(input->bias(layout.part(data, input_blocks))); });
  Rng cell_rng(seed, "initialise/cell");
  cell.call("initialise", [&] { cell->initialise(layout.part(data, cell_blocks), cell_rng); });
  Rng readout_rng(seed, "initialise/readout");
  readout->initialise(layout.part(data, readout_blocks), readout_rng);
  if (learned_state()) {
    Rng state_rng(seed, "initialise/initial_state");
    const Index rows = cell->state_rows(),
                part_rows = initial.init.kind != "file" && rows % hidden == 0 ? hidden : rows;
    const std::span<S> state = layout.part(data, state_block)[0];  // (h; c), (Re h; Im h): n rows each
    for (Index row = 0; row < rows; row += part_rows)
      initial.init.fill(as_matrix(state.subspan(row, part_rows), part_rows, 1), state_rng);
  }
  for (Index i = 0; i < maps->count(); ++i) {
    const NetworkMap<S>& map = (*maps)[i];
    Rng map_rng(seed, "initialise/recurrent/" + maps->spec(i).name);
    map.plugin().call("initialise",
                      [&] { map.plugin()->initialise(layout.part(data, map_blocks[std::size_t(i)]), map_rng); });
  }
}

template <class S> void Model<S>::refresh(const S* data) {
  theta = data;
  input->refresh(input_theta());
  readout->refresh(readout_theta());
  in_parallel(maps->count(), [&](Index i) { (*maps)[i].refresh(map_theta(i)); });
  maps->pack();
}

template struct Model<float>;
template struct Model<double>;

}  // namespace stiefel
