#!/usr/bin/env bash
# Packs trained networks with a card for each into FOLDER/stiefel-networks.tar.gz: scripts/collection.sh FOLDER [RUNS...]
#
# RUNS are folders of finished runs. Without them, a network is trained for each file below, which takes some minutes.
set -euo pipefail
root="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)"
source "$root/scripts/setup.sh"
[[ $# -gt 0 ]] || fail "name the folder for the collection: scripts/collection.sh FOLDER [RUNS...]"
target="$(mkdir -p "$1" && cd "$1" && pwd -P)"
shift
program="$root/build/release/bin/stiefel"
[[ -x "$program" ]] || program="$(command -v stiefel)" || fail "there is no program stiefel, neither in build/release/bin nor on the PATH; run quickstart.sh"
trained=(householder scaled_cayley lie_exponential unitary_householder urnn dense_soft nonnormal lstm gru lru)
largest=20000000  # bytes

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
if [[ $# -eq 0 ]]; then
  for name in "${trained[@]}"; do
    say "training $name"
    "$program" run "$root/experiments/methods/$name.yaml" train.steps=1500 --quiet --output "$work/runs"
  done
  set -- "$work/runs"
fi
collection="$work/stiefel-networks"
find "$@" -name config.yaml -printf '%h\n' | sort >"$work/found"
[[ -s "$work/found" ]] || fail "there are no runs in $*"
while IFS= read -r run; do
  "$program" export "$run" --card "$collection/$(basename "$(dirname "$run")")-$(basename "$run")" --license MIT >/dev/null
done <"$work/found"
cp "$root/LICENSE" "$collection"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner -czf "$work/packed" stiefel-networks
size="$(stat -c %s "$work/packed")"
((size <= largest)) || fail "the collection has $size bytes, more than $largest; name fewer runs"
mv "$work/packed" "$target/stiefel-networks.tar.gz"
echo "$target/stiefel-networks.tar.gz"
