// The dynamics of a trained network along sequences of its task: Lyapunov exponents, Jacobians of a step, and how many
// directions its states take.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "training/run.hpp"

namespace stiefel {

struct DynamicsOptions {
  std::filesystem::path network = {};  // file of write_network()
  Split split = Split::test;
  Index sequences = 4;   // the first ones of the split
  Index exponents = 0;   // how many, the largest; 0: one for each state, but no more than 128
  Index every = 1;       // steps between two orthonormalisations
  Index burn_in = -1;    // steps at the end of a sequence that are not averaged; −1: a tenth of them
  Index jacobians = 16;  // steps of the first sequence whose Jacobian is decomposed
};

/// Quantities of a distribution over steps or sequences.
struct Spread {
  double mean = 0, deviation = 0;
};

/// One layer. Its states are those of its cell (h and c of an LSTM); J_t = ∂s_t / ∂s_{t−1} with its inputs held.
struct LayerDynamics {
  Index states = 0;
  /// λ_1 ≥ λ_2 ≥ … in nats per step, for each sequence; −∞ where a direction is lost at once, as by ReLU.
  std::vector<std::vector<double>> exponents;
  std::vector<double> mean;  // over sequences
  double kaplan_yorke = 0;   // dimension, of the means; NaN if it needs more exponents than were computed
  double entropy_rate = 0;   // sum of the positive means
  std::vector<Index> jacobian_steps;
  std::vector<std::vector<double>> singular_values;  // of J_t, in descending order, for each of these steps
  double participation_ratio = 0;                    // (tr C)² / tr C², C the covariance of the states
  double effective_rank = 0;                         // exp H(σ / Σσ), σ² the eigenvalues of C
};

/// Henrici's departure from normality (‖W‖_F² − Σ|λ|²)^½ of a square recurrent map, and relative to ‖W‖_F.
struct MapNormality {
  std::string name;
  double departure = 0, relative = 0;
};

struct Dynamics {
  Index step = 0;              // of the network
  std::vector<Index> lengths;  // of the sequences
  std::vector<LayerDynamics> layers;
  std::vector<MapNormality> maps;
};

/// Computes in double precision whatever the scalar of the run. Exponents come from Q R = J_tᵀ Q, from the last step to
/// the first (Benettin et al. 1980), with the order of the layers' Jacobians that makes the whole one block-triangular:
/// the exponents of the network are those of its layers together. Throws Error for a bidirectional network, for a split
/// without batches, and (Exit::diverged) if states are not finite.
STIEFEL_API Dynamics analyse(const LoadedExperiment& loaded, Registry& registry, const RunOptions& run,
                             const DynamicsOptions& options);

/// Writes analysis.h5 next to the results of a run.
STIEFEL_API std::filesystem::path write_analysis(const std::filesystem::path& run, const Dynamics& found,
                                                 const DynamicsOptions& options);

}  // namespace stiefel
