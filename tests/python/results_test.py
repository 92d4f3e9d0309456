#!/usr/bin/python3
"""Runs as xarray and pandas objects are what h5py finds in their files.

usage: results_test.py PYTHON_FOLDER STIEFEL FIXTURES; FIXTURES has runs of all format versions
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
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
from some_runs import EXPERIMENT, Runs


class Results(Runs):
    program = PROGRAM

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
        with self.assertRaisesRegex(ValueError, "has the group nothing; there are config, .*epochs, "):
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
        self.assertEqual((table["optimizer.0.rate"][0], table["task.marks"][0], table["features"][0]), (0.002, (2, 3), ("1_000", "off", "12:30:45")))
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
        self.assertEqual(row["state"], "stopped")
        lock = path.parent / "lock"
        for age, state in ((0, "running"), (61, "stopped")):
            lock.touch()
            os.utime(lock, (time.time() - age,) * 2)
            self.assertEqual(stiefel.runs(path)["state"].item(), state)
        with h5py.File(path, "a") as file:
            file.attrs["state"] = "preempted"
        self.assertEqual(stiefel.runs(path)["state"].item(), "stopped")
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
        (copy / "empty").mkdir()
        for missing in (copy / "nowhere", copy / "empty"):
            with self.assertRaisesRegex(FileNotFoundError, "there is no"):
                stiefel.open_run(missing)

    def test_folders_above_a_run(self):
        copy = self.copy()
        first, *others = sorted(path.parent for path in copy.rglob("results.h5"))
        with self.assertRaisesRegex(ValueError, f"^{copy} has 3 runs; name the folder of one: {first}, "):
            stiefel.open_run(copy)
        for other in others:
            shutil.rmtree(other)
        self.assertEqual(stiefel.open_run(copy)["/"].attrs["run_id"], first.name)

    def test_foreign_files(self):
        """Whatever their attributes are, they are left out, with a warning that names the caller's line."""
        folder = self.copy()
        foreign = min(folder.rglob("results.h5"))
        for version in (1, 3, "1.0", [1, 2]):
            with h5py.File(foreign, "w") as file:
                file.attrs["Conventions"], file.attrs["format_version"] = "CF-1.8", version
            with self.assertRaisesRegex(ValueError, f"^{foreign} is not a result file of stiefel"):
                stiefel.open_run(foreign)
            for read in (stiefel.runs, lambda folder: stiefel.load(folder)["run"]):
                with self.assertWarnsRegex(UserWarning, "is not a result file of stiefel; it is left out") as caught:
                    self.assertEqual(len(read(folder)), 2)
                self.assertEqual(caught.filename, __file__)

    def test_links_and_missing_folders(self):
        folder = self.copy()
        (folder / "other").mkdir()
        (folder / "other/results.h5").symlink_to(min(folder.rglob("results.h5")))
        self.assertEqual(len(stiefel.runs(folder)), 3)
        for read in (stiefel.runs, stiefel.load):
            with self.assertRaisesRegex(FileNotFoundError, "there is no .*nowhere"):
                read([folder, folder / "nowhere"])

    def test_metrics(self):
        path = min(self.copy().rglob("results.h5"))
        with h5py.File(path, "a") as file:
            file["outcome/step"], file["outcome/snr"] = [10], [12.5]
            metrics = {name: values[:] for name, values in file["epochs"].items() if name == "step" or name.startswith("valid_")}
        row, = stiefel.runs(path).to_dict("records")
        self.assertEqual(row["outcome.snr"], 12.5)
        self.assertFalse({"snr", "outcome.step"} & set(row))
        place = metrics.pop("step").tolist().index(row["best_step"])
        self.assertEqual({name: row[name] for name in metrics}, {name: values[place] for name, values in metrics.items()})
        self.assertIn("valid_accuracy", metrics)
        with h5py.File(path, "a") as file:
            file["status"].attrs["best_step"] = 7
        row, = stiefel.runs(path).to_dict("records")
        self.assertTrue(row["best_step"] == 7 and np.isnan(row["valid_loss"]))
        with h5py.File(path, "a") as file:
            del file["status"].attrs["best_step"]
        self.assertTrue(stiefel.runs(path)["best_step"].isna().all())
        with h5py.File(path, "a") as file:
            del file["status"]
        row, = stiefel.runs(path).to_dict("records")
        self.assertTrue(np.isnan(row["best_step"]) and "cpu_seconds" not in row, row)

    def test_numbers_and_texts(self):
        path = min(self.copy().rglob("results.h5"))
        with h5py.File(path, "a") as file:
            text = file["config/yaml"].asstr()[()]
            del file["config/yaml"], file["provenance/segments/changes"]
            file["config/yaml"] = text + 'n: {a: -1e-3, b: .5, c: 1e+30, d: 5, e: +2e1, f: [[1, 2], [3]], g: "1_000"}\n'
            file["provenance/segments/changes"] = np.array([json.dumps({"n.g": "2_000", "scalar": "off", "train.steps": ""})], dtype=object)
            file["provenance/segments/changes"].dims[0].attach_scale(file["provenance/segments/segment"])
        row, = stiefel.runs(path).to_dict("records")
        self.assertEqual([row[f"n.{key}"] for key in "abcde"], [-0.001, 0.5, 1e30, 5, 20])
        self.assertEqual((row["n.f.0"], row["n.f.1"], row["n.g"], row["scalar"], row["train.steps"]), ((1, 2), (3,), "2_000", "off", ""))

    def test_what_groups_lack(self):
        with self.assertRaisesRegex(KeyError, "has no group steps/loss; it has"):
            stiefel.open_run(self.paths[0], "steps/loss")
        with self.assertRaisesRegex(ValueError, "there is no column lr; there are step,"):
            stiefel.load(self.folder, "steps", along="lr")
        for values in stiefel.open_run(self.paths[0], "steps").variables.values():
            self.assertTrue(all(key.islower() for key in values.attrs), values.attrs)
        folder = self.copy()
        first, second, _ = paths = sorted(folder.rglob("results.h5"))
        with h5py.File(first, "a") as file:
            file["spectrum/recurrent/snapshot"][:] = 5
            del file["provenance/plugins/version"], file["epochs/is_best"]
        with self.assertRaisesRegex(ValueError, "has the snapshot 5 twice$"):
            stiefel.load(folder, "spectrum/recurrent")
        for order in (paths, [second, first]):
            run = order.index(first)
            self.assertEqual(set(stiefel.load(order, "provenance/plugins")["version"].isel(run=run).values), {""})
            self.assertTrue(stiefel.load(order)["is_best"].isel(run=run).isnull().all())

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
            for path, warning in zip((flipped, incomplete), caught):
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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=1)
