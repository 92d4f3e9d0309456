#!/usr/bin/python3
"""A user's own data in sequence_csv: gaps, metrics, baselines and warnings, against pandas and NumPy.

usage: own_data_test.py PROGRAM
"""
import io
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

PROGRAM = sys.argv.pop(1)
SEQUENCES, STEPS = 30, 8

EXPERIMENT = """
name: own
scalar: float64
task: {{plugin: sequence_csv, sequence: name, {task}}}
model:
  cell: {{plugin: gru, hidden: 5}}
  recurrent: dense
optimizer: {{plugin: adam, rate: 0.01}}
train: {{batch: 6, steps: 40, evaluate_every: 20{train}}}
"""


def made(seed):
    """Sequences of two inputs, two numbers to predict, and two columns of classes."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"name": np.repeat([f"s{n}" for n in range(SEQUENCES)], STEPS)})
    table["x"], table["z"] = rng.normal(size=(2, len(table)))
    mean = table.groupby("name")["x"].transform(lambda x: x.expanding().mean())
    table["Warm °C"] = 20 + 5 * mean + rng.normal(size=len(table))
    table["flow"] = 1000 + 300 * table["z"] + 50 * rng.normal(size=len(table))
    table["size"] = np.where(mean > 0.7, "large", np.where(mean > -0.2, "medium", "small"))
    table["sign"] = np.where(mean + 0.3 * rng.normal(size=len(table)) > 0, "up", "down")
    return table


def with_gaps(table, columns, seed):
    rng = np.random.default_rng(seed)
    return table.assign(**{column: table[column].mask(rng.random(len(table)) < 0.25) for column in columns})


class OwnData(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)

    def stiefel(self, *words, code=0):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, code, f"stiefel {words}:\n{done.stdout}{done.stderr}")
        return done

    def write(self, **tables):
        for name, table in tables.items():
            table.to_csv(self.folder / f"{name}.csv", index=False)

    def run_it(self, task, train="", name="own"):
        """Trains on train.csv and returns the run's folder and what was printed."""
        self.experiment(task, train)
        done = self.stiefel("run", "own.yaml", f"name={name}")
        (folder,) = (self.folder / "runs" / name).iterdir()
        return folder, done

    def experiment(self, task, train=""):
        (self.folder / "own.yaml").write_text(EXPERIMENT.format(task=task, train=train))

    def evaluate(self, run, *words):
        return json.loads(self.stiefel("evaluate", run, "--json", *words).stdout)

    def predict(self, run, *words):
        return pd.read_csv(io.StringIO(self.stiefel("predict", run, *words).stdout))

    def close(self, got, wanted, digits=1e-9):
        self.assertLess(abs(got - wanted), digits * max(1, abs(wanted)), (got, wanted))

    FILES = "train: train.csv, validation: test.csv, test: test.csv"

    def test_numbers_with_gaps(self):
        columns = ["Warm °C", "flow"]
        names = {"Warm °C": "warm___c", "flow": "flow"}
        drop = ["size", "sign"]
        train, test = (with_gaps(made(seed), columns, seed).drop(columns=drop) for seed in (1, 2))
        self.write(train=train, test=test)
        task = (f"{self.FILES}, targets: [Warm °C, flow], readout: every, target_normalisation: standard, "
                "metrics: [mae, rmse, r2, nrmse]")
        run, said = self.run_it(task, ", select: r2_flow")
        self.assertIn("test loss", said.stdout)
        found = self.evaluate(run)
        predicted = self.predict(run, "--input", "test.csv")
        errors, losses, wanted = [], [], {name: [] for name in ("rmse", "r2", "nrmse")}
        for column in columns:
            there = test[column].notna().to_numpy()
            y, o = test[column].to_numpy()[there], predicted[column].to_numpy()[there]
            error, spread = o - y, np.var(y)
            each = {"mae": np.abs(error).mean(), "rmse": np.sqrt(np.mean(error**2)), "r2": 1 - np.mean(error**2) / spread,
                    "nrmse": np.sqrt(np.mean(error**2) / spread)}
            for metric, value in each.items():
                self.close(found["values"][f"{metric}_{names[column]}"], value)
                wanted.get(metric, []).append(value)
            errors += list(np.abs(error))
            losses += list((error / train[column].std(ddof=0)) ** 2)
        self.close(found["values"]["mae"], np.mean(errors))
        self.close(found["values"]["loss"], np.mean(losses))
        for metric, values in wanted.items():
            self.close(found["values"][metric], np.mean(values))
        constant = np.concatenate([((test[c] - train[c].mean()) / train[c].std(ddof=0)).dropna() for c in columns])
        self.close(found["baseline"], np.mean(constant**2))
        scored = [f"{int(t[columns].notna().sum().sum())} of {2 * len(t)} {split}" for t, split in ((train, "train"), (test, "test"))]
        dry = self.stiefel("run", "own.yaml", "--dry-run").stdout
        for part in scored:
            self.assertIn(part, dry)

    def test_a_row_counts_if_one_target_is_there(self):
        columns = ["Warm °C", "flow"]
        train = made(1).drop(columns=["size", "sign"])
        last = train.groupby("name").tail(1).index
        train.loc[last[::2], "flow"] = np.nan
        self.write(train=train, test=train)
        run, _ = self.run_it(f"{self.FILES}, targets: [Warm °C, flow], target_normalisation: standard")
        ends, predicted = train.loc[last].reset_index(drop=True), self.predict(run, "--input", "test.csv")
        scale = ends[columns].std(ddof=0)
        errors = ((predicted[columns] - ends[columns]) / scale).to_numpy()
        self.close(self.evaluate(run)["values"]["loss"], np.nanmean(errors**2))
        train.loc[last[3], columns] = np.nan
        self.write(train=train)
        said = self.stiefel("validate", "own.yaml", code=4)
        self.assertIn(f"train.csv:{last[3] + 2}:1: the last row of a sequence has no target", said.stderr)

    def test_classes(self):
        drop = ["Warm °C", "flow"]
        train, test = (made(seed).drop(columns=drop) for seed in (1, 2))
        self.write(train=train, test=test)
        for column, more in (("size", ""), ("sign", ", auroc")):
            run, _ = self.run_it(f"{self.FILES}, features: [x, z], targets: [{column}], kind: classification, readout: every, "
                                 f"metrics: [accuracy, macro_f1, confusion, balanced_accuracy{more}]", ", select: macro_f1", column)
            found, predicted = self.evaluate(run)["values"], self.predict(run, "--input", "test.csv")
            y, o = test[column].to_numpy(), predicted["class"].to_numpy()
            self.close(found["accuracy"], np.mean(y == o))
            counted = pd.read_csv(run / "outcome" / "confusion.csv", index_col="target")
            names = sorted(set(train[column]))
            self.assertEqual((list(counted), list(counted.index)), (names, names))
            crossed = pd.crosstab(y, o).reindex(index=names, columns=names, fill_value=0)
            self.assertEqual(counted.to_numpy().tolist(), crossed.to_numpy().tolist())
            with h5py.File(run / "results.h5") as file:
                for i, name in enumerate(names):
                    for j, other in enumerate(names):
                        self.close(file[f"outcome/confusion_{i}_{j}"][0], crossed.loc[name, other] / crossed.loc[name].sum())
            f1, recall = [], []
            for name in sorted(set(y) | set(o)):
                hits, targets, outputs = np.sum((y == name) & (o == name)), np.sum(y == name), np.sum(o == name)
                f1.append(2 * hits / (targets + outputs))
                if targets:
                    recall.append(hits / targets)
            self.close(found["macro_f1"], np.mean(f1))
            self.close(found["balanced_accuracy"], np.mean(recall))
            if more:
                up, down = (predicted["p_up"].to_numpy()[y == name] for name in ("up", "down"))
                area = np.mean(np.sign(up[:, None] - down[None, :]) + 1) / 2
                self.close(found["auroc"], area, 2e-4)
                self.assertGreater(area, 0.6)
        said = self.stiefel("validate", "own.yaml", "task.targets=[size]", code=4)
        self.assertIn("`auroc` in `metrics` is for two classes, but the targets have 3", said.stderr)
        said = self.stiefel("validate", "own.yaml", "task.metrics=[rmse]", code=2)
        self.assertIn("holds rmse, which is not for `kind: classification`", said.stderr)

    def test_drawn_confusion(self):
        """Names of classes may hold separators and quotes; of a damaged table, the report has no figure."""
        names = {"up": 'to the "left", up', "down": "end, down"}
        table = made(1)[["name", "x", "z", "sign"]].replace({"sign": names})
        self.write(train=table, test=table)
        run, _ = self.run_it(f"{self.FILES}, targets: [sign], kind: classification, metrics: [accuracy, confusion]")
        counted = pd.read_csv(run / "outcome" / "confusion.csv", index_col="target")
        self.stiefel("report", "runs/own", "--figures", "figures")
        drawn = pd.read_csv(self.folder / "figures" / "confusion_1.csv", index_col=0)
        self.assertEqual((list(drawn), list(drawn.index)), (sorted(names.values()), sorted(names.values())[::-1]))
        shares = counted.div(counted.sum(axis=1), axis=0).iloc[::-1].to_numpy()
        self.assertLess(np.abs(drawn.to_numpy() - shares).max(), 1e-5)
        file = run / "outcome" / "confusion.csv"
        file.write_text(file.read_text().rstrip().rpartition(",")[0])
        said = self.stiefel("report", "runs/own", "--figures", "again")
        self.assertIn("confusion.csv is not a complete table; the report omits it", said.stderr)
        self.assertFalse((self.folder / "again" / "confusion_1.csv").exists())

    def test_inputs_with_gaps(self):
        drop = ["Warm °C", "size", "sign"]
        train, test = (with_gaps(made(seed), ["x"], seed).drop(columns=drop) for seed in (1, 2))
        self.write(train=train, test=test)
        for scaled in ("none", "standard"):
            task = f"{self.FILES}, features: [x, z], targets: [flow], target_normalisation: standard, normalisation: {scaled}"
            self.experiment(task)
            said = self.stiefel("validate", "own.yaml", code=4)
            row = int(train["x"].isna().to_numpy().argmax()) + 2
            self.assertRegex(said.stderr, rf"train.csv:{row}:\d+: column \"x\" holds \"\", expected a finite number; fill it first, or set `missing: forward`")
            filled = [t.assign(x=t.groupby("name")["x"].ffill()) for t in (train, test)]
            filled = [t.assign(x=t["x"].fillna(0 if scaled == "none" else train["x"].mean())) for t in filled]
            for missing in ("forward", "mask"):
                own, _ = self.run_it(f"{task}, missing: {missing}", name=f"{missing}_{scaled}")
                found, predicted = self.evaluate(own)["values"], self.predict(own, "--input", "test.csv")
                if scaled == "none":  # else the mean of filled numbers is another one
                    a, b = (t.assign(x_missing=gaps["x"].isna().astype(int)) for t, gaps in zip(filled, (train, test)))
                    a.to_csv(self.folder / "a.csv", index=False)
                    b.to_csv(self.folder / "b.csv", index=False)
                    features = "[x, z, x_missing]" if missing == "mask" else "[x, z]"
                    other, _ = self.run_it(task.replace("train.csv", "a.csv").replace("test.csv", "b.csv").replace("[x, z]", features),
                                           name=f"filled_{missing}")
                    self.assertEqual(self.evaluate(other)["values"], found)
                    pd.testing.assert_frame_equal(self.predict(other, "--input", "b.csv"), predicted, check_exact=True)
                filled[1].to_csv(self.folder / "filled.csv", index=False)
                if missing == "forward":
                    again = self.predict(own, "--input", "filled.csv")["flow"].to_numpy()
                    self.assertLess(np.abs(again - predicted["flow"].to_numpy()).max(), 1e-9)
                else:
                    gap = filled[1].astype({"z": object})
                    gap.loc[3, "z"] = "NA"
                    gap.to_csv(self.folder / "gap.csv", index=False)
                    said = self.stiefel("predict", own, "--input", "gap.csv", code=4)
                    self.assertRegex(said.stderr, r"gap.csv:5:\d+: column \"z\" has a gap here, but none in the training sequences")
        (self.folder / "train.csv").unlink()  # a trained network needs it no more, also with marks of gaps
        self.assertEqual(self.evaluate(own)["values"], found)

    def test_baselines_of_forecasts(self):
        table = made(3)[["name", "x", "z"]]
        table["x"] = 3 + table.groupby("name")["x"].cumsum()
        for column in ("x", "z"):
            table["next_" + column] = table.groupby("name")[column].shift(-1)
        self.write(train=table, test=table)
        run, said = self.run_it(f"{self.FILES}, targets: [next_x, next_z], readout: every, season: 3, normalisation: standard, "
                                "target_normalisation: standard")
        deviation = {c: table["next_" + c].std(ddof=0) for c in ("x", "z")}
        wanted = {}
        for name, back in (("persistence", 0), ("seasonal persistence", 2)):
            guesses = {c: table.groupby("name")[c].shift(back).fillna(table[c]) for c in ("x", "z")}
            wanted[name] = np.nanmean(np.concatenate([((guesses[c] - table["next_" + c]) / deviation[c]) ** 2 for c in guesses]))
        found = self.evaluate(run)
        for name, value in wanted.items():
            self.close(found["baselines"][name], value)
            self.assertIn(f", {name}: {value:.4g}", said.stdout)
        self.assertRegex(said.stdout, r"; constant predictor: 1, persistence: ")
        self.assertRegex(self.stiefel("evaluate", run).stdout, r"\npersistence +\S+ \(its loss\)\n")

    def test_warnings(self):
        table = made(1)
        table["big"] = 1e5 + 1e4 * table["x"]
        table["number"] = (table["x"] > 0).astype(int)
        self.write(train=table[["name", "big", "z", "flow", "number"]], test=table)
        unscaled = 'the column "big" of the training sequences has the mean'
        for more, warned in (("targets: [flow], features: [z, big]", {unscaled, 'the column "flow" of'}),
                             ("targets: [flow], features: [z, big], normalisation: none, target_normalisation: none", set()),
                             ("targets: [flow], features: [z, big], normalisation: standard", {'the column "flow" of'}),
                             ("targets: [number], features: [z]", {"the targets are only the integers 0, 1, which are learned as numbers: write "
                                                                   "kind: classification"}),
                             ("targets: [number], features: [z], kind: regression", set()),
                             ("targets: [number], features: [z], kind: classification", set())):
            self.experiment(f"train: train.csv, {more}, readout: every")
            said = self.stiefel("validate", "own.yaml").stderr
            lines = [line for line in said.splitlines() if "warning" in line]
            self.assertEqual(len(lines), len(warned), said)
            for part in warned:
                self.assertIn(part, said)
            if unscaled in warned:
                self.assertRegex(said, r"own.yaml:4:7: .*mean 9.9e\+04 and the standard deviation 9.18e\+03.*write normalisation: standard")

    def test_archives(self):
        rng = np.random.default_rng(1)
        x, lengths = rng.normal(size=(20, 6, 2)).astype(np.float16), rng.integers(2, 7, size=20)
        y = x[:, :, 0].astype(float).cumsum(axis=1)
        np.save(self.folder / "x.npy", x.astype(float))
        np.save(self.folder / "y.npy", y)
        np.save(self.folder / "lengths.npy", lengths)
        np.savez(self.folder / "named.npz", inputs=x, targets=y.astype(">f8"), lengths=lengths)
        np.savez_compressed(self.folder / "packed.npz", sound=x.astype(">f2"), level=np.asfortranarray(y), n=lengths)
        found = []
        for source in ("{file: x.npy, targets: y.npy, lengths: lengths.npy}", "named.npz",
                       "{file: packed.npz, inputs: sound, targets: level, lengths: n}"):
            (self.folder / "own.yaml").write_text(EXPERIMENT.replace("sequence: name, ", "").format(
                task=f"data: {source}, readout: every, target_normalisation: standard", train=""))
            self.stiefel("run", "own.yaml", "name=a" + str(len(found)))
            (run,) = (self.folder / "runs" / f"a{len(found)}").iterdir()
            found.append(self.evaluate(run)["values"])
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])
        said = self.stiefel("validate", "own.yaml", "task.data.targets=levels", code=4)
        self.assertIn("packed.npz: there is no array levels; it has sound, level, n", said.stderr)
        archive = (self.folder / "named.npz").read_bytes()
        (self.folder / "named.npz").write_bytes(archive[:len(archive) // 2])
        said = self.stiefel("validate", "own.yaml", "task.data=named.npz", code=4)
        self.assertIn("named.npz: not an .npz file; save it with numpy.savez", said.stderr)

    def test_compressed_tables(self):
        table = made(1)[["name", "x", "z", "sign"]]
        self.write(train=table, test=table)
        table.to_csv(self.folder / "train.csv.gz", index=False)
        found = []
        for name in ("train.csv", "train.csv.gz"):
            run, _ = self.run_it(f"train: {name}, validation: test.csv, test: test.csv, targets: [sign], kind: classification", name=name.replace(".", "_"))
            found.append(self.evaluate(run)["values"])
        self.assertEqual(*found)
        pd.testing.assert_frame_equal(self.predict(run, "--input", "train.csv.gz"), self.predict(run, "--input", "test.csv"),
                                      check_exact=True)
        packed = (self.folder / "train.csv.gz").read_bytes()
        (self.folder / "cut.csv.gz").write_bytes(packed[:len(packed) // 2])
        said = self.stiefel("validate", "own.yaml", "task.train=cut.csv.gz", code=4)
        self.assertIn("cut.csv.gz: cannot be read or decompressed", said.stderr)

    def test_class_weights(self):
        rng = np.random.default_rng(1)
        table = pd.DataFrame({"name": range(60), "x": rng.normal(size=60)})
        table["y"] = np.where(table["x"] > 1, "rare", "often")
        self.write(train=table, test=table)
        task = f"{self.FILES}, targets: [y], kind: classification, metrics: [accuracy, balanced_accuracy]"
        self.experiment(task)
        losses = {}
        for weights in ("none", "balanced"):
            words = f"task.class_weights={weights}", "train.steps=1", "train.batch=60", "optimizer.rate=1e-9", f"name={weights}"
            self.stiefel("run", "own.yaml", *words)
            (run,) = (self.folder / "runs" / weights).iterdir()
            losses[weights] = json.loads((run / "progress.jsonl").read_text().splitlines()[-1])["train_loss"]
            p = self.predict(run, "--input", "train.csv")[["p_often", "p_rare"]].to_numpy()
            right = np.log(np.where(table["y"] == "rare", p[:, 1], p[:, 0]))
            share = table["y"].map(table["y"].value_counts() / 60)
            wanted = -right.mean() if weights == "none" else -np.average(right, weights=0.5 / share)
            self.close(losses[weights], wanted, 1e-6)
            self.close(self.evaluate(run)["values"]["loss"], -right.mean(), 1e-9)  # only training is balanced
        self.assertNotEqual(*losses.values())

    def test_sample_weights(self):
        rng = np.random.default_rng(1)
        table = pd.DataFrame({"name": range(60), "x": rng.normal(size=60), "w": rng.integers(0, 4, size=60)})
        table["y"] = 3 * table["x"] + rng.normal(size=60)
        self.write(train=table, test=table.drop(columns="w"))
        for name in ("x", "y", "w"):
            np.save(self.folder / f"{name}.npy", table[name].to_numpy(float).reshape((60, 1) if name == "x" else 60))
        np.savez(self.folder / "own.npz", inputs=table[["x"]].to_numpy(), targets=table["y"], w=table["w"])
        losses = []
        steps = "train.steps=1", "train.batch=60", "optimizer.rate=1e-9"
        for task in (f"{self.FILES}, sequence: name, targets: [y], sample_weights: w", "data: own.npz, validation_fraction: 0, test_fraction: 0, sample_weights: w",
                     "train: {file: x.npy, targets: y.npy}, sample_weights: w.npy", f"{self.FILES}, sequence: name, targets: [y], features: [x]"):
            (self.folder / "own.yaml").write_text(EXPERIMENT.replace("sequence: name, ", "").format(task=task, train=""))
            self.stiefel("run", "own.yaml", *steps, f"name=w{len(losses)}")
            (run,) = (self.folder / "runs" / f"w{len(losses)}").iterdir()
            losses.append(json.loads((run / "progress.jsonl").read_text().splitlines()[-1])["train_loss"])
        square = (self.predict(run, "--input", "train.csv")["y"] - table["y"]) ** 2
        for loss in losses[:3]:
            self.close(loss, np.average(square, weights=table["w"]), 1e-6)
        self.close(losses[3], square.mean(), 1e-6)
        self.close(self.evaluate(run)["values"]["loss"], square.mean())
        self.experiment(f"{self.FILES}, targets: [y], sample_weights: w")
        for value, message in ((-1, r"train.csv:5:\d+: the weight -1 is below 0"), ("", r"train.csv:5:\d+: column \"w\" holds \"\"")):
            self.write(train=table.astype({"w": object}).assign(w=[*table["w"][:3], value, *table["w"][4:]]))
            self.assertRegex(self.stiefel("validate", "own.yaml", code=4).stderr, message)
        self.write(train=table.assign(w=0))
        self.assertIn("no sequence of the train split has a target of a weight above 0", self.stiefel("validate", "own.yaml", code=4).stderr)
        np.savez(self.folder / "own.npz", inputs=table[["x"]].to_numpy(), targets=table["y"], w=np.ones(59))
        (self.folder / "own.yaml").write_text(EXPERIMENT.replace("sequence: name, ", "").format(task="data: own.npz, sample_weights: w", train=""))
        self.assertIn("own.npz: w: an array of 59; weights must be 60", self.stiefel("validate", "own.yaml", code=4).stderr)

    def test_folds(self):
        """Each sequence is in the test set of one fold; compare and report average over folds."""
        table = made(1)[["name", "x", "z", "flow"]]
        self.write(data=table)
        self.experiment("data: data.csv, targets: [flow], folds: 4, metrics: [mae, examples], target_normalisation: standard")
        sweep = self.folder / "sweep.yaml"
        sweep.write_text("extends: own.yaml\nname: folds\nseeds: [1, 2]\nsweep: {task.fold: [0, 1, 2, 3], model.cell.hidden: [3, 5]}\n")
        for fold, count in enumerate((7, 8, 7, 8)):
            said = self.stiefel("run", "own.yaml", "--dry-run", f"task.fold={fold}").stdout
            self.assertIn(f"{30 - 3 - count} train, 3 validation, {count} test targets", said)
        self.stiefel("sweep", "run", "sweep.yaml", "--jobs", "1")
        groups = json.loads(self.stiefel("compare", "sweeps/folds", "--json", "--test", "best").stdout)["groups"]
        self.assertEqual([(group["value"]["n"], group["keys"]) for group in groups], [(8, {"model.cell.hidden": "3"}), (8, {"model.cell.hidden": "5"})])
        self.assertIn({"pairs": 8}, [{"pairs": group["test"]["pairs"]} for group in groups if group["test"] != "reference"])
        self.stiefel("report", "sweeps/folds", "--figures", "figures")
        flows = table.groupby("name")["flow"].last().tolist()
        tested = []
        for fold in range(4):
            self.stiefel("run", "own.yaml", f"task.fold={fold}", "name=one", "train.batch=1", "train.steps=1")
        for run in (self.folder / "runs" / "one").iterdir():
            tested += pd.read_csv(run / "outcome" / "examples.csv")["true"].tolist()
        self.assertEqual(len(set(np.round(tested, 4))), 20)  # five of each, also if a batch has one sequence
        self.assertTrue(all(np.abs(np.array(flows) - value).min() < 1e-4 for value in tested))
        for words, message in (("task.fold=4", "task.fold must be less than `folds`"), ("task.folds=1", "task.folds must be 2 or more, or 0")):
            self.assertIn(message, self.stiefel("validate", "own.yaml", words, code=2).stderr)
        self.assertIn("task.test_fraction has no effect here; it is for `data` without `folds`",
                      self.stiefel("validate", "own.yaml", "task.test_fraction=0.3").stderr)
        self.assertIn("has 30 sequences, too few for 31 `folds`", self.stiefel("validate", "own.yaml", "task.folds=31", "task.validation_fraction=0.1", code=4).stderr)

    def test_categories(self):
        train, test = (made(seed)[["name", "x", "size", "z", "flow"]] for seed in (1, 2))
        self.write(train=train, test=test)
        task = f"{self.FILES}, targets: [flow], target_normalisation: standard, categories: [size]"
        run, _ = self.run_it(task)
        found, predicted = self.evaluate(run)["values"], self.predict(run, "--input", "test.csv")
        expanded = {}
        for name, table in (("train", train), ("test", test)):
            one_hot = {f"size={value}": (table["size"] == value).astype(int) for value in sorted(set(train["size"]))}
            expanded[name] = pd.DataFrame({"name": table["name"], "x": table["x"], **one_hot, "z": table["z"], "flow": table["flow"]})
            expanded[name].to_csv(self.folder / f"hot_{name}.csv", index=False)
        files = self.FILES.replace("train.csv", "hot_train.csv").replace("test.csv", "hot_test.csv")
        other, _ = self.run_it(f"{files}, targets: [flow], target_normalisation: standard", name="hot")
        self.assertEqual(self.evaluate(other)["values"], found)
        pd.testing.assert_frame_equal(self.predict(other, "--input", "hot_test.csv"), predicted, check_exact=True)
        test.assign(size="huge").to_csv(self.folder / "new.csv", index=False)
        said = self.stiefel("predict", run, "--input", "new.csv", code=4)
        self.assertRegex(said.stderr, r'new.csv:2:\d+: column "size" holds the category "huge", which no training sequence has')
        scaled, _ = self.run_it(task + ", normalisation: standard", name="scaled")
        found, predicted = self.evaluate(scaled)["values"], self.predict(scaled, "--input", "test.csv")
        ends = test.groupby("name", sort=False).tail(1)["flow"].to_numpy()
        last = train.groupby("name", sort=False).tail(1)["flow"]
        self.close(found["loss"], np.mean(((predicted["flow"].to_numpy() - ends) / last.std(ddof=0)) ** 2))
        (self.folder / "train.csv").unlink()
        self.assertEqual(self.evaluate(scaled)["values"], found)
        self.experiment(task.replace("[size]", "[name]"))
        self.write(train=train)
        self.assertIn('the column "name" of `categories` is not an input', self.stiefel("validate", "own.yaml", code=4).stderr)

    def test_every_step(self):
        table = made(1)[["name", "x", "z", "sign"]]
        self.write(train=table, test=table)
        run, _ = self.run_it(f"{self.FILES}, targets: [sign], kind: classification")
        rows = self.predict(run, "--input", "test.csv", "--states", "--every-step")
        self.assertEqual(len(rows), len(table))
        cut = table.groupby("name").head(3)
        cut.to_csv(self.folder / "cut.csv", index=False)
        ends = self.predict(run, "--input", "cut.csv", "--states")
        pd.testing.assert_frame_equal(rows[rows["step"] == 2].reset_index(drop=True), ends, check_exact=True)
        self.assertIn("state_4", rows)
        without = self.predict(run, "--input", "test.csv", "--every-step")
        pd.testing.assert_frame_equal(without, rows[list(without)], check_exact=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
