"""Random networks in files, and as modules of stiefel.torch."""
import pathlib
import tempfile
import unittest

import numpy as np
import torch

import exported
import stiefel.torch


class Networks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "model.safetensors"
        self.rng = np.random.default_rng(1)
        torch.manual_seed(1)

    def loaded(self, tensors, metadata, **options):
        exported.write(self.path, tensors, metadata)
        return stiefel.torch.load(self.path, **options)

    def made(self, cell, **options):
        """The module of a random network, and its outputs in NumPy as a function of one sequence."""
        tensors, metadata = exported.network(cell, **options)
        return self.loaded(tensors, metadata), lambda inputs: exported.run(tensors, metadata, inputs)

    def random(self, *shape):
        return torch.from_numpy(self.rng.standard_normal(shape))

    def expect(self, network, reference, inputs, tolerance=1e-12):
        """`tolerance`: of the largest output, or of 1."""
        found = network(torch.from_numpy(inputs)).detach().numpy()
        expected = np.stack([reference(sequence) for sequence in inputs])
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1, abs(expected).max()))
        self.assertGreater(np.ptp(expected), 0.1)
