// Every call into a plugin goes through guarded(), so that whatever is thrown there says what was asked of whom.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>

#include <stiefel/export.hpp>

namespace stiefel {

/// Rethrows the exception being handled as an Error "… while <verb> of <plugin> (<file>)". An Error keeps its exit code; memory
/// that cannot be had is Exit::exhausted; everything else, of whatever type, is Exit::plugin. An exception that already names a
/// plugin (a map called by a cell) passes unchanged.
[[noreturn]] STIEFEL_API void rethrow_from_plugin(std::string_view verb, std::string_view plugin, const std::filesystem::path& file);

/// Calls `call` and returns what it returns; costs nothing unless it throws.
///   guarded("apply", "householder", file, [&] { map.apply(X, Y, scratch); });
template <class Call>
decltype(auto) guarded(std::string_view verb, std::string_view plugin, const std::filesystem::path& file, Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (...) {
    rethrow_from_plugin(verb, plugin, file);
  }
}

}  // namespace stiefel
