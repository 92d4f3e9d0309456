#!/usr/bin/python3
"""One run trained by 1, 2 and 4 processes: every number and weight is the same, and a run resumes with another number of processes.

usage: ranks_test.py STIEFEL HOSTILE_RANK; STIEFEL is built with -DSTIEFEL_MPI=ON, HOSTILE_RANK is a map that fails in one process.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import h5py

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / folder) for folder in ("faults", ".")]
from runs import experiment, expect_equal, outcome  # pylint: disable=wrong-import-position
from support import simd_targets  # pylint: disable=wrong-import-position

PROGRAM, HOSTILE_RANK = sys.argv[1:3]
os.environ["STIEFEL_PYTHON"] = sys.executable
STEPS = 200
CASES = [("adding", "householder", "adam", "float32"), ("copy", "lstm", "rmsprop", "float64"), ("adding", "svd", "adam", "float32"),
         ("copy", "kronecker", "adam", "float32"), ("adding", "moving", "adam", "float64"),
         ("copy", "deep", "adam", "float32"), ("adding", "reading_both_ways", "rmsprop", "float64"), ("adding", "householder", "python", "float64")]
ROLES = pathlib.Path(__file__).resolve().parent.parent / "python/roles"


def mpirun(*words):
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def start(ranks, *words):
    return mpirun("-n", ranks, PROGRAM, *words, "--mpi", "--threads", "1")


def finish(process, codes=(0,)):
    said = process.communicate(timeout=300)[0]
    assert process.returncode in codes, (process.args, process.returncode, said)
    return said


def folder_of(output):
    return next(output.rglob("config.yaml")).parent


def text_of(case):
    task, model, optimizer, scalar = case
    text = experiment(task, model, "adam" if optimizer == "python" else optimizer, STEPS).replace("batch: 12", "batch: 48") + f"scalar: {scalar}\n"
    if optimizer == "python":  # for each role
        for key, file in (("task", "parity"), ("recurrent", "householder"), ("optimizer", "adam")):
            text, count = re.subn(key + r": (\{.*?\}|\w+)", f"{key}: {{plugin: python, file: {ROLES / file}.py}}", text, count=1)
            assert count == 1, text
    return text


def workers():
    """Process numbers of those that run the map in Python."""
    return subprocess.run(["pgrep", "-f", f"worker.py {ROLES}/householder.py"], check=False, capture_output=True, text=True).stdout.split()


def same_bits(folder, case):
    """Runs of 1, 2 and 4 ranks, and one that begins with 2, is killed and resumes with 4."""
    file = folder / "experiment.yaml"
    file.write_text(text_of(case), encoding="utf-8")
    found = {}
    for ranks in (1, 2, 4):
        said = finish(start(ranks, "run", file, "--output", folder / str(ranks)))
        assert said.count("results: ") == 1, said
        found[ranks] = outcome(folder_of(folder / str(ranks)))
    for ranks in (2, 4):
        expect_equal(found[ranks], found[1], (case, ranks))
    killed = False
    for _ in range(5):  # the run may end before it is killed
        shutil.rmtree(folder / "moved", ignore_errors=True)
        process = start(2, "run", file, "--output", folder / "moved")
        while not list((folder / "moved").rglob("step_*.h5")):
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.01)
        assert len(workers()) == (2 if case[2] == "python" else 0) or process.poll() is not None, workers()
        killed = subprocess.run(["pkill", "-KILL", "-f", str(folder / "moved")], check=False).returncode == 0
        process.communicate()
        ended = time.monotonic()
        while workers():
            assert time.monotonic() < ended + 5, workers()
            time.sleep(0.01)
        if killed:
            break
    assert killed, "five runs ended before they were killed"
    moved = folder_of(folder / "moved")
    finish(start(4, "resume", moved))
    expect_equal(outcome(moved), found[1], (case, "moved"))


def failing(folder):
    """A process that cannot go on takes the others with it, and says why once."""
    file = folder / "bad.yaml"
    file.write_text(experiment("adding", "householder", "sgd", 50).replace("rate: 1e-2", "rate: 1e30"), encoding="utf-8")
    said = finish(start(2, "run", file, "--output", folder / "bad"), (5,))
    assert len(re.findall(r"^stiefel: diverged at step \d+: ", said, re.MULTILINE)) == 1, said
    file.write_text(experiment("adding", "householder", "sgd", 50).replace("optimizer: {", "optimizer: {blocks: readout.*, "), encoding="utf-8")
    said = finish(start(2, "run", file, "--output", folder / "bad"), (2,))
    assert said.count("no optimizer moves the block ") == 1, said
    said = finish(start(2, "run", folder / "missing.yaml"), (2, 4))
    assert said.count("missing.yaml") == 1, said


def planned(folder):
    """A dry run prints its plan and its warnings once, and makes no folder."""
    file, plugins = folder / "planned.yaml", folder / "plugins"
    plugins.mkdir()
    file.write_text(f"plugins: [{plugins}]\n" + experiment("adding", "householder", "sgd", 50), encoding="utf-8")
    said = finish(start(2, "run", file, "--dry-run", "--output", folder / "planned"))
    assert len(re.findall("^memory ", said, re.MULTILINE)) == 1 and not (folder / "planned").exists(), said
    assert said.count(f"warning: there is no plugin in {plugins}") == 1, said


def failing_in_one_process(folder):
    """An error of one process is that of the run, and is written down."""
    file = folder / "one.yaml"
    file.write_text(f"plugins: [{HOSTILE_RANK}]\n" + experiment("adding", "householder", "sgd", 50).replace("batch: 12", "batch: 48").replace(
        "{plugin: householder, reflections: 6}", "hostile_rank"), encoding="utf-8")
    said = finish(start(2, "run", file, "--output", folder / "one"), (5,))
    assert said.count("the state has left the range") == 1, said
    run = folder_of(folder / "one")
    with h5py.File(run / "results.h5") as results:
        assert results.attrs["state"] == "diverged", dict(results.attrs)
    assert "the state has left the range" in (run / "log.txt").read_text(encoding="utf-8")


def differing(folder):
    """Processes that would compute something else are refused before there is a run."""
    file = folder / "same.yaml"
    file.write_text(experiment("adding", "householder", "sgd", 50), encoding="utf-8")
    words = [PROGRAM, "run", file, "--mpi", "--threads", 1, "--output", folder / "differing"]
    cases = [(["-n", 1, *words], ["-n", 1, *words, "seed=2"], "in 'seed=1' and 'seed=2'")]
    *others, plainest = simd_targets(PROGRAM)
    if others:
        cases.append((["-n", 2, *words], ["-n", 1, "-x", "STIEFEL_SIMD=" + plainest, *words], plainest))
    for before, after, what in cases:
        said = finish(mpirun(*before, ":", *after), (2,))
        assert re.search(r"the processes 0 and [12] of mpirun differ, .*" + what, said), said
        assert not (folder / "differing").exists(), said
    words = [PROGRAM, "run", folder / "text.yaml", "--mpi", "--output", folder / "lacking"]
    (folder / "text.yaml").write_text(experiment("stream", "lstm", "sgd", 50).replace(str(pathlib.Path(__file__).resolve().parent.parent / "faults/runs.py"), "text.txt"),
                                      encoding="utf-8")
    (folder / "there").mkdir()
    (folder / "there/text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 50, encoding="utf-8")
    said = finish(mpirun("-n", 1, *words, "--data", folder / "there", ":", "-n", 1, *words, "--data", folder), (4,))
    assert "text.txt" in said and not (folder / "lacking").exists(), said


def sharing(folder):
    """Processes on the same cores share them, and the memory of the host."""
    file = folder / "shared.yaml"
    file.write_text(experiment("adding", "householder", "sgd", 5), encoding="utf-8")
    threads = {}
    for count in (1, 2):
        finish(mpirun("--bind-to", "none", "-n", count, PROGRAM, "run", file, "--mpi", "--output", folder / f"{count}"))
        with h5py.File(folder_of(folder / f"{count}") / "results.h5") as results:
            threads[count] = int(results["provenance"].attrs["threads"])
    assert threads[2] == max(1, threads[1] // 2), threads
    memory, hidden, steps = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE"), 512, 1000
    large = (f"train.batch={2 * memory // (4 * hidden * steps)}", f"task.length={steps}", f"model.cell.hidden={hidden}", "train.recompute=never")
    said = finish(start(8, "run", file, *large, "--output", folder / "large"), (8,))
    assert "in its 8 processes on this host" in said, said


def main():
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            same_bits(pathlib.Path(folder), case)
    with tempfile.TemporaryDirectory() as folder:
        for check in (failing, planned, failing_in_one_process, differing, sharing):
            check(pathlib.Path(folder))
    print(f"{len(CASES)} experiments of {STEPS} steps: the same bits on 1, 2 and 4 ranks, and moved from 2 to 4")


if __name__ == "__main__":
    main()
