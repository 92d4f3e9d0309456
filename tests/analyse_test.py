#!/usr/bin/python3
"""`stiefel analyse`: exponents with known values, and those that NumPy computes from the network's own weights.

usage: analyse_test.py PROGRAM
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

PROGRAM = os.path.abspath(sys.argv.pop(1))
MAPS = ("householder", "scaled_cayley", "lie_exponential", "givens")

WITHOUT_MAP = ("lru", "mingru", "reflections", "delta_product")  # cells


def stiefel(*words, code=0):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, f"stiefel {words} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout if code == 0 else done.stderr


class Analyse(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        os.chdir(scratch.name)
        self.addCleanup(os.chdir, "/")

    def trained(self, model, task="{plugin: adding, length: 20}", steps=1, name="own"):
        """The folder of a run in double precision."""
        pathlib.Path("own.yaml").write_text(
            f"name: {name}\nscalar: float64\ntask: {task}\nmodel: {model}\noptimizer: {{plugin: adam, rate: 1e-9}}\n"
            f"train: {{batch: 4, steps: {steps}, evaluate_every: {steps}}}\n", encoding="utf-8")
        stiefel("run", "own.yaml", "--quiet")
        return max(pathlib.Path("runs", name).iterdir(), key=os.path.getmtime)

    def analysed(self, run, *words):
        return json.loads(stiefel("analyse", run, "--json", *words))

    def test_orthogonal(self):
        """A linear network with an orthogonal map neither expands nor contracts."""
        for plugin in MAPS:
            with self.subTest(plugin):
                run = self.trained(f"{{cell: {{plugin: elman, hidden: 16, activation: identity}}, recurrent: {{plugin: {plugin}}}}}", name=plugin)
                found = self.analysed(run)
                exponents = np.array(found["layers"][0]["exponents"])
                self.assertEqual(exponents.shape, (4, found["layers"][0]["states"]))
                self.assertLess(np.abs(exponents).max(), 1e-12)
                self.assertLess(found["maps"][0]["departure_from_normality"], 1e-6)

    def test_lru(self):
        """Its exponents are log|λ|, each twice: the states are complex."""
        run = self.trained("{cell: {plugin: lru, hidden: 6}}")
        with h5py.File(run / "checkpoints/best.h5") as file:
            modulus = np.exp(-np.exp(file["weights/nu"][()].ravel()))
        found = self.analysed(run, "--sequences", 1)
        expected = np.sort(np.repeat(np.log(modulus), 2))[::-1]
        np.testing.assert_allclose(found["layers"][0]["exponents"][0], expected, rtol=0, atol=1e-10)

    def driven(self, hidden, gain, steps, activation="tanh"):
        """A run of an Elman network with a Gaussian W of this gain, its weights, and the inputs of its test sequence."""
        inputs = np.random.default_rng(3).normal(size=(steps, 2))
        rows = [f"{a!r},{b!r},0\n" for a, b in inputs.tolist()]
        for name, used in (("train", rows[:20]), ("valid", rows[20:40]), ("test", rows)):  # long gradients of chaos diverge
            pathlib.Path(f"{name}.csv").write_text("x,y,z\n" + "".join(used), encoding="utf-8")
        run = self.trained(f"{{cell: {{plugin: elman, hidden: {hidden}, activation: {activation}}}, recurrent: {{plugin: dense, init: normal, scale: {gain / hidden**0.5}}}}}",
                           "{plugin: sequence_csv, train: train.csv, validation: valid.csv, test: test.csv, targets: [z], kind: regression}", name="driven")
        with h5py.File(run / "checkpoints/best.h5") as file:
            return run, {name: file[f"weights/{name}"][()] for name in file["weights"]}, inputs

    def test_numpy(self):
        """The same numbers as from the weights, by the definition: QR of transposed Jacobians from the last step to the first."""
        n, steps, burn_in = 12, 60, 6
        run, weights, inputs = self.driven(n, 1.2, steps)
        W, V, b = (weights[name] for name in ("recurrent.W", "input.weight", "input.bias"))
        h, jacobians, states = np.zeros(n), [], []
        for x in inputs:
            h = np.tanh(W @ h + V @ x + b.ravel())
            states.append(h)
            jacobians.append((1 - h * h)[:, None] * W)
        Q, logs = np.eye(n), []
        for J in reversed(jacobians):
            Q, R = np.linalg.qr(J.T @ Q)
            logs.append(np.log(np.abs(np.diag(R))))
        expected = np.sort(np.mean(logs[burn_in:], axis=0))[::-1]
        layer = self.analysed(run)["layers"][0]
        np.testing.assert_allclose(layer["exponents"][0], expected, rtol=0, atol=1e-9)
        np.testing.assert_allclose(self.analysed(run, "--every", 3)["layers"][0]["exponents"][0], expected, rtol=0, atol=1e-9)
        np.testing.assert_allclose(self.analysed(run, "--exponents", 4)["layers"][0]["exponents"][0], expected[:4], rtol=0, atol=1e-9)
        for step, values in zip(layer["jacobian_steps"], layer["jacobian_singular_values"], strict=True):
            np.testing.assert_allclose(values, np.linalg.svd(jacobians[step], compute_uv=False), rtol=0, atol=1e-12)
        C = np.cov(np.array(states).T, bias=True)
        self.assertAlmostEqual(layer["participation_ratio"], np.trace(C)**2 / np.trace(C @ C), 9)
        sigma = np.sqrt(np.linalg.eigvalsh(C))
        p = sigma / sigma.sum()
        self.assertAlmostEqual(layer["effective_rank"], np.exp(-(p * np.log(p)).sum()), 9)
        sums = np.cumsum(expected)
        k = int((sums >= 0).sum())
        self.assertAlmostEqual(layer["kaplan_yorke_dimension"], k + (sums[k - 1] if k else 0) / -expected[k], 6)
        departure = np.sqrt((W**2).sum() - (np.abs(np.linalg.eigvals(W))**2).sum())
        self.assertAlmostEqual(self.analysed(run)["maps"][0]["departure_from_normality"], departure, 6)
        with h5py.File(run / "analysis.h5") as file:
            np.testing.assert_array_equal(file["layers/0/exponents"][()], layer["exponents"])

    def test_growth(self):
        """A small perturbation grows by the largest exponent."""
        n, steps = 50, 10000
        run, weights, inputs = self.driven(n, 2.5, steps)
        W, V, b = (weights[name] for name in ("recurrent.W", "input.weight", "input.bias"))
        h, size, growth = np.zeros(n), 1e-7, []
        other = h + size * np.random.default_rng(0).normal(size=n) / n**0.5
        for x in inputs:
            h, other = (np.tanh(W @ s + V @ x + b.ravel()) for s in (h, other))
            distance = np.linalg.norm(other - h)
            growth.append(np.log(distance / size))
            other = h + (other - h) * size / distance
        largest = self.analysed(run, "--exponents", 1, "--burn-in", 100)["layers"][0]["exponents"][0][0]
        self.assertGreater(largest, 0.1)
        self.assertAlmostEqual(largest / np.mean(growth[100:-100]), 1, delta=0.01)

    def test_every_cell(self):
        """The mean of log|det J|, from the singular values at every step, is the sum of the exponents, in all layers."""
        cells = [entry["name"] for entry in json.loads(stiefel("list", "--json")) if entry["role"] == "cell"]
        self.assertGreater(len(cells), 8)
        compared = set()
        for cell in cells:
            with self.subTest(cell):
                layer = f"{{cell: {{plugin: {cell}, hidden: 4}}" + ("}" if cell in WITHOUT_MAP else ", recurrent: {plugin: dense, init: normal, scale: 0.4}}")
                if cell == "slstm":  # from 0, its first step depends on h alone
                    layer = layer[:-1] + ", initial_state: {kind: learned, init: normal}}"
                found = self.analysed(self.trained(f"{{layers: [{layer}, {layer}]}}", "{plugin: adding, length: 8}", name=cell), "--sequences", 1, "--burn-in", 0)
                self.assertEqual(len(found["layers"]), 2)
                for one in found["layers"]:
                    self.assertEqual(one["jacobian_steps"], list(range(8)))
                    with np.errstate(divide="ignore"):
                        volume = np.log(one["jacobian_singular_values"]).sum() / 8
                    if np.isfinite(volume) and volume > -60:
                        compared.add(cell)
                        self.assertAlmostEqual(sum(one["exponents"][0]), volume, delta=1e-6 * abs(volume) + 1e-6)
        self.assertEqual(set(cells) - compared, set())

    def test_refusals(self):
        both = self.trained("{cell: {plugin: elman, hidden: 4}, recurrent: {plugin: householder, reflections: 2}, bidirectional: true}", name="both")
        self.assertIn("bidirectional", stiefel("analyse", both, code=2))
        run = self.trained("{cell: {plugin: elman, hidden: 4}, recurrent: {plugin: householder, reflections: 2}}")
        self.assertIn("a sequence of 20 steps has none left after --burn-in 20", stiefel("analyse", run, "--burn-in", 20, code=2))
        self.assertIn("--split must be", stiefel("analyse", run, "--split", "all", code=2))


if __name__ == "__main__":
    unittest.main()
