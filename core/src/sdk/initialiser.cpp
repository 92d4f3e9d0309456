// Initial values by name. Entries are drawn column after column, in double precision whatever the scalar.
#include <stiefel/error.hpp>
#include <stiefel/initialiser.hpp>

#include <fmt/ranges.h>

#include <cmath>
#include <stiefel/linear_algebra.hpp>
#include <stiefel/npy.hpp>

namespace stiefel {

namespace {

/// Haar-distributed when square: the Q of a Gaussian matrix whose R has a positive diagonal. Orthonormal columns when
/// tall, rows when wide.
Matrix<double> orthogonal(Index rows, Index cols, Rng& rng) {
  const Index tall = std::max(rows, cols), narrow = std::min(rows, cols);
  Matrix<double> gaussian(tall, narrow);
  for (double& entry : gaussian.reshaped()) entry = rng.normal();
  orthonormalise(view(gaussian));
  if (rows < cols) return gaussian.transpose();
  return gaussian;
}

Matrix<double> from_file(const std::string& file, Index rows, Index cols) {
  const Npy array = read_npy(file);
  const std::vector<std::size_t> needed{std::size_t(rows), std::size_t(cols)};
  if (array.shape != needed && !(cols == 1 && array.shape == std::vector<std::size_t>{std::size_t(rows)}))
    throw Error(
        fmt::format("{} holds {} numbers, but {} × {} are needed", file, fmt::join(array.shape, " × "), rows, cols),
        Exit::data);
  const Matrix<double> values = as_matrix(std::span(array.values), cols, rows).transpose();
  if (!values.allFinite()) throw Error(file + " holds NaN or Inf", Exit::data);
  return values;
}

/// Half the width of a uniform distribution by its name; 0 for other names.
double half_width(const std::string& kind, double rows, double cols) {
  if (kind == "glorot_uniform") return std::sqrt(6 / (rows + cols));
  if (kind == "hidden_uniform") return std::sqrt(3 / (2 * rows));
  return kind == "uniform" ? 1 : 0;
}

double standard_deviation(const std::string& kind, double rows, double cols) {
  if (kind == "glorot_normal") return std::sqrt(2 / (rows + cols));
  if (kind == "kaiming") return std::sqrt(2 / cols);
  return kind == "normal" ? 1 : 0;
}

template <class S, class F> void draw(Mat<S> values, F next) {
  for (Index j = 0; j < values.cols(); ++j)
    for (Index i = 0; i < values.rows(); ++i) values(i, j) = S(next());
}

}  // namespace

template <class S> void Initialiser::fill(Mat<S> values, Rng& rng) const {
  const Index rows = values.rows(), cols = values.cols();
  if (rows == 0 || cols == 0) return;
  if (kind == "zero")
    values.setZero();
  else if (kind == "constant")
    values.setConstant(S(scale));
  else if (kind == "identity")
    values = S(scale) * Matrix<S>::Identity(rows, cols);
  else if (kind == "orthogonal")
    values = (scale * orthogonal(rows, cols, rng)).template cast<S>();
  else if (kind == "file")
    values = (scale * from_file(file, rows, cols)).template cast<S>();
  else if (const double width = half_width(kind, double(rows), double(cols)); width > 0)
    draw(values, [&] { return scale * rng.uniform(-width, width); });
  else if (const double deviation = standard_deviation(kind, double(rows), double(cols)); deviation > 0)
    draw(values, [&] { return scale * deviation * rng.normal(); });
  else
    throw Error("there is no initialiser `" + kind +
                "`; choose glorot_uniform, orthogonal, zero or another that `stiefel describe dense` lists");
}

template STIEFEL_API void Initialiser::fill(Mat<float>, Rng&) const;
template STIEFEL_API void Initialiser::fill(Mat<double>, Rng&) const;

}  // namespace stiefel
