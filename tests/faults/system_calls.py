#!/usr/bin/python3
"""A run whose system calls are stopped, made to fail, or lost: it goes on with the same bits, and nothing that was there is harmed.

usage: system_calls.py STIEFEL INJECT.so kill|fail|memory|cut [--every K] [--times N] [--seed 1]

kill  The process is killed just before each of its calls on files of the run (each K-th of them with --every), then the run goes on.
fail  From each such call on, one fails with ENOSPC, EIO, EDQUOT or EROFS in turn: exit code 8 (or the run ends well, when nothing of it was
      needed), results.h5 opens and holds the rows that it had; then the run goes on.
memory  One of its allocations fails, at --times places from the first to the last, evenly on a logarithmic scale: the run ends well or with a
      sentence and exit code 8, never by a signal; then it goes on.
cut   The calls of one run are written down and played back up to a random moment; of what was not synced then, each file keeps a random
      part from its beginning, and the folder its first renames and creations: what a journaling file system may leave after a power cut.
      The run goes on from there.
In all cases every number and weight must equal those of a run that nobody disturbed.
"""
import argparse
import copy
import os
import pathlib
import random
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from runs import Runner, check_opens, expect_equal, experiment, outcome  # pylint: disable=wrong-import-position

ERRORS = ("ENOSPC", "EIO", "EDQUOT", "EROFS")


class Disturbed:
    """One experiment, its undisturbed outcome, and processes with the preloaded library."""

    def __init__(self, settings, folder):
        self.runner, self.inject, self.folder = Runner(settings.program, folder), settings.inject, folder
        self.file = folder / "experiment.yaml"
        self.file.write_text(experiment("adding", "moving", "adam", 24), encoding="utf-8")
        whole, _ = self.runner.reference(self.file, 1)
        self.expected = outcome(whole)
        self.parts = folder / "parts"

    def run(self, mode, **more):
        self.parts.mkdir()
        environment = {"LD_PRELOAD": str(self.inject), "STIEFEL_FAULT_FOLDER": str(self.parts), "STIEFEL_FAULT_MODE": mode,
                       **{f"STIEFEL_FAULT_{key.upper()}": str(value) for key, value in more.items()}}
        return self.runner.start("run", self.file, "--output", self.parts, "--threads", 1, environment=environment)

    def count(self):
        self.runner.end(self.run("count", log=self.folder / "count"))
        shutil.rmtree(self.parts)
        return int((self.folder / "count").read_text())

    def check(self, where):
        for made in self.parts.rglob("config.yaml"):
            check_opens(made.parent)
        expect_equal(outcome(self.runner.go_on(self.file, self.parts)), self.expected, where)
        shutil.rmtree(self.parts)


def kill(disturbed, every):
    calls = disturbed.count()
    for number in range(1, calls + 1, every):
        disturbed.run("kill", at=number).communicate(timeout=300)
        disturbed.check(("kill", number))
    return f"killed before {len(range(1, calls + 1, every))} of {calls} calls"


def fail(disturbed, every):
    calls = disturbed.count()
    codes = {}
    for number in range(1, calls + 1, every):
        error = ERRORS[number % len(ERRORS)]
        process = disturbed.run("fail", at=number, errno=error)
        said = process.communicate(timeout=300)[0]
        assert process.returncode in (0, 8), (number, error, process.returncode, said)
        codes[process.returncode] = codes.get(process.returncode, 0) + 1
        disturbed.check(("fail", number, error))
    return f"failed from {len(range(1, calls + 1, every))} of {calls} calls on, exit codes {codes}"


def memory(disturbed, times):
    disturbed.runner.end(disturbed.run("memory", at=0, log=disturbed.folder / "count"))
    shutil.rmtree(disturbed.parts)
    total = int((disturbed.folder / "count").read_text())
    places = sorted({round(total ** (i / (times - 1))) for i in range(times)} | set(range(1, times // 4)))
    codes, wrong = {}, []
    for number in places:
        process = disturbed.run("memory", at=number, log=disturbed.folder / "count")
        said = process.communicate(timeout=300)[0]
        codes[process.returncode] = codes.get(process.returncode, 0) + 1
        if process.returncode not in (0, 8) or (process.returncode == 8 and not said.startswith("stiefel: ")):
            wrong.append((number, process.returncode, said[-300:]))
        disturbed.check(("memory", number))
    assert not wrong, (len(wrong), wrong[:20])
    return f"{len(places)} of {total} allocations failed, exit codes {codes}"


# ---- power cuts

def read_log(path):
    """Records as (name, [path…], [number…], bytes)."""
    data, at, records = path.read_bytes(), 0, []
    while at < len(data):
        end = data.index(b"\n", at)
        name, *words = data[at:end].decode().split(" ")
        at = end + 1
        paths = 2 if name == "rename" else 1
        names = [bytes.fromhex(word).decode() for word in words[:paths]]
        numbers = [int(word) for word in words[paths:]]
        content = b""
        if name == "write":
            content = data[at:at + numbers[1]]
            at += numbers[1]
        records.append((name, names, numbers, content))
    return records


def apply(content, operation):
    """One write or truncation on the bytes of a file."""
    name, numbers, data = operation
    if name == "truncate":
        del content[numbers[0]:]
        content.extend(bytes(numbers[0] - len(content)))
    else:
        content.extend(bytes(max(0, numbers[0] - len(content))))
        content[numbers[0]:numbers[0] + len(data)] = data


class Disk:
    """Files as a journaling file system may find them: what was synced, and what was done since."""

    def __init__(self):
        self.files = {}  # number: [durable bytes, pending operations]
        self.names, self.durable_names, self.pending_names = {}, {}, []  # path: number or None for a folder
        self.numbers = 0

    def change(self, operation):
        self.pending_names.append(operation)
        self.link(self.names, operation)

    @staticmethod
    def link(names, operation):
        name, path, number = operation
        if name == "unlink":
            names.pop(path, None)
        elif name == "rename":
            names[number] = names.pop(path)
        else:
            names[path] = number

    def play(self, record):
        name, paths, numbers, content = record
        if name == "mkdir":
            self.change(("make", paths[0], None))
        elif name == "create" and paths[0] not in self.names:
            self.numbers += 1
            self.files[self.numbers] = [bytearray(), []]
            self.change(("make", paths[0], self.numbers))
        elif name == "create" and numbers[0]:
            self.files[self.names[paths[0]]][1].append(("truncate", [0], b""))
        elif name in ("write", "truncate"):
            self.files[self.names[paths[0]]][1].append((name, numbers, content))
        elif name == "rename":
            self.change(("rename", paths[0], paths[1]))
        elif name == "unlink":
            self.change(("unlink", paths[0], None))
        elif name == "sync":
            self.sync(paths[0])

    def sync(self, path):
        number = self.names.get(path)
        if number is None:  # a folder; the journal keeps its operations in order
            self.keep_names(len(self.pending_names))
            return
        content, pending = self.files[number]
        for operation in pending:
            apply(content, operation)
        pending.clear()
        made = [i for i, (_, at, what) in enumerate(self.pending_names) if path in (at, what)]
        if made:  # a synced file has a name
            self.keep_names(made[-1] + 1)

    def keep_names(self, count):
        for operation in self.pending_names[:count]:
            self.link(self.durable_names, operation)
        del self.pending_names[:count]

    def cut(self, folder, rng):
        """Writes what may be left."""
        self.keep_names(rng.randint(0, len(self.pending_names)))
        for path in sorted(self.durable_names):
            number, target = self.durable_names[path], folder / path
            if number is None:
                target.mkdir(parents=True, exist_ok=True)
                continue
            content, pending = self.files[number]
            left = bytearray(content)
            for operation in pending[:rng.randint(0, len(pending))]:
                apply(left, operation)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(left)


def cut(disturbed, cuts, rng):
    log = disturbed.folder / "log"
    disturbed.runner.end(disturbed.run("record", log=log))
    records = read_log(log)
    shutil.rmtree(disturbed.parts)
    moments = sorted(rng.randint(0, len(records)) for _ in range(cuts))
    disk, played = Disk(), 0
    for moment in moments:
        for record in records[played:moment]:
            disk.play(record)
        played = moment
        disturbed.parts.mkdir()
        copy.deepcopy(disk).cut(disturbed.parts, rng)
        for lock in disturbed.parts.rglob("lock"):
            lock.unlink()  # the machine has booted again
        disturbed.check(("cut", moment))
    return f"{cuts} power cuts within {len(records)} calls"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("inject", type=pathlib.Path)
    parser.add_argument("mode", choices=("kill", "fail", "memory", "cut"))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--times", type=int, default=200, help="of memory and cut")
    parser.add_argument("--seed", type=int, default=1)
    settings = parser.parse_args()
    os.environ["LC_ALL"] = "C"
    with tempfile.TemporaryDirectory() as folder:
        disturbed = Disturbed(settings, pathlib.Path(folder).resolve())
        if settings.mode == "cut":
            print(cut(disturbed, settings.times, random.Random(settings.seed)) + ": all bits equal")
        elif settings.mode == "memory":
            print(memory(disturbed, settings.times) + ": all bits equal")
        else:
            print({"kill": kill, "fail": fail}[settings.mode](disturbed, settings.every) + ": all bits equal")


if __name__ == "__main__":
    main()
