#!/usr/bin/env bash
# Installs what is missing, builds, and trains an orthogonal RNN on the adding problem: experiments/quickstart.yaml. The
# methods that this experiment does not use are built after it.
set -euo pipefail
root="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)"
source "$root/scripts/setup.sh"

# A run that was stopped half-way is moved aside, unless its process still lives.
set_unfinished_runs_aside() {
  local run pid
  for run in runs/quickstart/*/; do
    run="${run%/}"
    if [[ "$run" == *.unfinished-* || ! -e "$run" ]] || grep -q '^finished:' "$run/log.txt" 2>/dev/null; then continue; fi
    pid="$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$run/lock" 2>/dev/null || true)"
    if [[ -n "$pid" && -e "/proc/$pid" ]]; then continue; fi
    mv "$run" "$run.unfinished-$(date +%Y%m%d-%H%M%S)"
  done
}

install_packages build
remove_foreign_build release
if [[ -f "$root/build/release/CMakeCache.txt" ]]; then
  configure release
else
  configure release -DBUILD_TESTING=OFF
fi
build release stiefel_program adding elman householder adam

cd "$root"
set_unfinished_runs_aside
say "training: stiefel run experiments/quickstart.yaml"
said="$(build/release/bin/stiefel run experiments/quickstart.yaml)" || fail "the training did not finish${said:+: $said}"
results="$(sed -n 's/^results: //p' <<<"$said")"
reached="$(sed -n 's/^finished: //p' "$(dirname "$results")/log.txt" | tail -n 1)"

cat <<END

Reached:  $reached
Result:   $root/$results
END

say "building the other methods"
build release

cat <<END

Next:
  export PATH="$root/build/release/bin:\$PATH"
  stiefel run experiments/quickstart.yaml seed=2 model.recurrent.reflections=32
  stiefel describe experiment
README.md continues from here with your own experiment, plugin and analysis.
END
