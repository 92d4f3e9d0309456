#!/usr/bin/python3
"""A flipped bit of a network or of results.h5 is refused before the file is used: damage_test.py STIEFEL PLUGINS

PLUGINS is a folder with the task round_text.
"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, PLUGINS = sys.argv[1:]
EXPERIMENT = """name: damaged
task: {plugin: round_text}
model: {cell: {plugin: elman, hidden: 8}, recurrent: {plugin: householder, reflections: 4}}
optimizer: {plugin: adam, rate: 0.01}
train: {batch: 4, steps: 20, evaluate_every: 5}
checkpoint: {every: 5, keep: 2}
"""


class Damage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="stiefel-damage-")
        cls.folder = pathlib.Path(cls.scratch.name).resolve()
        (cls.folder / "experiment.yaml").write_text(EXPERIMENT, encoding="utf-8")
        cls.finished, cls.stopped = cls.made("finished", 0), cls.made("stopped", 75, "--until", "12")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def call(cls, *words):
        return subprocess.run([PROGRAM, *map(str, words)], cwd=cls.folder, capture_output=True, text=True, check=False,
                              env={**os.environ, "STIEFEL_PLUGIN_PATH": PLUGINS})

    @classmethod
    def made(cls, name, code, *words):
        done = cls.call("run", "experiment.yaml", "--quiet", "--threads", 1, "--output", name, *words)
        assert done.returncode == code, (done.returncode, done.stderr)
        return next((cls.folder / name).rglob("config.yaml")).parent

    def copy(self, run):
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        return pathlib.Path(shutil.copytree(run, copy))

    def test_flipped_bits(self):
        rng = random.Random(1)
        for run, file, words in ((self.finished, "checkpoints/best.h5", ["inspect"]), (self.finished, "checkpoints/best.h5", ["sample", "--prime", "a"]),
                                 (self.finished, "checkpoints/last.h5", ["inspect", "--last"]),
                                 (self.finished, "checkpoints/last.h5", ["sample", "--prime", "a", "--last"]),
                                 (self.finished, "config.yaml", ["evaluate"]), (self.finished, "config.yaml", ["inspect"]),
                                 (self.stopped, "results.h5", ["resume"]), (self.finished, "results.h5", ["resume"])):
            copy = self.copy(run)
            good = (copy / file).read_bytes()
            whole = self.call(words[0], copy, *words[1:]) if words != ["resume"] else None
            if whole:
                self.assertEqual(whole.returncode, 0, whole.stderr)
                self.assertNotIn("checksum", whole.stderr)
            for _ in range(5):
                bad = bytearray(good)
                bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
                (copy / file).write_bytes(bad)
                done = self.call(words[0], copy, *words[1:])
                with self.subTest(file=file, words=words):
                    self.assertEqual(done.returncode, 6, done.stderr)
                    said = "was edited or is damaged; restore it from /config/yaml" if file == "config.yaml" else \
                        "is damaged: it is not what was written; restore it from a copy, or "
                    self.assertIn(f"stiefel: {copy / file} {said}", done.stderr)
                    self.assertEqual((copy / file).read_bytes(), bad)

    def test_lost_index(self):
        for run, words in ((self.finished, ["inspect"]), (self.finished, ["sample", "--prime", "a"]), (self.stopped, ["resume"])):
            copy = self.copy(run)
            (copy / "checkpoints/index.json").unlink()
            done = self.call(words[0], copy, *words[1:])
            with self.subTest(words=words):
                self.assertEqual(done.returncode, 6, done.stderr)
                self.assertRegex(done.stderr, "index.json is missing, without which .* cannot be trusted; restore it, or move")

    def test_whole_run_goes_on(self):
        copy = self.copy(self.stopped)
        done = self.call("resume", copy)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("checksum", done.stderr)
        names = {entry["file"] for entry in json.loads((copy / "checkpoints/index.json").read_text(encoding="utf-8"))["files"]}
        self.assertEqual(names, {"best.h5", "last.h5", "results.h5", "config.yaml"})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
