// One small, working method of every role for authors to change. Each passes `stiefel check` and trains unchanged.
#pragma once

#include <string>
#include <vector>

namespace stiefel::cli {

struct Template {
  std::string role;
  std::string language;  ///< --python, --torch; empty: C++
  std::string source;    ///< with CLASS and NAME for the names of the class and the plugin
};
extern const std::vector<Template> templates;

}  // namespace stiefel::cli
