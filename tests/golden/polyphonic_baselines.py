#!/usr/bin/python3
"""What predictors without and with a memory of one step reach on polyphonic music, in nats per predicted frame of the test pieces.

usage: polyphonic_baselines.py [FOLDER]; FOLDER holds polyphonic/mat/*.mat, else STIEFEL_DATA names it. Numbers of training frames are counted
for each key, 0.01 is added to every count: marginal P(y_t = 1); Markov P(y_t = 1 | y_{t-1}). Averages over all frames, and the mean over
pieces of the means of their frames. The MATLAB files are read here by zlib and NumPy alone.
"""
import os
import pathlib
import struct
import sys
import zlib

import numpy

KNOWN = {"JSB_Chorales": (11.09, 10.49), "Piano_midi": (11.05, 8.27), "Nottingham": (10.26, 5.15), "MuseData": (11.52, 8.56)}
STORED = {1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8"}
MATRIX, COMPRESSED = 14, 15


def elements(data):
    """(type, bytes) of the elements in a piece of a MATLAB file."""
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind >> 16:
            yield kind & 0xFFFF, data[at + 4:at + 4 + (kind >> 16)]
            at += 8
        else:
            yield kind, data[at + 8:at + 8 + size]
            at += 8 + (size if kind == COMPRESSED else -(-size // 8) * 8)


def pieces(file):
    """Piano rolls by variable: {"traindata": [steps x 88, ...], ...}."""
    cells = {}
    for kind, packed in elements(file.read_bytes()[128:]):
        (_, cell), = elements(zlib.decompress(packed)) if kind == COMPRESSED else [(kind, packed)]
        _, _, (_, name), *arrays = elements(cell)
        cells[bytes(name).decode()] = rolls = []
        for _, array in arrays:
            _, (_, sizes), _, (stored, numbers) = elements(array)
            rolls.append(numpy.frombuffer(numbers, STORED[stored]).reshape(struct.unpack("<ii", sizes), order="F").astype(int))
    return cells


def averages(losses):
    return numpy.concatenate(losses).mean(), numpy.mean([loss.mean() for loss in losses])


def baselines(cells):
    """(per frame, per piece) of the marginal and of the Markov predictor."""
    train, test = cells["traindata"], cells["testdata"]
    counts = numpy.zeros((2, 2, 88))  # before, now, key
    for roll in train:
        for before in (0, 1):
            for now in (0, 1):
                counts[before, now] += ((roll[:-1] == before) & (roll[1:] == now)).sum(0)
    marginal = (counts.sum(0) + 0.01) / (counts.sum((0, 1)) + 0.02)
    markov = (counts + 0.01) / (counts.sum(1, keepdims=True) + 0.02)
    keys = numpy.arange(88)
    return (averages([-numpy.log(marginal[roll[1:], keys]).sum(1) for roll in test]),
            averages([-numpy.log(markov[roll[:-1], roll[1:], keys]).sum(1) for roll in test]))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("STIEFEL_DATA")
    files = {name: pathlib.Path(folder or "") / "polyphonic/mat" / f"{name}.mat" for name in KNOWN}
    if not folder or not all(file.exists() for file in files.values()):
        print("skipped: STIEFEL_DATA names no folder with polyphonic/mat/")
        return 0
    wrong = 0
    print("set           marginal: per frame, per piece   Markov: per frame, per piece")
    for name, known in KNOWN.items():
        marginal, markov = baselines(pieces(files[name]))
        print(f"{name:13} {marginal[0]:19.2f} {marginal[1]:10.2f} {markov[0]:19.2f} {markov[1]:10.2f}")
        wrong += (round(marginal[0], 2), round(markov[0], 2)) != known
    if wrong:
        print(f"{wrong} sets differ from the known values per frame: {KNOWN}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
