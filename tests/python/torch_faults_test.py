#!/usr/bin/python3
"""stiefel.torch refuses files that it does not understand, and inputs that do not fit, in one sentence.

usage: torch_faults_test.py PYTHON_FOLDER
"""
import json
import sys
import unittest
import warnings

sys.path.insert(0, sys.argv[1])
try:
    import numpy as np
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

import exported
from torch_networks import Networks


class Faults(Networks):
    def refused(self, message, change, made=("lstm", {})):
        """A file whose tensors, metadata or config was changed."""
        tensors, metadata = exported.network(made[0], **made[1])
        config = json.loads(metadata["config_json"])
        change(tensors, metadata, config)
        if "config_json" in metadata:
            metadata["config_json"] = json.dumps(config)
        with self.assertRaisesRegex(ValueError, f"^{self.path}: [^\n]*{message}"):
            self.loaded(tensors, metadata)

    def test_files(self):
        self.refused("the matrix layers.0.recurrent.forget.W is missing", lambda t, m, c: t.pop("layers.0.recurrent.forget.W"))
        self.refused("the matrix layers.0.input.b is missing", lambda t, m, c: t.pop("layers.0.input.b"), ("gru", {"inputs": "none"}))
        self.refused("has no use for layers.1.input.V", lambda t, m, c: t.update({"layers.1.input.V": np.zeros((1, 1))}))
        self.refused("layers.0.input.V has the shape 23 × 3 instead of 24 × any", lambda t, m, c: t.update({"layers.0.input.V": np.zeros((23, 3))}))
        self.refused("layers.0.initial has the shape 6 × 1 instead of 6", lambda t, m, c: t.update({"layers.0.initial": np.zeros((6, 1))}),
                     ("elman", {}))
        self.refused("lacks 'peepholes'", lambda t, m, c: c["model"]["cell"].pop("peepholes"))
        for normalisation, message in (('{"input": {"mean": [1]}}', "normalisation.input.mean has 1 numbers instead of 3"),
                                       ('{"input": {"mean": [1, 2, 3]}}', "normalisation.input needs both a mean and a scale"),
                                       ('{"target": {"mean": [1], "scale": [1]}}', "normalisation.target.mean has 1 numbers instead of 2")):
            self.refused(message, lambda t, m, c, text=normalisation: m.update(normalisation=text))

    def test_damaged_descriptions(self):
        for change in (lambda c: c["model"]["cell"].update(gain=None), lambda c: c.update(model=[1]), lambda c: c["model"].update(initial_state="learned")):
            self.refused("its description is damaged: ", lambda t, m, c, change=change: change(c), ("elman", {}))

    def test_unknown_options(self):
        """Options of a later version, for example, are refused: a network is never computed differently than it was trained."""
        self.refused("the cell my_cell is not one of elman, lstm", lambda t, m, c: c["model"]["cell"].update(plugin="my_cell"))
        for cell, key in (("elman", "transition"), ("lstm", "peepholes"), ("gru", "reset"), ("gru", "update"), ("mingru", "candidate"), ("reflections", "beta"), ("delta_product", "key_activation"), ("slstm", "forget_gate"),
                          ("lipschitz", "scheme")):
            self.refused(f"the {key} other is not one of ", lambda t, m, c, key=key: c["model"]["cell"].update({key: "other"}), (cell, {}))
        for key in ("input", "readout"):
            self.refused(f"the {key} other is not one of ", lambda t, m, c, key=key: m.update({key: "other"}))
        for activation, changed, message in (({"kind": "modrelu"}, "kind", "the activation other is unknown"),
                                             ({"kind": "modrelu"}, "form", "the form other is not one of"),
                                             ({"kind": "oplu"}, "pairing", "the pairing other is not one of")):
            self.refused(message, lambda t, m, c, key=changed: c["model"]["cell"]["activation"].update({key: "other"}),
                         ("goru", {"activation": activation}))

    def test_keys_beside_layers(self):
        tensors, metadata = exported.deep_network([{"cell": "gru"}, {"cell": "gru"}])
        for key in ("cell", "recurrent", "maps", "input", "initial_state", "norm", "dropout", "residual", "gate", "bidirectional"):
            config = json.loads(metadata["config_json"])
            config["model"][key] = 1
            with self.assertRaisesRegex(ValueError, f"model.{key} contradicts the list model.layers"):
                self.loaded(tensors, {**metadata, "config_json": json.dumps(config)})

    def test_inputs(self):
        network, _ = self.made("elman")
        self.assertEqual(network(torch.zeros(2, 5, 3, dtype=torch.int64)).dtype, torch.float64)
        for inputs in (torch.zeros(2, 5, 4), torch.zeros(5, 3)):
            with self.assertRaisesRegex(ValueError, r"of the shape \(batch, time, 3\)"):
                network(inputs)
        with self.assertRaisesRegex(ValueError, r"of the shape \(batch, time, 0\)"):
            self.made("elman", inputs="none")[0](torch.zeros(2, 5, 3))
        with self.assertRaisesRegex(ValueError, "needs at least one step"):
            network(torch.zeros(2, 0, 3))

    def test_states_and_lengths(self):
        network, _ = self.made("elman")
        inputs = self.random(2, 5, 3)
        with self.assertRaisesRegex(ValueError, "the state has 7 rows, but this network needs 6"):
            network(inputs, state=torch.zeros(2, 7))
        for shape in ((6,), (3, 6), (1, 2, 6)):
            with self.assertRaisesRegex(ValueError, r"the state must have the shape \(2, 6\)"):
                network(inputs, state=torch.zeros(*shape))
        state = torch.tensor([[0.5] * 6] * 2, dtype=torch.float32)
        np.testing.assert_array_equal(network(inputs, state=state).detach(), network(inputs, state=state.double()).detach())
        with self.assertRaisesRegex(ValueError, "lengths must be 2 integers"):
            network(inputs, torch.ones(2, 1, dtype=torch.int64))
        np.testing.assert_array_equal(network(inputs, [5, 3]).detach(), network(inputs, torch.tensor([5, 3])).detach())
        with self.assertRaisesRegex(ValueError, "lengths must be 2 integers"):
            network(inputs, [5.0, 3.0])

    def test_symbols(self):
        network, _ = self.made("elman", inputs="symbols")
        for inputs in (torch.zeros(2, 5, 3), torch.zeros(2, 5, 3, dtype=torch.int64)):
            with self.assertRaisesRegex(ValueError, "reads symbols"):
                network(inputs)
        self.assertEqual(network(torch.tensor([[-1, 0, 2]])).shape, (1, 3, 2))
        self.assertEqual(network(torch.zeros(0, 5, dtype=torch.int64)).shape, (0, 5, 2))
        for symbol in (-2, 3, 4):
            with self.assertRaisesRegex(ValueError, f"^{symbol} is not one of the 3 symbols"):
                network(torch.tensor([[0, symbol, 1]]))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.jit.trace(network, torch.from_numpy(self.rng.integers(-1, 3, (2, 5))))
        self.assertFalse([str(w.message) for w in caught if "to a Python integer" in str(w.message)])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
