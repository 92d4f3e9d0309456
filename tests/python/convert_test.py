#!/usr/bin/python3
"""Tables and arrays of other formats become what sequence_csv reads.

usage: convert_test.py PYTHON_FOLDER STIEFEL [TEST...]
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PACKAGE, PROGRAM = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
try:
    import h5py
    import numpy as np
    import pandas as pd
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


class Converted(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)

    def convert(self, *words, code=0):
        done = subprocess.run([sys.executable, "-m", "stiefel.convert", *words], capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "PYTHONPATH": PACKAGE})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr if code else done.stdout

    def write(self, *task):
        (self.folder / "own.yaml").write_text(
            f"name: own\ntask: {{plugin: sequence_csv, {', '.join(task)}}}\nmodel: {{cell: {{plugin: elman, hidden: 2, activation: tanh}}, recurrent: dense}}\n"
            "optimizer: {plugin: adam, rate: 0.01}\ntrain: {batch: 6, steps: 10, evaluate_every: 10}\n")

    def dry(self, *task, code=0):
        """What a dry run prints of a task."""
        self.write(*task)
        done = subprocess.run([PROGRAM, "run", "own.yaml", "--dry-run"], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr if code else done.stdout

    def trained(self, *task):
        """The losses of a short training."""
        self.write(*task)
        done = subprocess.run([PROGRAM, "run", "own.yaml", "--quiet"], capture_output=True, text=True, check=True, cwd=self.folder)
        with h5py.File(self.folder / done.stdout.split()[-1]) as results:
            return list(results["epochs/valid_loss"])

    def test_arrays(self):
        rng = np.random.default_rng(1)
        x, y, lengths = rng.normal(size=(30, 5, 2)).astype(np.float32), rng.normal(size=30), rng.integers(2, 6, size=30)
        with h5py.File(self.folder / "data.h5", "w") as file:
            file.create_dataset("day/x", data=x, chunks=True, compression="gzip")
            file["level"], file["lengths"], file["text"] = y, lengths.astype(">i4"), "words"
            file["pairs"], file["nowhere"] = y * 1j, h5py.SoftLink("/none")
            file["rows"] = np.zeros(30, dtype=[("a", "f8"), ("b", "i4")])
            file["day/rising"], file["half"] = y > 0, y.astype("f2")
        np.savez(self.folder / "data.npz", **{"day/x": x, "level": y, "lengths": lengths.astype("<i8")})
        losses = [self.trained(f"data: {{file: {name}, inputs: day/x, targets: level}}") for name in ("data.h5", "data.npz")]
        self.assertEqual(*losses)
        np.savez(self.folder / "data.npz", **{"day/x": x, "day/rising": y > 0, "lengths": lengths})
        classes = [self.trained(f"data: {{file: {name}, inputs: day/x, targets: day/rising}}, kind: classification") for name in ("data.h5", "data.npz")]
        self.assertEqual(*classes)
        np.savez(self.folder / "data.npz", inputs=x, targets=y.astype("f2"), lengths=lengths)
        self.assertEqual(self.trained("data: {file: data.h5, inputs: day/x, targets: half}"), self.trained("data: data.npz"))
        for names, said in (("inputs: x, targets: level", "there is no array x; it has day/rising, day/x, half, lengths, level, pairs, rows, text"),
                            ("inputs: day, targets: level", "there is no array day; it has day/rising, day/x, "),
                            ("inputs: nowhere, targets: level", "data.h5:/nowhere is a link to another place or file"),
                            ("inputs: text, targets: level", "data.h5:/text holds text, not numbers"),
                            ("inputs: day/x, targets: pairs", "data.h5:/pairs holds complex numbers"),
                            ("inputs: day/x, targets: rows", "data.h5:/rows holds a type that stiefel does not write"),
                            ("inputs: level, targets: level", "data.h5: level: an array of 30; inputs must be N × T × d or N × T")):
            self.assertIn(said, self.dry(f"data: {{file: data.h5, {names}}}", code=4))
        whole = (self.folder / "data.h5").read_bytes()
        (self.folder / "cut.h5").write_bytes(whole[:len(whole) // 2])
        self.assertRegex(self.dry("data: cut.h5", code=4), r"task: cut.h5 is damaged: [^;\n]*\n")
        (self.folder / "text.hdf5").write_text("a,b\n1,2\n")
        self.assertRegex(self.dry("data: text.hdf5", code=4), r"task: text.hdf5 is damaged: [^;\n]*\n")

    def test_matlab(self):
        try:
            import scipy.io
        except ImportError as error:
            self.skipTest(str(error))
        rng = np.random.default_rng(1)
        x, y = rng.normal(size=(30, 5, 2)), rng.normal(size=30)
        scipy.io.savemat(self.folder / "old.mat", {"inputs": x, "targets": y, "name": "words"})
        with h5py.File(self.folder / "new.mat", "w") as file:  # as version 7.3 has them
            file["inputs"], file["targets"] = x.T, y[:, None]
        for name in ("old", "new"):
            self.convert(f"{name}.mat", f"{name}.npz")
            with np.load(self.folder / f"{name}.npz") as arrays:
                self.assertEqual(sorted(arrays), ["inputs", "targets"])
                self.assertTrue(np.array_equal(arrays["inputs"], x) and np.array_equal(arrays["targets"], y), name)
            self.assertIn("24 train, 3 validation, 3 test targets", self.dry(f"data: {name}.npz"))

    def test_tables(self):
        table = pd.DataFrame({"name": np.repeat(["a", "b", "c", "d"], 3), "x": [0.1, None] * 6, "up": [True, False, None] * 4,
                              "y": pd.Categorical(["one", "two"] * 6)}).astype({"up": "boolean"})
        for ending, package in ((".parquet", "pyarrow"), (".feather", "pyarrow"), (".xlsx", "openpyxl")):
            source = self.folder / f"table{ending}"
            try:
                __import__(package)
            except ImportError:
                source.touch()
                said = self.convert(source.name, "table.csv", code=1)
                self.assertEqual(said, f"stiefel.convert: {ending} files need pandas and {package}: pip install pandas {package}\n")
                continue
            if ending == ".xlsx":
                table.to_excel(source, index=False)
            else:
                getattr(table, f"to_{ending[1:]}")(source)
            self.assertEqual(self.convert(source.name, "table.csv.gz"), "table.csv.gz: 12 rows of name, x, up, y\n")
            again = pd.read_csv(self.folder / "table.csv.gz")
            wanted = table.astype({"up": "Float64"}).astype({"up": float, "name": object, "y": object})
            pd.testing.assert_frame_equal(again.astype({"up": float, "name": object, "y": object}), wanted, check_exact=True)
            said = self.dry("data: table.csv.gz", "sequence: name", "targets: [y]", "kind: classification", "missing: mask", "readout: every",
                            "validation_fraction: 0.25", "test_fraction: 0.25")
            self.assertIn("6 train, 3 validation, 3 test targets", said)
            said = self.dry(f"data: {source.name}", code=2)
            self.assertIn(f"got {source.name}; convert it: python3 -m stiefel.convert {source.name} table.csv", said)
            if ending == ".parquet":
                table.set_index("name").to_parquet(source)
                self.assertIn(" rows of name, x, up, y", self.convert(source.name, "table.csv"))
                table.assign(x=[[1, 2]] * 12).to_parquet(source)
                self.assertIn("the column x holds lists", self.convert(source.name, "table.csv", code=1))
                source.write_bytes(source.read_bytes()[:100])
                self.assertIn("stiefel.convert: ", self.convert(source.name, "table.csv", code=1))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
