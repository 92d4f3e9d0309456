#!/usr/bin/python3
"""stiefel.torch computes networks of several layers as PyTorch's own modules and the equations do, and ONNX files do so too.

usage: deep_test.py PYTHON_FOLDER
"""
import itertools
import json
import re
import sys
import unittest

sys.path.insert(0, sys.argv[1])
try:
    import numpy as np
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

import exported
import stiefel.torch
import torch_layers
from torch_networks import Networks

DEEP = {
    "every cell": [{"cell": cell} for cell in exported.OPTIONS],
    "bidirectional": [{"cell": "gru", "bidirectional": True}, {"cell": "lstm", "n": 4, "bidirectional": True}, {"cell": "elman"}],
    "layer norm": [{"cell": "gru", "norm": "layer"}] * 2,
    "rms": [{"cell": "cornn", "norm": "rms"}, {"cell": "lru", "norm": "rms"}, {"cell": "elman", "n": 5, "norm": "rms"}],
    "gates": [{"cell": "lstm", "gate": "glu"}, {"cell": "lem", "gate": "glu", "bidirectional": True}],
    "residuals": [{"cell": "mingru", "n": 8}, {"cell": "gru", "n": 4, "residual": True, "bidirectional": True},
                  {"cell": "lipschitz", "n": 8, "residual": True}],
    "complex": [{"cell": "elman", "complex_map": True, "activation": {"kind": "modrelu"}}] * 2,
    "blocks": [{"cell": "lru", "norm": "layer", "gate": "glu", "residual": True, "dropout": 0.1, "bidirectional": True}] * 3,
}


class Deep(Networks):
    def bare(self, tensors, model, rows):
        """A network whose outputs are those of its last layer."""
        metadata = {"format": "stiefel-network", "format_version": "1", "config_json": json.dumps({"model": model}), "input": "dense",
                    "readout": "every"}
        return self.loaded({**tensors, "readout.Y": np.eye(rows)}, metadata)

    def same(self, found, expected, tolerance=1e-12):
        """The tolerance is relative to the largest number, or to 1 if that is larger."""
        expected = np.asarray(expected)
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=0, atol=tolerance * max(1, np.abs(expected).max()))
        self.assertGreater(np.ptp(expected), 0.01)

    def test_modules_of_pytorch(self):
        for kind, layers, bidirectional, bias in itertools.product((nn.LSTM, nn.GRU), (1, 2, 3), (False, True), (True, False)):
            with self.subTest(kind=kind, layers=layers, bidirectional=bidirectional, bias=bias), torch.no_grad():
                module = kind(3, 5, layers, bias=bias, batch_first=True, bidirectional=bidirectional).double()
                network = self.bare(torch_layers.tensors(module), torch_layers.model(module), 5 * (1 + bidirectional))
                inputs = self.random(4, 9, 3)
                expected, last = module(inputs)
                found, state = network.run(inputs)
                self.same(found, expected)
                self.same(state, torch_layers.states(module, last))
                self.same(network.run(inputs, state=state)[0], module(inputs, last)[0])
                lengths = torch.tensor([9, 6, 6, 1])
                packed, last = module(nn.utils.rnn.pack_padded_sequence(inputs, lengths, batch_first=True))
                found, state = network.run(inputs, lengths)
                self.same(found, nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)[0])
                self.same(state, torch_layers.states(module, last))

    def test_two_descriptions(self):
        """A number of equal layers, and the list of them."""
        module = nn.GRU(3, 5, 2).double()
        tensors, model = torch_layers.tensors(module), torch_layers.model(module)
        number = self.bare(tensors, model, 5)
        layer = {key: value for key, value in model.items() if key != "layers"}
        inputs = self.random(2, 7, 3)
        self.assertTrue(torch.equal(self.bare(tensors, {"layers": [layer, layer]}, 5)(inputs), number(inputs)))

    def between(self, tensors, **options):
        """Two LSTMs in PyTorch, and the network of both as one with the tensors and options."""
        first, second = nn.LSTM(3, 6, batch_first=True).double(), nn.LSTM(6, 6, batch_first=True).double()
        above = {name.replace("layers.0.", "layers.1."): values for name, values in torch_layers.tensors(second).items()}
        model = {**torch_layers.model(first), "layers": 2, **options}
        network = self.bare({**torch_layers.tensors(first), **above, **tensors}, model, 6)
        return network, lambda x: first(x)[0], lambda x: second(x)[0]

    def test_layer_norm(self):
        norm = nn.LayerNorm(6).double()
        with torch.no_grad():
            norm.weight.copy_(self.random(6))
            norm.bias.copy_(self.random(6))
            network, first, second = self.between(
                {"layers.1.norm.weight": norm.weight.numpy(), "layers.1.norm.bias": norm.bias.numpy()}, norm="layer")
            inputs = self.random(3, 8, 3)
            self.same(network(inputs), second(norm(first(inputs))))

    def test_rms(self):
        weight = self.random(6)
        with torch.no_grad():
            network, first, second = self.between({"layers.1.norm.weight": weight.numpy()}, norm="rms")
            inputs = self.random(3, 8, 3)
            s = first(inputs)
            self.same(network(inputs), second(s / torch.sqrt((s**2).mean(2, keepdim=True) + 1e-5) * weight))

    def test_glu_and_residual(self):
        G, c = self.random(2, 12, 6), self.random(2, 12)
        tensors = {f"layers.{layer}.gate.{name}": values[layer].numpy().copy() for name, values in (("weight", G), ("bias", c))
                   for layer in (0, 1)}
        with torch.no_grad():
            network, first, second = self.between(tensors, gate="glu", residual=True)
            inputs = self.random(3, 8, 3)

            def gated(layer, h):
                return (h @ G[layer, :6].T + c[layer, :6]) * torch.sigmoid(h @ G[layer, 6:].T + c[layer, 6:])
            s = gated(0, first(inputs))
            self.same(network(inputs), s + gated(1, second(s)))

    def test_equations(self):
        for name, layers in DEEP.items():
            for kind, tolerance in (("float64", 1e-12), ("float32", 2e-5)):
                with self.subTest(network=name, kind=kind):
                    tensors, metadata = exported.deep_network(layers, kind=kind)
                    network = self.loaded(tensors, metadata)
                    inputs = self.rng.standard_normal((3, 12, 3)).astype(kind)
                    self.same(network(torch.from_numpy(inputs)), [exported.run(tensors, metadata, x) for x in inputs], tolerance)

    def test_symbols_and_no_input(self):
        for kind, inputs in (("symbols", self.rng.integers(-1, 3, (4, 9))), ("none", np.zeros((4, 9, 0)))):
            tensors, metadata = exported.deep_network(DEEP["bidirectional"], inputs=kind)
            network = self.loaded(tensors, metadata)
            self.same(network(torch.from_numpy(inputs)), [exported.run(tensors, metadata, x) for x in inputs])

    def test_lengths(self):
        """Each sequence gives what it gives alone, and what is behind its end does not matter."""
        lengths = [9, 1, 4, 7]
        for name, layers in DEEP.items():
            for readout in ("every", "last"):
                with self.subTest(network=name, readout=readout):
                    network = self.loaded(*exported.deep_network(layers, readout=readout))
                    inputs = self.random(4, 9, 3)
                    for row, length in zip(inputs, lengths):
                        row[length:] = 1e300
                    found, state = network.run(inputs, torch.tensor(lengths))
                    for b, length in enumerate(lengths):
                        alone, last = network.run(inputs[b:b + 1, :length])
                        self.same(state[b], last[0].detach())
                        self.same(found[b, :length] if readout == "every" else found[b], alone[0].detach())
                        self.assertFalse(readout == "every" and found[b, length:].any())
        network = self.loaded(*exported.deep_network(DEEP["bidirectional"]))
        for wrong, message in (([9, 1, 4], "lengths must be 4 integers"), ([9.0, 1, 4, 7], "lengths must be 4 integers"),
                               ([9, 0, 4, 7], "0 is not a length of a sequence of 9 steps"), ([9, 1, 10, 7], "10 is not a length")):
            with self.assertRaisesRegex(ValueError, message):
                network(self.random(4, 9, 3), lengths=torch.tensor(wrong))

    def test_pieces(self):
        network = self.loaded(*exported.deep_network(DEEP["every cell"]))
        inputs = self.random(2, 12, 3)
        first, state = network.run(inputs[:, :5])
        second, end = network.run(inputs[:, 5:], state=state)
        whole, last = network.run(inputs)
        self.same(torch.cat([first, second], 1), whole.detach())
        self.same(end, last.detach())
        with self.assertRaisesRegex(ValueError, f"the state has 3 rows, but this network needs {last.shape[1]}"):
            network(inputs, state=torch.zeros(2, 3))

    def test_dropout(self):
        """In training, outputs of a layer are 0 or larger."""
        module = nn.LSTM(3, 5).double()
        network = self.bare(torch_layers.tensors(module), {**torch_layers.model(module), "dropout": 0.25}, 5)
        inputs = self.random(40, 20, 3)
        expected = network(inputs).detach()
        found = network.train()(inputs).detach()
        kept = found != 0
        self.assertAlmostEqual(float(kept.double().mean()), 0.75, delta=0.03)
        self.same(found[kept], expected[kept] / 0.75)
        self.assertTrue(torch.equal(network.eval()(inputs), expected))

    def test_dropout_of_a_gate(self):
        """Dropout is applied behind the gate, and before the residual connection."""
        tensors, metadata = exported.deep_network([{"cell": "lstm"}, {"cell": "lstm", "gate": "glu", "residual": True, "dropout": 0.5}])
        network = self.loaded({**tensors, "readout.Y": np.eye(6), "readout.c": np.zeros(6)}, metadata)
        inputs = self.random(20, 10, 3)
        below = network.layers[0](inputs, network.layers[0].initial().expand(20, -1), None)[0]
        gated, found = network(inputs) - below, network.train()(inputs) - below
        kept = found.abs() > 1e-12
        self.assertAlmostEqual(float(kept.double().mean()), 0.5, delta=0.05)
        np.testing.assert_allclose(found[kept].detach(), 2 * gated[kept].detach(), atol=1e-12)

    def test_trains(self):
        for name in ("layer norm", "blocks"):
            network = self.loaded(*exported.deep_network(DEEP[name]))
            network(self.random(2, 5, 3)).square().sum().backward()
            for parameter, values in network.named_parameters():
                self.assertTrue(values.grad.abs().sum() > 0, f"{name}: {parameter}")

    def test_scripts(self):
        lengths = torch.tensor([5, 3])
        for name, layers in DEEP.items():
            with self.subTest(network=name):
                network, inputs = self.loaded(*exported.deep_network(layers)), self.random(2, 5, 3)
                script = torch.jit.script(network)
                self.same(script(inputs), network(inputs).detach())
                self.same(script(inputs, lengths), network(inputs, lengths).detach())

    def test_onnx(self):
        try:
            import onnxruntime
        except ImportError as error:
            self.skipTest(str(error))
        for name in ("every cell", "bidirectional", "rms", "residuals", "blocks"):
            kind, readout = ("float32", "last") if name == "residuals" else ("float64", "every")
            with self.subTest(network=name):
                network = self.loaded(*exported.deep_network(DEEP[name], kind=kind, readout=readout))
                stiefel.torch.export_onnx(network, self.path.with_suffix(".onnx"))
                session = onnxruntime.InferenceSession(self.path.with_suffix(".onnx"))
                for batch, steps in ((1, 1), (5, 40)):
                    inputs = self.random(batch, steps, 3).numpy().astype(kind)
                    found, = session.run(None, {"inputs": inputs})
                    expected = network(torch.from_numpy(inputs)).detach().numpy()
                    tolerance = 1e-12 if kind == "float64" else 1e-5
                    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)

    @unittest.skipIf(tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 9), "PyTorch writes a Scan")
    def test_onnx_of_old_pytorch(self):
        for name, layers in DEEP.items():
            with self.subTest(network=name):
                stiefel.torch.export_onnx(self.loaded(*exported.deep_network(layers)), self.path.with_suffix(".onnx"))
                self.assertIn(b"Loop", self.path.with_suffix(".onnx").read_bytes())

    def test_what_does_not_fit(self):
        def refused(message, change):
            tensors, metadata = exported.deep_network([{"cell": "gru", "norm": "layer", "gate": "glu", "bidirectional": True},
                                                       {"cell": "lstm", "norm": "layer", "n": 4}])
            model = json.loads(metadata["config_json"])["model"]
            change(tensors, model)
            exported.write(self.path, tensors, {**metadata, "config_json": json.dumps({"model": model})})
            with self.assertRaisesRegex(ValueError, "^" + re.escape(str(self.path)) + r": [^\n]*" + message + "$"):
                stiefel.torch.load(self.path)

        for name in ("layers.1.input.V", "layers.0.reverse.recurrent.reset.W", "layers.0.reverse.initial", "layers.1.norm.weight",
                     "layers.1.norm.bias", "layers.0.gate.weight", "layers.0.gate.bias"):
            refused(f"the matrix {name} is missing", lambda tensors, _, name=name: tensors.pop(name))
        for name, shape, wanted in (("layers.1.input.V", "12", "16 × 12"), ("layers.1.norm.bias", "", "12"),
                                    ("layers.0.gate.weight", "12", "24 × 12"), ("layers.0.reverse.input.V", "3", "18 × 3")):
            refused(f"{name} has the shape 2{' × ' * bool(shape)}{shape} instead of {wanted}",
                    lambda tensors, _, name=name: tensors.update({name: tensors[name][:2].copy()}))
        refused("this network has no use for layers.1.reverse.input.b", lambda t, _: t.update({"layers.1.reverse.input.b": np.zeros(4)}))
        refused("this network has no use for layers.0.norm.weight", lambda t, _: t.update({"layers.0.norm.weight": np.zeros(3)}))
        refused("this network has no use for layers.1.norm.bias, layers.1.norm.weight", lambda _, m: m["layers"][1].update(norm="none"))
        refused("readout.Y has 9 columns, but the last layer has 4 outputs", lambda t, _: t.update({"readout.Y": np.zeros((2, 9))}))
        refused("layers.1 has a residual and 4 outputs, but the layer below has 12", lambda _, m: m["layers"][1].update(residual=True))
        refused("the norm batch is not one of none, layer, rms", lambda _, m: m["layers"][1].update(norm="batch"))
        refused("the gate maxout is not one of none, glu", lambda _, m: m["layers"][0].update(gate="maxout"))
        refused("its description lacks 'cell'", lambda _, m: m["layers"][1].pop("cell"))
        refused("model.norm contradicts the list model.layers, where it belongs", lambda _, m: m.update(norm="layer"))
        for layers in (0, -1, True, "two", 1.5, [], [3]):
            message = re.escape(f"model.layers must be a positive integer or a list of layers, got {layers!r}")
            refused(message, lambda _, m, layers=layers: m.update(layers=layers))
        refused("the matrix layers.2.[a-z.]*[A-Za-z]* is missing", lambda _, m: m["layers"].append(m["layers"][1]))
        refused("this network has no use for layers.1.*", lambda _, m: m["layers"].pop())

        module = nn.GRU(3, 5, 2)
        with self.assertRaisesRegex(ValueError, "the matrix layers.2.recurrent.update.W is missing$"):
            self.bare(torch_layers.tensors(module.double()), {**torch_layers.model(module), "layers": 10**15}, 5)

    def test_truncated(self):
        exported.write(self.path, *exported.deep_network(DEEP["blocks"]))
        data = self.path.read_bytes()
        for length in (5, 100, len(data) // 2, len(data) - 1):
            self.path.write_bytes(data[:length])
            with self.assertRaisesRegex(ValueError, "^" + re.escape(str(self.path)) + r": [^\n]*truncated[^\n]*$"):
                stiefel.torch.load(self.path)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
