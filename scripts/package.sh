#!/usr/bin/env bash
# Builds the Debian packages of this source tree: scripts/package.sh [FOLDER]
set -euo pipefail
umask 022  # the packages keep the permissions of the folders that are made here
root="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)"
source "$root/scripts/setup.sh"
target="$(mkdir -p "${1:-.}" && cd "${1:-.}" && pwd -P)"
install_packages build package
configure_and_build package
(cd "$root/build/package" && cpack -B "$target" >cpack.log 2>&1) || fail "cpack failed; see $root/build/package/cpack.log"
rm -rf "$target/_CPack_Packages"
ls "$target"/stiefel*.deb
