/// A map and its gradient against W and the gradient of <G, W> that an independent NumPy script computed by definition.
#pragma once

#include <doctest/doctest.h>

#include <limits>

#include "map_plugins.hpp"

namespace map_plugins {

template <class S> void check_golden(const std::string& map, const std::string& options, const std::string& name) {
  INFO(map << " {" << options << "}, " << name);
  const Matrix<double>&W = golden(name + ".W"), &theta = golden(name + ".theta"), &G = golden(name + ".G"),
        &expected = golden(name + ".gradient");
  Sample<S> sample(map, options, W.rows(), W.cols());
  REQUIRE(Index(sample.theta.numbers.size()) == theta.size());
  for (Index k = 0; k < theta.size(); ++k) sample.theta.numbers[std::size_t(k)] = S(theta(k));
  sample.map->refresh(sample.theta.constant());
  const double tolerance = 100 * double(std::numeric_limits<S>::epsilon()),
               of_W = tolerance * std::max(1.0, W.cwiseAbs().maxCoeff());
  const Matrix<S> I = Matrix<S>::Identity(W.cols(), W.cols()), dW = G.cast<S>();
  CHECK((sample.W().template cast<double>() - W).cwiseAbs().maxCoeff() < of_W);
  CHECK((sample.adjoint(Matrix<S>::Identity(W.rows(), W.rows())).template cast<double>() - W.transpose())
            .cwiseAbs()
            .maxCoeff() < of_W);
  const std::vector<S> gradient = sample.gradient(I, dW);
  Parameters<S> dense(sample.map->blocks());
  Matrix<S> materialised(W.rows(), W.cols());
  sample.map->materialise(sample.theta.constant(), view(materialised));
  sample.map->pullback(sample.theta.constant(), materialised, dW, dense.blocks());
  CHECK((materialised.template cast<double>() - W).cwiseAbs().maxCoeff() < of_W);
  for (Index k = 0; k < theta.size(); ++k) {
    CHECK(std::abs(double(gradient[std::size_t(k)]) - expected(k)) < tolerance * expected.cwiseAbs().maxCoeff());
    CHECK(std::abs(double(dense.numbers[std::size_t(k)]) - expected(k)) < tolerance * expected.cwiseAbs().maxCoeff());
  }
}

}  // namespace map_plugins
