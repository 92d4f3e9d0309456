#!/usr/bin/python3
"""`stiefel top` on a terminal of several sizes, in a log, and once. usage: top_test.py STIEFEL"""
import fcntl
import json
import os
import pathlib
import pty
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

PROGRAM = os.path.abspath(sys.argv[1])
EXPERIMENT = """name: watched
task: {plugin: adding, length: 20, validation_sequences: 50, test_sequences: 50}
model: {cell: {plugin: elman, hidden: 8}, recurrent: dense}
optimizer: {plugin: adam, rate: 1e-3}
train: {batch: 10, steps: 400, evaluate_every: 50}
record: {loss: 1}
"""


def set_size(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))


def read_for(terminal, seconds):
    text, end = b"", time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            try:
                text += os.read(terminal, 65536)
            except OSError:  # the other side is closed
                break
    return text


class Top:
    """`stiefel top` on a separate terminal."""

    def __init__(self, folder, rows, columns, environment=None, ignored=()):
        self.mine, its = pty.openpty()
        set_size(self.mine, rows, columns)
        self.process = subprocess.Popen([PROGRAM, "top", str(folder), "--interval", "0.1"], stdin=its, stdout=its, stderr=its, start_new_session=True,
                                        env={"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **(environment or {})},
                                        preexec_fn=lambda: [signal.signal(number, signal.SIG_IGN) for number in ignored])
        os.close(its)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        if self.mine is not None:
            os.close(self.mine)

    def drawn(self, *texts, seconds=0.5):
        """What is drawn until each of the texts has been, for at most a minute, and then for some time."""
        drawn, end = b"", time.monotonic() + 60
        while not all(text.encode() in drawn for text in texts) and time.monotonic() < end and self.process.poll() is None:
            drawn += read_for(self.mine, 0.05)
        return (drawn + read_for(self.mine, seconds)).decode(errors="replace")

    def after(self, keys, *texts):
        os.write(self.mine, keys)
        return self.drawn(*texts)

    def resize(self, rows, columns):
        set_size(self.mine, rows, columns)
        self.process.send_signal(signal.SIGWINCH)
        self.drawn(seconds=0.3)
        assert self.process.poll() is None, (rows, columns, self.process.returncode)

    def hang_up(self):
        os.close(self.mine)
        self.mine = None

    def ends(self, code):
        assert self.process.wait(timeout=10) == code, self.process.returncode


def on_terminal(folder, run):
    """What is drawn; resized down to nothing and back, sorted, left by q."""
    with Top(folder, 24, 120) as top:
        drawn = top.drawn(run, "1 finished", "400", "█")
        assert run in drawn and "1 finished" in drawn and "400" in drawn and "█" in drawn, drawn
        assert len(top.drawn(seconds=1)) < len(drawn) / 2, "what does not change is drawn again"
        for rows, columns in ((3, 20), (1, 1), (2, 200), (50, 60)):
            top.resize(rows, columns)
        assert "loss" in top.after(b"s\x1bOB\x1b[6~", "loss")  # what comes next: sort by loss
        top.after(b"q")
        top.ends(0)


def make_run(folder, losses, log, seconds=None):
    """A run at half of its steps, each of which took so many seconds."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("name: made\n", encoding="utf-8")
    timed = lambda step: {"seconds": step * seconds} if seconds else {"step_seconds": 0.01}
    lines = [json.dumps({"step": step, "steps": 2 * len(losses), **timed(step), "loss": loss})
             for step, loss in enumerate(losses, 1)]
    (folder / "progress.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "log.txt").write_text(log, encoding="utf-8")


def names_that_are_long_or_wide(folder):
    make_run(folder / ("many words " * 10).strip() / "0123456789ab", [1, 0.5, 0.25], "failed: out of memory\n")
    make_run(folder / "直交" / "ba9876543210", [1, 0.5, 0.125], "finished: well\n")
    with Top(folder, 24, 80) as top:
        drawn = top.drawn("0.25", "0.125")
        assert "0.25" in drawn and "0.125" in drawn, drawn
        assert "many wor…3456789ab  failed" in drawn and "直交/ba9876543210   finished" in drawn, drawn  # in columns of the terminal
    with Top(folder, 24, 80, {"LC_ALL": "C", "NO_COLOR": "1"}) as top:
        drawn = top.drawn("??/ba9876543210")
        assert "??/ba9876543210" in drawn and drawn.isascii(), drawn
        assert not re.search(r"\x1b\[[\d;]*3\d[;m]", drawn), drawn
    with Top(folder, 24, 80, {"TERM": "dumb"}) as top:
        drawn = top.drawn("直交/ba9876543210")
        assert "\x1b" not in drawn and "直交/ba9876543210  finished  step 3" in drawn, drawn
        top.ends(0)


def sweep(folder):
    """Runs of a sweep have their values, and those that wait are shown, too."""
    (folder / "sweep.yaml").write_text("extends: [watched.yaml]\nname: planned\nsweep: {optimizer.rate: [1e-3, 1e-4, 1e-5]}\n", encoding="utf-8")
    subprocess.run([PROGRAM, "sweep", "run", "sweep.yaml", "--plan", "--quiet"], cwd=folder, check=True)
    first, *others = [line.split("\t") for line in (folder / "sweeps/planned/runs.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    make_run(folder / "sweeps/planned/runs/planned" / first[0], [1, 0.5], "finished: well\n", 100)
    once = subprocess.run([PROGRAM, "top", "sweeps/planned", "--once"], cwd=folder, capture_output=True, text=True, timeout=60, check=True).stdout
    assert re.search(f"^planned/{first[0]} optimizer.rate={first[1]}  +finished  +2  100%  +0.5  ", once, re.M), once
    for name, rate in others:
        assert re.search(f"^planned/{name} optimizer.rate={rate}  +waiting  ", once, re.M), once
    with Top(folder / "sweeps/planned", 24, 120) as top:
        drawn = top.drawn("2 waiting")
        assert re.search("3 runs, 1 finished, 2 waiting(?!, about)", drawn), drawn
    # 200 s of the run that another host works on, then one that waits, of the mean of 200 s and 400 s.
    running = folder / "sweeps/planned/runs/planned" / others[0][0]
    make_run(running, [1, 0.5], "", 100)
    lock = dict.fromkeys(("host", "boot", "namespace", "start", "since"), "other") | {"pid": 1}
    (running / "lock").write_text(json.dumps(lock), encoding="utf-8")
    with Top(folder / "sweeps/planned", 24, 120) as top:
        drawn = top.drawn("1 waiting")
        assert "3 runs, 1 finished, 1 running, 1 waiting, about 8 min 20 s left" in drawn, drawn
        assert "3 min 20 s" in drawn, drawn
    status = subprocess.run([PROGRAM, "sweep", "status", "sweeps/planned"], cwd=folder, capture_output=True, text=True, timeout=60, check=True).stdout
    assert status.splitlines()[0].endswith(" waiting, about 8 min 20 s left"), status


def damaged_or_foreign(folder, progress):
    """Whatever bits are flipped, `top` shows what the run has written, or nothing; of the file of another run nothing."""
    def shown():
        once = subprocess.run([PROGRAM, "top", "copied", "--once"], cwd=folder, capture_output=True, text=True, timeout=60, check=True)
        return once.stdout.splitlines()[1].split("  finished", 1)[1].split()
    lines = progress.read_bytes().splitlines(keepends=True)
    copy = folder / "copied" / progress.parent.name
    shutil.copytree(progress.parent, copy)
    whole = shown()
    assert "400" in whole and "100%" in whole, whole
    (copy / "progress.jsonl").write_bytes(b"".join(lines[:-1]))
    before = shown()
    rng = random.Random(1)
    for _ in range(20):
        last = bytearray(lines[-1])
        last[rng.randrange(len(last) - 1)] ^= 1 << rng.randrange(8)
        (copy / "progress.jsonl").write_bytes(b"".join(lines[:-1]) + last)
        assert shown() in (whole, before), (last, shown())
    (copy / "progress.jsonl").write_bytes(b"".join(lines))
    copy.rename(copy.with_name("0123456789"))
    assert not re.search(r"\d", "".join(shown())), shown()
    shutil.rmtree(folder / "copied")


def many_runs(folder):
    for number in range(300):
        make_run(folder / "made" / f"{number:012}", [1 / (number + 1)], "finished: well\n")
    with Top(folder, 24, 100) as top:
        drawn = top.drawn("300 runs, 300 finished", "made/000000000020")
        assert "300 runs, 300 finished" in drawn and "1-21 of 300" in drawn and "made/000000000020" in drawn and "made/000000000021" not in drawn, drawn
        drawn = top.after(b"\x1bOF", "279", "299")
        assert "279" in drawn and "299" in drawn and "278" not in drawn, drawn  # what differs from the first rows


def left_in_other_ways(folder):
    """By the keyboard's and other signals the terminal is given back; a terminal that has gone ends it, even if it ignores that signal."""
    for number in (signal.SIGINT, signal.SIGTERM):
        with Top(folder, 24, 80) as top:
            top.drawn("finished")
            top.process.send_signal(number)
            assert "\x1b[?1049l" in top.drawn("\x1b[?1049l")
            top.ends(128 + number)
    with Top(folder, 24, 80, ignored=[signal.SIGHUP]) as top:
        top.drawn("finished")
        top.hang_up()
        top.ends(0)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "watched.yaml").write_text(EXPERIMENT, encoding="utf-8")
        run = subprocess.Popen([PROGRAM, "run", "watched.yaml", "--quiet", "--threads", "1"], cwd=folder, stdout=subprocess.DEVNULL)
        while not list(folder.rglob("progress.jsonl")):
            assert run.poll() is None
            time.sleep(0.01)
        log = subprocess.run([PROGRAM, "top", "runs", "--interval", "0.05"], cwd=folder, capture_output=True, text=True, timeout=120, check=True)
        assert run.wait() == 0
        lines = log.stdout.splitlines()
        assert "\x1b" not in log.stdout and "\r" not in log.stdout, log.stdout
        assert lines[-1].startswith("watched/") and "finished" in lines[-1] and "step 400" in lines[-1] and "100%" in lines[-1], lines[-1]
        once = subprocess.run([PROGRAM, "top", "runs", "--once"], cwd=folder, capture_output=True, text=True, timeout=60, check=True).stdout
        assert len(once.splitlines()) == 2 and once.startswith("run "), once
        damaged_or_foreign(folder, next(folder.rglob("progress.jsonl")))
        (folder / "empty").mkdir()
        for words in (["--once"], []):
            none = subprocess.run([PROGRAM, "top", "empty", *words], cwd=folder, capture_output=True, text=True, timeout=60, check=True)
            assert none.stderr == "there are no runs in empty\n", none
        wrong = subprocess.run([PROGRAM, "top", "nothing"], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        assert wrong.returncode == 2 and "nothing" in wrong.stderr, wrong
        try:
            for descriptor in pty.openpty():
                os.close(descriptor)
        except OSError as error:
            print(f"skipped from here on, without a terminal: {error}")
            sys.exit(77)
        on_terminal(folder, next(folder.rglob("config.yaml")).parent.name)
        names_that_are_long_or_wide(folder / "wide")
        left_in_other_ways(folder / "wide")
        sweep(folder)
        many_runs(folder / "many")
    print("terminals of several sizes and kinds, a log, a table")


if __name__ == "__main__":
    main()
