#!/bin/bash
# A plugin's author on a machine that has only the installation: installs this build to a temporary prefix, copies my_cayley to a
# folder elsewhere, builds it there with find_package(stiefel), then lists, checks and trains it; once as three lines of CMake
# build it, once with -O3 -march=native, once in C++23.
#
#   out_of_tree.sh BUILD SOURCE_OF_PLUGIN
set -euo pipefail

build=$1 source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/stiefel-journey-XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "out_of_tree: $*" >&2; exit 1; }

# No variable of the person who runs the tests, and nothing of the source or build tree, may take part.
unset STIEFEL_PLUGIN_PATH STIEFEL_DATA LD_LIBRARY_PATH CMAKE_PREFIX_PATH CXXFLAGS LDFLAGS
export HOME=$work/home XDG_DATA_HOME=$work/home/data XDG_CACHE_HOME=$work/home/cache XDG_CONFIG_HOME=$work/home/config
mkdir -p "$HOME"

cmake --install "$build" --prefix "$work/prefix" > "$work/install.log"
stiefel=$work/prefix/bin/stiefel
library=$(find "$work/prefix" -name libstiefel.so | head -n 1)
[ -n "$library" ] || fail "the installation has no libstiefel.so"
[ -f "$work/prefix/include/stiefel/abi.hpp" ] || fail "the installation has no generated abi.hpp"
for file in man/man1/stiefel.1 man/man1/stiefel-run.1 bash-completion/completions/stiefel zsh/vendor-completions/_stiefel fish/vendor_completions.d/stiefel.fish; do
  [ -s "$work/prefix/share/$file" ] || fail "the installation has no share/$file"
done
docs=$work/prefix/share/doc/stiefel
[ -s "$docs/README.md" ] && [ -s "$docs/docs/PLUGINS.md" ] || fail "the installation has no documents"
while IFS=: read -r file link; do
  [ -e "$(dirname "$file")/$link" ] || fail "the installed $file has a link to $link, which is not installed"
done < <(grep -roE --include='*.md' '(\]\(|src=")[^]:#")]+' "$docs" | sed -E 's/(\]\(|src=")//' | grep -v ':https$')
"$stiefel" reproduce list ornn/figure-4 | grep -q ' matched$' || fail "\`stiefel reproduce list\` does not show the measured results"
# The folder $ORIGIN and the system's may be searched at run time, those of the trees may not.
if readelf -d "$library" "$stiefel" | grep -E 'R(UN)?PATH' | grep -F "$build" ; then fail "the installation looks for libraries in the build tree"; fi

author() {  # author NAME FLAGS…: builds a copy of the plugin in $work/NAME, checks and trains it
  local folder=$work/$1; shift
  cp -r "$source" "$folder"
  cd "$folder"
  cmake -S . -B build -Dstiefel_ROOT="$work/prefix" "$@" > configure.log 2>&1 || { cat configure.log; fail "configuring failed"; }
  cmake --build build > build.log 2>&1 || { cat build.log; fail "building failed"; }
  grep -qF "$build" build/build.ninja build/Makefile build/compile_commands.json 2>/dev/null && fail "the plugin's build knows of the build tree"

  local plugin=$folder/build/my_cayley.so
  local exported; exported=$(nm -D --defined-only "$plugin" | awk '{print $3}')
  [ "$exported" = stiefel_plugin ] || fail "the plugin exports '$exported' and only stiefel_plugin may be seen"
  export STIEFEL_PLUGIN_PATH=$folder/build
  "$stiefel" list > list.txt
  grep -Eq "^my_cayley +parametrisation +.* \[$plugin, version 1\.0\]\$" list.txt || { cat list.txt; fail "\`stiefel list\` does not show the plugin"; }
  "$stiefel" describe my_cayley | grep -q angle || fail "\`stiefel describe my_cayley\` does not show its option"
  "$stiefel" check "$plugin" > check.txt 2>&1 || { cat check.txt; fail "\`stiefel check\` does not pass the plugin"; }
  "$stiefel" run adding.yaml > run.txt 2>&1 || { cat run.txt; fail "\`stiefel run\` does not train with the plugin"; }
  [ -n "$(find runs -name results.h5)" ] || fail "training left no results.h5"
  unset STIEFEL_PLUGIN_PATH
}

author plain
author native -DCMAKE_CXX_FLAGS="-O3 -march=native"
author newer -DCMAKE_CXX_STANDARD=23

# A function that nobody defines is found by the linker.
cp -r "$source" "$work/undefined" && cd "$work/undefined"
echo 'void nowhere(); __attribute__((used)) static void call() { nowhere(); }' >> my_cayley.cpp
cmake -S . -B build -Dstiefel_ROOT="$work/prefix" > configure.log
if cmake --build build > build.log 2>&1; then fail "a plugin with an undefined function was linked"; fi
grep -q 'undefined reference to .nowhere()' build.log || { cat build.log; fail "the linker does not name the undefined function"; }

# A plugin of another SDK is refused with the command that mends it, and that command works.
sed -i 's/STIEFEL_SDK_ID "[0-9a-f]*"/STIEFEL_SDK_ID "0123456789abcdef"/' "$work/prefix/include/stiefel/abi.hpp"
cp -r "$source" "$work/old" && cd "$work/old"
cmake -S . -B build -Dstiefel_ROOT="$work/prefix" > configure.log && cmake --build build > build.log
cmake --install "$build" --prefix "$work/prefix" > "$work/install.log"
sentence=$(STIEFEL_PLUGIN_PATH=build "$stiefel" list | grep my_cayley.so)
grep -q "SDK headers 0123456789abcdef and this stiefel with SDK headers" <<< "$sentence" || fail "the refusal of an old plugin is: $sentence"
mend=$(sed -n 's/.*: \(cmake --fresh .*\)/\1/p' <<< "$sentence")
mend=${mend/-S SOURCE -B BUILD/-S . -B build} mend=${mend/--build BUILD/--build build}
bash -c "$mend" > mend.log 2>&1 || { cat mend.log; fail "the command that should mend it fails: $mend"; }
echo "out_of_tree: built, listed, checked and trained, plain, native and in C++23"
