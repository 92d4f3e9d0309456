"""A sweep of short runs, and what the tests do with it: start, kill, look, compare."""
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from runs import expect_equal, outcome  # pylint: disable=wrong-import-position,unused-import

LIBC = ctypes.CDLL(None)
GRID = ("seeds: [1, 2]\nsweep:\n"
        "  model.recurrent: [{plugin: householder, reflections: 4}, scaled_cayley, {plugin: lie_exponential, base: moving, rebase_every: 7}]\n"
        "  optimizer.rate: [1e-4, 1e-3, 3e-3, 1e-2]\n")  # 24 runs
HALVING = ("sweep:\n  optimizer.rate: {log_uniform: [1e-4, 1e-1]}\n  samples: 9\n"
           "  halving: {metric: valid_loss, first: 50, factor: 3}\n")
SEEDS_HALVED = "seeds: [1, 2, 3, 4]\nsweep:\n  halving: {metric: valid_loss, first: 100, factor: 2}\n"
RATES = "sweep: {optimizer.rate: [1e-4, 1e-3]}\n"


def experiment(steps, many, plugins=""):
    return (f"name: tiny\n{plugins}task: {{plugin: adding, length: 20, validation_sequences: 100, test_sequences: 100}}\n"
            "model:\n  cell: {plugin: elman, hidden: 16, activation: leaky_relu}\n  recurrent: dense\n"
            f"optimizer: {{plugin: adam, rate: 1e-3}}\ntrain: {{batch: 12, steps: {steps}, evaluate_every: 25}}\n"
            "record: {loss: 1, spectrum: 50, gradient_norms: 50, orthogonality: 50}\ncheckpoint: {every: 20, keep: 2}\n" + many)


def end_with_parent():
    """Between fork and exec: the process is killed when the test ends, however that comes about."""
    set_signal_of_parents_death = 1
    LIBC.prctl(set_signal_of_parents_death, signal.SIGKILL)


def children(process):
    """By the parent of every process: not every kernel lists children."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        if parent == process:
            found.append(int(stat.parent.name))
    return found


class Sweep:
    """One sweep in its own folder; `words` of the methods are those of the command line."""

    def __init__(self, program, folder, steps, many, plugins=""):
        self.program, self.path = program, pathlib.Path(folder) / "sweep"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.file = self.path.parent / "sweep.yaml"
        self.describe(steps, many, plugins)

    def describe(self, steps, many, plugins=""):
        self.file.write_text(experiment(steps, many, plugins), encoding="utf-8")

    def start(self, *words, before=()):
        """A process in its own session, so that nothing here is hit by its end."""
        return subprocess.Popen([*before, self.program, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                start_new_session=True, preexec_fn=end_with_parent)

    def end(self, process, *codes):
        said = process.communicate(timeout=500)[0]
        assert process.returncode in (codes or (0,)), (process.args, process.returncode, said)
        return said

    def do(self, *words, codes=(0,)):
        return self.end(self.start(*words), *codes)

    def run(self, *words, codes=(0,)):
        return self.do("sweep", "run", self.file, "--output", self.path, *words, codes=codes)

    def status(self):
        said = subprocess.run([self.program, "sweep", "status", str(self.path), "--json"], check=True, capture_output=True, text=True).stdout
        return json.loads(said)

    def states(self):
        found = {}
        if not (self.path / "runs.tsv").exists():
            return found
        for run in self.status():
            found[run["state"]] = found.get(run["state"], 0) + 1
        return found

    def owners(self):
        """The processes of the runs, as their locks name them."""
        return [json.loads(lock.read_text(encoding="utf-8"))["pid"] for lock in self.path.glob("runs/*/*/lock")]

    def outcomes(self):
        return {run["id"]: outcome(pathlib.Path(run["folder"])) for run in self.status()}

    def wait_for(self, what, seconds=60):
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, self.status()
            time.sleep(0.05)

    def nobody_at_work(self):
        """What a killed scheduler leaves behind ends automatically."""
        self.wait_for(lambda: "running" not in self.states())


def starts(run):
    """How often a run was started or resumed, according to its results."""
    with h5py.File(pathlib.Path(run["folder"]) / "results.h5") as file:
        return len(file["provenance/segments/start_step"])


def kill(process):
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


def expect_same(found, expected, where):
    assert found.keys() == expected.keys(), (where, found.keys() ^ expected.keys())
    for name in expected:
        expect_equal(found[name], expected[name], (where, name))
