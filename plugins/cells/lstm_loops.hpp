/// The elementwise loops of the LSTM, by the SIMD target that stiefel::product_target() names; the formulas stand in
/// lstm.cpp. Every operation is rounded, so the bits are the same for every target.
#pragma once

#include <stiefel/matrix.hpp>

namespace stiefel {

/// Parts of a column of saved numbers, n rows each; deltas are in the order of the first four, peepholes in that of the
/// first three.
struct LstmColumn {
  enum Part : Index { input, forget, output, candidate, hidden, state, tanh_state, parts };
};

/// Loops over one column; `last` is the state before it, `delta` the gradient of the gates' arguments.
template <class S> struct LstmLoops {
  void (*state)(S* column, const S* last, Index n);                                          ///< c = f∘last + i∘q
  void (*output)(S* column, Index n);                                                        ///< h = o∘tanh c
  void (*output_pullback)(const S* column, const S* g, S* e, S* delta, S bound, Index n);    ///< δ_o; e without p_o
  void (*state_pullback)(const S* column, const S* last, S* e, S* delta, S bound, Index n);  ///< δ_i, δ_f, δ_q; e∘f
  void (*add_product)(const S* x, const S* y, S* sum, Index n);                              ///< sum += x∘y
};

/// Those for the chosen SIMD target.
template <class S> const LstmLoops<S>& lstm_loops();

}  // namespace stiefel
