/// Parametrisations made from the plugins that were built, their parameters in memory, and the matrices in
/// tests/golden.
#pragma once

#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <stiefel/plugin.hpp>

#include "choose_plugin.hpp"
#include "host/registry.hpp"

namespace map_plugins {

using namespace stiefel;

inline const Registry& registry() {
  static const Registry registry({STIEFEL_PLUGINS});
  return registry;
}

/// A role's object from `name` with options written as in a YAML file.
template <class Base, class S, class Context>
std::unique_ptr<Base> make(Role role, const std::string& name, const std::string& options, const Context& context) {
  const Entry& entry = registry().find(role, name);
  const PluginChoice choice = choose_plugin(entry, options);
  return created<Base>(entry, choice.options.get(), &context);
}

template <class S> std::unique_ptr<Parametrisation<S>> make_map(const std::string& name, const std::string& options,
                                                                Index rows, Index cols) {
  const Entry& entry = registry().find(Role::parametrisation, name);
  const bool complex = entry.complex_pairs(choose_plugin(entry, options).options.get());
  return make<Parametrisation<S>, S>(Role::parametrisation, name, options, Shape{rows, cols, complex});
}

/// Numbers for a list of blocks.
template <class S> struct Parameters {
  std::vector<Index> offsets{0};
  std::vector<S> numbers;

  explicit Parameters(const std::vector<BlockSpec>& specs) {
    for (const BlockSpec& spec : specs) offsets.push_back(offsets.back() + spec.size);
    numbers.assign(std::size_t(offsets.back()), S(0));
  }
  Blocks<S> blocks() { return {numbers.data(), offsets.data(), Index(offsets.size()) - 1}; }
  CBlocks<S> constant() { return blocks(); }
};

struct Seed {
  std::uint64_t value = 1;
};

/// A map with initialised parameters, refreshed.
template <class S> struct Sample {
  std::unique_ptr<Parametrisation<S>> map;
  Parameters<S> theta;

  Sample(const std::string& name, const std::string& options, Index rows, Index cols, Seed seed = {})
      : map(make_map<S>(name, options, rows, cols)), theta(map->blocks()) {
    Rng rng(seed.value, "initial");
    map->initialise(theta.blocks(), rng);
    map->refresh(theta.constant());
  }
  Sample(const std::string& name, const std::string& options, Index n, Seed seed = {})
      : Sample(name, options, n, n, seed) {}

  Matrix<S> apply(const Matrix<S>& X) { return product(X, map->rows(), &Parametrisation<S>::apply); }
  Matrix<S> adjoint(const Matrix<S>& Y) { return product(Y, map->cols(), &Parametrisation<S>::apply_adjoint); }
  Matrix<S> W() { return apply(Matrix<S>::Identity(map->cols(), map->cols())); }

  /// dθ of ⟨dY, W X⟩ by accumulate() and finish().
  std::vector<S> gradient(const Matrix<S>& X, const Matrix<S>& dY) {
    std::vector<S> sum(std::size_t(map->accumulator()), S(0)), memory(std::size_t(map->scratch(X.cols())));
    Scratch<S> scratch(memory);
    map->accumulate(X, dY, sum, scratch);
    Parameters<S> dtheta(map->blocks());
    map->finish(theta.constant(), sum, dtheta.blocks());
    return dtheta.numbers;
  }

  /// ⟨dY, W(θ) X⟩ for changed parameters.
  double value(std::vector<S>& numbers, std::size_t k, S shift, const Matrix<S>& X, const Matrix<S>& dY) {
    const S kept = numbers[k];
    numbers[k] = kept + shift;
    map->refresh(theta.constant());
    const double result = (apply(X).array() * dY.array()).sum();
    numbers[k] = kept;
    return result;
  }

  /// Largest difference of gradient() from central differences, relative to the largest entry of the gradient.
  double gradient_error(const Matrix<S>& X, const Matrix<S>& dY) {
    const std::vector<S> gradient = this->gradient(X, dY);
    double worst = 0, largest = 0;
    for (std::size_t k = 0; k < gradient.size(); ++k) {
      const double difference =
          (value(theta.numbers, k, S(1e-5), X, dY) - value(theta.numbers, k, S(-1e-5), X, dY)) / 2e-5;
      worst = std::max(worst, std::abs(difference - double(gradient[k])));
      largest = std::max(largest, std::abs(double(gradient[k])));
    }
    map->refresh(theta.constant());
    return worst / largest;
  }

 private:
  template <class F> Matrix<S> product(const Matrix<S>& X, Index rows, F function) {
    Matrix<S> Y(rows, X.cols());
    std::vector<S> memory(std::size_t(map->scratch(X.cols())));
    Scratch<S> scratch(memory);
    ((*map).*function)(X, view(Y), scratch);
    return Y;
  }
};

template <class S> Matrix<S> gaussian(Index rows, Index cols, std::uint64_t seed) {
  Rng rng(seed, "test");
  Matrix<S> X(rows, cols);
  for (S& x : X.reshaped()) x = S(rng.normal());
  return X;
}

template <class S> double defect(const Matrix<S>& W) {
  const Matrix<double> V = W.template cast<double>();
  return (V.transpose() * V - Matrix<double>::Identity(V.cols(), V.cols())).norm();
}

inline Index count(const std::string& map, const std::string& options, Index rows) {
  return Index(Sample<double>(map, options, rows).theta.numbers.size());
}

inline std::map<std::string, double> recorded(Sample<double>& sample) {
  struct Values final : Recorder {
    std::map<std::string, double> values;
    void scalar(std::string_view name, double value) override { values.emplace(name, value); }
  } records;
  sample.map->record(records);
  return records.values;
}

/// After Adam-like steps in float: every number moves by about the rate, in a direction that persists for a while.
inline double defect_after(const std::string& map, const std::string& options, Index rows, int steps, float rate) {
  Sample<float> sample(map, options, rows);
  Rng rng(7, "steps");
  std::vector<float> moment(sample.theta.numbers.size(), 0.0F);
  for (int step = 0; step < steps; ++step) {
    for (std::size_t k = 0; k < moment.size(); ++k) {
      moment[k] =
          0.99F * moment[k] + 0.01F * float(rng.uniform(-1, 1)) + (step < 50 ? 0.02F * (k % 2 ? 1.0F : -1.0F) : 0.0F);
      sample.theta.numbers[k] += rate * moment[k] * 10;
    }
    sample.map->after_step(sample.theta.blocks());
  }
  sample.map->refresh(sample.theta.constant());
  return defect(sample.W());
}

/// tests/golden/parametrisations.txt, written by the script beside it.
inline const Matrix<double>& golden(const std::string& name) {
  static const std::map<std::string, Matrix<double>> matrices = [] {
    std::map<std::string, Matrix<double>> read;
    std::ifstream file(STIEFEL_GOLDEN "/parametrisations.txt");
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string key;
      Index rows = 0, cols = 0;
      words >> key >> rows >> cols;
      Matrix<double> matrix(rows, cols);
      for (double& x : matrix.reshaped()) words >> x;
      read.emplace(key, matrix);
    }
    return read;
  }();
  return matrices.at(name);
}

}  // namespace map_plugins
