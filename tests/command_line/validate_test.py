#!/usr/bin/python3
"""What is checked before a run starts: keys, sweeps, data.

usage: validate_test.py PROGRAM
"""
import unittest

from command_line import CommandLine


class Validate(CommandLine):
    def test_keys_without_effect_are_remarked_on(self):
        words = ("tiny.yaml", "train.clip.bound=3", "optimizer.schedule.patience=2", "model.initial_state.scale=2",
                 "model.readout.bias=false", "model.readout.bias_init=normal", "model.input.embedding.scale=3")
        said = ("model.initial_state.scale has no effect here; it is for `kind: learned`",
                "model.readout.bias_init has no effect here; it is for `bias: true`",
                "model.input.embedding.scale has no effect here; it is for a `size` above 0",
                "train.clip.bound has no effect here; it is for `kind: elementwise` and `norm`",
                "optimizer.schedule.patience has no effect here; it is for `kind: plateau`")
        for command in ("validate", "run"):
            err = self.call(command, *words).stderr
            for sentence in said:
                self.assertEqual(err.count(f"warning: command line: {sentence}\n"), 1, (command, err))
        err = self.call("run", *words, "seed=2", "--quiet").stderr
        self.assertEqual(sorted(err.splitlines()), sorted(f"warning: command line: {sentence}" for sentence in said))
        run = next((self.work / "runs/tiny").iterdir())
        self.assertNotIn("no effect", self.call(
            "validate", run / "config.yaml", "train.clip.kind=norm", "optimizer.schedule.kind=plateau", "train.evaluate_every=1",
            "model.initial_state.kind=learned", "model.readout.bias=true", "model.input.embedding=null").stderr)
        self.assertNotIn("no effect", self.call("validate", "tiny.yaml", "train.clip.bound=1").stderr)

    def test_unstable_oscillators(self):
        for step, code in ((0.38, 0), (0.4, 2)):  # γ = 2.7 and ε = 4.7: stable below 0.3835
            said = self.call("validate", "tiny.yaml", f"model.cell={{plugin: cornn, hidden: 4, step: {step}}}", code=code).stderr
            self.assertEqual("unstable unless Δ²γ + 2Δε < 4" in said, code == 2, said)

    def test_keys_that_are_taken_away(self):
        self.make_run("model.cell=lru", "model.recurrent=null")
        self.assertIn("model.readout=null removes a key, but model.readout is not given", self.call("validate", "tiny.yaml", "model.readout=null", code=2).stderr)
        (self.work / "lru.yaml").write_text("extends: [tiny.yaml]\nmodel: {cell: {plugin: lru, hidden: 4}, recurrent: null}\n", encoding="utf-8")
        self.call("validate", "lru.yaml")
        (self.work / "again.yaml").write_text("extends: [lru.yaml]\nmodel: {recurrent: ~}\nsweep: {train.clip: [null, {kind: norm, bound: 1}]}\n", encoding="utf-8")
        self.call("validate", "again.yaml")
        self.assertIn("entries of a list cannot be removed", self.call("validate", "tiny.yaml", "optimizer=[sgd]", "optimizer.0=null", code=2).stderr)

    def test_a_sweep_is_valid_if_its_runs_are(self):
        sweep = "extends: [tiny.yaml]\nname: sw\nseeds: 1..2\nmodel: {recurrent: {plugin: householder}}\nsweep: {model.recurrent.reflections: [2, 500]}\n"
        (self.work / "sweep.yaml").write_text(sweep, encoding="utf-8")
        said = self.call("validate", "sweep.yaml", code=2).stderr
        self.assertRegex(said, r"^sweep.yaml:4:\d+: model.recurrent: householder: `reflections` is 500, [^\n]* \(with model.recurrent.reflections=500\)\nsweep.yaml: 1 error\n$")
        self.assertEqual(self.call("sweep", "run", "sweep.yaml", code=2).stderr, said)  # which trains nothing, not even the valid half
        self.assertFalse((self.work / "sweeps").exists())
        (self.work / "base.yaml").write_text("extends: [tiny.yaml]\nmodel: {recurrent: {plugin: householder}}\n", encoding="utf-8")
        (self.work / "over.yaml").write_text("extends: [base.yaml]\nname: sw\nsweep: {model.recurrent.reflections: [2, 500]}\n", encoding="utf-8")
        self.assertRegex(self.call("validate", "over.yaml", code=2).stderr, r"^base.yaml:2:\d+, over.yaml:3:\d+: model.recurrent: householder: ")
        (self.work / "sweep.yaml").write_text(sweep.replace("500", "4"), encoding="utf-8")
        self.assertEqual(self.call("validate", "sweep.yaml").stdout, "sweep.yaml: valid, 4 runs that differ in model.recurrent.reflections, seed\n")

    def test_all_errors_of_a_sweep(self):
        """Those of its keys, of the experiment, and of runs that do not fit together."""
        (self.work / "sweep.yaml").write_text("""extends: [tiny.yaml]
model: {recurrent: {plugin: householder}, cell: {hiden: 4}}
sweep: {optimzer.rate: [0.1, 0.2], train.batch: 8..10, seed: []}
""", encoding="utf-8")
        said = self.call("validate", "sweep.yaml", code=2).stderr
        for sentence in ("sweep.yaml:2:50: model.cell.hiden is not", "sweep.yaml:3:9: optimzer is not", "sweep.yaml:3:49: sweep.train.batch must be a list", "sweep.yaml:3:62: sweep.seed must be a list"):
            self.assertIn(sentence, said)
        self.assertTrue(said.endswith("\nsweep.yaml: 4 errors\n"), said)
        (self.work / "sweep.yaml").write_text("""extends: [tiny.yaml]
model: {recurrent: {plugin: householder}}
sweep: {optimizer.rate: [0.1, abc], model.recurrent.reflections: [2, 99]}
""", encoding="utf-8")
        said = self.call("validate", "sweep.yaml", code=2).stderr
        self.assertIn("sweep.yaml:3:31: optimizer.rate must be a number, got 'abc'\n", said)
        self.assertRegex(said, "(?m)`reflections` is 99, .* \\(with optimizer.rate=0.1, model.recurrent.reflections=99\\)$")
        self.assertTrue(said.endswith("\nsweep.yaml: 2 errors\n"), said)

    def test_wrong_data_are_an_error_and_missing_data_are_not(self):
        words = "validate", "tiny.yaml", "task={plugin: sequence_csv, train: own.csv, targets: [y]}"
        self.assertIn("tiny.yaml: valid as far as can be checked without its data\n", self.call(*words, code=4).stdout)
        (self.work / "own.csv").write_text("x,y\n1,2\nnan,3\n", encoding="utf-8")
        done = self.call(*words, code=4)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, 'own.csv:3:1: column "x" holds "nan", expected a finite number; fill it first, or set .*\ntiny.yaml: 1 error\n$')

    def test_one_file_in_two_splits(self):
        for name, y in (("a.csv", 2), ("b.csv", 3), ("copy.csv", 2)):
            (self.work / name).write_text(f"id,x,y\n1,1,{y}\n2,2,3\n", encoding="utf-8")
            (self.work / name.replace("csv", "txt")).write_text("the quick brown fox\n" * y, encoding="utf-8")
        other = self.work / "folder/a.csv"
        other.parent.mkdir()
        other.write_text((self.work / "b.csv").read_text(), encoding="utf-8")
        for splits, said in (("train: a.csv, test: a.csv", "task.test is the same file as task.train"),
                             ("train: a.csv, validation: b.csv, test: {file: copy.csv}", "task.test has the same content as task.train"),
                             ("train: a.csv, validation: b.csv, test: ./b.csv", "task.test is the same file as task.validation"),
                             ("data: {file: b.csv}, validation_fraction: 0.5, test_fraction: 0, test: b.csv", "task.test is the same file as task.data"),
                             ("train: folder/a.csv, test: a.csv", ""), ("train: a.csv, validation: b.csv", "")):
            words = "tiny.yaml", f"task={{plugin: sequence_csv, {splits}, sequence: id, targets: [y]}}"
            for command in ("validate", "run"):
                err = self.call(command, *words, "train.batch=1").stderr
                self.assertEqual(err.count(f"warning: command line: {said}: its score says little about new data\n"), bool(said), err)
                self.assertEqual("little about new data" in err, bool(said), err)
        err = self.call("validate", "text.yaml", "task={plugin: characters, train: a.txt, test: copy.txt}").stderr
        self.assertIn("task.test has the same content as task.train", err)

    def test_sequences_in_two_splits(self):
        """In files of different content: in another order, under other names."""
        rows = {name: "".join(f"{name},{x},{y}\n" for x in range(3)) for name, y in zip("abcdef", range(6))}
        for name, chosen in (("train", "abcd"), ("same", "dcab"), ("most", "fabc"), ("half", "cdef")):
            text = "".join(rows[i] for i in chosen)
            (self.work / f"{name}.csv").write_text("id,x,y\n" + (text if name == "train" else text.translate(str.maketrans("abcdef", "uvwxyz"))), encoding="utf-8")
        for test, said in (("same", "4 of the 4"), ("most", "3 of the 4"), ("half", "")):
            words = "tiny.yaml", f"task={{plugin: sequence_csv, train: train.csv, test: {test}.csv, sequence: id, targets: [y]}}", "train.batch=2"
            for command in ("validate", "run"):
                err = self.call(command, *words).stderr
                self.assertEqual(err.count(f"{said} different sequences of the test split are also in training: its score says little about new data\n"), bool(said), err)

    def test_a_path_with_a_tilde(self):
        hint = "~ is not expanded here: write the full path, or $HOME in a shell"
        for code, *words in ((4, "task={plugin: sequence_csv, train: ~/own.csv, targets: [y]}"), (4, "model.init_file=~/best.h5", "model.init_blocks=[readout.*]"), (3, "plugins=[~/own.so]")):
            done = self.call("validate", "tiny.yaml", *words, code=code)
            self.assertIn(hint, done.stdout + done.stderr, words)
        (self.work / "home.yaml").write_text("extends: [~/tiny.yaml]\n", encoding="utf-8")
        self.assertIn(hint, self.call("validate", "home.yaml", code=2).stderr)

    def test_nothing_to_train(self):
        said = self.call("validate", "tiny.yaml", "optimizer={plugin: frozen}", code=2).stderr
        self.assertIn("optimizer: every block is frozen, so nothing would be trained", said)

    def test_a_network_that_would_read_its_targets(self):
        (self.work / "text.txt").write_text("the quick brown fox\n" * 50, encoding="utf-8")
        said = self.call("validate", "text.yaml", "task.mode=sentences", "task.bptt=30", "model.bidirectional=true", code=2).stderr
        self.assertIn("model.bidirectional: the targets of characters are later inputs", said)


if __name__ == "__main__":
    unittest.main()
