#!/bin/sh
# Runs a test on a SIMD target unless it is the default, on which the tests without a target run: on_simd_target.sh STIEFEL TARGET COMMAND...
program=$1 target=$2; shift 2
if env -u STIEFEL_SIMD "$program" --version | grep -qx "SIMD: $target"; then echo "skipped: $target is the default"; exit 77; fi
STIEFEL_SIMD=$target exec "$@"
