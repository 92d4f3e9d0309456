// Every call into a plugin goes through guarded(), so that every exception names the call and the plugin.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>

#include <stiefel/export.hpp>

namespace stiefel {

/// Rethrows the exception being handled as an Error "… in <verb>() of <plugin> (<file>)". An Error keeps its exit code, unless that
/// is Exit::internal; a failed allocation is Exit::exhausted; everything else, of any type, is Exit::plugin. An exception
/// that already names a plugin (a map called by a cell) passes unchanged.
[[noreturn]] STIEFEL_API void rethrow_from_plugin(std::string_view verb, std::string_view plugin, const std::filesystem::path& file);

/// A call in progress. Calls of one thread can be nested: a cell calls maps.
struct STIEFEL_API PluginCall {
  PluginCall(std::string_view verb, std::string_view plugin, const std::filesystem::path& file) noexcept;
  ~PluginCall();
  PluginCall(const PluginCall&) = delete;
  PluginCall& operator=(const PluginCall&) = delete;
  /// The call of the calling thread, or null; also safe in a signal handler.
  static const PluginCall* innermost() noexcept;

  std::string_view verb, plugin, file;
  const PluginCall* outer;
};

/// Calls `call` and returns what it returns.
///   guarded("apply", "householder", file, [&] { map.apply(X, Y, scratch); });
template <class Call>
decltype(auto) guarded(std::string_view verb, std::string_view plugin, const std::filesystem::path& file, Call&& call) {
  const PluginCall lasting(verb, plugin, file);
  try {
    return std::forward<Call>(call)();
  } catch (...) {
    rethrow_from_plugin(verb, plugin, file);
  }
}

}  // namespace stiefel
