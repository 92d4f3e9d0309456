#!/bin/sh
# with_data.sh COMMAND...: a check of a task on real data sets, which is skipped without them.
[ -n "$STIEFEL_DATA" ] || { echo "skipped: STIEFEL_DATA names no folder"; exit 77; }
exec "$@"
