"""A run in its folder: its results and its trained network."""

from __future__ import annotations

import html
import io
import json
import os
import pathlib
import tempfile
import typing

from stiefel.experiment import words_of
from stiefel.process import Error, Path, call

if typing.TYPE_CHECKING:
    import pandas

    import stiefel.torch
    from stiefel.weights import Weights


class Run:
    """A run that stiefel.run trained, or any other one by its folder: stiefel.Run("runs/quickstart/0e51ceb6c1").

    Its network is the one with the best validation result. A run is also the path of its folder: stiefel.plot and
    stiefel.open_run take it. Every method raises Error if the run was deleted.
    """

    path: pathlib.Path
    """The folder of the run, an absolute path."""

    def __init__(self, path: Path):
        self.path = pathlib.Path(path).absolute()
        self._folder()

    @property
    def results(self) -> typing.Any:
        """All groups of results.h5, as stiefel.open_run returns them: results["epochs"]["valid_loss"]."""
        from stiefel.results import open_run

        return open_run(self._folder())

    @property
    def summary(self) -> dict[str, typing.Any]:
        """The run's row of stiefel.runs: its state, its configuration and its metrics."""
        from stiefel.results import row

        try:
            return row(self._folder() / "results.h5")
        except (OSError, ValueError) as error:
            raise Error(str(error)) from None

    def evaluate(
        self,
        inputs: typing.Any = None,
        targets: typing.Any = None,
        lengths: typing.Any = None,
        *,
        split: str = "test",
        **overrides: typing.Any,
    ) -> dict[str, float]:
        """The loss and the metrics of the network, and `baseline`, the loss of the constant predictor.

        By default on the run's test set; `split` is train, validation or test. `overrides` are keys of the task, such
        as **{"task.length": 400}. With the task sequence_csv, `inputs` is another test set: a pandas.DataFrame with the
        columns of the run's CSV file, or an array (sequences, steps, features) with the array `targets`, whose shape is
        (sequences,) or (sequences, outputs) if the target is that of the last step, else (sequences, steps[, outputs]).
        `lengths` (sequences): the steps of each sequence.
        """
        with tempfile.TemporaryDirectory() as folder:
            words = ["evaluate", str(self._folder()), "--json", "--split", split, *words_of(overrides)]
            if inputs is not None:
                if self._config("task.plugin") != "sequence_csv":
                    raise Error(f"the task {self._config('task.plugin')} takes its test set from keys of the task")
                words += words_of({"task.test": self._data(folder, inputs, targets, lengths)})
            printed = json.loads(call(words))
        found = {**printed["values"], "baseline": printed["baseline"]}
        return {name: float("nan") if value is None else value for name, value in found.items()}

    def analyse(
        self, *, memory: bool = False, fixed_points: int = 0, classes: int = 0, **overrides: typing.Any
    ) -> dict[str, typing.Any]:
        """What `stiefel analyse --json` prints of the network's dynamics, also written to analysis.h5.

        `layers`: for each, `exponents` (sequences × rank), `jacobian_singular_values` (steps × rank) and others; `maps`.
        With `memory`, each layer has `memory` (inputs × lags) and `memory_capacity`. `fixed_points` is a number of
        starts, and `classes` one of sequences; the result has a dictionary of the name `fixed_points` or
        `distinguishability`. `overrides` are keys of the task.
        """
        words = ["analyse", str(self._folder()), "--json", *(["--memory"] if memory else [])]
        words += ["--fixed-points", str(fixed_points)] if fixed_points else []
        words += ["--classes", str(classes)] if classes else []
        return typing.cast("dict[str, typing.Any]", json.loads(call([*words, *words_of(overrides)])))

    def predict(self, inputs: typing.Any, lengths: typing.Any = None, *, raw: bool = False) -> typing.Any:
        """The outputs of the network for new sequences: predicted values, or the probabilities of classes.

        `inputs`: an array of numbers (sequences, steps, features), or of symbols (sequences, steps); `lengths`
        (sequences): the steps of each sequence. Returns an array (sequences, outputs) if the target is that of the last
        step, else (sequences, steps, outputs) with NaN past the end of a sequence. Numbers are in the units of the data
        file; with `raw`, they are the outputs before softmax, sigmoid and scaling.

        With the task sequence_csv, `inputs` can be a pandas.DataFrame with the columns of the run's CSV file. The
        result is then a DataFrame with the columns of `stiefel predict`.
        """
        with tempfile.TemporaryDirectory() as folder:
            data = self._data(folder, inputs, None, lengths)
            words = ["predict", str(self._folder()), "--input", data["file"], *(["--raw"] if raw else [])]
            if "lengths" in data:
                words += ["--lengths", data["lengths"]]
            printed = call(words)
        if data["file"].endswith(".csv"):
            return self._frame(printed, inputs)
        return self._array(printed, inputs, lengths)

    def weights(self) -> Weights:
        """The matrices of the network as NumPy arrays, as stiefel.read_weights returns them."""
        from stiefel.weights import read_weights

        with tempfile.TemporaryDirectory() as folder:
            return read_weights(self._export(folder))

    def torch(self, normalize: bool = True) -> stiefel.torch.Network:
        """The network as a torch.nn.Module, as stiefel.torch.load returns it."""
        from stiefel.torch import load

        with tempfile.TemporaryDirectory() as folder:
            return load(self._export(folder), normalize)

    def __fspath__(self) -> str:
        return str(self.path)

    def _folder(self) -> pathlib.Path:
        if not (self.path / "config.yaml").exists():
            raise Error(f"there is no run in {self.path}; it was deleted or moved, or another folder was meant")
        return self.path

    def _config(self, key: str) -> typing.Any:
        return self.summary.get(key)

    def _export(self, folder: str) -> str:
        path = os.path.join(folder, "model.safetensors")
        call(["export", str(self._folder()), "--weights", path])
        return path

    def _data(self, folder: str, inputs: typing.Any, targets: typing.Any, lengths: typing.Any) -> dict[str, str]:
        """The files, in a folder, that hold a frame or arrays."""
        import numpy as np

        if hasattr(inputs, "to_csv"):
            if targets is not None or lengths is not None:
                raise Error("a frame holds its targets and lengths in its columns; give them apart only with arrays")
            path = os.path.join(folder, "sequences.csv")
            inputs.to_csv(path, index=False, sep=self._config("task.separator") or ",")
            return {"file": path}
        files = {}
        for name, values in (("file", inputs), ("targets", targets), ("lengths", lengths)):
            if values is None:
                continue
            array = np.ascontiguousarray(values)
            if array.dtype.kind not in "biuf":
                raise Error(f"{name if name != 'file' else 'inputs'} must be an array of numbers, got {array.dtype}")
            kind = np.dtype("<f8" if array.dtype.kind == "f" and array.dtype != np.float32 else array.dtype)
            files[name] = os.path.join(folder, f"{name}.npy")
            np.save(files[name], array.astype(kind.newbyteorder("<")))
        return files

    def _frame(self, printed: str, inputs: pandas.DataFrame) -> pandas.DataFrame:
        import pandas

        found = pandas.read_csv(
            io.StringIO(printed), keep_default_na=False, float_precision="round_trip", dtype={"sequence": str}
        )
        if "sequence" in found:  # as the frame has them, which may be numbers
            values = {str(value): value for value in inputs[self._config("task.sequence")].unique()}
            found["sequence"] = found["sequence"].map(values)
        return found

    def _array(self, printed: str, inputs: typing.Any, lengths: typing.Any) -> typing.Any:
        import csv

        import numpy as np

        shape = np.shape(inputs)
        names, *table = csv.reader(io.StringIO(printed))
        first = sum(name in ("sequence", "step", "class") for name in names[:3])
        several = names[0] == "sequence"
        if len(shape) < 2 or several != (shape[0] > 1):
            raise Error(f"inputs must be (sequences, steps, features), or (sequences, steps) for symbols, got {shape}")
        steps = np.full(shape[0], shape[1]) if lengths is None else np.asarray(lengths)
        numbers = np.array([row[first:] for row in table], self._config("scalar"))
        last = len(table) == shape[0]
        if last and max(steps) == 1:  # one output of one step: only the network knows
            last = self.weights().metadata["readout"] == "last"
        if last:
            return numbers
        outputs = np.full((*shape[:2], numbers.shape[1]), np.nan, numbers.dtype)
        outputs[np.arange(shape[1]) < steps[:, None]] = numbers
        return outputs

    def __repr__(self) -> str:
        try:
            known = self.summary
        except Error as error:
            return f"<stiefel.Run {self.path}: {error}>"
        losses = [f"{key} {known[key]:.6g}" for key in ("valid_loss", "test_loss") if known[key] == known[key]]
        words = [known["state"], f"step {known['step']}", *losses]
        return f"<stiefel.Run {known['name']}/{known['id']}: {', '.join(words)}>"

    def _repr_html_(self) -> str:
        """A table and the learning curve, for notebooks."""
        try:
            known = self.summary
        except Error:
            return html.escape(repr(self))
        own = ("state", "step", "parameters", "best_step")
        shown = {key: known[key] for key in own if key in known}
        shown.update((key, f"{value:.6g}") for key, value in known.items() if key.startswith(("valid_", "test_")))
        cells = "".join(f"<tr><th>{html.escape(key)}</th><td>{value}</td></tr>" for key, value in shown.items())
        title = html.escape(f"{known['name']}/{known['id']}")
        return f"<table><caption>{title}</caption>{cells}</table>{self._curve()}"

    def _curve(self) -> str:
        """The validation loss, or without a validation set the training loss, over the steps, as SVG."""
        import h5py
        import numpy as np

        with h5py.File(self.path / "results.h5") as file:
            epochs = file.get("epochs", {})
            name = next((name for name in ("valid_loss", "train_loss") if name in epochs), None)
            if not name:
                return ""
            x, y = epochs["step"][()], epochs[name][()]
        x, y = x[np.isfinite(y)], y[np.isfinite(y)]
        if len(y) < 2:
            return ""
        low, high = float(y.min()), float(y.max())
        height = np.log(y) if low > 0 else y
        height = (height - height.min()) / (np.ptp(height) or 1)
        across = 60 + 280 * (x - x[0]) / max(x[-1] - x[0], 1)
        points = " ".join(f"{a:.1f},{110 - 100 * b:.1f}" for a, b in zip(across, height))
        scale = ", logarithmic" if low > 0 else ""
        texts = [(55, 14, "end", f"{high:.3g}"), (55, 113, "end", f"{low:.3g}"), (60, 128, "start", str(x[0]))]
        texts += [(340, 128, "end", f"step {x[-1]}"), (200, 128, "middle", name + scale)]
        labels = "".join(f'<text x="{a}" y="{b}" text-anchor="{at}">{text}</text>' for a, b, at, text in texts)
        return (
            '<svg width="350" height="135" font-size="11" font-family="sans-serif" fill="currentColor">'
            f'<polyline points="{points}" fill="none" stroke="#1f77b4" stroke-width="1.5"/>{labels}</svg>'
        )
