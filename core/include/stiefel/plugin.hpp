/// What every plugin includes: roles, options, and the table behind the plugin's only exported symbol.
///
///   STIEFEL_PLUGIN("1.0", stiefel::parametrisation<Cayley>("cayley", "Cayley transform of a skew-symmetric matrix"))
///
/// The class is a template over the scalar with a nested `Options` (a default-constructible struct with
/// describe(Schema&)) and a constructor (const Options&, Shape | CellContext | TaskContext) or, for an optimizer,
/// (const Options&). No member of Options depends on the scalar: one object serves float and double. A parametrisation
/// that can be complex declares `static bool complex_pairs(const Options&)`; a cell learns from CellContext::complex
/// what its maps are; a cell that works only with complex maps also declares complex_pairs, so that `stiefel check`
/// gives it complex ones. No code runs when the library is loaded.
#pragma once

#include <iterator>

#include <stiefel/abi.hpp>
#include <stiefel/activation.hpp>
#include <stiefel/cell.hpp>
#include <stiefel/entry.hpp>
#include <stiefel/initialiser.hpp>
#include <stiefel/linear_algebra.hpp>
#include <stiefel/optimizer.hpp>
#include <stiefel/parametrisation.hpp>
#include <stiefel/product.hpp>
#include <stiefel/schema.hpp>
#include <stiefel/task.hpp>
#include <stiefel/vector_math.hpp>

namespace stiefel {

namespace detail {

template <class Options> void* make_options(Schema& schema) {
  auto* options = new Options;
  try {
    options->describe(schema);
  } catch (...) {
    delete options;
    throw;
  }
  return options;
}
template <class Options> void free_options(void* options) { delete static_cast<Options*>(options); }

template <class T> bool complex_pairs([[maybe_unused]] const void* options) {
  if constexpr (requires(const typename T::Options& o) { T::complex_pairs(o); })
    return T::complex_pairs(*static_cast<const typename T::Options*>(options));
  else
    return false;
}

template <class T, class Base, class Context> void* create(const void* options, const void* context) {
  Base* object = nullptr;
  if constexpr (std::is_void_v<Context>)
    object = new T(*static_cast<const typename T::Options*>(options));
  else
    object = new T(*static_cast<const typename T::Options*>(options), *static_cast<const Context*>(context));
  return object;
}

template <class T, class S> void* open(const void* options, const Trained& trained, const std::string& file) {
  std::unique_ptr<SequenceReader<S>> reader = T::open(*static_cast<const typename T::Options*>(options), trained, file);
  return reader.release();
}
/// Null if the class has no function `open`.
template <class T, class S> constexpr auto opener() -> decltype(&open<T, S>) {
  if constexpr (requires(const typename T::Options& options, const Trained& trained, const std::string& file) {
                  T::open(options, trained, file);
                })
    return &open<T, S>;
  else
    return nullptr;
}

template <template <class> class T, template <class> class Base, class Context>
constexpr Entry entry(Role role, const char* name, const char* meaning) {
  using Options = typename T<float>::Options;
  static_assert(std::is_base_of_v<Base<float>, T<float>>, "the class must derive from the base class of its role");
  return {role,
          name,
          meaning,
          &make_options<Options>,
          &free_options<Options>,
          &complex_pairs<T<float>>,
          &create<T<float>, Base<float>, Context>,
          &create<T<double>, Base<double>, Context>,
          opener<T<float>, float>(),
          opener<T<double>, double>()};
}

}  // namespace detail

template <template <class> class T> constexpr Entry parametrisation(const char* name, const char* meaning) {
  return detail::entry<T, Parametrisation, Shape>(Role::parametrisation, name, meaning);
}
template <template <class> class T> constexpr Entry cell(const char* name, const char* meaning) {
  return detail::entry<T, Cell, CellContext>(Role::cell, name, meaning);
}
template <template <class> class T> constexpr Entry task(const char* name, const char* meaning) {
  return detail::entry<T, Task, TaskContext>(Role::task, name, meaning);
}
template <template <class> class T> constexpr Entry optimizer(const char* name, const char* meaning) {
  return detail::entry<T, Optimizer, void>(Role::optimizer, name, meaning);
}

}  // namespace stiefel

#define STIEFEL_PLUGIN(version, ...)                                                      \
  namespace {                                                                             \
  constexpr ::stiefel::Entry stiefel_entries[] = {__VA_ARGS__};                           \
  constexpr auto stiefel_tag = STIEFEL_ABI_TAG;                                           \
  }                                                                                       \
  extern "C" STIEFEL_API const ::stiefel::PluginTable stiefel_plugin;                     \
  extern "C" const ::stiefel::PluginTable stiefel_plugin = {                              \
      sizeof(::stiefel::PluginTable), sizeof(::stiefel::Entry), version, stiefel_entries, \
      std::size(stiefel_entries),     stiefel_tag.data()};
