// An experiment is refused in words that a terminal can show, or it is the same when it is read from what is written
// out of it.
#pragma once

#include <cstdlib>

#include "base/printable.hpp"
#include "host/loader/load.hpp"
#include "tests/unit/config_plugins.hpp"

namespace stiefel {
PluginFile load_plugin(const std::filesystem::path&) { throw Error("no plugin is loaded here", Exit::plugin); }
std::filesystem::path library_folder() { return {}; }
}  // namespace stiefel

namespace fuzz {

inline void load_twice(const std::string& text, const std::vector<std::string>& overrides) {
  using namespace stiefel;
  static Registry methods = config_test::registry();
  std::string written, hash;
  try {
    const LoadedExperiment loaded = load_experiment_text(text, "f.yaml", overrides, methods);
    written = loaded.resolved_yaml, hash = loaded.hash;
  } catch (const Error& error) {
    const std::string sentence = error.what();
    if (sentence.empty() || sentence != printable_lines(sentence)) std::abort();
    return;
  }
  const LoadedExperiment again = load_experiment_text(written, "f.yaml", {}, methods);
  if (again.hash != hash || again.resolved_yaml != written) std::abort();
}

}  // namespace fuzz
