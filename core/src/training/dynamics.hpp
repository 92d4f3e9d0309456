// The dynamics of a trained network along sequences of its task: Lyapunov exponents, Jacobians of a step, and how many
// directions its states take.
#pragma once

#include <complex>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "training/run.hpp"

namespace stiefel {

struct DynamicsOptions {
  std::filesystem::path network = {};  // file of write_network()
  Split split = Split::test;
  Index sequences = 4;             // the first ones of the split
  Index exponents = 0;             // how many, the largest; 0: one for each state, but no more than 128
  Index every = 1;                 // steps between two orthonormalisations
  Index burn_in = -1;              // steps at the end of a sequence that are not averaged; −1: a tenth of them
  Index jacobians = 16;            // steps of the first sequence whose Jacobian is decomposed
  bool memory = false;             // whether memory capacities are computed
  Index fixed_points = 0;          // states from which fixed points are looked for
  std::vector<double> input = {};  // held meanwhile: numbers or one symbol; empty: zeros or no symbol
  Index class_sequences = 0;       // sequences whose states are compared by class
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
/// Its Fisher memory is that of the best direction of inputs in s ← W s + v u + noise, where the noise has the variance 1:
/// 1 for a normal W, and up to the number of states for others.
struct MapNormality {
  std::string name;
  double departure = 0, relative = 0;
  double fisher_90 = 0, fisher_99 = 0;  // Fisher memory of W scaled to the largest singular value .9 and .99
};

/// How much of the inputs k steps ago a linear readout of all states of a layer recovers, with inputs that are independent
/// of each other, uniform, and of the mean and deviation of the task's. 0 is the input of the same step.
struct MemoryCapacity {
  Index lags = 0;                              // twice the number of states
  std::vector<std::vector<double>> of_inputs;  // r² by input and lag, less what is found by chance
  double total = 0;                            // their sum; no more than the number of states
};

/// Where one step with the held input changes no state.
struct FixedPoint {
  std::vector<double> state;                      // of all layers
  std::vector<std::complex<double>> eigenvalues;  // of the Jacobian of each layer, by descending modulus
  Index unstable = 0;                             // of them outside of the unit circle
  Index starts = 0;                               // states that led there
};
struct FixedPoints {
  Index starts = 0;
  Index slow = 0, moving = 0;  // starts that ended at a speed ½‖F(s) − s‖² below or above 1e-4 that is not zero
  std::vector<FixedPoint> points;
};

/// Of vectors that stand for classes, by step, relative to the smallest distance of two classes' means at the reference
/// step.
struct ClassDistances {
  double separation = 0;       // that distance
  std::vector<double> spread;  // root mean squared distance of a vector from the mean of its class
  std::vector<double> drift;   // largest distance of a class's mean from that at the reference step
};
struct Distinguishability {
  Index sequences = 0;
  Index reference = 0;    // the last step of a training sequence, from 0
  ClassDistances hidden;  // of the hidden states of the last layer
  ClassDistances read;    // of their projection to the row space of the readout matrix
};

struct Dynamics {
  Index step = 0;              // of the network
  std::vector<Index> lengths;  // of the sequences
  std::vector<LayerDynamics> layers;
  std::vector<MapNormality> maps;
  std::vector<MemoryCapacity> memory;  // of each layer
  std::optional<FixedPoints> fixed_points;
  std::optional<Distinguishability> distinguishability;
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
