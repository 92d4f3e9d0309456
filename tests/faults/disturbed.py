"""One small experiment, its undisturbed outcome, and disturbed runs of it, each in its own folder."""
import concurrent.futures
import os
import random
import re
import shutil

from runs import Runner, check_opens, expect_equal, experiment, kinds as all_kinds, outcome

# Two checkpoints, of which the second removes the first, and five publishes, in as few calls as that takes.
SHORT = {"steps": 5, "evaluate_every": 3, "checkpoint": "{every: 2, keep: 1}"}
KIND = ("adding", "moving", "adam")


class Disturbed:
    """Of task, model and optimizer `kind`; `plan`: see runs.experiment()."""

    def __init__(self, program, folder, kind=KIND, plan=None):
        self.runner, self.folder = Runner(program, folder), folder
        self.file = folder / "experiment.yaml"
        self.file.write_text(experiment(*kind, **(plan or SHORT)), encoding="utf-8")
        whole, _ = self.runner.reference(self.file, 1)
        self.expected = outcome(whole)

    def start(self, parts, file=None, environment=None):
        """A run in the folder `parts`."""
        return self.runner.start("run", file or self.file, "--output", parts, "--threads", 1, environment=environment)

    def check(self, parts, where):
        """What is there can be read, and the run resumes to the bits of the undisturbed one."""
        for made in parts.rglob("config.yaml"):
            check_opens(made.parent)
        expect_equal(outcome(self.runner.go_on(self.file, parts)), self.expected, where)


class Injected(Disturbed):
    """Disturbed by the preloaded library."""

    def __init__(self, program, folder, inject, **more):
        super().__init__(program, folder, **more)
        self.inject = inject

    def run(self, where, mode, **more):
        """A process that works in a new folder, and the folder."""
        parts = self.folder / "-".join(map(str, where))
        parts.mkdir()
        file = shutil.copy(self.file, parts)  # to be seen when it is read
        environment = {"LD_PRELOAD": str(self.inject), "STIEFEL_FAULT_FOLDER": str(parts), "STIEFEL_FAULT_MODE": mode,
                       **{f"STIEFEL_FAULT_{key.upper()}": str(value) for key, value in more.items()}}
        return self.start(parts, file, environment), parts

    def check_and_remove(self, parts, where):
        self.check(parts, where)
        shutil.rmtree(parts)

    def logged(self, mode, **more):
        """The log of an otherwise undisturbed run."""
        log = self.folder / "log"
        process, parts = self.run([mode], mode, log=log, **more)
        self.runner.end(process)
        shutil.rmtree(parts)
        return log


def kinds(rounds, seed=1):
    """KIND and others drawn from all."""
    others = [kind for kind in all_kinds() if kind != KIND]
    return [KIND] + random.Random(seed).sample(others, rounds - 1)


def without_warnings(said):
    return re.sub(r"^warning: .*\n", "", said, flags=re.M)


def side_by_side(case, numbers):
    """case(number) for each, as many at a time as there are processors; the first that fails ends it."""
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        try:
            return list(pool.map(case, numbers))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
