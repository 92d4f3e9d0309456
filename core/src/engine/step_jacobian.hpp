// Products with the transposed Jacobian of one time step: what a cell's backward pass computes for one column.
#pragma once

#include <vector>

#include "engine/model.hpp"

namespace stiefel {

/// J_t = ∂s_t / ∂s_{t−1} of one recurrence along a sequence, where s are its state rows (h and c of an LSTM).
template <class S> class STIEFEL_API StepJacobian {
 public:
  /// `saved`: what the cell saved for one sequence; column t + 1 belongs to step t, column 0 to the entering state. All
  /// arguments must outlive the object. `columns`: number of vectors that are multiplied at once.
  StepJacobian(const Model<S>& model, const Recurrence<S>& recurrence, CMat<S> saved, Index columns);

  Index states() const { return recurrence_.cell->state_rows(); }
  Index steps() const { return saved_.cols() - 1; }
  /// State s_t; t = −1 is the entering one.
  CMat<S> state(Index t) const { return rows_of(saved_, recurrence_.cell->state_row(), states()).middleCols(t + 1, 1); }
  /// V ← J_tᵀ V, states × columns.
  void pull_back(Index t, Matrix<S>& V);

 private:
  const Model<S>& model_;
  const Recurrence<S>& recurrence_;
  CMat<S> saved_;
  Index columns_;
  Matrix<S> copies_, delta_;
  std::vector<S> scratch_;
};

}  // namespace stiefel
