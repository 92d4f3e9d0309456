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

    def weighted(self, run, name, **weights):
        """A run of the same experiment whose network has these numbers."""
        data = (run / "checkpoints/best.h5").read_bytes()
        pathlib.Path("own.h5").write_bytes(data[512:])  # without its checksum
        with h5py.File("own.h5", "r+") as file:
            for block, value in weights.items():
                file[f"weights/{block.replace('__', '.')}"][...] = value
        stiefel("run", run / "config.yaml", f"name={name}", "model.init_file=own.h5", "optimizer={plugin: sgd, rate: 1e-30}", "--quiet")
        return next(pathlib.Path("runs", name).iterdir())

    def test_memory(self):
        """A delay line of n units remembers n inputs, and has the Fisher memory of its definition; a normal map has 1."""
        n = 20
        run = self.trained(f"{{cell: {{plugin: elman, hidden: {n}, activation: identity}}, recurrent: dense}}")
        run = self.weighted(run, "line", recurrent__W=np.eye(n, k=-1), input__weight=np.eye(n)[:, :1] * [1, 0], input__bias=0)
        found = self.analysed(run, "--memory")
        memory = np.array(found["layers"][0]["memory"])
        self.assertEqual(memory.shape, (2, 2 * n))
        np.testing.assert_allclose(memory, np.arange(2 * n) < [[n], [0]], atol=5e-3)
        self.assertAlmostEqual(found["layers"][0]["memory_capacity"], memory.sum(), 9)
        self.assertAlmostEqual(memory.sum(), n, delta=0.1)
        for gain in ("0.9", "0.99"):
            W = float(gain) * np.eye(n, k=-1)
            powers = [np.linalg.matrix_power(W, k) for k in range(n)]
            C = sum(P @ P.T for P in powers)
            J = sum(P.T @ np.linalg.inv(C) @ P for P in powers)
            self.assertAlmostEqual(found["maps"][0]["fisher_memory"][gain], np.linalg.eigvalsh(J)[-1], 9)
        normal = self.trained(f"{{cell: {{plugin: elman, hidden: {n}, activation: identity}}, recurrent: {{plugin: householder, reflections: 4}}}}", name="normal")
        self.assertAlmostEqual(self.analysed(normal)["maps"][0]["fisher_memory"]["0.99"], 1, 6)
        cycle = self.weighted(run, "cycle", recurrent__W=0.9 * np.roll(np.eye(n), 1, axis=0), input__weight=np.eye(n)[:, :1] * [1, 0])
        memory = np.array(self.analysed(cycle, "--memory")["layers"][0]["memory"])
        self.assertGreater(memory.sum(), 0.97 * n)
        np.testing.assert_allclose(memory[1], 0, atol=5e-3)

    def test_fixed_points(self):
        """tanh(2h) + 0 has three fixed points in each of three units, 27 together, of known stability, in every layer of a stack."""
        x = 0.957504024079  # = tanh(2x)
        driven, _, _ = self.driven(3, 1, 200)
        run = self.weighted(driven, "bistable", recurrent__W=2 * np.eye(3), input__weight=[[1, 0], [0, 1], [1, -1]], input__bias=0)
        found = self.analysed(run, "--fixed-points", 600)["fixed_points"]
        self.assertEqual(sum(point["starts"] for point in found["points"]) + found["slow"] + found["moving"], 600)
        points = np.array([point["state"] for point in found["points"]])
        np.testing.assert_allclose(np.minimum(np.abs(points), np.abs(np.abs(points) - x)), 0, atol=1e-8)
        self.assertEqual(len(points), len(np.unique(np.round(points, 3), axis=0)))
        for point, state in zip(found["points"], points):
            slopes = 2 * (1 - state**2)
            self.assertEqual(point["unstable"], (slopes > 1).sum())
            np.testing.assert_allclose([re for re, _ in point["eigenvalues"]], np.sort(slopes)[::-1], atol=1e-6)
        self.assertGreaterEqual(len(points), 20)
        held = self.analysed(run, "--fixed-points", 50, "--input", "2,0.5")["fixed_points"]["points"]
        for point in held:
            state = np.array(point["state"])
            np.testing.assert_allclose(np.tanh(2 * state + [2, 0.5, 1.5]), state, atol=1e-9)
        with h5py.File(run / "analysis.h5") as file:
            self.assertEqual(file["fixed_points/eigenvalues"].shape, (len(held), 3, 2))
            np.testing.assert_array_equal(file["fixed_points/states"][()], [point["state"] for point in held])

        lstm = "{cell: {plugin: lstm, hidden: 2}, recurrent: dense}"
        layer = "{cell: {plugin: elman, hidden: 3, activation: tanh}, recurrent: dense}"
        stack = self.trained(f"{{layers: [{layer}, {lstm}]}}", name="stack")
        for point in self.analysed(stack, "--fixed-points", 20)["fixed_points"]["points"]:
            self.assertEqual((len(point["state"]), len(point["eigenvalues"])), (7, 7))
        self.assertIn("the task has 2 inputs, got 3", stiefel("analyse", run, "--fixed-points", 5, "--input", "1,2,3", code=2))
        self.assertIn("'x' is not a number", stiefel("analyse", run, "--fixed-points", 5, "--input", "1,x", code=2))

    def test_classes(self):
        """Z3 by rotations: exact ones keep the classes apart; a wrong angle turns all means together."""
        task = "{plugin: group_word, group: Z3, length: 6, test_sequences: 100}"
        run = self.trained("{cell: {plugin: reflections, hidden: 2, reflections: 2, beta: '2'}, initial_state: {kind: learned}}", task)
        found = {}
        for name, wrong in (("exact", 1), ("wrong", 1.01)):
            weight = []
            for symbol in range(3):  # two reflections turn by twice the angle between them
                angle = np.pi / 3 * wrong * symbol
                weight.append([1, 0, np.cos(angle), np.sin(angle)])
            tracker = self.weighted(run, name, input__weight=np.array(weight).T, input__bias=0, initial_state=[[1], [0]])
            found[name] = self.analysed(tracker, "task.length=96", "--sequences", 1, "--classes", 100)["distinguishability"]
            self.assertEqual((found[name]["sequences"], found[name]["reference_step"]), (100, 5))
        for seen in ("hidden", "read"):  # a readout of rank 2 sees all of two states
            exact, wrong = (found[name][seen] for name in ("exact", "wrong"))
            self.assertEqual(len(exact["spread"]), 96)
            self.assertAlmostEqual(exact["separation"], 3**0.5, 6)
            self.assertLess(max(exact["spread"] + exact["drift"]), 1e-6)
            self.assertGreater(wrong["drift"][95], 10 * wrong["drift"][6])
            self.assertGreater(wrong["drift"][95], 0.3)
        self.assertIn("a class at every step", stiefel("analyse", self.trained("{cell: {plugin: elman, hidden: 4}, recurrent: dense}"), "--classes", 5, code=2))

    def test_recorded(self):
        """record.analysis has at each evaluation what `analyse` finds of that network along the same sequence."""
        run = self.trained("{layers: [{cell: {plugin: elman, hidden: 5}, recurrent: scaled_cayley}, {cell: {plugin: gru, hidden: 4}, recurrent: dense}]}",
                           name="plain")
        stiefel("run", run / "config.yaml", "name=recorded", "train.steps=2", "train.select=lyapunov_max", "record.analysis=[lyapunov]", "record.lengths=[30]", "--quiet")
        run = next(pathlib.Path("runs/recorded").iterdir())
        found = self.analysed(run, "--split", "validation", "--sequences", 1, "--last")
        exponents = np.sort(np.concatenate([layer["exponents"][0] for layer in found["layers"]]))[::-1]
        with h5py.File(run / "results.h5") as file:
            names = ("lyapunov_max", "lyapunov_median", "lyapunov_min")
            np.testing.assert_allclose([file[f"epochs/valid_{name}"][-1] for name in names], exponents[[0, 4, -1]], atol=1e-9)
            longer = self.analysed(run, "task.length=30", "--split", "validation", "--sequences", 1, "--last")
            self.assertAlmostEqual(file["epochs/valid_lyapunov_max_by_length"][-1, 0], max(layer["exponents"][0][0] for layer in longer["layers"]), 9)
        said = stiefel("run", run / "config.yaml", "name=both", "model={cell: {plugin: elman, hidden: 4}, recurrent: dense, bidirectional: true}", "optimizer={plugin: sgd, rate: 0.1}", "train.select=loss", code=2)
        self.assertIn("record.analysis: a bidirectional network has no state", said)

    def test_refusals(self):
        both = self.trained("{cell: {plugin: elman, hidden: 4}, recurrent: {plugin: householder, reflections: 2}, bidirectional: true}", name="both")
        self.assertIn("bidirectional", stiefel("analyse", both, code=2))
        run = self.trained("{cell: {plugin: elman, hidden: 4}, recurrent: {plugin: householder, reflections: 2}}")
        self.assertIn("a sequence of 20 steps has none left after --burn-in 20", stiefel("analyse", run, "--burn-in", 20, code=2))
        self.assertIn("only task.* can be changed", stiefel("analyse", run, "train.batch=3", code=2))
        words = self.trained("{cell: {plugin: elman, hidden: 4}, recurrent: dense}", "{plugin: group_word, length: 20}", name="words")
        self.assertIn("--memory needs a task whose inputs are numbers", stiefel("analyse", words, "--memory", code=2))
        self.assertIn("one symbol from 0 to 5", stiefel("analyse", words, "--fixed-points", 3, "--input", "6", code=2))
        self.assertIn("--split must be", stiefel("analyse", run, "--split", "all", code=2))


if __name__ == "__main__":
    unittest.main()
