"""What the tests of this folder share. Each is called with the program as its argument."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
os.environ.pop("OPENBLAS_CORETYPE", None)  # of which runs warn
EXPERIMENT = """name: tiny
task: {plugin: adding, length: 5, validation_sequences: 20, test_sequences: 20}
model: {cell: {plugin: elman, hidden: 4}, recurrent: dense}
optimizer: {plugin: sgd, rate: 1e-3}
train: {batch: 5, steps: 40, evaluate_every: 20}
record: {loss: 1}
checkpoint: {every: 20, keep: 2}
threads: 1
"""
TEXT = "task: {plugin: characters, file: text.txt, mode: stream, bptt: 5}"


class CommandLine(unittest.TestCase):
    """A folder with two experiments and a text, and the program."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="stiefel-command-line-")
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name).resolve()
        self.work = self.root / "work"
        self.work.mkdir()
        (self.work / "tiny.yaml").write_text(EXPERIMENT, encoding="utf-8")
        (self.work / "text.yaml").write_text(re.sub("task: .*", TEXT, EXPERIMENT), encoding="utf-8")
        (self.work / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 20, encoding="utf-8")

    def call(self, *words, code=0, cwd=None, **more):
        done = subprocess.run([PROGRAM, *map(str, words)], cwd=cwd or self.work, capture_output=True, text=True, check=False, timeout=300, **more)
        self.assertIn(done.returncode, code if isinstance(code, tuple) else (code,), (words, done.stdout, done.stderr))
        return done

    def make_run(self, *words, file="tiny.yaml", code=0, cwd=None):
        said = self.call("run", file, "--quiet", *words, code=code, cwd=cwd).stdout
        return (cwd or self.work) / re.search("^results: (.*)/results.h5$", said, re.MULTILINE)[1]

    def start(self, *words):
        process = subprocess.Popen([PROGRAM, *map(str, words), "--quiet"], cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def wait_for(self, what):
        deadline = time.monotonic() + 60
        while not what():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
