#!/usr/bin/python3
"""Every dataset of result files is in results/README.md with its long_name, and every one there is in a file.

usage: documented_test.py STIEFEL README PLUGINS; PLUGINS is a folder with the task round_text
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import h5py

PROGRAM, README, PLUGINS = sys.argv[1:]
RUNS = {
    "recorded": """task: {plugin: adding, length: 12, validation_sequences: 20, test_sequences: 20}
model:
  cell: {plugin: elman, hidden: 8}
  recurrent: {plugin: scaled_cayley}
record: {loss: 1, spectrum: 5, gradient_norms: 5, orthogonality: 5, scalars: 5, blocks: {"readout.weight": 5}}
""",
    "outcome": """task: {plugin: round_text}
model: {cell: {plugin: elman, hidden: 8}, recurrent: {plugin: householder, reflections: 4}}
""",
    "data": """task: {plugin: sequence_csv, data: numbers.csv, sequence: sequence, targets: [y]}
model: {cell: {plugin: elman, hidden: 8}, recurrent: {plugin: householder, reflections: 4}}
"""}
REST = "optimizer: {plugin: adam, rate: 0.01}\ntrain: {batch: 4, steps: 10, evaluate_every: 5}\n"


def documented():
    """Paths of the table of datasets with what they are."""
    rows = re.findall(r"^\| `(/[^`]+)` \| [^|]* \| ([^|]+) \|$", pathlib.Path(README).read_text(encoding="utf-8"), re.MULTILINE)
    return dict(rows)


def pattern(text):
    """A name in angle brackets stands for any."""
    return re.compile(re.sub("<[a-z]+>", lambda _: "[A-Za-z0-9_.]+", re.escape(text)))


def recorded():
    """Paths of all datasets of runs that record everything, with their long_name."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        rows = [f"{s},{t},{(s * t) % 7},{s % 3}" for s in range(40) for t in range(4)]
        (folder / "numbers.csv").write_text("sequence,t,x,y\n" + "\n".join(rows) + "\n", encoding="utf-8")
        for name, text in RUNS.items():
            (folder / f"{name}.yaml").write_text(f"name: {name}\n{text}{REST}", encoding="utf-8")
            subprocess.run([PROGRAM, "run", f"{name}.yaml", "seed=2", "--quiet", "--threads", "1"], cwd=folder, check=True,
                           env={**os.environ, "STIEFEL_PLUGIN_PATH": PLUGINS})
            results, = (folder / "runs" / name).rglob("results.h5")
            with h5py.File(results) as file:
                file.visititems(lambda path, item: found.update({f"/{path}": item.attrs["long_name"]})
                                if isinstance(item, h5py.Dataset) else None)
    return found


class Documented(unittest.TestCase):
    def test_every_dataset(self):
        described, found = documented(), recorded()
        self.assertGreater(len(described), 60)
        seen = set()
        for path, long_name in found.items():
            with self.subTest(path):
                entry = path if path in described else next((entry for entry in described if pattern(entry).fullmatch(path)), None)
                self.assertIsNotNone(entry, f"results/README.md lacks | `{path}` | … | {long_name} |")
                self.assertTrue(pattern(described[entry]).fullmatch(long_name), long_name)
                seen.add(entry)
        self.assertEqual(sorted(set(described) - seen), [], "no run has these datasets")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
