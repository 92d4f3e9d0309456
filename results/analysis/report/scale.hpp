/// The scale of an axis: positions of numbers, ticks and their labels.
#pragma once

#include <string>
#include <vector>

namespace stiefel::report {

struct Scale {
  double from = 0, to = 1;
  bool logarithmic = false;
  double pixels = 1;

  /// Distance in pixels from the beginning of the axis, also for values outside it. NaN if the value has no place, such
  /// as 0 on a logarithmic axis.
  double at(double value) const;
};

struct Tick {
  double value;
  std::string text;
};

/// A scale from `least` to `most`, which may be equal or not finite.
Scale make_scale(double least, double most, bool logarithmic, double pixels);
/// Ticks at round numbers, about `wanted` at most.
std::vector<Tick> ticks(const Scale& scale, int wanted);
/// A number for reading, with up to `digits` significant digits: 0.0123, 1.2×10⁻⁵.
std::string number_text(double value, int digits = 4);

}  // namespace stiefel::report
