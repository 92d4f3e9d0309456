"""Three small runs, of two rates, for tests of what reads them."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

EXPERIMENT = """name: first
task: {plugin: adding, length: 12, validation_sequences: 20, test_sequences: 20}
model:
  cell: {plugin: elman, hidden: 8}
  recurrent: {plugin: scaled_cayley}
optimizer: [{blocks: "recurrent.*", plugin: adam, rate: 1e-3}, {plugin: rmsprop}]
train: {batch: 4, steps: 10, evaluate_every: 5}
record: {loss: 1, spectrum: 5, gradient_norms: 5, orthogonality: 5, scalars: 5}
"""


class Runs(unittest.TestCase):
    program: str

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        (cls.folder / "first.yaml").write_text(EXPERIMENT, encoding="utf-8")
        for seed, rate in ((1, "1e-3"), (2, "1e-3"), (3, "2e-3")):
            subprocess.run([cls.program, "run", "first.yaml", f"seed={seed}", f"optimizer.0.rate={rate}", "--quiet", "--threads", "1"],
                           cwd=cls.folder, check=True, stdout=subprocess.DEVNULL)
        cls.paths = sorted((cls.folder / "runs").rglob("results.h5"))
        assert len(cls.paths) == 3

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def copy(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return pathlib.Path(shutil.copytree(self.folder / "runs", pathlib.Path(folder.name) / "runs"))
