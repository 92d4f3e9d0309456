#!/usr/bin/python3
"""A run whose system calls are stopped, made to fail, or lost: it resumes with the same bits, and no existing file is harmed.

usage: system_calls.py STIEFEL INJECT.so kill|fail|memory|cut [--rounds 1] [--every 1] [--times N] [--first N] [--seed 1]

kill  The process is killed just before each of its calls on files of the run, or with --every N before every N-th, then the run goes on. In
      --rounds, each with another experiment.
fail  From each such call on, one fails with ENOSPC, EIO, EDQUOT or EROFS in turn: exit code 8 (or the run ends well, when nothing of it was
      needed), results.h5 opens and holds the rows that it had; then the run goes on.
memory  One of its allocations fails: the run ends with the sentence, in its log too, and exit code 8, never by a signal; then it goes on. It
      is at --times places, half of them spread evenly over all, the others over loading, configuration, checkpoints and publishes alike; with
      --first, each of the first so many and --times more, evenly on a logarithmic scale.
cut   The calls of one run are written down and played back up to a random moment; of what was not synced then, each file keeps a random
      part from its beginning, and the folder its first renames and creations: what a journaling file system may leave after a power cut.
      The run goes on from there.
In all cases every number and weight must equal those of a run that nobody disturbed.
"""
import argparse
import collections
import copy
import os
import pathlib
import random
import sys
import tempfile

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from disturbed import Injected, kinds, side_by_side, without_warnings  # pylint: disable=wrong-import-position
from played_disk import Disk, read_log  # pylint: disable=wrong-import-position

ERRORS = ("ENOSPC", "EIO", "EDQUOT", "EROFS")
LONGER = {"steps": 24, "evaluate_every": 23, "checkpoint": "{every: 10, keep: 2}"}


def chosen_calls(disturbed, arguments):
    calls = int(disturbed.logged("count").read_text())
    return range(1 + arguments.seed % arguments.every, calls + 1, arguments.every)


def kill(disturbed, arguments):
    calls = chosen_calls(disturbed, arguments)

    def case(number):
        process, parts = disturbed.run(("kill", number), "kill", at=number)
        process.communicate(timeout=300)
        disturbed.check_and_remove(parts, ("kill", number))
    side_by_side(case, calls)
    return f"killed before {len(calls)} calls"


def fail(disturbed, arguments):
    calls = chosen_calls(disturbed, arguments)

    def case(number):
        error = ERRORS[number // arguments.every % len(ERRORS)]
        process, parts = disturbed.run(("fail", number), "fail", at=number, errno=error)
        said = process.communicate(timeout=300)[0]
        assert process.returncode in (0, 8), (number, error, process.returncode, said)
        disturbed.check_and_remove(parts, ("fail", number, error))
        return process.returncode
    codes = collections.Counter(side_by_side(case, calls))
    return f"failed from {len(calls)} calls on, exit codes {dict(codes)}"


# ---- allocations

def phases(log):
    """Allocations [from, to) of each phase, and the number of all."""
    found, begun, total = collections.defaultdict(list), {}, 0
    for line in log.read_text().splitlines():
        number, what, *words = line.split(" ")
        total = int(number)
        path = bytes.fromhex(words[0]).decode() if words else ""
        if what == "read" and path == "experiment.yaml":
            found["loading"], begun["configuration"] = [range(1, total)], total
        elif what == "create":
            begun[path] = total
            if "configuration" in begun:
                found["configuration"] = [range(begun.pop("configuration"), total)]
        elif what == "rename" and "results.h5." in path:
            found["publish"].append(range(begun[path], total))
        elif what == "rename" and "checkpoints/step_" in path:
            found["checkpoint"].append(range(begun[path], total))
    return [[number for part in parts for number in part] for parts in found.values()], total


def evenly(numbers, count):
    return {numbers[i * len(numbers) // count] for i in range(count)}


def places(parts, total, settings):
    if settings.first:
        steps = range(settings.times)
        return set(range(1, settings.first + 1)) | {round(settings.first * (total / settings.first) ** (i / len(steps))) for i in steps}
    half = settings.times // 2
    chosen = evenly(range(1, total + 1), half)
    for part in parts:
        chosen |= evenly(part, half // len(parts))
    return chosen


def published_state(folder):
    for results in folder.rglob("results.h5"):
        with h5py.File(results) as file:
            return file.attrs["state"]


def log_tells(folder):
    """Of the failure, and of no end. Another thread may have written a line at the same moment."""
    lines = next(folder.rglob("log.txt")).read_text(encoding="utf-8").splitlines()
    return any(line.startswith("failed: out of memory; ") for line in lines) and not any(line.startswith("finished: ") for line in lines)


def memory(disturbed, settings):
    parts, total = phases(disturbed.logged("memory", at=0))
    assert len(parts) == 4 and all(parts), [len(part) for part in parts]

    def case(number):
        process, folder = disturbed.run(("memory", number), "memory", at=number)
        said = without_warnings(process.communicate(timeout=300)[0])
        wrong = process.returncode != 8 or not said.startswith("stiefel: out of memory; ") or said.count("\n") != 1
        wrong = wrong or published_state(folder) == "running" and not log_tells(folder)
        disturbed.check_and_remove(folder, ("memory", number))
        return (number, process.returncode, said[-300:]) if wrong and process.returncode != 0 else process.returncode
    numbers = sorted(places(parts, total, settings))
    ends = collections.Counter(side_by_side(case, numbers))
    wrong = [end for end in ends if end not in (0, 8)]
    assert not wrong, (len(wrong), wrong[:20])
    return f"{len(numbers)} of {total} allocations failed, {[len(part) for part in parts]} of them in the phases, exit codes {dict(ends)}"


# ---- power cuts

def cut(disturbed, settings):
    rng = random.Random(settings.seed)
    records = read_log(disturbed.logged("record"))
    moments = sorted(rng.randint(0, len(records)) for _ in range(settings.times))
    disk, played = Disk(), 0
    for moment in moments:
        for record in records[played:moment]:
            disk.play(record)
        played = moment
        parts = disturbed.folder / "cut"
        parts.mkdir()
        copy.deepcopy(disk).cut(parts, rng)
        for lock in parts.rglob("lock"):
            lock.unlink()  # the machine has booted again
        disturbed.check_and_remove(parts, ("cut", moment))
    return f"{settings.times} power cuts within {len(records)} calls"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("inject", type=pathlib.Path)
    parser.add_argument("mode", choices=("kill", "fail", "memory", "cut"))
    parser.add_argument("--rounds", type=int, default=1, help="each with another task, model and optimizer")
    parser.add_argument("--every", type=int, default=1, help="of kill and fail")
    parser.add_argument("--times", type=int, default=200, help="of memory and cut")
    parser.add_argument("--first", type=int, default=0, help="of memory")
    parser.add_argument("--seed", type=int, default=1)
    settings = parser.parse_args()
    os.environ["LC_ALL"] = "C"
    for kind in kinds(settings.rounds, settings.seed):
        with tempfile.TemporaryDirectory() as folder:
            plan = LONGER if settings.mode == "cut" else None
            disturbed = Injected(settings.program, pathlib.Path(folder).resolve(), settings.inject, kind=kind, plan=plan)
            print(f"{'-'.join(kind)}: {globals()[settings.mode](disturbed, settings)}: all bits equal", flush=True)


if __name__ == "__main__":
    main()
