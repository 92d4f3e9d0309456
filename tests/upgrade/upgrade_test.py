#!/usr/bin/python3
"""Runs that were begun by an older version of stiefel go on, and those of a later one are refused in plain words.

usage: upgrade_test.py PROGRAM FOLDER
FOLDER holds version_N.tar.gz, the unfinished run that make_run.py made when N was the format.
"""
import functools
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import h5py
import numpy

from make_run import numbers

PROGRAM, FIXTURES = sys.argv.pop(1), Path(sys.argv.pop(1))
# Other processors add up in other orders, other C libraries round sines otherwise: 1e-16 of a number each time. Runs with each of the SIMD
# targets and with three BLAS kernels agree to 5e-15.
TOLERANCE = 1e-11
WARNING = "has no checksum: it was written by an older version of stiefel"


def number_of(version):
    return int(version.name.removesuffix(".tar.gz").split("_")[1])


def list_again(run, file):
    """The sum of a file that was changed enters the index, as far as the format has one for it."""
    index = json.loads((run / "checkpoints/index.json").read_text(encoding="utf-8"))
    stored = (run / file).read_bytes()
    for entry in index["checkpoints"] + index.get("files", []):
        if entry["file"] == Path(file).name:
            entry.update(bytes=len(stored), sha256=hashlib.sha256(stored).hexdigest())
    (run / "checkpoints/index.json").write_text(json.dumps(index), encoding="utf-8")


def each_version(test):
    """The test with the fixture of each format."""
    @functools.wraps(test)
    def with_each(self):
        found = sorted(FIXTURES.glob("version_*.tar.gz"))
        self.assertTrue(found)
        for version in found:
            with self.subTest(version.name):
                test(self, version)
    return with_each


class Upgrade(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="stiefel-upgrade-")
        self.addCleanup(self.scratch.cleanup)

    def copy(self, version):
        run = Path(self.scratch.name) / "run"
        shutil.rmtree(run, ignore_errors=True)
        shutil.unpack_archive(version, run)
        return run

    def call(self, *words):
        return subprocess.run([PROGRAM, *map(str, words)], cwd=self.scratch.name, capture_output=True, text=True, timeout=120, check=False)

    @each_version
    def test_goes_on(self, version):
        run = self.copy(version)
        expected = json.loads((run / "expected.json").read_text(encoding="utf-8"))
        index = json.loads((run / "checkpoints/index.json").read_text(encoding="utf-8"))
        done = self.call("resume", run, "--allow-change", "all")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count(WARNING), number_of(version) == 1, done.stderr)
        self.assertIn(f"resumes after step {index['checkpoints'][-1]['step']} of 200", done.stderr)
        with h5py.File(run / "results.h5") as file:
            self.assertEqual(file.attrs["state"], "finished")
            self.assertEqual(list(file["provenance/segments/reason"].asstr()), ["preempted", "finished"])
        found = numbers(run)
        self.assertEqual(found.keys(), expected.keys())
        for name, values in expected.items():
            numpy.testing.assert_allclose(found[name], values, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)

    @each_version
    def test_columns_that_did_not_exist(self, version):
        """The rows before have NaN there."""
        run = self.copy(version)
        expected = json.loads((run / "expected.json").read_text(encoding="utf-8"))
        with h5py.File(run / "results.h5", "r+") as file:
            rows = {}
            for column in ("steps/grad_norm", "steps/lr", "epochs/valid_loss", "spectrum/recurrent/singular_values", "spectrum/recurrent/eigenvalues"):
                rows[column] = len(file[column])
                del file[column]
            del file["steps/group"]  # an axis of steps/lr alone
        list_again(run, "results.h5")
        done = self.call("resume", run, "--allow-change", "all")
        self.assertEqual(done.returncode, 0, done.stderr)
        with h5py.File(run / "results.h5") as file:
            for column, before in rows.items():
                known = ~numpy.isnan(file[column][()])
                self.assertTrue(0 < before < len(known) and not known[:before].any() and known[before:].all(), column)
            for name in ("steps/loss", "epochs/step", "spectrum/recurrent/singular_max"):
                numpy.testing.assert_allclose(file[name][()].ravel(), expected[name], rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)

    def test_a_column_of_several_chunks_that_did_not_exist(self):
        (Path(self.scratch.name) / "wide.yaml").write_text("""name: wide
task: {plugin: adding, length: 4, validation_sequences: 4, test_sequences: 4}
model: {cell: {plugin: elman, hidden: 64}, recurrent: dense}
optimizer: sgd
train: {batch: 4, steps: 15, evaluate_every: 15}
record: {blocks: {recurrent.W: 1}}
""", encoding="utf-8")
        self.assertEqual(self.call("run", "wide.yaml", "--until", 10, "--output", ".").returncode, 75)
        run = next(Path(self.scratch.name).glob("wide/*"))
        with h5py.File(run / "results.h5", "r+") as file:
            self.assertEqual(file["blocks/recurrent_w/values"].chunks[0], 4)
            del file["blocks/recurrent_w/values"]
        list_again(run, "results.h5")
        self.assertEqual(self.call("resume", run).returncode, 0)
        with h5py.File(run / "results.h5") as file:
            missing = numpy.isnan(file["blocks/recurrent_w/values"][()])
        self.assertEqual(len(missing), 16)  # with step 0
        self.assertTrue(missing[:11].all() and not missing[11:].any(), missing.sum(axis=1))

    @each_version
    def test_is_read(self, version):
        """By every command that reads runs; its networks have no sums before format 2."""
        run = self.copy(version)
        for words in (["compare", run], ["export", run, "--csv", "--output", "csv"], ["diff", run, run], ["report", run, "--output", "report"]):
            done = self.call(*words)
            self.assertEqual(done.returncode, 0, (words, done.stderr))
            self.assertNotIn("checksum", done.stderr)
        done = self.call("inspect", run, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count(WARNING), number_of(version) == 1, done.stderr)
        with h5py.File(run / "checkpoints/best.h5") as file:
            norm = numpy.linalg.norm(file["weights/readout.weight"][()])
        block, = [block for block in json.loads(done.stdout)["blocks"] if block["name"] == "readout.weight"]
        self.assertAlmostEqual(block["norm"], norm, places=12)

    @each_version
    def test_other_build(self, version):
        """A plugin is another than the one that began the run: that is said."""
        run = self.copy(version)
        with h5py.File(run / "results.h5", "r+") as file:
            plugins = list(file["provenance/plugins/name"].asstr())
            file["provenance/plugins/sha256"][plugins.index("householder")] = "0" * 64
        list_again(run, "results.h5")
        before = (run / "results.h5").read_bytes()
        done = self.call("resume", run)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^  plugin:householder was 0{64} and is now [0-9a-f]{64}$")
        self.assertRegex(done.stderr, r"--allow-change \S*plugin:householder")
        self.assertEqual((run / "results.h5").read_bytes(), before)

    @each_version
    def test_later(self, version):
        known = max(map(number_of, FIXTURES.glob("version_*.tar.gz")))
        for damaged in ("results.h5", "checkpoints/index.json", "checkpoints/step"):
            run = self.copy(version)
            index = json.loads((run / "checkpoints/index.json").read_text(encoding="utf-8"))
            if damaged.endswith("json"):
                index["format_version"] = known + 1
                (run / "checkpoints/index.json").write_text(json.dumps(index), encoding="utf-8")
            else:
                damaged = damaged if damaged.endswith("h5") else "checkpoints/" + index["checkpoints"][-1]["file"]
                with h5py.File(run / damaged, "r+") as file:
                    file.attrs.modify("format_version", known + 1)
                list_again(run, damaged)
            done = self.call("resume", run, "--allow-change", "all")
            self.assertEqual(done.returncode, 6, done.stderr)
            self.assertEqual(done.stderr.splitlines()[-1], f"stiefel: {run / damaged} has format version {known + 1}, but this stiefel reads only up to "
                                                           f"{known}; use a newer stiefel")

    def test_versions_that_never_were(self):
        run = self.copy(sorted(FIXTURES.glob("version_*.tar.gz"))[-1])
        for version in (0, -1):
            with h5py.File(run / "results.h5", "r+") as file:
                file.attrs.modify("format_version", version)
            list_again(run, "results.h5")
            done = self.call("resume", run, "--allow-change", "all")
            self.assertEqual(done.returncode, 6, done.stderr)
            self.assertIn(f"format version {version}", done.stderr)

    def test_damaged_configuration(self):
        run = self.copy(sorted(FIXTURES.glob("version_*.tar.gz"))[-1])
        good = (run / "config.yaml").read_bytes()
        last = good.count(b"\n") + 1
        for spoilt, place in ((good + b"seed: 4\n", f"{last}:1"), (good + b"<<: {}\n", f"{last}:1"), (good + b"x: &a [*a]\n", f"{last}:8"),
                              (good + b"x: \0\n", f"{last}:4"), (good + b"x: \xff\n", f"{last}:4"), (b"\t" + good, "1:1"),
                              (good.replace(b"seed: 3", b"seed: 03"), "2:7"), (good + b"x: " + b"[" * 100 + b"]" * 100 + b"\n", f"{last}:67")):
            with self.subTest(spoilt[-20:]):
                (run / "config.yaml").write_bytes(spoilt)
                done = self.call("resume", run)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(f"{run / 'config.yaml'}:{place}: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
