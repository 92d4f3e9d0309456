/// Saves and restores a plugin's state beyond its parameters: one function serves both directions.
#pragma once

#include <cstdint>
#include <Eigen/Core>
#include <span>
#include <string_view>
#include <vector>

#include <stiefel/export.hpp>

namespace stiefel {

/// Named arrays, written or read by name. When reading, a missing name or a different size throws Error
/// (Exit::damaged). The names become dataset names in the checkpoint: [a-z0-9_]+, unique within one serialise().
class STIEFEL_API Archive {
 public:
  virtual ~Archive();

  void value(std::string_view name, std::int64_t& x) { array(name, std::span(&x, 1)); }
  void value(std::string_view name, double& x) { array(name, std::span(&x, 1)); }
  virtual void array(std::string_view name, std::span<float> values) = 0;
  virtual void array(std::string_view name, std::span<double> values) = 0;
  virtual void array(std::string_view name, std::span<std::int64_t> values) = 0;

  /// A vector or matrix that already has its size: from the constructor of a map, or from Optimizer::attach().
  template <class T> void array(std::string_view name, std::vector<T>& values) { array(name, std::span<T>(values)); }
  template <class D> void array(std::string_view name, Eigen::PlainObjectBase<D>& values) {
    array(name, std::span(values.data(), std::size_t(values.size())));
  }
};

}  // namespace stiefel
