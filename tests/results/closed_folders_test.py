#!/usr/bin/python3
"""Folders that this user may not search are reported by the commands that look for runs: closed_folders_test.py STIEFEL

Root may search every folder, so as root the program is started without that right. Exit code 77 where this is not possible.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from made_runs import write_run  # pylint: disable=wrong-import-position

PROGRAM = sys.argv[1]
LESS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
COLUMNS = {"step": [10], "train_loss": [1.], "valid_loss": [1.], "is_best": np.uint8([1]), "seconds": [1.]}


def restricted():
    """Whether a closed folder is one for the program."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0)
        try:
            return subprocess.run([*LESS, "ls", folder], capture_output=True, check=False).returncode == 2
        except FileNotFoundError:
            return False
        finally:
            os.chmod(folder, 0o700)


class ClosedFolders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for seed in range(3):
            write_run(self.root / "runs" / f"seed{seed}", COLUMNS, seed=seed)
        (self.root / "runs" / "more").mkdir()
        write_run(self.root / "runs" / "more" / "seed3", COLUMNS, seed=3)

    def close(self, name, mode):
        folder = self.root / "runs" / name
        folder.chmod(mode)
        self.addCleanup(folder.chmod, 0o700)

    def call(self, *words, code):
        done = subprocess.run([*LESS, PROGRAM, *words], cwd=self.root, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr

    def compared(self, code):
        out, err = self.call("compare", "runs", "--json", code=code)
        found = json.loads(out)
        for item in found["unreadable"]:
            self.assertIn(f"unreadable: {item['path']}: {item['reason']}\n", err)
        return {item["path"]: item["reason"] for item in found["unreadable"]}, found["groups"][0]["value"]["n"]

    def test_compare(self):
        self.assertEqual(self.compared(0), ({}, 4))
        closed = "cannot search the folder for runs: Permission denied"
        for name, left in (("more", 3), ("seed1", 3)):
            for mode in (0, 0o200, 0o400, 0o600):
                with self.subTest(name=name, mode=oct(mode)):
                    self.close(name, mode)
                    self.assertEqual(self.compared(6), ({f"runs/{name}": closed}, left))
                    self.close(name, 0o700)
        self.close("more", 0o100)  # names of what is inside remain unknown
        self.assertEqual(self.compared(6), ({"runs/more": closed}, 3))
        self.close("seed1", 0o100)  # but a run is known by its files
        self.assertEqual(self.compared(6), ({"runs/more": closed}, 3))

    def test_results_that_may_not_be_read(self):
        (self.root / "runs" / "seed0" / "results.h5").chmod(0)
        unreadable, count = self.compared(6)
        self.assertEqual((list(unreadable), count), (["runs/seed0"], 3))
        self.assertIn("Permission denied", unreadable["runs/seed0"])

    def test_report(self):
        self.close("more", 0)
        _, err = self.call("report", "runs", code=6)
        self.assertIn("unreadable: runs/more: cannot search the folder for runs: Permission denied\n", err)
        page = (self.root / "report.html").read_text(encoding="utf-8")
        self.assertIn("3 runs in 1 group: 3 finished. 1 could not be read.", page)
        self.assertIn("runs/more</th><td>cannot search the folder for runs: Permission denied</td>", page)

    def test_one_run(self):
        self.close("seed1", 0)
        for words in (("export", "runs/seed1", "--csv"), ("diff", "runs/seed0", "runs/seed1"), ("diff", "runs/seed1", "runs/seed0")):
            self.assertEqual(self.call(*words, code=6)[1], "stiefel: cannot read runs/seed1: cannot search the folder for runs: Permission denied\n")

    def test_a_run_whose_folder_of_work_is_closed_can_be_used(self):
        work = self.root / "runs"
        (work / "adding.yaml").write_text("""name: adding
task: {plugin: adding, length: 10}
model: {cell: {plugin: elman, hidden: 4}, recurrent: {plugin: dense}}
optimizer: {plugin: adam}
train: {batch: 4, steps: 2}
""", encoding="utf-8")
        subprocess.run([PROGRAM, "run", "adding.yaml", "--data", str(work / "more"), "--output", str(self.root / "made")],
                       cwd=work, capture_output=True, check=True)
        run = str(next((self.root / "made" / "adding").iterdir()))
        self.close("more", 0)
        work.chmod(0)
        self.addCleanup(work.chmod, 0o700)
        self.assertIn("loss", self.call("evaluate", run, code=0)[0])

    def test_top(self):
        self.close("more", 0)
        out, _ = self.call("top", "runs", "--once", code=0)
        self.assertRegex(out, r"runs/more +unreadable ")


if __name__ == "__main__":
    if not restricted():
        print("skipped: every folder can be searched here; root needs setpriv and the right to give up rights")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]])
