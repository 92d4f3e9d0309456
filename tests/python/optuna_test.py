#!/usr/bin/python3
"""docs/examples/optuna_search.py searches: it ends most runs early, trains the others to their end, and names the best one.

usage: optuna_test.py PYTHON_FOLDER STIEFEL EXAMPLE
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM, EXAMPLE = (pathlib.Path(word).resolve() for word in sys.argv[2:4])
TRIALS, STEPS = 12, 100
EXPERIMENT = """name: tiny
task: {plugin: adding, length: 10, validation_sequences: 100, test_sequences: 100}
model: {cell: {plugin: elman, hidden: 16, activation: leaky_relu}, recurrent: householder}
optimizer: {plugin: adam, rate: 1e-3}
train: {batch: 20, steps: 100, evaluate_every: 20}
"""

try:
    import optuna
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def main():
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 60, f"{EXAMPLE} has {len(lines)} lines, an example at most 60"
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "tiny.yaml").write_text(EXPERIMENT, encoding="utf-8")
        environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}

        def printed(*words):
            return subprocess.run(list(map(str, words)), cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
        pathlib.Path(folder, "short.yaml").write_text(EXPERIMENT.replace("tiny", "short"), encoding="utf-8")
        said = printed(sys.executable, EXAMPLE, "short.yaml", 2, 40)  # its first parts end before an evaluation
        assert said.startswith("2 trials finished"), said
        said = printed(sys.executable, EXAMPLE, "tiny.yaml", TRIALS, STEPS)
        runs = json.loads(printed(PROGRAM, "sweep", "status", "sweeps/tiny", "--json"))
        compared = json.loads(printed(PROGRAM, "compare", "sweeps/tiny", "--by", "id", "--json"))
    finished, pruned = map(int, re.search(r"^(\d+) trials finished, (\d+) were pruned$", said, re.M).groups())
    assert finished + pruned == len(runs) == TRIALS and pruned > 0, (said, runs)
    ended = {run["id"]: run for run in runs if run["state"] == "finished"}
    assert len(ended) == finished and all(run["step"] == STEPS for run in ended.values()), runs
    assert all(run["state"] in ("stopped", "failed") and run["step"] < STEPS for run in runs if run["id"] not in ended), runs
    best, path = re.search(r"^best: (\S+) with .* in (\S+)$", said, re.M).groups()
    values = {group["keys"]["id"]: group["value"]["mean"] for group in compared["groups"]}
    assert compared["metric"] == "valid_loss", compared["metric"]
    expected = min(ended, key=values.get)
    assert pathlib.Path(path).name == expected and best == f"{values[expected]:.6g}", (said, values)
    print(f"optuna {optuna.__version__}: {finished} of {TRIALS} runs were trained to their end; best {best}")


main()
