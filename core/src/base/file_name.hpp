// Which texts may name a run, and so a folder below runs/, or a file in it.
#pragma once

#include <string>
#include <string_view>

#include <stiefel/export.hpp>

namespace stiefel {

/// What is wrong with the name, as `must …`; empty when nothing is.
STIEFEL_API std::string file_name_fault(std::string_view name);

}  // namespace stiefel
