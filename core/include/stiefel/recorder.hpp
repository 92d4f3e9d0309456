/// Named scalars that a plugin wants in the result file.
#pragma once

#include <string_view>

#include <stiefel/export.hpp>

namespace stiefel {

class STIEFEL_API Recorder {
 public:
  virtual ~Recorder();
  /// `name` is [a-z0-9_]+; use the same names at every call.
  virtual void scalar(std::string_view name, double value) = 0;
};

}  // namespace stiefel
