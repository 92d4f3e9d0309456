// Levels, and sound from them.
#include "tasks/signal/levels.hpp"

#include <cmath>

#include <stiefel/error.hpp>
#include "tasks/signal/stft.hpp"

namespace stiefel {

Eigen::MatrixXd levels(const Eigen::MatrixXcd& X) {
  return X.unaryExpr([](const std::complex<double>& z) { return 10 * std::log10(1e-5 + std::norm(z)); });
}

std::vector<double> sound_of_levels(const Eigen::MatrixXd& predicted, const Eigen::MatrixXcd& truth,
                                    Eigen::Index samples) {
  STIEFEL_ASSERT(predicted.rows() == truth.rows() && predicted.cols() == truth.cols() - 1);
  Eigen::MatrixXcd X = truth;
  X.rightCols(predicted.cols()) =
      predicted.binaryExpr(truth.rightCols(predicted.cols()), [](double level, const std::complex<double>& z) {
        return std::polar(std::sqrt(std::pow(10, level / 10)), std::arg(z));
      });
  return inverse_stft(X, samples);
}

}  // namespace stiefel
