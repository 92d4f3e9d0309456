#!/usr/bin/python3
"""A disk that is full ends a run with a message, harms no existing file, and the run resumes once there is space.

usage: disk_full.py STIEFEL [--times 100] [--rounds 1]

At --times free sizes, from nothing to somewhat more than the run needs, of a file system in memory: exit code 8 with a sentence that names the
file and says what to do, or a good end. Rows of results.h5 equal those of the run that had space, as far as they go, and checkpoints have their
sums. Then space is freed, and the run resumes to the same bits. Without the right to mount the test is skipped (exit code 77).
"""
import argparse
import collections
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from disturbed import Disturbed, kinds, side_by_side, without_warnings  # pylint: disable=wrong-import-position
from runs import check_opens, numbers  # pylint: disable=wrong-import-position

ROOM, PAGE = 1 << 26, 4096


def in_own_mounts(words):
    """Repeats the program where it may mount, and what it mounts ends with it; returns when that is not allowed."""
    for options in (["--mount", "--map-root-user"], ["--mount"]):
        mount = ["mount", "-t", "tmpfs", "none", "/mnt"]
        if subprocess.run(["unshare", *options, *mount], capture_output=True, check=False).returncode == 0:
            os.execvp("unshare", ["unshare", *options, sys.executable, *words, "--mounts"])


class Disk:
    """A file system of ROOM bytes, `free` of them not yet taken."""

    def __init__(self, path, free):
        self.path, self.filler = path, path / "filler"
        path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "none", path], check=True)
        with open(self.filler, "wb") as file:
            if free < ROOM:
                os.posix_fallocate(file.fileno(), 0, ROOM - free)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", self.path], check=True)
        self.path.rmdir()


def run_ends_well(disturbed, pages):
    with Disk(disturbed.folder / "measured", pages * PAGE) as disk:
        return disturbed.start(disk.path).wait(timeout=300) == 0


def pages_needed(disturbed):
    """With fewer the run does not end well."""
    low, high = 0, 1
    while not run_ends_well(disturbed, high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if run_ends_well(disturbed, middle) else (middle, high)
    return high


def check_intact(directory, expected):
    check_opens(directory)
    if (directory / "results.h5").exists():
        for name, values in numbers(directory / "results.h5").items():
            whole = expected[f"results {name}"]
            assert whole[:len(values)] == values, (directory, name)
    index = directory / "checkpoints/index.json"
    for entry in json.loads(index.read_text())["checkpoints"] if index.exists() else []:
        content = (directory / "checkpoints" / entry["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry["sha256"], entry


def case(disturbed, number, free):
    with Disk(disturbed.folder / f"disk-{number}", free) as disk:
        process = disturbed.start(disk.path)
        said = without_warnings(process.communicate(timeout=300)[0])
        assert process.returncode in (0, 8), (free, process.returncode, said)
        if process.returncode == 8:
            sentence = rf"stiefel: .*{re.escape(str(disk.path))}/.*; free some space.*\n"
            assert re.fullmatch(sentence, said), (free, said)
        for made in disk.path.rglob("config.yaml"):
            check_intact(made.parent, disturbed.expected)
        disk.filler.unlink()
        disturbed.check(disk.path, ("free", free))
        return process.returncode


def every_size(disturbed, times):
    needed = pages_needed(disturbed)
    sizes = [round(1.1 * needed * i / times) * PAGE for i in range(times)]
    codes = collections.Counter(side_by_side(lambda number: case(disturbed, number, sizes[number]), range(times)))
    return f"{times} free sizes up to {sizes[-1]} bytes, {needed * PAGE} needed, exit codes {dict(codes)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=1, help="each with another task, model and optimizer")
    parser.add_argument("--mounts", action="store_true", help="this process may mount")
    settings = parser.parse_args()
    if not settings.mounts:
        in_own_mounts(sys.argv)
        print("skipped: no file system may be mounted here")
        sys.exit(77)
    for kind in kinds(settings.rounds):
        with tempfile.TemporaryDirectory() as folder:
            disturbed = Disturbed(settings.program, pathlib.Path(folder).resolve(), kind)
            print(f"{'-'.join(kind)}: {every_size(disturbed, settings.times)}: all bits equal", flush=True)


if __name__ == "__main__":
    main()
