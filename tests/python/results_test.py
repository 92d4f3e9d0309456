#!/usr/bin/python3
"""Runs as xarray and pandas objects, and as figures, are what h5py finds in their files.

usage: results_test.py PYTHON_FOLDER STIEFEL FIXTURES; FIXTURES has runs of all format versions
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings

PACKAGE, PROGRAM, FIXTURES = sys.argv[1], os.path.abspath(sys.argv[2]), pathlib.Path(sys.argv[3])
sys.path.insert(0, PACKAGE)
try:
    import h5py
    import numpy as np
    import pandas
    import xarray
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
try:
    import matplotlib
    matplotlib.use("Agg")
except ImportError:
    matplotlib = None

import stiefel

EXPERIMENT = """name: first
task: {plugin: adding, length: 12, validation_sequences: 20, test_sequences: 20}
model:
  cell: {plugin: elman, hidden: 8}
  recurrent: {plugin: scaled_cayley}
optimizer: [{blocks: "recurrent.*", plugin: adam, rate: 1e-3}, {plugin: rmsprop}]
train: {batch: 4, steps: 10, evaluate_every: 5}
record: {loss: 1, spectrum: 5, gradient_norms: 5, orthogonality: 5, scalars: 5}
"""


class Results(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        (cls.folder / "first.yaml").write_text(EXPERIMENT, encoding="utf-8")
        for seed, rate in ((1, "1e-3"), (2, "1e-3"), (3, "2e-3")):
            subprocess.run([PROGRAM, "run", "first.yaml", f"seed={seed}", f"optimizer.0.rate={rate}", "--quiet", "--threads", "1"],
                           cwd=cls.folder, check=True, stdout=subprocess.DEVNULL)
        cls.paths = sorted((cls.folder / "runs").rglob("results.h5"))
        assert len(cls.paths) == 3

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def copy(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return pathlib.Path(shutil.copytree(self.folder / "runs", pathlib.Path(folder.name) / "runs"))

    def test_open_run(self):
        run = stiefel.open_run(self.paths[0].parent)
        self.assertEqual(hasattr(xarray, "DataTree"), not isinstance(run, dict))
        self.assertEqual(run["/"].attrs["title"], "first")
        with h5py.File(self.paths[0]) as file:
            def compare(name, item):
                if not isinstance(item, h5py.Dataset):
                    return
                group, _, variable = name.rpartition("/")
                found = run[group][variable]
                for text in ("units", "long_name"):
                    self.assertEqual(found.attrs.get(text, found.encoding.get(text)), item.attrs[text], name)
                if item.attrs["units"].startswith("seconds since"):
                    self.assertEqual(found.dtype.kind, "M", name)
                elif h5py.check_string_dtype(item.dtype):
                    self.assertEqual(found.values.tolist(), item.asstr()[()].tolist() if item.shape else item.asstr()[()], name)
                else:
                    np.testing.assert_array_equal(found.values, item[()], name)
                    self.assertEqual(found.dtype, item.dtype, name)
            file.visititems(compare)
            self.assertEqual(run["status"].attrs["exit_code"], 0)

    def test_open_group(self):
        for path in (self.paths[0], str(self.paths[0].parent)):
            spectrum = stiefel.open_run(path, "spectrum/recurrent")
            self.assertEqual(spectrum["eigenvalues"].dims, ("snapshot", "k"))
            np.testing.assert_allclose(np.abs(spectrum["eigenvalues"].sel(snapshot=10)), 1, atol=1e-5)
        with self.assertRaisesRegex(KeyError, "has no group nothing; it has config, .*steps"):
            stiefel.open_run(self.paths[0], "nothing")

    def test_runs(self):
        table = stiefel.runs(self.folder)
        self.assertEqual(len(table), 3)
        self.assertEqual(set(table["state"]), {"finished"})
        self.assertEqual(sorted(table["optimizer.0.rate"]), [0.001, 0.001, 0.002])
        self.assertEqual(table["optimizer.0.rate"].dtype, float)
        self.assertEqual(set(table["model.recurrent.plugin"]), {"scaled_cayley"})
        self.assertTrue((table["train.steps"] == 10).all() and (table["name"] == "first").all())
        for _, row in table.iterrows():
            with h5py.File(pathlib.Path(row["path"]) / "results.h5") as file:
                self.assertEqual(row["id"], file.attrs["run_id"])
                self.assertEqual((row["step"], row["parameters"], row["created"]), (10, file.attrs["parameters"], file.attrs["created"]))
                self.assertEqual(row["cpu_seconds"], file["status"].attrs["cpu_seconds"])
                self.assertEqual(row["test_loss"], file["final/test_loss"][-1])
                self.assertEqual(row["best_step"], file["final/step"][-1])
                place = file["epochs/step"][:].tolist().index(row["best_step"])
                self.assertEqual(row["valid_loss"], file["epochs/valid_loss"][place])
        one = stiefel.runs([self.paths[0], str(self.paths[1].parent)])
        self.assertEqual(list(one["path"]), [str(path.parent) for path in self.paths[:2]])

    def test_load(self):
        epochs = stiefel.load(self.folder)
        self.assertEqual(dict(epochs["valid_loss"].sizes), {"run": 3, "epoch": 2})
        self.assertEqual([key for key in epochs.coords if "." in key], ["optimizer.0.rate"])
        self.assertEqual(epochs["valid_loss"].attrs["units"], "1")
        self.assertEqual(dict(epochs.groupby("optimizer.0.rate").count()["valid_loss"].sel(epoch=epochs["epoch"][0]).to_series()),
                         {0.001: 2, 0.002: 1})
        with self.assertRaisesRegex(ValueError, "has the group nothing"):
            stiefel.load(self.folder, "nothing")

    def test_runs_of_different_tasks(self):
        """What a run does not have is NaN, whichever run comes first."""
        (self.folder / "rows.csv").write_text("s,x,y\n" + "".join(f"{s},{x},{s % 3}\n" for s in range(30) for x in range(4)), encoding="utf-8")
        text = EXPERIMENT.replace("{plugin: adding, length: 12, validation_sequences: 20, test_sequences: 20}", "{plugin: sequence_csv, data: rows.csv, sequence: s, targets: [y]}")
        (self.folder / "rows.yaml").write_text(text.replace("first", "rows"), encoding="utf-8")
        with tempfile.TemporaryDirectory() as other:
            subprocess.run([PROGRAM, "run", "rows.yaml", "--quiet", "--threads", "1", "--output", other], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
            rows = next(pathlib.Path(other).rglob("results.h5"))
            for paths in ([self.paths[0], rows], [rows, self.paths[0]]):
                epochs, final = stiefel.load(paths), stiefel.load(paths, "final")
                for data, metrics in ((epochs, ("valid_accuracy", "valid_mae")), (final, ("test_accuracy", "test_mae"))):
                    for metric, has in zip(metrics, (self.paths[0], rows)):
                        for path in paths:
                            values = data[metric].isel(run=paths.index(path))
                            self.assertEqual(bool(values.isnull().all()), path != has, (metric, path))

    def test_variables_of_a_group_are_kept_and_runs_count_once(self):
        plugins = stiefel.load(self.folder, "provenance/plugins")
        self.assertEqual(plugins["name"].dims, ("run", "plugin"))
        self.assertEqual(set(plugins["name"].values[0]), {"adding", "elman", "scaled_cayley", "adam", "rmsprop"})
        self.assertEqual(plugins["run_name"].values.tolist(), ["first"] * 3)
        self.assertEqual(len(stiefel.runs([self.folder, self.folder / "runs", self.folder])), 3)

    def test_a_key_that_one_run_lacks_stays_a_number(self):
        folder = self.copy()
        subprocess.run([PROGRAM, "run", self.folder / "first.yaml", "model.recurrent={plugin: householder, reflections: 3}", "--quiet", "--output",
                        folder], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        reflections = stiefel.load(folder)["model.recurrent.reflections"].values
        self.assertEqual(reflections.dtype.kind, "f")
        self.assertEqual(np.nanmin(reflections), 3)
        self.assertEqual(int(np.isnan(reflections).sum()), 3)

    def test_changes_by_resuming(self):
        folder, command = self.copy(), [PROGRAM, "run", self.folder / "first.yaml", "name=changed", "--until", "5", "--quiet", "--threads", "1"]
        self.assertEqual(subprocess.run([*command, "--output", folder], cwd=folder, stdout=subprocess.DEVNULL).returncode, 75)
        run, = (folder / "changed").iterdir()
        for until, changes in (("7", ["optimizer.0.rate=2e-3", "train.clip={kind: norm, bound: 3}"]), ("10", ["optimizer.0.rate=4e-3", "optimizer.1.schedule.kind=step"])):
            subprocess.run([PROGRAM, "resume", run, *changes, "--allow-change", "all", "--until", until, "--quiet", "--threads", "1"],
                           stdout=subprocess.DEVNULL)
        table = stiefel.runs([run, self.paths[0]]).set_index("name")
        self.assertEqual(table["optimizer.0.rate"].to_dict(), {"changed": 0.004, "first": 0.001})
        self.assertEqual(table.loc["changed", ["optimizer.1.schedule.kind", "train.clip.kind", "train.clip.bound", "state"]].tolist(), ["step", "norm", 3, "finished"])
        self.assertEqual(stiefel.load([run, self.paths[0]])["optimizer.0.rate"].values.tolist(), [0.004, 0.001])
        with h5py.File(run / "results.h5", "a") as file:
            file["provenance/segments/changes"][2] = json.dumps({"plugin:adam": "1", "data:a.b": "1", "version": "1", "train.clip.bound": None, "task.marks": "[2, 3]", "features": "[1_000, off, 12:30:45]"})
            text = file["config/yaml"].asstr()[()]
            del file["config/yaml"]
            file["config/yaml"] = text + 'features: ["1_000"]\n'
        table = stiefel.runs(run)
        self.assertEqual((table["optimizer.0.rate"][0], table["task.marks"][0], table["features"][0]), (0.002, [2, 3], ["1_000", "off", "12:30:45"]))
        self.assertFalse({"plugin:adam", "data:a.b", "version", "train.clip.bound"} & set(table))

    def test_ids_that_look_like_numbers(self):
        copy = self.copy()
        with h5py.File(next(copy.rglob("results.h5")), "a") as file:
            file.attrs["run_id"] = "12345e6789"
        self.assertIn("12345e6789", stiefel.load(copy)["id"].values)

    def test_unfinished_runs(self):
        copy = self.copy()
        path = next(copy.rglob("results.h5"))
        with h5py.File(path, "a") as file:
            for name in ("final", "epochs"):
                del file[name]
            file.attrs["state"] = "running"
            file["status"].attrs["best_step"] = -1
        self.assertEqual(stiefel.load(copy).sizes["run"], 2)
        row = stiefel.runs(copy).set_index("path").loc[str(path.parent)]
        self.assertEqual(row["state"], "running")
        self.assertTrue(pandas.isna(row["test_loss"]) and pandas.isna(row["best_step"]))
        self.assertTrue(stiefel.runs(path)[["best_step", "valid_loss", "test_loss"]].isna().all(axis=None))

    def test_epochs_that_repeat(self):
        copy = self.copy()
        path = next(copy.rglob("results.h5"))
        with h5py.File(path, "a") as file:
            file["epochs/epoch"][:] = 2
        with self.assertRaisesRegex(ValueError, f"{path.parent} has the epoch 2.0 twice; align the runs with along=\"step\""):
            stiefel.load(copy)
        self.assertEqual(stiefel.load(path)["epoch"].values.tolist(), [2, 2])
        epochs = stiefel.load(copy, along="step")
        self.assertEqual((epochs["step"].values.tolist(), epochs["epoch"].dims), ([5, 10], ("run", "step")))
        with self.assertRaisesRegex(ValueError, "no column time; there are .*step"):
            stiefel.load(copy, along="time")
        if matplotlib:
            import stiefel.plot as plot
            for line in plot.learning_curves(copy, by="optimizer.0.rate").lines:
                np.testing.assert_array_equal(line.get_xdata(), [5, 10])

    def test_files_that_cannot_be_read(self):
        copy = self.copy()
        truncated, newer, foreign = sorted(copy.rglob("results.h5"))
        os.truncate(truncated, 1000)
        with h5py.File(newer, "a") as file:
            file.attrs["format_version"] = 3
        with h5py.File(foreign, "w") as file:
            file["x"] = 1
        said = {truncated: "cannot be read: ", newer: "has format version 3, but this package reads 1 and 2: update it",
                foreign: "is not a result file of stiefel"}
        for path, message in said.items():
            with self.assertRaisesRegex(ValueError, f"{path}.*{message}"):
                stiefel.open_run(path)
        with warnings.catch_warnings(record=True) as caught, self.assertRaisesRegex(ValueError, "no run in"):
            warnings.simplefilter("always")
            stiefel.runs(copy)
        self.assertEqual(len([warning for warning in caught if "it is left out" in str(warning.message)]), 3)
        for missing in (copy / "nowhere", copy):
            with self.assertRaisesRegex(FileNotFoundError, "there is no"):
                stiefel.open_run(missing)

    def test_damaged_runs(self):
        copy = self.copy()
        flipped, incomplete, intact = sorted(copy.rglob("results.h5"))
        with h5py.File(flipped) as file:
            place = file["epochs/valid_loss"].id.get_chunk_info(0).byte_offset
        with open(flipped, "r+b") as file:
            file.seek(place)
            file.write(b"damage")
        with h5py.File(incomplete, "a") as file:
            del file["config/yaml"]
        for read in (lambda: stiefel.runs(copy)["path"], lambda: stiefel.load(copy)["path"].values):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self.assertEqual(list(read()), [str(intact.parent)])
            for path, warning in zip((flipped, incomplete), caught, strict=True):
                self.assertRegex(str(warning.message), f"^{path} cannot be read: .*; it is left out$")
        with self.assertRaisesRegex(ValueError, f"^{flipped} cannot be read: "):
            stiefel.open_run(flipped)

    def test_every_format_version(self):
        for archive in sorted(FIXTURES.glob("version_*.tar.gz")):
            with tempfile.TemporaryDirectory() as folder, self.subTest(archive=archive.name):
                shutil.unpack_archive(archive, folder)
                expected = json.loads(next(pathlib.Path(folder).rglob("expected.json")).read_text(encoding="utf-8"))
                table, = stiefel.runs(folder).to_dict("records")
                self.assertEqual((table["name"], table["model.recurrent.reflections"]), ("upgrade", 3))
                losses = stiefel.load(folder, "steps")["loss"].isel(run=0)
                self.assertEqual(losses.values.tolist(), expected["steps/loss"][:losses.size])

    @unittest.skipUnless(matplotlib, "no matplotlib")
    def test_figures(self):
        import stiefel.plot as plot
        curves = plot.learning_curves(self.folder)
        self.assertEqual(len(curves.lines), 3)
        epochs = stiefel.load(self.folder)
        np.testing.assert_array_equal(curves.lines[1].get_ydata(), epochs["valid_loss"][1])
        np.testing.assert_array_equal(curves.lines[1].get_xdata(), [5, 10])
        self.assertEqual((curves.get_xlabel(), curves.get_ylabel()), ("optimizer step", "valid loss"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            groups = plot.learning_curves([self.folder], "train_loss", by="optimizer.0.rate")
        losses = epochs["train_loss"][epochs["optimizer.0.rate"] == 0.001]
        band = groups.collections[0].get_paths()[0].get_extents()
        self.assertAlmostEqual(band.y1, float((losses.mean("run") + losses.std("run", ddof=1)).max()), places=6)
        self.assertEqual([line.get_label() for line in groups.lines], ["0.001", "0.002"])
        np.testing.assert_allclose(groups.lines[0].get_ydata(), epochs["train_loss"][epochs["optimizer.0.rate"] == 0.001].mean("run"))
        with self.assertRaisesRegex(ValueError, "no column nothing; there are .*valid_loss"):
            plot.learning_curves(self.folder, "nothing")
        with self.assertRaisesRegex(ValueError, "key in which the runs differ task.length"):
            plot.learning_curves(self.folder, by="task.length")
        with self.assertRaisesRegex(ValueError, "key in which the runs differ valid_loss; they differ in path, .*optimizer.0.rate"):
            plot.learning_curves(self.folder, by="valid_loss")
        self.assertEqual(len(plot.singular_values(self.paths[0]).lines), 8)
        values = plot.eigenvalues(self.paths[0]).lines[0]
        spectrum, norms = stiefel.open_run(self.paths[0], "spectrum/recurrent"), stiefel.open_run(self.paths[0], "gradient")
        np.testing.assert_array_equal(values.get_xdata() + 1j * values.get_ydata(), spectrum["eigenvalues"].values[-1])
        for line, column in zip(plot.singular_values(self.paths[0]).lines, spectrum["singular_values"].values.T, strict=True):
            np.testing.assert_array_equal(line.get_xydata(), np.stack([spectrum["snapshot"], column], axis=1))
        heat = plot.gradients(self.paths[0].parent, "last_step_grad_norm")
        np.testing.assert_array_equal(heat.collections[0].get_array().compressed(), norms["last_step_grad_norm"].values[norms["last_step_grad_norm"].values > 0])
        self.assertEqual(heat.collections[0].get_array().size, stiefel.open_run(self.paths[0], "gradient")["hidden_grad_norm"].size)
        deep = next(self.copy().rglob("results.h5"))
        with h5py.File(deep, "a") as file:
            file.move("gradient", "layer")
            file.move("layer", "gradient/layers_0")
            file.copy("gradient/layers_0", "gradient/layers_1")
        with self.assertRaisesRegex(ValueError, f"{deep} has norms for each layer: choose one with layer=0 or 1"):
            plot.gradients(deep)

    @unittest.skipUnless(matplotlib, "no matplotlib")
    def test_groups_of_curves(self):
        import stiefel.plot as plot
        folder = self.copy()
        for keys in (["optimizer.0.rate=2e-3"], ["optimizer.0.rate=2e-3", "seed=2"], []):
            subprocess.run([PROGRAM, "run", self.folder / "first.yaml", "model.recurrent={plugin: householder, reflections: 3}", *keys, "--quiet",
                            "--threads", "1", "--output", folder], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        epochs = stiefel.load(folder)

        def curves(by):
            axes = plot.learning_curves(folder, by=by)
            return axes.get_legend().get_title().get_text(), {line.get_label(): line.get_ydata() for line in axes.lines}
        title, one = curves("model.recurrent.reflections")
        self.assertEqual((title, list(one)), ("model.recurrent.reflections", ["3", "(none)"]))
        cayley = epochs["valid_loss"][epochs["model.recurrent.plugin"] == "scaled_cayley"]
        self.assertEqual(cayley.sizes["run"], 3)
        np.testing.assert_allclose(one["(none)"], cayley.mean("run"))
        self.assertEqual(list(curves(["model.recurrent.normalise_columns"])[1]), ["True", "(none)"])
        title, several = curves(["model.recurrent.reflections", "optimizer.0.rate"])
        self.assertEqual((title, list(several)), ("model.recurrent.reflections, optimizer.0.rate", ["3, 0.001", "3, 0.002", "(none), 0.001", "(none), 0.002"]))
        chosen = (epochs["model.recurrent.plugin"] == "householder") & (epochs["optimizer.0.rate"] == 0.002)
        np.testing.assert_allclose(several["3, 0.002"], epochs["valid_loss"][chosen].mean("run"))
        self.assertEqual([plot._text(value) for value in (3.0, 1e30, 0.001)], ["3", "1e+30", "0.001"])  # pylint: disable=protected-access


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=1)
