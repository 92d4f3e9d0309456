#include "training/inspect.hpp"

#include <fmt/format.h>

#include "record/reader.hpp"
#include "training/checkpoint.hpp"

namespace stiefel {
namespace {

template <class S> InspectedBlock inspect_block(const BlockSpec& spec, std::span<const S> values) {
  InspectedBlock block{spec.name, spec.rows, spec.cols, spec.manifold};
  if (values.empty()) return block;
  const auto numbers =
      Eigen::Map<const Eigen::Array<S, Eigen::Dynamic, 1>>(values.data(), Index(values.size())).template cast<double>();
  block.norm = std::sqrt(numbers.square().sum());
  block.least = numbers.minCoeff(), block.largest = numbers.maxCoeff(), block.mean = numbers.mean();
  return block;
}

template <class S> class ShapeAlone final : public Task<S> {
 public:
  explicit ShapeAlone(TaskShape shape) : Task<S>({}), shape_(shape) {}
  TaskShape shape() const override { return shape_; }
  Index batches(Split) const override { return 0; }
  void fill(Split, Index, Batch<S>&) const override {}
  double loss(CMat<S>, const Targets<S>&, Mat<S>) const override { return 0; }

 private:
  TaskShape shape_;
};

/// Derives the task's shape from the input and readout blocks in a file, leaving out what they do not depend on.
TaskShape shape_of(const std::filesystem::path& path, const ModelOptions& model) {
  const InputOptions& input = model.layers[0].input;
  const std::string first = model.layers.size() > 1 ? "layers.0." : "";
  const ResultReader file(path);
  const auto size = [&](const std::string& block, std::size_t axis) {
    const std::string name = "/weights/" + block;
    if (!file.exists(name) || file.shape(name).size() != 2)
      throw Error(fmt::format("{} has no {}: it belongs to a different network", path.string(), name), Exit::damaged);
    return Index(file.shape(name)[axis]);
  };
  TaskShape shape{.output_size = size("readout.weight", 0), .steps = 1};
  shape.streams = model.layers[0].initial_state.kind == "carried";
  if (input.embedding_size > 0)
    shape.input = InputKind::symbols, shape.input_size = size(first + "input.embedding", 1);
  else if (file.exists("/weights/" + first + "input.weight"))
    shape.input_size = size(first + "input.weight", 1);
  else
    shape.input = InputKind::none;
  return shape;
}

template <class S>
Inspection inspect_as(const LoadedExperiment& loaded, Registry& registry, const std::filesystem::path& path) {
  demand_whole(path.parent_path().parent_path(), path.filename());
  const ShapeAlone<S> task(shape_of(path, loaded.experiment.model));
  Network<S> network(loaded.experiment, registry, task);
  Inspection found;
  found.step = read_network(path, network);
  network.refresh();
  const Layout& layout = network.layout();
  const Blocks<S> theta = network.theta();
  found.parameters = layout.size();
  for (Index i = 0; i < layout.count(); ++i) found.blocks.push_back(inspect_block<S>(layout.block(i), theta[i]));
  for (const auto& [name, of_network, blocks] : network.model().maps) {
    const Plugged<Parametrisation<S>>& plugin = of_network.plugin();
    InspectedMap map{name.starts_with("recurrent.") ? name.substr(10) : name,
                     plugin.name,
                     plugin.call("apply", [&] { return matrix_of(*plugin); }),
                     plugin->complex_pairs(),
                     {},
                     {}};
    map.spectrum = plugin.call("spectrum", [&] { return plugin->spectrum(); });
    map.defect = orthogonality_defect(map.W, map.complex);
    found.maps.push_back(std::move(map));
  }
  return found;
}

}  // namespace

Inspection inspect(const LoadedExperiment& loaded, Registry& registry, const std::filesystem::path& network) {
  return loaded.experiment.with_scalar([&]<class S>(S) { return inspect_as<S>(loaded, registry, network); });
}

}  // namespace stiefel
