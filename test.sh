#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Options go to ctest: ./test.sh -L unit
set -euo pipefail
root="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)"
source "$root/scripts/setup.sh"

install_packages build test
configure_and_build release -DBUILD_TESTING=ON
say "testing"
# One more than there are cores: many tests wait for processes most of the time.
outcome="$root/build/release/tests.xml"
if ! ctest --test-dir "$root/build/release" --output-on-failure --output-junit "$outcome" -j "$(($(nproc) + 1))" "$@"; then
  fail "tests failed (above); rerun only these with ./test.sh --rerun-failed"
fi
python3 "$root/tests/skipped.py" "$outcome"
say "all tests passed"
