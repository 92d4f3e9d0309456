#include "results/analysis/report/heat_image.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace stiefel::report {
namespace {

constexpr int levels = 254;  ///< the highest index of a color; 255 means no value

/// Colors from dark blue through green to yellow. Lightness grows evenly, which suits gray prints and color-blind
/// readers (viridis by S. van der Walt and N. Smith, in nine points).
constexpr std::array<std::array<double, 3>, 9> anchors = {{{68, 1, 84},
                                                           {71, 44, 122},
                                                           {59, 81, 139},
                                                           {44, 113, 142},
                                                           {33, 144, 141},
                                                           {39, 173, 129},
                                                           {92, 200, 99},
                                                           {170, 220, 50},
                                                           {253, 231, 37}}};

std::string big_endian(std::uint32_t number) {
  return {char(number >> 24), char(number >> 16 & 255), char(number >> 8 & 255), char(number & 255)};
}

std::string chunk(const std::string& name, const std::string& content) {
  const std::string body = name + content;
  const auto checksum = crc32(0, reinterpret_cast<const Bytef*>(body.data()), uInt(body.size()));
  return big_endian(std::uint32_t(content.size())) + body + big_endian(std::uint32_t(checksum));
}

std::string palette() {
  std::string bytes;
  for (int level = 0; level <= levels; ++level) {
    const double at = double(level) / levels * double(anchors.size() - 1);
    const std::size_t below = std::min<std::size_t>(std::size_t(at), anchors.size() - 2);
    for (std::size_t c = 0; c < 3; ++c)
      bytes += char(std::lround(std::lerp(anchors[below][c], anchors[below + 1][c], at - double(below))));
  }
  return bytes + std::string(3, '\0');
}

/// A PNG of rows of palette indices, from the top.
std::string png(std::size_t width, std::size_t height, const std::string& indices) {
  std::string rows;
  for (std::size_t y = 0; y < height; ++y) rows += '\0' + indices.substr(y * width, width);
  uLongf size = compressBound(uLong(rows.size()));
  std::string packed(size, '\0');
  compress2(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
            uLong(rows.size()), 9);
  packed.resize(size);
  const std::string header =
      big_endian(std::uint32_t(width)) + big_endian(std::uint32_t(height)) + std::string("\x08\x03\0\0\0", 5);
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("PLTE", palette()) +
         chunk("tRNS", std::string(levels + 1, '\xFF') + std::string(1, '\0')) + chunk("IDAT", packed) +
         chunk("IEND", "");
}

}  // namespace

std::string heat_png(const HeatMap& map, const Scale& scale, std::size_t enlarged) {
  constexpr std::size_t pixels = 4;  // per column, on average
  std::vector<std::size_t> columns;
  const double half = map.cells ? (map.x.back() - map.x.front()) / double(map.x.size() - 1) / 2 : 0;
  for (std::size_t pixel = 0, width = pixels * map.x.size(); pixel < width; ++pixel) {
    const double x = std::lerp(map.x.front() - half, map.x.back() + half, (double(pixel) + 0.5) / double(width));
    std::size_t nearest = columns.empty() ? 0 : columns.back();
    while (nearest + 1 < map.x.size() && map.x[nearest + 1] - x < x - map.x[nearest]) ++nearest;
    columns.push_back(nearest);
  }
  columns.back() = map.x.size() - 1;  // it may be closer to its neighbor than a pixel is wide
  std::string indices;
  for (std::size_t row = map.y.size(); row-- > 0;) {
    std::string line;
    for (const std::size_t column : columns) {
      const double value = map.values[row * map.x.size() + column];
      const double at = scale.logarithmic && value == 0 ? 0 : scale.at(value);  // 0 is below the smallest number
      line += std::string(enlarged,
                          std::isfinite(at) ? char(std::lround(std::clamp(at, 0., 1.) * levels)) : char(levels + 1));
    }
    for (std::size_t i = 0; i < enlarged; ++i) indices += line;
  }
  return png(columns.size() * enlarged, map.y.size() * enlarged, indices);
}

std::string colour_bar_png() {
  std::string indices(levels + 1, '\0');
  std::iota(indices.rbegin(), indices.rend(), 0);
  return png(1, indices.size(), indices);
}

}  // namespace stiefel::report
