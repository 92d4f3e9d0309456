#!/bin/bash
# What `stiefel new ROLE` writes builds with find_package(stiefel) alone, passes its check and learns:
# new_plugin.sh PROGRAM PACKAGE ROLE
set -euo pipefail
program=$1 package=$2 role=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$program" new "$role" my_method
cmake -S my_method -B my_method/build -Dstiefel_DIR="$package" -DCMAKE_BUILD_TYPE=Release >cmake.log || { cat cmake.log; exit 1; }
cmake --build my_method/build >build.log || { cat build.log; exit 1; }
"$program" check my_method/build/my_method.so
cmake -S my_method -B debug -Dstiefel_DIR="$package" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >cmake.log
grep -q -e -D_GLIBCXX_ASSERTIONS debug/compile_commands.json
"$program" run my_method/example.yaml >run.log || { cat run.log; exit 1; }
# The test loss is less than half of that of the constant predictor.
awk '/^finished: test loss / {learned = $4 < $NF / 2} END {exit !learned}' run.log || { cat run.log; exit 1; }
test -n "$(find runs -name results.h5)"
if "$program" new "$role" my_method 2>refusal; then exit 1; fi
grep -q "my_method already exists" refusal
