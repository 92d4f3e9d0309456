#include "results/analysis/report/scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stiefel::report {
namespace {

std::string superscript(int number) {
  static const char* const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = number < 0 ? "⁻" : "";
  for (const char digit : std::to_string(std::abs(number))) text += digits[digit - '0'];
  return text;
}

/// 1, 2 or 5 times a power of ten, no less than `step`.
double round_up(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1., 2., 5.})
    if (step <= factor * power * (1 + 1e-9)) return factor * power;
  return 10 * power;
}

std::string with_minus(double value, int decimals) {
  return fmt::format("{}{:.{}f}", value < 0 ? "−" : "", std::abs(value), decimals);
}

std::vector<Tick> linear_ticks(const Scale& scale, int wanted) {
  const double step = round_up((scale.to - scale.from) / wanted);
  const double most = std::max(std::abs(scale.from), std::abs(scale.to));
  const int exponent = int(std::floor(std::log10(step) + 1e-9)), power = int(std::floor(std::log10(most) + 1e-9));
  const bool scientific = power >= 6 || power <= -4;
  std::vector<Tick> found;
  for (double i = std::ceil(scale.from / step - 1e-9); i * step <= scale.to + 1e-9 * step; ++i) {
    const double value = i * step;
    if (i == 0)
      found.push_back({0, "0"});
    else if (scientific)
      found.push_back(
          {value, with_minus(value / std::pow(10, power), std::max(0, power - exponent)) + "×10" + superscript(power)});
    else
      found.push_back({value, with_minus(value, std::max(0, -exponent))});
  }
  return found;
}

std::string power_text(double factor, int power) {
  if (power >= -3 && power <= 4) return fmt::format("{:.{}f}", factor * std::pow(10, power), std::max(0, -power));
  return factor == 1 ? "10" + superscript(power) : fmt::format("{:g}×10{}", factor, superscript(power));
}

std::vector<Tick> logarithmic_ticks(const Scale& scale, int wanted) {
  const double decades = std::log10(scale.to / scale.from);
  const int first = int(std::floor(std::log10(scale.from))), last = int(std::ceil(std::log10(scale.to)));
  const int stride = std::max(1, int(std::ceil(decades / wanted)));
  std::vector<double> factors{1};
  if (decades * 3 <= wanted + 1) factors = {1, 2, 5};
  std::vector<Tick> found;
  for (int power = first; power <= last; ++power)
    for (const double factor : factors) {
      const double value = factor * std::pow(10, power);
      if (power % stride == 0 && value >= scale.from * (1 - 1e-9) && value <= scale.to * (1 + 1e-9))
        found.push_back({value, power_text(factor, power)});
    }
  return found;
}

}  // namespace

double Scale::at(double value) const {
  if (logarithmic) return value > 0 ? pixels * std::log(value / from) / std::log(to / from) : std::nan("");
  return pixels * (value - from) / (to - from);
}

Scale make_scale(double least, double most, bool logarithmic, double pixels) {
  if (!(least <= most) || !std::isfinite(most - least)) least = logarithmic ? 0.1 : 0, most = 1;
  if (logarithmic && least <= 0) least = most > 0 ? most / 10 : 0.1, most = std::max(most, 1.);
  if (most - least <= 1e-12 * std::max(std::abs(least), std::abs(most))) {  // no ticks fit between
    const double half = least == 0 ? 1 : std::abs(least) / 2;
    least = logarithmic ? least / 2 : least - half;
    most = logarithmic ? most * 2 : most + half;
  }
  return {least, most, logarithmic, pixels};
}

std::vector<Tick> ticks(const Scale& scale, int wanted) {
  if (!scale.logarithmic) return linear_ticks(scale, wanted);
  const std::vector<Tick> found = logarithmic_ticks(scale, wanted);
  return found.size() > 1 ? found : linear_ticks(scale, wanted);
}

std::string number_text(double value, int digits) {
  if (!std::isfinite(value)) return "–";
  const int power = value == 0 ? 0 : int(std::floor(std::log10(std::abs(value))));
  if (value == std::trunc(value) && power < std::max(6, digits)) return fmt::format("{:.0f}", value);
  if (power >= -4 && power < std::max(6, digits)) return fmt::format("{:.{}f}", value, std::max(0, digits - 1 - power));
  return fmt::format("{:.{}g}×10{}", value / std::pow(10, power), digits, superscript(power));
}

}  // namespace stiefel::report
