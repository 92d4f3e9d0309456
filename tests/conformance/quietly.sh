#!/bin/sh
# Runs `stiefel check …` and prints only what is wrong, with the method, and the last line: quietly.sh COMMAND...
output=$("$@" 2>&1)
status=$?
printf '%s\n' "$output" | awk '/^[^ ]/ { method = $0 } /FAIL|stiefel:/ { print method; print } END { print }'
exit $status
