"""Small runs of all kinds, what must be the same of two of them, and starting, killing and finishing them."""
import hashlib
import itertools
import json
import os
import pathlib
import signal
import subprocess
import time

import h5py

TASKS = {"adding": "{plugin: adding, length: 20, validation_sequences: 100, test_sequences: 100}",
         "copy": "{plugin: copy, length: 10, symbols: 3, validation_sequences: 100, test_sequences: 100}",
         "reshuffled": "{plugin: adding, length: 20, train_sequences: 60, validation_sequences: 100, test_sequences: 100}",
         "stream": f"{{plugin: characters, file: '{pathlib.Path(__file__).resolve()}', mode: stream, bptt: 7, unknown: symbol}}"}
MODELS = {
    "householder": "cell: {plugin: elman, hidden: 24, activation: leaky_relu}\n  recurrent: {plugin: householder, reflections: 6}",
    "moving": "cell: {plugin: elman, hidden: 16}\n  recurrent: {plugin: lie_exponential, base: moving, rebase_every: 7}",
    "kronecker": "cell: {plugin: elman, hidden: 16, activation: modrelu}\n  recurrent: {plugin: kronecker, field: complex}\n"
                 "  initial_state: {kind: learned, init: hidden_uniform}",
    "lstm": "cell: {plugin: lstm, hidden: 12}\n  recurrent: {plugin: dense}",
    "svd": "cell: {plugin: elman, hidden: 16}\n  recurrent: {plugin: svd_margin, margin: 0.1}",
    "low_rank": "cell: {plugin: gru, hidden: 12}\n  recurrent: {plugin: low_rank_projection}",
    "deep": "cell: {plugin: gru, hidden: 8}\n  recurrent: {plugin: scaled_cayley}\n  layers: 3\n  norm: layer\n  gate: glu\n"
            "  residual: true\n  dropout: 0.2",
    "reading_both_ways": "cell: {plugin: lstm, hidden: 6}\n  recurrent: {plugin: dense}\n  layers: 2\n  bidirectional: true\n  dropout: 0.2",
    "urnn": "cell: {plugin: elman, hidden: 16, activation: modrelu}\n  recurrent: {plugin: urnn}",
    "unitary": "cell: {plugin: elman, hidden: 16, activation: modrelu}\n  recurrent: {plugin: full_unitary}",
}
OPTIMIZERS = {"adam": "{plugin: adam, rate: 3e-3}", "rmsprop": "{plugin: rmsprop, rate: 1e-3, schedule: {kind: plateau, factor: 0.5}}",
              "sgd": "{plugin: sgd, rate: 1e-2}"}
MANIFOLD = {"svd": {"recurrent.U": "geodesic_cayley", "recurrent.V": "geodesic_cayley"}, "unitary": {"recurrent.W": "riemannian_adam"}}
TRAIN = {"reshuffled": ", accumulate: 2, average: 0.9"}
TIMES = ("wall_time", "step_seconds", "rss_bytes", "seconds", "calls", "started", "ended")


def experiment(task, model, optimizer, steps, evaluate_every=23, checkpoint="{every: 10, keep: 2}", patience=50):
    entries = "".join(f'\n  - {{blocks: "{block}", plugin: {plugin}, rate: 1e-3}}' for block, plugin in MANIFOLD.get(model, {}).items())
    carried = "\n  initial_state: carried" if task == "stream" and "initial_state" not in MODELS[model] else ""
    moved = f"{entries}\n  - {{blocks: \"*\", {OPTIMIZERS[optimizer][1:]}" if entries else " " + OPTIMIZERS[optimizer]
    return (f"name: kill-{task}-{model}-{optimizer}\ntask: {TASKS[task]}\nmodel:\n  {MODELS[model]}{carried}\noptimizer:{moved}\n"
            f"train: {{batch: 12, steps: {steps}, evaluate_every: {evaluate_every}, weight_noise: 0.001, patience: {patience}{TRAIN.get(task, '')}}}\n"
            "record: {loss: 1, spectrum: 17, gradient_norms: 19, orthogonality: 13, scalars: 11}\n"
            f"checkpoint: {checkpoint}\n")


def kinds():
    """Of task, model and optimizer; a network that reads both ways cannot predict what comes next."""
    return [kind for kind in itertools.product(TASKS, MODELS, OPTIMIZERS) if kind[:2] != ("stream", "reading_both_ways")]


def numbers(path):
    """Every dataset of numbers but those of times, and texts of the groups with results."""
    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset) and not name.startswith(("provenance", "config", "timing")) and item.name.split("/")[-1] not in TIMES:
            found[name] = item[()].tobytes() if item.dtype.kind != "O" else list(item[()])
    with h5py.File(path) as file:
        file.visititems(visit)
    return found


def files(directory):
    """Names of the files that the run has left; those of checkpoints of a step must be those of the index. A lock is that of a killed process."""
    names = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()} - {"lock"}
    steps = {name for name in names if name.startswith("checkpoints/step_")}
    index = directory / "checkpoints/index.json"
    listed = {f"checkpoints/{entry['file']}" for entry in json.loads(index.read_text())["checkpoints"]} if index.exists() else set()
    assert steps == listed, (steps, listed)
    return sorted(names - steps)


def outcome(directory):
    found = {"files": files(directory)}
    found.update({f"results {k}": v for k, v in numbers(directory / "results.h5").items()})
    for which in ("best", "last"):
        if f"checkpoints/{which}.h5" in found["files"]:  # a run that was left out has no last
            found.update({f"{which} {k}": v for k, v in numbers(directory / f"checkpoints/{which}.h5").items()})
    return found


class Runner:
    """Runs of stiefel in a folder; `environment` is added to that of each process."""

    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder)

    def start(self, *words, environment=None):
        return subprocess.Popen([self.program, *map(str, words), "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env={**os.environ, **(environment or {})})

    def go_on(self, file, output, threads=1):
        """Resumes the run below `output`, or begins it when there is none; to its end."""
        made = list(output.rglob("config.yaml"))
        words = ("resume", made[0].parent) if made else ("run", file, "--output", output)
        self.finish(*words, "--threads", threads)
        return next(output.rglob("config.yaml")).parent

    def finish(self, *words):
        return self.end(self.start(*words))

    @staticmethod
    def end(process, code=0):
        said = process.communicate(timeout=300)[0]
        assert process.returncode == code, (process.args, process.returncode, said)
        return said

    def reference(self, file, threads):
        begin = time.monotonic()
        self.finish("run", file, "--output", self.folder / "whole", "--threads", threads)
        return next((self.folder / "whole").rglob("results.h5")).parent, time.monotonic() - begin

    def killed(self, process, after):
        """Whether the process was alive when it was killed."""
        try:
            said = process.communicate(timeout=after)[0]
            assert process.returncode == 0, (process.returncode, said)
            return False
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            return True


def check_opens(directory):
    """Whatever is there can be read, to its last number, and a table has as many rows in every column."""
    results = directory / "results.h5"
    if results.exists():
        with h5py.File(results) as file:
            file.visititems(lambda name, item: item[()] if isinstance(item, h5py.Dataset) else None)
            rows = len(file["steps/step"]) if "steps" in file else 0
            assert all(len(file[f"steps/{name}"]) == rows for name in ("loss", "grad_norm", "wall_time") if rows), results
    for checkpoint in (directory / "checkpoints").glob("*.h5"):
        with h5py.File(checkpoint) as file:
            assert "weights" in file, checkpoint
    index = directory / "checkpoints/index.json"
    listed = {}
    for entry in json.loads(index.read_text())["files"] if index.exists() else []:
        listed.setdefault(entry["file"], []).append(entry["sha256"])
    for name, sums in listed.items():
        path = results if name == "results.h5" else directory / "checkpoints" / name
        assert not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() in sums, path
    present = {path.name for path in [results, *(directory / "checkpoints").glob("[!s]*.h5")] if path.exists()}
    assert present <= set(listed), (present, listed)


def expect_equal(found, expected, where):
    differing = [name for name in expected if found.get(name) != expected[name]]
    assert found.keys() == expected.keys() and not differing, (where, differing[:5], sorted(set(found) ^ set(expected))[:5])
