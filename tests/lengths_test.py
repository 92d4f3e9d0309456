#!/usr/bin/python3
"""Evaluations at other lengths (record.lengths), by step and of whole sequences: results.h5, selection, compare, Python, errors.

usage: lengths_test.py PROGRAM PYTHON_PACKAGE
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
sys.path.insert(0, sys.argv.pop(1))
import stiefel  # noqa: E402

EXPERIMENT = """
name: parity
task: {plugin: group_word, group: Z2, length: 8}
model: {cell: {plugin: elman, hidden: 16, activation: tanh}, recurrent: dense}
optimizer: {plugin: adam, rate: 0.01}
train: {batch: 64, steps: 300, evaluate_every: 100, select: sequence_accuracy_at_24}
record: {lengths: [8, 24, 16]}
"""


class Lengths(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        cls.folder = pathlib.Path(held.name)
        (cls.folder / "parity.yaml").write_text(EXPERIMENT)
        cls.said = cls.call("run", "parity.yaml").stdout
        cls.run_folder, = (cls.folder / "runs/parity").iterdir()
        with h5py.File(cls.run_folder / "results.h5") as file:
            cls.epochs = {name: item[()] for name, item in file["epochs"].items()}
            cls.final = {name: item[()] for name, item in file["final"].items()}
            cls.best = int(file["status"].attrs["best_step"]), float(file["status"].attrs["best_metric"])

    @classmethod
    def call(cls, *words, code=0):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, cwd=cls.folder)
        assert done.returncode == code, f"stiefel {words} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done

    def test_columns(self):
        self.assertEqual(list(self.epochs["length"]), [8, 24, 16])
        for name in ("loss", "accuracy", "sequence_accuracy"):
            by_length = self.epochs[f"valid_{name}_by_length"]
            self.assertEqual(by_length.shape, (3, 3))
            np.testing.assert_array_equal(by_length[:, 0], self.epochs[f"valid_{name}"])
        self.assertGreater(np.ptp(self.epochs["valid_loss_by_length"][-1]), 0)
        by_step = self.epochs["valid_accuracy_by_step"]
        self.assertEqual(by_step.shape, (3, 8))
        np.testing.assert_allclose(by_step.mean(axis=1), self.epochs["valid_accuracy"], rtol=1e-12)
        # A sequence without a wrong answer is right at its worst step, too.
        self.assertTrue((self.epochs["valid_sequence_accuracy"] <= by_step.min(axis=1) + 1e-12).all())
        self.assertRegex(self.said, r"test loss \S+ accuracy \S+ sequence_accuracy \S+, sequence_accuracy at 8 \S+, at 24 \S+, at 16 \S+ after 300")

    def test_evaluate_agrees(self):
        for column, length in enumerate((8, 24, 16)):
            found = json.loads(self.call("evaluate", self.run_folder, f"task.length={length}", "--json").stdout)["values"]
            for name in ("loss", "accuracy", "sequence_accuracy"):
                self.assertEqual(found[name], self.final[f"test_{name}_by_length"][0, column], (name, length))

    def test_selection(self):
        chosen = self.epochs["valid_sequence_accuracy_by_length"][:, 1]
        self.assertEqual(self.best, (100 * (1 + int(np.argmax(chosen))), chosen.max()))

    def test_compare(self):
        for words, name in ((["--at", 16], "valid_sequence_accuracy_at_16"), (["--at", 24, "--metric", "loss"], "valid_loss_at_24"),
                            (["--metric", "test_accuracy_at_8"], "test_accuracy_at_8"), ([], "valid_sequence_accuracy_at_24")):
            found = json.loads(self.call("compare", "runs", "--json", *words).stdout)
            self.assertEqual(found["metric"], name)
        self.assertEqual(found["groups"][0]["value"]["mean"], self.best[1])
        refused = self.call("compare", "runs", "--at", 32, code=2).stderr
        self.assertIn("--at: no run has recorded its metric at the length 32; an experiment names lengths in record.lengths", refused)

    def test_report(self):
        self.call("report", "runs", "--figures", "figures")
        row = self.best[0] // 100 - 1
        for name, axis in (("loss_by_length", "length"), ("accuracy_by_step", "t")):
            drawn = np.genfromtxt(self.folder / f"figures/valid_{name}.csv", delimiter=",", names=True, dtype=None, encoding=None)
            order = np.argsort(self.epochs[axis])
            x, y = (drawn[column] for column in drawn.dtype.names[1:3])
            np.testing.assert_allclose(x, self.epochs[axis][order])
            np.testing.assert_allclose(y, self.epochs[f"valid_{name}"][row][order], rtol=1e-5)

    def test_python(self):
        row = stiefel.runs(self.folder / "runs").iloc[0]
        self.assertEqual(row["valid_sequence_accuracy_at_24"], self.best[1])
        self.assertEqual(row["test_accuracy_at_16"], self.final["test_accuracy_by_length"][0, 2])
        self.assertEqual(row["test_loss"], self.final["test_loss"][0])
        read = stiefel.load(self.folder / "runs", "epochs")
        self.assertEqual(read["valid_accuracy_by_length"].sel(length=24).shape[-1], 3)

    def test_errors(self):
        for setting, said in (("record.lengths=[8,8]", "record.lengths must name each length once"),
                              ("record.lengths=[0]", "record.lengths: task.length must be from 1 to"),
                              ("record.lengths=[4,10000000000]", "record.lengths: task.length must be from 1 to 1000000000, got 10000000000"),
                              ("train.select=accuracy_at_9", '"accuracy_at_9" is not measured by the task group_word; it has loss, accuracy'),
                              ("task.group=D4", '"D4" is not a group: write Z5, S4, A5, or a product such as Z2xS3'),
                              ("task.group=S7", "S7 has more than 1000 elements"),
                              ("task.elements=[2]", "must be from 0 to 1 in Z2"),
                              ("task.min_length=9", "must be at most `length`")):
            refused = self.call("run", "parity.yaml", setting, code=2).stderr
            self.assertIn(said, refused)
        own = self.folder / "own.csv"
        own.write_text("id,x,y\na,1,2\nb,1,2\n")
        refused = self.call("run", "parity.yaml", "task={plugin: sequence_csv, train: own.csv, sequence: id, targets: [y]}", "train.select=loss", code=2).stderr
        self.assertIn("record.lengths: the task sequence_csv has no option `length`; remove this", refused)
        refused = self.call("resume", self.run_folder, "record.lengths=[8]", "train.select=loss", "train.steps=400", code=2).stderr
        self.assertIn("record.lengths", refused)
        self.assertIn("cannot become [8]", refused)


if __name__ == "__main__":
    unittest.main()
