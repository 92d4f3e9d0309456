#!/usr/bin/python3
"""stiefel.torch computes what the equations say, for every cell and activation, and ONNX files do so too.

usage: torch_test.py PYTHON_FOLDER GOLDEN_FOLDER; PyTorch's own cells gave the numbers in pytorch.json
"""
import json
import pathlib
import sys
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
from torch_networks import Networks

CELLS = {
    "elman": {},
    "elman, outside": {"transition": "outside", "gain": 0.5},
    "elman, gain": {"gain": 0.5},
    "elman, residual": {"transition": "residual", "step": 0.3, "gain": 0.5},
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
    "reflections": {},
    "reflections, all": {"reflections": 3, "beta": "2", "nonlinearity": "tanh", "additive": True, "map": True},
    "delta_product": {},
    "delta_product, all": {"heads": 3, "reflections": 3, "gate": True, "eigenvalues": [0, 1], "key_activation": "identity"},
    "asrnn": {},
    "slstm": {},
    "slstm, all": {"heads": 3, "forget_gate": "exponential"},
    "slstm, zero": {"initial_state": "zero"},
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
    *({"kind": "modrelu", "form": form, "epsilon": 0.2} for form in ("exact", "eu")),
    *({"kind": "modrelu", "form": form, "pairs": True} for form in ("exact", "arj", "wis", "eu", "squared")),
    *({"kind": "modrelu", "form": form, "pairs": True, "epsilon": 0.2} for form in ("arj", "wis", "eu")),
]


class Torch(Networks):
    def test_cells(self):
        for name, options in CELLS.items():
            for kind, tolerance in (("float64", 1e-12), ("float32", 2e-6)):
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

    def test_zero(self):
        """Outputs and gradients of complex numbers that are 0, or so small that their square is."""
        for form in ("exact", "arj", "wis", "eu", "squared"):
            for size in (0, 1e-160):
                network, _ = self.made("elman", complex_map=True, n=3, inputs="none", activation={"kind": "modrelu", "form": form})
                with torch.no_grad():
                    network.layers[0].ahead.initial.zero_()
                    network.layers[0].ahead.b.fill_(size)
                    network.layers[0].ahead.cell.activation.bias.fill_(1)
                outputs, state = network.run(torch.zeros(1, 1, 0))
                if form in ("exact", "squared"):
                    self.assertFalse(state.any(), form)
                self.assertLess(float(state.detach().abs().max()), 1e-150)
                outputs.sum().backward()
                for name, parameter in network.named_parameters():
                    self.assertTrue(parameter.grad.isfinite().all(), (form, size, name))

    def test_readout_of_the_real_part(self):
        tensors, metadata = exported.network("elman", complex_map=True, activation={"kind": "modrelu"})
        tensors["readout.Y"] = tensors["readout.Y"][:, :6].copy()
        self.expect(self.loaded(tensors, metadata), lambda x: exported.run(tensors, metadata, x),
                    self.rng.standard_normal((2, 5, 3)))

    def test_symbols_and_no_input(self):
        self.expect(*self.made("gru", inputs="symbols"), self.rng.integers(-1, 3, (4, 9)))
        self.expect(*self.made("gru", inputs="none"), np.zeros((4, 9, 0)))

    def test_no_bias(self):
        for inputs in ("dense", "symbols"):
            tensors, metadata = exported.network("gru", inputs=inputs)
            zero = {**tensors, "layers.0.input.b": np.zeros_like(tensors.pop("layers.0.input.b"))}
            values = self.rng.integers(-1, 3, (2, 6)) if inputs == "symbols" else self.rng.standard_normal((2, 6, 3))
            self.expect(self.loaded(tensors, metadata), lambda x, zero=zero, metadata=metadata: exported.run(zero, metadata, x), values)

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

    def test_padding(self):
        """Numbers past the end of a sequence do not affect the gradients."""
        for layers in ([{"cell": "lstm"}], [{"cell": "gru", "bidirectional": True}, {"cell": "gru", "norm": "layer"}]):
            gradients = []
            for padding in (0.0, np.inf, np.nan):
                network = self.loaded(*exported.deep_network(layers))
                inputs = torch.linspace(-1, 1, 30, dtype=torch.float64).reshape(2, 5, 3)
                inputs[1, 3:] = padding
                network(inputs, torch.tensor([5, 3])).sum().backward()
                gradients.append(np.concatenate([parameter.grad.reshape(-1) for parameter in network.parameters()]))
            for found in gradients[1:]:
                np.testing.assert_array_equal(found, gradients[0])

    def test_another_device(self):
        network = self.loaded(*exported.deep_network([{"cell": "gru", "bidirectional": True}])).to("meta")
        network.check_range = lambda *_: None  # which needs numbers
        found = network(torch.zeros(2, 5, 3, device="meta"), torch.tensor([5, 3], device="meta"))
        self.assertEqual((found.shape, found.device.type), ((2, 5, 2), "meta"))

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
        metadata["normalisation"] = json.dumps(scaling)
        inputs = self.rng.standard_normal((2, 6, 3))
        read = exported.run(tensors, metadata, (inputs[0] - [1, -2, 0.5]) / [2, 4, 1])
        found = self.loaded(tensors, metadata)(torch.from_numpy(inputs))[0]
        np.testing.assert_allclose(found.detach(), read * [10, 0.1] + [3, 1], atol=1e-12)
        bare = self.loaded(tensors, metadata, normalize=False)
        np.testing.assert_allclose(bare(torch.from_numpy(inputs))[0].detach(), exported.run(tensors, metadata, inputs[0]), atol=1e-13)

    def test_large_units(self):
        """Normalisation is computed in double precision, also of a network in single precision."""
        tensors, metadata = exported.network("elman", kind="float32")
        scaling = {"input": {"mean": [1700000037.0, 0, 0], "scale": [3600.0, 1, 1]}, "target": {"mean": [100000.1, 0], "scale": [0.001, 1]}}
        metadata["normalisation"] = json.dumps(scaling)
        network, bare = self.loaded(tensors, metadata), self.loaded(tensors, metadata, normalize=False)
        of = {part: {key: torch.tensor(numbers, dtype=torch.float64) for key, numbers in values.items()} for part, values in scaling.items()}
        inputs = self.random(2, 6, 3)
        scaled = inputs * of["input"]["scale"] + of["input"]["mean"]
        expected = (bare(inputs).double() * of["target"]["scale"] + of["target"]["mean"]).float()
        for converted in (lambda: network, lambda: network.float(), lambda: network.double().float()):
            found = converted()(scaled)
            self.assertEqual(found.dtype, torch.float32)
            np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-7, atol=1e-6)

    def test_constants_of_lru(self):
        """They are rounded once, from double precision."""
        for seed in range(20):
            tensors, metadata = exported.network("lru", n=50, kind="float32", seed=seed)
            cell = self.loaded(tensors, metadata).layers[0].ahead.cell
            for found, expected in zip((cell.re, cell.im, cell.gamma), exported.constants_of_lru(exported.under(tensors, "layers.0.cell."))):
                np.testing.assert_array_equal(found.detach(), expected)

    def test_state_dict(self):
        """It has the parameters only, and training leaves the arrays of the file as they are."""
        tensors, metadata = exported.network("elman", activation={"kind": "leaky_relu"})
        metadata["normalisation"] = '{"input": {"mean": [1, 2, 3], "scale": [1, 1, 1]}}'
        network = self.loaded(tensors, metadata)
        self.assertEqual(set(network.state_dict()), {name for name, _ in network.named_parameters()})
        weights = stiefel.read_weights(self.path)
        network = stiefel.torch.Network(weights)
        with torch.no_grad():
            network.Y.zero_()
        np.testing.assert_array_equal(weights.tensors["readout.Y"], tensors["readout.Y"])
        self.assertEqual(network.metadata["targets"], "values")

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
            found = self.loaded(tensors, metadata)(torch.from_numpy(inputs)).detach().numpy()
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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
