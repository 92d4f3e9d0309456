#!/usr/bin/python3
"""What goes on around a run does it no harm.

usage: surroundings.py STIEFEL races|signals|readers|determinism|repeat|streams|stuck|endings|long [--times N] [--steps N] [--plugins FILE...] [--seed 1]

races        Two processes start the same run at once: one of them does it, the other is refused (exit code 7) or finds it finished.
signals      SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and SIGWINCH at random moments, one or many; what is stopped is resumed; all bits are equal.
readers      h5py, xarray and h5dump open results.h5 again and again while the run goes on: each finds a table with rows of equal number.
determinism  The same bits with 1, 2 and 8 threads, in another folder, with another locale, time zone, umask and size of the environment.
repeat       `stiefel repeat --check` finds the same bits, and a single changed number of a network.
streams      A run goes on when its input or outputs are closed, full or read by nobody; a full or unread standard output is told by its exit code.
stuck        A map that never returns, or a task, ends the run with exit code 3 and a sentence (train.step_limit); the results open.
endings      A plugin that crashes, calls exit() or makes numbers break is named on stderr and in log.txt; the results open.
long         A run of --steps steps that records, evaluates, publishes and saves keeps its resident memory and its open files.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np
import xarray

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from runs import Runner, check_opens, expect_equal, experiment, outcome  # pylint: disable=wrong-import-position

STOPPED = {128 + int(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}


def prepare(settings, folder, steps):
    file = folder / "experiment.yaml"
    file.write_text(experiment("adding", "householder", "adam", steps), encoding="utf-8")
    runner = Runner(settings.program, folder)
    whole, seconds = runner.reference(file, 1)
    return runner, file, outcome(whole), seconds


def races(settings, folder, rng):
    runner, file, expected, _ = prepare(settings, folder, 60)
    codes = {}
    for number in range(settings.times):
        parts = folder / "parts"
        first = runner.start("run", file, "--output", parts, "--threads", 1)
        time.sleep(rng.choice((0, 0, rng.uniform(0, 0.1))))
        second = runner.start("run", file, "--output", parts, "--threads", 1)
        said = [process.communicate(timeout=300)[0] for process in (first, second)]
        both = sorted((first.returncode, second.returncode))
        assert both in ([0, 0], [0, 7]), (number, both, said)
        codes[tuple(both)] = codes.get(tuple(both), 0) + 1
        expect_equal(outcome(next(parts.rglob("results.h5")).parent), expected, ("race", number))
        shutil.rmtree(parts)
    return f"{settings.times} races, exit codes {codes}"


def signals(settings, folder, rng):
    runner, file, expected, seconds = prepare(settings, folder, 300)
    sent = stopped = number = 0
    while sent < settings.times:
        number += 1
        parts = folder / "parts"
        process = runner.start("run", file, "--output", parts, "--threads", 1)
        while True:
            time.sleep(rng.uniform(0, seconds / 2))
            storm = rng.choice((1, 1, 5))
            for _ in range(storm):
                process.send_signal(rng.choice((signal.SIGUSR1, signal.SIGWINCH, signal.SIGUSR2, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)))
                sent += 1
            if rng.random() < 0.3 and process.poll() is None:
                continue
            said = process.communicate(timeout=300)[0]
            # SIGUSR1 before the program has begun to listen, and a second signal to stop, end it at once
            assert process.returncode in {0, -signal.SIGUSR1, -signal.SIGUSR2, -signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP} | STOPPED, (process.returncode, said)
            stopped += process.returncode != 0
            made = list(parts.rglob("config.yaml"))
            if made:
                check_opens(made[0].parent)
            if process.returncode == 0:
                break
            words = ("resume", made[0].parent) if made else ("run", file, "--output", parts)
            process = runner.start(*words, "--threads", 1)
        expect_equal(outcome(next(parts.rglob("results.h5")).parent), expected, ("signals", number))
        shutil.rmtree(parts)
    return f"{sent} signals, {stopped} stops in {number} runs"


def read_h5py(results):
    with h5py.File(results) as file:
        steps = file["steps/step"][()].tolist()
        assert steps == list(range(1, len(steps) + 1)) and len(file["steps/loss"]) == len(file["steps/wall_time"]) == len(steps), len(steps)


def read_xarray(results):
    with xarray.open_dataset(results, group="steps", engine="h5netcdf", cache=False) as table:
        assert table.loss.notnull().all() and table.sizes["step"] == table.loss.size


def read_h5dump(results):
    done = subprocess.run(["h5dump", "-d", "/steps/loss", str(results)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-500:]


def readers(settings, folder, rng):
    file = folder / "experiment.yaml"
    file.write_text(experiment("adding", "householder", "adam", 10**6, patience=0), encoding="utf-8")
    runner = Runner(settings.program, folder)
    process = runner.start("run", file, "--output", folder / "runs", "--threads", 1)
    try:
        deadline = time.monotonic() + 60
        while not list((folder / "runs").rglob("results.h5")):
            assert time.monotonic() < deadline and process.poll() is None, process.poll()
            time.sleep(0.05)
        results = next((folder / "runs").rglob("results.h5"))
        published = set()
        for _ in range(settings.times):
            rng.choice((read_h5py, read_xarray, read_h5dump))(results)
            published.add(results.stat().st_ino)
        assert process.poll() is None, process.returncode
    finally:
        process.kill()
        process.wait()
    check_opens(results.parent)
    return f"{settings.times} opens by h5py, xarray and h5dump while {len(published)} files were published"


def determinism(settings, folder, rng):
    _, file, expected, _ = prepare(settings, folder, 60)
    places = [folder / "with a blank", folder / ("deep/" * 20), pathlib.Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else folder / "other"]
    changes = [{}, {"LC_ALL": "de_DE.UTF-8"}, {"LC_ALL": "C.UTF-8", "TZ": "Asia/Kathmandu"}, {"LARGE": "x" * 100000}, {"OMP_NUM_THREADS": "7"},
               {"HOME": "/nonexistent"}]
    for number in range(settings.times):
        place = rng.choice(places)
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place) as output:
            mask = os.umask(rng.choice((0o022, 0o077, 0o000)))
            runner = Runner(settings.program, folder)
            process = runner.start("run", file, "--output", output, "--threads", (1, 2, 8)[number % 3], environment=changes[number % len(changes)])
            runner.end(process)
            os.umask(mask)
            expect_equal(outcome(next(pathlib.Path(output).rglob("results.h5")).parent), expected, ("determinism", number))
    return f"{settings.times} surroundings"


def repeat(settings, folder, _):
    runner, file, _, _ = prepare(settings, folder, 60)
    runner.end(runner.start("run", file, "--output", folder / "part", "--until", 20), code=75)
    part = next((folder / "part").rglob("results.h5")).parent
    said = runner.end(runner.start("repeat", part, "--check", "--output", folder / "again"), code=7)
    assert "is not finished, so a complete run cannot be compared with it" in said, said
    whole = next((folder / "whole").rglob("results.h5")).parent
    said = runner.finish("repeat", whole, "--check", "--output", folder / "again", "--threads", 2)
    assert "identical to the bit with" in said, said
    with h5py.File(whole / "checkpoints/last.h5", "r+") as file:
        weights = file["weights/readout.weight"]
        weights[0, 0] = weights[0, 0] * (1 + 2**-20)
    shutil.rmtree(folder / "again")
    said = runner.end(runner.start("repeat", whole, "--check", "--output", folder / "again"), code=6)
    assert "differ in 1 places: checkpoints/last.h5 /weights/readout.weight" in said, said
    return "one run repeated, one changed number found"


def streams(settings, folder, _):
    _, file, expected, _ = prepare(settings, folder, 60)
    unread, pipe = os.pipe()
    os.close(unread)
    ends = {"<&-": 0, ">&-": 0, "2>&-": 0, "<&- >&- 2>&-": 0, "2>/dev/full": 0, f"2>&{pipe}": 0, ">/dev/full": 8, f">&{pipe}": 128 + signal.SIGPIPE,
            f">&{pipe} 2>&1": 128 + signal.SIGPIPE}
    for number, (redirected, code) in enumerate(ends.items()):
        parts = folder / str(number)
        line = f'"$0" "$@" {redirected}'
        words = [settings.program, "run", file, "--output", parts, "--threads", "1"]
        done = subprocess.run(["bash", "-c", line, *words], capture_output=True, text=True, timeout=300, check=False, pass_fds=[pipe])
        assert done.returncode == code, (redirected, done)
        expect_equal(outcome(next(parts.rglob("results.h5")).parent), expected, redirected)
        assert "finished: " in next(parts.rglob("log.txt")).read_text(encoding="utf-8"), redirected
    return f"{len(ends)} redirections"


def stuck(settings, folder, _):
    file = folder / "experiment.yaml"
    runner = Runner(settings.program, folder)
    cases = (("adding, length: 10", "hostile_loop", 10, "step 1"), ("hostile_task, stuck_at: 2", "dense", 10, "step 3"),
             ("hostile_task, stuck_at: 2", "dense", 2, "filling a batch after step 2"),
             ("hostile_task, stuck_at: 2, stuck_in: validation", "dense", 10, "a validation batch after step 10"),
             ("hostile_task, stuck_at: 0, stuck_in: test", "dense", 10, "a test batch after step 10"))
    for number, (task, recurrent, until, where) in enumerate(cases):
        file.write_text(f"""name: stuck
plugins: {settings.plugins}
task: {{plugin: {task}}}
model: {{cell: {{plugin: elman, hidden: 4}}, recurrent: {{plugin: {recurrent}}}}}
optimizer: {{plugin: adam}}
train: {{batch: 4, steps: 10, step_limit: 1.5}}
""", encoding="utf-8")
        said = runner.end(runner.start("run", file, "--output", folder / str(number), "--until", until), code=3)
        assert f"{where} has not ended within train.step_limit = 1.5 s: a plugin hangs" in said, said
        directory = next((folder / str(number)).rglob("results.h5")).parent
        check_opens(directory)
        assert "has not ended" in (directory / "log.txt").read_text(encoding="utf-8")
        if number == 0:
            words = ("run", file, "--output", folder / "first")
            said = runner.end(runner.start(*words, environment={"HOSTILE_LOOP_REFRESH": "1"}), code=3)
            assert "the initial values have not been set within train.step_limit = 1.5 s: a plugin hangs" in said, said
    text = file.read_text(encoding="utf-8").replace(f"{{plugin: {cases[-1][0]}}}", "{plugin: hostile_task, stuck_at: 2}").replace(", step_limit: 1.5", "")
    file.write_text(text + "record: {loss: 1}\n", encoding="utf-8")
    process = runner.start("run", file, "--output", folder / "stopped")
    while '"step":2,' not in "".join(path.read_text(encoding="utf-8") for path in folder.glob("stopped/*/*/progress.jsonl")):
        assert process.poll() is None, runner.end(process)
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    said = runner.end(process, code=128 + signal.SIGTERM)
    assert "step 3 has not ended within 30 s after signal 15: a plugin hangs; resume with" in said, said
    assert "has not ended within 30 s" in next(folder.glob("stopped/*/*/log.txt")).read_text(encoding="utf-8")
    return f"{len(cases) + 2} runs without end were ended"


def endings(settings, folder, _):
    file = folder / "experiment.yaml"
    runner = Runner(settings.program, folder)
    crash = "the program crashed (a segmentation fault) in spectrum() of hostile_crash"
    cases = (("adding, length: 10", "hostile_crash", {}, -signal.SIGSEGV, crash),
             ("adding, length: 10", "hostile_static", {"HOSTILE_STATIC": "1"}, -signal.SIGABRT, "crashed (abort()) in dlopen() of hostile_static"),
             ("adding, length: 10", "hostile_exit", {"HOSTILE_EXIT_CALL": "1"}, 3, "exit() was called in refresh() of hostile_exit"),
             ("adding, length: 10", "hostile_exit", {"HOSTILE_EXIT_CALL": "7"}, 3, "exit() was called in refresh() of hostile_exit"),
             ("hostile_task, nan_in: train", "dense", {}, 5, "diverged at step 1: the loss is nan; input 0 at step 0 of sequence 0 is nan;"),
             ("hostile_task, nan_in: validation", "dense", {}, 5, "diverged at step 5: the loss of a validation batch is nan; input 0 at step 0 of sequence 0 is nan;"),
             ("hostile_task, nan_in: test", "dense", {}, 5, "diverged at step 10: the loss of a test batch is nan; input 0 at step 0 of sequence 0 is nan;"))
    for number, (task, recurrent, environment, code, sentence) in enumerate(cases):
        file.write_text(f"""name: ending
plugins: {settings.plugins}
task: {{plugin: {task}}}
model: {{cell: {{plugin: elman, hidden: 4}}, recurrent: {{plugin: {recurrent}}}}}
optimizer: {{plugin: adam}}
train: {{batch: 4, steps: 10, evaluate_every: 5}}
checkpoint: {{every: 5}}
""", encoding="utf-8")
        said = runner.end(runner.start("run", file, "--output", folder / str(number), environment=environment), code=code)
        assert sentence in said, said
        if recurrent == "hostile_static" or environment.get("HOSTILE_EXIT_CALL") == "1":  # before there is a folder
            continue
        directory = next((folder / str(number)).rglob("config.yaml")).parent
        check_opens(directory)
        assert sentence in (directory / "log.txt").read_text(encoding="utf-8")
        assert code == 5 or f"resume the run from its last checkpoint with: stiefel resume '{directory.resolve()}'" in said, said
        if code == 5:
            assert "Correct the data" in said and "learning rate" not in said, said
            with h5py.File(directory / "results.h5") as results, h5py.File(directory / "checkpoints/diverged.h5") as broken:
                assert results.attrs["state"] == "diverged" and np.isnan(broken["batch/inputs"][()]).all()
                assert "validation" not in task or np.isnan(results["epochs/valid_loss"][-1])
    return f"{len(cases)} runs named what ended them"


def last_step(progress):
    with open(progress, "rb") as file:
        file.seek(max(0, progress.stat().st_size - 4096))
        lines = file.read().splitlines()[:-1]  # the last may not be whole
    return json.loads(lines[-1])["step"] if lines else 0


def resident_kilobytes(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)[1])


def long(settings, folder, _):
    file = folder / "experiment.yaml"
    text = experiment("adding", "householder", "adam", settings.steps, evaluate_every=100, checkpoint="{every: 250, keep: 2}", patience=0)
    text = re.sub("record: .*", "record: {loss: 1, spectrum: 100, gradient_norms: 100, orthogonality: 100, scalars: 100}", text)
    file.write_text(text, encoding="utf-8")
    process = Runner(settings.program, folder).start("run", file, "--output", folder / "runs", "--threads", 2)
    samples = []  # (resident kB, descriptors)
    while process.poll() is None:
        time.sleep(0.002)
        for progress in (folder / "runs").rglob("progress.jsonl"):
            step = last_step(progress)
            if 0.4 * settings.steps < step < 0.9 * settings.steps:  # compacting results.h5 holds two of them: some 2 MB more, once
                samples.append((resident_kilobytes(process), len(os.listdir(f"/proc/{process.pid}/fd"))))
    Runner.end(process)
    assert len(samples) > 100, samples
    parts = [samples[i * len(samples) // 4:(i + 1) * len(samples) // 4] for i in range(4)]
    resident = [statistics.median(kilobytes for kilobytes, _ in part) for part in parts]
    counts = [[count for _, count in part] for part in parts]
    said = f"{settings.steps} steps: resident {resident} kB and {min(counts[0])} to {max(counts[0])} descriptors, at the end {min(counts[-1])} to {max(counts[-1])}"
    # A publish and a checkpoint have some more for a moment; one that each of them loses would be dozens at the end.
    assert min(counts[-1]) <= max(counts[0]) and resident[-1] - resident[0] <= 512, said
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("what", choices=("races", "signals", "readers", "determinism", "repeat", "streams", "stuck", "endings", "long"))
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--steps", type=int, default=30000, help="of long")
    parser.add_argument("--plugins", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(globals()[settings.what](settings, pathlib.Path(folder).resolve(), random.Random(settings.seed)))


if __name__ == "__main__":
    main()
