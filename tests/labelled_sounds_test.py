#!/usr/bin/python3
"""The task labelled_sounds on tones that are made here, against features by NumPy.

usage: labelled_sounds_test.py PROGRAM PLUGIN
"""
import csv
import io
import json
import re
import subprocess
import sys
import tempfile
import unittest
import wave
from pathlib import Path

import h5py
import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "golden"))
from signal_processing import log_bands, mfcc

PROGRAM, PLUGIN = sys.argv[1:3]
CLASSES, EACH = {"high": 1500, "low": 300, "noise": 0}, 20

EXPERIMENT = """
name: sounds
scalar: float64
task: {{plugin: labelled_sounds, {task}}}
model:
  cell: {{plugin: gru, hidden: 8}}
  recurrent: dense
optimizer: {{plugin: adam, rate: 0.02}}
train: {{batch: 8, steps: 40, evaluate_every: 20}}
"""


def write_sound(path, samples, rate=16000):
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, len(samples), "NONE", ""))
        file.writeframes(np.asarray(samples, "<i2").tobytes())


class LabelledSounds(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)
        rng = np.random.default_rng(1)
        self.samples, self.label = {}, {}
        for name, pitch in CLASSES.items():
            (self.folder / "sounds" / name).mkdir(parents=True)
            for i in range(EACH):
                time = np.arange(rng.integers(1000, 2000)) / 16000
                sound = 2000 * rng.normal(size=len(time)) + 8000 * np.sin(2 * np.pi * pitch * rng.uniform(0.9, 1.1) * time)
                path = f"{name}/{i:02}.wav"
                self.samples[path], self.label[path] = np.round(sound).astype("<i2"), name
                write_sound(self.folder / "sounds" / path, self.samples[path])
        (self.folder / "sounds" / "README.txt").write_text("not a class")
        (self.folder / "sounds" / "low" / ".hidden").write_text("no sound")
        paths = list(self.samples)
        rng.shuffle(paths)
        self.parts = {"train": paths[:40], "validation": paths[40:50], "test": paths[50:]}
        for part, names in self.parts.items():
            self.write_list(f"{part}.csv", [(f"sounds/{name}", self.label[name]) for name in names])

    FILES = "train: train.csv, validation: validation.csv, test: test.csv"

    def write_list(self, name, rows):
        with open(self.folder / name, "w", newline="") as file:
            csv.writer(file).writerows([("file", "label"), *rows])

    def stiefel(self, *words, code=0):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, code, f"stiefel {words}:\n{done.stdout}{done.stderr}")
        return done.stderr if code else done.stdout

    def experiment(self, task):
        (self.folder / "sounds.yaml").write_text(EXPERIMENT.format(task=task))

    def run_it(self, task, name):
        self.experiment(task)
        self.stiefel("run", "sounds.yaml", f"name={name}")
        (run,) = (self.folder / "runs" / name).iterdir()
        return run

    def predict(self, run, file):
        return list(csv.DictReader(io.StringIO(self.stiefel("predict", run, "--input", file))))

    def features(self, kind, path):
        x = self.samples[path] / 32768
        if kind == "raw":
            return np.append(x, np.zeros(-len(x) % 100)).reshape(-1, 100)
        return (mfcc if kind == "mfcc" else log_bands)(x, 16000)

    def test_features(self):
        for kind, more in (("mfcc", ""), ("log_bands", ", features: log_bands"), ("raw", ", features: raw, samples: 100")):
            with self.subTest(kind):
                run = self.run_it(f"{self.FILES}{more}, metrics: [accuracy, confusion]", kind)
                steps = np.concatenate([self.features(kind, path) for path in self.parts["train"]])
                with h5py.File(run / "checkpoints" / "best.h5") as file:
                    np.testing.assert_allclose(file["task/input_mean"][()], steps.mean(0), atol=1e-8)
                    np.testing.assert_allclose(file["task/input_scale"][()], steps.std(0), rtol=1e-8)
                    self.assertEqual([name.decode() for name in file["task/outputs"][()]], sorted(CLASSES))
                right, counted = 0, {}
                (self.folder / "train.csv").rename(self.folder / "away.csv")  # a trained network needs no data
                for path in self.parts["test"]:
                    (row,) = self.predict(run, f"sounds/{path}")
                    features = self.features(kind, path)
                    np.save(self.folder / "one.npy", features[None])
                    (same,) = self.predict(run, "one.npy")
                    self.assertEqual((row["step"], row["class"]), (str(len(features) - 1), same["class"]))
                    for name in CLASSES:
                        self.assertAlmostEqual(float(row[f"p_{name}"]), float(same[f"p_{name}"]), 6)
                    counted[self.label[path], row["class"]] = counted.get((self.label[path], row["class"]), 0) + 1
                    right += row["class"] == self.label[path]
                (self.folder / "away.csv").rename(self.folder / "train.csv")
                found = json.loads(self.stiefel("evaluate", run, "--json"))["values"]
                self.assertAlmostEqual(found["accuracy"], right / len(self.parts["test"]))
                with open(run / "outcome" / "confusion.csv") as file:
                    table = {(row["target"], name): int(row[name]) for row in csv.DictReader(file) for name in CLASSES}
                self.assertEqual({pair: count for pair, count in table.items() if count}, counted)
                if kind != "raw":
                    self.assertGreater(right, 6)

    def test_folder(self):
        self.experiment("data: sounds, split_seed: 3")
        said = self.stiefel("run", "sounds.yaml", "--dry-run")
        self.assertIn("48 train, 6 validation, 6 test targets", said)
        self.assertIn("24 train, 6 validation, 30 test targets", self.stiefel("run", "sounds.yaml", "--dry-run", "task.folds=2", "task.validation_fraction=0.1"))
        run = self.run_it("data: sounds", "folder")
        with h5py.File(run / "results.h5") as file:
            listed = [name.decode() for name in file["provenance/datasets/name"][()]]
        self.assertEqual(sorted(listed), sorted(f"sounds/{path}" for path in self.samples))

    def test_rates(self):
        """A sound at another rate is converted: half as many samples of it are as many steps."""
        path = self.parts["test"][0]
        write_sound(self.folder / "slow.wav", self.samples[path][::2], 8000)
        run = self.run_it(f"{self.FILES}, features: raw, samples: 10, rate: 8000", "slow")
        (slow,), (fast,) = self.predict(run, "slow.wav"), self.predict(run, f"sounds/{path}")
        self.assertEqual(slow["step"], fast["step"])
        self.assertEqual(int(slow["step"]), -(-len(self.samples[path][::2]) // 10) - 1)

    def test_refusals(self):
        self.experiment("data: sounds")
        sound = self.folder / "sounds" / "low" / "00.wav"
        for act, message in ((lambda: sound.write_text("text"), r"sounds/low/00.wav: .*Correct the file, or remove it."),
                             (lambda: write_sound(sound, [1] * 100), r"sounds/low/00.wav: shorter than a window of 25 ms"),
                             (lambda: (sound.unlink(), sound.mkdir()), r"sounds/low/00.wav: not a file")):
            act()
            self.assertRegex(self.stiefel("validate", "sounds.yaml", code=4), message)
        (self.folder / "empty").mkdir()
        self.assertIn("empty: there are no sounds", self.stiefel("validate", "sounds.yaml", "task.data=empty", code=4))
        self.assertRegex(self.stiefel("validate", "sounds.yaml", "task.data=none", code=4), "labelled_sounds: .*none")
        sound.rmdir()
        write_sound(sound, self.samples["low/00.wav"])
        self.experiment("train: train.csv, test: other.csv")
        rows = [(f"sounds/{self.parts['test'][0]}", "loud")]
        self.write_list("other.csv", rows)
        self.assertRegex(self.stiefel("validate", "sounds.yaml", code=4), r'other.csv:2:\d+: no training sound has the class "loud"')
        self.write_list("other.csv", [("sounds/none.wav", "low")])
        self.assertIn('other.csv:2:1: there is no file "sounds/none.wav" in ', self.stiefel("validate", "sounds.yaml", code=4))
        self.assertIn("task.features", self.stiefel("validate", "sounds.yaml", "task.features=fft", code=2))
        self.experiment("data: sounds, train: train.csv")
        self.assertIn("cannot be combined with `data`", self.stiefel("validate", "sounds.yaml", code=2))
        self.experiment(f"{self.FILES}, metrics: [rmse]")
        self.assertIn("holds rmse, which is not for `kind: classification`", self.stiefel("validate", "sounds.yaml", code=2))

    def test_check(self):
        said = self.stiefel("check", PLUGIN, f"train={self.folder}/train.csv", f"validation={self.folder}/validation.csv", f"test={self.folder}/test.csv")
        self.assertRegex(said, r"passed: \d\d+ checks")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
