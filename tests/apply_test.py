#!/usr/bin/python3
"""`stiefel evaluate`, `predict` and `export --weights`: a trained network applied to data, against NumPy.

usage: apply_test.py PROGRAM HOSTILE_TASK
"""
import csv
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import h5py
import numpy as np

PROGRAM, HOSTILE_TASK = sys.argv.pop(1), sys.argv.pop(1)
ROWS = 12


def series(sequences, seed, scale=1.0):
    """CSV text: the target is the running mean of `wind` minus `rain`; two columns are the same for `predict`."""
    rng = np.random.default_rng(seed)
    lines = ["station,wind,rain,level"]
    for s in range(sequences):
        x = rng.normal(size=(ROWS, 2)) * scale
        y = np.cumsum(x[:, 0] - x[:, 1]) / np.arange(1, ROWS + 1)
        lines += [f"s{s},{a!r},{b!r},{c!r}" for (a, b), c in zip(x.tolist(), y.tolist())]
    return "\n".join(lines) + "\n"


EXPERIMENT = """
name: levels
scalar: {scalar}
task:
  plugin: sequence_csv
  train: {{file: {folder}/train.csv}}
  validation: {{file: {folder}/test.csv}}
  test: {{file: {folder}/test.csv}}
  sequence: station
  targets: [level]
  readout: {readout}
  normalisation: standard
  target_normalisation: standard
model:
  cell: {cell}
  recurrent: {recurrent}
optimizer: {{plugin: adam, rate: 0.01}}
train: {{batch: 8, epochs: 3}}
"""


def stiefel(*words, code=0, **more):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, **more)
    assert done.returncode == code, f"stiefel {words} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done


def table(file):
    return list(csv.DictReader(io.StringIO(file.read_text())))


class Weights(dict):
    """A safetensors file: arrays by name, and what it says of itself."""

    def __init__(self, path):
        data = Path(path).read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        assert (8 + length) % 8 == 0
        self.about = header.pop("__metadata__")
        assert all(isinstance(text, str) for text in self.about.values())
        end = 0
        for name, tensor in header.items():
            first, last = tensor["data_offsets"]
            assert first == end, name
            end = last
            kind = {"F32": "<f4", "F64": "<f8"}[tensor["dtype"]]
            self[name] = np.frombuffer(data[8 + length + first : 8 + length + last], kind).reshape(tensor["shape"])
        assert 8 + length + end == len(data)


class Apply(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)
        (self.folder / "train.csv").write_text(series(40, 1))
        (self.folder / "test.csv").write_text(series(10, 2))

    def train(self, scalar="float64", readout="every", cell="{plugin: elman, hidden: 12, activation: tanh}",
              recurrent="scaled_cayley"):
        file = self.folder / "levels.yaml"
        file.write_text(EXPERIMENT.format(folder=self.folder, scalar=scalar, readout=readout, cell=cell,
                                          recurrent=recurrent))
        stiefel("run", file, "--no-progress", "--output", self.folder / "runs")
        return max((self.folder / "runs/levels").iterdir(), key=lambda run: run.stat().st_mtime_ns)

    def predict(self, run, *words, **more):
        return list(csv.DictReader(io.StringIO(stiefel("predict", run, *words, **more).stdout)))

    def test_evaluate_gives_what_the_run_recorded(self):
        run = self.train()
        found = json.loads(stiefel("evaluate", run, "--json").stdout)
        with h5py.File(run / "results.h5") as file:
            self.assertEqual(found["values"]["loss"], file["final/test_loss"][-1])
            self.assertEqual(found["values"]["mae"], file["final/test_mae"][-1])
        self.assertIn(f"loss       {found['values']['loss']:.6g}\n", stiefel("evaluate", run).stdout)
        (self.folder / "other.csv").write_text(series(10, 3, scale=4.0))
        other = json.loads(stiefel("evaluate", run, f"task.test.file={self.folder}/other.csv", "--json").stdout)
        self.assertGreater(other["values"]["loss"], 2 * found["values"]["loss"])

    def test_evaluate_refuses_what_does_not_belong_to_the_network(self):
        run = self.train()
        self.assertIn("'model.cell.hidden=3' would change the network",
                      stiefel("evaluate", run, "model.cell.hidden=3", code=2).stderr)
        self.assertIn("name the folder of one run", stiefel("evaluate", run, "wind", code=2).stderr)
        wrong = stiefel("evaluate", run, "task.features=[wind]", code=2).stderr
        self.assertIn("does not fit the changed task", wrong)
        self.assertIn("/weights/input.weight has 24 numbers, but 12 are needed", wrong)
        self.assertIn("choose one of --last and --step", stiefel("evaluate", run, "--last", "--step", "3", code=2).stderr)
        self.assertIn("use --last, or no option for the best network", stiefel("evaluate", run, "--step", "999", code=2).stderr)

    def test_evaluate_refuses_another_normalization(self):
        run = self.train()
        (self.folder / "thousands.csv").write_text(series(40, 1, scale=1000.0))
        (self.folder / "away").mkdir()
        self.assertIn("the changed task would normalize inputs", stiefel("evaluate", run, "task.normalisation=none", code=2).stderr)
        before = stiefel("evaluate", run).stdout
        other = stiefel("evaluate", run, f"task.train.file={self.folder}/thousands.csv").stdout
        self.assertEqual(re.sub("baseline.*", "", other), re.sub("baseline.*", "", before))
        stiefel("evaluate", run, f"task.test.file={self.folder}/thousands.csv", cwd=self.folder / "away")

    def test_training_data_that_were_moved(self):
        run = self.train()
        before = stiefel("evaluate", run).stdout
        moved, thousands = self.folder / "moved.csv", self.folder / "thousands.csv"
        (self.folder / "train.csv").rename(moved)
        thousands.write_text(series(40, 1, scale=1000.0))
        self.assertEqual(stiefel("evaluate", run, f"task.train={moved}").stdout, before)
        self.assertIn("would normalize inputs", stiefel("evaluate", run, f"task.train={moved}", "task.normalisation=none", code=2).stderr)
        without = stiefel("evaluate", run)
        self.assertEqual(without.stdout, re.sub("baseline.*\n", "", before))
        self.assertIn(f"{self.folder}/train.csv is missing since", without.stderr)
        self.assertIn("the network keeps the names and scales of its training", without.stderr)

    def test_a_trained_network_needs_no_data(self):
        run = self.train()
        words = [("predict", run, "--input", self.folder / "test.csv"), ("predict", run, "--input", self.folder / "new.npy")]
        np.save(self.folder / "new.npy", np.ones((2, 5, 2)))
        before = [stiefel(*each).stdout for each in words]
        stiefel("export", run, "--weights", self.folder / "before.safetensors")
        for change in (lambda file: file.write_text(series(40, 7, scale=9.0)), Path.unlink):
            change(self.folder / "train.csv")
            self.assertEqual([stiefel(*each).stdout for each in words], before)
            stiefel("export", run, "--weights", self.folder / "after.safetensors")
            self.assertEqual((self.folder / "after.safetensors").read_bytes(), (self.folder / "before.safetensors").read_bytes())

    def test_a_text_network_needs_no_data(self):
        text = self.folder / "text.txt"
        text.write_text("to be or not to be\n" * 40)
        for units in ("characters", "words"):
            file = self.folder / f"{units}.yaml"
            file.write_text(f"""
name: {units}
task: {{plugin: characters, train: {text}, validation: {text}, units: {units}}}
model: {{cell: {{plugin: elman, hidden: 8}}, recurrent: scaled_cayley}}
optimizer: {{plugin: adam, rate: 0.01}}
train: {{batch: 4, steps: 3}}
""")
            stiefel("run", file, "--no-progress", "--output", self.folder / "runs")
            (run,) = (self.folder / "runs" / units).iterdir()
            (self.folder / "new.txt").write_text("be not or\n")
            commands = [("sample", run, "--length", 20, "--prime", "to be"), ("predict", run, "--input", self.folder / "new.txt")]
            before = [stiefel(*words).stdout for words in commands]
            text.rename(self.folder / "away")
            self.assertEqual([stiefel(*words).stdout for words in commands], before)
            (self.folder / "away").rename(text)

    def test_evaluate_keeps_scales_and_classes_of_the_training(self):
        run = self.train()
        before = json.loads(stiefel("evaluate", run, "--json").stdout)["values"]
        (self.folder / "train.csv").write_text(series(40, 7, scale=9.0))
        changed = stiefel("evaluate", run, "--json")
        self.assertEqual(json.loads(changed.stdout)["values"], before)
        self.assertIn(f"{self.folder}/train.csv has changed since", changed.stderr)

    def test_evaluate_tells_damage_from_another_task(self):
        run = self.train()
        network = run / "checkpoints/best.h5"
        data = bytearray(network.read_bytes())
        data[len(data) // 2] ^= 1
        network.write_bytes(data)
        self.assertIn("it is not what was written",
                      stiefel("evaluate", run, f"task.test.file={self.folder}/train.csv", code=6).stderr)

    def test_a_baseline_belongs_to_the_test_split(self):
        run = self.train()
        self.assertIn("baseline", stiefel("evaluate", run).stdout)
        self.assertNotIn("baseline", stiefel("evaluate", run, "--split", "validation").stdout)

    def test_a_trained_network_needs_no_memory_for_training(self):
        """A network that was trained with batches beyond this machine's memory."""
        run = self.train()
        config = run / "config.yaml"
        text = config.read_text()
        self.assertIn("batch: 8\n", text)
        config.write_text(text.replace("batch: 8\n", "batch: 1000000000\n"))
        index = run / "checkpoints/index.json"
        listed = json.loads(index.read_text())
        entry, = (entry for entry in listed["files"] if entry["file"] == "config.yaml")
        entry.update(bytes=config.stat().st_size, sha256=hashlib.sha256(config.read_bytes()).hexdigest())
        index.write_text(json.dumps(listed))
        self.assertIn("choose a smaller", stiefel("run", config, code=8).stderr)
        self.predict(run, "--input", self.folder / "test.csv")
        stiefel("export", run, "--weights", self.folder / "w.safetensors")

    def test_exports_refuse_options_without_effect(self):
        run = self.train()
        for words, message in ((("--csv", "--last"), "--last needs --weights"), (("--csv", "--step", "3"), "--step needs --weights"),
                               (("--weights", "w.safetensors", "--output", "."), "--output needs --csv or --tensorboard")):
            self.assertIn(message, stiefel("export", run, *words, code=2, cwd=self.folder).stderr)
        self.assertIn("end net.onnx in .safetensors", stiefel("export", run, "--weights", "net.onnx", code=2, cwd=self.folder).stderr)
        stiefel("export", f"{run}/", "--weights", self.folder / "w.safetensors")
        self.assertEqual(Weights(self.folder / "w.safetensors").about["run_id"], run.name)

    def test_names_in_predictions_are_those_of_the_input(self):
        run = self.train()
        names = ["@a", "=x", "-north", "a b", 'say "hi"', "a,b"]
        with open(self.folder / "names.csv", "w", newline="") as file:
            csv.writer(file).writerows([("station", "wind", "rain")] + [(name, 1, 2) for name in names])
        rows = self.predict(run, "--input", self.folder / "names.csv")
        self.assertEqual([r["sequence"] for r in rows], names)

    def test_output_that_nobody_can_take(self):
        run = self.train()
        words = [PROGRAM, "predict", str(run), "--input", str(self.folder / "test.csv")]
        with open("/dev/full", "w") as full:
            done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (8, 1), done.stderr)
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, text=True)
        os.close(writing)
        self.assertEqual((done.returncode, done.stderr), (141, ""))

    def test_a_reader_of_a_plugin_is_guarded(self):
        file = self.folder / "hostile.yaml"
        for fault, message in (("reader_steps", "is wrong: read(256) of its reader gives 1 × 257 steps"),
                               ("reader_throws", "the sensor is gone (in read() of hostile_task")):
            file.write_text(f"""
name: {fault}
plugins: [{HOSTILE_TASK}]
task: {{plugin: hostile_task, fault: {fault}}}
model: {{cell: {{plugin: elman, hidden: 4}}, recurrent: dense}}
optimizer: {{plugin: adam, rate: 0.01}}
train: {{batch: 2, steps: 2}}
""")
            stiefel("run", file, "--no-progress", "--output", self.folder / "runs")
            (run,) = (self.folder / "runs" / fault).iterdir()
            self.assertIn(message, stiefel("predict", run, "--input", "any", code=3).stderr)

    def test_predictions_go_through_pipes_and_links(self):
        run = self.train()
        words = ["predict", run, "--input", self.folder / "test.csv"]
        expected = stiefel(*words).stdout
        pipe, link, file = (self.folder / name for name in ("pipe", "link", "file"))
        os.mkfifo(pipe)
        file.write_text("before")
        link.symlink_to(file.name)
        with subprocess.Popen([PROGRAM, *map(str, words), "--output", str(pipe)]) as process:
            self.assertEqual(pipe.read_text(), expected)
            self.assertEqual(process.wait(), 0)
        self.assertTrue(pipe.is_fifo())
        stiefel(*words, "--output", link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(file.read_text(), expected)

    def test_predictions_have_the_loss_that_evaluate_says(self):
        run = self.train()
        found = json.loads(stiefel("evaluate", run, "--json").stdout)["values"]
        rows = self.predict(run, "--input", self.folder / "test.csv")
        truth = table(self.folder / "test.csv")
        self.assertEqual([r["sequence"] for r in rows], [t["station"] for t in truth])
        error = [abs(float(r["level"]) - float(t["level"])) for r, t in zip(rows, truth)]
        self.assertAlmostEqual(np.mean(error), found["mae"], places=12)
        stiefel("export", run, "--weights", self.folder / "w.safetensors")
        (scale,) = json.loads(Weights(self.folder / "w.safetensors").about["normalisation"])["target"]["scale"]
        self.assertAlmostEqual(np.mean(np.square(error)) / scale**2, found["loss"], places=12)  # of batches of 8 and 2

    def test_numpy_says_the_same(self):
        """h_t = φ(W h₋ + V x + b), o = Y h + c from the exported file, for both scalars."""
        for scalar, digits in (("float32", 5e-6), ("float64", 1e-12)):
            run = self.train(scalar=scalar)
            stiefel("export", run, "--weights", self.folder / "w.safetensors")
            w = Weights(self.folder / "w.safetensors")
            scaling = json.loads(w.about["normalisation"])
            self.assertEqual(json.loads(w.about["features"]), ["wind", "rain"])
            self.assertEqual(json.loads(w.about["config_json"])["model"]["cell"]["plugin"], "elman")
            W = w["layers.0.recurrent.W"]
            self.assertLess(np.abs(W.T @ W - np.eye(12)).max(), 1e-5)
            x = np.array([[float(r["wind"]), float(r["rain"])] for r in table(self.folder / "test.csv")])
            x = ((x - scaling["input"]["mean"]) / scaling["input"]["scale"]).reshape(-1, ROWS, 2)
            outputs = []
            for sequence in x:
                h = w["layers.0.initial"].astype(float)
                for step in sequence:
                    h = np.tanh(W.astype(float) @ h + w["layers.0.input.V"] @ step + w["layers.0.input.b"])
                    outputs.append(w["readout.Y"] @ h + w["readout.c"])
            raw = self.predict(run, "--input", self.folder / "test.csv", "--raw")
            got = np.array([float(r["level"]) for r in raw])
            self.assertLess(np.abs(got - np.ravel(outputs)).max(), digits)
            values = self.predict(run, "--input", self.folder / "test.csv")
            back = np.ravel(outputs) * scaling["target"]["scale"][0] + scaling["target"]["mean"][0]
            self.assertLess(np.abs(np.array([float(r["level"]) for r in values]) - back).max(), digits)
            subprocess.run(["rm", "-r", self.folder / "runs"], check=True)

    def test_complex_maps_are_pairs(self):
        run = self.train(recurrent="{plugin: unitary_householder, reflections: 5}")
        stiefel("export", run, "--weights", self.folder / "w.safetensors")
        W = Weights(self.folder / "w.safetensors")["layers.0.recurrent.W"] @ [1, 1j]
        self.assertEqual(W.shape, (12, 12))
        self.assertLess(np.abs(W.conj().T @ W - np.eye(12)).max(), 1e-12)

    def test_bits_do_not_depend_on_how_the_input_is_cut(self):
        run = self.train(scalar="float32", cell="{plugin: lstm, hidden: 12}", recurrent="dense")
        whole = self.predict(run, "--input", self.folder / "test.csv")
        by_steps = self.predict(run, "--input", self.folder / "test.csv", "--states")
        self.assertEqual([r["level"] for r in whole], [r["level"] for r in by_steps])
        self.assertIn("state_23", by_steps[0])
        piped = self.predict(run, "--input", "-", input=(self.folder / "test.csv").read_text())
        self.assertEqual(whole, piped)
        stiefel("predict", run, "--input", self.folder / "test.csv", "--output", self.folder / "out.csv")
        self.assertEqual(whole, table(self.folder / "out.csv"))
        one = [t for t in table(self.folder / "test.csv") if t["station"] == "s4"]
        np.save(self.folder / "s4.npy", np.array([[float(t["wind"]), float(t["rain"])] for t in one]))
        array = self.predict(run, "--input", (self.folder / "s4.npy").rename(self.folder / "S4.NPY"))
        self.assertEqual([r["level"] for r in array], [r["level"] for r in whole if r["sequence"] == "s4"])

    def test_padded_arrays(self):
        for readout in ("last", "every"):
            run = self.train(readout=readout)
            stations, lengths = {}, []
            for row in table(self.folder / "test.csv"):
                stations.setdefault(row["station"], []).append([float(row["wind"]), float(row["rain"])])
            array = np.full((len(stations), max(map(len, stations.values())) + 2, 2), np.nan)
            for n, rows in enumerate(stations.values()):
                rows = rows[:len(rows) - n]
                array[n, :len(rows)] = rows
                lengths.append(len(rows))
            np.save(self.folder / "padded.npy", array)
            np.save(self.folder / "lengths.npy", lengths)
            padded = self.predict(run, "--input", self.folder / "padded.npy", "--lengths", self.folder / "lengths.npy")
            for n, length in enumerate(lengths):
                np.save(self.folder / "alone.npy", array[n, :length])
                alone = self.predict(run, "--input", self.folder / "alone.npy")
                self.assertEqual([r["level"] for r in padded if r["sequence"] == str(n)], [r["level"] for r in alone])
        for wrong, message in (([1], "lengths must be"), ([0] * len(lengths), "the length 0 is not an integer from 1 to"),
                               ([array.shape[1] + 1] * len(lengths), "is not an integer from 1 to")):
            np.save(self.folder / "lengths.npy", wrong)
            self.assertIn(message, stiefel("predict", run, "--input", self.folder / "padded.npy", "--lengths", self.folder / "lengths.npy", code=4).stderr)
        self.assertIn("--lengths is for an --input that ends in .npy",
                      stiefel("predict", run, "--input", self.folder / "test.csv", "--lengths", self.folder / "lengths.npy", code=2).stderr)

    def test_a_target_at_the_end_has_one_row(self):
        run = self.train(readout="last")
        rows = self.predict(run, "--input", self.folder / "test.csv")
        self.assertEqual([r["step"] for r in rows], [str(ROWS - 1)] * 10)

    @unittest.skipIf("ASAN_OPTIONS" in os.environ, "a sanitizer keeps freed memory")
    def test_a_long_stream_takes_constant_memory(self):
        run = self.train(scalar="float32")
        sizes = []
        for steps in (2000, 200_000):
            with open(self.folder / "long.csv", "w") as file:
                file.write("station,wind,rain\n")
                file.writelines(f"a,{i % 7}.5,{i % 3}.25\n" for i in range(steps))
            before = subprocess.run(
                ["/usr/bin/python3", "-c",
                 "import resource, subprocess, sys\n"
                 "subprocess.run(sys.argv[1:], check=True)\n"
                 "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
                 PROGRAM, "predict", run, "--input", self.folder / "long.csv", "--output", self.folder / "out.csv"],
                capture_output=True, text=True, check=True)
            sizes.append(int(before.stdout))
            self.assertEqual((self.folder / "out.csv").read_bytes().count(b"\n"), steps + 1)
        self.assertLess(sizes[1] - sizes[0], 4000)  # kB

    def test_bad_input_is_refused_in_a_sentence(self):
        run = self.train()
        file = self.folder / "bad.csv"
        for text, message in (
            ("station,wind\ns,1\n", 'there is no column "rain"'),
            ("station,wind,rain\ns,1,x\n", 'bad.csv:2:5: column "rain" holds "x"'),
            ("station,wind,rain\ns,1,nan\n", 'column "rain" holds "nan"'),
            ("station,wind,rain\ns,1\n", "bad.csv:2:1: 2 fields, but the header has 3 columns"),
            ("station,wind,rain\ns,1,2\nt,1,2\ns,1,2\n", "bad.csv:4:1: the sequence \"s\" continues here"),
            ("station,wind,rain\n", "has no sequence"),
            ("", "no header"),
        ):
            file.write_text(text)
            done = stiefel("predict", run, "--input", file, "--output", self.folder / "out.csv", code=4)
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertFalse((self.folder / "out.csv").exists())
        rows = "".join(f"s,{i},2\n" for i in range(40_000))
        file.write_text("station,wind,rain\n" + rows + "s,1,?\n")
        self.assertIn("bad.csv:40002:5:", stiefel("predict", run, "--input", file, code=4).stderr)
        np.save(self.folder / "three.npy", np.zeros((5, 3)))
        self.assertIn("is an array of 5 × 3; the network needs N × T × 2",
                      stiefel("predict", run, "--input", self.folder / "three.npy", code=4).stderr)
        array = np.zeros((2, 5, 2))
        array[1, 3, 0] = np.nan
        np.save(self.folder / "nan.npy", array)
        self.assertIn("nan.npy: the input [1, 3, 0] is not finite", stiefel("predict", run, "--input", self.folder / "nan.npy", code=4).stderr)
        self.assertIn("name the file", stiefel("predict", run, code=2).stderr)
        self.assertIn("predict takes one run and no settings, so leave 'task.data=x.csv' out", stiefel("predict", run, "task.data=x.csv", code=2).stderr)

    def test_a_column_of_numbers_is_not_guessed(self):
        """20 sequences of one step, as training reads it, or one of 20 steps."""
        rng = np.random.default_rng(1)
        x = rng.normal(size=(20, 1))
        np.save(self.folder / "x.npy", x)
        np.save(self.folder / "y.npy", x[:, 0])
        run = stiefel("run", self.one_number(), "--quiet", "--output", self.folder / "ones").stdout
        (run,) = (self.folder / "ones/one").iterdir()
        self.assertIn("20 × 1 × 1 for sequences of one step", stiefel("predict", run, "--last", "--input", self.folder / "x.npy", code=4).stderr)
        np.save(self.folder / "x3.npy", x[:, :, None])
        self.assertEqual(len(self.predict(run, "--last", "--input", self.folder / "x3.npy")), 20)

    def one_number(self):
        file = self.folder / "one.yaml"
        file.write_text(f"""name: one
task: {{plugin: sequence_csv, train: {{file: {self.folder}/x.npy, targets: {self.folder}/y.npy}}}}
model: {{cell: {{plugin: elman, hidden: 4}}, recurrent: dense}}
optimizer: {{plugin: adam, rate: 0.01}}
train: {{batch: 5, steps: 4}}
""")
        return file


if __name__ == "__main__":
    unittest.main()
