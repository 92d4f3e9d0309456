#!/usr/bin/python3
"""Training from Python does what the commands do, and its errors say what is wrong.

usage: run_test.py PYTHON_FOLDER STIEFEL [TEST...]
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from unittest import mock

PACKAGE, PROGRAM = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, PACKAGE)
os.environ.update(PATH=f"{PROGRAM.parent}:{os.environ['PATH']}", PYTHONPATH=PACKAGE)
try:
    import h5py
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
try:
    import pandas
except ImportError:
    pandas = None

import stiefel
from some_runs import EXPERIMENT

SMALL = {
    "name": "small",
    "task": {"plugin": "adding", "length": 12, "validation_sequences": 20, "test_sequences": 20},
    "model": {"cell": {"plugin": "elman", "hidden": 8}, "recurrent": "scaled_cayley"},
    "optimizer": {"plugin": "adam", "rate": 0.01},
    "train": {"batch": 4, "steps": 10, "evaluate_every": 5},
}
LONG = {"train.steps": 20000, "train.evaluate_every": 5000, "threads": 1, "record": {"loss": 1000}, "checkpoint.every": 1000000}


def stiefel_command(*words):
    return subprocess.run([PROGRAM, *words], check=True, capture_output=True, text=True).stdout


def same_bits(one, other):
    """Whether two runs recorded the same numbers and networks."""
    return "identical to the bit" in stiefel_command("diff", str(one.path), str(other.path))


class Scratch(unittest.TestCase):
    """Each test runs in an empty folder."""

    def setUp(self):
        before, folder = os.getcwd(), tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, before)
        os.chdir(folder.name)

    def refused(self, call, *arguments, **keys):
        with self.assertRaises(stiefel.Error) as caught:
            call(*arguments, **keys)
        return caught.exception


class Training(Scratch):
    def test_experiments(self):
        pathlib.Path("first.yaml").write_text(EXPERIMENT, encoding="utf-8")
        run = stiefel.run("first.yaml", seed=3, **{"optimizer.0.rate": 2e-3})
        told = stiefel_command("run", "first.yaml", "seed=3", "optimizer.0.rate=2e-3", "-o", "command")
        self.assertIn(f"command/first/{run.path.name}/", told)
        self.assertEqual(run.path, pathlib.Path("runs/first").absolute() / run.path.name)
        self.assertEqual(stiefel.run(pathlib.Path("first.yaml"), output=pathlib.Path("other")).path.parts[-3:-1], ("other", "first"))
        named = stiefel.run("quickstart", **{"train.steps": 2, "task.length": 5, "model.cell": {"plugin": "elman", "hidden": 20}})
        self.assertEqual(named.summary["model.cell.hidden"], 20)
        self.assertEqual(stiefel.run("methods/lru", **{"train.steps": 2, "task.length": 5}).summary["model.cell.plugin"], "lru")

    def test_dictionaries(self):
        run = stiefel.run(SMALL)
        other = {**SMALL, "optimizer": {"plugin": "adam", "rate": np.array(0.01, np.float32)}, "seed": np.uint8(1),
                 "train": {"batch": np.array(4), "steps": np.int64(10), "evaluate_every": 5}}
        self.assertEqual(stiefel.run(other).path, run.path)
        pathlib.Path("quickstart").mkdir()
        inherited = stiefel.run({"extends": "quickstart", "train": {"steps": 2}, "task": {"length": 5}})
        self.assertEqual(inherited.summary["model.cell.hidden"], 128)
        pathlib.Path("part.yaml").write_text("train: {steps: 3}\n", encoding="utf-8")
        self.assertEqual(stiefel.run({**SMALL, "train": {}, "extends": [pathlib.Path("part.yaml")]}).summary["step"], 3)

    def test_run(self):
        run = stiefel.run(SMALL)
        self.assertRegex(repr(run), rf"^<stiefel.Run small/{run.path.name}: finished, step 10, valid_loss [\d.]+, test_loss [\d.]+>$")
        shown = run._repr_html_()
        self.assertRegex(shown, r"<th>state</th><td>finished</td>.*<svg .*<polyline points=\"60\.0,[\d.]+ 340\.0,")
        with h5py.File(run.path / "results.h5") as file:
            self.assertEqual(run.summary["valid_loss"], min(file["epochs/valid_loss"]))
        self.assertEqual(stiefel.Run(os.path.relpath(run)).summary, run.summary)
        os.chdir("/")
        self.assertEqual(run.evaluate()["loss"], run.summary["test_loss"])
        (run.path / "results.h5").write_bytes(b"damaged")
        self.assertIn("cannot be read", self.refused(lambda: run.summary).message)
        shutil.rmtree(run.path)
        for use in (run.evaluate, run.weights, lambda: run.predict(np.zeros((1, 2, 2))), lambda: run.results, lambda: stiefel.Run(run.path)):
            self.assertIn("it was deleted or moved", self.refused(use).message)
        self.assertIn("deleted", repr(run))
        self.assertIn("deleted", run._repr_html_())

    def test_results(self):
        try:
            import xarray  # noqa: F401
        except ImportError as error:
            self.skipTest(str(error))
        run = stiefel.run(SMALL)
        self.assertEqual(run.results["epochs"]["valid_loss"].shape, (2,))

    def test_finished_and_unfinished(self):
        run = stiefel.run(SMALL)
        before = (run.path / "results.h5").stat().st_mtime_ns
        stiefel.run(SMALL)
        self.assertEqual((run.path / "results.h5").stat().st_mtime_ns, before)
        pathlib.Path("small.yaml").write_text(json.dumps(SMALL), encoding="utf-8")
        subprocess.run([PROGRAM, "run", "small.yaml", "seed=2", "--until", "3", "-q"], check=False, capture_output=True)
        error = self.refused(stiefel.run, SMALL, seed=2, resume=False)
        self.assertEqual(error.exit_code, 7)
        self.assertIn("holds an unfinished run", error.message)
        continued = stiefel.run(SMALL, seed=2, threads=1)
        self.assertTrue(same_bits(continued, stiefel.run(SMALL, seed=2, output="whole")))

    def test_sweep_and_compare(self):
        sweep = {**SMALL, "seeds": range(1, 3), "sweep": {"optimizer.rate": np.array([1e-3, 1e-2])}}
        table = stiefel.sweep(sweep, jobs=2)
        rows = table.to_dict("records") if pandas else table
        self.assertEqual(sorted((row["optimizer.rate"], row["seed"]) for row in rows), [(r, s) for r in (1e-3, 1e-2) for s in (1, 2)])
        self.assertEqual({row["state"] for row in rows}, {"finished"})
        found = stiefel.compare("sweeps", by=["optimizer.rate"], metric="test_loss", sort="mean")
        found = found.to_dict("records") if pandas else found
        self.assertEqual(sorted(row["optimizer.rate"] for row in found), [1e-3, 1e-2])
        for row in found:
            own = [one["test_loss"] for one in rows if one["optimizer.rate"] == row["optimizer.rate"]]
            self.assertAlmostEqual(row["mean"], np.mean(own), 12)
            self.assertEqual((row["n"], len(row["runs"]), row["best"]), (2, 2, min(own)))
        reached = stiefel.compare(pathlib.Path("sweeps"), by="seed", reach=1e6, where="optimizer.rate=1e-3")
        reached = reached.to_dict("records") if pandas else reached
        self.assertEqual([row["reached"] for row in reached], [1, 1])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = stiefel.sweep({**SMALL, "name": "wild", "sweep": {"optimizer.rate": [1e-2, 1e30]}})
        self.assertEqual(len(table), 2)
        self.assertRegex(str(caught[-1].message), "diverged: diverged at step")
        self.assertEqual(caught[-1].filename, __file__)
        self.assertIn("sweep", self.refused(stiefel.run, sweep).message)
        self.assertIn("train.step is not a key", self.refused(stiefel.sweep, {**sweep, "train": {"step": 1}}).message)
        self.assertEqual(self.refused(stiefel.compare, "nowhere").exit_code, 2)


class Networks(Scratch):
    """evaluate, predict and weights, with arrays and frames."""

    def test_predict(self):
        run = stiefel.run(SMALL)
        inputs = np.random.default_rng(1).random((5, 12, 2))
        outputs = run.predict(inputs)
        np.save("inputs.npy", inputs)
        printed = stiefel_command("predict", str(run.path), "--input", "inputs.npy").splitlines()[1:]
        self.assertEqual((outputs.shape, outputs.dtype), ((5, 1), np.float32))
        np.testing.assert_array_equal(outputs[:, 0], np.array([line.split(",")[2] for line in printed], np.float32))
        np.testing.assert_array_equal(run.predict(inputs[:1])[0], outputs[0])
        np.testing.assert_array_equal(run.predict(np.asfortranarray(inputs.astype(">f8"))), outputs)
        short = run.predict(inputs, lengths=[12, 12, 3, 12, 1])
        np.testing.assert_array_equal(short[[0, 1, 3]], outputs[[0, 1, 3]])
        np.testing.assert_array_equal(short[2], run.predict(inputs[2:3, :3])[0])
        self.assertEqual(run.predict(inputs[:, :1]).shape, (5, 1))
        self.assertIn("(12, 2)", self.refused(run.predict, inputs[0]).message)
        self.assertIn("array of numbers", self.refused(run.predict, np.array([["a"]])).message)
        self.assertEqual(self.refused(run.predict, inputs * np.nan).exit_code, 4)

    def test_symbols(self):
        run = stiefel.run({**SMALL, "task": {"plugin": "copy", "length": 5}})
        outputs = run.predict(np.ones((3, 7), int), lengths=[7, 2, 7])
        self.assertEqual(outputs.shape[:2], (3, 7))
        self.assertTrue(np.isnan(outputs[1, 2:]).all())
        np.testing.assert_allclose(outputs[[0, 2]].sum(2), 1, rtol=1e-6)
        self.assertEqual(run.predict(np.ones((1, 1), int)).ndim, 3)
        raw = run.predict(np.ones((3, 7), int), raw=True)[0, 0]
        np.testing.assert_allclose(np.exp(raw) / np.exp(raw).sum(), outputs[0, 0], rtol=1e-5)

    def test_evaluate(self):
        run = stiefel.run(SMALL)
        for words in ((), ("task.length=20",)):
            printed = json.loads(stiefel_command("evaluate", str(run.path), "--json", *words))
            found = run.evaluate(**dict(word.split("=") for word in words))
            self.assertEqual(found, {**printed["values"], "baseline": printed["baseline"]})
        self.assertIn("loss", run.evaluate(split="validation"))
        self.assertIn("--split", self.refused(run.evaluate, split="dev").message)
        self.assertIn("would change the network", self.refused(run.evaluate, **{"model.cell.hidden": 3}).message)
        printed = json.loads(stiefel_command("analyse", str(run.path), "task.length=9", "--json", "--memory", "--fixed-points", "5"))
        self.assertEqual(run.analyse(memory=True, fixed_points=5, **{"task.length": 9}), printed)
        self.assertIn("a class at every step", self.refused(run.analyse, classes=5).message)
        self.assertIn("the task adding", self.refused(run.evaluate, np.zeros((1, 2, 2))).message)

    def test_weights(self):
        weights = stiefel.run(SMALL).weights()
        self.assertEqual(weights.tensors["layers.0.recurrent.W"].shape, (8, 8))

    def test_torch(self):
        try:
            import torch
        except ImportError as error:
            self.skipTest(str(error))
        run = stiefel.run(SMALL)
        inputs = np.random.default_rng(1).random((5, 12, 2), np.float32)
        np.testing.assert_allclose(run.torch()(torch.from_numpy(inputs)).detach().numpy(), run.predict(inputs), rtol=1e-5, atol=1e-6)

    def test_frames(self):
        if not pandas:
            self.skipTest("No module named 'pandas'")
        rng = np.random.default_rng(1)
        table = pandas.DataFrame({"name": np.repeat(np.arange(60), 4), "x": rng.normal(size=240), "z": rng.normal(size=240)})
        table["sign"] = np.where(table.groupby("name")["x"].transform("sum") > 0, "up", "down")
        table.to_csv("table.csv", index=False, sep=";")
        task = {"plugin": "sequence_csv", "data": "table.csv", "sequence": "name", "targets": ["sign"], "kind": "classification", "separator": ";"}
        run = stiefel.run({**SMALL, "task": task})
        found = run.predict(table[["name", "x", "z"]].iloc[:20])
        self.assertEqual(list(found), ["sequence", "step", "class", "p_down", "p_up"])
        self.assertEqual(found["sequence"].tolist(), [0, 1, 2, 3, 4])
        self.assertTrue(set(found["class"]) <= {"down", "up"})
        arrays = table[["x", "z"]].to_numpy().reshape(60, 4, 2)
        np.testing.assert_array_equal(run.predict(arrays[:5]), found[["p_down", "p_up"]].to_numpy(np.float32))
        part = table.iloc[:80]
        part.to_csv("part.csv", index=False, sep=";")
        printed = json.loads(stiefel_command("evaluate", str(run.path), "--json", "task.test=part.csv"))["values"]
        found = run.evaluate(part)
        self.assertEqual({name: found[name] for name in printed}, printed)
        self.assertIn("targets", self.refused(run.evaluate, arrays).message)
        self.assertIn("columns", self.refused(run.evaluate, part, np.zeros(20)).message)
        categories = table.iloc[:20].astype({"name": "category"})
        self.assertEqual(run.predict(categories)["sequence"].tolist(), [0, 1, 2, 3, 4])

    def test_arrays(self):
        rng = np.random.default_rng(1)
        inputs, lengths = rng.normal(size=(60, 6, 2)), rng.integers(2, 7, 60)
        targets = inputs.cumsum(1)[..., :1]
        for name, values in (("inputs", inputs), ("targets", targets), ("lengths", lengths)):
            np.save(name, values)
        files = {"file": pathlib.Path("inputs.npy"), "targets": "targets.npy", "lengths": "lengths.npy"}
        task = {"plugin": "sequence_csv", "data": files, "readout": "every"}
        run = stiefel.run({**SMALL, "scalar": "float64", "task": task})
        outputs = run.predict(inputs, lengths)
        self.assertEqual((outputs.shape, outputs.dtype), ((60, 6, 1), np.float64))
        inside = np.arange(6) < lengths[:, None]
        np.testing.assert_array_equal(np.isnan(outputs[..., 0]), ~inside)
        self.assertAlmostEqual(run.evaluate(inputs, targets, lengths)["mae"], np.abs(outputs - targets)[inside].mean(), 12)


class Errors(Scratch):
    def test_values(self):
        class Thing:
            pass
        for key, value, message in (
            ("evaluate_every", len, "train.evaluate_every is a builtin_function_or_method, which YAML cannot hold"),
            ("steps", float("nan"), "train.steps is nan, but must be a finite number"),
            ("steps", np.float32("inf"), "train.steps is inf, but must be a finite number"),
            ("steps", [1, Thing()], "train.steps.1 is a Thing, which YAML cannot hold"),
            ("steps", np.zeros((2, 3)), "train.steps is an array of 2 × 3; save it with numpy.save, and give the path of the file"),
            ("steps", 1j, "train.steps is a complex, which YAML cannot hold"),
            ("steps", {1: 2}, "train.steps has the key 1, but keys are text"),
            ("steps", "many", "train.steps must be an integer, got 'many'"),
            ("step", 10, "train.step is not a key of train; did you mean 'steps'?"),
        ):
            with self.subTest(message):
                self.assertEqual(self.refused(stiefel.run, {**SMALL, "train": {"steps": 10, key: value}}).message, message)
        if pandas:
            self.assertIn("write it to a CSV file", self.refused(stiefel.run, {**SMALL, "task": pandas.DataFrame()}).message)
        self.assertEqual(self.refused(stiefel.run, SMALL, **{"optimizer.rate": len}).message,
                         "optimizer.rate is a builtin_function_or_method, which YAML cannot hold")
        self.assertEqual(self.refused(stiefel.run, 3).message, "an experiment is a file, a name or a dictionary, not an int")
        self.assertIn("did you mean 'quickstart'?", self.refused(stiefel.run, "quickstrt").message)

    def test_place(self):
        pathlib.Path("wrong.yaml").write_text(EXPERIMENT.replace("hidden", "hiden"), encoding="utf-8")
        error = self.refused(stiefel.run, "wrong.yaml")
        self.assertEqual((error.file, error.line, error.column, error.exit_code), ("wrong.yaml", 4, 9, 2))
        self.assertIn("did you mean 'hidden'?", error.message)
        self.assertIn(error.message, error.log)
        self.assertIsInstance(error, RuntimeError)
        error = self.refused(stiefel.run, "nowhere.yaml")
        self.assertEqual((error.message, error.file, error.exit_code), ("nowhere.yaml: cannot be read: there is no such file", None, 2))

    def test_divergence(self):
        error = self.refused(stiefel.run, SMALL, **{"optimizer.rate": 1e30})
        self.assertEqual(error.exit_code, 5)
        self.assertRegex(error.message, "^diverged at step")

    def test_program(self):
        with mock.patch.dict(os.environ, PATH="/nowhere"):
            self.assertIn("there is no program `stiefel`", self.refused(stiefel.run, SMALL).message)
        fake = pathlib.Path("stiefel")
        fake.write_text("#!/bin/sh\necho stiefel 9.9.9\n", encoding="utf-8")
        fake.chmod(0o755)
        with mock.patch.dict(os.environ, PATH=os.getcwd()):
            self.assertRegex(self.refused(stiefel.run, SMALL).message, f"is 9.9.9, but this package is version {stiefel.__version__}")
        fake.write_text("#!/usr/bin/python3\nfrom stiefel.command import main\nmain()\n", encoding="utf-8")
        with mock.patch.dict(os.environ, PATH=f"{os.getcwd()}:{os.environ['PATH']}"):
            self.assertEqual(stiefel.run(SMALL).summary["state"], "finished")

    def test_wheel(self):
        """The program inside the package comes before that of the PATH."""
        package = pathlib.Path(shutil.copytree(pathlib.Path(PACKAGE, "stiefel"), "wheel/stiefel")).absolute()
        (package / "bin").mkdir()
        (package / "bin/stiefel").symlink_to(PROGRAM)
        code = "import stiefel\nfrom stiefel import process\nprint(process.program())\nstiefel.run('quickstart', **{'train.steps': 2})"
        environment = {**os.environ, "PATH": "/nowhere", "PYTHONPATH": str(package.parent)}
        told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment).stdout
        self.assertEqual(told, f"{package}/bin/stiefel\n")

    def test_permission(self):
        pathlib.Path("runs").mkdir(0o555)
        pathlib.Path.cwd().chmod(0o755)
        code = f"import stiefel\nstiefel.run({SMALL!r})"
        user = {"user": 65534} if os.geteuid() == 0 else {}  # root may write everywhere
        try:
            told = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, **user).stderr
        except PermissionError as error:
            self.skipTest(f"another user cannot start this Python: {error}")
        if "No module named 'stiefel'" in told:
            self.skipTest("another user cannot read this source tree")
        self.assertRegex(told, r"stiefel.process.Error: .*runs/small.*Permission denied")

    def test_place_of_runs(self):
        pathlib.Path("file").write_text("", encoding="utf-8")
        self.assertIn("file", self.refused(stiefel.run, SMALL, output="file").message)
        odd = os.fsdecode(b"two\nlines, \xc3\xa9 and \xff")
        run = stiefel.run(SMALL, output=odd)
        self.assertEqual(run.path.parent.parent.name, odd)
        self.assertEqual(run.evaluate()["loss"], run.summary["test_loss"])

    def test_progress(self):
        """Lines that are damaged or of another run are left out."""
        run = stiefel.run(SMALL)
        path = pathlib.Path(run.path, "progress.jsonl")
        whole, last = path.read_bytes(), stiefel.progress.last_step(path)
        steps = [line for line in map(json.loads, whole.splitlines()) if "loss" in line]
        self.assertEqual(last, steps[-1])
        begin = whole.index(b'{"step":10,')
        for byte in range(begin, whole.index(b"\n", begin)):
            path.write_bytes(whole[:byte] + bytes([whole[byte] ^ 1]) + whole[byte + 1:])
            self.assertEqual(stiefel.progress.last_step(path), steps[-2])
        other = pathlib.Path("other")
        other.mkdir()
        (other / path.name).write_bytes(whole)
        self.assertEqual(stiefel.progress.last_step(other / path.name), {})

    def test_another_process(self):
        """The run of another process is refused; if it is deleted meanwhile, that process says so."""
        with subprocess.Popen([sys.executable, "-c", f"import stiefel\nstiefel.run({SMALL!r}, progress=False, **{LONG!r})"],
                              stderr=subprocess.PIPE, text=True) as other:
            folder = wait_for(lambda: [path.parent for path in pathlib.Path("runs").rglob("progress.jsonl")])[0]
            error = self.refused(stiefel.run, SMALL, **LONG)
            self.assertEqual(error.exit_code, 7)
            self.assertIn("is in use by process", error.message)
            folder.rename("away")  # for the process, the same as deleting it
            told = other.communicate()[1]
        self.assertIn("stiefel.process.Error", told)
        self.assertRegex(told, "lock was removed|has removed or replaced it|No such file")


def wait_for(find):
    for _ in range(600):
        if found := find():
            return found
        time.sleep(0.05)
    raise AssertionError("it took more than 30 seconds")


class Interrupts(Scratch):
    def stopped_after(self, folder):
        """The step after which the run of a folder was stopped by one signal."""
        log = (folder / "log.txt").read_text(encoding="utf-8")
        self.assertEqual(log.count("stopped by signal 2"), 1, log)
        return int(log.split("stopped by signal 2 after step ")[1].split()[0])

    def test_interrupt(self):
        """A terminal sends SIGINT to the whole group: the run stops once, and the same call continues it to the same bits."""
        code = f"import stiefel\nstiefel.run({SMALL!r}, progress=False, **{LONG!r})"
        with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, start_new_session=True) as other:
            folder = wait_for(lambda: [path.parent for path in pathlib.Path("runs").rglob("progress.jsonl")])[0]
            time.sleep(0.3)
            os.killpg(other.pid, signal.SIGINT)
            told = other.communicate()[1]
        self.assertIn("KeyboardInterrupt", told)
        step = self.stopped_after(folder)
        self.assertLess(step, LONG["train.steps"])
        self.assertEqual(stiefel.Run(folder).summary["state"], "stopped")
        continued = stiefel.run(SMALL, **LONG)
        self.assertEqual((continued.path, continued.summary["step"]), (folder.absolute(), LONG["train.steps"]))
        self.assertTrue(same_bits(continued, stiefel.run(SMALL, output="whole", **LONG)))

    def test_sweep(self):
        sweep = {**SMALL, "seeds": [1, 2]}
        code = f"import stiefel\nstiefel.sweep({sweep!r}, jobs=2, **{LONG!r})"
        with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, start_new_session=True) as other:
            wait_for(lambda: len(list(pathlib.Path("sweeps").rglob("progress.jsonl"))) == 2)
            os.killpg(other.pid, signal.SIGINT)
            self.assertIn("KeyboardInterrupt", other.communicate()[1])
        table = stiefel.sweep(sweep, jobs=2, **LONG)
        for row in table.to_dict("records") if pandas else table:
            self.assertEqual((row["state"], row["step"]), ("finished", LONG["train.steps"]))
            self.assertTrue(same_bits(stiefel.Run(row["path"]), stiefel.run(SMALL, seed=row["seed"], output="whole", **LONG)))

    def test_death(self):
        """The run of a process that is killed, such as a kernel that is restarted, stops and is saved."""
        code = f"import stiefel\nstiefel.run({SMALL!r}, progress=False, **{LONG!r})"
        with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as other:
            folder = wait_for(lambda: [path.parent for path in pathlib.Path("runs").rglob("progress.jsonl")])[0]
            other.kill()
        wait_for(lambda: "stopped by signal 15" in (folder / "log.txt").read_text(encoding="utf-8"))
        self.assertEqual(stiefel.run(SMALL, **LONG).summary["state"], "finished")

    def test_kernel(self):
        """Interrupting a kernel stops the run of its cell, and running the cell again continues it to the same bits."""
        try:
            import ipykernel  # noqa: F401
            from jupyter_client.manager import start_new_kernel
        except ImportError as error:
            self.skipTest(str(error))
        with mock.patch.dict(os.environ, HOME=os.getcwd(), JUPYTER_PLATFORM_DIRS="1"):
            manager, client = start_new_kernel(kernel_name="python3")
        cell = f"import stiefel\nrun = stiefel.run({SMALL!r}, **{LONG!r})\nrun"

        def reply_to(request):
            while (reply := client.get_shell_msg(timeout=120))["parent_header"].get("msg_id") != request:
                pass
            return reply["content"]

        try:
            request = client.execute(cell, stop_on_error=False)
            folder = wait_for(lambda: [path.parent for path in pathlib.Path("runs").rglob("progress.jsonl")])[0]
            time.sleep(0.3)
            before = stiefel.progress.last_step(folder / "progress.jsonl")
            asked = time.monotonic()
            manager.interrupt_kernel()
            reply = reply_to(request)
            took = time.monotonic() - asked
            self.assertEqual(reply.get("ename"), "KeyboardInterrupt", reply)
            step = self.stopped_after(folder)
            print(f"kernel: interrupted at step {before['step']} or later, stopped after step {step}, in {took:.2f} s")
            self.assertLess(step, LONG["train.steps"])
            reply = reply_to(client.execute(cell))
            self.assertEqual(reply["status"], "ok", reply)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
        self.assertTrue(same_bits(stiefel.Run(folder), stiefel.run(SMALL, output="whole", **LONG)))


class Progress(Scratch):
    def shown(self, before, **keys):
        code = f"import sys\n{before}\nimport stiefel\nstiefel.run({SMALL!r}, **{keys!r})"
        return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stderr

    def test_progress(self):
        self.assertEqual(self.shown("", progress=False), "")
        self.assertRegex(self.shown("sys.modules['tqdm'] = None", seed=2, progress=True), r"step 10 of 10, loss [\d.]+")
        self.assertEqual(self.shown("", seed=3), "")  # not a terminal
        try:
            import tqdm  # noqa: F401
        except ImportError as error:
            self.skipTest(str(error))
        self.assertRegex(self.shown("", seed=4, progress=True), r"10/10 .*loss=")


class Command(Scratch):
    def test_command(self):
        python = [sys.executable, "-m", "stiefel"]
        self.assertEqual(subprocess.run([*python, "--version"], check=True, capture_output=True).stdout,
                         subprocess.run([PROGRAM, "--version"], check=True, capture_output=True).stdout)
        self.assertEqual(subprocess.run([*python, "--prefix"], check=True, capture_output=True).stdout,
                         subprocess.run([PROGRAM, "--prefix"], check=True, capture_output=True).stdout)
        self.assertEqual(subprocess.run([*python, "run", "nowhere.yaml"], check=False, capture_output=True).returncode, 2)
        missing = subprocess.run(python, check=False, capture_output=True, text=True, env={"PATH": "/nowhere", "PYTHONPATH": PACKAGE})
        self.assertEqual(missing.returncode, 127)
        self.assertIn("there is no program `stiefel`", missing.stderr)

    def test_imports(self):
        """What the command and a run import: nothing that takes long."""
        code = "import stiefel.command, sys; print({'numpy', 'h5py', 'yaml', 'subprocess', 'typing'} & sys.modules.keys())"
        loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        self.assertNotRegex(loaded, "numpy|h5py|yaml|subprocess")
        code = f"import stiefel, sys; stiefel.run({SMALL!r}, progress=False); print(set(sys.modules) & {{'numpy', 'h5py', 'yaml', 'xarray'}})"
        loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        self.assertEqual(loaded, "set()\n")

    def test_python(self):
        """The package is written for Python 3.9."""
        import ast
        for file in sorted(pathlib.Path(PACKAGE, "stiefel").glob("*.py")):
            tree = ast.parse(file.read_text(encoding="utf-8"), str(file), feature_version=(3, 9))
            united = [node.lineno for alias in tree.body if isinstance(alias, ast.Assign)
                      for node in ast.walk(alias) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)]
            self.assertEqual(united, [], f"{file}: types are united when it is imported")

    def test_types(self):
        try:
            from mypy import api
        except ImportError as error:
            self.skipTest(str(error))
        self.assertTrue(pathlib.Path(PACKAGE, "stiefel/py.typed").exists())
        options = ["--ignore-missing-imports", "--disallow-untyped-defs", "--disallow-incomplete-defs", "--disable-error-code=import-untyped",
                   "--cache-dir", "mypy"]
        told, errors, code = api.run([*options, str(pathlib.Path(PACKAGE, "stiefel"))])
        self.assertEqual(code, 0, told + errors)


unittest.main(argv=sys.argv[:1] + sys.argv[3:])
