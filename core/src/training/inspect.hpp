// The contents of the network of a run: its blocks of parameters, and each recurrent map as a matrix.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <stiefel/parametrisation.hpp>

#include "config/load.hpp"
#include "sdk/diagnostics.hpp"

namespace stiefel {

struct InspectedBlock {
  std::string name;
  Index rows = 0, cols = 0;
  Manifold manifold = Manifold::flat;
  double norm = 0, least = 0, largest = 0, mean = 0;
};

struct InspectedMap {
  std::string name, plugin;
  Matrix<double> W;  // the real form [[A, −B], [B, A]] of a complex map
  bool complex = false;
  Spectrum spectrum;
  Defect defect;
};

struct Inspection {
  Index step = 0, parameters = 0;
  std::vector<InspectedBlock> blocks;
  std::vector<InspectedMap> maps;
};

/// Builds the network of the experiment for the sizes in a file of write_network(), and gives it its parameters. The
/// task is not created: it would need its data.
STIEFEL_API Inspection inspect(const LoadedExperiment& loaded, Registry& registry,
                               const std::filesystem::path& network);

}  // namespace stiefel
