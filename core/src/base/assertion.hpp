// What STIEFEL_ASSERT throws: a bug in stiefel, unless a guard finds that a plugin was at work.
#pragma once

#include <stdexcept>
#include <string>

#include <stiefel/export.hpp>

namespace stiefel {

class STIEFEL_API AssertionFailure : public std::logic_error {
 public:
  /// `fact`: "EXPRESSION does not hold at FILE:LINE".
  explicit AssertionFailure(std::string fact);
  ~AssertionFailure() override;
  const std::string& fact() const noexcept { return fact_; }

 private:
  std::string fact_;
};

}  // namespace stiefel
