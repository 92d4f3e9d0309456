// One small, working method of every role, for authors to change: each passes `stiefel check` and trains as it stands.
#pragma once

namespace stiefel::cli {

struct Template {
  const char* role;
  const char* source;  ///< with CLASS and NAME in place of the names of the class and the plugin
};
extern const Template templates[4];

}  // namespace stiefel::cli
