#!/usr/bin/python3
"""Runs that are killed at random moments and resumed end with the bits of a run that nobody disturbed.

usage: kill_and_resume.py STIEFEL [--kills 60] [--a-run 1] [--within SECONDS] [--seed 1] [--threads 1 2]

Each experiment runs once to its end. Then it runs again and again: the process is killed (SIGKILL) after a random time, at most --within, `stiefel resume`
goes on, is killed as often as --a-run says, in a run that is as many times as long, and the last one is left to finish. Every number of results.h5 but times and memory, and
every bit of the weights of checkpoints/best.h5 and last.h5, must equal those of the first run; results.h5 must open whenever it exists.
"""
import argparse
import itertools
import math
import pathlib
import random
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from runs import Runner, check_opens, expect_equal, experiment, kinds, outcome  # pylint: disable=wrong-import-position

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--a-run", type=int, default=1, help="kills in each run (1)")
    parser.add_argument("--within", type=float, default=math.inf, help="seconds after the start (those of a run)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    settings = parser.parse_args()
    rng = random.Random(settings.seed)
    cases = kinds()
    rng.shuffle(cases)
    kills = runs = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for case in itertools.cycle(cases):
            if kills >= settings.kills:
                break
            here = folder / "-".join(case)
            here.mkdir(exist_ok=True)
            file = here / "experiment.yaml"
            file.write_text(experiment(*case, settings.steps * settings.a_run, patience=0 if settings.a_run > 1 else 50), encoding="utf-8")
            runner = Runner(settings.program, here)
            whole, seconds = runner.reference(file, settings.threads[0])
            expected = outcome(whole)
            for _ in range(3 if settings.a_run == 1 else 1):
                parts = here / "parts"
                process = runner.start("run", file, "--output", parts, "--threads", rng.choice(settings.threads))
                for _ in range(settings.a_run):
                    alive = runner.killed(process, rng.uniform(0, min(settings.within, seconds if settings.a_run == 1 else 2 * seconds / settings.a_run)))
                    kills += alive
                    made = list(parts.rglob("config.yaml"))
                    if not made:  # killed before there was a run: it begins again
                        process = runner.start("run", file, "--output", parts, "--threads", 1)
                        continue
                    check_opens(made[0].parent)
                    process = runner.start("resume", made[0].parent, "--threads", rng.choice(settings.threads))
                runner.end(process)
                expect_equal(outcome(next(parts.rglob("config.yaml")).parent), expected, case)
                shutil.rmtree(parts)
                runs += 1
            shutil.rmtree(here)
    print(f"{kills} kills in {runs} runs of {len(cases)} kinds: all bits equal")


if __name__ == "__main__":
    main()
