#!/usr/bin/python3
"""Numbers behind published figures, from the result files of runs.

Each table has one line per run. FILE is a results.h5 or a folder with runs, such as runs/scornn-figure4.

  figures.py spectra   FILE...  mean, standard deviation, smallest and largest singular value of W at the start and at the end
  figures.py drift     FILE...  ‖WᴴW − I‖ (Frobenius) over the steps
  figures.py gradients FILE...  ‖∂L/∂h_t‖ at t = 1, in the middle, at t = T, and largest over smallest, for each step where it was recorded
  figures.py slope     FILE...  slope of a PReLU over the steps
  figures.py curves    FILE...  validation loss over the steps, and where it was smallest
  figures.py tests     FILE...  loss and metrics of the best network on the test split, what the task reports of it, and its training loss
  figures.py quartiles FILE...  median and quartiles over runs of the same name (seeds, excerpts) of the --metric of the best network on the
                                validation split
  figures.py spread    FILE...  at the end: ‖W‖₂, spectral radius and condition number of W, smallest validation loss, and the training loss there
  figures.py clock     FILE...  seconds per epoch, and the smallest validation loss so far against wall time

examples; make the runs with `stiefel run` first (docs/DATA_PUBLISHED.md says where MNIST belongs):
  for m in m0.001 m0.01 m0.1 m1 free; do stiefel run experiments/vorontsov/mnist_$m.yaml train.epochs=5; done
  experiments/papers/figures.py spectra runs/vorontsov-mnist-*
  experiments/papers/figures.py drift runs/scornn-figure4 runs/scornn-mnist-116-fc-urnn
  experiments/papers/figures.py gradients runs/scornn-figure5 runs/scornn-figure5-lstm
  experiments/papers/figures.py slope runs/vorontsov-copy-200-prelu
  experiments/papers/figures.py curves --points 20 runs/kru-copy-1000 runs/kru-copy-1000-*
"""
import argparse
import pathlib
import signal
import sys

import h5py
import numpy as np


class Failure(Exception):
    """Said in one sentence."""


def result_files(paths):
    """Each results.h5 at or below the paths."""
    found = []
    for path in map(pathlib.Path, paths):
        below = [path] if path.is_file() else sorted(path.rglob("results.h5"))
        if not below:
            raise Failure(f"{path} is neither a result file nor a folder that contains one")
        found += [file for file in below if file not in found]
    return found


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def label(file):
    """Name, what was changed on the command line, and how the run ended unless it finished."""
    state = text(file.attrs["state"])
    changes = [text(change) for change in file["config/overrides"][:]] if "config/overrides" in file else []
    changes = [change for change in changes if not change.startswith("threads=")]
    return " ".join([f"`{text(file.attrs['title'])}`", *changes, *([] if state == "finished" else [f"({state})"])])


def at(file, name):
    """A table that the figure needs."""
    if name not in file:
        raise Failure(f"{file.filename} holds no /{name}: see the keys of `record` in `stiefel describe experiment`")
    return file[name]


def chosen(count, points):
    """Indices of at most `points` rows, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(points, count)).round().astype(int))


def print_table(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    print("\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]))


def print_series(files, read, form, points):
    """One table for runs that were recorded at the same steps."""
    tables = {}
    for file in files:
        for name, step, values in read(file):
            if len(step) == 0:
                continue
            rows = chosen(len(step), points)
            head = tuple(f"{s:,}" for s in step[rows])
            tables.setdefault(head, []).append([name, *(form.format(v) for v in values[rows])])
    for number, (head, rows) in enumerate(tables.items()):
        if number:
            print()
        print_table([["step", *head], *rows])


def map_names(file, group):
    """The maps of a group, and what to add to the label if there are several."""
    names = list(at(file, group))
    return [(name, f", {name}" if len(names) > 1 else "") for name in names]


# ---- the figures

def spectra(files, _):
    rows = [["run", "step", "mean", "standard deviation", "smallest", "largest"]]
    for file in files:
        for name, suffix in map_names(file, "spectrum"):
            step, values = file[f"spectrum/{name}/snapshot"][:], file[f"spectrum/{name}/singular_values"][:]
            for i in (0, len(step) - 1):
                figures = (values[i].mean(), values[i].std(), values[i].min(), values[i].max())
                rows.append([label(file) + suffix, f"{step[i]:,}", *(f"{figure:.5f}" for figure in figures)])
    print_table(rows)


def drift(files, points):
    def read(file):
        for name, suffix in map_names(file, "orthogonality"):
            table = file[f"orthogonality/{name}"]
            yield label(file) + suffix, table["snapshot"][:], table["defect_fro"][:].max(axis=1)
    print_series(files, read, "{:.2e}", points)


def gradients(files, _):
    rows = [["run", "step", "t = 1", "t = T/2", "t = T", "smallest", "largest", "largest / smallest"]]
    for file in files:
        step, norms = at(file, "gradient/snapshot")[:], file["gradient/hidden_grad_norm"][:]
        for s, norm in zip(step, norms):
            norm = norm[np.isfinite(norm)]
            ratio = norm.max() / norm.min() if norm.min() > 0 else np.inf
            values = (norm[0], norm[len(norm) // 2], norm[-1], norm.min(), norm.max())
            rows.append([label(file), f"{s:,}", *(f"{value:.2e}" for value in values), f"{ratio:.3g}"])
    print_table(rows)


def slope(files, points):
    def read(file):
        table = at(file, "blocks/activation_slope")
        yield label(file), table["snapshot"][:], table["values"][:].mean(axis=1)
    print_series(files, read, "{:.4f}", points)


def curves(files, points):
    def read(file):
        yield label(file), at(file, "epochs/step")[:], file["epochs/valid_loss"][:]
    print_series(files, read, "{:.5f}", points)
    rows = [["run", "smallest validation loss", "at step"]]
    for file in files:
        best = best_row(file)
        rows.append([label(file), *(["–", "–"] if best is None else [f"{file['epochs/valid_loss'][best]:.6f}", f"{file['epochs/step'][best]:,}"])])
    print()
    print_table(rows)


def best_row(file):
    """Number of the evaluation with the smallest validation loss, None if there is none yet."""
    loss = at(file, "epochs/valid_loss")[:]
    return int(np.nanargmin(np.where(np.isfinite(loss), loss, np.nan))) if np.isfinite(loss).any() else None


def tests(files, _):
    rows = [["run", "best step", "test", "training loss at that step"]]
    for file in files:
        if len(at(file, "final/step")) == 0:
            rows.append([label(file), "–", "–", "–"])
            continue
        values = {name: data[-1] for group in ("final", "outcome") if group in file for name, data in file[group].items() if name != "step"}
        step = int(at(file, "final/step")[-1])
        row = int(np.argmin(np.abs(file["epochs/step"][:] - step)))
        rows.append([label(file), f"{step:,}", ", ".join(f"{name.removeprefix('test_')} {value:.4f}" for name, value in values.items()),
                     f"{file['epochs/train_loss'][row]:.4f}"])
    print_table(rows)


def quartiles(files, metric):
    groups = {}
    for file in files:
        values, best = at(file, f"epochs/valid_{metric}")[:], np.flatnonzero(at(file, "epochs/is_best")[:])
        groups.setdefault(text(file.attrs["title"]), []).extend(values[best[-1:]])
    rows = [["runs", "number", "lower quartile", "median", "upper quartile", "smallest", "largest"]]
    for name, values in groups.items():
        figures = np.percentile(values, (25, 50, 75, 0, 100)) if values else []
        rows.append([f"`{name}`", str(len(values)), *(f"{x:.4f}" for x in figures), *["–"] * (5 - len(figures))])
    print_table(rows)


def spread(files, _):
    rows = [["run", "‖W‖₂", "spectral radius", "condition number", "smallest validation loss", "training loss at that step", "last training loss"]]
    for file in files:
        best = best_row(file)
        losses = ["–"] * 3 if best is None else [f"{file[f'epochs/{key}'][row]:.4f}" for key, row in
                                                 (("valid_loss", best), ("train_loss", best), ("train_loss", -1))]
        for name, suffix in map_names(file, "spectrum"):
            table = file[f"spectrum/{name}"]
            singular = table["singular_values"][-1]
            rows.append([label(file) + suffix, f"{singular.max():.4f}", f"{table['eigenvalue_modulus'][-1].max():.4f}",
                         f"{singular.max() / singular.min():.3g}", *losses])
    print_table(rows)


def clock(files, points):
    times = {file: at(file, "epochs/seconds")[:].cumsum() for file in files if best_row(file) is not None}
    if not times:
        raise Failure("no run has an evaluation with a validation loss yet")
    ends = np.geomspace(min(time[0] for time in times.values()), max(time[-1] for time in times.values()), points)
    rows = [["run", "seconds per epoch", *(f"{end:.3g} s" for end in ends)]]
    for file, time in times.items():
        loss = np.minimum.accumulate(np.nan_to_num(file["epochs/valid_loss"][:], nan=np.inf))
        shown = [loss[np.searchsorted(time, end, side="right") - 1] if end >= time[0] * (1 - 1e-9) else np.inf for end in ends]
        rows.append([label(file), f"{time[-1] / file['epochs/epoch'][-1] if file['epochs/epoch'][-1] else time[-1]:.3g}",
                     *(f"{value:.4f}" if np.isfinite(value) else "–" for value in shown)])
    print_table(rows)


FIGURES = {"spectra": spectra, "drift": drift, "gradients": gradients, "slope": slope, "curves": curves, "tests": tests,
           "quartiles": quartiles, "spread": spread, "clock": clock}


def main():
    parser = argparse.ArgumentParser(prog="figures.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figure", choices=FIGURES)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--points", type=int, default=11, help="columns of drift, slope, curves and clock (%(default)s)")
    parser.add_argument("--metric", default="loss", help="of quartiles (%(default)s)")
    arguments = parser.parse_args()
    if arguments.points < 2:
        raise Failure("--points must be at least 2")
    files = []
    try:
        for path in result_files(arguments.files):
            try:
                files.append(h5py.File(path))
            except OSError as error:
                raise Failure(f"{path} cannot be read: {error}") from error
        FIGURES[arguments.figure](files, arguments.metric if arguments.figure == "quartiles" else arguments.points)
    finally:
        for file in files:
            file.close()


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        main()
    except Failure as failure:
        sys.exit(f"figures.py: {failure}")
