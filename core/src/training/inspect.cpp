#include "training/inspect.hpp"

#include "training/checkpoint.hpp"
#include "training/session.hpp"

namespace stiefel {
namespace {

template <class S> InspectedBlock inspect_block(const BlockSpec& spec, std::span<const S> values) {
  InspectedBlock block{spec.name, spec.rows, spec.cols, spec.manifold};
  if (spec.rows * spec.cols != spec.size) block.rows = spec.size, block.cols = 1;
  if (values.empty()) return block;
  const auto numbers =
      Eigen::Map<const Eigen::Array<S, Eigen::Dynamic, 1>>(values.data(), Index(values.size())).template cast<double>();
  block.norm = std::sqrt(numbers.square().sum());
  block.least = numbers.minCoeff(), block.largest = numbers.maxCoeff(), block.mean = numbers.mean();
  return block;
}

template <class S> Inspection inspect_as(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
                                         const std::filesystem::path& path) {
  Session<S> session(loaded, registry, options);
  Inspection found;
  found.step = read_network(path, *session.network);
  session.network->refresh();
  const Layout& layout = session.network->layout();
  const Blocks<S> theta = session.network->theta();
  found.parameters = layout.size();
  for (Index i = 0; i < layout.count(); ++i) found.blocks.push_back(inspect_block<S>(layout.block(i), theta[i]));
  const NetworkMaps<S>& maps = *session.network->model().maps;
  for (Index i = 0; i < maps.count(); ++i) {
    const Plugged<Parametrisation<S>>& plugin = maps[i].plugin();
    InspectedMap map{maps.spec(i).name.empty() ? "recurrent" : maps.spec(i).name,
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

Inspection inspect(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
                   const std::filesystem::path& network) {
  return loaded.experiment.with_scalar([&]<class S>(S) { return inspect_as<S>(loaded, registry, options, network); });
}

}  // namespace stiefel
