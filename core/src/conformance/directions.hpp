// Directions in which parameters can move: along an axis of a flat block, by a rotation of two rows of an orthogonal or
// unitary one.
#pragma once

#include <vector>

#include <stiefel/parametrisation.hpp>

#include "conformance/report.hpp"

namespace stiefel::conformance {

/// Entry number i of a block, where reports show it.
inline Place place_of(const BlockSpec& spec, Index i) { return {i, spec.cols > 1 ? spec.rows : 0}; }

/// Adds the entries of one block to the comparison.
void compare_block(Comparison& comparison, const BlockSpec& spec, std::span<const double> got,
                   std::span<const double> expected);

/// A curve through θ that stays on the block's manifold.
///   flat        θ_i + t
///   orthogonal  rows i, j of M turned by t:  M_i cos t − M_j sin t,  M_i sin t + M_j cos t
///   unitary     the same; or with i sin t in place of both sines (`imaginary`); or row i multiplied by exp(it) (i = j)
struct Direction {
  Index block = 0, i = 0, j = 0;
  bool imaginary = false;
};

/// At most `limit` directions of every block, the first and the last among them, chosen by the seed.
STIEFEL_API std::vector<Direction> directions_of(const std::vector<BlockSpec>& blocks, Index limit, std::uint64_t seed);

/// θ moved by t along the direction.
STIEFEL_API void move(std::span<double> block, const BlockSpec& spec, const Direction& direction, double t);
/// d/dt at 0 of a function of θ whose gradient is given.
STIEFEL_API double slope(std::span<const double> block, std::span<const double> gradient, const BlockSpec& spec,
                         const Direction& direction);

/// ‖MᴴM − I‖ of a block on a manifold.
double defect(std::span<const double> block, const BlockSpec& spec);

/// Every block moved a random way, as an optimizer might: flat ones by `amount` times their root mean square, others
/// along the manifold.
STIEFEL_API void scatter(Blocks<double> theta, const std::vector<BlockSpec>& blocks, double amount, Rng& rng);

}  // namespace stiefel::conformance
