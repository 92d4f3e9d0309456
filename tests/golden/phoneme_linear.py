#!/usr/bin/python3
"""What a linear classifier reaches on the phonemes of a part of TIMIT: softmax regression on the 26 features of one window, fitted by L-BFGS
to the training speakers. Features, labels and sets are those of `task: {plugin: timit_phonemes, split: speakers}`, computed by NumPy.

tests/golden/phoneme_linear.py FOLDER prints the share of windows that are classified wrongly; FOLDER holds dr1-fvmh0/sa1.wav and so on.
"""
import sys
from pathlib import Path

import numpy as np
import scipy.optimize

import signal_processing
import timit_ar1

RATE = 16000


def windows(path):
    """Features, and the label of the phone at the middle of each window, or None in a gap."""
    features = signal_processing.mfcc(timit_ar1.samples(path), RATE)
    phones = [line.split() for line in path.with_suffix(".phn").read_text().splitlines()]
    labels = []
    for t in range(len(features)):
        middle = t * RATE // 100 + RATE // 80
        around = [label for start, end, label in phones if int(start) <= middle < int(end)]
        labels.append(around[0] if around else phones[-1][2] if middle >= int(phones[-1][1]) else None)
    return features, labels


def fit(x, y, classes):
    """Weights, with the offset in the last row."""
    rows = np.arange(len(y))

    def loss(flat):
        scores = x @ flat.reshape(-1, classes)
        scores -= scores.max(1, keepdims=True)
        shares = np.exp(scores)
        shares /= shares.sum(1, keepdims=True)
        value = -np.log(shares[rows, y]).mean()
        shares[rows, y] -= 1
        return value, (x.T @ shares / len(y)).ravel()

    answer = scipy.optimize.minimize(loss, np.zeros(x.shape[1] * classes), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return answer.x.reshape(-1, classes)


def main(folder):
    sets = {}
    for name, speakers in timit_ar1.split(folder).items():
        parts = [windows(path) for speaker in speakers for path in sorted(speaker.glob("s[ix]*.wav"))]
        sets[name] = np.concatenate([features for features, _ in parts]), [label for _, labels in parts for label in labels]
    names = sorted({label for _, labels in sets.values() for label in labels if label})
    mean, deviation = sets["train"][0].mean(0), sets["train"][0].std(0)
    for name, (features, labels) in sets.items():
        kept = [i for i, label in enumerate(labels) if label]
        x = np.column_stack([((features - mean) / deviation)[kept], np.ones(len(kept))])
        sets[name] = x, np.array([names.index(labels[i]) for i in kept])
    weights = fit(*sets["train"], len(names))
    for name, (x, y) in sets.items():
        print(f"{name:10} {len(y):6} windows   error rate {(np.argmax(x @ weights, 1) != y).mean():.4f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
