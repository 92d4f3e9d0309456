#!/usr/bin/python3
"""Viewers that know NeXus draw what a run came to when its results.h5 is opened.

usage: viewers_test.py PYTHON_FOLDER STIEFEL FIXTURES; FIXTURES has runs of all format versions
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, FIXTURES = (pathlib.Path(word).resolve() for word in sys.argv[2:4])
try:
    import h5py
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
try:
    from silx.io import nxdata
except ImportError:
    nxdata = None

from some_runs import EXPERIMENT

TWO_LAYERS = ["model={layers: [{cell: {plugin: elman, hidden: 8}, recurrent: scaled_cayley}, {cell: {plugin: gru, hidden: 6}, recurrent: dense}]}"]
WITHOUT_VALIDATION = ["task.validation_sequences=0"]
RUNS = {
    "plain": [],
    "layers": [*TWO_LAYERS, "optimizer={plugin: adam, rate: 1e-3}"],
    "unvalidated": WITHOUT_VALIDATION,
    "tested": [*WITHOUT_VALIDATION, "train.select_on=best_test"],
    "diverged": ["optimizer=[{plugin: sgd, rate: 1e30}]"],
}


def default_plot(group):
    """The group that the attributes `default` lead to."""
    while "default" in group.attrs:
        group = group[group.attrs["default"]]
    return group


class Viewers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        (cls.folder / "first.yaml").write_text(EXPERIMENT, encoding="utf-8")
        cls.paths = {}
        for name, words in RUNS.items():
            done = subprocess.run([PROGRAM, "run", "first.yaml", f"name={name}", *words, "--quiet", "--threads", "1"], cwd=cls.folder,
                                  capture_output=True, text=True)
            assert done.returncode == (5 if name == "diverged" else 0), done.stderr
            cls.paths[name], = (cls.folder / "runs" / name).rglob("results.h5")

    def assert_plot(self, group, signal, axes, logarithmic):
        """The attributes of NXdata say what to draw, and each axis is as long as the signal is along it."""
        attributes = group.attrs
        self.assertEqual((attributes["NX_class"], attributes["signal"], list(attributes["axes"])), ("NXdata", signal, axes), group.name)
        self.assertEqual(group[signal].shape, tuple(len(group[axis]) for axis in axes))
        self.assertEqual(json.loads(attributes.get("SILX_style", "{}")).get("signal_scale_type"), "log" if logarithmic else None, group.name)
        if nxdata:
            drawn = nxdata.get_default(group)
            self.assertIsNotNone(drawn, group.name)
            self.assertTrue(drawn.is_valid, (group.name, drawn.issues))
            self.assertEqual((drawn.signal_dataset_name, drawn.axes_dataset_names), (signal, axes))
            np.testing.assert_array_equal(drawn.signal[()], group[signal][()])
            for name, axis in zip(axes, drawn.axes):
                np.testing.assert_array_equal(axis[()], group[name][()])
            self.assertEqual(drawn.plot_style.signal_scale_type, "log" if logarithmic else None)

    def assert_opens_with(self, path, signal):
        with h5py.File(path) as file:
            group = default_plot(file)
            self.assertEqual(group.name, "/epochs")
            self.assert_plot(group, signal, ["step"], True)
            self.assert_plot(file["steps"], "loss", ["step"], True)
            if nxdata:
                self.assertEqual(nxdata.get_default(file).group.name, "/epochs")
            return group[signal][()]

    def test_validation_loss(self):
        for name in ("plain", "layers"):
            self.assertTrue(np.isfinite(self.assert_opens_with(self.paths[name], "valid_loss")).all(), name)

    def test_runs_without_validation(self):
        """They show what they measure instead."""
        for name, signal in (("unvalidated", "train_loss"), ("tested", "test_loss")):
            self.assertTrue(np.isfinite(self.assert_opens_with(self.paths[name], signal)).all(), name)

    def test_diverged(self):
        self.assert_opens_with(self.paths["diverged"], "valid_loss")
        with h5py.File(self.paths["diverged"]) as file:
            self.assertEqual(file.attrs["state"], "diverged")

    def test_spectra_and_gradients(self):
        with h5py.File(self.paths["plain"]) as file:
            self.assertEqual(default_plot(file["spectrum"]).name, "/spectrum/recurrent")
            self.assert_plot(file["spectrum/recurrent"], "singular_values", ["snapshot", "k"], False)
            self.assertEqual(file["spectrum/recurrent/singular_values"].attrs["interpretation"], "spectrum")
            self.assert_plot(default_plot(file["gradient"]), "hidden_grad_norm", ["snapshot", "t"], True)
            self.assertNotIn("NX_class", file["orthogonality/recurrent"].attrs)

    def test_layers(self):
        """Each has its own, and the group above shows the first."""
        with h5py.File(self.paths["layers"]) as file:
            self.assertEqual(default_plot(file["gradient"]).name, "/gradient/layers_0")
            self.assertEqual(default_plot(file["spectrum"]).name, "/spectrum/layers_0_recurrent")
            for layer in (0, 1):
                self.assert_plot(file[f"gradient/layers_{layer}"], "hidden_grad_norm", ["snapshot", "t"], True)
            maps = list(file["spectrum"])
            self.assertGreater(len(maps), 1)
            for name in maps:
                self.assert_plot(file["spectrum"][name], "singular_values", ["snapshot", "k"], False)

    def test_resumed_runs_of_older_versions(self):
        """Their files get the attributes with the first evaluation."""
        for version in sorted(FIXTURES.glob("version_*.tar.gz")):
            run = self.folder / version.name
            shutil.unpack_archive(version, run)
            with h5py.File(run / "results.h5") as file:
                self.assertNotIn("default", file.attrs)
            subprocess.run([PROGRAM, "resume", run, "--allow-change", "all", "--quiet"], check=True, capture_output=True)
            self.assertEqual(len(self.assert_opens_with(run / "results.h5", "valid_loss")), 10, version.name)
            with h5py.File(run / "results.h5") as file:
                self.assert_plot(default_plot(file["spectrum"]), "singular_values", ["snapshot", "k"], False)

    def test_resumed_runs_show_what_they_measure_now(self):
        folder = self.folder / "changed"
        words = [PROGRAM, "run", self.folder / "first.yaml", *WITHOUT_VALIDATION, "--until", "5", "--quiet", "--output", folder]
        self.assertEqual(subprocess.run(words, capture_output=True).returncode, 75)
        path, = folder.rglob("results.h5")
        self.assert_opens_with(path, "train_loss")
        subprocess.run([PROGRAM, "resume", path.parent, "task.validation_sequences=20", "--allow-change", "all", "--quiet"], check=True, capture_output=True)
        self.assertEqual(np.isfinite(self.assert_opens_with(path, "valid_loss")).tolist(), [False, True])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
