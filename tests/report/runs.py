"""Runs for the report's tests: short real ones, and copies of one with other numbers."""
import itertools
import pathlib
import shutil
import subprocess
import sys

import h5py
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import made_sounds

ADDING = """name: {name}
seed: 1
threads: 1
task: {{plugin: adding, length: 20, validation_sequences: 100, test_sequences: 100}}
model:
  cell: {{plugin: elman, hidden: 12, activation: leaky_relu}}
  recurrent: {{plugin: householder, reflections: 4}}
optimizer: {{plugin: adam, rate: 0.01}}
train: {{batch: 10, steps: 60, evaluate_every: 20}}
record: {{loss: 1, spectrum: 20, gradient_norms: 10, orthogonality: 20}}
"""

GENERATION = """name: generation
threads: 1
scalar: float64
task: {plugin: sequence_generation, file: song.wav, length: 60}
model:
  cell: {plugin: elman, hidden: 8, activation: leaky_relu}
  recurrent: {plugin: householder, reflections: 4}
optimizer: {plugin: adam, rate: 0.003}
train: {batch: 1, steps: 40, evaluate_every: 20}
record: {loss: 10}
"""

MAPS = {"elman, householder": [],
        "elman, scaled_cayley": ["model.recurrent={plugin: scaled_cayley}"],
        "lstm, dense": ["model.cell={plugin: lstm, hidden: 6}", "model.recurrent=dense"]}


def run(program, folder, text, overrides=(), code=0):
    """The folder of the run."""
    (folder / "experiment.yaml").write_text(text)
    done = subprocess.run([program, "run", "experiment.yaml", "--quiet", *overrides], cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return (folder / done.stdout.splitlines()[-1].removeprefix("results: ")).parent


def make_sweep(program, folder, seeds=(1, 2), rates=(0.01,)):
    """Folders of runs by label, in the order of the seeds, with several rates by label and rate."""
    made = {}
    for label, overrides in MAPS.items():
        for rate in rates:
            of_group = [run(program, folder, ADDING.format(name="three maps"), [*overrides, f"seed={seed}", f"optimizer.rate={rate}"]) for seed in seeds]
            made[label if len(rates) == 1 else (label, rate)] = of_group
    return made


def make_generation(program, folder):
    (folder / "song.wav").write_bytes(made_sounds.wav(2000, 1))
    return run(program, folder, GENERATION)


def make_copies(original, folder, count):
    """Runs of 50 rates, with noise on their losses."""
    source = numpy.random.default_rng(1)
    for i in range(count):
        copy = folder / f"{i:04}"
        copy.mkdir(parents=True)
        shutil.copy(original / "results.h5", copy)
        with h5py.File(copy / "results.h5", "r+") as file:
            text = file["config/yaml"].asstr()[()].replace("seed: 1\n", f"seed: {i}\n").replace("rate: 0.01\n", f"rate: {0.001 * (1 + i % 50):.3f}\n")
            file["config/yaml"][()] = text
            for path in ("steps/loss", "epochs/valid_loss"):
                file[path][:] = file[path][:] * numpy.exp(0.3 * source.normal(size=file[path].shape))


def make_crossed(original, folder):
    """A run of each combination of three sizes, two numbers of reflections and three rates."""
    for number, (hidden, reflections, rate) in enumerate(itertools.product((8, 12, 16), (2, 4), (0.001, 0.01, 0.1))):
        copy = folder / f"{number:04}"
        copy.mkdir(parents=True)
        shutil.copy(original / "results.h5", copy)
        with h5py.File(copy / "results.h5", "r+") as file:
            text = file["config/yaml"].asstr()[()]
            for before, after in (("hidden: 12\n", f"hidden: {hidden}\n"), ("reflections: 4\n", f"reflections: {reflections}\n"), ("rate: 0.01\n", f"rate: {rate}\n")):
                assert before in text, text
                text = text.replace(before, after)
            file["config/yaml"][()] = text
            file["epochs/valid_loss"][:] = file["epochs/valid_loss"][:] * (1 + number / 10)


def make_long(original, folder, steps, seed):
    """A run of this many steps; returns its losses."""
    folder.mkdir(parents=True)
    shutil.copy(original / "results.h5", folder)
    losses = numpy.exp(-numpy.arange(steps) / (steps / 5) + 0.3 * numpy.random.default_rng(seed).normal(size=steps))
    with h5py.File(folder / "results.h5", "r+") as file:
        file["config/yaml"][()] = file["config/yaml"].asstr()[()].replace("seed: 1\n", f"seed: {seed}\n")
        for dataset in (file["steps"][name] for name in file["steps"] if file["steps"][name].maxshape[0] is None):
            dataset.resize(steps, axis=0)
        file["steps/step"][:] = numpy.arange(1, steps + 1)
        file["steps/loss"][:] = losses
    return losses
