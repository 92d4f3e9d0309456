#!/usr/bin/python3
"""Sweeps that are killed, grown, cancelled, shared and cut short.

usage: sweeps.py STIEFEL SCENARIO [--plugin hostile_crash.so] [--seed 1]

kills      24 runs; scheduler and runs are killed at random moments, twice; resumed, all 24 finish with the bits of an undisturbed sweep.
together   Two workers at once do 24 runs, and none of them twice.
grown      A sweep grown by one value runs only what is new; a run that was made alone is the same run.
crash      A plugin that crashes, or ends its process with the code of a preempted run, costs one run; --fail-fast leaves the others.
retry      `sweep retry --failed` repeats a run that failed, and nothing else does; a run that diverged is not repeated.
cancel     `sweep cancel` stops runs with a checkpoint, as SIGINT does; resumed, they end with the same bits. SIGUSR1 saves checkpoints.
cpus       A run is continued on the type of CPU that began it: a worker on another one skips it, and waits for the workers that can do it
           while a rung of a sweep with halving may need both.
takeover   A claim of another host is left alone while it is touched, by whatever clock; then it is taken over. Who was taken for dead
           writes nothing more.
held       A worker renews the locks of its runs, and ends a run whose claim was taken over.
at_once    Several planners and workers on one sweep; a run that another worker holds; nohup.
halving    The same runs continue with one place, with two, and after a kill; the best one has the bits of a run that never stopped. An
           unknown metric is reported after the first run, and the highest accuracies are best. Settings are ranked, not
           their seeds.
halving_jobs  Runs that reach a rung together while others move on are not taken for failed.
asked      `sweep ask` adds runs, and `sweep tell` trains them step by step, also after SIGKILL, to the bits of a run that never stopped.
unwell     `sweep tell` of runs that diverge, that have no data and that another process works on; wrong words.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support import simd_targets  # pylint: disable=wrong-import-position
from tiny import GRID, HALVING, RATES, SEEDS_HALVED, Sweep, children, expect_same, kill, outcome, starts  # pylint: disable=wrong-import-position


def kills(settings, folder, rng):
    for steps in (150, 300, 600, 1200):
        schedulers, runs = kill_twice(settings, folder / str(steps), rng, steps)
        if schedulers == 2:
            return f"scheduler killed twice, runs {runs} times; 24 runs with the same bits"
    raise AssertionError("the sweep finished before its scheduler was killed twice")


def kill_twice(settings, folder, rng, steps):
    whole = Sweep(settings.program, folder / "whole", steps, GRID)
    begin = time.monotonic()
    whole.run("-j", 2)
    seconds = time.monotonic() - begin
    sweep = Sweep(settings.program, folder / "killed", steps, GRID)
    process = sweep.start("sweep", "run", sweep.file, "--output", sweep.path, "-j", 2)
    runs = schedulers = 0
    while schedulers < 2 and sweep.states() != {"finished": 24}:
        time.sleep(rng.uniform(0.1, 0.3) * seconds)
        for child in children(process.pid)[:1]:
            kill(child)
            runs += 1
        time.sleep(rng.uniform(0, 0.1) * seconds)
        schedulers += process.poll() is None
        process.kill()
        process.communicate()
        process = sweep.start("sweep", "resume", sweep.path, "-j", 2)
    sweep.end(process, 0, 75)
    sweep.do("sweep", "resume", sweep.path, "-j", 2)
    assert sweep.states() == {"finished": 24}, sweep.states()
    expect_same(sweep.outcomes(), whole.outcomes(), "killed")
    return schedulers, runs


def together(settings, folder, _):
    sweep = Sweep(settings.program, folder, 60, GRID)
    sweep.run("--plan")
    workers = [sweep.start("worker", sweep.path, "-j", jobs) for jobs in (1, 2)]
    said = [sweep.end(worker) for worker in workers]
    finished = [len(re.findall("^[0-9a-f]{10} .* finished: ", text, re.M)) for text in said]
    assert sum(finished) == 24 and min(finished) > 0, (finished, said)
    assert all(starts(run) == 1 for run in sweep.status())
    return f"two workers did {finished[0]} and {finished[1]} of 24 runs, none twice"


def grown(settings, folder, _):
    sweep = Sweep(settings.program, folder, 60, RATES)
    sweep.do("run", sweep.file, "sweep={optimizer.rate: [1]}", codes=(2,))
    alone = folder / "alone.yaml"
    alone.write_text(sweep.file.read_text(encoding="utf-8").replace(RATES, ""), encoding="utf-8")
    sweep.do("run", alone, "optimizer.rate=1e-3", "--output", sweep.path / "runs", "--threads", 1)
    said = sweep.run()
    assert said.count(" finished: ") == 1 and sweep.states() == {"finished": 2} and " left, about " not in said, said
    before = {run["id"]: os.stat(pathlib.Path(run["folder"]) / "results.h5").st_mtime_ns for run in sweep.status()}
    sweep.describe(60, RATES.replace("1e-3", "1e-3, 3e-3"))
    assert sweep.run().count(" finished: ") == 1
    sweep.describe(60, RATES.replace("1e-3", "1e-3, 3e-3, 4e-3, 5e-3"))
    said = sweep.run()
    assert re.search(r" finished: .*\); 1 run left, about \S+ s\n(.*\n)*.* finished: .*\)\n", said), said
    sweep.describe(60, RATES.replace("1e-3", "1e-3, 3e-3"))
    sweep.run()
    runs = sweep.status()
    assert len(runs) == 3 and before.keys() < {run["id"] for run in runs}
    assert all(os.stat(pathlib.Path(run["folder"]) / "results.h5").st_mtime_ns == before[run["id"]] for run in runs if run["id"] in before)
    assert sweep.run().count(" finished: ") == 0
    rebuilt = folder / "dense.so"
    rebuilt.write_bytes((pathlib.Path(settings.program).resolve().parent.parent / "lib/stiefel/plugins/dense.so").read_bytes() + b"\0")
    sweep.describe(60, RATES.replace("1e-3", "1e-3, 3e-3"), f"plugins: [{rebuilt}]\n")
    said = sweep.run()
    assert re.search("warning: 3 of the finished runs, such as .*, were made before dense changed; delete their folders to train them again", said), said
    return "1 of 2, then 1 of 3 runs were new"


def crash(settings, folder, _):
    many = "sweep: {model.recurrent: [hostile_crash, dense, scaled_cayley]}\n"
    plugins = f"plugins: [{settings.plugin}]\n"
    sweep = Sweep(settings.program, folder / "on", 60, many, plugins)
    said = sweep.run(codes=(3,))
    assert "crashed: signal 11" in said, said
    assert [run["state"] for run in sweep.status()] == ["failed", "finished", "finished"]
    assert sweep.do("sweep", "resume", sweep.path, codes=(3,)).count(" failed: crashed") == 0  # not tried again by itself
    fast = Sweep(settings.program, folder / "fast", 60, many, plugins)
    fast.run("--fail-fast", codes=(3,))
    assert [run["state"] for run in fast.status()] == ["failed", "waiting", "waiting"]
    leaving = Sweep(settings.program, folder / "leaving", 60, many.replace("crash", "exit"), plugins.replace("crash", "exit"))
    os.environ["HOSTILE_EXIT_CODE"] = "75"
    said = leaving.run(codes=(3,))
    assert said.count("ended with exit code 75 before it was finished") == 2, said  # when it ends, and in the list of failed runs
    assert [run["state"] for run in leaving.status()] == ["failed", "finished", "finished"]
    return "a crash cost one run, and with --fail-fast the others were left"


def retry(settings, folder, _):
    sweep = Sweep(settings.program, folder, 20, "")
    folder = pathlib.Path(folder).resolve()
    here, there, later = (folder / f"{name}.csv" for name in ("here", "there", "later"))
    table = "name,x,z\n" + "".join(f"{sequence},{step},{sequence % 3}\n" for sequence in range(90) for step in range(4))
    here.write_text(table, encoding="utf-8")
    text = re.sub("task: .*", f"task: {{plugin: sequence_csv, data: {here}, sequence: name, targets: [z]}}", sweep.file.read_text(encoding="utf-8"))
    sweep.file.write_text(f"{text}sweep: {{task.data: [{here}, {there}, {later}]}}\n", encoding="utf-8")
    said = sweep.run(codes=(4,))
    assert str(there) in said and sweep.states() == {"finished": 1, "failed": 2}, said
    assert f"warning: 2 runs of {sweep.path} failed without results; `stiefel sweep status" in sweep.do("compare", sweep.path)
    assert sweep.do("sweep", "resume", sweep.path, codes=(4,)).count(" failed: ") == 2  # once by each worker
    sweep.do("sweep", "retry", sweep.path, codes=(2,))
    assert sweep.states() == {"finished": 1, "failed": 2}
    there.write_text(table, encoding="utf-8")
    sweep.do("worker", sweep.path, codes=(4,))
    assert sweep.states() == {"finished": 2, "failed": 1}
    later.write_text(table, encoding="utf-8")
    sweep.do("sweep", "retry", "--failed", sweep.path)
    assert sweep.states() == {"finished": 3}
    other = Sweep(settings.program, folder / "elsewhere", 20, "")
    other.file.write_text(text.replace(str(here), "here.csv") + "seeds: [1, 2]\n", encoding="utf-8")
    planned = lambda *words, **more: subprocess.run([settings.program, *map(str, words)], check=False, capture_output=True, text=True, **more)
    assert planned("sweep", "run", other.file, "--output", other.path, "--plan", cwd=folder).returncode == 0
    changed = other.path / "configs" / (other.status()[1]["id"] + ".yaml")
    changed.write_text(changed.read_text(encoding="utf-8").replace("hidden: 16", "hidden: 17"), encoding="utf-8")
    done = planned("worker", other.path.relative_to(folder.parent), cwd=folder.parent)
    assert done.returncode == 2 and other.states() == {"finished": 1, "failed": 1}, (done.stdout, done.stderr, other.status())
    other.do("sweep", "resume", other.path, codes=(2,))
    assert other.states() == {"finished": 1, "failed": 1}, other.status()
    assert "but it was planned as" in done.stdout and "plan the sweep again" in done.stdout, done.stdout
    wild = Sweep(settings.program, folder / "wild", 20, "sweep: {optimizer.rate: [1e-3, 1e30]}\n")
    wild.file.write_text(wild.file.read_text(encoding="utf-8").replace("adam", "sgd"), encoding="utf-8")
    said = wild.run(codes=(5,))
    assert " failed" not in said and said.count("diverged at step") == 2 and "\n2 runs: 1 finished, 1 diverged\ndiverged: " in said, said
    wild.do("sweep", "retry", "--failed", wild.path, codes=(5,))
    assert wild.states() == {"finished": 1, "diverged": 1} and starts({"folder": wild.status()[1]["folder"]}) == 1, wild.status()
    changed.write_text(changed.read_text(encoding="utf-8").replace("hidden: 17", "hidden: wide").replace("batch: 12", "batch: all"), encoding="utf-8")
    said = other.do("sweep", "retry", "--failed", other.path, codes=(2,))
    assert "model.cell.hidden must be an integer, got 'wide'" in said and "train.batch must be an integer, got 'all'" in other.status()[1]["message"], said
    assert planned("sweep", "run", other.file, "--output", other.path, cwd=folder).returncode == 0 and other.states() == {"finished": 2}
    return "a run without data failed, and a worker finished it when they were there; one that diverged stayed so"


def cancel(settings, folder, rng):
    if not any(cancel_and_interrupt(settings, folder / str(steps), rng, steps) for steps in (1500, 6000, 24000)):
        raise AssertionError("the runs finished before they were cancelled")
    second_signal(settings, folder)
    return "cancelled, interrupted and resumed: the same bits; a second signal kills what hangs"


def cancel_and_interrupt(settings, folder, rng, steps):
    """Whether the runs were long enough for both."""
    whole = Sweep(settings.program, folder / "whole", steps, RATES)
    whole.run("-j", 2)
    sweep = Sweep(settings.program, folder / "cancelled", steps, RATES)
    process = sweep.start("sweep", "run", sweep.file, "--output", sweep.path, "-j", 2)
    sweep.wait_for(lambda: len({path.parent for path in sweep.path.glob("runs/*/*/checkpoints/step_*.h5")}) == 2)
    process.send_signal(rng.choice((signal.SIGUSR1, signal.SIGUSR2)))  # checkpoints, no end
    time.sleep(rng.uniform(0, 0.3))
    sweep.do("sweep", "cancel", sweep.path)
    sweep.end(process, 75, 0)
    if process.returncode == 0 or "finished" in sweep.states():
        return False
    assert sweep.states() == {"stopped": 2}, sweep.status()
    assert all(run["step"] > 0 for run in sweep.status())
    sweep.do("worker", sweep.path, codes=(75,))
    assert sweep.states() == {"stopped": 2}
    process = sweep.start("sweep", "resume", sweep.path)
    sweep.wait_for(lambda: "running" in sweep.states() or process.poll() is not None)
    time.sleep(rng.uniform(0, 0.3))
    process.send_signal(signal.SIGINT)
    sweep.end(process, 130, 0)
    if process.returncode == 0:
        return False
    assert "running" not in sweep.states() and "failed" not in sweep.states(), sweep.status()
    sweep.do("sweep", "resume", sweep.path, "-j", 2)
    expect_same(sweep.outcomes(), whole.outcomes(), "cancelled")
    return True


def second_signal(settings, folder):
    endless = Sweep(settings.program, folder / "endless", 10**7, RATES)
    for hang in (False, True):
        worker = endless.start("sweep", "resume" if hang else "run", endless.path if hang else endless.file,
                               *(["--threads", 1] if hang else ["--output", endless.path]), "-j", 2)
        endless.wait_for(lambda: len(endless.owners()) == 2)
        for child in endless.owners() if hang else ():  # with --threads, so that several workers do not share the first cores
            assert os.sched_getaffinity(child) == os.sched_getaffinity(0)
        if hang:
            for child in endless.owners():
                os.kill(child, signal.SIGSTOP)
        worker.send_signal(signal.SIGTERM)
        if hang:  # the first signal does not end them; a second, later one kills
            time.sleep(2)
            assert worker.poll() is None
        worker.send_signal(signal.SIGTERM)  # at the same time it is the first signal's echo
        while hang and worker.poll() is None:  # both signals may have come to a slow process as one
            time.sleep(2)
            worker.send_signal(signal.SIGTERM)
        endless.end(worker, 143)
        assert not endless.states().keys() & {"running", "failed"}, endless.status()


def cpus(settings, folder, _):
    *_, plainest = targets = simd_targets(settings.program)
    if len(targets) == 1:
        return "not tried: this type of CPU has one instruction set"
    other_type = ("env", "STIEFEL_SIMD=" + plainest)
    for name, many, number in (("grid", RATES, 2), ("rungs", SEEDS_HALVED, 4)):
        begun = Sweep(settings.program, folder / name, 400, many)
        begun.end(begun.start("sweep", "run", begun.file, "--output", begun.path, "--until", 20, before=other_type), 75)
        said = begun.do("worker", begun.path, "--patience", 1, codes=(75,))
        assert said.count(f" is skipped: this would change the run:\n  simd_target was {plainest} and is now ") == number, said
        assert begun.states() == {"stopped": number}, begun.status()
        begun.end(begun.start("worker", begun.path, "-j", 2, before=other_type))
        assert begun.states() == ({"finished": 2} if number == 2 else {"finished": 1, "left out": 3}), begun.status()
    mixed = Sweep(settings.program, folder / "mixed", 400, SEEDS_HALVED)
    mixed.run("--plan")
    for i, run in enumerate(mixed.status()):
        mixed.end(mixed.start("worker", mixed.path, "--run", run["id"], before=other_type if i % 2 else ()), 0, 75)
    for worker in [mixed.start("worker", mixed.path, before=before) for before in ((), other_type)]:
        mixed.end(worker)
    assert mixed.states() == {"finished": 1, "left out": 3}, mixed.status()
    return "runs of another type of CPU were skipped, and finished by a worker of their type"


FOREIGN = json.dumps({"host": "elsewhere", "pid": 1, "boot": "b", "namespace": "n", "start": "1", "since": "2024-01-01T00:00:00Z"})


def takeover(settings, folder, _):
    sweep = Sweep(settings.program, folder / "many", 40, RATES)
    sweep.run("--plan")
    first, second = sweep.status()
    claim, lock = sweep.path / "claims" / first["id"] / "lock", pathlib.Path(first["folder"]) / "lock"
    for path in (claim, lock):
        path.parent.mkdir(parents=True)
        path.write_text(FOREIGN, encoding="utf-8")
    sweep.do("slurm", sweep.path)
    script = sweep.path / "slurm" / "array_0.sh"
    assert f"runs=({second['id']})" in script.read_text(encoding="utf-8")
    process = sweep.start("worker", sweep.path, "--run", first["id"], "--patience", 5)
    for beat in range(70):  # its clock is an hour behind
        for path in (claim, lock):
            os.utime(path, (time.time() - 3600 + beat,) * 2)
        time.sleep(0.1)
        assert claim.read_text(encoding="utf-8") == FOREIGN and not (lock.parent / "config.yaml").exists()
    sweep.do("slurm", sweep.path)  # for the user its worker is as dead as the time of the file says
    assert f"runs=({first['id']} {second['id']})" in script.read_text(encoding="utf-8")
    said = sweep.end(process, 0, 7)
    while process.returncode == 7:  # it had shown that it lived
        assert f"{first['id']} (optimizer.rate=1e-4) is left to process 1 on elsewhere" in said, said
        process = sweep.start("worker", sweep.path, "--run", first["id"], "--patience", 5)
        said = sweep.end(process)
    assert sweep.states() == {"finished": 1, "waiting": 1}, sweep.status()

    alone = folder / "alone.yaml"
    alone.write_text(sweep.file.read_text(encoding="utf-8").replace(RATES, "").replace("steps: 40", "steps: 1000000"), encoding="utf-8")
    process = sweep.start("run", alone, "--output", folder / "runs")
    sweep.wait_for(lambda: list(folder.glob("runs/*/*/checkpoints/step_*.h5")))
    lock = next(folder.glob("runs/*/*/lock"))
    other = folder / "other"
    other.write_text(FOREIGN, encoding="utf-8")
    other.replace(lock)
    said = sweep.end(process, 7)
    assert "its lock was taken over by process 1 on elsewhere" in said and lock.read_text(encoding="utf-8") == FOREIGN, said
    return "left alone while it was touched, taken over after 5 s; a run that was taken over stopped"


def held(settings, folder, _):
    sweep = Sweep(settings.program, folder, 10**7, RATES)
    sweep.run("--plan")
    worker = sweep.start("worker", sweep.path, "--patience", 3)
    sweep.wait_for(sweep.owners)
    first = sweep.status()[0]
    locks = [sweep.path / "claims" / first["id"] / "lock", pathlib.Path(first["folder"]) / "lock"]
    before = [path.stat().st_mtime_ns for path in locks]
    sweep.wait_for(lambda: all(path.stat().st_mtime_ns > old for path, old in zip(locks, before)), 10)
    process, = sweep.owners()
    other = folder / "other"
    other.write_text(FOREIGN, encoding="utf-8")
    other.replace(locks[0])
    sweep.wait_for(lambda: process not in children(worker.pid), 10)
    worker.terminate()
    said = sweep.end(worker, 143)
    assert f"{first['id']} (optimizer.rate=1e-4) was taken over by another worker" in said, said
    assert locks[0].read_text(encoding="utf-8") == FOREIGN
    return "the locks of a run are renewed; a run whose claim another host took is ended"


def at_once(settings, folder, _):
    sweep = Sweep(settings.program, folder, 10**7, RATES)
    for process in [sweep.start("sweep", "run", sweep.file, "--output", sweep.path, "--plan") for _ in range(6)]:
        sweep.end(process)
    hangup = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    worker = sweep.start("worker", sweep.path)
    signal.signal(signal.SIGHUP, hangup)
    sweep.wait_for(lambda: "running" in sweep.states())
    running, waiting = sweep.status()
    said = sweep.do("worker", sweep.path, "--run", running["id"], "--patience", 1, codes=(7,))
    assert f"is left to process {worker.pid} on " in said, said
    assert waiting["state"] == "waiting", waiting
    worker.send_signal(signal.SIGHUP)
    time.sleep(1)
    assert worker.poll() is None and sweep.states() == {"running": 1, "waiting": 1}
    worker.send_signal(signal.SIGTERM)
    sweep.end(worker, 143)
    sweep.describe(10**6, RATES)
    said = sweep.run("--plan")
    assert " has 1 more run from another plan" in said, said
    return "six planners; a run in use is left to its worker; a hang-up after nohup ends nothing"


def halving_jobs(settings, folder, _):
    """Runs that reach a rung together while the others move on are not taken for failed."""
    for number in range(settings.times):
        sweep = Sweep(settings.program, folder / str(number), 400, SEEDS_HALVED)
        sweep.run("-j", 4, "--threads", 1)
        assert sweep.states() == {"finished": 1, "left out": 3}, sweep.status()
        shutil.rmtree(folder / str(number))
    return f"{settings.times} sweeps of 4 seeds, 4 at a time: none failed"


def halving(settings, folder, rng):
    sweeps = {}
    for name, jobs in (("one", 1), ("two", 2), ("killed", 2)):
        sweep = sweeps[name] = Sweep(settings.program, folder / name, 400, HALVING)
        if name == "killed":
            for words in (("run", sweep.file, "--output", sweep.path), ("resume", sweep.path)):
                process = sweep.start("sweep", *words, "-j", jobs)
                sweep.wait_for(lambda: "running" in sweep.states())
                time.sleep(rng.uniform(0.2, 1.5))
                process.kill()
                process.communicate()
            sweep.do("sweep", "resume", sweep.path, "-j", jobs)
        else:
            sweep.run("-j", jobs)
        assert sweep.states() == {"finished": 1, "left out": 8}, sweep.status()
        assert sorted(run["step"] for run in sweep.status()) == [50] * 6 + [150] * 2 + [400], sweep.status()
    rungs = {name: {path.name: path.read_text(encoding="utf-8") for path in (sweep.path / "rungs").iterdir()} for name, sweep in sweeps.items()}
    assert rungs["one"] == rungs["two"] == rungs["killed"] and rungs["one"].keys() == {"50.tsv", "150.tsv"}, rungs
    best = next(run for run in sweeps["two"].status() if run["state"] == "finished")
    losses = {line.split("\t")[0]: float(line.split("\t")[1]) for line in rungs["one"]["50.tsv"].splitlines()[1:]}
    assert best["id"] in sorted(losses, key=losses.get)[:3], (best, losses)
    sweep.do("run", sweep.path / "configs" / f"{best['id']}.yaml", "--output", folder / "alone", "--threads", 1)
    found, expected = outcome(pathlib.Path(best["folder"])), outcome(folder / "alone" / "tiny" / best["id"])
    found["files"] = [name for name in found["files"] if name in expected["files"]]  # a worker keeps what its runs say
    expect_same({"best": found}, {"best": expected}, "halving")
    judged = Sweep(settings.program, folder / "judged", 400, HALVING.replace("valid_loss", "valid_los"))
    said = judged.run(codes=(2,))
    assert "has no valid_los; its evaluations have " in said and "valid_accuracy" in said, said
    assert sorted(run["step"] for run in judged.status()) == [0] * 8 + [50], judged.status()  # said at once
    judged.describe(400, HALVING.replace("valid_loss", "test_accuracy"))  # a column without numbers
    assert "has no test_accuracy; its evaluations have train_loss, valid_loss, valid_accuracy:" in judged.run(codes=(2,))
    judged.describe(400, HALVING.replace("valid_loss", "valid_accuracy"))
    judged.run("-j", 2)
    table = [line.split("\t") for line in (judged.path / "rungs" / "50.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    values = {goes_on: [float(value) for _, value, which in table if which == goes_on] for goes_on in "01"}
    assert len(values["1"]) == 3 and min(values["1"]) >= max(values["0"]) and max(values["1"]) > min(values["0"]), values
    settings_of_two(settings, folder / "settings")
    return "9, 3 and 1 runs: the same for one place, two places and after kills"


def settings_of_two(settings, folder):
    """Both seeds of the setting with the lower mean go on, not the two best runs."""
    many = RATES.replace("1e-4, 1e-3]", "1e-3, 1.2e-3], halving: {metric: valid_loss, first: 50, factor: 2}")
    sweep = Sweep(settings.program, folder, 100, "seeds: [1, 2]\n" + many)
    sweep.run("-j", 2)
    rung = [line.split("\t") for line in (sweep.path / "rungs/50.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    losses = {identity: float(loss) for identity, loss, _ in rung}
    runs = {}
    for run in sweep.status():
        runs.setdefault(run["values"]["optimizer.rate"], []).append(run)
    means = {rate: sum(losses[run["id"]] for run in seeds) / 2 for rate, seeds in runs.items()}
    kept, dropped = sorted(runs, key=means.get)
    assert [run["state"] for run in runs[kept] + runs[dropped]] == ["finished"] * 2 + ["left out"] * 2, runs
    assert {identity for identity, _, goes_on in rung if goes_on == "1"} == {run["id"] for run in runs[kept]}, rung
    best_dropped = min(losses[run["id"]] for run in runs[dropped])
    assert max(losses[run["id"]] for run in runs[kept]) > best_dropped, losses  # the two best runs are of both settings


def json_of(sweep, *words, codes=(0,)):
    """What `sweep WORDS` prints: one line of JSON."""
    process = subprocess.run([sweep.program, "sweep", *map(str, words)], capture_output=True, text=True, check=False, timeout=500)
    assert process.returncode in codes and process.stdout.count("\n") == 1, (words, process)
    return json.loads(process.stdout)


def refused(sweep, *words):
    """Why `sweep WORDS` does nothing."""
    process = subprocess.run([sweep.program, "sweep", *map(str, words)], capture_output=True, text=True, check=False, timeout=500)
    assert process.returncode == 2 and not process.stdout, (words, process)
    return process.stderr


def asked(settings, folder, rng):
    sweep = Sweep(settings.program, folder / "asked", 3000, "")
    fast = json_of(sweep, "ask", sweep.file, "optimizer.rate=1e-2", "--output", sweep.path)
    other = json_of(sweep, "ask", sweep.file, "model.cell.hidden=8", "optimizer.rate=1e-3", "--output", sweep.path)
    assert fast["settings"] == {"optimizer.rate": "1e-2"} and fast["sweep"] == str(sweep.path), fast
    assert other["settings"] == {"model.cell.hidden": "8", "optimizer.rate": "1e-3"} and other["run"] != fast["run"], other
    assert fast == json_of(sweep, "ask", sweep.file, "optimizer.rate=1e-2", "--output", sweep.path)
    values = {run["id"]: run["values"] for run in sweep.status()}
    assert values == {fast["run"]: fast["settings"], other["run"]: other["settings"]}, values
    with concurrent.futures.ThreadPoolExecutor(6) as drivers:
        many = list(drivers.map(lambda seed: json_of(sweep, "ask", sweep.file, f"seed={seed}", "--output", sweep.path)["run"], range(2, 14)))
    assert [run["id"] for run in sweep.status()][:2] == [fast["run"], other["run"]]
    assert {run["id"] for run in sweep.status()} == {fast["run"], other["run"], *many} and len(set(many)) == 12

    tell = ("tell", sweep.path, fast["run"])
    first = json_of(sweep, *tell, "--until", 30)
    assert (first["step"], first["finished"], first["status"], first["evaluated"]) == (30, False, "stopped", 25), first
    assert first["metric"] == "valid_loss" and first["better"] == "lower" and first["objective"] == first["metrics"]["valid_loss"], first
    assert first == json_of(sweep, *tell, "--until", 20)
    kills = 0
    for victim in ("tell", "run", "tell"):
        process = sweep.start("sweep", *tell)
        time.sleep(rng.uniform(0.3, 0.8))
        kills += process.poll() is None
        if victim == "run":
            for child in children(process.pid):
                kill(child)
            sweep.end(process, 75, 0)
        process.kill()
        process.communicate()
    told = json_of(sweep, *tell)
    assert (told["step"], told["finished"], told["status"], told["evaluated"]) == (3000, True, "finished", 3000), told
    assert told["objective"] <= first["objective"] and told["metrics"].keys() == {"train_loss", "valid_loss", "valid_accuracy"}, told
    assert told == json_of(sweep, *tell, "--until", 5000)
    sweep.do("run", sweep.file, "optimizer.rate=1e-2", "--output", folder / "alone", "--threads", 1)
    found, expected = outcome(pathlib.Path(fast["path"])), outcome(folder / "alone" / "tiny" / fast["run"])
    found["files"] = [name for name in found["files"] if name in expected["files"]]  # a worker keeps what its runs say
    expect_same({"told": found}, {"told": expected}, "asked")
    assert kills > 0 and starts({"folder": fast["path"]}) > 1

    later = json_of(sweep, "tell", sweep.path, other["run"], "--until", 3000)
    assert later["finished"] and sweep.states() == {"finished": 2, "waiting": 12}, sweep.status()
    named = Sweep(settings.program, folder / "named", 20, "")
    paths = [json_of(named, "ask", named.file, *words, "--output", named.path)["path"] for words in (["name=tiny", "seed=2"], ["seed=3"])]
    assert [pathlib.Path(path).parent for path in paths] == [named.path / "runs" / "tiny"] * 2, paths
    quoted = Sweep(settings.program, folder / "quoted", 20, "")
    run = json_of(quoted, "ask", quoted.file, "name='1, 2'", "--output", quoted.path)
    assert pathlib.Path(run["path"]).parent.name == "1, 2" and json_of(quoted, "tell", quoted.path, run["run"])["finished"], run
    together = Sweep(settings.program, folder / "together", 60, RATES)
    together.run("--until", 20, codes=(75,))
    assert [(run["state"], run["step"]) for run in together.status()] == [("stopped", 20)] * 2, together.status()
    together.do("sweep", "resume", together.path)
    assert together.states() == {"finished": 2}
    assert "holds the sweep tiny, not other; use another folder" in refused(together, "run", together.file, "name=other", "--output", together.path)
    named.do("sweep", "cancel", named.path)
    after = json_of(named, "ask", named.file, "seed=4", "--output", named.path)
    assert json_of(named, "tell", named.path, after["run"])["finished"]
    return f"14 runs asked for; one was told in parts and killed {kills} times, with the same bits"


def unwell(settings, folder, _):
    sweep = Sweep(settings.program, folder / "asked", 10**7, "")
    wild = json_of(sweep, "ask", sweep.file, "optimizer=sgd", "optimizer.rate=1e30", "--output", sweep.path)
    for _ in range(2):
        told = json_of(sweep, "tell", sweep.path, wild["run"])
        assert told["status"] == "diverged" and not told["finished"] and told["objective"] is None, told
        assert "diverged at step" in told["message"], told
    endless = json_of(sweep, "ask", sweep.file, "optimizer.rate=1e-5", "--output", sweep.path)
    process = sweep.start("sweep", "tell", sweep.path, endless["run"], "--threads", 1)
    sweep.wait_for(lambda: sweep.states() == {"diverged": 1, "running": 1} and sweep.owners())
    assert os.sched_getaffinity(sweep.owners()[0]) == os.sched_getaffinity(0)  # so that several of them do not share a core
    told = json_of(sweep, "tell", sweep.path, endless["run"], "--patience", 1, codes=(7,))
    assert told["status"] == "running" and not told["finished"], told
    process.send_signal(signal.SIGINT)
    assert json.loads(sweep.end(process, 130).splitlines()[-1])["status"] == "stopped"
    (sweep.path / "cancelled").touch()
    sweep.do("sweep", "tell", sweep.path, endless["run"], codes=(75,))

    table = folder / "table.csv"
    text = re.sub("task: .*", f"task: {{plugin: sequence_csv, data: {table}, sequence: name, targets: [z]}}", sweep.file.read_text(encoding="utf-8"))
    data = Sweep(settings.program, folder / "data", 20, "")
    data.file.write_text(text.replace(f"steps: {10**7}", "steps: 20"), encoding="utf-8")
    run = json_of(data, "ask", data.file, "seed=2", "--output", data.path)["run"]
    told = json_of(data, "tell", data.path, run, codes=(4,))
    assert told["status"] == "failed" and str(table) in told["message"] and told["objective"] is None, told
    table.write_text("name,x,z\n" + "".join(f"{sequence},{step},{sequence % 3}\n" for sequence in range(90) for step in range(4)), encoding="utf-8")
    assert json_of(data, "tell", data.path, run)["finished"]

    assert "did you mean" in refused(sweep, "ask", sweep.file, "optimizer.rat=1", "--output", sweep.path)
    assert "optimizer.rate" in refused(sweep, "ask", sweep.file, "optimizer.rate=fast", "--output", sweep.path)
    assert "name the file and the settings" in refused(sweep, "ask", sweep.file)
    assert "holds the sweep tiny, not big; use another folder (--output)" in refused(sweep, "ask", sweep.file, "name=big", "seed=3", "--output", sweep.path)
    assert "there is no run" in refused(sweep, "tell", sweep.path, "0123456789")
    assert "is not a sweep folder" in refused(sweep, "tell", folder, "0123456789")
    assert "name the folder of a sweep and one of its runs" in refused(sweep, "tell", sweep.path)
    assert len(sweep.status()) == 2
    wrong = folder / "wrong.yaml"
    wrong.write_text(sweep.file.read_text(encoding="utf-8").replace("rate: 1e-3", "rat: 1e-3"), encoding="utf-8")
    assert re.search(r"wrong.yaml:\d+:\d+: ", refused(sweep, "ask", wrong, "seed=3", "--output", sweep.path))
    halved = Sweep(settings.program, folder / "halved", 400, HALVING)
    halved.run("--plan")
    assert "decides by halving" in refused(halved, "tell", halved.path, halved.status()[0]["id"])
    assert "this describes a sweep of 9 runs" in refused(halved, "ask", halved.file, "seed=3")
    return "diverged is a result, missing data an error that is tried again; what is wrong is named"


def main():
    scenarios = {f.__name__: f for f in (kills, together, grown, crash, retry, cancel, cpus, takeover, held, at_once, halving, halving_jobs, asked, unwell)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("scenario", choices=scenarios)
    parser.add_argument("--plugin")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--times", type=int, default=8, help="of halving_jobs")
    settings = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    print(f"{settings.scenario}: {scenarios[settings.scenario](settings, folder, random.Random(settings.seed))}")
    shutil.rmtree(folder)  # kept when something went wrong


if __name__ == "__main__":
    main()
