#!/usr/bin/python3
"""`stiefel predict`, the equations in NumPy, the PyTorch module and its ONNX file agree on exported networks.

usage: exported_test.py PYTHON_FOLDER STIEFEL DEPLOY; without PyTorch or onnxruntime their part is skipped. DEPLOY is the document
"""
import concurrent.futures
import csv
import io
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

PACKAGE, PROGRAM, DOCUMENT = sys.argv[1], os.path.abspath(sys.argv[2]), pathlib.Path(sys.argv[3])
sys.path.insert(0, PACKAGE)
import exported
import stiefel

try:
    import stiefel.torch
    import torch
except ImportError:
    torch = None
try:
    import onnxruntime
except ImportError:
    onnxruntime = None

NETWORKS = [
    ("elman", "scaled_cayley"),
    ("elman, activation: {kind: modrelu, bias_init: uniform}", "unitary_householder, reflections: 4"),
    ("elman, activation: oplu, transition: outside", "lie_exponential"),
    ("elman, transition: residual, step: 0.3", "antisymmetric, gamma: 0.5"),
    ("elman, activation: relu, gain: 0.7", "scaled_cayley"),
    ("lstm", "dense, init: orthogonal"),
    ("lstm, peepholes: diagonal, peephole_init: normal", "householder, reflections: 4"),
    ("lstm, peepholes: output_full, forget_bias_fixed: true", "lie_exponential"),
    ("gru", "scaled_cayley"),
    ("gru, reset: after, update: new", "householder, reflections: 3"),
    ("gru", "dense, init: orthogonal"),
    ("goru", "scaled_cayley"),
    ("goru, activation: {kind: prelu, shared: false}", "householder, reflections: 2"),
    ("goru", "lie_exponential"),
    ("cornn", "dense, init: orthogonal"),
    ("cornn", "scaled_cayley"),
    ("cornn, step: 0.1, gamma: 1.3, epsilon: 2.1", "householder, reflections: 5"),
    ("lem", "dense, init: orthogonal"),
    ("lem, step: 0.7", "spectral_householder, left: 3, right: 3"),
    ("lem", "scaled_cayley"),
    ("lru, r_min: 0.5", None),
    ("mingru", None),
    ("mingru, candidate: positive", None),
    ("reflections, reflections: 3, additive: true", None),
    ("reflections, map: true, beta: '2', nonlinearity: tanh", "scaled_cayley"),
    ("delta_product, heads: 2, key_size: 3", None),
    ("delta_product, reflections: 3, gate: true, eigenvalues: [0, 1], key_activation: identity", None),
    ("asrnn, a: -0.5, b: 0.7", "scaled_cayley"),
    ("slstm", "dense, init: orthogonal"),
    ("slstm, heads: 2, forget_gate: exponential", "scaled_cayley"),
    ("lipschitz, step: 0.3", "symmetric_skew"),
    ("lipschitz, step: 0.3, scheme: rk2", "symmetric_skew, beta: 0.65, gamma: 0.1"),
    ("lipschitz, step: 0.2", "antisymmetric, gamma: 0.5"),
]
DEEP = [
    ("lstm", "dense, init: orthogonal", "layers: 2"),
    ("gru, reset: after", "scaled_cayley", "layers: 2, bidirectional: true"),
    ("lru", None, "layers: 3, norm: layer, gate: glu, residual: true, dropout: 0.2"),
    ("delta_product", None, "layers: 2, norm: rms, residual: true, bidirectional: true, gate: glu"),
    ("goru", "lie_exponential", "layers: 2, norm: rms, residual: true"),
    ("lem", "dense, init: orthogonal", "layers: 2, norm: rms, residual: true, bidirectional: true, gate: glu"),
]
EXPERIMENT = """name: {name}
scalar: {scalar}
task: {{plugin: sequence_csv, data: series.csv, sequence: s, features: [x, z], targets: [{target}], kind: {kind},
  readout: {readout}, validation_fraction: 0.25, test_fraction: 0, normalisation: standard{task}}}
model: {{cell: {{plugin: {cell}, hidden: 8}}, {recurrent}{layers}initial_state: {{kind: learned, init: normal}}}}
optimizer: {{plugin: adam, rate: 0.01}}
train: {{batch: 4, steps: 20, evaluate_every: 10}}
"""
SEQUENCES, STEPS = 8, 60
TOLERANCE = {scalar: STEPS * np.finfo(scalar).eps for scalar in ("float32", "float64")}  # one rounding a step


def series(seed):
    """Two inputs, a number and a class to predict."""
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((SEQUENCES, STEPS, 2)) * [3, 0.2] + [10, -1]
    sums = np.cumsum((inputs - [10, -1]).sum(2), 1) / np.arange(1, STEPS + 1)
    return inputs, sums


def csv_text(inputs, sums):
    rows = [f"{s},{float(x)!r},{float(z)!r},{float(y)!r},{'up' if y > 0 else 'down'}"
            for s, (xs, ys) in enumerate(zip(inputs, sums)) for (x, z), y in zip(xs, ys)]
    return "\n".join(["s,x,z,y,way", *rows]) + "\n"


class Exported(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        (cls.folder / "series.csv").write_text(csv_text(*series(1)), encoding="utf-8")
        cls.inputs, sums = series(2)
        (cls.folder / "new.csv").write_text(csv_text(cls.inputs, sums), encoding="utf-8")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def stiefel(self, *words):
        done = subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
        return done.stdout

    def trained(self, name, scalar="float64", readout="every", kind="regression", task="", cell="gru", recurrent="scaled_cayley",
                layers=None):
        """Folder of a run and path of its exported weights."""
        text = EXPERIMENT.format(name=name, scalar=scalar, readout=readout, kind=kind, task=task, cell=cell,
                                 recurrent=f"recurrent: {{plugin: {recurrent}}}, " if recurrent else "",
                                 layers=f"{layers}, " if layers else "", target="way" if kind == "classification" else "y")
        (self.folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        self.stiefel("run", f"{name}.yaml", "--quiet", "--threads", "1")
        run, = (self.folder / "runs" / name).iterdir()
        self.stiefel("export", str(run), "--weights", f"{name}.safetensors")
        return run, self.folder / f"{name}.safetensors"

    def predicted(self, run, *options):
        rows = csv.DictReader(io.StringIO(self.stiefel("predict", str(run), "--input", "new.csv", *options)))
        columns = [name for name in rows.fieldnames if name not in ("sequence", "step", "class")]
        rows = list(rows)
        return np.reshape([[float(row[name]) for name in columns] for row in rows], (SEQUENCES, -1, len(columns))), rows

    def agree(self, expected, found, scalar):
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE[scalar] * max(1, np.abs(expected).max()))

    def test_every_cell(self):
        networks = [(*network, None) for network in NETWORKS] + DEEP
        cases = list(itertools.product(range(len(networks)), ("float32", "float64")))

        def predicted(case):
            cell, recurrent, layers = networks[case[0]]
            run, path = self.trained("n{}_{}".format(*case), case[1], cell=cell, recurrent=recurrent, layers=layers)
            return path, self.predicted(run, "--raw")[0]
        pool = concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0)))
        self.addCleanup(pool.shutdown, cancel_futures=True)
        for (number, scalar), (path, expected) in zip(cases, pool.map(predicted, cases)):
            cell = networks[number][0]
            with self.subTest(network=networks[number], scalar=scalar):
                self.assertGreater(np.ptp(expected), 0.1)
                weights = stiefel.read_weights(path)
                self.assertEqual({str(values.dtype) for values in weights.tensors.values()}, {scalar})
                scaling = weights.text("normalisation")["input"]
                inputs = ((self.inputs - scaling["mean"]) / scaling["scale"]).astype(scalar)
                reference = [exported.run(weights.tensors, weights.metadata, sequence) for sequence in inputs]
                self.agree(expected, reference, scalar)
                if not torch:
                    self.skipTest("no PyTorch")
                network = stiefel.torch.load(path)
                self.agree(expected, network(torch.from_numpy(self.inputs)).detach().numpy(), scalar)
                if scalar == "float32" and cell in [before[0] for before in networks[:number]]:
                    continue
                if not onnxruntime:
                    self.skipTest("no onnxruntime")
                bare = stiefel.torch.load(path, normalize=False)
                stiefel.torch.export_onnx(bare, self.folder / "model.onnx")
                session = onnxruntime.InferenceSession(self.folder / "model.onnx")
                self.agree(expected, session.run(None, {"inputs": inputs})[0], scalar)

    def test_values_in_the_units_of_the_file(self):
        run, path = self.trained("units", task=", target_normalisation: standard")
        expected = self.predicted(run)[0]
        weights = stiefel.read_weights(path)
        self.assertEqual((weights.text("features"), weights.metadata["output"]), (["x", "z"], "identity"))
        target = weights.text("normalisation")["target"]
        self.agree(expected, self.predicted(run, "--raw")[0] * target["scale"] + target["mean"], "float64")
        if not torch:
            self.skipTest("no PyTorch")
        self.agree(expected, stiefel.torch.load(path)(torch.from_numpy(self.inputs)).detach().numpy(), "float64")

    @unittest.skipUnless(torch, "no PyTorch")
    def test_classes_at_the_last_step(self):
        run, path = self.trained("classes", readout="last", kind="classification")
        expected, rows = self.predicted(run)
        network = stiefel.torch.load(path)
        weights = stiefel.read_weights(path)
        self.assertEqual(weights.metadata["output"], "softmax")
        found = torch.softmax(network(torch.from_numpy(self.inputs)), 1).detach().numpy()
        self.agree(expected[:, 0], found, "float64")
        names = weights.text("classes")
        self.assertEqual(sorted(names), ["down", "up"])
        self.assertEqual([row["class"] for row in rows], [names[k] for k in found.argmax(1)])

    @unittest.skipUnless(torch, "no PyTorch")
    def test_states(self):
        run, path = self.trained("states", cell="lstm")
        self.stiefel("predict", str(run), "--input", "new.csv", "--states", "--output", "states.csv")
        with open(self.folder / "states.csv", encoding="utf-8") as file:
            last = [row for row in csv.DictReader(file) if row["step"] == str(STEPS - 1)]
        expected = [[float(row[f"state_{i}"]) for i in range(16)] for row in last]
        self.agree(expected, stiefel.torch.load(path).run(torch.from_numpy(self.inputs))[1].detach().numpy(), "float64")

    def test_other_tasks(self):
        """Symbols, no normalisation, and what the file says of them."""
        (self.folder / "copy.yaml").write_text("""name: copy
scalar: float64
task: {plugin: copy, length: 5, validation_sequences: 20, test_sequences: 20}
model: {cell: {plugin: gru, hidden: 6}, recurrent: {plugin: scaled_cayley}}
optimizer: {plugin: adam, rate: 0.01}
train: {batch: 4, steps: 5}
""", encoding="utf-8")
        self.stiefel("run", "copy.yaml", "--quiet", "--threads", "1")
        run, = (self.folder / "runs/copy").iterdir()
        self.stiefel("export", str(run), "--weights", "copy.safetensors")
        weights = stiefel.read_weights(self.folder / "copy.safetensors")
        about = weights.metadata
        self.assertEqual((about["name"], about["run_id"], about["step"]), ("copy", run.name, "5"))
        self.assertEqual(about["stiefel_version"], stiefel.__version__)
        self.assertEqual((about["format_version"], about["input"], about["readout"], about["targets"]), ("1", "symbols", "every", "classes"))
        self.assertEqual(weights.config["model"]["cell"]["hidden"], 6)
        self.assertEqual(about["config_yaml"], (run / "config.yaml").read_text(encoding="utf-8"))
        self.assertNotIn("normalisation", about)
        symbols = np.random.default_rng(3).integers(-1, int(about["input_size"]), (3, 12))
        np.save(self.folder / "symbols.npy", symbols)
        rows = list(csv.reader(io.StringIO(self.stiefel("predict", str(run), "--input", "symbols.npy", "--raw"))))
        size = int(about["output_size"])
        expected = np.reshape([[float(x) for x in row[-size:]] for row in rows[1:]], (3, 12, size))
        self.agree(expected, [exported.run(weights.tensors, about, sequence) for sequence in symbols], "float64")
        if not torch:
            self.skipTest("no PyTorch")
        network = stiefel.torch.load(self.folder / "copy.safetensors")
        self.agree(expected, network(torch.from_numpy(symbols)).detach().numpy(), "float64")

    def test_classes_that_are_the_alphabet(self):
        """The list stands once in the file."""
        (self.folder / "text.txt").write_text("abcab\nbcca\n", encoding="utf-8")
        (self.folder / "text.yaml").write_text("""name: text
task: {plugin: characters, train: text.txt}
model: {cell: {plugin: gru, hidden: 4}, recurrent: {plugin: scaled_cayley}}
optimizer: {plugin: adam, rate: 0.01}
train: {batch: 2, steps: 2}
""", encoding="utf-8")
        self.stiefel("run", "text.yaml", "--quiet", "--threads", "1")
        run, = (self.folder / "runs/text").iterdir()
        self.stiefel("export", str(run), "--last", "--weights", "text.safetensors")
        weights = stiefel.read_weights(self.folder / "text.safetensors")
        self.assertEqual((weights.text("alphabet"), weights.metadata["targets"]), (["a", "b", "c"], "classes"))
        self.assertNotIn("classes", weights.metadata)
        (self.folder / "words.txt").write_text("bcca abcab\nabcab bcca\n", encoding="utf-8")
        self.stiefel("run", "text.yaml", "--quiet", "--threads", "1", "name=words", "task.units=words", "task.train=words.txt")
        run, = (self.folder / "runs/words").iterdir()
        self.stiefel("export", str(run), "--last", "--weights", "words.safetensors")
        self.assertEqual(stiefel.read_weights(self.folder / "words.safetensors").text("alphabet"), ["abcab", "bcca"])
        with self.assertRaisesRegex(ValueError, "is a folder; `stiefel export .* --weights FILE` writes the file"):
            stiefel.read_weights(run)

    @unittest.skipUnless(torch and onnxruntime, "no PyTorch or no onnxruntime")
    def test_document(self):
        """The examples that need PyTorch, one after the other."""
        _, path = self.trained("document", "float32")
        path.rename(self.folder / "model.safetensors")
        examples = re.findall(r"^```python not-run\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        self.assertEqual(len(examples), 2)
        code = examples[0] + examples[1] + """
assert outputs[0].shape == (5, 50, 1)
assert torch.allclose(torch.cat([first, second], 1)[:2], torch.from_numpy(outputs[0][:2]), atol=1e-5)
"""
        done = subprocess.run([sys.executable, "-c", code], cwd=self.folder, env={**os.environ, "PYTHONPATH": PACKAGE},
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_resolved_configuration_is_json(self):
        _, path = self.trained("json")
        config = json.loads(stiefel.read_weights(path).metadata["config_json"])
        self.assertEqual((config["model"]["cell"]["reset"], config["task"]["targets"], config["train"]["steps"]), ("before", ["y"], 20))
        self.assertIs(config["model"]["input"]["bias"], True)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=1)
