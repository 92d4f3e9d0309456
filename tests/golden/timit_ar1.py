#!/usr/bin/python3
"""What simple predictors reach on a part of TIMIT: the mean of the training targets, and for each of the 129 bins the first-order autoregression
with the least squared error, level[t + 1] ≈ a level[t] + b, fitted on the training speakers.

tests/golden/timit_ar1.py FOLDER prints the mean squared errors of the three sets, for the speakers that `task: {plugin: timit_prediction, split:
speakers}` chooses by default; FOLDER holds dr1-fvmh0/sa1.wav and so on, as in NLTK's sample. tests/unit/timit_prediction_test.cpp has the numbers.
"""
import sys
from pathlib import Path

import numpy as np
import scipy.signal


def samples(path):
    """16-bit samples behind the header, of 44 bytes for RIFF and of 1024 for SPHERE."""
    data = path.read_bytes()
    return np.frombuffer(data[1024 if data.startswith(b"NIST") else 44 :], dtype="<i2") / 32768


def levels(path):
    halved = np.clip(np.round(scipy.signal.resample_poly(samples(path), 1, 2, window=("kaiser", 5.0)) * 32768), -32768, 32767) / 32768
    padded = np.concatenate([np.zeros(256), halved, np.zeros(-len(halved) % 128), np.zeros(256)])
    window = scipy.signal.get_window("hann", 256)
    X = scipy.signal.stft(padded, window=window, nperseg=256, noverlap=128, boundary=None, padded=False)[2] * window.sum()
    return 10 * np.log10(1e-5 + np.abs(X) ** 2)


def split(folder, test=4, validation=2, seed=1):
    """Folders of speakers: {"train": …, "validation": …, "test": …}."""
    random, sets = np.random.RandomState(seed), {"train": [], "validation": [], "test": []}
    for sex in "fm":
        names = sorted((path for path in folder.glob(f"dr?-{sex}*")), key=lambda path: path.name[4:])
        order = random.permutation(len(names))
        for place, i in enumerate(order):
            kind = "test" if place < test // 2 else "validation" if place < (test + validation) // 2 else "train"
            sets[kind].append(names[i])
    return sets


def main(folder):
    spectra = {}
    for name, speakers in split(folder).items():
        spectra[name] = [levels(path) for speaker in speakers for path in sorted(speaker.glob("s[ix]*.wav"))]
    x = np.concatenate([s[:, :-1] for s in spectra["train"]], axis=1)
    y = np.concatenate([s[:, 1:] for s in spectra["train"]], axis=1)
    mean = y.mean(axis=1, keepdims=True)
    centred = x - x.mean(axis=1, keepdims=True)
    a = (centred * (y - mean)).sum(axis=1, keepdims=True) / (centred**2).sum(axis=1, keepdims=True)
    b = mean - a * x.mean(axis=1, keepdims=True)
    for name, several in spectra.items():
        x = np.concatenate([s[:, :-1] for s in several], axis=1)
        y = np.concatenate([s[:, 1:] for s in several], axis=1)
        print(
            f"{name:10} {len(several):3} utterances {x.shape[1]:6} steps   mean {((y - mean) ** 2).mean():.6f}   the frame before "
            f"{((y - x) ** 2).mean():.6f}   autoregression {((y - a * x - b) ** 2).mean():.6f}"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
