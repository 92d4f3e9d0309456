#!/usr/bin/python3
"""`stiefel compare`: means, spreads, quantiles and steps to a threshold against NumPy; tables of all kinds: compare_test.py STIEFEL"""
import csv
import io
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import h5py
import numpy as np

try:
    from scipy import stats
except ImportError:  # the numbers are compared with others, too
    stats = None

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from made_runs import configuration, write_run  # pylint: disable=wrong-import-position

PROGRAM = sys.argv[1]
EVALUATIONS = 20
UNREADABLE = 6  # the exit code when some of the runs cannot be read
ONE_ROW = {"step": [10], "valid_loss": [1.], "is_best": np.uint8([1]), "seconds": [1.]}


def curves(rng, floor):
    """Columns of /epochs of a run that learns, with a best evaluation that is not the last."""
    steps = 10 * np.arange(1, EVALUATIONS + 1)
    loss = floor + np.exp(-steps / 25) * rng.uniform(0.5, 1.5) + rng.uniform(0, 0.01, EVALUATIONS)
    best = np.array([loss[i] == loss[:i + 1].min() for i in range(EVALUATIONS)])
    return {"step": steps, "train_loss": 2 * loss, "valid_loss": loss, "valid_accuracy": 1 - loss, "test_loss": np.full(EVALUATIONS, np.nan),
            "is_best": best.astype(np.uint8), "seconds": rng.uniform(0.5, 1.5, EVALUATIONS)}


def endless(data):
    """Texts lie in heaps, one object after the other; libhdf5 1.10 loops forever at one with the number 0 and the size 0."""
    first = data.index(b"GCOL\1") + 16
    data[first:first + 16] = bytes(16)
    return data


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def call(self, *words, code=0):
        done = subprocess.run([PROGRAM, "compare", *map(str, words)], capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code in (0, UNREADABLE) else done.stderr

    def read(self, *words, code=0):
        return json.loads(self.call(*words, "--json", code=code))

    def make(self, plugins=("householder", "dense"), seeds=5):
        """Finished runs of two methods, with their columns."""
        rng = np.random.default_rng(7)
        made = {}
        for number, plugin in enumerate(plugins):
            for seed in range(seeds):
                columns = curves(rng, 0.05 * (number + 1))
                write_run(self.root / "sweep" / f"{plugin}{seed}", columns, plugin=plugin, seed=seed, threads=seed % 2 + 1,
                          final={"test_loss": columns["valid_loss"].min() * 1.1, "test_accuracy": 0.5}, parameters=1000 * (number + 1))
                made[plugin, seed] = columns
        return made

    def test_a_folder_that_is_named_twice_counts_once_and_an_id_does_not_depend_on_how_it_is_named(self):
        self.make()
        for words in ((self.root, self.root), (self.root, f"{self.root}/sweep/"), [f"{path}/" for path in (self.root / "sweep").iterdir()] * 2):
            self.assertEqual([group["value"]["n"] for group in self.read(*words)["groups"]], [5, 5], words)
        by_id = lambda *words: sorted(group["keys"]["id"] for group in self.read(*words, "--by", "id")["groups"])
        self.assertEqual(by_id(*[f"{path}/" for path in (self.root / "sweep").iterdir()]), by_id(self.root))
        self.assertEqual(len(by_id(self.root)), 10)

    def test_statistics_are_those_of_numpy(self):
        made = self.make()
        found = self.read(self.root)
        self.assertEqual((found["metric"], found["better"], found["unreadable"]), ("valid_loss", "lower", []))
        self.assertEqual([group["keys"] for group in found["groups"]],
                         [{"model.recurrent.plugin": "dense"}, {"model.recurrent.plugin": "householder"}])
        for group in found["groups"]:
            plugin = group["keys"]["model.recurrent.plugin"]
            values = np.array([columns["valid_loss"].min() for (name, _), columns in made.items() if name == plugin])
            expected = {"mean": values.mean(), "std": values.std(ddof=1), "q25": np.quantile(values, 0.25), "median": np.median(values),
                        "q75": np.quantile(values, 0.75), "min": values.min(), "max": values.max()}
            for name, value in expected.items():
                self.assertAlmostEqual(group["value"][name], value, places=13, msg=name)
            self.assertEqual((group["best"], group["states"], group["parameters"]),
                             (values.min(), {"finished": 5}, 1000 if plugin == "householder" else 2000))

    def pairs(self, eighths):
        """Two rows of the plugins dense and householder, of which the second is larger by so many eighths, seed by seed."""
        for seed, difference in enumerate(eighths):
            for plugin, value in (("dense", 1.), ("householder", 1 + difference / 8)):
                write_run(self.root / f"{plugin}{seed}", {**ONE_ROW, "valid_loss": [value]}, plugin=plugin, seed=seed)

    def test_confidence_intervals_are_those_of_students_t(self):
        made = self.make()
        found = self.read(self.root, "--ci")
        for group in found["groups"]:
            values = np.array([columns["valid_loss"].min() for (name, _), columns in made.items() if name == group["keys"]["model.recurrent.plugin"]])
            half = 2.776445105 * values.std(ddof=1) / np.sqrt(5)  # the 97.5% quantile for 4 degrees of freedom: Abramowitz and Stegun, table 26.10
            np.testing.assert_allclose(group["ci95"], [values.mean() - half, values.mean() + half], rtol=1e-9)
            if stats:
                np.testing.assert_allclose(group["ci95"], stats.t.interval(0.95, 4, values.mean(), stats.sem(values)), rtol=1e-12)
        rows = list(csv.DictReader(io.StringIO(self.call(self.root, "--ci", "--csv"))))
        self.assertEqual([[float(row["ci95_low"]), float(row["ci95_high"])] for row in rows], [group["ci95"] for group in found["groups"]])
        low, high = found["groups"][0]["ci95"]
        self.assertIn(f"{low:.4g}–{high:.4g}", self.call(self.root, "--ci"))
        self.assertEqual(self.read(self.root, "--ci", "--where", "seed=1")["groups"][0]["ci95"], [None, None])
        self.assertNotIn("ci95", self.read(self.root)["groups"][0])

    def test_the_signed_rank_test_is_exact(self):
        """Against all signs of the ranks, one by one, and against SciPy where that is exact."""
        rng = np.random.default_rng(3)
        for differences in ([3], [1, -2, 3], [1, 2, 3, 4, 5], [1, 1, -1, 2, 2, 3], [0, 0, 2, -1, 4], [0, 0],
                            list(rng.permutation(np.arange(1, 11)) * rng.choice([-1, 1], 10))):
            with self.subTest(differences=differences):
                shutil.rmtree(self.root)
                self.pairs(differences)
                kept = np.array([d for d in differences if d != 0])
                ranks = np.array([np.mean(np.flatnonzero(np.sort(abs(kept)) == abs(d))) + 1 for d in kept])
                sums = [sum(rank for rank, sign in zip(ranks, signs) if sign) for signs in itertools.product((0, 1), repeat=len(kept))]
                of_these = ranks[kept > 0].sum()
                expected = min(1, 2 * min(np.mean([s <= of_these for s in sums]), np.mean([s >= of_these for s in sums])))
                first, second = self.read(self.root, "--test", "model.recurrent.plugin=dense")["groups"]
                self.assertEqual((first["test"], second["test"]["pairs"]), ("reference", len(differences)))
                self.assertAlmostEqual(second["test"]["p"], expected, places=12)
                if stats and len(set(abs(kept))) == len(kept) == len(differences):
                    self.assertAlmostEqual(second["test"]["p"], stats.wilcoxon(kept, method="exact").pvalue, places=12)

    def test_tests_against_a_row(self):
        self.pairs([1, 2, 3, 4, 5, 6])
        write_run(self.root / "unpaired", {**ONE_ROW, "valid_loss": [3.]}, plugin="householder", seed=77)
        write_run(self.root / "running", {**ONE_ROW, "valid_loss": [3.]}, state="running", plugin="dense", seed=77)
        for words in (("--test", "best"), ("--test", "model.recurrent.plugin=dense")):
            table = [line.split() for line in self.call(self.root, *words).splitlines()]
            self.assertIn("reference", table[1])
            self.assertIn("0.031 (6)", self.call(self.root, *words))
            rows = list(csv.DictReader(io.StringIO(self.call(self.root, *words, "--csv"))))
            self.assertEqual([(row["p"], row["pairs"]) for row in rows], [("", ""), ("0.03125", "6")])
        for name, said in (("model.recurrent.plugin=dens", "--test model.recurrent.plugin=dens: none of the rows are so; name one by its values, such as model.recurrent.plugin=dense"),
                           ("model.recurrent.plugin!=lstm", "2 of the rows are so"), ("worst", "--test worst: write best, or the values of a row, such as model.recurrent.plugin=dense"),
                           ("seed=1", "--test seed=1: write best, or the values of a row")):
            self.assertIn(said, self.call(self.root, "--test", name, code=2))
        self.assertIn("two runs of a row have seed 0", self.call(self.root, "--by", "name", "--test", "best", code=2))

    def test_labels_and_the_best_value_in_latex(self):
        self.make()
        words = ("--label", "model.recurrent.plugin=map", "--label", "model.recurrent.plugin=householder:oRNN & co")
        table = self.call(self.root, *words)
        self.assertTrue(table.startswith("map "), table)
        self.assertTrue(table.splitlines()[2].startswith("oRNN & co "), table)
        rows = self.call(self.root, *words, "--latex").splitlines()
        self.assertRegex(rows[2], r"^map & ")
        dense, householder = (row for row in rows if "finished" in row)
        self.assertRegex(householder, r"^oRNN \\& co & \\textbf\{[\d.]+ \$\\pm\$ [\d.]+\} & ")
        self.assertNotIn("textbf", dense)
        higher = self.call(self.root, "--metric", "valid_accuracy", "--latex")
        self.assertRegex(higher, r"householder & \\textbf\{")
        self.assertEqual(higher.count("textbf"), 1)
        self.assertNotIn("textbf", self.call(self.root, "--where", "model.recurrent.plugin=dense", "--by", "name", "--latex"))
        self.assertIn("--label is for tables that people read", self.call(self.root, *words, "--json", code=2))
        self.assertIn("no run has model.recurrent.plugin=householde; choose from dense, householder",
                      self.call(self.root, "--label", "model.recurrent.plugin=householde:oRNN", code=2))

    def test_steps_and_seconds_to_a_threshold(self):
        made = self.make()
        threshold = 0.2
        for group in self.read(self.root, "--reach", threshold)["groups"]:
            steps, seconds = [], []
            for (name, _), columns in made.items():
                under = np.flatnonzero(columns["valid_loss"] <= threshold)
                if name == group["keys"]["model.recurrent.plugin"] and len(under):
                    steps.append(columns["step"][under[0]])
                    seconds.append(columns["seconds"][:under[0] + 1].sum())
            self.assertEqual(group["steps"]["n"], len(steps))
            self.assertGreater(len(steps), 0)
            self.assertAlmostEqual(group["steps"]["mean"], np.mean(steps), places=10)
            self.assertAlmostEqual(group["seconds"]["median"], np.median(seconds), places=10)
        higher = self.read(self.root, "--metric", "accuracy", "--reach", 0.9)
        self.assertEqual((higher["metric"], higher["better"]), ("valid_accuracy", "higher"))
        for group in higher["groups"]:
            for run in group["runs"]:
                columns = made[group["keys"]["model.recurrent.plugin"], int(run["seed"])]
                reached = np.flatnonzero(columns["valid_accuracy"] >= 0.9)
                self.assertEqual(run["steps"], columns["step"][reached[0]] if len(reached) else None)

    def test_a_threshold_for_what_is_known_at_the_end_only(self):
        self.make(("dense",), 2)
        said = self.call(self.root, "--metric", "test_loss", "--reach", 0.2, code=2)
        self.assertRegex(said, "^stiefel: --reach: .*/dense0 records test_loss of its final model only; choose one that every evaluation records, "
                               "such as --metric valid_loss\n$")
        self.assertEqual(self.read(self.root, "--metric", "valid_loss", "--reach", 0.2)["groups"][0]["steps"]["n"], 2)
        self.assertIn("such as --metric valid_accuracy", self.call(self.root, "--metric", "test_accuracy", "--reach", 0.2, code=2))
        self.call(self.root, "--metric", "test_loss")

    def test_a_named_metric(self):
        made = self.make(("dense",), 3)
        values = {run["seed"]: run["value"] for group in self.read(self.root, "--metric", "test_loss")["groups"] for run in group["runs"]}
        for seed in range(3):
            self.assertEqual(values[str(seed)], made["dense", seed]["valid_loss"].min() * 1.1)
        self.assertIn("no run has the metric perplexity; choose from ", self.call(self.root, "--metric", "perplexity", code=2))
        self.assertIn("did you mean 'test_loss'", self.call(self.root, "--metric", "tset_loss", code=2))

    def test_metric_by_its_path(self):
        made = self.make()
        for number, folder in enumerate(sorted((self.root / "sweep").iterdir())):
            with h5py.File(folder / "results.h5", "r+") as file:
                group = file.create_group("orthogonality/recurrent")
                group["step"] = np.int64([0, 10])
                group["defect_fro"] = np.array([[1.], [number + 2.]])
                group["wide"] = np.ones((2, 3))
        found = self.read(self.root, "--metric", "orthogonality/recurrent/defect_fro")
        self.assertEqual(found["metric"], "orthogonality/recurrent/defect_fro")
        self.assertEqual(sorted(group["value"]["mean"] for group in found["groups"]), [4., 9.])
        last = [run["value"] for group in self.read(self.root, "--metric", "epochs/valid_loss")["groups"] for run in group["runs"]]
        self.assertEqual(sorted(last), sorted(columns["valid_loss"][-1] for columns in made.values()))
        self.assertEqual(self.read(self.root, "--metric", "epochs/valid_loss", "--reach", "1e9")["groups"][0]["steps"],
                         self.read(self.root, "--metric", "valid_loss", "--reach", "1e9")["groups"][0]["steps"])
        self.assertIn("no run has orthogonality/recurrent/wide with one number in each row", self.call(self.root, "--metric", "orthogonality/recurrent/wide", code=2))
        self.assertNotIn("choose from", self.call(self.root, "--metric", "orthogonality/recurrent/wide", code=2))

    def test_metric_that_is_selected(self):
        columns = {"step": [10, 20, 30], "train_loss": [3., 2., 1.], "valid_loss": [.3, .1, .2], "valid_accuracy": [.7, .9, .8],
                   "is_best": np.uint8([1, 1, 0]), "seconds": [1., 1., 1.]}
        write_run(self.root / "a" / "accuracy", columns, select="accuracy")
        found = self.read(self.root / "a")
        self.assertEqual((found["metric"], found["groups"][0]["value"]["mean"]), ("valid_accuracy", 0.9))
        write_run(self.root / "a" / "loss", columns)
        self.assertIn("choose one with --metric", self.call(self.root, code=2))
        self.assertEqual(self.read(self.root, "--where", "train.select=loss")["groups"][0]["value"]["mean"], 0.1)
        # without a validation split nothing selects: the training loss of the last evaluation
        write_run(self.root / "b" / "none", {**columns, "valid_loss": [np.nan] * 3, "is_best": np.uint8([0, 0, 0])})
        found = self.read(self.root / "b")
        self.assertEqual((found["metric"], found["groups"][0]["value"]["mean"]), ("train_loss", 1.0))

    def test_equal_values_do_not_spread(self):
        for seed in range(3):
            write_run(self.root / f"{seed}", {**ONE_ROW, "valid_loss": [0.1]}, seed=seed)
        self.assertNotEqual(np.std([0.1] * 3, ddof=1), 0)
        value = self.read(self.root)["groups"][0]["value"]
        self.assertEqual((value["mean"], value["std"]), (0.1, 0))
        self.assertIn(" 0.1 ± 0 ", self.call(self.root))

    def test_infinite_values_leave_the_other_quantiles(self):
        for seed, loss in enumerate((1., 2., np.inf, 3., np.inf)):
            write_run(self.root / f"{seed}", {"step": [10], "valid_loss": [loss], "is_best": np.uint8([1]), "seconds": [1.]}, seed=seed)
        value = self.read(self.root)["groups"][0]["value"]
        self.assertEqual((value["q25"], value["median"], value["min"]), (2, 3, 1))
        self.assertIn("inf", self.call(self.root))

    def test_sorting_by_numbers_of_runs_and_of_parameters(self):
        for name, seeds, state, parameters in (("a", 3, "diverged", 0), ("b", 2, "finished", 9), ("c", 1, "finished", 10)):
            for seed in range(seeds):
                write_run(self.root / f"{name}{seed}", ONE_ROW, name=name, seed=seed, state=state, parameters=parameters)
        for by, order in (("n", "acb"), ("parameters", "bca")):
            self.assertEqual("".join(group["keys"]["name"] for group in self.read(self.root, "--by", "name", "--sort", by)["groups"]), order, by)

    def test_sorting_by_every_column_of_numbers(self):
        """Groups a, b and c: median, best and spread, and steps and seconds to 0.9, are in different orders."""
        for name, values, step, seconds in (("a", (0.91, 0.95, 0.99), 30, 1.), ("b", (0.90, 0.96, 0.97), 20, 3.), ("c", (0.92, 0.94, 0.95), 10, 2.)):
            for seed, value in enumerate(values):
                write_run(self.root / f"{name}{seed}", {"step": [step], "valid_loss": [1 - value], "valid_accuracy": [value], "is_best": np.uint8([1]), "seconds": [seconds]},
                          name=name, seed=seed)
        for metric, by, order in (("accuracy", "median", "bac"), ("accuracy", "best", "abc"), ("accuracy", "std", "cba"), ("loss", "median", "bac"), ("loss", "best", "abc"),
                                  ("accuracy", "steps", "cba"), ("accuracy", "seconds", "acb")):
            found = self.read(self.root, "--metric", metric, "--by", "name", "--sort", by, *(("--reach", 0.9) if metric == "accuracy" else ()))
            self.assertEqual("".join(group["keys"]["name"] for group in found["groups"]), order, (metric, by))

    def test_runs_that_count_twice_and_settings_that_a_resume_changed(self):
        for folder, seed, rate in (("a", 1, "0.1 → 0.01 → 0.02"), ("b", 1, "0.1 → 0.01 → 0.02"), ("c", 2, "0.01")):
            write_run(self.root / folder, ONE_ROW, seed=seed, rate=rate)
        done = subprocess.run([PROGRAM, "compare", self.root], capture_output=True, text=True, check=True)
        self.assertIn("warning: 2 runs in one row have seed 1, ", done.stderr)
        for condition, count in (("optimizer.rate=0.02", 2), ("optimizer.rate=0.01", 1), ("optimizer.rate>0.015", 2)):
            self.assertEqual(sum(len(group["runs"]) for group in self.read(self.root, "--where", condition)["groups"]), count, condition)

    def test_tasks_in_one_row(self):
        for folder, task in (("a", "adding"), ("b", "copy"), ("c", "copy")):
            write_run(self.root / folder, ONE_ROW, task=task, seed=folder)
        sentence = "warning: runs in one row have different tasks: adding, copy; choose one with --where task.plugin=adding"
        for words, expected in ((("--by", "model.recurrent.plugin"), [sentence]), ((), []), (("--by", "model.recurrent.plugin", "--where", "task.plugin=copy"), [])):
            done = subprocess.run([PROGRAM, "compare", self.root, *words], capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr.splitlines(), expected, words)

    def test_many_runs_that_count_twice(self):
        for folder in ("a", "b"):
            for seed in range(5):
                write_run(self.root / f"{folder}{seed}", ONE_ROW, seed=seed)
        said = subprocess.run([PROGRAM, "compare", self.root], capture_output=True, text=True, check=True).stderr
        self.assertEqual(said.count("warning: 2 runs in one row have seed"), 3, said)
        self.assertIn("warning: 2 more seeds are counted several times in their row", said)

    def test_runs_that_select_by_the_test_set(self):
        columns = {"step": [10, 20], "valid_loss": [.1, .3], "test_loss": [.5, .4], "is_best": np.uint8([1, 1]), "seconds": [1., 1.]}
        write_run(self.root / "best", columns, select_on="best_test")
        found = self.read(self.root)
        self.assertEqual((found["metric"], found["groups"][0]["value"]["mean"]), ("test_loss", 0.4))

    def test_direction_that_is_not_told(self):
        columns = {"step": [10], "valid_loss": [.3], "valid_snr": [5.], "is_best": np.uint8([1]), "seconds": [1.]}
        write_run(self.root / "old", columns, better=False)
        self.assertEqual(self.read(self.root)["better"], "lower")
        self.assertIsNone(self.read(self.root, "--metric", "snr")["groups"][0]["best"])
        self.assertIn("higher or a lower", self.call(self.root, "--metric", "snr", "--reach", 4, code=2))

    def test_every_state_is_shown(self):
        self.make(("dense",), 2)
        columns = curves(np.random.default_rng(1), 5)
        for number, state in enumerate(("diverged", "failed", "preempted", "running")):
            write_run(self.root / "sweep" / state, columns if number else {}, state=state, plugin="dense", seed=10 + number)
        for name, age in (("lost", 3600), ("elsewhere", 0)):  # runs of another host, which touches the lock of a living one
            write_run(self.root / "sweep" / name, columns, state="running", plugin="dense", seed=30 + age)
            lock = self.root / "sweep" / name / "lock"
            lock.write_text('{"host": "elsewhere", "pid": 1, "boot": "b", "namespace": "n", "start": "1", "since": "2024"}', encoding="utf-8")
            os.utime(lock, (time.time() - age,) * 2)
        begun = self.root / "sweep" / "begun"
        begun.mkdir()
        (begun / "config.yaml").write_text(configuration(plugin="dense", seed=20), encoding="utf-8")
        group, = self.read(self.root)["groups"]
        self.assertEqual(group["states"], {"diverged": 1, "failed": 1, "finished": 2, "running": 1, "stopped": 4})
        self.assertEqual(group["value"]["n"], 2)
        self.assertIn("2 finished", self.call(self.root))
        self.assertIn(" 2/2 ", self.call(self.root, "--reach", 1000))
        self.assertEqual(self.read(self.root, "--where", "state=diverged")["groups"][0]["states"], {"diverged": 1})

    def test_keys_of_the_rows(self):
        for number, (plugin, options) in enumerate((("householder", ", reflections: 4"), ("householder", ", reflections: 16"), ("dense", ", init: x"))):
            for rate in (0.001, 0.01):
                write_run(self.root / f"{number}-{rate}", curves(np.random.default_rng(number), 0), plugin=plugin, options=options, rate=rate)
        keys = list(self.read(self.root)["groups"][0]["keys"])
        self.assertEqual(keys, ["model.recurrent.plugin", "optimizer.rate", "model.recurrent.reflections"])
        groups = [tuple(group["keys"].values()) for group in self.read(self.root)["groups"]]
        self.assertEqual(groups, [("dense", "0.001", "-"), ("dense", "0.01", "-"), ("householder", "0.001", "4"), ("householder", "0.001", "16"),
                                  ("householder", "0.01", "4"), ("householder", "0.01", "16")])
        self.assertEqual([len(group["runs"]) for group in self.read(self.root, "--by", "optimizer.rate")["groups"]], [3, 3])
        for key in ("optimizer.rat", "rate"):
            self.assertIn("did you mean 'optimizer.rate'?", self.call(self.root, "--by", key, code=2))

    def test_keys_that_change_together(self):
        for plugin, rate, options in (("householder", 0.01, ", reflections: 4"), ("dense", 0.5, ", init: x")):
            write_run(self.root / plugin, curves(np.random.default_rng(1), 0), plugin=plugin, rate=rate, options=options)
        self.assertEqual(list(self.read(self.root)["groups"][0]["keys"]), ["model.recurrent.plugin", "optimizer.rate"])
        for plugin, rate, optimizer in (("householder", 0.01, "adam"), ("dense", 0.5, "sgd")):
            groups = f"[{{blocks: 'recurrent*', plugin: {optimizer}, rate: {rate}}}, {{blocks: '*', plugin: adam, rate: 0.1}}]"
            write_run(self.root / "groups" / plugin, curves(np.random.default_rng(1), 0), plugin=plugin, optimizer=groups)
        self.assertEqual(list(self.read(self.root / "groups")["groups"][0]["keys"]), ["model.recurrent.plugin", "optimizer.0.plugin", "optimizer.0.rate"])

    def test_where_and_sort(self):
        self.make()
        for condition, runs in (("seed<2", 4), ("seed>2", 4), ("seed!=0", 8), ("model.recurrent.plugin=dense", 5), ("seed=1.0", 2), ("seed<=2", 6), ("seed>=2", 6)):
            found = self.read(self.root, "--where", condition, "--by", "model.recurrent.plugin")
            self.assertEqual(sum(len(group["runs"]) for group in found["groups"]), runs, condition)
        found = self.read(self.root, "--where", "seed<3", "--where", "seed>0", "--by", "seed")
        self.assertEqual([group["keys"]["seed"] for group in found["groups"]], ["1", "2"])
        self.assertEqual([group["keys"]["model.recurrent.plugin"] for group in self.read(self.root, "--sort", "mean")["groups"]], ["householder", "dense"])
        self.assertEqual([group["keys"]["model.recurrent.plugin"] for group in self.read(self.root, "--sort", "mean", "--metric", "accuracy")["groups"]],
                         ["householder", "dense"])
        self.assertIn("no such column", self.call(self.root, "--sort", "beauty", code=2))
        self.assertIn("no run matches", self.call(self.root, "--where", "seed=77", code=2))
        for seed in (2**53, 2**53 + 1):
            write_run(self.root / str(seed), ONE_ROW, seed=seed)
        for condition, count in ((f"seed={2**53 + 1}", 1), (f"seed>{2**53}", 1), (f"seed>={2**53}", 2), ("seed>9.1e15", 0)):
            if count == 0:
                self.call(self.root, "--where", condition, code=2)
            else:
                self.assertEqual(sum(len(group["runs"]) for group in self.read(self.root, "--where", condition)["groups"]), count, condition)
        self.assertIn("a condition must be", self.call(self.root, "--where", "seed", code=2))

    def test_tables(self):
        columns = {"step": [10, 20], "train_loss": [1., 1.], "valid_loss": [.5, .25], "is_best": np.uint8([1, 1]), "seconds": [1., 1.]}
        for seed, loss in enumerate((0.25, 0.75)):
            write_run(self.root / f"s{seed}", {**columns, "valid_loss": [2., loss]}, seed=seed)
        write_run(self.root / "t", {**columns, "valid_loss": [2., 0.125]}, rate="a|b_c")
        self.assertEqual(self.call(self.root, "--by", "optimizer.rate"),
                         "optimizer.rate  valid_loss mean ± std  median       25–75%   best  parameters  n  runs\n"
                         "0.01                      0.50 ± 0.35     0.5  0.375–0.625   0.25        1000  2  2 finished\n"
                         "a|b_c                           0.125   0.125            -  0.125        1000  1  1 finished\n")
        self.assertEqual(self.call(self.root, "--by", "optimizer.rate", "--markdown"),
                         "| optimizer.rate | valid_loss mean ± std | median | 25–75% | best | parameters | n | runs |\n"
                         "|---|---:|---:|---:|---:|---:|---:|---|\n"
                         "| 0.01 | 0.50 ± 0.35 | 0.5 | 0.375–0.625 | 0.25 | 1000 | 2 | 2 finished |\n"
                         "| a\\|b_c | 0.125 | 0.125 | - | 0.125 | 1000 | 1 | 1 finished |\n")
        latex = self.call(self.root, "--by", "optimizer.rate", "--latex")
        self.assertIn("\\begin{tabular}{lrrrrrrl}\n\\toprule\n", latex)
        self.assertIn("\na\\textbar{}b\\_c & \\textbf{0.125} & ", latex)
        self.assertIn("0.01 & 0.50 $\\pm$ 0.35 & ", latex)
        self.assertIn("one format at a time", self.call(self.root, "--csv", "--json", code=2))
        write_run(self.root / "v", {**columns, "valid_loss": [2., 4.]}, rate="0.1 → 0.01")
        self.assertIn("\n0.1 $\\to$ 0.01 & 4 &", self.call(self.root, "--by", "optimizer.rate", "--latex"))
        shutil.rmtree(self.root / "v")
        write_run(self.root / "u", {**columns, "valid_loss": [2., 4.]}, rate="[1, 2, '<b>*x*']")
        self.assertIn("\n{[}1, 2, \\textless{}b\\textgreater{}*x*] & 4 &", self.call(self.root, "--by", "optimizer.rate", "--latex"))
        self.assertIn("| \\[1, 2, &lt;b>\\*x\\*] | 4 |", self.call(self.root, "--by", "optimizer.rate", "--markdown"))
        shutil.rmtree(self.root / "u")
        rows = list(csv.DictReader(io.StringIO(self.call(self.root, "--by", "optimizer.rate", "--csv", "--reach", 0.25))))
        self.assertEqual([(row["optimizer.rate"], row["n"], row["mean"], row["best"], row["reached"], row["steps_mean"]) for row in rows],
                         [("0.01", "2", "0.5", "0.25", "1", "20"), ("a|b_c", "1", "0.125", "0.125", "1", "20")])

    def test_what_is_found(self):
        self.make(("dense",), 1)
        run = self.root / "sweep" / "dense0"
        (run / "checkpoints").mkdir()
        write_run(run / "checkpoints" / "inner", {})
        os.symlink(self.root, self.root / "sweep" / "loop")
        for path in (self.root, run, run / "results.h5"):
            self.assertEqual(len(self.read(path)["groups"][0]["runs"]), 1, path)
        (self.root / "empty").mkdir()
        self.assertIn("there are no runs in", self.call(self.root / "empty", code=2))
        self.assertIn("does not exist", self.call(self.root / "nowhere", code=2))

    def test_results_of_another_run(self):
        self.make(("dense",), 2)
        first, second = (self.root / "sweep" / f"dense{number}" for number in (0, 1))
        (first / "config.yaml").write_text("seed: 0\nthreads: 7\nown: 3\n")
        (second / "config.yaml").write_text("seed: 41\n")
        found = self.read(self.root, code=UNREADABLE)
        self.assertEqual([item["path"] for item in found["unreadable"]], [str(second)])
        self.assertRegex(found["unreadable"][0]["reason"], r"results.h5 and config.yaml are of different runs, or one of them was edited: seed is \d and 41")

    def test_a_file_that_is_read_for_ever(self):
        self.make(("dense",), 2)
        path = self.root / "sweep" / "dense1" / "results.h5"
        path.write_bytes(endless(bytearray(path.read_bytes())))
        found = self.read(self.root, code=UNREADABLE)
        self.assertEqual([item["path"] for item in found["unreadable"]], [str(path.parent)])
        self.assertIn(found["unreadable"][0]["reason"],  # the latter on a busy machine
                      ("reading it takes more than 10 s of processor time", "reading it takes longer than 30 s"))
        self.assertEqual(found["groups"][0]["value"]["n"], 1)

    def test_control_characters_do_not_reach_the_terminal(self):
        direction = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
        write_run(self.root / "evil", ONE_ROW, state=f"\x1b[2J\u009b\x07finished{direction}\u2065")
        state = json.loads(self.call(self.root, "--json"))["groups"][0]["runs"][0]["state"]
        self.assertEqual(state, f"\x1b[2J\u009b\x07finished{direction}\u2065")
        for form in ((), ("--csv",), ("--markdown",), ("--latex",), ("--json",)):
            said = self.call(self.root, *form)
            self.assertFalse(set("\x1b\x07\u009b" + direction) & set(said), form)
            self.assertIn("\u2065", said)
        self.assertIn(r"\x1b[2J\xc2\x9b\x07finished\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\xaa", self.call(self.root))

    def test_cells_are_no_formulas(self):
        names = {"=1+1": "'=1+1", "@SUM(A1)": "'@SUM(A1)", "-2+3": "'-2+3", "+cmd|x": "'+cmd|x", "-1.5": "-1.5", "+1e3": "+1e3", "-": "-", "a=b": "a=b",
                 "=\"a\",b": "'=\"a\",b"}
        for seed, name in enumerate(names):
            write_run(self.root / str(seed), ONE_ROW, rate=json.dumps(name))
        rows = list(csv.DictReader(io.StringIO(self.call(self.root, "--by", "optimizer.rate", "--csv"))))
        self.assertEqual({row["optimizer.rate"] for row in rows}, set(names.values()))
        self.assertIn(" =1+1 ", " " + " ".join(self.call(self.root, "--by", "optimizer.rate").split()))

    def test_cells_on_a_terminal_are_limited(self):
        write_run(self.root / "long", ONE_ROW, rate="x" * 100000)
        said = self.call(self.root, "--by", "optimizer.rate")
        self.assertLess(max(map(len, said.splitlines())), 400)
        self.assertIn("x…x", said)

    def test_five_hundred_runs(self):
        rng = np.random.default_rng(3)
        for number in range(500):
            write_run(self.root / f"{number:03}", curves(rng, 0), seed=number % 5, rate=0.001 * (number // 5 + 1))
        begin = time.monotonic()
        found = self.read(self.root)
        seconds = time.monotonic() - begin
        print(f"500 runs are compared in {seconds:.2f} s", flush=True)
        self.assertEqual((len(found["groups"]), {len(group["runs"]) for group in found["groups"]}), (100, {5}))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
