#!/bin/bash
# Authors whose compiler is not the program's: what `stiefel new` writes for the four roles is built with each other compiler that is
# installed, checked and trained.
#
#   compilers.sh STIEFEL CMAKE_PACKAGE COMPILER_OF_STIEFEL
set -euo pipefail

stiefel=$1 package=$2 own=$3
work=$(mktemp -d "${TMPDIR:-/tmp}/stiefel-compilers-XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "compilers: $*" >&2; exit 1; }
unset STIEFEL_PLUGIN_PATH CXXFLAGS LDFLAGS
export XDG_DATA_HOME=$work/data

compilers=()
for name in g++-{11..14} clang++-{14..19}; do
  found=$(command -v "$name") || continue
  [ "$(readlink -f "$found")" = "$(readlink -f "$own")" ] || compilers+=("$name")
done
if [ ${#compilers[@]} -eq 0 ]; then
  echo "skipped: no other compiler is installed, such as clang-14 (apt-get install clang-14)"
  exit 77
fi

for compiler in "${compilers[@]}"; do
  mkdir "$work/$compiler" && cd "$work/$compiler"
  for role in parametrisation cell task optimizer; do
    plugin=own_$role
    "$stiefel" new $role $plugin > new.txt
    cmake -S $plugin -B $plugin/build -Dstiefel_DIR="$package" -DCMAKE_CXX_COMPILER="$compiler" > log.txt 2>&1 &&
      cmake --build $plugin/build >> log.txt 2>&1 || { cat log.txt; fail "$compiler does not build what \`stiefel new $role\` writes"; }
    "$stiefel" check $plugin/build/$plugin.so > check.txt 2>&1 || { cat check.txt; fail "\`stiefel check\` does not pass the $role of $compiler"; }
    grep -q ' passed: ' check.txt || { cat check.txt; fail "\`stiefel check\` does not say what passed for the $role of $compiler"; }
    "$stiefel" run $plugin/example.yaml train.steps=20 > run.txt 2>&1 || { cat run.txt; fail "\`stiefel run\` does not train the $role of $compiler"; }
  done
  echo "$compiler: built, checked and trained the four roles"
done
