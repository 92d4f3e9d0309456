# Setup shared by quickstart.sh, test.sh, .ci/run and scripts/package.sh: packages, number of jobs, configure and build.
# Sourced by bash, with `root` set.

say() { printf '==> %s\n' "$*" >&2; }
fail() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# Names of the packages in the given sections of packages.txt.
packages_in() {
  local wanted=" $* " section="" line
  while IFS= read -r line; do
    line="${line%%#*}"
    line="${line//[[:space:]]/}"
    case "$line" in
      "") ;;
      "["*"]") section="${line:1:-1}" ;;
      *) if [[ "$wanted" == *" $section "* ]]; then printf '%s\n' "$line"; fi ;;
    esac
  done < "$root/scripts/packages.txt"
}

installed() { [[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" == installed* ]]; }

# Installs what is missing of the given sections; touches neither network nor root when nothing is.
install_packages() {
  local missing=() package as_root=()
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    fail "this is not Debian or Ubuntu (no apt-get): build a container from scripts/Containerfile or scripts/stiefel.def instead"
  fi
  for package in $(packages_in "$@"); do
    installed "$package" || missing+=("$package")
  done
  if [[ ${#missing[@]} -eq 0 ]]; then return 0; fi
  if [[ $EUID -ne 0 ]]; then
    command -v sudo >/dev/null || fail "packages are missing, and you are not root and have no sudo; run as root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  local apt=(${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
  local log
  log="$(mktemp)"
  # stale lists may still serve; if not, install says so
  "${apt[@]}" update >"$log" 2>&1 || true
  if ! "${apt[@]}" install --no-install-recommends "${missing[@]}" >>"$log" 2>&1; then
    tail -n 15 "$log" >&2
    rm -f "$log"
    fail "apt-get could not install ${missing[*]} (its last output is above); fix that, or install them by hand, and run this again"
  fi
  rm -f "$log"
}

# One job a core, but no more than memory allows: a compiler takes up to 1.5 GB.
jobs() {
  local cores kilobytes limit file
  cores="$(nproc)"
  kilobytes="$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)"
  # The control group of a container, of a job or service, and the same of version 1.
  for file in memory.max ".$(sed -n 's/^0:://p' /proc/self/cgroup 2>/dev/null)/memory.max" memory/memory.limit_in_bytes; do
    limit="$(cat "/sys/fs/cgroup/$file" 2>/dev/null || echo max)"
    if [[ "$limit" =~ ^[0-9]+$ ]] && ((limit / 1024 < kilobytes)); then kilobytes=$((limit / 1024)); fi
  done
  local fitting=$((kilobytes / 1500000))
  if ((fitting < 1)); then fitting=1; fi
  echo $((cores < fitting ? cores : fitting))
}

# configure_and_build PRESET [CMake options…]
configure_and_build() {
  configure "$@"
  build "$1"
}

# remove_foreign_build PRESET: a folder that was copied or moved here with its cache belongs to another source tree.
remove_foreign_build() {
  local folder="$root/build/$1"
  if [[ -f "$folder/CMakeCache.txt" ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then rm -rf "$folder"; fi
}

# configure PRESET [CMake options…]
configure() {
  local preset="$1" folder="$root/build/$1"
  shift
  remove_foreign_build "$preset"
  # For ccache paths below the root are the same wherever the root is, and objects with and without -Werror.
  export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1 CCACHE_IGNOREOPTIONS=-Werror
  { mkdir -p "$folder" && : >"$folder/configure.log"; } 2>/dev/null || fail "cannot write to $folder"
  say "configuring $preset"
  if ! (cd "$root" && cmake --preset "$preset" "$@" >"$folder/configure.log" 2>&1); then
    tail -n 30 "$folder/configure.log" >&2
    fail "CMake could not configure $folder (its last output is above, all of it in configure.log there)"
  fi
}

# build PRESET [TARGET…]; it may take BUILD_LIMIT, such as 30m, if that is set.
build() {
  local preset="$1"
  shift
  say "building $preset with $(jobs) jobs${1:+: $*}"
  (cd "$root" && ${BUILD_LIMIT:+timeout "$BUILD_LIMIT"} cmake --build --preset "$preset" -j "$(jobs)" ${1:+--target "$@"} >&2) ||
    fail "the build in $root/build/$preset failed${BUILD_LIMIT:+ or took more than $BUILD_LIMIT}; the compiler's message is above"
  # A file of a target that no longer exists must not serve a test.
  ninja -C "$root/build/$preset" -t cleandead >/dev/null
}
