#!/usr/bin/python3
"""The cell `reflections`: golden numbers, and a network whose weights are set by hand to track the group S5.

usage: reflections_test.py PROGRAM
"""
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())


def fill(first, *shape):
    """sin((first + k + 1)^1.5) for k = 0, 1, …, row by row."""
    return np.sin((first + 1.0 + np.arange(np.prod(shape))) ** 1.5).reshape(shape)


def reflections_of(permutation):
    """Vectors k_1, … whose reflections, one after another, move entry i of a vector to permutation[i]; 0 in place of some."""
    n, left, found = len(permutation), list(permutation), []
    for i in range(n):
        while left[i] != i:
            k = np.zeros(n)
            k[i], k[left[i]] = 1, -1
            j = left[i]
            left = [j if x == i else i if x == j else x for x in left]
            found.append(k)
    return found[::-1] + [np.zeros(n)] * (n - 1 - len(found))


class Reflections(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)

    def stiefel(self, *words):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def untrained(self, task, cell, arrays, scalar):
        """The folder of a run that leaves the arrays as they are, all but for one step of rate 1e-30."""
        for name, values in arrays.items():
            np.save(self.folder / f"{name}.npy", values)
        given = lambda name: {"init": "file", "file": f"{name}.npy"}
        model = {"cell": {"plugin": "reflections", **cell}, "input": {**given("V"), "bias": False},
                 "initial_state": {"kind": "learned", **given("start")}, "readout": given("Y")}
        experiment = {"name": "hand", "scalar": scalar, "task": task, "model": model, "optimizer": {"plugin": "sgd", "rate": 1e-30},
                      "train": {"batch": 1, "steps": 1, "evaluate_every": 1}, "record": {"loss": 1}}
        (self.folder / "hand.yaml").write_text(json.dumps(experiment))
        self.stiefel("run", "hand.yaml", "--quiet")
        return max((self.folder / "runs/hand").iterdir(), key=lambda path: path.stat().st_mtime)

    def test_golden(self):
        """Σ_t ⟨G_t, h_t⟩ of a NumPy program of its own that works in the vectors k, b, u and h₀."""
        T, r, n = 4, 3, 5
        k, b, u, start, G = fill(0, T, r, n), fill(90, T, r), fill(150, T, n), fill(200, n), fill(300, T, n)
        rows = ["a,x0,x1,x2,x3,y"] + [f"{s},{','.join('1' if i == t else '0' for i in range(T))},0" for s in "ab" for t in range(T)]
        (self.folder / "data.csv").write_text("\n".join(rows) + "\n")
        (self.folder / "new.csv").write_text("\n".join(rows[:1 + T]) + "\n")
        for tanh, fixed, wanted in ((False, False, 3.639661500404), (False, True, 3.987525358461), (True, False, 1.845535881991),
                                    (True, True, 1.799862685482)):
            parts = [k.reshape(T, -1), *([] if fixed else [b]), u]
            run = self.untrained({"plugin": "sequence_csv", "train": "data.csv", "test": "data.csv", "sequence": "a", "targets": ["y"]},
                                 {"hidden": n, "reflections": r, "beta": "2" if fixed else "input", "additive": True,
                                  "nonlinearity": "tanh" if tanh else "identity"},
                                 {"V": np.concatenate(parts, axis=1).T, "start": start, "Y": np.zeros((1, n))}, "float64")
            told = self.stiefel("predict", run, "--last", "--input", "new.csv", "--states", "--every-step").splitlines()
            names = told[0].split(",")
            states = np.array([[float(x) for name, x in zip(names, line.split(",")) if name.startswith("state")] for line in told[1:]])
            self.assertAlmostEqual(float((G * states).sum()), wanted, places=11)

    def test_tracks_s5(self):
        """Four reflections a symbol track S5 exactly for 20,000 steps, in both number types."""
        group = sorted(itertools.permutations(range(5)))
        V = np.array([np.concatenate(reflections_of(g)) for g in group]).T
        start = np.arange(5.0) - 2
        Y = np.zeros((120, 5))
        for number, g in enumerate(group):
            Y[number, list(g)] = start
        for scalar in ("float32", "float64"):
            run = self.untrained({"plugin": "group_word", "group": "S5", "length": 20000, "validation_sequences": 0, "test_sequences": 2},
                                 {"hidden": 5, "reflections": 4, "beta": "2"}, {"V": V, "start": start, "Y": Y}, scalar)
            found = json.loads(self.stiefel("evaluate", run, "--last", "--json"))["values"]
            self.assertEqual((found["accuracy"], found["sequence_accuracy"]), (1, 1))


if __name__ == "__main__":
    unittest.main()
