#!/usr/bin/python3
"""The Python wheel, as an ordinary user installs it in bare Debians 12 and 13: README's commands without a compiler, every built-in method,
plugins of that Debian's g++, and what remains after `pip uninstall`.

usage: wheel_test.py SOURCE SCRATCH STIEFEL; STIEFEL is the program of a source build. Needs root, debootstrap and PyPI, and is skipped
without the first two. The wheel is built in a bare Debian 12, unless the variable STIEFEL_WHEEL names one.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import chroot

SOURCE, SCRATCH, STIEFEL = (pathlib.Path(word).resolve() for word in sys.argv[1:])
OWN = {"PATH": f"{STIEFEL.parent}:/usr/bin:/bin", "HOME": str(SCRATCH)}
CHECK = 'stiefel check "$(stiefel --prefix)/lib/stiefel/plugins"'
ACTIVATE = ". /home/somebody/stiefel/bin/activate && "


def succeed(image, command, **how):
    done = image.run("/bin/bash", "-c", command, **how)
    assert done.returncode == 0, (command, (done.stdout + done.stderr)[-3000:])
    return done.stdout


def build_wheel():
    image = chroot.Image(SCRATCH / "wheel-build", chroot.bare_debian(SCRATCH))
    try:
        image.copy(SOURCE, "/source")
        print(succeed(image, "/source/scripts/wheel.sh /made").strip(), flush=True)
        wheel, = (image.root / "made").glob("*.whl")
        return pathlib.Path(shutil.copy(wheel, SCRATCH))
    finally:
        image.remove()


def commands_of_readme(wheel):
    """The block that installs a wheel; its first line makes a virtual environment."""
    block, = (block for block in re.findall(r"^```sh not-run\n(.*?)^```", (SOURCE / "README.md").read_text(encoding="utf-8"), re.M | re.S)
              if "pip install" in block)
    assert wheel.name in block, (wheel.name, block)
    return block


def user(suite, wheel):
    image = chroot.Image(SCRATCH / f"wheel-{suite}", chroot.bare_debian(SCRATCH, suite))
    try:
        succeed(image, "apt-get -q update && apt-get -q -y install --no-install-recommends python3-venv && useradd -m somebody")
        image.folder = "/home/somebody"
        shutil.copy(wheel, image.root / "home/somebody")
        requirements = "h5py numpy PyYAML"
        succeed(image, f"python3 -m venv first && first/bin/pip download -q -d /home/somebody/at-hand {requirements}", user="somebody")
        make_environment, install_and_run = commands_of_readme(wheel).split("\n", 1)
        succeed(image, make_environment, user="somebody")
        start = time.monotonic()
        told = succeed(image, f"set -e; {ACTIVATE} export PIP_NO_INDEX=1 PIP_FIND_LINKS=/home/somebody/at-hand\n{install_and_run}", user="somebody")
        assert re.search(r"^finished: test loss 0\.00\d+ ", told, re.M), told
        print(f"{suite}: from pip install to the trained network in {time.monotonic() - start:.1f} s", flush=True)
        listed = [succeed(image, ACTIVATE + "stiefel list", user="somebody"), subprocess.check_output([STIEFEL, "list"], text=True)]
        assert listed[0] == listed[1], listed
        checked = [succeed(image, ACTIVATE + CHECK, user="somebody"), subprocess.check_output(["/bin/bash", "-c", CHECK], text=True, env=OWN)]
        passed = [re.findall(r"^.* passed: .*", text, re.M) for text in checked]
        assert passed[0] == passed[1] and passed[0], passed
        print(f"{suite}: stiefel check passes {len(passed[0])} methods, those that need no data, as in the source build", flush=True)
        plugins(image, "g++")
        hostile(image)
        if suite == "trixie":
            plugins(image, "clang++-19")
        succeed(image, ACTIVATE + "pip uninstall -q -y stiefel", user="somebody")
        left = succeed(image, "find stiefel -iname '*stiefel*' -mindepth 1", user="somebody")
        assert not left, left
    finally:
        image.remove()


def plugins(image, compiler):
    """What `stiefel new` writes for the four roles, with a compiler of this Debian and no other package than CMake."""
    package = compiler.replace("clang++", "clang")
    succeed(image, f"cd / && apt-get -q -y install --no-install-recommends {package} cmake make")
    for role in ("parametrisation", "cell", "task", "optimizer"):
        name = f"own_{role}"
        succeed(image, f"""set -e; {ACTIVATE} rm -rf {name}; stiefel new {role} {name}; export CXX={compiler}
                       cmake -S {name} -B {name}/build && cmake --build {name}/build && stiefel check {name}/build/{name}.so
                       stiefel run {name}/example.yaml train.steps=20 name={name}-{package.replace('+', 'p')}""", user="somebody")
    print(f"{compiler} of this Debian: built, checked and trained the four roles", flush=True)


def hostile(image):
    """The plugins that `stiefel check` must refuse, built with this Debian's g++ against the wheel."""
    image.copy(SOURCE, "/home/somebody/source")
    lists = """cmake_minimum_required(VERSION 3.25)
               project(hostile CXX)
               find_package(stiefel REQUIRED)
               include_directories(/home/somebody/source)
               file(GLOB sources /home/somebody/source/tests/*/hostile_*.cpp)
               foreach(source ${sources})
                 get_filename_component(name ${source} NAME_WE)
                 stiefel_add_plugin(${name} ${source})
               endforeach()"""
    (image.root / "home/somebody/source/hostile").mkdir()
    (image.root / "home/somebody/source/hostile/CMakeLists.txt").write_text(lists, encoding="utf-8")
    succeed(image, f"""set -e; {ACTIVATE} cmake -S source/hostile -B hostile -DCMAKE_PREFIX_PATH="$(stiefel --prefix)" && cmake --build hostile -j 2
                   python3 source/tests/conformance/hostile_test.py stiefel "$PWD/hostile" "$(stiefel --prefix)/lib/stiefel/plugins" """, user="somebody")
    print("stiefel check refuses the hostile plugins with the same sentences", flush=True)


def main():
    if not chroot.can_be_had():
        return chroot.SKIPPED
    SCRATCH.mkdir(parents=True, exist_ok=True)
    given = os.environ.get("STIEFEL_WHEEL")
    wheel = pathlib.Path(given) if given else build_wheel()
    size = wheel.stat().st_size / 1e6
    print(f"{wheel.name}: {size:.1f} MB", flush=True)
    assert size <= 30, size
    for suite in ("bookworm", "trixie"):
        user(suite, wheel)
    return 0


if __name__ == "__main__":
    sys.exit(main())
