// What a build records about itself.
#pragma once

namespace stiefel {

struct BuildInfo {
  const char *git_commit, *git_dirty, *git_diff_sha256, *version, *cxx_flags, *yaml_version;
};

extern const BuildInfo build_info;

}  // namespace stiefel
