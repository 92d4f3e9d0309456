import numpy as np
import stiefel


class Parity(stiefel.Task):
    length: int = 30  # number of bits

    def shape(self):
        return {"input_size": 1, "output_size": 2, "readout": "last", "labels": True, "steps": self.length}

    def batches(self, split):
        return 100 if split == "train" else 4

    def batch(self, split, index):
        bits = self.rng(split, index).integers(0, 2, (50, self.length))
        return {"inputs": 2.0 * bits[..., None] - 1, "labels": bits.sum(1) % 2}
