#!/usr/bin/python3
"""Runs that are interrupted, killed, stopped by a limit, or diverge, and what a resumed run shows.

usage: interrupted_test.py PROGRAM
"""
import json
import math
import os
import pty
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

import h5py

from command_line import PROGRAM, CommandLine

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from support import simd_targets  # pylint: disable=wrong-import-position


class Interrupted(CommandLine):
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
                message = next((line for line in said.split("\n") if "stopped by signal " in line), said)
                self.assertTrue(message.split("\r\x1b[K")[-1].startswith("stopped by signal 2 after step "), repr(message))

    def test_echo_of_a_signal(self):
        """`timeout` signals a process and its group: the second signal does not end a run before it is saved."""
        process = self.start("run", "tiny.yaml", "task.length=2000", "train.batch=100", "model.cell.hidden=64", "train.steps=1000")
        self.wait_for(lambda: list(self.work.glob("runs/*/*/results.h5")))
        for _ in range(3):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.02)
        self.assertEqual(process.wait(), 143)
        self.assertIn("stopped by signal 15 after step ", process.stdout.read())
        self.assertTrue(list(self.work.glob("runs/*/*/checkpoints/step_*.h5")))

    def test_signals_that_save(self):
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            place = self.work / str(number)
            process = self.start("run", "tiny.yaml", "train.steps=100000000", "checkpoint={every: 0, minutes: 0}", "--output", str(place))
            self.wait_for(lambda place=place: list(place.glob("*/*/results.h5")))
            process.send_signal(number)
            self.wait_for(lambda place=place: list(place.glob("*/*/checkpoints/step_*.h5")))
            self.assertIsNone(process.poll())
            process.kill()
            process.communicate()

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

    def test_a_run_resumes_only_with_its_own_instruction_set(self):
        """As docs/RUNNING.md says of STIEFEL_SIMD: each may round differently, and no more than that."""
        targets = simd_targets(PROGRAM)
        if len(targets) == 1:
            self.skipTest("this type of CPU has one instruction set")
        with_set = {target: {**os.environ, "STIEFEL_SIMD": target} for target in targets}
        losses = []
        for target in targets:
            place = self.work / target
            self.call("run", "tiny.yaml", "model.recurrent=kronecker", "--until", 20, "--output", place, code=75, env=with_set[target])
            run = next(place.glob("*/*"))
            for other in set(targets) - {target}:
                said = self.call("resume", run, code=7, env=with_set[other]).stderr
                self.assertIn(f"simd_target was {target} and is now {other}\n", said)
            losses.append(float(re.search("^finished: test loss (\\S+)", self.call("resume", run, env=with_set[target]).stdout, re.MULTILINE)[1]))
        self.assertLess(max(losses) / min(losses), 1.001)

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

    def test_a_run_that_ended_before_it_saved_anything_starts_again(self):
        words = ("train.evaluate_every=10000000", "checkpoint.every=0", "checkpoint.minutes=0")
        run = self.kill_after(lambda run: (run / "results.h5").exists(), *words)
        words = ("run", "tiny.yaml", "train.steps=10000000", *words, "--until", 5)
        self.assertIn("holds a run that ended before it saved anything; it starts again\n", self.call(*words, code=75).stderr)
        with h5py.File(run / "results.h5") as file:
            self.assertEqual(len(file["provenance/segments"]["started"]), 1)
        self.assertIn("holds an unfinished run: continue with", self.call(*words, code=7).stderr)

    def test_a_sweep_starts_such_a_run_again(self):
        (self.work / "rates.yaml").write_text("extends: [tiny.yaml]\nsweep: {optimizer.rate: [1e-4]}\n", encoding="utf-8")
        self.call("sweep", "run", "rates.yaml", "--output", "rates", "--plan")
        config, = (self.work / "rates/configs").iterdir()
        run = self.make_run("--output", "rates/runs", "--until", 20, file=config, code=75)
        for network in (run / "checkpoints").glob("*.h5"):
            network.unlink()
        with h5py.File(run / "results.h5", "a") as file:
            file.attrs["committed_step"] = 0
        self.call("sweep", "run", "rates.yaml", "--output", "rates")
        with h5py.File(run / "results.h5") as file:
            self.assertEqual((file.attrs["state"], len(file["provenance/segments/started"])), ("finished", 1))

    def test_a_failure_keeps_the_best(self):
        said = self.call("run", "tiny.yaml", "train.steps=1000000", "train.evaluate_every=400", "checkpoint.every=0", "--quiet", code=8,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (600000, 600000))).stderr
        self.assertIn("progress.jsonl", said)
        results = next(self.work.glob("runs/*/*/results.h5"))
        status = self.attributes(results, "/status")
        with h5py.File(results) as file:
            self.assertEqual(status["best_step"], file["epochs/step"][:][file["epochs/is_best"][:] == 1][-1])

    def test_limit_on_the_size_of_files(self):
        for limit in (6000, 30000, 60000):
            said = self.call("run", "tiny.yaml", "--quiet", "--output", f"limit{limit}", "train.steps=400", code=8,
                             preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))).stderr
            self.assertRegex(said, r"\Astiefel: [^\n]{1,300}\n\Z")
            self.assertRegex(said, "File too large|disk full or limit reached")

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

    def test_systems_without_hard_links_and_without_threads(self):
        """What exFAT answers to link(2), and what pthread_create(3) does at the limit of processes."""
        if "libasan" in subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout:
            self.skipTest("a sanitizer has its own pthread_create")
        for function, code, said in (("link(const char*, const char*) { errno = EPERM; return -1; }", 2, "its file system has no hard links; store runs on one"),
                                     ("pthread_create(void*, void*, void*, void*) { return EAGAIN; }", 8, "the limit of processes (ulimit -u); use fewer")):
            library = self.root / "failing.so"
            subprocess.run(["g++", "-x", "c++", "-shared", "-fPIC", "-", "-o", library], check=True, text=True,
                           input=f'#include <errno.h>\nextern "C" int {function}\n')
            alone = {"LD_PRELOAD": str(library), "OPENBLAS_NUM_THREADS": "1"}
            self.assertIn(said, self.call("run", "tiny.yaml", "threads=2", code=code, env={**os.environ, **alone}).stderr)
            self.assertFalse(list(self.work.rglob("results.h5")))

    def test_divergence_is_printed_once(self):
        done = self.call("run", "tiny.yaml", "optimizer.rate=1e30", code=5)
        self.assertEqual((done.stdout + done.stderr).count("diverged at step"), 1, done)
        self.assertRegex(done.stderr.splitlines()[-1], "^stiefel: diverged at step ")
        self.assertRegex(done.stdout, r"\Aresults: \S+/results.h5\n\Z")

    def test_a_diverged_run_is_not_to_be_resumed(self):
        for name in ("results", "tiny"):
            self.call("run", "tiny.yaml", "optimizer.rate=1e30", f"name={name}", code=5)
            said = self.call("run", "tiny.yaml", "optimizer.rate=1e30", f"name={name}", code=7).stderr
            self.assertRegex(said, rf"\Astiefel: runs/{name}/\w+ holds a diverged run; move or delete the folder to run it again. Its message: diverged at step \d+: .*\n\Z")

    def test_a_run_that_diverges_before_its_first_evaluation(self):
        self.make_run("optimizer.rate=1e25", "train.evaluate_every=1", "model.cell.activation=identity", code=5)
        self.make_run()
        self.assertIn("  valid_loss mean ± std  ", self.call("compare", "runs").stdout)
        self.call("report", "runs")

    def test_many_evaluations_are_in_the_log_only(self):
        done = self.call("run", "tiny.yaml", "train.steps=200", "train.evaluate_every=1")
        shown = [line for line in done.stderr.splitlines() if "valid" in line]
        self.assertEqual(len(shown), 50, done.stderr)
        self.assertEqual(done.stderr.count("from here on one evaluation every 30 s; log.txt in the run's folder has all\n"), 1)
        log = next((self.work / "runs/tiny").glob("*/log.txt")).read_text(encoding="utf-8")
        self.assertEqual(sum("valid" in line for line in log.splitlines()), 200)
        self.assertEqual(self.call("run", "tiny.yaml", "seed=2", "-q").stderr.count("valid"), 0)


if __name__ == "__main__":
    unittest.main()
