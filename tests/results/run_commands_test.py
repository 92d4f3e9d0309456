#!/usr/bin/python3
"""`stiefel diff`, `export` and `inspect` on runs that the program makes: run_commands_test.py STIEFEL"""
import csv
import json
import os
import pathlib
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

PROGRAM = sys.argv[1]
EXPERIMENT = """name: shown
task: {plugin: adding, length: 12, validation_sequences: 20, test_sequences: 20}
model:
  cell: {plugin: CELL, hidden: 8}
  recurrent: {plugin: METHOD}
optimizer: {plugin: adam, rate: 0.01}
train: {batch: 5, steps: 40, evaluate_every: 10}
record: {loss: 1, spectrum: 10, gradient_norms: 10, orthogonality: 10}
checkpoint: {every: 20, keep: 2}
"""


def crc32c(data):
    """Bit by bit, as RFC 3720 defines it."""
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    """Messages of an event file whose checksums hold."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        length, = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked(data[at:at + 8]), at
        message = data[at + 12:at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(message), at
        at += 16 + length
        yield message


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 128:
            return value, at


def fields(message):
    """(number, value) of a message in Google's encoding."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(message, at)
        elif kind == 2:
            size, at = varint(message, at)
            value, at = message[at:at + size], at + size
        else:
            size, form = {1: (8, "<d"), 5: (4, "<f")}[kind]
            value, at = struct.unpack_from(form, message, at)[0], at + size
        yield key >> 3, value


def events(path):
    """The first event, {tag: [(step, value)]}, and (step, time) of every value in the order of the file."""
    first, curves, times = None, {}, []
    for message in records(path):
        event = dict(fields(message))
        first = first or event
        for number, value in fields(event.get(5, b"")):
            assert number == 1
            scalar = dict(fields(value))
            curves.setdefault(scalar[1].decode(), []).append((event[2], scalar[2]))
            times.append((event[2], event[1]))
    return first, curves, times


class RunCommands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        cls.run_ = cls.make("real", "elman", "householder", "model.recurrent.reflections=4", "seed=1")
        cls.other = cls.make("real", "elman", "householder", "model.recurrent.reflections=4", "seed=2", "optimizer.rate=0.02")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def make(cls, where, cell, method, *overrides):
        file = cls.root / f"{cell}_{method}.yaml"
        file.write_text(EXPERIMENT.replace("CELL", cell).replace("METHOD", method), encoding="utf-8")
        said = cls.call("run", file, "--output", cls.root / where, "--threads", 1, "--no-progress", *overrides)
        return pathlib.Path(re.search("^results: (.*)/results.h5$", said, re.MULTILINE)[1])

    @classmethod
    def call(cls, *words, code=0):
        done = subprocess.run([PROGRAM, *map(str, words)], cwd=cls.root, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == code, (words, done.returncode, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def test_compare_of_real_runs(self):
        found = json.loads(self.call("compare", "real", "--json"))
        self.assertEqual([group["keys"] for group in found["groups"]], [{"optimizer.rate": "0.01"}, {"optimizer.rate": "0.02"}])
        with h5py.File(self.run_ / "results.h5") as file:
            self.assertEqual(found["groups"][0]["value"]["mean"], file["status"].attrs["best_metric"])
            self.assertEqual(found["groups"][0]["parameters"], file.attrs["parameters"])
            test = json.loads(self.call("compare", "real", "--json", "--metric", "test_loss", "--where", "seed=1"))
            self.assertEqual(test["groups"][0]["value"]["mean"], file["final/test_loss"][0])

    def test_an_axis_as_long_as_a_table_is_not_exported(self):
        run = self.make("square", "elman", "dense", "train.steps=70")
        with h5py.File(run / "results.h5") as file:
            self.assertEqual(len(file["spectrum/recurrent/k"]), len(file["spectrum/recurrent/snapshot"]))
        self.call("export", run, "--csv", "--tensorboard", "--output", self.root / "square")
        header = next(self.root.glob("square/**/spectrum_recurrent.csv")).read_text(encoding="utf-8").splitlines()[0].split(",")
        self.assertEqual((header[0], "k" in header, "singular_values_7" in header), ("snapshot", False, True))
        self.assertNotIn("spectrum/recurrent/k", events(next(self.root.glob("square/**/events*")))[1])

    def test_initial_values_from_a_file(self):
        """They are data of the run: other ones make another run, and a trained network does not need them."""
        np.save(self.root / "W.npy", np.eye(8))
        words = ("model.recurrent.init=file", f"model.recurrent.file={self.root}/W.npy")
        run = self.make("initial", "elman", "dense", *words)
        self.assertEqual(self.make("initial", "elman", "dense", *words), run)
        np.save(self.root / "W.npy", np.zeros((8, 8)))
        again = self.make("initial", "elman", "dense", *words)
        self.assertTrue(again.name.startswith(run.name + "-"), again)
        self.assertNotEqual(self.call("diff", run, again), "")
        (self.root / "W.npy").unlink()
        self.call("evaluate", run)
        self.call("export", run, "--weights", self.root / "W.safetensors")

    def test_weight_noise_does_not_move_a_map_away_from_its_group(self):
        run = self.make("noise", "elman", "low_rank_projection", "train.weight_noise=0.05", "optimizer={plugin: sgd, rate: 1e-4}")
        with h5py.File(run / "results.h5") as file:
            self.assertLess(file["orthogonality/recurrent/defect_fro"][:].max(), 1e-4)

    def test_composite_decay_of_a_complex_map(self):
        """The decay of W is λ‖W‖², as that of its parameters here, where W is its only factor."""
        moved = []
        for composite in ("false", "true"):
            run = self.make(f"decay_{composite}", "elman", "kronecker", "scalar=float64", "model.recurrent.factors=[8]", "model.recurrent.init=identity",
                            f"optimizer=[{{blocks: 'recurrent.*', plugin: sgd, rate: 0.1, weight_decay: 0.5, composite: {composite}}}, {{plugin: frozen}}]",
                            "model.readout.init=zero", "train.steps=1", "train.evaluate_every=1")
            with h5py.File(run / "checkpoints/last.h5") as file:
                moved.append({name: block[...] for name, block in file["weights"].items() if name.startswith("recurrent")})
        self.assertEqual(moved[0].keys(), moved[1].keys())
        for name, block in moved[0].items():
            np.testing.assert_allclose(moved[1][name], block, atol=1e-12)
            self.assertAlmostEqual(block.max(), 0.9, places=9)

    def test_blocks_without_parameters(self):
        file = self.root / "elman_scaled_cayley.yaml"
        file.write_text(EXPERIMENT.replace("CELL", "elman").replace("METHOD", "scaled_cayley"), encoding="utf-8")
        said = self.call("validate", file, "model.cell.hidden=1", "record.blocks={recurrent.A: 1}", code=2)
        self.assertIn('record.blocks: the block "recurrent.A" has no parameter in this network', said)
        file.write_text(EXPERIMENT.replace("CELL", "lru").replace("{plugin: METHOD}", "null"), encoding="utf-8")
        self.assertIn("max_phase", self.call("validate", file, "model.cell.max_phase=0", code=2))

    @unittest.skipUnless(platform.machine() == "x86_64", "the kernels are those of x86-64")
    def test_kernels_of_blas(self):
        """A run whose kernels do not fit the CPU says so first; the run and --version name them."""
        environment = {**os.environ, "OPENBLAS_CORETYPE": "Prescott"}

        def call(*words):
            done = subprocess.run([PROGRAM, *map(str, words)], cwd=self.root, capture_output=True, text=True, check=True, env=environment)
            return done.stdout, done.stderr
        self.assertRegex(call("--version")[0], r"^stiefel \S+\nBLAS: Prescott kernels of OpenBLAS .*\nSIMD: \w+\n$")
        words = ("run", self.root / "elman_householder.yaml", "--threads", 1, "--no-progress", "seed=3", "train.steps=10",
                 "model.recurrent.reflections=4", "--output")
        stdout, stderr = call(*words, self.root / "prescott")
        run = pathlib.Path(re.search("^results: (.*)$", stdout, re.MULTILINE)[1])
        with h5py.File(run) as file:
            self.assertEqual(file["provenance"].attrs["blas_core"], "Prescott")
            self.assertGreater(file["status"].attrs["cpu_seconds"], 0)
        flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii")
        if " avx2 " in flags:
            self.assertRegex(stderr.splitlines()[0], "^warning: OpenBLAS uses its Prescott kernels, .*; unset OPENBLAS_CORETYPE for its ")
            self.assertEqual(call(*words, self.root / "quiet", "--quiet")[1], stderr.splitlines()[0] + "\n")

    def test_diff(self):
        found = json.loads(self.call("diff", self.run_, self.other, "--json"))
        self.assertEqual(found["configuration"], {"optimizer.rate": ["0.01", "0.02"], "seed": ["1", "2"]})
        self.assertEqual(set(found["provenance"]), {"command_line"})
        self.assertIn("results.h5 /steps/loss", found["differing"])
        self.assertTrue(any(place.startswith("checkpoints/best.h5 /weights/recurrent") for place in found["differing"]))
        said = self.call("diff", self.run_, self.other)
        self.assertRegex(said, r"configuration +optimizer\.rate +0\.01 +0\.02\n")
        self.assertRegex(said, r"\d+ recorded arrays differ: results\.h5 /")
        self.call("repeat", self.run_, "--output", "again", "--threads", 1, "--no-progress")
        self.assertIn("identical to the bit", self.call("diff", self.run_, "again"))
        self.assertIn("has 2 runs", self.call("diff", "real", "again", code=2))

    def test_diff_blames_the_run_that_is_damaged(self):
        damaged = shutil.copytree(self.run_, self.root / "damaged")
        path = damaged / "checkpoints" / "last.h5"
        path.write_bytes(path.read_bytes()[:1000])
        for words in ((self.run_, damaged), (damaged, self.run_)):
            self.assertRegex(self.call("diff", *words, code=6), f"^stiefel: cannot read {damaged}: ")

    def test_results_of_another_run(self):
        mixed = shutil.copytree(self.run_, self.root / "mixed")
        shutil.copy(self.other / "results.h5", mixed)
        said = f"{mixed}: results.h5 and config.yaml are of different runs, or one of them was edited: optimizer.rate"
        for words in (("export", "--csv"), ("export", "--tensorboard"), ("report",), ("diff", self.run_)):
            self.assertIn(said, self.call(*words, mixed, code=6))

    def test_diff_of_plugins(self):
        """Another build of a plugin shows by its build id."""
        copy = self.root / "rebuilt"
        copy.mkdir()
        for name in ("config.yaml", "results.h5"):
            (copy / name).write_bytes((self.run_ / name).read_bytes())
        with h5py.File(copy / "results.h5", "r+") as file:
            names = list(file["provenance/plugins/name"].asstr())
            file["provenance/plugins/build_id"][names.index("householder")] = "0123456789"
        found = json.loads(self.call("diff", self.run_, copy, "--json"))
        self.assertEqual([key for key in found["provenance"]], ["parametrisation householder build_id"])

    def test_csv(self):
        files = self.call("export", self.run_, "--csv", "-o", "csv").split()
        names = {pathlib.Path(file).name for file in files}
        self.assertLessEqual({"steps.csv", "epochs.csv", "final.csv", "spectrum_recurrent.csv", "gradient.csv", "timing.csv"}, names)
        with h5py.File(self.run_ / "results.h5") as file:
            for table, group in (("steps", "steps"), ("spectrum_recurrent", "spectrum/recurrent")):
                with open(self.root / "csv" / f"{table}.csv", encoding="utf-8") as stream:
                    rows = list(csv.DictReader(stream))
                for name, dataset in file[group].items():
                    if dataset.shape[:1] != (len(rows),) or name == "k":
                        continue
                    values = dataset[:].reshape(len(rows), -1)
                    labels = [list(other.asstr()) for other in file[group].values() if other.dtype.kind == "O" and other.shape == dataset.shape[1:]]
                    for j, column in enumerate(values.T):
                        title = name if dataset.ndim == 1 else f"{name}_{labels[0][j] if labels else j}"
                        if values.dtype.kind == "c":
                            found = np.array([complex(float(row[title + "_re"]), float(row[title + "_im"])) for row in rows])
                        else:
                            found = np.array([float(row[title]) for row in rows])
                        np.testing.assert_array_equal(found, column, title)
        with open(self.root / "csv" / "timing.csv", encoding="utf-8") as stream:
            self.assertIn("seconds_passes", csv.DictReader(stream).fieldnames)
        formula = self.changed("formula", lambda file: file.create_dataset("epochs/=1+1\u202e", data=-np.ones(len(file["epochs/step"]))))
        self.call("export", formula, "--csv", "-o", "formula_csv")
        with open(self.root / "formula_csv" / "epochs.csv", encoding="utf-8") as stream:
            self.assertEqual(next(csv.DictReader(stream))[r"'=1+1\xe2\x80\xae"], "-1")

    def test_tensorboard(self):
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)
        file, = map(pathlib.Path, self.call("export", self.run_, "--tensorboard").split())
        self.assertIn("tfevents", file.name)
        self.assertEqual(file.parent, pathlib.Path("exports/shown") / self.run_.name)
        first, curves, times = events(self.root / file)
        self.assertEqual(first[3], b"brain.Event:2")
        with h5py.File(self.run_ / "results.h5") as results:
            for tag, steps in (("steps/loss", "steps/step"), ("epochs/valid_loss", "epochs/step"), ("spectrum/recurrent/singular_max", "spectrum/recurrent/snapshot")):
                self.assertEqual([step for step, _ in curves[tag]], list(results[steps]), tag)
                np.testing.assert_array_equal(np.float32([value for _, value in curves[tag]]), results[tag][:].astype(np.float32))
            self.assertNotIn("spectrum/recurrent/singular_values_0", curves)
            self.assertNotIn("steps/wall_time", curves)
            for axis, path in (("steps/group", "steps/lr"), ("orthogonality/recurrent/block", "orthogonality/recurrent/defect_fro")):
                for column, label in zip(results[path][:].T, results[axis].asstr()):
                    np.testing.assert_array_equal(np.float32([value for _, value in curves[f"{path}_{label}"]]), column.astype(np.float32))
            self.assertAlmostEqual(first[1], results["provenance/segments/started"][0])
            clock = dict(zip(results["steps/step"][:].tolist(), results["steps/wall_time"][:].tolist()))
            self.assertEqual([time for step, time in times if step in clock], [clock[step] for step, _ in times if step in clock])
            self.assertEqual([step for step, _ in times], sorted(step for step, _ in times))
            self.assertTrue(np.isnan(results["epochs/test_loss"][:]).all())
            self.assertNotIn("epochs/test_loss", curves)
        for message in list(records(self.root / file))[:5]:
            said = subprocess.run(["protoc", "--decode_raw"], input=message, capture_output=True, check=True).stdout.decode()
            self.assertRegex(said, r"^1: 0x41d")
        self.assertIn('1: "steps/loss"', said)

    def test_card(self):
        files = self.call("export", self.run_, "--card", "card", "--license", "mit", "--weights", "same.safetensors").split()
        self.assertEqual(files, ["same.safetensors", "card/model.safetensors", "card/config.yaml", "card/README.md"])
        card = self.root / "card"
        self.assertEqual((card / "model.safetensors").read_bytes(), (self.root / "same.safetensors").read_bytes())
        self.assertEqual((card / "config.yaml").read_bytes(), (self.run_ / "config.yaml").read_bytes())
        text = (card / "README.md").read_text(encoding="utf-8")
        self.assertTrue(text.startswith('---\nlicense: "mit"\nlibrary_name: stiefel\ntags: ["adam","adding","elman","householder",'), text)
        with h5py.File(self.run_ / "results.h5") as file:
            self.assertIn(f"| optimizer step | {file['final/step'][0]} |\n", text)
            self.assertIn(f"| test loss | {file['final/test_loss'][0]:.6g} |\n", text)
        self.assertIn("arxiv.org/abs/1612.00188", text)
        self.assertNotIn("arxiv.org/abs/1604.02313", text)  # activation: oplu
        self.assertIn((card / "config.yaml").read_text(encoding="utf-8"), text)
        self.call("export", self.make("oplu", "elman", "dense", "model.cell.activation=oplu"), "--card", "oplu", "--last")
        other = (self.root / "oplu/README.md").read_text(encoding="utf-8")
        self.assertIn("arxiv.org/abs/1604.02313", other)
        self.assertNotIn("arxiv.org/abs/1612.00188", other)
        self.assertIn("None is stated", other)
        self.assertNotIn("\nlicense:", other)

    def test_exports_that_cannot_be(self):
        self.assertIn("--csv, --tensorboard, --weights FILE or --card FOLDER", self.call("export", self.run_, code=2))
        self.assertIn("--license needs --card", self.call("export", self.run_, "--csv", "--license", "mit", code=2))
        self.assertIn("cannot create the folder /dev/null/x: Not a directory; choose another with --card",
                      self.call("export", self.run_, "--card", "/dev/null/x", code=2))
        (self.root / "file").write_text("", encoding="utf-8")
        self.assertIn("choose another with --output", self.call("export", self.run_, "--csv", "-o", "file/x", code=2))
        broken = self.root / "broken"
        broken.mkdir()
        (broken / "results.h5").write_bytes(b"nothing")
        self.assertIn("cannot read", self.call("export", broken, "--csv", code=6))

    def weights(self, run, name):
        with h5py.File(run / "checkpoints" / f"{name}.h5") as file:
            return file.attrs["step"], {key: array[:] for key, array in file["weights"].items()}

    def changed(self, name, change):
        """A copy of the run with a result file that `change` has changed."""
        copy = shutil.copytree(self.run_, self.root / name)
        with h5py.File(copy / "results.h5", "r+") as file:
            change(file)
        return copy

    def test_shapes_are_compared_before_numbers_are_read(self):
        def swell(file):
            del file["steps/loss"]
            file.create_dataset("steps/loss", shape=(2**40,), chunks=True, dtype="f8")
        found = json.loads(self.call("diff", self.run_, self.changed("swollen", swell), "--json"))
        self.assertEqual(found["differing"], ["results.h5 /steps/loss"])

    def test_columns_that_are_too_many(self):
        copy = self.changed("wide", lambda file: file.create_dataset("epochs/wide", data=np.ones((len(file["epochs/step"]), 70000))))
        done = subprocess.run([PROGRAM, "export", copy, "--csv", "-o", self.root / "wide_out"], capture_output=True, text=True, check=True)
        self.assertIn("/epochs/wide has too many columns for a CSV file", done.stderr)
        self.assertIn("valid_loss", (self.root / "wide_out" / "epochs.csv").read_text(encoding="utf-8"))

    def test_long_texts_are_cut_between_characters(self):
        def comment(number):
            def change(file):
                file["provenance"].attrs["note"] = "é" * 30 + "\u00e8\u00e9"[number] * 30
            return change
        said = self.call("diff", self.changed("noted0", comment(0)), self.changed("noted1", comment(1)))
        self.assertRegex(said, "note +…è{20}… +…é{20}…\n")

    def test_inspect(self):
        for name, which in (("best", ()), ("last", ("--last",)), ("step_00000020", ("--step", 20))):
            step, weights = self.weights(self.run_, name)
            found = json.loads(self.call("inspect", self.run_, "--json", "-o", "W.npy", *which))
            self.assertEqual((found["step"], found["parameters"]), (step, sum(array.size for array in weights.values())))
            for block in found["blocks"]:
                array = weights[block["name"]]
                self.assertEqual((tuple(block["shape"]), block["min"], block["max"]), (array.shape, array.min(), array.max()))
                self.assertAlmostEqual(block["norm"], np.linalg.norm(array.astype(float)), places=12)
            W = np.load(self.root / "W.npy")
            self.assertEqual(W.shape, (8, 8))
            map_, = found["maps"]
            np.testing.assert_allclose(map_["singular_values"], np.linalg.svd(W, compute_uv=False), atol=1e-6)
            np.testing.assert_allclose(np.sort(np.abs([complex(*z) for z in map_["eigenvalues"]])), np.sort(np.abs(np.linalg.eigvals(W))), atol=1e-6)
            self.assertAlmostEqual(map_["defect_fro"], np.linalg.norm(W.T @ W - np.eye(8)), places=12)
        self.assertRegex(self.call("inspect", self.run_), r"recurrent +householder +8 × 8 +(1|0\.999999\d*) ")

    def test_inspect_of_several_and_of_complex_maps(self):
        gated = self.make("gated", "lstm", "dense")
        found = json.loads(self.call("inspect", gated, "--json", "-o", "gates.npy"))
        self.assertEqual(len(found["maps"]), 4)
        _, weights = self.weights(gated, "best")
        for map_ in found["maps"]:
            W = np.load(self.root / f"gates_{map_['name']}.npy")
            block = next(array for name, array in weights.items() if f".{map_['name']}." in name)
            np.testing.assert_array_equal(W, block)
        unitary = self.make("unitary", "elman", "unitary_householder", "model.recurrent.reflections=4", "scalar=float64")
        found = json.loads(self.call("inspect", unitary, "--json", "-o", "unitary.npy"))
        W = np.load(self.root / "unitary.npy")
        self.assertEqual((W.dtype, found["maps"][0]["complex"]), (np.complex128, True))
        np.testing.assert_allclose(W.conj().T @ W, np.eye(len(W)), atol=1e-13)
        self.assertAlmostEqual(found["maps"][0]["defect_fro"], np.linalg.norm(W.conj().T @ W - np.eye(len(W))), places=12)

    def test_inspect_of_what_is_not_whole(self):
        self.assertIn("use --last, or --step 20, or no option for the best network", self.call("inspect", self.run_, "--step", 7, code=2))
        self.assertIn("must be the step of a checkpoint", self.call("inspect", self.run_, "--step", "../x", code=2))
        path = self.other / "checkpoints" / "step_00000020.h5"
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        self.assertIn("it is not what was written", self.call("inspect", self.other, "--step", 20, code=6))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
