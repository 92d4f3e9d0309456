#!/bin/sh
# Runs a test with the Python of STIEFEL_PYTHON.
if [ -z "${STIEFEL_PYTHON:-}" ]; then
  echo "skipped: STIEFEL_PYTHON does not name the Python of a virtual environment"
  exit 77
fi
exec "$STIEFEL_PYTHON" "$@"
