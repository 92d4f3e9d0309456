#!/usr/bin/python3
"""Help, errors, and the commands that messages advise.

usage: messages_test.py PROGRAM
"""
import os
import resource
import subprocess
import unittest

from command_line import PROGRAM, CommandLine


class Messages(CommandLine):
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
        for words in (("report", run, "-o"), ("report", run, "--pdf"), ("inspect", run, "-o"), ("export", run, "--weights")):
            self.assertIn("needs the name of a file; it cannot be standard output", self.call(*words, "-", code=2).stderr)
        self.assertIn("results.h5 is not a run folder", self.call("export", run / "results.h5", "--weights", "w.safetensors", code=2).stderr)
        self.assertIn("finished", self.call("top", run / "results.h5", "--once").stdout)
        (self.work / "taken").write_text("", encoding="utf-8")
        self.assertIn("cannot create the folder taken: Not a directory; choose another with --figures", self.call("report", run, "--figures", "taken", code=2).stderr)

    def test_a_small_stack(self):
        def limit(kilobytes):
            return lambda: resource.setrlimit(resource.RLIMIT_STACK, (kilobytes << 10, resource.RLIM_INFINITY))
        self.assertIn("the stack is limited to 256 KB, but 512 KB are needed", self.call("run", "tiny.yaml", code=8, preexec_fn=limit(256)).stderr)
        self.call("--version", preexec_fn=limit(512))

    def test_a_current_folder_that_was_removed(self):
        (self.work / "gone").mkdir()
        said = self.call("run", self.work / "tiny.yaml", code=2, cwd=self.work / "gone", preexec_fn=lambda: os.rmdir(os.getcwd())).stderr
        self.assertIn("working on the current folder failed: No such file or directory", said)

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

    def test_lists_in_options_that_are_repeated(self):
        run = self.make_run("--until", 20, code=75)
        accept = ("--allow-change", "optimizer.rate, train.btach", "--allow-change", "train.batch")
        self.assertIn("'train.btach' is not a key, plugin or data file of this run; did you mean 'train.batch'?", self.call("resume", run, *accept, code=2).stderr)
        self.call("resume", run, "optimizer.rate=1e-4", "train.batch=6", "--allow-change", "optimizer.rate , train.steps", "--allow-change", "train.batch", "--quiet")
        header = self.call("compare", run, "--by", "seed", "--by", "optimizer.rate", "--csv").stdout.partition("\n")[0]
        self.assertTrue(header.startswith("seed,optimizer.rate,metric"), header)

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

    def test_a_folder_that_is_not_there(self):
        run = self.make_run()
        self.assertIn("cannot write none/x.html: there is no folder none; create it", self.call("report", run, "-o", "none/x.html", code=2).stderr)
        self.assertIn("cannot write runs: it is a folder; name a file", self.call("report", run, "-o", "runs", code=2).stderr)
        for words in (("report", "tiny.yaml"), ("compare", "tiny.yaml"), ("export", "tiny.yaml", "--csv"), ("top", "tiny.yaml", "--once")):
            self.assertIn("tiny.yaml is not a result file; name folders of runs", self.call(*words, code=2).stderr)

    def test_one_of_several_runs(self):
        """A folder above stands for the only run below it; if there are several, they are named."""
        words = (("resume",), ("repeat",), ("evaluate",), ("predict", "--input", "x.csv"), ("sample",), ("inspect",), ("export", "--csv"), ("export", "--weights", "w.safetensors"))
        first = self.make_run().relative_to(self.work)
        for command, *options in words:
            self.assertNotIn("run folder", self.call(command, "runs", *options, code={"predict": 4, "sample": 2}.get(command, 0)).stderr)
        second = self.make_run("seed=2").relative_to(self.work)
        both = ", ".join(sorted(map(str, (first, second))))
        for command, *options in words:
            for named in (["runs"], [first, second], [second, first, "x.y=2"]):
                if command in ("resume", "evaluate", "predict") or len(named) < 3:
                    said = self.call(command, *named, *options, code=2).stderr
                    self.assertRegex(said, f"has 2 runs; name the folder of one: (?:{both}|{second}, {first})\n", command)
        self.assertRegex(self.call("diff", "runs", first, code=2).stderr, f"^stiefel: runs has 2 runs; name the folder of one: {both}\n$")
        (self.work / "empty").mkdir()
        self.assertIn("empty has no run; name the folder of one, such as runs/NAME/ID", self.call("resume", "empty", code=2).stderr)

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
        (self.work / "none").mkdir()
        for words, sentence in ((("--figures", "none/figures", "--format", "pdf"), "rsvg-convert; install it, in Debian with apt install librsvg2-bin"),
                                (("--pdf", "none/report.pdf", "--figures", "none/figures"), "chromium; install it, in Debian with apt install chromium")):
            self.assertIn(f"there is no program {sentence}", self.call("report", run, *words, code=2, env={**os.environ, "PATH": str(tools)}).stderr)
        self.assertEqual(list((self.work / "none").iterdir()), [])
        (tools / "rsvg-convert").write_text("#!/bin/sh\nwhile [ $# -gt 2 ]; do [ \"$1\" = --output ] && out=$2; shift; done\ncp \"$2\" \"$out\"\n", encoding="utf-8")
        (tools / "rsvg-convert").chmod(0o755)
        self.call("report", run, "--figures", "figures")
        before = {path.name for path in (self.work / "figures").glob("*.svg")}
        self.call("report", run, "--figures", "figures", "--format", "pdf", env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
        self.assertTrue(before and before == {path.name for path in (self.work / "figures").glob("*.svg")})
        self.assertEqual({path.stem for path in (self.work / "figures").glob("*.pdf")}, {name[:-4] for name in before})
        lru = self.make_run("model.cell=lru", "model.cell.hidden=4", "model.recurrent=null")
        self.assertIn("has no recurrent map: nothing is written to W.npy", self.call("inspect", lru, "--output", "W.npy", code=2).stderr)

    def test_a_data_error_ends_with_what_to_do(self):
        (self.work / "text.txt").write_text("", encoding="utf-8")
        said = self.call("run", "text.yaml", code=4).stderr
        self.assertTrue(said.endswith("text.txt: there is no text to train on. Replace the file.\n"), said)


if __name__ == "__main__":
    unittest.main()
