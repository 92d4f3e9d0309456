// Every call into a plugin goes through guarded(), so that every exception names the call and the plugin.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <stiefel/entry.hpp>
#include <stiefel/export.hpp>

namespace stiefel {

/// Rethrows the exception being handled as an Error "… (in <verb>() of <plugin>, <file>)". The place is left out if the
/// user can fix the cause: in data, or in the options of a built-in plugin. An Error keeps its exit code, except that
/// Exit::internal, and Exit::usage outside the reading of options, become Exit::plugin. A failed allocation becomes
/// Exit::exhausted, any other exception Exit::plugin. An exception that already names a plugin (a map called by a cell)
/// passes unchanged.
[[noreturn]] STIEFEL_API void rethrow_from_plugin(std::string_view verb, std::string_view plugin,
                                                  const std::filesystem::path& file);

/// A call in progress. Calls of one thread can be nested: a cell calls maps.
struct STIEFEL_API PluginCall {
  PluginCall(std::string_view verb, std::string_view plugin, const std::filesystem::path& file) noexcept;
  ~PluginCall();
  PluginCall(const PluginCall&) = delete;
  PluginCall& operator=(const PluginCall&) = delete;
  /// The innermost call of this thread, or null. Can be used in a signal handler.
  static const PluginCall* innermost() noexcept;

  std::string_view verb, plugin, file;
  const PluginCall* outer;
};

/// Calls `call` and returns its result; exceptions pass through rethrow_from_plugin().
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

template <class T> struct ScalarOf;
template <template <class> class Base, class S> struct ScalarOf<Base<S>> { using type = S; };

/// Creates an object of the role's base class, e.g. created<Cell<float>>(entry, options, &context). Not guarded.
template <class T> std::unique_ptr<T> created(const Entry& entry, const void* options, const void* context = nullptr) {
  const auto create = std::is_same_v<typename ScalarOf<T>::type, float> ? entry.create_float : entry.create_double;
  return std::unique_ptr<T>(static_cast<T*>(create(options, context)));
}

/// An object that a plugin made, with the plugin's name and file for errors.
template <class T> struct Plugged {
  std::unique_ptr<T> object;
  std::string name;
  std::filesystem::path file;

  T* operator->() const { return object.get(); }
  T& operator*() const { return *object; }
  /// Calls f(), which calls the object. Errors name verb, plugin and file.
  template <class F> decltype(auto) call(std::string_view verb, F&& f) const {
    return guarded(verb, name, file, std::forward<F>(f));
  }
};

}  // namespace stiefel
