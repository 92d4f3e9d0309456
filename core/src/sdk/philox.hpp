// Philox4x32-10: 128 bits of counter and 64 bits of key to 128 random bits (Salmon et al., SC 2011).
#pragma once

#include <array>
#include <cstdint>

#include <stiefel/export.hpp>

namespace stiefel {

STIEFEL_API std::array<std::uint32_t, 4> philox(const std::array<std::uint32_t, 4>& counter, const std::array<std::uint32_t, 2>& key);

}  // namespace stiefel
