// A small network around a cell, with plain matrices for its maps: everything that a gradient check needs and nothing
// else.
//
//   z_t = V x_t + b,  the cell over chunks and slices,  L = Σ_t ⟨C_t, output_t⟩ + …   C random, so every
//   output matters.
#pragma once

#include "conformance/directions.hpp"
#include "conformance/memory.hpp"
#include "conformance/plain_maps.hpp"
#include "conformance/subject.hpp"
#include "engine/parameters.hpp"

namespace stiefel::conformance {

using Real = Matrix<double>;

/// How the sequences are run.
struct Cut {
  std::vector<Index> chunks;               // steps of each; their sum is the longest length
  std::vector<std::vector<Index>> slices;  // sequences of each, longest first
};

/// What is run: the numbers of a network, in double.
struct Problem {
  std::vector<Index> lengths;  // of the sequences, longest first
  Index steps = 0;
  std::vector<Real> inputs;   // x_t: d × sequences
  std::vector<Real> readout;  // C_t: output_rows × sequences; 0 columns: nothing is read out at t
  double message_clip = 0;
  bool want_blocks = true;                                             // false: the sink requests no block gradients
  bool want_dhidden = true;                                            // false: ∂L/∂h_t is not recorded
  Index perturbed_step = -1, perturbed_row = 0, perturbed_column = 0;  // an output h_t to which `perturbation` is added
  double perturbation = 0;
};

/// All that may be differentiated, named as in a run with dense maps: input.weight, input.bias, recurrent.<map>.W, the
/// cell's blocks, initial_state.
struct Parameters {
  Layout layout;
  std::vector<double> numbers;
  Index cell_first = 0, cell_count = 0, map_first = 0, state = 0;
  bool chosen = false;  // by the cell's test_point()
};

struct PassResult {
  double loss = 0, terms = 0;  // and Σ |C_t · output_t|
  long forward_allocations = 0, backward_allocations = 0;
  std::vector<Real> outputs;        // per step: output_rows × sequences, 0 after the end
  std::vector<double> gradient;     // of Parameters
  std::vector<Real> dhidden;        // per step
  double largest_delta = 0;         // of the gradients of V x + b
  double largest_message = 0;       // of what backward() sends back through the maps
  bool forward_transposes = false;  // forward() itself multiplies by the transpose of a map
};

template <class S> class CellNetwork {
 public:
  CellNetwork(const Subject& subject, CheckReport& report, CellContext context, std::uint64_t seed);

  Cell<S>& cell() const { return *cell_; }
  /// What initialise() writes to the cell's own blocks.
  std::vector<double> own_start(std::uint64_t seed) const;
  const std::vector<MapSpec>& maps() const { return maps_; }
  const Parameters& parameters() const { return parameters_; }
  Parameters& parameters() { return parameters_; }
  const Subject& subject() const { return subject_; }
  Problem problem(std::uint64_t seed, std::vector<Index> lengths = {6, 6, 5, 4, 3, 1}) const;
  /// The parameters after the cell's after_step().
  std::vector<double> after_step() const;

  PassResult run(const Problem& problem, const Cut& cut) const { return run(problem, cut, subject_, report_); }
  /// The same with the calls and the faults noted elsewhere, for several threads at once.
  PassResult run(const Problem& problem, const Cut& cut, const Subject& subject, CheckReport& report) const {
    return Pass(*this, problem, cut, true, subject, report).run();
  }

  /// Forward passes, or one with gradients. Between two of them θ and the perturbation may change.
  class Pass;

 private:
  struct SliceRun;
  void make_parameters(std::uint64_t seed);
  std::vector<CMat<S>> matrices(const GuardedBlocks<S>& theta) const;

  const Subject& subject_;
  CheckReport& report_;
  std::unique_ptr<Cell<S>> cell_;
  std::vector<MapSpec> maps_;
  Parameters parameters_;
};

template <class S> class CellNetwork<S>::Pass {
 public:
  Pass(const CellNetwork& network, const Problem& problem, const Cut& cut, bool backward, const Subject& subject,
       CheckReport& report);
  ~Pass();
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  const PassResult& run();
  /// After the last of several forward passes.
  void end() const;

  Problem problem;
  GuardedBlocks<S> theta;

 private:
  friend SliceRun;
  const CellNetwork& network_;
  const Subject& subject_;
  CheckReport& report_;
  const bool backward_;
  PlainMaps<S> maps_;
  std::vector<std::unique_ptr<SliceRun>> slices_;
  PassResult outcome_;
};

}  // namespace stiefel::conformance
