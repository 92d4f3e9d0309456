// Builds a network from its description: blocks in the order input, cell, readout, initial state, maps.
#include "engine/model.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <stiefel/parallel.hpp>

#include "host/plugin_call.hpp"

namespace stiefel {
namespace {

const RecurrentMap& choice_for(const ModelOptions& model, const std::string& name) {
  for (const RecurrentMap& map : model.maps)
    if (map.name == name) return map;
  return model.recurrent;
}

void refuse_unknown_maps(const ModelOptions& model, const std::vector<MapSpec>& specs) {
  for (const RecurrentMap& map : model.maps)
    if (std::none_of(specs.begin(), specs.end(), [&](const MapSpec& spec) { return spec.name == map.name; })) {
      std::string names;
      for (const MapSpec& spec : specs)
        names += (names.empty() ? "" : ", ") + (spec.name.empty() ? std::string("(unnamed)") : spec.name);
      throw Error("model.maps." + map.name + ": the cell " + model.cell.plugin +
                  " has no such map; its maps are: " + names);
    }
}

bool is_complex(const ModelOptions& model, const Registry& registry) {
  const auto asked = [&](const PluginChoice& map) {
    return guarded("complex_pairs", map.plugin, registry.file_of(*map.entry).path,
                   [&] { return map.entry->complex_pairs(map.options.get()); });
  };
  const bool complex = asked(model.recurrent);
  for (const RecurrentMap& map : model.maps)
    if (asked(map) != complex)
      throw Error("model.maps." + map.name + ": complex and real maps cannot be mixed in one cell; " + map.plugin +
                  " and " + model.recurrent.plugin + " differ");
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
    throw Error("model.initial_state.kind: carried needs a task whose batches continue each other; " +
                experiment.task.plugin + " does not (task.plugin), use zero or learned");

  const CellContext context{model.hidden, is_complex(model, registry)};
  cell = model.cell.located([&] { return model.cell.make<Cell<S>>(registry, &context); });

  const std::string& wanted = experiment.train.recompute;
  const Index saved_rows = cell.call("saved_rows", [&] { return cell->saved_rows(); });
  const double saved = double(saved_rows) * double(shape.steps * experiment.train.batch) * sizeof(S);
  recompute = wanted == "always" ||
              (wanted == "auto" && saved > 0.25 * double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE)));

  const std::vector<MapSpec> specs = cell.call("maps", [&] { return cell->maps(); });
  refuse_unknown_maps(model, specs);
  if (specs.empty() && model.recurrent.plugin != "dense")
    throw Error(fmt::format("{}: the cell {} has no recurrent map, so {} would do nothing; write `recurrent: dense`",
                            model.recurrent.where, cell.name, model.recurrent.plugin));
  const Index batch_columns =
      (experiment.train.batch + slice_count(experiment.train.batch) - 1) / slice_count(experiment.train.batch);
  std::vector<NetworkMap<S>> made;
  for (const MapSpec& spec : specs) {
    const RecurrentMap& choice = choice_for(model, spec.name);
    const Shape map_shape{spec.rows, spec.cols, context.complex};
    choice.located([&] {
      made.emplace_back(choice.make<Parametrisation<S>>(registry, &map_shape),
                        RouteContext{choice.route, batch_columns, experiment.train.batch * task.steps});
    });
  }
  maps = std::make_unique<NetworkMaps<S>>(specs, std::move(made));

  input.emplace(model.input, task, cell->input_rows());
  readout.emplace(model.readout, task.output_size, cell->output_rows(), context.complex);
  const auto add = [&](const std::string& prefix, const std::vector<BlockSpec>& blocks, Index& count) {
    count = Index(blocks.size());
    return layout.add(prefix, blocks);
  };
  add("input.", input->blocks(), input_count);
  cell.call("blocks", [&] { cell_first = add("", cell->blocks(), cell_count); });
  readout_first = add("readout.", readout->blocks(), readout_count);
  if (learned_state()) state_block = layout.add("", {{"initial_state", cell->state_rows(), cell->state_rows(), 1}});
  for (Index i = 0; i < maps->count(); ++i) {
    Index count = 0;
    const std::string& name = maps->spec(i).name;
    const NetworkMap<S>& map = (*maps)[i];
    const std::string prefix = name.empty() ? "recurrent." : "recurrent." + name + ".";
    map.plugin().call("blocks", [&] { map_first.push_back(add(prefix, map.plugin()->blocks(), count)); });
    map_count.push_back(count);
  }
}

template <class S> void Model<S>::initialise(S* data, std::uint64_t seed) const {
  std::fill_n(data, layout.size(), S(0));
  Rng rng(seed, "initialise/input");
  input->initialise(part(data, 0, input_count), rng);
  cell.call("initialise_bias", [&] { cell->initialise_bias(input->bias(part(data, 0, input_count))); });
  Rng cell_rng(seed, "initialise/cell");
  cell.call("initialise", [&] { cell->initialise(part(data, cell_first, cell_count), cell_rng); });
  Rng readout_rng(seed, "initialise/readout");
  readout->initialise(part(data, readout_first, readout_count), readout_rng);
  if (learned_state()) {
    Rng state_rng(seed, "initialise/initial_state");
    const Index rows = cell->state_rows(),
                part_rows = initial.init.kind != "file" && rows % hidden == 0 ? hidden : rows;
    const std::span<S> state = layout.all(data)[state_block];  // (h; c), (Re h; Im h): n rows each
    for (Index row = 0; row < rows; row += part_rows)
      initial.init.fill(as_matrix(state.subspan(row, part_rows), part_rows, 1), state_rng);
  }
  for (Index i = 0; i < maps->count(); ++i) {
    const NetworkMap<S>& map = (*maps)[i];
    Rng map_rng(seed, "initialise/recurrent/" + maps->spec(i).name);
    map.plugin().call("initialise", [&] { map.plugin()->initialise(part(data, map_first[i], map_count[i]), map_rng); });
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
