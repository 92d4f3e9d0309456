#!/usr/bin/python3
"""Six kinds of a user's own data go from a file to a figure, and their metrics are those of NumPy and, where it is installed, scikit-learn.

usage: kinds_of_data_test.py PYTHON_FOLDER STIEFEL [TEST...]
"""
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import wave

PACKAGE, PROGRAM = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
try:
    import h5py
    import numpy as np
    import pandas as pd
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
try:
    import sklearn.metrics as sk
except ImportError:
    sk = None
try:
    import pyarrow
except ImportError:
    pyarrow = None

EXPERIMENT = """
name: own
scalar: float64
task: {{{task}}}
model:
  cell: {{plugin: gru, hidden: 12}}
  recurrent: dense
optimizer: {{plugin: adam, rate: 0.02}}
train: {{batch: 20, steps: 200, evaluate_every: 50}}
"""


class KindsOfData(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder, self.began = pathlib.Path(held.name), time.monotonic()
        self.rng = np.random.default_rng(7)

    def tearDown(self):
        self.assertLess(time.monotonic() - self.began, 60)

    def call(self, *words):
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, cwd=self.folder, env={**os.environ, "PYTHONPATH": PACKAGE})
        self.assertEqual(done.returncode, 0, f"{words}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def trained(self, task, figure):
        """The folder of a run that is better than the constant predictor, what `evaluate` says, and a figure of it."""
        (self.folder / "own.yaml").write_text(EXPERIMENT.format(task=task))
        self.call(PROGRAM, "run", "own.yaml")
        (run,) = (self.folder / "runs" / "own").iterdir()
        found = json.loads(self.call(PROGRAM, "evaluate", run, "--json"))
        self.assertLess(found["values"]["loss"], 0.9 * found["baseline"])
        self.call(PROGRAM, "report", "runs/own", "--figures", "figures")
        self.assertIn("<svg", (self.folder / "figures" / f"{figure}.svg").read_text())
        return run, found

    def predicted(self, run, file):
        return pd.read_csv(io.StringIO(self.call(PROGRAM, "predict", run, "--input", file)))

    def assert_numbers(self, found, y, o):
        error = o - y
        wanted = {"mae": np.abs(error).mean(), "rmse": np.sqrt((error**2).mean()), "r2": 1 - (error**2).mean() / y.var()}
        if sk:
            np.testing.assert_allclose(list(wanted.values()), [sk.mean_absolute_error(y, o), sk.mean_squared_error(y, o)**0.5, sk.r2_score(y, o)])
        for name, value in wanted.items():
            self.assertAlmostEqual(found[name], value, 7)

    def assert_classes(self, run, found, y, o):
        names = sorted(set(y))
        table = pd.crosstab(np.asarray(y), np.asarray(o)).reindex(index=names, columns=names, fill_value=0).to_numpy()
        hits = np.diag(table)
        wanted = {"accuracy": hits.sum() / table.sum(), "macro_f1": np.mean(2 * hits / (table.sum(0) + table.sum(1))),
                  "balanced_accuracy": np.mean(hits / table.sum(1))}
        if sk:
            np.testing.assert_array_equal(table, sk.confusion_matrix(y, o, labels=names))
            np.testing.assert_allclose(list(wanted.values()), [sk.accuracy_score(y, o), sk.f1_score(y, o, average="macro"), sk.balanced_accuracy_score(y, o)])
        for name, value in wanted.items():
            self.assertAlmostEqual(found[name], value, 9)
        counted = pd.read_csv(run / "outcome" / "confusion.csv", index_col="target")
        self.assertEqual(list(map(str, counted.index)), list(map(str, names)))
        np.testing.assert_array_equal(counted.to_numpy(), table)
        drawn = pd.read_csv(self.folder / "figures" / "confusion_1.csv", index_col=0)
        np.testing.assert_allclose(drawn.loc[names[::-1], list(map(str, names))], (table / table.sum(1, keepdims=True))[::-1], atol=1e-5)

    def table(self, sequences, steps):
        return pd.DataFrame({"name": np.repeat([f"s{i}" for i in range(sequences)], steps), "x": self.rng.normal(size=sequences * steps)})

    SPLITS = "train: train.csv, validation: validation.csv, test: test.csv, sequence: name"
    CLASS_METRICS = "metrics: [accuracy, macro_f1, balanced_accuracy, confusion]"

    def write_splits(self, table):
        names = table["name"].unique()
        for part, chosen in zip(("train", "validation", "test"), np.split(names, [6 * len(names) // 10, 8 * len(names) // 10])):
            table[table["name"].isin(chosen)].to_csv(self.folder / f"{part}.csv", index=False)
        return pd.read_csv(self.folder / "test.csv")

    def test_table_with_gaps(self):
        table = self.table(150, 10)
        table["flow"] = 100 + 20 * table.groupby("name")["x"].transform(lambda x: x.expanding().mean())
        table.loc[self.rng.random(len(table)) < 0.1, "x"] = np.nan
        table.loc[self.rng.random(len(table)) < 0.2, "flow"] = np.nan
        test = self.write_splits(table)
        run, found = self.trained(f"plugin: sequence_csv, {self.SPLITS}, targets: [flow], readout: every, missing: mask, target_normalisation: standard, "
                                  "normalisation: standard, metrics: [mae, rmse, r2]", "loss")
        there = test["flow"].notna()
        self.assert_numbers(found["values"], test["flow"][there].to_numpy(), self.predicted(run, "test.csv")["flow"][there].to_numpy())

    def test_categories_to_classes(self):
        table = self.table(200, 8)
        table["place"] = self.rng.choice(["field", "forest", "lake"], size=len(table))
        level = table["x"].where(table["place"] != "lake", -table["x"]).groupby(table["name"]).transform("sum")
        table["size"] = np.where(level > 1.5, "large", np.where(level > -1, "medium", "small"))
        test = self.write_splits(table)
        run, found = self.trained(f"plugin: sequence_csv, {self.SPLITS}, targets: [size], kind: classification, categories: [place], normalisation: standard, "
                                  f"{self.CLASS_METRICS}", "confusion_1")
        self.assert_classes(run, found["values"], test.groupby("name", sort=False)["size"].last().to_numpy(), self.predicted(run, "test.csv")["class"].to_numpy())

    def test_arrays(self):
        x = self.rng.normal(size=(300, 12, 2)).astype(np.float32)
        y = x[:, :, 0].sum(1) + self.rng.normal(size=300) > 0
        for part, rows in (("train", slice(0, 200)), ("validation", slice(200, 240)), ("test", slice(240, 300))):
            np.savez(self.folder / f"{part}.npz", inputs=x[rows], targets=y[rows])
        np.save(self.folder / "new.npy", x[240:])
        run, found = self.trained("plugin: sequence_csv, train: train.npz, validation: validation.npz, test: test.npz, kind: classification, "
                                  "metrics: [accuracy, macro_f1, balanced_accuracy, confusion, auroc]", "confusion_1")
        rows, truth = self.predicted(run, "new.npy"), y[240:].astype(int)
        self.assert_classes(run, found["values"], truth, rows["class"].to_numpy())
        scores = rows["p_1"].to_numpy()
        area = (np.sign(scores[truth == 1][:, None] - scores[truth == 0]) + 1).mean() / 2
        if sk:
            self.assertAlmostEqual(area, sk.roc_auc_score(truth, scores))
        self.assertLess(abs(found["values"]["auroc"] - area), 1e-3)

    def test_converted(self):
        """A Parquet file where pyarrow is installed, an HDF5 file elsewhere."""
        table = self.table(150, 10)
        table["y"] = table.groupby("name")["x"].transform("mean")
        if pyarrow:
            table.to_parquet(self.folder / "own.parquet")
            self.call(sys.executable, "-m", "stiefel.convert", "own.parquet", "own.csv")
            task = "data: own.csv, sequence: name, targets: [y]"
        else:
            with h5py.File(self.folder / "own.h5", "w") as file:
                file["x"], file["y"] = table["x"].to_numpy().reshape(150, 10), table["y"].to_numpy().reshape(150, 10)[:, -1]
            task = "data: {file: own.h5, inputs: x, targets: y}"
        run, found = self.trained(f"plugin: sequence_csv, {task}, target_normalisation: standard, metrics: [mae, rmse, r2, examples]", "loss")
        test = pd.read_csv(run / "outcome" / "examples.csv")
        self.assertEqual(list(test["sequence"]), [0, 1, 2, 3, 4])
        known = table.groupby("name")["y"].last().to_numpy()
        self.assertTrue(all(np.abs(known - value).min() < 1e-7 for value in test["true"]))
        ends = np.sort(known)
        self.assertGreater(found["values"]["r2"], 0.5)
        self.assertLess(found["values"]["rmse"], ends.std())

    def test_sounds(self):
        pitches, parts = {"low": 200, "middle": 600, "high": 1800}, {}
        for name, pitch in pitches.items():
            for i in range(30):
                part = "train" if i < 18 else "validation" if i < 24 else "test"
                when = np.arange(self.rng.integers(800, 1600)) / 8000
                sound = 4000 * np.sin(2 * np.pi * pitch * self.rng.uniform(0.8, 1.25) * when) + 500 * self.rng.normal(size=len(when))
                path = self.folder / part / name / f"{i}.wav"
                path.parent.mkdir(parents=True, exist_ok=True)
                with wave.open(str(path), "wb") as file:
                    file.setparams((1, 2, 8000, len(sound), "NONE", ""))
                    file.writeframes(sound.astype("<i2").tobytes())
                if part == "test":
                    parts[path] = name
        run, found = self.trained(f"plugin: labelled_sounds, train: train, validation: validation, test: test, features: log_bands, rate: 8000, {self.CLASS_METRICS}",
                                  "confusion_1")
        classes = [self.predicted(run, path)["class"][0] for path in parts]
        self.assert_classes(run, found["values"], list(parts.values()), classes)

    def test_forecast(self):
        table = self.table(60, 48)
        hour = np.tile(np.arange(48), 60)
        table["x"] = 20 + 5 * np.sin(2 * np.pi * hour / 24 + np.repeat(self.rng.uniform(0, 6, size=60), 48)) + 0.5 * table["x"]
        table["next"] = table.groupby("name")["x"].shift(-1)
        test = self.write_splits(table)
        run, found = self.trained(f"plugin: sequence_csv, {self.SPLITS}, targets: [next], readout: every, season: 24, normalisation: standard, "
                                  "target_normalisation: standard, metrics: [mae, rmse, r2, examples]", "examples_1_1")
        rows, there = self.predicted(run, "test.csv"), test["next"].notna()
        self.assert_numbers(found["values"], test["next"][there].to_numpy(), rows["next"][there].to_numpy())
        scale = pd.read_csv(self.folder / "train.csv")["next"].std(ddof=0)
        for name, guess in (("persistence", test["x"]), ("seasonal persistence", test.groupby("name")["x"].shift(23).fillna(test["x"]))):
            self.assertAlmostEqual(found["baselines"][name], ((guess - test["next"])[there]**2).mean() / scale**2, 9)
        self.assertLess(found["values"]["loss"], min(found["baselines"].values()))
        drawn = pd.read_csv(run / "outcome" / "examples.csv")
        first = test[test["name"].isin(test["name"].unique()[:5])].reset_index(drop=True)
        self.assertEqual(list(drawn["step"]), list(np.tile(np.arange(48), 5)))
        np.testing.assert_allclose(drawn["true"], first["next"], rtol=1e-7)
        np.testing.assert_allclose(drawn["predicted"], rows["next"][:240], rtol=1e-7)
        figure = (self.folder / "figures" / "examples_1_1.svg").read_text()
        self.assertEqual([f"Sequence {i}" in figure for i in range(6)], [True] * 5 + [False])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
