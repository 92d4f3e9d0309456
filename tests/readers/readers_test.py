#!/usr/bin/python3
"""Opens a result file with every reader that users have: readers_test.py MAKE_EXAMPLE README

h5py, xarray with both engines, ncdump, h5dump, and the examples of results/README.md as they stand there.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np
import xarray

MAKE_EXAMPLE, README = sys.argv[1], sys.argv[2]
PACKAGE = os.path.join(os.path.dirname(README), "../python")
STEPS, HIDDEN, LENGTH = 300, 8, 20
ENGINES = ["h5netcdf", "netcdf4"]


def loss(step):
    return 0.167 * np.exp(-step / 100)


class Readers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([MAKE_EXAMPLE, cls.folder.name], check=True)
        cls.path = os.path.join(cls.folder.name, "results.h5")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def open(self, group, engine):
        dataset = xarray.open_dataset(self.path, group=group, engine=engine)
        self.addCleanup(dataset.close)
        return dataset

    def test_h5py_texts_are_str(self):
        with h5py.File(self.path) as file:
            self.assertEqual(file.attrs["Conventions"], "stiefel-run-1")
            self.assertIsInstance(file.attrs["title"], str)
            self.assertEqual(file.attrs["state"], "finished")
            self.assertEqual(file.attrs["committed_step"], STEPS)
            self.assertEqual(file.attrs["format_version"].dtype, np.int32)
            self.assertIn("größer als ASCII: ∂L/∂h", file["config/yaml"].asstr()[()])
            self.assertEqual(list(file["config/overrides"].asstr()), ["seed=1", "train.steps=300"])
            self.assertEqual(list(file["provenance/plugins/build_id"].asstr()), ["11ff", ""])

    def test_h5py_numbers(self):
        with h5py.File(self.path) as file:
            step = file["steps/step"][:]
            np.testing.assert_array_equal(step, np.arange(1, STEPS + 1))
            expected = loss(step)
            expected[6] = np.nan
            np.testing.assert_allclose(file["steps/loss"][:], expected, rtol=1e-15)
            self.assertEqual(file["steps/rss_bytes"].dtype, np.int64)
            self.assertEqual(file["epochs/is_best"].dtype, np.uint8)
            values = file["spectrum/recurrent/eigenvalues"][:]
            self.assertEqual(values.dtype, np.complex128)
            np.testing.assert_allclose(values, np.tile(np.exp(1j * np.arange(HIDDEN)), (6, 1)))

    def test_h5py_axes(self):
        with h5py.File(self.path) as file:
            def visit(name, item):
                if not isinstance(item, h5py.Dataset):
                    return
                self.assertTrue(item.attrs["units"] and item.attrs["long_name"], name)
                self.assertRegex(name.rsplit("/")[-1], "^[a-z_][a-z0-9_]*$")
                for axis, dimension in enumerate(item.dims):
                    if not h5py.h5ds.is_scale(item.id):
                        self.assertEqual(len(dimension), 1, f"{name} axis {axis}")
                        self.assertEqual(dimension[0].shape[0], item.shape[axis], f"{name} axis {axis}")
                if item.chunks and item.dtype.kind != "O":
                    self.assertTrue(item.shuffle and item.fletcher32 and item.compression == "gzip", name)
            file.visititems(visit)
            self.assertEqual(set(file), {"config", "provenance", "steps", "epochs", "spectrum", "gradient", "orthogonality", "timing", "status"})

    def test_xarray_every_group(self):
        with h5py.File(self.path) as file:
            groups = ["/"]
            file.visititems(lambda name, item: groups.append(name) if isinstance(item, h5py.Group) else None)
        self.assertEqual(len(groups), 15)
        for engine in ENGINES:
            for group in groups:
                with self.subTest(engine=engine, group=group):
                    self.assertFalse([name for name in self.open(group, engine).dims if name.startswith("phony")])

    def test_xarray_tables(self):
        for engine in ENGINES:
            with self.subTest(engine=engine):
                steps = self.open("steps", engine)
                self.assertAlmostEqual(float(steps["loss"].sel(step=100)), loss(100), places=15)
                self.assertTrue(np.isnan(float(steps["loss"].sel(step=7))))
                self.assertEqual(str(steps["wall_time"].values[0])[:19], "2023-11-14T22:13:21")
                self.assertEqual(steps["loss"].attrs["long_name"], "training loss")
                self.assertEqual(len(steps.to_dataframe()), STEPS)
                gradient = self.open("gradient", engine)["hidden_grad_norm"]
                self.assertEqual(gradient.dims, ("snapshot", "t"))
                self.assertEqual(gradient.shape, (6, LENGTH))
                self.assertEqual(int(gradient.isnull().sum()), 6 * 5)
                defect = self.open("orthogonality/recurrent", engine)
                self.assertEqual(list(defect["block"].values), ["recurrent.U", "recurrent.V"])
                self.assertAlmostEqual(float(defect["defect_fro"].sel(snapshot=300, block="recurrent.U")), 3e-5, places=18)
                seconds = self.open("timing", engine)["seconds"]
                self.assertEqual(float(seconds.sel(epoch=2, phase="backward")), 203)

    def test_attributes_of_plots(self):
        """Every reader gets them, also the list of axes."""
        for engine in ENGINES:
            for group, signal, axes in (("epochs", "valid_loss", ["epoch"]), ("gradient", "hidden_grad_norm", ["snapshot", "t"])):
                with self.subTest(engine=engine, group=group):
                    found = self.open(group, engine).attrs
                    self.assertEqual((found["NX_class"], found["signal"], np.atleast_1d(found["axes"]).tolist()), ("NXdata", signal, axes))
            self.assertEqual(self.open("/", engine).attrs["default"], "epochs")

    def test_xarray_complex(self):
        self.assertEqual(self.open("spectrum/recurrent", "h5netcdf")["eigenvalues"].dtype, np.complex128)
        self.assertEqual(self.open("spectrum/recurrent", "netcdf4")["eigenvalue_phase"].dims, ("snapshot", "k"))

    def test_command_line_tools(self):
        header = subprocess.run(["ncdump", "-h", self.path], check=True, capture_output=True, text=True).stdout
        self.assertIn("double hidden_grad_norm(snapshot, t) ;", header)
        self.assertIn("step = UNLIMITED ; // (300 currently)", header)
        values = subprocess.run(["ncdump", "-v", "/epochs/epoch", self.path], check=True, capture_output=True, text=True).stdout
        self.assertIn("epoch = 1, 2, 3 ;", values)
        dump = subprocess.run(["h5dump", "-d", "/epochs/is_best", self.path], check=True, capture_output=True, text=True).stdout
        self.assertIn("(0): 0, 0, 1", dump)
        subprocess.run(["h5dump", self.path], check=True, capture_output=True)

    def test_examples_of_the_readme(self):
        with open(README, encoding="utf-8") as file:
            examples = re.findall(r"^```python\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
        self.assertEqual(len(examples), 4)
        outputs = []
        for example in examples:
            run = subprocess.run(["/usr/bin/python3", "-c", example], cwd=self.folder.name, capture_output=True, text=True,
                                 env={**os.environ, "PYTHONPATH": PACKAGE})
            self.assertEqual(run.returncode, 0, run.stderr)
            outputs.append(run.stdout)
        self.assertIn("adding-20-ornn, seed 1 finished 300", outputs[0])
        self.assertIn("loss 0.008314 after 300 steps", outputs[0])
        self.assertIn("0.531441", outputs[1])
        self.assertIn("1 runs, states ['finished']", outputs[2])
        self.assertEqual(len(outputs[3].split()), 2)
        self.assertEqual(outputs[3].split()[1], "3")

    @unittest.skipUnless(shutil.which("octave-cli"), "no octave-cli")
    def test_octave_example_of_the_readme(self):
        with open(README, encoding="utf-8") as file:
            example, = re.findall(r"^```octave\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
        run = subprocess.run(["octave-cli", "--no-init-file", "--eval", example], cwd=self.folder.name, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        with h5py.File(self.path) as file:
            largest = file["spectrum/recurrent/singular_values"][-1, 0]
        self.assertIn(f"largest singular value {largest:g}, eigenvalues on the circle: {HIDDEN}", run.stdout)

    def test_package_joins_runs(self):
        sys.path.insert(0, PACKAGE)
        import stiefel
        with tempfile.TemporaryDirectory() as folder:
            for seed, rate in ((1, "1e-3"), (2, "1e-2"), (3, "1e-2")):
                path = os.path.join(folder, "sweep", str(seed), "results.h5")
                os.makedirs(os.path.dirname(path))
                shutil.copy(self.path, path)
                with h5py.File(path, "a") as file:
                    del file["config/yaml"]
                    file["config/yaml"] = f"seed: {seed}\noptimizer: {{plugin: adam, rate: {rate}}}\ntrain: {{batch: 5}}\n"
                    file["epochs/valid_loss"][:] = np.arange(3) + seed
            epochs = stiefel.load(folder, "epochs")
            self.assertEqual(dict(epochs.sizes), {"run": 3, "epoch": 3})
            self.assertEqual([key for key in epochs.coords if "." in key], ["optimizer.rate"])
            means = epochs["valid_loss"].min("epoch").groupby("optimizer.rate").mean()
            self.assertEqual([(float(rate), float(mean)) for rate, mean in zip(means["optimizer.rate"], means)], [(1e-3, 1), (1e-2, 2.5)])
            self.assertEqual(stiefel.load([folder], "spectrum/recurrent")["singular_values"].dims, ("run", "snapshot", "k"))
            with self.assertRaisesRegex(ValueError, "has the group nothing"):
                stiefel.load(folder, "nothing")

    def test_progress(self):
        import json
        with open(os.path.join(self.folder.name, "progress.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual([(line["step"], line["loss"], line["gradient"]) for line in lines], [(STEPS, 0.0083, None)])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
