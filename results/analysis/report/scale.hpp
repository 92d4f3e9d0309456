/// The scale of an axis: positions of numbers, ticks and their labels.
#pragma once

#include <string>
#include <vector>

namespace stiefel::report {

struct Scale {
  double from = 0, to = 1;
  bool logarithmic = false;
  double pixels = 1;

  /// Distance from the beginning of the axis; not finite if the value is outside the scale.
  double at(double value) const;
};

struct Tick {
  double value;
  std::string text;
};

/// The axis for values between two, which may be equal or not finite.
Scale make_scale(double least, double most, bool logarithmic, double pixels);
/// About `wanted` round numbers, at most.
std::vector<Tick> ticks(const Scale& scale, int wanted);
/// A number for reading, with up to `digits` significant digits: 0.0123, 1.2×10⁻⁵.
std::string number_text(double value, int digits = 4);

}  // namespace stiefel::report
