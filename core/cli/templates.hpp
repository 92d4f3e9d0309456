// One small, working method of every role for authors to change. Each passes `stiefel check` and trains unchanged.
#pragma once

namespace stiefel::cli {

struct Template {
  const char* role;
  const char* source;  ///< with CLASS and NAME for the names of the class and the plugin
};
extern const Template templates[4];

}  // namespace stiefel::cli
