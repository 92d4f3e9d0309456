#!/usr/bin/python3
"""`stiefel top` on a terminal of several sizes, in a log, and once. usage: top_test.py STIEFEL"""
import fcntl
import os
import pathlib
import pty
import select
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
    return text.decode(errors="replace")


def on_terminal(folder, run):
    """What is drawn; resized down to nothing and back, sorted, left by q."""
    mine, its = pty.openpty()
    set_size(mine, 24, 120)
    environment = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    process = subprocess.Popen([PROGRAM, "top", str(folder), "--interval", "0.1"], stdin=its, stdout=its, stderr=its, env=environment)
    os.close(its)
    try:
        drawn = read_for(mine, 1.5)
        assert run in drawn and "1 finished" in drawn and "400" in drawn and "█" in drawn, drawn
        first = len(drawn)
        assert len(read_for(mine, 1)) < first / 2, "what does not change is drawn again"
        for rows, columns in ((3, 20), (1, 1), (2, 200), (50, 60)):
            set_size(mine, rows, columns)
            process.send_signal(28)  # SIGWINCH
            read_for(mine, 0.3)
            assert process.poll() is None, (rows, columns, process.returncode)
        os.write(mine, b"s\x1b[B\x1b[6~")
        assert "loss" in read_for(mine, 0.5)  # what comes next: sort by loss
        os.write(mine, b"q")
        read_for(mine, 0.5)
        assert process.wait(timeout=10) == 0
    finally:
        process.kill()
    os.close(mine)


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
        assert lines[-1].startswith("watched/") and "finished" in lines[-1] and "step 400" in lines[-1] and "100 %" in lines[-1], lines[-1]
        once = subprocess.run([PROGRAM, "top", "runs", "--once"], cwd=folder, capture_output=True, text=True, timeout=60, check=True).stdout
        assert len(once.splitlines()) == 2 and once.startswith("run "), once
        wrong = subprocess.run([PROGRAM, "top", "nothing"], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        assert wrong.returncode == 2 and "nothing" in wrong.stderr, wrong
        on_terminal(folder, next(folder.rglob("config.yaml")).parent.name)
    print("a terminal of six sizes, a log, a table")


if __name__ == "__main__":
    main()
