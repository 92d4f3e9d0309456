#!/usr/bin/python3
"""Cells: golden numbers of NumPy programs of their own, and networks whose weights are set by hand to track the group S5.

usage: cells_test.py PROGRAM
"""
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())


def fill(first, *shape):
    """sin((first + k + 1)^1.5) for k = 0, 1, …, row by row."""
    return np.sin((first + 1.0 + np.arange(np.prod(shape))) ** 1.5).reshape(shape)


def orthogonal(first, n):
    """The Cayley transform of a skew-symmetric matrix."""
    A = fill(first, n, n)
    A = A - A.T
    return np.linalg.solve(np.eye(n) + A, np.eye(n) - A)


def by_step(*parts):
    """V that turns step t, given as column t of the unit matrix, into entry t of each part."""
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1).T


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


class Cells(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)

    def stiefel(self, *words, code=0):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr if code else done.stdout

    def untrained(self, task, cell, weights, model=None, scalar="float64"):
        """The folder of a run that leaves the weights as they are, all but for one step of rate 1e-30."""
        with h5py.File(self.folder / "weights.h5", "w") as file:
            for name, values in weights.items():
                file[f"weights/{name}"] = (values if values.ndim == 2 else values[:, None]).astype(scalar)
        model = {"cell": cell, "input": {"bias": "input.bias" in weights}, "init_file": "weights.h5", "init_blocks": list(weights),
                 "initial_state": {"kind": "learned" if "initial_state" in weights else "zero"}, "readout": {"bias": False}, **(model or {})}
        experiment = {"name": "hand", "scalar": scalar, "task": task, "model": model, "optimizer": {"plugin": "sgd", "rate": 1e-30},
                      "train": {"batch": 1, "steps": 1, "evaluate_every": 1}, "record": {"loss": 1}}
        (self.folder / "hand.yaml").write_text(json.dumps(experiment))
        self.stiefel("run", "hand.yaml", "--quiet")
        return max((self.folder / "runs/hand").iterdir(), key=lambda path: path.stat().st_mtime)

    def outputs(self, inputs, cell, weights, n, model=None):
        """h of each step (sequences × steps × n) in reply to inputs (sequences × steps × d), which the readout passes on."""
        sequences, steps, d = inputs.shape
        rows = [",".join(["s", *(f"x{i}" for i in range(d)), *(f"y{i}" for i in range(n))])]
        for s, t in itertools.product(range(sequences), range(steps)):
            rows.append(",".join([str(s), *map(repr, inputs[s, t].tolist()), *["0"] * n]))
        (self.folder / "data.csv").write_text("\n".join(rows) + "\n")
        run = self.untrained({"plugin": "sequence_csv", "train": "data.csv", "test": "data.csv", "sequence": "s", "targets": [f"y{i}" for i in range(n)],
                              "normalisation": "none"}, cell, {**weights, "readout.weight": np.eye(n)}, model)
        told = self.stiefel("predict", run, "--last", "--input", "data.csv", "--raw", "--every-step").splitlines()
        names = told[0].split(",")
        found = [[float(x) for name, x in zip(names, line.split(",")) if name.startswith("y")] for line in told[1:]]
        return np.reshape(found, (sequences, steps, n))

    def test_reflections(self):
        T, r, n = 4, 3, 5
        k, b, u, start, G = fill(0, T, r, n), fill(90, T, r), fill(150, T, n), fill(200, n), fill(300, T, n)
        for tanh, fixed, wanted in ((False, False, 3.639661500404), (False, True, 3.987525358461), (True, False, 1.845535881991),
                                    (True, True, 1.799862685482)):
            h = self.outputs(np.eye(T)[None], {"plugin": "reflections", "hidden": n, "reflections": r, "beta": "2" if fixed else "input", "additive": True,
                                               "nonlinearity": "tanh" if tanh else "identity"},
                             {"input.weight": by_step(k, *([] if fixed else [b]), u), "initial_state": start}, n)
            self.assertAlmostEqual(float((G * h[0]).sum()), wanted, places=11)

    def test_delta_product(self):
        T, key, n = 5, 4, 3
        for r, gate, wanted in ((1, False, -1.243314960874), (1, True, -0.956608804562), (3, False, -3.025384027167), (3, True, -2.260041752591)):
            parts = [fill(0, T, r, key), fill(99, T, r, n), 2 * fill(199, T, r), fill(299, T, key)] + [fill(399, T)] * gate
            weights = {"input.weight": by_step(*parts)} | ({"gate.log_rate": np.zeros(1), "gate.bias": np.zeros(1)} if gate else {})
            h = self.outputs(np.eye(T)[None], {"plugin": "delta_product", "hidden": n, "key_size": key, "reflections": r, "gate": gate, "key_activation": "identity"},
                             weights, n)
            self.assertAlmostEqual(float((fill(499, T, n) * h[0]).sum()), wanted, places=11)

    def test_asrnn(self):
        T, B, d, n = 4, 2, 3, 5
        weights = {"recurrent.transition.W": orthogonal(0, n), "recurrent.saturation.W": orthogonal(50, n), "input.weight": fill(100, n, d),
                   "input.bias": 0.1 * fill(120, n), "scale": 0.5 * fill(130, n)}
        h = self.outputs(fill(200, T, B, d).swapaxes(0, 1), {"plugin": "asrnn", "hidden": n, "epsilon": 0.01}, weights, n, {"recurrent": "dense"})
        self.assertAlmostEqual(float((fill(300, T, n, B) * h.transpose(1, 2, 0)).sum()), 5.155934292777, places=11)

    def test_slstm(self):
        T, B, d, n, heads = 5, 2, 3, 4, 2
        V, b, R = fill(0, 4, n, d), fill(60, 4, n), 0.7 * fill(90, 4, heads, 2, 2)  # gate, head, row
        weights = {"input.weight": V.reshape(4, heads, 2, d).swapaxes(0, 1).reshape(-1, d), "input.bias": b.reshape(4, heads, 2).swapaxes(0, 1).ravel()}
        weights |= {f"recurrent.{gate}_{head + 1}.W": R[g, head] for g, gate in enumerate(("input", "forget", "candidate", "output")) for head in range(heads)}
        for gate, wanted in (("sigmoid", 2.287943346762), ("exponential", 1.60309584593)):
            h = self.outputs(fill(200, T, B, d).swapaxes(0, 1), {"plugin": "slstm", "hidden": n, "heads": heads, "forget_gate": gate}, weights, n,
                             {"recurrent": "dense"})
            self.assertAlmostEqual(float((fill(300, T, n, B) * h.transpose(1, 2, 0)).sum()), wanted, places=11)

    def test_slstm_at_zero(self):
        """Gates that are 0 make log n = 0 after a step, which is not taken for a sequence that begins: c = tanh 1, n = 3/2."""
        weights = {"input.weight": np.array([[0.0], [0], [1], [0]]), **{f"recurrent.{gate}_1.W": np.zeros((1, 1)) for gate in ("input", "forget", "candidate", "output")}}
        h = self.outputs(np.array([[[0.0], [1]]]), {"plugin": "slstm", "hidden": 1}, weights, 1, {"recurrent": "dense"})
        np.testing.assert_allclose(h.ravel(), [0, np.tanh(1) / 3], rtol=1e-15)

    def test_refused(self):
        experiment = {"name": "wrong", "task": {"plugin": "adding", "length": 5}, "optimizer": "adam", "train": {"steps": 1, "evaluate_every": 1}}
        for cell, place, message in (("{plugin: delta_product, hidden: 6, heads: 4}", 15, "model.cell: delta_product needs `hidden`, 6, to be a multiple of `heads`, 4; "),
                                     ("{plugin: delta_product, hidden: 6, eigenvalues: [0, 2]}", 63, "model.cell.eigenvalues must be \\[0, 1\\] or \\[-1, 1\\]"),
                                     ("{plugin: slstm, hidden: 3, heads: 2}, recurrent: dense", 15, "model.cell: slstm needs `hidden`, 3, to be a multiple of `heads`, 2; "),
                                     ("{plugin: asrnn, hidden: 3, a: 1}, recurrent: dense", 45, "model.cell.a must not be above b")):
            (self.folder / "wrong.yaml").write_text(f"model: {{cell: {cell}}}\n" + "".join(f"{key}: {json.dumps(value)}\n" for key, value in experiment.items()))
            self.assertRegex(self.stiefel("validate", "wrong.yaml", code=2), f"^wrong.yaml:1:{place}: {message}")

    def test_tracks_s5(self):
        """Four reflections a symbol track S5 exactly for 20,000 steps, in both number types."""
        group = sorted(itertools.permutations(range(5)))
        keys = np.array([np.concatenate(reflections_of(g)) for g in group])
        start = np.arange(5.0) - 2
        moved = np.array([start[list(g)] for g in group])
        inverse = np.array([start[np.argsort(g)] for g in group])
        strong, query = np.full((120, 4), 40.0), np.tile(start, (120, 1))  # β = 2σ(40)
        # The matrix starts as I, and what is read is its product with the query, the same at each step.
        delta = {"input.weight": np.hstack([keys, 0 * keys, strong, query]).T, "initial_state": np.eye(5).ravel(), "readout.weight": moved}
        for cell, weights in (({"plugin": "reflections", "beta": "2"}, {"input.weight": keys.T, "initial_state": start, "readout.weight": inverse}),
                              ({"plugin": "delta_product", "key_size": 5, "key_activation": "identity"}, delta)):
            for scalar in ("float32", "float64"):
                with self.subTest(cell["plugin"], scalar=scalar):
                    run = self.untrained({"plugin": "group_word", "group": "S5", "length": 20000, "validation_sequences": 0, "test_sequences": 2},
                                         {**cell, "hidden": 5, "reflections": 4}, weights, scalar=scalar)
                    found = json.loads(self.stiefel("evaluate", run, "--last", "--json"))["values"]
                    self.assertEqual((found["accuracy"], found["sequence_accuracy"]), (1, 1))


if __name__ == "__main__":
    unittest.main()
