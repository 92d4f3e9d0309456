#!/usr/bin/python3
"""Experiment trackers get what a run recorded, also while it trains.

usage: track_test.py PYTHON_FOLDER STIEFEL [TEST...]

Trackers that are not installed are skipped; those that are write to a folder of the test, without a network.
"""
import importlib.machinery
import importlib.util
import itertools
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

PACKAGE, PROGRAM = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, PACKAGE)
try:
    import h5py
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from some_runs import EXPERIMENT
from stiefel import track

LONG = ["train.steps=4000", "train.evaluate_every=1000", "task.length=30", "record={loss: 50, spectrum: 1000}"]
# The module where wandb is installed, and mlflow is not.
WITHOUT_MLFLOW = """
import importlib.util, runpy, types
find = importlib.util.find_spec
known = {"mlflow": None, "wandb": types.SimpleNamespace(origin="")}
importlib.util.find_spec = lambda name, *rest: known[name] if name in known else find(name, *rest)
runpy.run_module("stiefel.track", run_name="__main__")
"""


class Recorded:
    """A tracker that keeps what it gets."""

    made: list

    def __init__(self, start):
        self.start, self.curves, self.states = start, {}, []
        self.made.append(self)

    def log(self, rows):
        for step, values in rows:
            assert values and isinstance(step, int)
            for name, value in values.items():
                self.curves.setdefault(name, []).append((step, value))

    def finish(self, state):
        self.states.append(state)


def expected_curves(path):
    """What results.h5 has of each step, by the names of the curves."""
    found = {}
    with h5py.File(path) as file:
        def add(name, values, steps):
            pairs = [(int(step), float(value)) for step, value in zip(steps, values) if not np.isnan(value)]
            if pairs:
                found[name] = pairs
        for name, axis in (("steps", "step"), ("epochs", "step"), ("final", "step"), ("spectrum/recurrent", "snapshot"), ("orthogonality/recurrent", "snapshot"),
                           ("scalars/recurrent", "snapshot"), ("timing", "step")):
            group = file[name]
            labels = {"steps": "group", "orthogonality/recurrent": "block", "timing": "phase"}.get(name)
            texts = list(group[labels].asstr()) if labels else []
            for column, values in group.items():
                if column in ("step", "snapshot", "epoch", "wall_time", "k", labels):
                    continue
                if values.ndim == 1:
                    add(f"{name}/{column}", values[()], group[axis][()])
                elif texts:
                    for text, one in zip(texts, values[()].T):
                        add(f"{name}/{column}_{text}", one, group[axis][()])
    return found


class Some(unittest.TestCase):
    """Three runs: a finished one, one that was stopped, one that diverged."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        (cls.folder / "first.yaml").write_text(EXPERIMENT, encoding="utf-8")
        for name, words, code in (("whole", [], 0), ("part", ["--until", "5"], 75), ("diverged", ["optimizer=[{plugin: sgd, rate: 1e30}]"], 5)):
            done = subprocess.run([*cls.run_command(name), *words], cwd=cls.folder, capture_output=True, text=True)
            assert done.returncode == code, done.stderr

    @classmethod
    def run_command(cls, name):
        return [str(PROGRAM), "run", "first.yaml", f"name={name}", "--quiet", "--threads", "1"]

    def setUp(self):
        before, folder = os.getcwd(), tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, before)
        os.chdir(folder.name)

    def path(self, name):
        found, = (self.folder / "runs" / name).rglob("results.h5")
        return found


class Track(Some):
    def recorded(self, run, **keys):
        """What a tracker gets of a run."""
        Recorded.made = []
        with mock.patch.dict(track.TRACKERS, wandb=Recorded), mock.patch("importlib.util.find_spec"):
            state = track.track(run, "wandb", **keys)
        tracker, = Recorded.made
        self.assertEqual(tracker.states, [state])
        return tracker

    def test_finished(self):
        path = self.path("whole")
        tracker = self.recorded(self.folder / "runs/whole")
        self.assertEqual(tracker.states, ["finished"])
        expected = expected_curves(path)
        self.assertTrue({"steps/loss", "steps/lr_recurrent.*", "epochs/valid_loss", "final/test_accuracy", "spectrum/recurrent/singular_max",
                         "orthogonality/recurrent/defect_fro_W", "scalars/recurrent/a_norm", "timing/seconds_passes"} <= set(expected), expected.keys())
        self.assertEqual(tracker.curves, expected)
        start = tracker.start
        self.assertEqual((start.project, start.name, start.id), ("whole", f"whole/{path.parent.name}", path.parent.name))
        self.assertEqual((start.parameters["optimizer.0.rate"], start.parameters["train.steps"]), (1e-3, 10))
        with h5py.File(path) as file:
            self.assertEqual(start.provenance["git_commit"], file["provenance"].attrs["git_commit"])
            self.assertEqual(start.provenance["parameters"], file.attrs["parameters"])
        self.assertEqual(self.recorded(path, project="mine").start.project, "mine")

    def test_unfinished(self):
        for name, state in (("part", "stopped"), ("diverged", "diverged")):
            tracker = self.recorded(self.path(name).parent)
            self.assertEqual(tracker.states, [state])
            with h5py.File(self.path(name)) as file:
                self.assertEqual(len(tracker.curves["steps/grad_norm"]), np.count_nonzero(~np.isnan(file["steps/grad_norm"])))

    def test_while_it_trains(self):
        """Every row is sent once and in order, the first ones long before the end, with the loss of the moment in between."""
        process = subprocess.Popen([*self.run_command("long"), *LONG], cwd=self.folder, stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        before = []

        class Watching(Recorded):
            def log(self, rows):
                super().log(rows)
                if process.poll() is None:
                    before.extend(step for step, _ in rows)

        while not list((self.folder / "runs/long").rglob("results.h5")):
            self.assertIsNone(process.poll())
        Recorded.made = []
        with mock.patch.dict(track.TRACKERS, wandb=Watching), mock.patch("importlib.util.find_spec"), mock.patch.object(track, "PAUSE", 0.02):
            self.assertEqual(track.track(self.folder / "runs/long", "wandb"), "finished")
        curves = Recorded.made[0].curves
        self.assertTrue(before and min(before) < 2000, before)
        now = curves.pop("progress/loss"), curves.pop("progress/grad_norm")
        for curve in now:
            self.assertEqual(curve, sorted(curve))
        with h5py.File(self.path("long")) as file:
            for name, axis in (("steps/loss", "steps/step"), ("epochs/valid_loss", "epochs/step"), ("spectrum/recurrent/singular_max", "spectrum/recurrent/snapshot")):
                self.assertEqual(curves[name], list(zip(file[axis][()].tolist(), file[name][()].tolist())), name)

    def test_interrupt(self):
        class Interrupted(Recorded):
            def log(self, rows):
                raise KeyboardInterrupt
        Recorded.made = []
        with mock.patch.dict(track.TRACKERS, wandb=Interrupted), mock.patch("importlib.util.find_spec"), self.assertRaises(KeyboardInterrupt):
            track.track(self.path("whole"), "wandb")
        self.assertEqual(Recorded.made[0].states, ["finished"])

    def test_errors(self):
        path = self.path("whole")
        for to, found in itertools.product(track.TRACKERS, (None, importlib.machinery.ModuleSpec("folder", None))):
            with mock.patch("importlib.util.find_spec", return_value=found):
                with self.assertRaisesRegex(ImportError, f"^{to} is not installed; install it with: pip install {to}$"):
                    track.track(path, to)
        with self.assertRaisesRegex(ValueError, "there is no tracker neptune; there are wandb, mlflow, trackio, tensorboard"):
            track.track(path, "neptune")

        def said(*words):
            ended = subprocess.run([sys.executable, "-c", WITHOUT_MLFLOW, *words], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": PACKAGE})
            return ended.returncode, ended.stderr.splitlines()[-1]
        self.assertEqual(said(path, "--to", "mlflow"), (1, "stiefel.track: mlflow is not installed; install it with: pip install mlflow"))
        code, line = said("nowhere", "--to", "wandb")
        self.assertEqual(code, 1)
        self.assertRegex(line, "^stiefel.track: there is no nowhere")
        code, line = said(path, "--to", "neptune")
        self.assertEqual(code, 2)
        self.assertIn("invalid choice: 'neptune'", line)


class Installed(Some):
    """The same runs in the trackers themselves, which keep float32 or float64."""

    def sent(self, to, **environment):
        """What results.h5 has, after it was sent."""
        if importlib.util.find_spec(to) is None:
            self.skipTest(f"{to} is not installed")
        command = [sys.executable, "-m", "stiefel.track", self.folder / "runs/whole", "--to", to]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": PACKAGE, "HOME": os.getcwd(), **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        return expected_curves(self.path("whole"))

    def assert_curves(self, found, expected):
        self.assertEqual(found.keys(), expected.keys())
        for name, pairs in expected.items():
            self.assertEqual([step for step, _ in found[name]], [step for step, _ in pairs], name)
            np.testing.assert_allclose([value for _, value in found[name]], [value for _, value in pairs], rtol=1e-6, err_msg=name)

    def test_wandb(self):
        expected = self.sent("wandb", WANDB_MODE="offline", WANDB_SILENT="true")
        from wandb.proto.wandb_internal_pb2 import Record
        file, = pathlib.Path("wandb").glob("offline-run-*/run-*.wandb")
        curves, config, ended = {}, {}, None
        for bytes_of_record in records_of_leveldb(file.read_bytes(), 7):
            record = Record.FromString(bytes_of_record)
            items = {(item.key or "/".join(item.nested_key)): json.loads(item.value_json) for item in record.history.item}
            for name, value in items.items():
                if not name.startswith("_") and name != "step":
                    curves.setdefault(name, []).append((items["step"], value))
            config.update({item.key: json.loads(item.value_json) for item in [*record.run.config.update, *record.config.update]})
            if record.HasField("exit"):
                ended = record.exit.exit_code
        self.assert_curves(curves, expected)
        self.assertEqual((config["optimizer.0.rate"], config["run_id"], ended), (1e-3, self.path("whole").parent.name, 0))
        self.assertIn("git_commit", config["provenance"])

    def test_mlflow(self):
        expected = self.sent("mlflow", MLFLOW_TRACKING_URI="sqlite:///tracked.db")
        from mlflow import MlflowClient
        client = MlflowClient("sqlite:///tracked.db")
        run, = client.search_runs([client.get_experiment_by_name("whole").experiment_id])
        self.assertEqual((run.info.status, run.info.run_name), ("FINISHED", f"whole/{self.path('whole').parent.name}"))
        self.assertEqual((run.data.params["optimizer.0.rate"], run.data.tags["state"]), ("0.001", "finished"))
        self.assertIn("git_commit", run.data.tags)
        expected = {name.replace("*", "_"): pairs for name, pairs in expected.items()}
        self.assert_curves({name: [(one.step, one.value) for one in client.get_metric_history(run.info.run_id, name)] for name in run.data.metrics}, expected)

    def test_trackio(self):
        expected = self.sent("trackio", TRACKIO_DIR=os.path.abspath("trackio"))
        with mock.patch.dict(os.environ, TRACKIO_DIR=os.path.abspath("trackio")):
            from trackio.sqlite_storage import SQLiteStorage
            name, = SQLiteStorage.get_runs("whole")
            rows, config = SQLiteStorage.get_logs("whole", name), SQLiteStorage.get_run_config("whole", name)
        curves = {}
        for row in rows:
            for key, value in row.items():
                if "/" in key:
                    curves.setdefault(key, []).append((row["step"], value))
        self.assert_curves(curves, expected)
        self.assertEqual(config["optimizer.0.rate"], 1e-3)

    def test_tensorboard(self):
        """Its curves are those of stiefel export --tensorboard."""
        expected = self.sent("tensorboard")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        subprocess.run([PROGRAM, "export", self.path("whole").parent, "--tensorboard", "--output", "exported"], check=True, capture_output=True)
        for folder in ("tensorboard", "exported"):
            file, = pathlib.Path(folder).rglob("*tfevents*")
            events = EventAccumulator(str(file), size_guidance={"scalars": 0})
            events.Reload()
            self.assert_curves({name: [(one.step, one.value) for one in events.Scalars(name)] for name in events.Tags()["scalars"]}, expected)
            if folder == "tensorboard":
                self.assertEqual(events.SummaryMetadata("_hparams_/session_start_info").plugin_data.plugin_name, "hparams")


def records_of_leveldb(data, begin):
    """The records of a log in the format of LevelDB: blocks of 32 KiB with pieces, of which each has a sum, a length and a kind."""
    whole, place = b"", begin
    while place + 7 <= len(data):
        if 32768 - place % 32768 < 7:
            place += 32768 - place % 32768
            continue
        length, kind = struct.unpack_from("<HB", data, place + 4)
        whole += data[place + 7:place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # a whole record, or the last piece of one
            yield whole
            whole = b""


unittest.main(argv=sys.argv[:1] + sys.argv[3:])
