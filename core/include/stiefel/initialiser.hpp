/// The initial values of a matrix or vector of parameters, chosen by name in YAML: `init: glorot_uniform`, `scale: 1`.
///
///   glorot_uniform U(±√(6/(fan_in+fan_out)))   glorot_normal N(0, 2/(fan_in+fan_out))        (Glorot & Bengio 2010)
///   kaiming N(0, 2/fan_in)  (He et al. 2015)   uniform U(±1)   normal N(0, 1)   hidden_uniform U(±√(3/(2 rows)))
///   orthogonal (Haar: QR of a Gaussian with positive diagonal of R)   identity   constant 1   zero
///   file (a .npy matrix)
///
/// each multiplied by `scale`. fan_in is the number of columns, and fan_out the number of rows.
#pragma once

#include <string>

#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>
#include <stiefel/random.hpp>
#include <stiefel/schema.hpp>

namespace stiefel {

struct STIEFEL_API Initialiser {
  std::string kind = "glorot_uniform";
  double scale = 1;
  std::string file;

  Initialiser() = default;
  explicit Initialiser(std::string kind, double scale = 1) : kind(std::move(kind)), scale(scale) {}

  /// Adds the fields `<prefix>init`, `<prefix>scale`, `<prefix>file` to the section being described.
  void describe(Schema& s, const std::string& prefix = "");
  /// Throws Error if a file cannot be read or has a different shape.
  template <class S> void fill(Mat<S> values, Rng& rng) const;
};

}  // namespace stiefel
