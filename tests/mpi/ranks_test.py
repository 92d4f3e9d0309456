#!/usr/bin/python3
"""One run trained by 1, 2 and 4 processes: every number and weight is the same, and a run resumes with another number of processes.

usage: ranks_test.py STIEFEL; STIEFEL is built with -DSTIEFEL_MPI=ON.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from runs import experiment, expect_equal, outcome  # pylint: disable=wrong-import-position

PROGRAM = sys.argv[1]
STEPS = 200
CASES = [("adding", "householder", "adam", "float32"), ("copy", "lstm", "rmsprop", "float64"), ("adding", "svd", "adam", "float32"),
         ("copy", "kronecker", "adam", "float32"), ("adding", "moving", "adam", "float64"),
         ("copy", "deep", "adam", "float32"), ("adding", "reading_both_ways", "rmsprop", "float64")]


def start(ranks, *words):
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), PROGRAM, *map(str, words), "--mpi", "--threads", "1"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process, codes=(0,)):
    said = process.communicate(timeout=300)[0]
    assert process.returncode in codes, (process.args, process.returncode, said)
    return said


def folder_of(output):
    return next(output.rglob("config.yaml")).parent


def same_bits(folder, case):
    """Runs of 1, 2 and 4 ranks, and one that begins with 2, is killed and goes on with 1 and 4."""
    task, model, optimizer, scalar = case
    file = folder / "experiment.yaml"
    file.write_text(experiment(task, model, optimizer, STEPS).replace("batch: 12", "batch: 48") + f"scalar: {scalar}\n", encoding="utf-8")
    found = {}
    for ranks in (1, 2, 4):
        said = finish(start(ranks, "run", file, "--output", folder / str(ranks)))
        assert said.count("results: ") == 1, said
        found[ranks] = outcome(folder_of(folder / str(ranks)))
    for ranks in (2, 4):
        expect_equal(found[ranks], found[1], (case, ranks))
    process = start(2, "run", file, "--output", folder / "moved")
    while not list((folder / "moved").rglob("step_*.h5")):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)
    subprocess.run(["pkill", "-KILL", "-f", str(folder / "moved")], check=True)
    process.communicate()
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
    assert "missing.yaml" in said, said


def main():
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            same_bits(pathlib.Path(folder), case)
    with tempfile.TemporaryDirectory() as folder:
        failing(pathlib.Path(folder))
    print(f"{len(CASES)} experiments of {STEPS} steps: the same bits on 1, 2 and 4 ranks, and moved from 2 to 4")


if __name__ == "__main__":
    main()
