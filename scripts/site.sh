#!/usr/bin/env bash
# Builds the site of this source tree: scripts/site.sh [FOLDER]
#
# It has the documents, references of the Python package and the SDK, galleries, and tables of published results and of what the papers state.
# Its pages load nothing from elsewhere, and need no server. Sphinx comes from PyPI, into build/site-venv; the program, which knows the
# results, must be built.
set -euo pipefail
root="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)"
source "$root/scripts/setup.sh"
target="$(mkdir -p "${1:-$root/build/site}" && cd "${1:-$root/build/site}" && pwd -P)"
[[ -z "$(ls -A "$target")" || -e "$target/searchindex.js" ]] || fail "$target has files that are not those of a site; name another folder"
venv="$root/build/site-venv"
program="$root/build/release/bin/stiefel"
[[ -x "$program" ]] || program="$(command -v stiefel)" || fail "there is no program stiefel, neither in build/release/bin nor on the PATH; run quickstart.sh"

install_packages site
packages=(Sphinx==9.0.4 furo==2025.12.19 myst-parser==5.2.0 breathe==5.1.0)
if [[ "$(cat "$venv/packages" 2>/dev/null)" != "${packages[*]}" ]]; then
  say "installing ${packages[*]}"
  rm -rf "$venv"
  python3 -m venv "$venv" && "$venv/bin/pip" --quiet install "${packages[@]}" ||
    fail "Sphinx could not be installed (above); it needs Python 3.11 or newer with venv, and PyPI"
  echo "${packages[*]}" >"$venv/packages"
fi

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
"$venv/bin/python" "$root/scripts/site/pages.py" "$root" "$work/pages" "$program"
STIEFEL_DOXYGEN="$work/xml" "$venv/bin/python" -m sphinx -q -W --keep-going -b html -c "$root/scripts/site" -d "$work/doctrees" "$work/pages" "$work/site"
cp "$root/scripts/site/index.html" "$work/site"
(cd "$work/pages" && find . -name '*.svg' -exec cp --parents -t "$work/site" {} +)
rm -rf "$target"
mv "$work/site" "$target"
say "$target/index.html"
