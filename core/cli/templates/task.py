"""Recall: a sequence of random numbers; the target at the last step is the first one.

x_t ~ U[0, 1)      target = x_1      loss = (o − target)²      predicting 1/2 costs Var(x_1) = 1/12
"""

import numpy as np
import stiefel


class CLASS(stiefel.Task):
    length: int = 20  # number of steps T
    baseline = 1 / 12
    trivial = [0.5]

    def shape(self):
        return {"input_size": 1, "output_size": 1, "readout": "last", "steps": self.length}

    def batches(self, split):
        return 1000 if split == "train" else -(-500 // self.batch_size)

    def batch(self, split, index):
        first = index * self.batch_size
        last = first + self.batch_size if split == "train" else min(first + self.batch_size, 500)
        # One random stream for each sequence: validation and test sets do not depend on the size of a batch.
        x = np.stack([self.rng(split, number).random((self.length, 1)) for number in range(first, last)])
        return {"inputs": x, "targets": x[:, 0]}
