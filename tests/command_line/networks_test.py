#!/usr/bin/python3
"""Commands that use a trained network: which one they load, from where, and whether its data and plugins have changed.

usage: networks_test.py PROGRAM
"""
import json
import math
import os
import pathlib
import random
import re
import shutil
import unittest

from command_line import EXPERIMENT, PROGRAM, CommandLine


class Networks(CommandLine):
    def test_networks_by_their_steps(self):
        run = self.make_run(file="text.yaml")
        first = self.call("sample", run, "--step", "step_20").stdout
        for which in ("step_20.h5", "20", "step_00000020", "step_00000020.h5"):
            self.assertEqual(self.call("sample", run, "--step", which).stdout, first)
        self.assertNotEqual(self.call("sample", run, "--last").stdout, first)
        for command in ("sample", "inspect"):
            self.assertIn("step_00000007.h5; use --last, or --step 20, or no option for the best network", self.call(command, run, "--step", "step_7", code=2).stderr)
            self.assertIn("--step must be the step of a checkpoint, got 'step_x'", self.call(command, run, "--step", "step_x", code=2).stderr)
        self.assertEqual(json.loads(self.call("inspect", run, "--step", "step_20.h5", "--json").stdout)["step"], 20)
        stopped = self.make_run("--until", 10, code=75)
        self.assertIn("the run has no best network: no evaluation has selected one yet; use --step 10\n", self.call("inspect", stopped, code=2).stderr)
        self.assertIn("--until 5 is already reached, after step 10 of 40", self.call("resume", stopped, "--until", 5, code=75).stdout)
        self.assertIn("after 40 steps", self.call("resume", stopped, "--until", 2_000_000_000).stdout)
        changed = self.make_run("seed=2", "--until", 20, code=75)
        said = self.call("resume", changed, "model.cell.transition=outside", "--allow-change", "model.cell.transition")
        self.assertIn("warning: model.cell.transition has changed: networks saved so far, including the best one, may compute other outputs", said.stdout + said.stderr)
        self.assertIn("--port must be a whole number from 0 to 65535, got '65536'", self.call("report", run, "--serve", "--port", 65536, code=2).stderr)

    def test_words(self):
        (self.work / "lines.txt").write_text("the quick brown fox\njumps over the lazy dog\n" * 40, encoding="utf-8")
        run = self.make_run("task.file=lines.txt", "task.units=words", file="text.yaml")
        values = json.loads(self.call("evaluate", run, "--json").stdout)["values"]
        self.assertAlmostEqual(values["perplexity"] / math.exp(values["loss"]), 1, places=9)
        self.assertEqual(values, json.loads(self.call("evaluate", run, "--threads", 2, "--json").stdout)["values"])
        self.assertRegex(self.call("sample", run, "--prime", "the fox", "--length", 3).stdout, "^the fox [a-z \n]+$")
        self.assertRegex(self.call("sample", run, "--prime", " the\tfox\nthe", "--length", 1).stdout, "^the fox \nthe [a-z \n]+$")
        self.assertRegex(self.call("sample", run, "--length", 1).stdout, "^\n[a-z \n]+$")
        for value in ("-1", "x", "nan"):
            self.assertIn("--temperature must be a number of at least 0", self.call("sample", run, f"--temperature={value}", code=2).stderr)
        self.assertIn('does not know the word "cat" at byte 5 of the prime', self.call("sample", run, "--prime", "the cat fox", code=2).stderr)

    def test_copies_of_networks(self):
        """A copy carries its checksum; one without is opened by another process first, whatever that does to it."""
        run = self.make_run()
        whole = (run / "checkpoints" / "best.h5").read_bytes()
        copy, words = self.work / "copy.h5", ("run", "tiny.yaml", "seed=2", "model.init_file=copy.h5")
        copy.write_bytes(whole)
        sound = self.call(*words, "--dry-run")
        self.assertEqual(sound.stderr, "")
        first_loss = re.search("^first loss .*", sound.stdout, re.MULTILINE)[0]
        rng = random.Random(1)
        for number in range(30):  # every third one where its checksum is
            flipped = bytearray(whole)
            flipped[rng.randrange(len(whole) if number % 3 else 600)] ^= 1 << rng.randrange(8)
            copy.write_bytes(flipped)
            done = self.call(*words, "--dry-run", code=(0, 6))
            self.assertIn("copy.h5 " if done.returncode else f"\n{first_loss}\n", done.stdout + done.stderr)
        copy.write_bytes(whole[:3000] + bytes([whole[3000] ^ 1]) + whole[3001:])
        for command in (("run", *words[1:], "--dry-run"), words, ("validate", *words[1:]), ("bench", "step", *words[1:], "--seconds", "0.01")):
            self.assertRegex(self.call(*command, code=6).stderr, "copy.h5 is damaged: it is not what was written; restore it from a copy, or copy the network of its run again")
        shutil.copy(copy, run / "checkpoints" / "foreign.h5")  # that the run has not written
        self.assertIn("foreign.h5 is damaged", self.call("run", "tiny.yaml", "seed=2", f"model.init_file={run}/checkpoints/foreign.h5", code=6).stderr)
        older = whole[512:]
        copy.write_bytes(older)
        self.assertIn("copy.h5 has no checksum: it was written by an older version of stiefel", self.call(*words, "--dry-run").stderr)
        for byte in range(8, len(older), 331):
            copy.write_bytes(older[:byte] + bytes([older[byte] ^ 16]) + older[byte + 1:])
            with self.subTest(byte=byte):
                self.call(*words, "--dry-run", code=(0, 2, 6))

    def test_line_breaks_among_the_classes(self):
        """Each row of a prediction is one line."""
        (self.work / "lines.txt").write_text("ab\nab\tb\n" * 100, encoding="utf-8")
        run = self.make_run("task.file=lines.txt", file="text.yaml")
        (self.work / "new.txt").write_text("ab\nab", encoding="utf-8")
        header, *rows = self.call("predict", run, "--input", "new.txt").stdout.splitlines()
        self.assertEqual(set(header.split(",")), {"step", "class", "p_\\n", "p_\\x09", "p_a", "p_b"})
        self.assertEqual([row.count(",") for row in rows], [5] * 5)

    def test_from_another_folder(self):
        """Data are where they were when the run was started, whatever else has their name; the folder of the run may have moved."""
        elsewhere = self.root / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "text.txt").write_text("0123456789" * 90, encoding="utf-8")
        sets = self.work / "sets"
        sets.mkdir()
        shutil.copy(self.work / "text.txt", sets / "own.txt")
        runs = [self.make_run("--until", 20, file="text.yaml", code=75),
                self.make_run("--until", 20, "task.file=own.txt", "--data", "sets", file="text.yaml", code=75)]
        for run in runs:
            self.assertRegex(self.call("sample", run, "--step", "step_20", cwd=elsewhere).stdout, "^ [a-z. ]+\n$")
            self.assertIn("after 40 steps", self.call("resume", run, cwd=elsewhere).stdout)
            self.assertIn("identical to the bit", self.call("repeat", run, "--check", cwd=elsewhere).stdout)
        moved = self.work.rename(self.root / "moved")
        runs = [moved / run.relative_to(self.work) for run in runs]
        self.call("sample", runs[0], cwd=moved)
        shutil.rmtree(moved / "sets")
        (moved / "text.txt").unlink()
        for run in runs:
            blocks = json.loads(self.call("inspect", run, "--json", cwd=elsewhere).stdout)["blocks"]
            letters = len(set("the quick brown fox jumps over the lazy dog."))
            self.assertEqual({block["name"]: block["shape"] for block in blocks}["readout.weight"], [letters, 4])

    def test_every_command_in_every_situation(self):
        """Commands that open a run say the same of what has changed since it was made. An empty text: they say nothing of it."""
        own = self.work / "own"
        own.mkdir()
        plugin = pathlib.Path(shutil.copy(PROGRAM.parent.parent / "lib/stiefel/plugins/dense.so", own))
        (self.work / "new.txt").write_text("the lazy fox", encoding="utf-8")
        original = self.make_run("plugins=[own]", "--until", 20, file="text.yaml", code=75)
        commands = {"evaluate": (), "predict": ("--input", "new.txt"), "sample": (), "export": ("--weights", "weights.safetensors"), "inspect": (),
                    "repeat": ("--quiet", "--output", "repeats"), "resume": ("--quiet",), "diff": (original,)}
        applies = ("predict", "sample", "export")  # to new data
        uses = ("evaluate", *applies)

        def rebuild(run):
            with plugin.open("ab") as file:
                file.write(b"another build")

        def change_data(run):
            (self.work / "text.txt").write_text("the quick brown fox jumps over a lazy dog. " * 20, encoding="utf-8")

        def remove_data(run):
            (self.work / "text.txt").unlink()

        def edit(run):
            (run / "config.yaml").write_text((run / "config.yaml").read_text(encoding="utf-8").replace("hidden: 4", "hidden: 5"), encoding="utf-8")

        def change_source(run):
            (own / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={own}\n", encoding="utf-8")
            (own / "dense.cpp").touch()
            os.utime(plugin, (0, 0))

        def damage(file):
            def flip(run):
                content = bytearray((run / file).read_bytes())
                content[len(content) // 2] ^= 1
                (run / file).write_bytes(content)
            return flip

        rebuilt, changed, missing = f"warning: the plugin dense, {plugin}, has been rebuilt since", "the data file text has changed since", "text.txt"
        outdated = f"warning: {own}/dense.cpp has changed since .* was built"
        situations = [
            (rebuild, {(*uses, "inspect", "repeat"): (0, rebuilt), ("resume",): (2, "plugin:dense was .* and is now"), ("diff",): (0, "")}),
            (change_data, {("evaluate",): (0, "warning: " + changed), ("repeat",): (4, changed), (*applies, "inspect", "diff"): (0, ""), ("resume",): (2, "data:text was .* and is now")}),
            (remove_data, {("evaluate",): (4, "A trained network needs the data files of its run"), ("repeat", "resume"): (4, missing), (*applies, "inspect", "diff"): (0, "")}),
            (edit, {(*uses, "inspect", "repeat", "resume"): (6, "config.yaml was edited or is damaged"), ("diff",): (6, "or one of them was edited")}),
            (damage("checkpoints/best.h5"), {(*uses, "inspect"): (6, "best.h5 is damaged"), ("repeat", "diff"): (0, ""), ("resume",): (0, "")}),
            (lambda run: os.truncate(run / "results.h5", 5000), {("evaluate", "repeat"): (0, "the data files may have changed since"), (*applies, "inspect"): (0, ""), ("resume", "diff"): (6, "results.h5")}),
            (change_source, {(*uses, "inspect", "repeat", "resume"): (0, outdated), ("diff",): (0, "")}),
        ]
        kept = {path: path.read_bytes() for path in (plugin, self.work / "text.txt")}
        for number, (happens, outcomes) in enumerate(situations):
            self.assertEqual(sorted(sum(outcomes, ())), sorted(commands))
            for command, (code, said) in ((command, outcome) for names, outcome in outcomes.items() for command in names):
                with self.subTest(happens.__qualname__, number=number, command=command):
                    run = self.work / "copies" / str(number) / command / original.name
                    shutil.copytree(original, run)
                    happens(run)
                    told = self.call(command, run, *commands[command], code=code).stderr
                    if said:
                        self.assertRegex(told, said)
                    else:
                        self.assertNotRegex(told, "rebuilt|has changed|damaged")
                for path, content in kept.items():
                    path.write_bytes(content)
                shutil.rmtree(self.work / "repeats", ignore_errors=True)
        change_source(None)
        for words in (("run", "--dry-run"), ("validate",)):
            self.assertIn(f"{own}/dense.cpp has changed since", self.call(*words, "text.yaml", "plugins=[own]").stderr)

    def test_builds_in_comparisons(self):
        own = self.work / "own"
        own.mkdir()
        plugin = pathlib.Path(shutil.copy(PROGRAM.parent.parent / "lib/stiefel/plugins/dense.so", own))
        words = ("plugins=[own]", "task.validation_sequences=20")
        run = self.make_run(*words)
        self.assertNotRegex(self.call("compare", run).stderr, "rebuilt|builds")
        with plugin.open("ab") as file:
            file.write(b"another build")
        for changed in ("seed=2", "optimizer.rate=0.5"):  # in the same row of the comparison, and in another one
            other = self.make_run(*words, changed)
            said = self.call("compare", run, other).stderr
            self.assertEqual([line for line in said.splitlines() if "builds" in line], ["warning: the runs were made with different builds of a plugin: dense"])
        self.assertIn("warning: the runs were made with different builds", self.call("report", run, other, "--output", "builds.html").stderr)
        self.assertIn("The runs were made with different builds of a plugin: dense.", (self.work / "builds.html").read_text(encoding="utf-8"))

    def test_changed_data(self):
        """A network keeps reading its inputs as its training data said; a new run of changed data is another one."""
        (self.work / "text.yaml").write_text(re.sub("task: .*", "task: {plugin: characters, train: text.txt, validation: valid.txt, test: test.txt}", EXPERIMENT), encoding="utf-8")
        lines = "the quick brown fox\njumps over the lazy dog\n" * 20
        (self.work / "text.txt").write_text(lines, encoding="utf-8")
        for test in ("valid.txt", "test.txt", "other.txt"):
            (self.work / test).write_text("the lazy fox\n", encoding="utf-8")
        run = self.make_run(file="text.yaml")
        commands = [("sample", run), ("evaluate", run), ("evaluate", run, "task.test=other.txt"), ("predict", run, "--input", "test.txt"),
                    ("export", run, "--weights", "weights.safetensors"), ("repeat", run, "--quiet")]
        for command in commands:
            self.call(*command)
        (self.work / "other.txt").write_text("the quick dog\n", encoding="utf-8")
        self.call("evaluate", run, "task.test=other.txt")
        self.assertIn("already finished", self.call("run", "text.yaml").stdout)
        (self.work / "text.txt").write_text(lines.replace("over the", "over a"), encoding="utf-8")
        elsewhere = self.root / "elsewhere"
        elsewhere.mkdir()
        changed = f"the data file train has changed since {run} was made"
        for command in (*commands, ("evaluate", run, "task.test=other.txt", "task.evaluation_batch=1")):
            said = self.call(*command, code=4 if command[0] == "repeat" else 0).stderr
            {"repeat": self.assertIn, "evaluate": self.assertIn}.get(command[0], self.assertNotIn)(changed, said)
        self.assertIn("the data file train has changed", self.call("evaluate", os.path.relpath(run, elsewhere), cwd=elsewhere).stderr)
        again = self.make_run(file="text.yaml")
        self.assertTrue(again.name.startswith(run.name + "-"), again)
        self.assertIn("already finished", self.call("run", "text.yaml").stdout)
        said = self.call("compare", self.work / "runs").stderr
        self.assertIn("warning: runs in one row were made with different contents of train\n", said)
        self.assertIn("is the run itself", self.call("repeat", again, "--output", "runs", "--check", code=2).stderr)
        stopped = self.make_run("seed=2", "--until", 20, file="text.yaml", code=75)
        (self.work / "text.txt").write_text(lines, encoding="utf-8")
        accept = ("--quiet", "--allow-change", "data:train,record.gradient_norms")
        said = self.call("resume", stopped, *accept[:2], "data:train", code=2).stderr
        self.assertIn("/gradient/t has 20 entries, and this change would make it 22; start another run", said)
        self.call("resume", stopped, "record.gradient_norms=0", *accept)
        self.call("evaluate", stopped)
        os.truncate(stopped / "results.h5", 5000)
        self.assertIn("cannot be read, so the data files may have changed since", self.call("evaluate", stopped).stderr)
        stopped = self.make_run("seed=3", "--until", 20, file="text.yaml", code=75)
        (self.work / "text.txt").rename(self.work / "renamed.txt")
        self.call("resume", stopped, "--quiet", "task.train=renamed.txt")
        self.call("evaluate", stopped)

    def test_the_constant_predictor_of_reports(self):
        """Its loss is known for the test set; the other sets are like that only where a task draws all three alike."""
        for file, drawn_alike in (("tiny.yaml", True), ("text.yaml", False)):
            self.call("report", self.make_run(file=file), "--output", "report.html")
            page = (self.work / "report.html").read_text(encoding="utf-8")
            figure, = re.findall('<figure id="loss".*?</figure>', page, re.DOTALL)
            self.assertEqual("constant predictor" in figure, drawn_alike, file)

    def test_bench_counts_the_steps_of_its_batch(self):
        """Not those of the longest sequence of another split."""
        for name, sequences, length in (("short", 30, 5), ("long", 3, 400)):
            rows = (f"{s},{t},{s % 3}\n" for s in range(sequences) for t in range(length))
            (self.work / f"{name}.csv").write_text("s,x,y\n" + "".join(rows), encoding="utf-8")
        task = "task: {plugin: sequence_csv, train: short.csv, validation: short.csv, test: short.csv, sequence: s, targets: [y]}"
        (self.work / "rows.yaml").write_text(re.sub("task: .*", task, EXPERIMENT), encoding="utf-8")
        counted = [json.loads(self.call("bench", "step", "rows.yaml", "--seconds", "0.01", "--json", *more).stdout)["rows"][0]["gflop"]
                   for more in ((), ("task.test=long.csv",))]
        self.assertEqual(counted[0], counted[1])

    def test_a_run_that_was_repeated_before(self):
        run = self.make_run()
        self.assertIn("identical to the bit", self.call("repeat", run, "--check").stdout)
        again = self.call("repeat", run, "--check")
        self.assertIn("was repeated before and is not trained again", again.stdout + again.stderr)
        other = self.make_run("optimizer.rate=1.0000001e-3")
        outcome = json.loads(self.call("diff", run, other, "--json").stdout)["outcome"]["valid_loss"]
        compared = json.loads(self.call("compare", run, other, "--json").stdout)["groups"]
        self.assertEqual(sorted(map(float, outcome)), sorted(run["value"] for group in compared for run in group["runs"]))


if __name__ == "__main__":
    unittest.main()
