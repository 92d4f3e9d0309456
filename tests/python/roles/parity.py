"""The parity of random bits, as in tests/plugins_ok/parity.cpp."""

import numpy as np
import stiefel


def splitmix64(seed, counter):
    x = np.uint64(seed * 0xD1342543DE82EF95 % 2**64) + (counter.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class Parity(stiefel.Task):
    length: int = 30  # number of bits

    def shape(self):
        return {"input_size": 1, "output_size": 2, "readout": "last", "labels": True, "steps": self.length}

    def batches(self, split):
        return 100 if split == "train" else 4

    def batch(self, split, index):
        first = (index * 3 + ("train", "validation", "test").index(split)) * 50
        counter = (first + np.arange(50))[:, None] * self.length + np.arange(self.length)
        bits = (splitmix64(self.seed, counter) >> np.uint64(63)).astype(int)
        return {"inputs": 2.0 * bits[..., None] - 1, "labels": bits.sum(1) % 2}
