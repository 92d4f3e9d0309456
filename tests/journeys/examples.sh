#!/bin/bash
# The plugins in docs/examples: each is built outside the source tree, passes its check and learns.
#
#   examples.sh PROGRAM PACKAGE FOLDER_OF_EXAMPLES
set -euo pipefail
program=$1 package=$2 source=$3
work=$(mktemp -d "${TMPDIR:-/tmp}/stiefel-examples-XXXXXX")
trap 'rm -rf "$work"' EXIT
unset STIEFEL_PLUGIN_PATH CMAKE_PREFIX_PATH CXXFLAGS LDFLAGS
export HOME=$work XDG_DATA_HOME=$work/data

count=0
for folder in "$source"/*/; do
  name=$(basename "$folder")
  lines=$(wc -l < "$folder/$name.cpp")
  [ "$lines" -le 100 ] || { echo "$name.cpp has $lines lines, an example at most 100"; exit 1; }
  cp -r "$folder" "$work/$name"
  cd "$work/$name"
  cmake -S . -B build -Dstiefel_DIR="$package" > configure.log || { cat configure.log; exit 1; }
  cmake --build build > build.log 2>&1 || { cat build.log; exit 1; }
  "$program" check "build/$name.so" > check.log || { cat check.log; exit 1; }
  "$program" run "$name.yaml" > run.log 2>&1 || { cat run.log; exit 1; }
  # The test loss is less than half of that of the constant predictor.
  awk '/^finished: test loss / {learned = $4 < $NF / 2} END {exit !learned}' run.log || { cat run.log; exit 1; }
  count=$((count + 1))
done
cd "$work/tcwy"
"$program" check build/tcwy.so --shape 12x8 > check.log || { cat check.log; exit 1; }  # orthonormal columns
[ "$count" -ge 4 ] || { echo "only $count examples were found in $source"; exit 1; }
echo "$count examples were built and checked, and learn"
