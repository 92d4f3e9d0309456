// Turns whatever a plugin throws into one Error that says where it was thrown.
#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include <stiefel/error.hpp>
#include "base/assertion.hpp"
#include "host/plugin_call.hpp"
#include "host/registry.hpp"

namespace stiefel {
namespace {

/// An Error whose sentence already says where it comes from.
class LocatedError final : public Error {
 public:
  using Error::Error;
};

std::string type_in_flight() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (!type) return "unknown";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(type->name(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 ? name.get() : type->name();
}

/// The initial-exec model lets a signal handler read it, because nothing is allocated for it later.
[[gnu::tls_model("initial-exec")]] thread_local const PluginCall* innermost_call = nullptr;

}  // namespace

PluginCall::PluginCall(std::string_view verb, std::string_view plugin, const std::filesystem::path& file) noexcept
    : verb(verb), plugin(plugin), file(file.native()), outer(innermost_call) {
  innermost_call = this;
}
PluginCall::~PluginCall() { innermost_call = outer; }
const PluginCall* PluginCall::innermost() noexcept { return innermost_call; }

void rethrow_from_plugin(std::string_view verb, std::string_view plugin, const std::filesystem::path& file) {
  const std::string place = fmt::format("in {}() of {}, {}", verb, plugin, file.string());
  try {
    throw;
  } catch (const LocatedError&) {
    throw;
  } catch (const Error& error) {
    const std::string_view told = error.what();
    const bool of_options = is_built_in(file) || verb == "create" || verb == "describe";
    const bool at_fault = error.code() == Exit::internal || (error.code() == Exit::usage && !of_options);
    // Errors that already name the file or the option to correct; the place in the plugin would not help.
    const bool placed = error.code() == Exit::data || (error.code() == Exit::usage && is_built_in(file)) ||
                        told.find(file.string() + ":") != told.npos;
    const std::string sentence = placed ? error.what() : fmt::format("{} ({})", told, place);
    throw at_fault ? LocatedError(sentence, Exit::plugin) : LocatedError(sentence, error);
  } catch (const std::bad_alloc&) {
    throw LocatedError(fmt::format("out of memory {}; choose smaller sizes or free memory", place), Exit::exhausted);
  } catch (const AssertionFailure& failure) {
    throw LocatedError(fmt::format("{} ({})", failure.fact(), place), Exit::plugin);
  } catch (const std::exception& error) {
    throw LocatedError(fmt::format("{} ({})", error.what(), place), Exit::plugin);
  } catch (...) {
    throw LocatedError(fmt::format("an exception of type {} was thrown {}; let the plugin throw stiefel::Error",
                                   type_in_flight(), place),
                       Exit::plugin);
  }
}

}  // namespace stiefel
