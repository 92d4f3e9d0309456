#!/usr/bin/python3
"""stiefel.torch computes what the equations say, for every cell and activation, and ONNX files do so too.

usage: torch_test.py PYTHON_FOLDER GOLDEN_FOLDER; PyTorch's own cells gave the numbers in pytorch.json
"""
import json
import pathlib
import sys
import tempfile
import unittest

PACKAGE, GOLDEN = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path.insert(0, PACKAGE)
try:
    import numpy as np
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

import exported
import stiefel.torch

CELLS = {
    "elman": {},
    "elman, outside": {"transition": "outside", "gain": 0.5},
    "elman, residual": {"transition": "residual", "step": 0.3},
    "elman, complex": {"complex_map": True, "activation": {"kind": "modrelu"}},
    "lstm": {},
    "lstm, fixed forget bias": {"forget_bias_fixed": True, "forget_bias": 0.6},
    "lstm, diagonal": {"peepholes": "diagonal"},
    "lstm, output_full": {"peepholes": "output_full"},
    "gru": {},
    "gru, after": {"reset": "after", "update": "new"},
    "goru": {},
    "cornn": {},
    "lem": {"step": 0.8},
    "lru": {},
    "mingru": {},
    "mingru, positive": {"candidate": "positive"},
    "lipschitz": {"step": 0.3},
    "lipschitz, rk2": {"step": 0.3, "scheme": "rk2"},
}
ACTIVATIONS = [
    {"kind": "identity"},
    {"kind": "relu"},
    {"kind": "leaky_relu", "slope": 0.3},
    {"kind": "prelu"},
    {"kind": "prelu", "shared": False},
    {"kind": "prelu", "trainable": False, "slope": 0.2},
    {"kind": "oplu"},
    {"kind": "oplu", "pairing": "adjacent"},
    *({"kind": "modrelu", "form": form} for form in ("exact", "eu", "goru", "squared")),
    {"kind": "modrelu", "form": "eu", "epsilon": 0.2},
    *({"kind": "modrelu", "form": form, "pairs": True} for form in ("exact", "arj", "wis", "eu", "squared")),
]


class Torch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.rng = np.random.default_rng(1)

    def made(self, cell, **options):
        """The module of a random network, and its outputs in NumPy as a function of one sequence."""
        tensors, metadata = exported.network(cell, **options)
        exported.write(self.folder / "model.safetensors", tensors, metadata)
        network = stiefel.torch.load(self.folder / "model.safetensors")
        return network, lambda inputs: exported.run(tensors, metadata, inputs)

    def expect(self, network, reference, inputs, tolerance=1e-12):
        found = network(torch.from_numpy(inputs)).detach().numpy()
        expected = np.stack([reference(sequence) for sequence in inputs])
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
        self.assertGreater(np.ptp(expected), 0.1)

    def test_cells(self):
        for name, options in CELLS.items():
            for kind, tolerance in (("float64", 1e-12), ("float32", 2e-5)):
                with self.subTest(cell=name, kind=kind):
                    network, reference = self.made(name.split(",")[0], kind=kind, **options)
                    self.expect(network, reference, self.rng.standard_normal((4, 20, 3)).astype(kind), tolerance)

    def test_activations(self):
        for activation in ACTIVATIONS:
            for cell in ("elman", "goru"):
                with self.subTest(activation=activation, cell=cell):
                    self.expect(*self.made(cell, activation=activation), self.rng.standard_normal((3, 10, 3)))

    def test_complex_activations(self):
        for form in ("exact", "arj", "wis", "eu", "squared"):
            with self.subTest(form=form):
                made = self.made("elman", complex_map=True, activation={"kind": "modrelu", "form": form})
                self.expect(*made, self.rng.standard_normal((3, 10, 3)))

    def test_readout_of_the_real_part(self):
        tensors, metadata = exported.network("elman", complex_map=True, activation={"kind": "modrelu"})
        tensors["readout.Y"] = tensors["readout.Y"][:, :6].copy()
        exported.write(self.folder / "model.safetensors", tensors, metadata)
        self.expect(stiefel.torch.load(self.folder / "model.safetensors"), lambda x: exported.run(tensors, metadata, x),
                    self.rng.standard_normal((2, 5, 3)))

    def test_symbols_and_no_input(self):
        self.expect(*self.made("gru", inputs="symbols"), self.rng.integers(-1, 3, (4, 9)))
        self.expect(*self.made("gru", inputs="none"), np.zeros((4, 9, 0)))

    def test_lengths(self):
        for readout in ("every", "last"):
            network, reference = self.made("lstm", readout=readout)
            inputs, lengths = self.rng.standard_normal((4, 9, 3)), [9, 1, 4, 7]
            found, state = network.run(torch.from_numpy(inputs), torch.tensor(lengths))
            for b, length in enumerate(lengths):
                expected = reference(inputs[b, :length])
                last = network.run(torch.from_numpy(inputs[b:b + 1, :length]))[1][0]
                np.testing.assert_allclose(state[b].detach(), last.detach(), atol=1e-14)
                if readout == "last":
                    np.testing.assert_allclose(found[b].detach(), expected[-1], atol=1e-13)
                    continue
                np.testing.assert_allclose(found[b, :length].detach(), expected, atol=1e-13)
                self.assertFalse(found[b, length:].any())
            for kind in (torch.int32, torch.uint8):
                np.testing.assert_array_equal(network.run(torch.from_numpy(inputs), torch.tensor(lengths, dtype=kind))[0].detach(), found.detach())

    def test_integers_of_every_size(self):
        network, _ = self.made("gru", inputs="symbols")
        inputs = self.rng.integers(-1, 3, (4, 9))
        for kind in (np.int8, np.int16, np.int32):
            np.testing.assert_array_equal(network(torch.from_numpy(inputs.astype(kind))).detach(), network(torch.from_numpy(inputs)).detach())

    def test_pieces(self):
        network, _ = self.made("lem")
        inputs = torch.from_numpy(self.rng.standard_normal((2, 12, 3)))
        first, state = network.run(inputs[:, :5])
        second, _ = network.run(inputs[:, 5:], state=state)
        np.testing.assert_allclose(torch.cat([first, second], 1).detach(), network(inputs).detach(), atol=1e-14)

    def test_normalisation(self):
        tensors, metadata = exported.network("elman")
        scaling = {"input": {"mean": [1.0, -2.0, 0.5], "scale": [2.0, 4.0, 1.0]}, "target": {"mean": [3.0, 1.0], "scale": [10.0, 0.1]}}
        exported.write(self.folder / "model.safetensors", tensors, {**metadata, "normalisation": json.dumps(scaling)})
        inputs = self.rng.standard_normal((2, 6, 3))
        read = exported.run(tensors, metadata, (inputs[0] - [1, -2, 0.5]) / [2, 4, 1])
        found = stiefel.torch.load(self.folder / "model.safetensors")(torch.from_numpy(inputs))[0]
        np.testing.assert_allclose(found.detach(), read * [10, 0.1] + [3, 1], atol=1e-12)
        bare = stiefel.torch.load(self.folder / "model.safetensors", normalize=False)
        np.testing.assert_allclose(bare(torch.from_numpy(inputs))[0].detach(), exported.run(tensors, metadata, inputs[0]), atol=1e-13)

    def test_cells_of_pytorch(self):
        golden = json.loads((GOLDEN / "pytorch.json").read_text(encoding="utf-8"))
        T, B = golden["steps"], golden["sequences"]
        inputs = np.reshape(golden["inputs"], (T, B, -1)).transpose(1, 0, 2)
        targets = np.reshape(golden["targets"], (T, B, -1)).transpose(1, 0, 2)
        for case, (cell, options) in zip(golden["cells"], (("elman", {}), ("lstm", {}), ("gru", {"reset": "after"}))):
            tensors, metadata = exported.network(cell, n=5, d=golden["input_size"], k=golden["output_size"], **options)
            given = case["parameters"]
            names = {"layers.0.input.V": "input.weight", "layers.0.input.b": "input.bias", "readout.Y": "readout.weight",
                     "readout.c": "readout.bias"}
            for name, values in tensors.items():
                block = names.get(name, name.removeprefix("layers.0.").removeprefix("cell."))
                tensors[name] = np.zeros_like(values) if name == "layers.0.initial" else np.ascontiguousarray(
                    np.reshape(given.pop(block), values.shape, order="F"))
            self.assertFalse(given)
            exported.write(self.folder / "model.safetensors", tensors, metadata)
            found = stiefel.torch.load(self.folder / "model.safetensors")(torch.from_numpy(inputs)).detach().numpy()
            self.assertAlmostEqual(((found - targets) ** 2).mean(), case["loss"], delta=1e-13)

    def test_trains(self):
        network, _ = self.made("goru")
        network(torch.from_numpy(self.rng.standard_normal((2, 5, 3)))).square().sum().backward()
        for name, parameter in network.named_parameters():
            self.assertTrue(parameter.grad.abs().sum() > 0, name)
        for trainable, initial_state in ((True, "learned"), (False, "zero")):
            activation = {"kind": "prelu", "trainable": trainable}
            network, _ = self.made("elman", activation=activation, initial_state=initial_state)
            learned = {name.rpartition(".")[2] for name, values in network.named_parameters() if values.requires_grad}
            self.assertEqual({"slope", "initial"} & learned, {"slope", "initial"} if trainable else set())

    def test_scripts(self):
        for name, options in {**CELLS, "gru, symbols": {"inputs": "symbols"}}.items():
            with self.subTest(cell=name):
                network, _ = self.made(name.split(",")[0], **options)
                inputs = torch.from_numpy(self.rng.integers(-1, 3, (2, 5)) if network.symbols else self.rng.standard_normal((2, 5, 3)))
                np.testing.assert_allclose(torch.jit.script(network)(inputs).detach(), network(inputs).detach(), atol=1e-14)

    def test_onnx(self):
        try:
            import onnx
            import onnxruntime
        except ImportError as error:
            self.skipTest(str(error))
        for name, options in {**CELLS, "gru, symbols": {"inputs": "symbols"}, "gru, none": {"inputs": "none"},
                              "elman, last": {"readout": "last"}}.items():
            for kind, tolerance in (("float64", 1e-12), *([("float32", 1e-6)] if name == "elman" else [])):
                with self.subTest(cell=name, kind=kind):
                    network, _ = self.made(name.split(",")[0], kind=kind, **options)
                    stiefel.torch.export_onnx(network, self.folder / "model.onnx")
                    operations = [node.op_type for node in onnx.load(self.folder / "model.onnx").graph.node]
                    self.assertTrue({"Scan", "Loop"} & set(operations), operations)
                    session = onnxruntime.InferenceSession((self.folder / "model.onnx").read_bytes())
                    for batch, steps in ((1, 1), (5, 40)):
                        inputs = self.rng.standard_normal((batch, steps, 3)).astype(kind)
                        if network.symbols:
                            inputs = self.rng.integers(-1, 3, (batch, steps))
                        if network.input_size == 0:
                            inputs = inputs[:, :, :0]
                        found, = session.run(None, {"inputs": inputs})
                        expected = network(torch.from_numpy(inputs)).detach().numpy()
                        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)

    @unittest.skipIf(tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 9), "PyTorch writes a Scan")
    def test_onnx_of_old_pytorch(self):
        for name, options in CELLS.items():
            with self.subTest(cell=name):
                network, _ = self.made(name.split(",")[0], **options)
                stiefel.torch.export_onnx(network, self.folder / "model.onnx")
                self.assertIn(b"Loop", (self.folder / "model.onnx").read_bytes())

    def test_what_does_not_fit(self):
        network, _ = self.made("elman")
        with self.assertRaisesRegex(ValueError, r"of the shape \(batch, time, 3\)"):
            network(torch.zeros(2, 5, 4))
        network, _ = self.made("elman", inputs="symbols")
        with self.assertRaisesRegex(ValueError, "reads symbols"):
            network(torch.zeros(2, 5, 3))
        self.assertEqual(network(torch.tensor([[-1, 0, 2]])).shape, (1, 3, 2))
        for symbol in (-2, 3, 4):
            with self.assertRaisesRegex(ValueError, f"^{symbol} is not one of the 3 symbols"):
                network(torch.tensor([[0, symbol, 1]]))

        def refused(message, change):
            tensors, metadata = exported.network("lstm")
            config = json.loads(metadata["config_json"])
            change(tensors, metadata, config["model"]["cell"])
            if "config_json" in metadata:
                metadata["config_json"] = json.dumps(config)
            exported.write(self.folder / "model.safetensors", tensors, metadata)
            with self.assertRaisesRegex(ValueError, "^" + str(self.folder) + r"/model.safetensors: [^\n]*" + message):
                stiefel.torch.load(self.folder / "model.safetensors")

        refused("the matrix layers.0.recurrent.forget.W is missing", lambda t, m, c: t.pop("layers.0.recurrent.forget.W"))
        refused("has no use for layers.1.input.V", lambda t, m, c: t.update({"layers.1.input.V": np.zeros((1, 1))}))
        refused("layers.0.input.V has the shape 23 × 3 instead of 24 × any", lambda t, m, c: t.update({"layers.0.input.V": np.zeros((23, 3))}))
        refused("the cell my_cell is not one of elman, lstm", lambda t, m, c: c.update(plugin="my_cell"))
        refused("lacks 'peepholes'", lambda t, m, c: c.pop("peepholes"))
        refused("normalisation.input.mean has 1 numbers instead of 3",
                lambda t, m, c: m.update(normalisation='{"input": {"mean": [1]}}'))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
