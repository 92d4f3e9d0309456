#!/usr/bin/python3
"""What a user meets at the command line: help, completion, interrupts, runs that are looked at from elsewhere, messages.

usage: command_line_test.py PROGRAM
"""
import json
import math
import os
import pathlib
import pty
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import h5py

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
os.environ.pop("OPENBLAS_CORETYPE", None)  # of which runs warn
EXPERIMENT = """name: tiny
task: {plugin: adding, length: 5, validation_sequences: 20, test_sequences: 20}
model: {cell: {plugin: elman, hidden: 4}, recurrent: dense}
optimizer: {plugin: sgd, rate: 1e-3}
train: {batch: 5, steps: 40, evaluate_every: 20}
record: {loss: 1}
checkpoint: {every: 20, keep: 2}
threads: 1
"""
TEXT = "task: {plugin: characters, file: text.txt, mode: stream, bptt: 5}"


class CommandLine(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="stiefel-command-line-")
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name).resolve()
        self.work = self.root / "work"
        self.work.mkdir()
        (self.work / "tiny.yaml").write_text(EXPERIMENT, encoding="utf-8")
        (self.work / "text.yaml").write_text(re.sub("task: .*", TEXT, EXPERIMENT), encoding="utf-8")
        (self.work / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 20, encoding="utf-8")

    def call(self, *words, code=0, cwd=None, **more):
        done = subprocess.run([PROGRAM, *map(str, words)], cwd=cwd or self.work, capture_output=True, text=True, check=False, timeout=300, **more)
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        return done

    def make_run(self, *words, file="tiny.yaml", code=0, cwd=None):
        said = self.call("run", file, "--quiet", *words, code=code, cwd=cwd).stdout
        return (cwd or self.work) / re.search("^results: (.*)/results.h5$", said, re.MULTILINE)[1]

    def start(self, *words):
        process = subprocess.Popen([PROGRAM, *map(str, words), "--quiet"], cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def wait_for(self, what):
        deadline = time.monotonic() + 60
        while not what():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_help_and_version(self):
        for command in ("run", "sweep"):
            self.assertEqual(self.call("help", command).stdout, self.call(command, "--help").stdout)
        self.assertEqual(self.call("help").stdout, self.call("--help").stdout)
        self.assertIn("did you mean 'run'", self.call("help", "rnu", code=2).stderr)
        for key, document in (("extends", "RUNNING"), ("seeds", "SWEEPS"), ("sweep", "SWEEPS")):
            self.assertIn(f"`{key}` is a key of a file, not a setting of an experiment; docs/{document}.md describes it",
                          self.call("describe", key, code=3).stderr)
        self.assertIn("COLUMNS of --shape must be a whole number", self.call("check", "x.so", "--shape", "8x3x2", code=2).stderr)
        self.assertEqual(self.call("-v").stdout, self.call("--version").stdout)
        self.assertNotIn("usage", self.call("slurm", "none", "--", "-h", code=2).stdout)

    def completed(self, words):
        """What is offered for the last word; bash takes KEY=VALUE for three."""
        script = f"source <(stiefel completion bash); COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _stiefel; echo \"${{COMPREPLY[*]}}\""
        environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-c", script], cwd=self.work, env=environment, capture_output=True, text=True, check=True, timeout=60)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_completion(self):
        (self.work / "other.txt").write_text("", encoding="utf-8")
        (self.work / "folder").mkdir()
        for words, offered in {"stiefel va": ["validate"], "stiefel run --dr": ["--dry-run"], "stiefel run ti": ["tiny.yaml"], "stiefel run o": [],
                               "stiefel run --data fo": ["folder"], "stiefel predict --input o": ["other.txt"], "stiefel run --data = fo": ["folder"], "stiefel help va": ["validate"],
                               "stiefel new c": ["cell"], "stiefel completion b": ["bash"],
                               "stiefel sweep re": ["resume", "retry"], "stiefel sweep run ti": ["tiny.yaml"], "stiefel sweep status fo": ["folder"],
                               "stiefel sweep --jobs 4 run ti": ["tiny.yaml"], "stiefel sweep -j 4 c": ["cancel"],
                               "stiefel sweep run tiny.yaml checkpoint.m": ["checkpoint.minutes="], "stiefel bench co": ["complexity"],
                               "stiefel compare runs --by optimizer.ra": ["optimizer.rate"], "stiefel describe train.cl": ["train.clip", "train.clip.bound", "train.clip.kind"],
                               "stiefel describe exp": ["experiment"], "stiefel check --method exp": [],
                               "stiefel bench step ti": ["tiny.yaml"], "stiefel data fe": ["fetch"], "stiefel data fetch mn": ["mnist"],
                               "stiefel data verify mnist pt": ["ptb"], "stiefel reproduce re": ["report"],
                               "stiefel run tiny.yaml task.plugin = ad": ["adding"], "stiefel run tiny.yaml model.cell = ls": ["lstm"],
                               "stiefel run tiny.yaml model.recurrent.plugin = spectral": ["spectral_householder"],
                               "stiefel run tiny.yaml model.maps.forget.plugin = antis": ["antisymmetric"],
                               "stiefel run tiny.yaml optimizer.plugin = ri": ["riemannian_adam"], "stiefel run tiny.yaml task.plugin = lstm": [],
                               "stiefel run tiny.yaml scalar =": ["float32", "float64"], "stiefel run tiny.yaml model.cell.activation = modr": ["modrelu"],
                               "stiefel run tiny.yaml model.input.bias = f": ["false"], "stiefel run tiny.yaml train.steps =": []}.items():
            with self.subTest(words):
                self.assertEqual(self.completed(words), offered)
        self.assertEqual(set(self.completed("stiefel data ''")), {"list", "fetch", "verify"})

    def on_terminal(self, *words, when):
        """All that the program prints on a terminal on which Ctrl-C is pressed once when() holds."""
        try:
            process, terminal = pty.fork()
        except OSError as error:
            self.skipTest(f"without a terminal: {error}")
        if process == 0:
            os.chdir(self.work)
            os.execve(PROGRAM, [str(PROGRAM), *words], {**os.environ, "TERM": "xterm"})
        printed, deadline = b"", time.monotonic() + 60
        while time.monotonic() < deadline:
            if deadline < math.inf and when():
                os.write(terminal, b"\x03")
                deadline = math.inf
            if not select.select([terminal], [], [], 0.02)[0]:
                continue
            try:
                printed += os.read(terminal, 65536)
            except OSError:  # the program has closed it
                break
        os.close(terminal)
        self.assertEqual(deadline, math.inf)
        return printed.decode().replace("\r\n", "\n"), os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

    def test_interrupt(self):
        """The message after ^C starts in the first column: at the beginning of a line, or where the line was cleared."""
        for options in ([], ["--no-progress"], ["--quiet"]):
            with self.subTest(options):
                place = self.work / f"runs{len(options)}{''.join(options)}"
                said, code = self.on_terminal("run", "tiny.yaml", "train.steps=100000000", "train.evaluate_every=1000", "--output", str(place), *options,
                                              when=lambda place=place: list(place.glob("*/*/results.h5")))
                self.assertEqual(code, 130, said)
                message = next((line for line in said.split("\n") if "preempted: " in line), said)
                self.assertTrue(message.split("\r\x1b[K")[-1].startswith("preempted: "), repr(message))

    def test_a_diverged_run_is_not_to_be_resumed(self):
        for name in ("results", "tiny"):
            self.call("run", "tiny.yaml", "optimizer.rate=1e30", f"name={name}", code=5)
            said = self.call("run", "tiny.yaml", "optimizer.rate=1e30", f"name={name}", code=7).stderr
            self.assertRegex(said, rf"\Astiefel: runs/{name}/\w+ holds a diverged run; move or delete the folder to run it again. Its message: diverged at step \d+: .*\n\Z")

    def test_commands_to_paste(self):
        """What messages advise is quoted where a shell would take it apart."""
        run = self.make_run("name=my run", "--until", 20, code=75).relative_to(self.work)
        self.assertIn(f"continue with `stiefel resume '{run}'`", self.call("run", "tiny.yaml", "name=my run", code=7).stderr)
        self.assertIn(f"finish it with `stiefel resume '{run}'`", self.call("repeat", run, "--check", code=7).stderr)
        self.assertIn("stiefel data fetch mnist --data 'o'\\''x'", self.call("run", "tiny.yaml", "task={plugin: pixel_mnist}", "--data", "o'x", code=4).stderr)

    def test_values_that_are_missing(self):
        run = self.make_run()
        for words in (("run", "tiny.yaml", "-o"), ("report", run, "--output"), ("report", run, "--figures"), ("predict", run, "-i"), ("export", run, "--weights"),
                      ("run", "tiny.yaml", "--data")):
            self.assertRegex(self.call(*words, "", code=2).stderr, r"\Astiefel: --\w+ needs a value: .*\n\Z")
        for words in (("report", run, "-o"), ("inspect", run, "-o"), ("export", run, "--weights")):
            self.assertIn("needs the name of a file; it cannot be standard output", self.call(*words, "-", code=2).stderr)
        self.assertIn("results.h5 is not a run folder", self.call("export", run / "results.h5", "--weights", "w.safetensors", code=2).stderr)
        self.assertIn("finished", self.call("top", run / "results.h5", "--once").stdout)
        (self.work / "taken").write_text("", encoding="utf-8")
        self.assertIn("cannot create the folder taken: Not a directory; choose another with --figures", self.call("report", run, "--figures", "taken", code=2).stderr)

    def test_a_run_that_was_repeated_before(self):
        run = self.make_run()
        self.assertIn("identical to the bit", self.call("repeat", run, "--check").stdout)
        again = self.call("repeat", run, "--check")
        self.assertIn("was repeated before and is not trained again", again.stdout + again.stderr)
        other = self.make_run("optimizer.rate=1.0000001e-3")
        outcome = json.loads(self.call("diff", run, other, "--json").stdout)["outcome"]["valid_loss"]
        compared = json.loads(self.call("compare", run, other, "--json").stdout)["groups"]
        self.assertEqual(sorted(map(float, outcome)), sorted(run["value"] for group in compared for run in group["runs"]))

    def test_job_scripts(self):
        (self.work / "rates.yaml").write_text("extends: [tiny.yaml]\nsweep: {optimizer.rate: [1e-3, 1e-4]}\n", encoding="utf-8")
        self.call("sweep", "run", "rates.yaml", "--output", "rates", "--plan")
        self.call("sweep", "cancel", "rates")
        for limit in ("2", "3:59", "0:30", "0:02:00"):
            self.assertIn(f"--time {limit}: Slurm signals a run two minutes before its limit", self.call("slurm", "rates", "--time", limit, code=2).stderr)
        self.assertTrue((self.work / "rates/cancelled").exists())
        for limit in ("0", "4", "1:00:00", "0-1", "1-00:00:00"):
            self.call("slurm", "rates", "--time", limit)
        self.assertFalse((self.work / "rates/cancelled").exists())
        self.assertIn("2 waiting", self.call("sweep", "status", "rates").stdout)
        (self.work / "rates").rename(self.work / "b\\s")
        self.assertIn("because it contains a backslash; rename the folder", self.call("slurm", "b\\s", code=2).stderr)

    def test_lists_in_options_that_are_repeated(self):
        run = self.make_run("--until", 20, code=75)
        accept = ("--allow-change", "optimizer.rate, train.btach", "--allow-change", "train.batch")
        self.assertIn("'train.btach' is not a key, plugin or data file of this run; did you mean 'train.batch'?", self.call("resume", run, *accept, code=2).stderr)
        self.call("resume", run, "optimizer.rate=1e-4", "train.batch=6", "--allow-change", "optimizer.rate , train.steps", "--allow-change", "train.batch", "--quiet")
        header = self.call("compare", run, "--by", "seed", "--by", "optimizer.rate", "--csv").stdout.partition("\n")[0]
        self.assertTrue(header.startswith("seed,optimizer.rate,metric"), header)

    def test_divergence_is_printed_once(self):
        done = self.call("run", "tiny.yaml", "optimizer.rate=1e30", code=5)
        self.assertEqual((done.stdout + done.stderr).count("diverged at step"), 1, done)
        self.assertRegex(done.stderr.splitlines()[-1], "^stiefel: diverged at step ")
        self.assertRegex(done.stdout, r"\Aresults: \S+/results.h5\n\Z")

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
        run = next((self.work / "runs/tiny").iterdir())
        self.assertNotIn("no effect", self.call(
            "validate", run / "config.yaml", "train.clip.kind=norm", "optimizer.schedule.kind=plateau", "train.evaluate_every=1",
            "model.initial_state.kind=learned", "model.readout.bias=true", "model.input.embedding=null").stderr)
        self.assertNotIn("no effect", self.call("validate", "tiny.yaml", "train.clip.bound=1").stderr)

    def test_many_evaluations_are_in_the_log_only(self):
        done = self.call("run", "tiny.yaml", "train.steps=200", "train.evaluate_every=1")
        shown = [line for line in done.stderr.splitlines() if "valid" in line]
        self.assertEqual(len(shown), 50, done.stderr)
        self.assertEqual(done.stderr.count("from here on one evaluation every 30 s; log.txt in the run's folder has all\n"), 1)
        log = next((self.work / "runs/tiny").glob("*/log.txt")).read_text(encoding="utf-8")
        self.assertEqual(sum("valid" in line for line in log.splitlines()), 200)
        self.assertEqual(self.call("run", "tiny.yaml", "seed=2", "-q").stderr.count("valid"), 0)

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
        self.assertIn("warning: with another model.cell.transition, networks saved so far may compute something else", said.stdout + said.stderr)
        self.assertIn("--port must be a whole number from 0 to 65535, got '65536'", self.call("report", run, "--serve", "--port", 65536, code=2).stderr)

    def test_words(self):
        (self.work / "lines.txt").write_text("the quick brown fox\njumps over the lazy dog\n" * 40, encoding="utf-8")
        run = self.make_run("task.file=lines.txt", "task.units=words", file="text.yaml")
        values = json.loads(self.call("evaluate", run, "--json").stdout)["values"]
        self.assertAlmostEqual(values["perplexity"] / math.exp(values["loss"]), 1, places=9)
        self.assertRegex(self.call("sample", run, "--prime", "the fox", "--length", 3).stdout, "^the fox [a-z \n]+$")
        self.assertRegex(self.call("sample", run, "--prime", " the\tfox\nthe", "--length", 1).stdout, "^the fox \nthe [a-z \n]+$")
        self.assertRegex(self.call("sample", run, "--length", 1).stdout, "^\n[a-z \n]+$")
        for value in ("-1", "x", "nan"):
            self.assertIn("--temperature must be a number of at least 0", self.call("sample", run, f"--temperature={value}", code=2).stderr)
        self.assertIn('does not know the word "cat" at byte 5 of the prime', self.call("sample", run, "--prime", "the cat fox", code=2).stderr)

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

    def test_rebuilt_plugin(self):
        own = self.work / "own"
        own.mkdir()
        plugin = pathlib.Path(shutil.copy(PROGRAM.parent.parent / "lib/stiefel/plugins/dense.so", own))
        words = ("plugins=[own]", "task.validation_sequences=20")
        run = self.make_run(*words)
        for command in (("evaluate", run), ("repeat", run, "--check", "--output", "same", "--quiet"), ("compare", run)):
            self.assertNotRegex(self.call(*command).stderr, "rebuilt|builds")
        with plugin.open("ab") as file:
            file.write(b"another build")
        warning = f"warning: the plugin dense, {plugin}, has been rebuilt since {run} was made; results may differ"
        for command in (("evaluate", run), ("repeat", run, "--check", "--output", "other", "--quiet")):
            said = self.call(*command).stderr
            self.assertEqual([line for line in said.splitlines() if "rebuilt" in line], [warning])
        for changed in ("seed=2", "optimizer.rate=0.5"):  # in the same row of the comparison, and in another one
            other = self.make_run(*words, changed)
            said = self.call("compare", run, other).stderr
            self.assertEqual([line for line in said.splitlines() if "builds" in line], ["warning: the runs were made with different builds of a plugin: dense"])
        self.assertIn("warning: the runs were made with different builds", self.call("report", run, other, "--output", "builds.html").stderr)
        self.assertIn("The runs were made with different builds of a plugin: dense.", (self.work / "builds.html").read_text(encoding="utf-8"))

    def test_changed_data(self):
        """A network reads its inputs as its training data say: with others it is refused, and a new run is another one."""
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
        for command in (*commands, ("evaluate", run, "task.test=other.txt", "task.evaluation_batch=1")):
            self.assertRegex(self.call(*command, code=4).stderr, f"^stiefel: the data file train has changed since {run} was made")
        self.assertIn("the data file train has changed", self.call("evaluate", os.path.relpath(run, elsewhere), code=4, cwd=elsewhere).stderr)
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
        (self.work / "base.yaml").write_text("extends: [tiny.yaml]\nmodel: {recurrent: {plugin: householder}}\n", encoding="utf-8")
        (self.work / "over.yaml").write_text("extends: [base.yaml]\nname: sw\nsweep: {model.recurrent.reflections: [2, 500]}\n", encoding="utf-8")
        self.assertRegex(self.call("validate", "over.yaml", code=2).stderr, r"^base.yaml:2:\d+, over.yaml:3:\d+: model.recurrent: householder: ")
        (self.work / "sweep.yaml").write_text(sweep.replace("500", "4"), encoding="utf-8")
        self.assertEqual(self.call("validate", "sweep.yaml").stdout, "sweep.yaml: valid, 4 runs that differ in model.recurrent.reflections, seed\n")

    def test_wrong_data_are_an_error_and_missing_data_are_not(self):
        words = "validate", "tiny.yaml", "task={plugin: sequence_csv, train: own.csv, targets: [y]}"
        self.assertIn("tiny.yaml: valid as far as can be checked without its data\n", self.call(*words, code=4).stdout)
        (self.work / "own.csv").write_text("x,y\n1,2\nnan,3\n", encoding="utf-8")
        done = self.call(*words, code=4)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, 'own.csv:3:1: column "x" holds "nan", expected a finite number\ntiny.yaml: 1 error\n$')

    def test_nothing_to_train(self):
        said = self.call("validate", "tiny.yaml", "optimizer={plugin: frozen}", code=2).stderr
        self.assertIn("optimizer: every block is frozen, so nothing would be trained", said)

    def test_a_network_that_would_read_its_targets(self):
        (self.work / "text.txt").write_text("the quick brown fox\n" * 50, encoding="utf-8")
        said = self.call("validate", "text.yaml", "task.mode=sentences", "task.bptt=30", "model.bidirectional=true", code=2).stderr
        self.assertIn("model.bidirectional: the targets of characters are later inputs", said)

    def test_a_folder_that_is_not_there(self):
        run = self.make_run()
        self.assertIn("cannot write none/x.html: there is no folder none; create it", self.call("report", run, "-o", "none/x.html", code=2).stderr)
        self.assertIn("cannot write runs: it is a folder; name a file", self.call("report", run, "-o", "runs", code=2).stderr)
        for words in (("report", "tiny.yaml"), ("compare", "tiny.yaml"), ("export", "tiny.yaml", "--csv"), ("top", "tiny.yaml", "--once")):
            self.assertIn("tiny.yaml is not a result file; name folders of runs", self.call(*words, code=2).stderr)

    def lines_of_progress(self, run):
        text = (run / "progress.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]  # a line may be half written

    def test_after_a_resume(self):
        """The time is that of all processes, and progress.jsonl has each step once."""
        words = ["tiny.yaml", "train.steps=30000", "train.evaluate_every=1000", "checkpoint.every=1000"]
        process = self.start("run", *words)
        self.wait_for(lambda: list(self.work.glob("runs/*/*/checkpoints/step_*.h5")))
        run = next(self.work.glob("runs/*/*/config.yaml")).parent
        process.send_signal(signal.SIGSTOP)
        time.sleep(2)
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
        self.assertEqual((process.wait(), process.stderr.read()), (143, ""))
        stopped = self.lines_of_progress(run)[-1]["step"]
        process = self.start("resume", run)
        self.wait_for(lambda: any(line.get("step", 0) > stopped + 100 for line in self.lines_of_progress(run)))
        process.kill()
        process.wait()
        said = self.call("resume", run, "--quiet").stdout
        self.assertGreaterEqual(float(re.search(r"after 30000 steps in (\S+) s", said)[1]), 2)
        lines = self.lines_of_progress(run)
        marks = [line["resumed_after"] for line in lines if "resumed_after" in line]
        self.assertEqual((len(marks), marks[0]), (2, stopped))
        self.assertEqual([line["step"] for line in lines if "loss" in line], list(range(1, 30001)))
        last = 0
        for line in lines:
            self.assertEqual(line.get("resumed_after", last), last)
            last = line.get("step", last)
        self.assertGreaterEqual([line["seconds"] for line in lines if "loss" in line][-1], 2)

    def kill_after(self, enough, *words):
        """The folder of an endless run that is killed as soon as enough(folder)."""
        process = self.start("run", "tiny.yaml", "train.steps=10000000", *words)
        self.wait_for(lambda: any(enough(path.parent) for path in self.work.glob("runs/*/*/config.yaml")))
        process.kill()
        process.wait()
        return next(self.work.glob("runs/*/*/config.yaml")).parent

    def attributes(self, file, group="/"):
        with h5py.File(file) as content:
            return dict(content[group].attrs)

    def test_a_run_that_is_changed_when_it_is_resumed(self):
        """Networks of the steps that are given up do not stay, and the new value is seen everywhere."""
        checkpoints = lambda run: sorted((run / "checkpoints").glob("step_*.h5"))
        given_up = lambda run: checkpoints(run) and (run / "checkpoints/best.h5").exists() and self.attributes(
            run / "checkpoints/best.h5")["step"] > int(checkpoints(run)[-1].stem[5:])
        run = self.kill_after(given_up, "train.evaluate_every=50", "checkpoint.every=1000")
        step = int(checkpoints(run)[-1].stem[5:])
        self.call("resume", run, "optimizer.rate=1e-30", "--allow-change", "optimizer.rate", "--until", step + 100, code=75)
        best = self.attributes(run / "results.h5", "/status")["best_step"]
        self.assertLessEqual(best, step)
        self.assertEqual(self.attributes(run / "checkpoints/best.h5")["step"], best)
        other = self.make_run("seed=2")
        said = self.call("compare", run, other).stdout
        self.assertRegex(said, "(?m)^0.001 → 1.0e-30 ")
        self.assertRegex(said, "(?m)^0.001  ")
        self.assertIn("→", self.call("diff", run, other).stdout)
        with h5py.File(run / "results.h5") as file:
            seconds, segments = file["epochs/seconds"][:].sum(), file["provenance/segments"]
            each = segments["ended"][:] - segments["started"][:]
            self.assertGreaterEqual(seconds + 1e-3, each[0])  # with the time of the steps that were given up
            self.assertLessEqual(seconds, each.sum() + 1e-3)

    def test_a_run_that_is_killed_before_it_has_evaluated(self):
        """results.h5 is there from the start, so what began is known."""
        run = self.kill_after(lambda run: (run / "results.h5").exists(), "train.evaluate_every=10000000", "checkpoint.every=0", "checkpoint.minutes=0")
        self.assertIn("--allow-change optimizer.rate", self.call("resume", run, "optimizer.rate=0.1", code=2).stderr)
        self.call("resume", run, "--until", 5, cwd=self.root, code=75)
        line = self.attributes(run / "results.h5", "/provenance")["command_line"]
        self.assertIn("stiefel run tiny.yaml train.steps=10000000 ", line if isinstance(line, str) else line.decode())
        (run / "results.h5").unlink()
        shutil.rmtree(run / "checkpoints")
        self.assertIn("has no results yet, so it cannot be changed", self.call("resume", run, "optimizer.rate=0.1", code=2).stderr)

    def test_a_failure_keeps_the_best(self):
        said = self.call("run", "tiny.yaml", "train.steps=1000000", "train.evaluate_every=400", "checkpoint.every=0", "--quiet", code=8,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (600000, 600000))).stderr
        self.assertIn("progress.jsonl", said)
        results = next(self.work.glob("runs/*/*/results.h5"))
        status = self.attributes(results, "/status")
        with h5py.File(results) as file:
            self.assertEqual(status["best_step"], file["epochs/step"][:][file["epochs/is_best"][:] == 1][-1])

    def test_a_run_that_diverges_before_its_first_evaluation(self):
        self.make_run("optimizer.rate=1e25", "train.evaluate_every=1", "model.cell.activation=identity", code=5)
        self.make_run()
        self.assertIn("  valid_loss mean ± std  ", self.call("compare", "runs").stdout)
        self.call("report", "runs")

    def test_where_output_goes(self):
        """A link keeps its name, a pipe is written to, and figures in another format leave those that are there."""
        run = self.make_run()
        (self.work / "page.html").write_text("", encoding="utf-8")
        (self.work / "link.html").symlink_to("page.html")
        self.call("report", run, "-o", "link.html")
        self.assertTrue((self.work / "link.html").is_symlink() and (self.work / "page.html").stat().st_size > 10000)
        array = subprocess.run([PROGRAM, "inspect", run, "--json", "--output", "/dev/stderr"], cwd=self.work, capture_output=True, check=True).stderr
        self.assertTrue(array.startswith(b"\x93NUMPY"), array[:40])
        tools = self.work / "tools"
        tools.mkdir()
        (tools / "rsvg-convert").write_text("#!/bin/sh\nwhile [ $# -gt 2 ]; do [ \"$1\" = --output ] && out=$2; shift; done\ncp \"$2\" \"$out\"\n", encoding="utf-8")
        (tools / "rsvg-convert").chmod(0o755)
        self.call("report", run, "--figures", "figures")
        before = {path.name for path in (self.work / "figures").glob("*.svg")}
        self.call("report", run, "--figures", "figures", "--format", "pdf", env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
        self.assertTrue(before and before == {path.name for path in (self.work / "figures").glob("*.svg")})
        self.assertEqual({path.stem for path in (self.work / "figures").glob("*.pdf")}, {name[:-4] for name in before})
        lru = self.make_run("model.cell=lru", "model.cell.hidden=4", "model.recurrent=null")
        self.assertIn("has no recurrent map: nothing is written to W.npy", self.call("inspect", lru, "--output", "W.npy", code=2).stderr)

    def test_words_that_do_not_belong_to_a_command(self):
        self.assertIn("`stiefel list` takes no arguments, got 'all'", self.call("list", "all", code=2).stderr)
        self.assertIn("takes nothing else, got 'zsh'", self.call("completion", "bash", "zsh", code=2).stderr)
        self.assertIn("`stiefel sweep resume` has no option --dry-run: it belongs to run", self.call("sweep", "resume", "x", "--dry-run", code=2).stderr)
        self.assertIn("`stiefel sweep status` has no option --quiet: it belongs to run, resume", self.call("sweep", "status", "x", "-q", code=2).stderr)
        self.assertIn("`stiefel sweep status` has no option --data: it belongs to run, resume", self.call("sweep", "status", "x", "--data", "y", code=2).stderr)
        self.assertIn("`stiefel reproduce ornn` has no option --json: it belongs to list", self.call("reproduce", "ornn", "--dry-run", "--json", code=2).stderr)
        self.assertIn("`stiefel reproduce ornn` has no option --to: it belongs to list, report", self.call("reproduce", "ornn", "--to", "x", code=2).stderr)
        self.assertIn("options for sbatch follow `--`, as in `-- --partition=cpu`", self.call("slurm", "x", "--partition", "cpu", code=2).stderr)
        self.assertIn("runs nothing; leave --dry-run out", self.call("reproduce", "report", "--dry-run", code=2).stderr)
        self.assertIn("runs nothing; leave --threads out", self.call("reproduce", "list", "--threads", 2, code=2).stderr)
        (self.work / "wide.yaml").write_text('{name: "äöü", seed: x}\n', encoding="utf-8")
        self.assertIn("wide.yaml:1:21: ", self.call("validate", "wide.yaml", code=2).stderr)

    def test_results_that_are_a_folder(self):
        run = self.make_run("--until", 20, code=75)
        (run / "results.h5").rename(run / "away")
        (run / "results.h5").mkdir()
        for words in (("resume", run), ("repeat", run, "--check"), ("run", "tiny.yaml"), ("export", run, "--csv"), ("compare", run), ("report", run)):
            said = self.call(*words, code=6).stderr
            self.assertRegex(said.splitlines()[-1], r"\Astiefel: .{10,300}\Z")
            self.assertNotIn("errno", said)
        process = self.start("run", "tiny.yaml", "train.steps=100000000", "train.evaluate_every=100", "--output", "endless")
        self.wait_for(lambda: list(self.work.glob("endless/*/*/results.h5")))
        results = next(self.work.glob("endless/*/*/results.h5"))
        shutil.rmtree(self.work / "runs")
        while results.is_file():
            results.rename(self.work / "away")
            try:
                results.mkdir()
            except FileExistsError:  # the run was faster
                pass
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 6, said)
        self.assertIn("results.h5 is not the file that this run wrote", said)

    def test_limit_on_the_size_of_files(self):
        for limit in (6000, 30000, 60000):
            said = self.call("run", "tiny.yaml", "--quiet", "--output", f"limit{limit}", "train.steps=400", code=8,
                             preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))).stderr
            self.assertRegex(said, r"\Astiefel: [^\n]{1,300}\n\Z")
            self.assertRegex(said, "File too large|disk full or limit reached")

    def test_a_data_error_ends_with_what_to_do(self):
        (self.work / "text.txt").write_text("", encoding="utf-8")
        said = self.call("run", "text.yaml", code=4).stderr
        self.assertTrue(said.endswith("text.txt: there is no text to train on. Replace the file.\n"), said)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
