#!/usr/bin/env bash
# Does what README.md and docs/PLUGINS.md say, in their order, in a copy of the source tree: fences of the language sh are run, a fence
# whose first line names a path (```cpp folder/file.cpp) becomes that file. Usage: readme.sh SOURCE_FOLDER SCRATCH_FOLDER
set -euo pipefail
source_folder="$(cd -- "$1" && pwd -P)"
mkdir -p "$2"
scratch="$(cd -- "$2" && pwd -P)"
[[ "$scratch/" != "$source_folder/"* || "$scratch/" == "$source_folder/build"* ]] || { echo "$scratch is inside the source tree" >&2; exit 2; }
copy="$scratch/copy of the source"  # blanks in a path are part of the test
rm -rf "$copy" "${scratch:?}/home"
mkdir -p "$copy" "$scratch/home"

if git -C "$source_folder" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  (cd "$source_folder" && git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' f; do if [[ -f "$f" ]]; then printf '%s\0' "$f"; fi; done) |
    tar -C "$source_folder" --null --files-from=- -cf - | tar -C "$copy" -xf -
else
  tar -C "$source_folder" --exclude=./build --exclude=./runs --exclude=./.git -cf - . | tar -C "$copy" -xf -
fi

# The compiler's cache may be shared; nothing else of the user may be seen or touched.
if command -v ccache >/dev/null; then
  CCACHE_DIR="$(ccache -k cache_dir)"
  export CCACHE_DIR
fi
export HOME="$scratch/home" PATH="/usr/bin:$PATH"  # python3 is the one that has Debian's packages
unset XDG_DATA_HOME XDG_CACHE_HOME XDG_CONFIG_HOME STIEFEL_PLUGIN_PATH STIEFEL_DATA CMAKE_PREFIX_PATH

script="$scratch/journey.sh"
awk '
  BEGIN { print "set -euo pipefail"; mode = "text" }
  FNR == 1 && mode != "text" { print "a fence is not closed before " FILENAME > "/dev/stderr"; exit 1 }
  mode == "text" && $1 == "```sh" { mode = "sh"; next }
  mode == "text" && /^```[a-z]+ / { mode = "file"; blocks++
    folder = $2; if (!sub(/\/[^\/]*$/, "", folder)) folder = "."
    printf "mkdir -p \"%s\"\ncat > \"%s\" <<\"END_OF_FENCE\"\n", folder, $2; next }
  mode == "text" && /^```/ { mode = "other"; next }
  mode != "text" && /^```/ { if (mode == "file") print "END_OF_FENCE"; mode = "text"; next }
  mode == "file" { print }
  mode == "sh" { quoted = $0; gsub(/\x27/, "\x27\\\x27\x27", quoted); printf "printf \x27\\n$ %%s\\n\x27 \x27%s\x27\n%s\n", quoted, $0; commands++ }
  END { if (mode != "text" || commands < 10 || blocks < 5) { print "too few fences: " commands " commands, " blocks " files" > "/dev/stderr"; exit 1 } }
' "$copy/README.md" "$copy/docs/PLUGINS.md" > "$script"

cd "$copy"
if ! bash "$script"; then
  echo "the last command above, of README.md or docs/PLUGINS.md, failed" >&2
  exit 1
fi
echo "every command of README.md and docs/PLUGINS.md works"
