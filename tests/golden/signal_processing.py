#!/usr/bin/python3
"""Numbers that tests/unit/signal_test.cpp compares with, from SciPy (short-time Fourier transform, resampling) and from second implementations in
NumPy, written from the formulas of HTK's book (MFCC) and from Taal et al. 2011 (STOI).

tests/golden/signal_processing.py > tests/golden/signal_processing.json writes them; with the name of that file as its argument the program says
whether the file still holds what it computes.
"""
import json
import sys

import numpy as np
import scipy.signal


def noise(count, seed):
    """Uniform in [−1, 1), from a linear congruential generator, the same in the test."""
    state, values = seed, np.empty(count)
    for i in range(count):
        state = (1664525 * state + 1013904223) % 2**32
        values[i] = state / 2**31 - 1
    return values


def speech(count, rate, seed):
    """Something like speech: harmonics of a gliding tone that come and go three times a second, with some noise and silence between."""
    t = np.arange(count) / rate
    tone = sum(np.sin(2 * np.pi * h * (110 * t + 15 * t * t)) / h for h in range(1, 13))
    envelope = np.maximum(np.sin(2 * np.pi * 3 * t + seed), 0) ** 2
    return envelope * (0.1 * tone + 0.05 * noise(count, seed))


def stft(x):
    padded = np.concatenate([np.zeros(256), x, np.zeros(-len(x) % 128), np.zeros(256)])
    window = scipy.signal.get_window("hann", 256)
    X = scipy.signal.stft(padded, window=window, nperseg=256, noverlap=128, boundary=None, padded=False)[2]
    return X * window.sum()  # scipy divides by it


def frames_of(x, rate):
    window, hop = rate // 40, rate // 100
    return np.lib.stride_tricks.sliding_window_view(np.asarray(x) * 32768, window)[::hop]


def log_bands(x, rate):
    frames = frames_of(x, rate)
    emphasised = np.concatenate([0.03 * frames[:, :1], frames[:, 1:] - 0.97 * frames[:, :-1]], axis=1)
    magnitudes = np.abs(np.fft.rfft(emphasised * np.hamming(frames.shape[1]), 512))

    def mel(f):
        return 1127 * np.log(1 + np.asarray(f) / 700)

    corners = np.linspace(0, mel(rate / 2), 28)
    bins = mel(np.arange(257) * rate / 512)
    filters = np.array([np.interp(bins, corners[j : j + 3], [0, 1, 0], left=0, right=0) for j in range(26)])
    return np.log(np.maximum(magnitudes @ filters.T, 1))


def mfcc(x, rate):
    logs, energy = log_bands(x, rate), np.log(np.maximum((frames_of(x, rate)**2).sum(1), 1))
    i, j = np.arange(1, 13)[:, None], np.arange(1, 27)
    cepstrum = logs @ (np.sqrt(2 / 26) * np.cos(np.pi * i / 26 * (j - 0.5))).T * (1 + 11 * np.sin(np.pi * i[:, 0] / 22))
    static = np.column_stack([cepstrum, energy])
    longer = np.pad(static, ((2, 2), (0, 0)), mode="edge")
    n = len(static)
    slopes = sum(theta * (longer[2 + theta : 2 + theta + n] - longer[2 - theta : 2 - theta + n]) for theta in (1, 2)) / 10
    return np.hstack([static, slopes])


def stoi(clean, processed, rate):
    def at_10_khz(x):
        common = np.gcd(10000, rate)
        return scipy.signal.resample_poly(x, 10000 // common, rate // common) if rate != 10000 else np.asarray(x)

    x, y = at_10_khz(clean), at_10_khz(processed)
    window = scipy.signal.windows.hann(258)[1:-1]

    def framed(signal):
        return np.array([signal[s : s + 256] * window for s in range(0, len(signal) - 255, 128)])

    x_frames, y_frames = framed(x), framed(y)
    energies = 10 * np.log10((x_frames**2).sum(1) + 1e-300)
    loud = energies > energies.max() - 40

    def joined(frames):
        signal = np.zeros(128 * (len(frames) - 1) + 256)
        for i, frame in enumerate(frames):
            signal[128 * i : 128 * i + 256] += frame
        return signal

    spectra = [np.fft.rfft(framed(joined(frames[loud])), 512) for frames in (x_frames, y_frames)]
    centres = 150 * 2.0 ** (np.arange(15) / 3)
    frequencies = np.arange(257) * 10000 / 512
    edges = [[np.argmin(np.abs(frequencies - c * 2 ** (side / 6))) for side in (-1, 1)] for c in centres]
    X, Y = [np.array([np.sqrt((np.abs(S[:, low:high]) ** 2).sum(1)) for low, high in edges]) for S in spectra]
    scores = []
    for m in range(30, X.shape[1] + 1):
        for j in range(15):
            a, b = X[j, m - 30 : m], Y[j, m - 30 : m]
            b = np.minimum(b * np.linalg.norm(a) / np.linalg.norm(b), a * (1 + 10 ** (15 / 20)))
            scores.append(np.corrcoef(a, b)[0, 1])
    return np.mean(scores)


def stoi_pairs():
    """Ten pairs: speech with noise of several strengths at three rates, clipped, smoothed, and mixed with other speech."""
    for i, (rate, strength, kind) in enumerate(
        [
            (10000, 0.0, "noise"),
            (10000, 0.01, "noise"),
            (10000, 0.1, "noise"),
            (10000, 0.5, "noise"),
            (8000, 0.02, "noise"),
            (8000, 0.2, "noise"),
            (16000, 0.05, "noise"),
            (10000, 0.02, "clipped"),
            (8000, 0.0, "smoothed"),
            (10000, 0.5, "other"),
        ]
    ):
        x = speech(2 * rate, rate, i + 1)
        if kind == "noise":
            y = x + strength * noise(len(x), 100 + i)
        elif kind == "clipped":
            y = np.clip(x, -strength, strength)
        elif kind == "smoothed":
            y = np.convolve(x, np.ones(8) / 8)[: len(x)]
        else:
            y = x + strength * speech(len(x), rate, 50 + i)
        yield {"rate": rate, "strength": strength, "kind": kind, "seed": i + 1, "stoi": stoi(x, y, rate)}


def numbers():
    x = speech(1000, 8000, 1)
    X = stft(x[100:500])
    return {
        "stft": {"real": X.real.T.tolist(), "imaginary": X.imag.T.tolist()},
        "halved": scipy.signal.resample_poly(x[:301], 1, 2, window=("kaiser", 5.0)).tolist(),
        "five_fourths": scipy.signal.resample_poly(x[:200], 5, 4, window=("kaiser", 5.0)).tolist(),
        "mfcc": mfcc(speech(2000, 16000, 2), 16000).tolist(),
        "stoi": list(stoi_pairs()),
    }


def differences(a, b, where=""):
    if isinstance(a, (dict, list)) and type(a) is type(b) and len(a) == len(b):
        for key in a if isinstance(a, dict) else range(len(a)):
            yield from differences(a[key], b[key], f"{where}/{key}")
    elif isinstance(a, float) and isinstance(b, float):
        if not abs(a - b) <= 1e-9 * max(1, abs(a)):
            yield f"{where}: {a}, now {b}"
    elif a != b:
        yield f"{where}: differs"


if __name__ == "__main__":
    if len(sys.argv) == 1:
        json.dump(numbers(), sys.stdout)
        print()
    else:
        wrong = list(differences(json.load(open(sys.argv[1])), json.loads(json.dumps(numbers()))))
        print("\n".join(wrong[:20]) or "the file holds what SciPy and NumPy compute")
        sys.exit(1 if wrong else 0)
