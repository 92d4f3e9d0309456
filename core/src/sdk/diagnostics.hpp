// Measurements of a map during training, in double precision whatever the scalar of the run.
#pragma once

#include <stiefel/parametrisation.hpp>

namespace stiefel {

/// W of the last refresh() in double precision: the matrix that is kept, else apply(I).
template <class S> STIEFEL_API Matrix<double> matrix_of(const Parametrisation<S>& map);

/// ‖WᴴW − I‖, Frobenius and largest modulus of an entry.
struct Defect {
  double frobenius = 0, largest = 0;
};
/// `complex`: W is the real form [[A, −B], [B, A]] and the defect that of A + iB.
STIEFEL_API Defect orthogonality_defect(const Matrix<double>& W, bool complex);

}  // namespace stiefel
