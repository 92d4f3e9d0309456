#!/usr/bin/python3
"""Files that other programs write are read as what was written: CSV, .npy, WAV, FLAC and MIDI files.

usage: other_programs_test.py PROGRAM

The same numbers, sounds or notes are written by every program that is there, in every form that it has. The first loss of
an untrained network and the loss of the constant predictor, which Python computes as well, must be the same for all.
"""
import collections
import csv
import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import wave
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy

try:
    import pandas
except ImportError:
    pandas = None
try:
    from scipy.io import wavfile
except ImportError:
    wavfile = None
try:
    import soundfile
except ImportError:
    soundfile = None
try:
    import mido
except ImportError:
    mido = None

PROGRAM = sys.argv[1]
COUNT, STEPS = 12, 5
VALUES = numpy.random.default_rng(1).integers(-100, 100, size=(COUNT, STEPS, 3))  # a, b and the target y
SAMPLES = numpy.random.default_rng(2).integers(-64, 64, size=(400, 2)) / 64  # exact in 8 bits
RATE, TICKS = 16000, 96
NOTES = [(key, start, start + length) for key, start, length in zip(range(40, 88, 4), range(12), itertools.cycle((1, 2, 4)))]  # in quarters
EXPERIMENT = {"name": "other", "model": {"cell": {"plugin": "elman", "hidden": 8}, "recurrent": "dense"}, "optimizer": "sgd",
              "train": {"batch": COUNT, "steps": 1}, "threads": 1}

Written = collections.namedtuple("Written", "by path task")


def octave(folder, script):
    subprocess.run(["octave-cli", "--no-init-file", "--quiet", "--eval", script], cwd=folder, check=True, capture_output=True)


def tables(folder):
    """CSV files, with a row for each step."""
    rows = numpy.column_stack([numpy.repeat(numpy.arange(COUNT), STEPS), VALUES.reshape(-1, 3)])
    names = ["name", "a", "b", "y"]
    task = {"sequence": "name", "targets": ["y"], "features": ["a", "b"], "readout": "every"}

    def written(by, separator=","):
        path = folder / f"{by} {len(list(folder.glob('*.csv')))}.csv"
        return Written(by, path, {**task, "data": str(path), "separator": separator})
    for separator in ",;\t|":
        for form in "%d", "%g", "%.18e", "%+.3f", "%10.2f":
            new = written("numpy.savetxt", separator)
            numpy.savetxt(new.path, rows, form, separator, header=separator.join(names), comments="")
            yield new
        for end, quoting in itertools.product(("\n", "\r\n"), (csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)):
            new = written("csv", separator)
            with open(new.path, "w", newline="", encoding="utf-8") as file:
                csv.writer(file, delimiter=separator, quoting=quoting, lineterminator=end).writerows([names, *rows.tolist()])
            yield new
        if pandas:
            frame = pandas.DataFrame(rows, columns=names)
            for encoding, kind, form, quoting in itertools.product(("utf-8", "utf-8-sig"), (int, float), (None, "%.6e"), (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)):
                new = written("pandas", separator)
                frame.astype(kind)[["y", "b", "name", "a"]].to_csv(new.path, sep=separator, encoding=encoding, float_format=form, quoting=quoting, index_label="row")
                yield new
        if shutil.which("octave-cli"):
            new = written("octave", separator)
            form = separator.join(["%d", "%g", "%.3f", "%e"]).replace("\t", "\\t") + "\\n"
            octave(folder, f"f = fopen('{new.path}', 'w'); fprintf(f, '{separator.join(names)}\\n'); fprintf(f, \"{form}\", {json.dumps(rows.tolist())}'); fclose(f);")
            yield new


def arrays(folder):
    """.npy files of numpy."""
    for kind, order, version in itertools.product(("i1", "i2", "i4", "i8", "f4", "f8"), "CF", ((1, 0), (2, 0), (3, 0))):
        paths = [folder / f"{kind}{order}{version[0]} {name}.npy" for name in ("inputs", "targets")]
        for path, values in zip(paths, (VALUES[:, :, :2], VALUES[:, :, 2])):
            with open(path, "wb") as file:
                numpy.lib.format.write_array(file, numpy.asarray(values, kind, order=order), version)
        yield Written("numpy", paths[0], {"data": {"file": str(paths[0]), "targets": str(paths[1])}, "readout": "every"})


def sounds(folder, channels):
    """WAV and FLAC files with one or two channels."""
    samples = SAMPLES[:, :channels]
    # What each type makes of 1, and where its 0 is.
    kinds = {"u1": (128, 128), "i2": (1 << 15, 0), "i4": (1 << 31, 0), "f4": (1, 0), "f8": (1, 0)}
    as_kind = {kind: (samples * scale + zero).astype(kind) for kind, (scale, zero) in kinds.items()}

    def written(by, ending="wav"):
        path = folder / f"{by} {len(list(folder.iterdir()))}.{ending}"
        return Written(by, path, {"file": str(path)})
    for width, bits in (1, as_kind["u1"].tobytes()), (2, as_kind["i2"].tobytes()), (4, as_kind["i4"].tobytes()), (3, b"".join(v.tobytes()[1:] for v in as_kind["i4"].reshape(-1))):
        for rate in 8000, RATE, 44100:
            new = written("wave")
            with wave.open(str(new.path), "wb") as file:
                file.setparams((channels, width, rate, 0, "NONE", ""))
                file.writeframes(bits)
            yield new
    for kind, rate in itertools.product(kinds if wavfile else (), (8000, RATE, 44100)):
        new = written("scipy")
        wavfile.write(new.path, rate, as_kind[kind])
        yield new
    if soundfile:
        for form, subtypes in soundfile.available_formats().items():
            for subtype in soundfile.available_subtypes(form) if form in ("WAV", "WAVEX", "FLAC") else ():
                if subtype.startswith("PCM") or subtype in ("FLOAT", "DOUBLE"):
                    new = written(f"soundfile {form} {subtype}", "flac" if form == "FLAC" else "wav")
                    soundfile.write(new.path, samples, RATE, subtype, format=form)
                    yield new
    if shutil.which("octave-cli"):
        news = [(written(f"octave {bits}", ending), bits) for ending, bits in (("wav", 8), ("wav", 16), ("wav", 24), ("wav", 32), ("flac", 16), ("flac", 24))]
        octave(folder, f"y = reshape({json.dumps(samples.ravel().tolist())}, {channels}, [])';" + "".join(f"audiowrite('{new.path}', y, {RATE}, 'BitsPerSample', {bits});" for new, bits in news))
        yield from (new for new, _ in news)
    if shutil.which("sox"):
        raw = folder / "sound.raw"
        raw.write_bytes(as_kind["i4"].tobytes())
        for ending, bits, coding in ("wav", 8, "unsigned"), ("wav", 16, "signed"), ("wav", 24, "signed"), ("wav", 32, "signed"), ("wav", 32, "floating-point"), ("flac", 16, "signed"), ("flac", 24, "signed"):
            new = written(f"sox {bits} {coding}", ending)
            subprocess.run(["sox", "-D", "-t", "raw", "-r", str(RATE), "-c", str(channels), "-b", "32", "-e", "signed", raw, "-b", str(bits), "-e", f"{coding}{'-integer' * (coding != 'floating-point')}", new.path], check=True)
            yield new
        raw.unlink()


def music(folder):
    """Folders of MIDI files by mido, in one track or one for each key, with notes that end in both ways."""
    for type_, ticks, off, tempo in itertools.product((0, 1), (24, TICKS, 480, 960), ("note_off", "note_on"), (None, 250000)) if mido else ():
        place = folder / f"{type_} {ticks} {off} {tempo}"
        file = mido.MidiFile(type=type_, ticks_per_beat=ticks)
        parts = [NOTES[i::3] for i in range(3)] if type_ else [NOTES]
        for part in parts:
            track = mido.MidiTrack()
            if tempo:
                track.append(mido.MetaMessage("set_tempo", tempo=tempo))
            events = sorted([(start, 1, key) for key, start, _ in part] + [(end, 0, key) for key, _, end in part])
            before = 0
            for at, begins, key in events:
                track.append(mido.Message("note_on" if begins else off, note=key, velocity=64 if begins else 0, time=(at - before) * ticks))
                before = at
            file.tracks.append(track)
        for split in "train", "valid", "test":
            (place / split).mkdir(parents=True)
            file.save(place / split / "song.mid")
        yield Written(f"mido type {type_}", place, {"folder": str(place), "steps_per_quarter": 1})


def read(plugin, written, **more):
    """The first loss and that of the constant predictor, as text, or what was said instead."""
    file = written.path.with_name(written.path.name + ".yaml")
    file.write_text(json.dumps({**EXPERIMENT, "task": {"plugin": plugin, **written.task, **more}}))
    done = subprocess.run([PROGRAM, "run", file, "--dry-run", "--threads", "1"], capture_output=True, text=True)
    found = re.search(r"^first loss (\S+) \(constant predictor: (\S+)\)$", done.stdout, re.M)
    return found.groups() if done.returncode == 0 and found else done.stderr


def main():
    counts, wrong = collections.Counter(), []
    deviation = VALUES[:, :, 2].var()
    keys = numpy.zeros((88, max(end for *_, end in NOTES)))
    for key, start, end in NOTES:
        keys[key - 21, start:end] = 1
    keys = keys[:, 1:]  # the frames that are predicted
    share = (keys.sum(axis=1, keepdims=True) + 0.01) / (keys.shape[1] + 0.02)
    entropy = -numpy.where(keys, numpy.log(share), numpy.log1p(-share)).sum() / keys.shape[1]
    everything = {"validation_fraction": 0, "test_fraction": 0}
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(2) as pool:
        for name, write, plugin, more, baseline in (
                ("tables", tables, "sequence_csv", everything, deviation), ("arrays", arrays, "sequence_csv", everything, deviation),
                ("mono", lambda folder: sounds(folder, 1), "sequence_generation", {"length": len(SAMPLES), "scale": "none"}, SAMPLES[:, 0].var()),
                ("stereo", lambda folder: sounds(folder, 2), "sequence_generation", {"length": len(SAMPLES), "scale": "none"}, SAMPLES.mean(axis=1).var()),
                ("music", music, "polyphonic", {}, entropy)):
            folder = Path(scratch) / name
            folder.mkdir()
            files = list(write(folder))
            answers = list(pool.map(lambda file: read(plugin, file, **more), files))
            for file, answer in zip(files, answers):
                counts[f"{file.by.split()[0]} ({name})"] += 1
                if answer != answers[0] or len(answer) != 2 or abs(float(answer[1]) / baseline - 1) > 1e-5:
                    wrong.append(f"{name}: {file.by}, {file.path.name}: {answer}, not {answers[0]} and {baseline}")
    print("\n".join(wrong))
    print(f"{counts.total()} files: " + ", ".join(f"{count} of {by}" for by, count in sorted(counts.items())))
    return 1 if wrong or counts.total() < 150 else 0


if __name__ == "__main__":
    sys.exit(main())
