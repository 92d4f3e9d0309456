"""How far a run or a sweep is: a bar of tqdm, or lines on a terminal."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import typing


class Bar:
    """Shows steps out of a total: a bar of tqdm, a widget in a notebook; without tqdm, a line every few seconds."""

    def __init__(self, name: str, unit: str, total: int, done: int):
        self._unit, self._total, self._done = unit, total, done
        self._name, self._first, self._begun = name, done, time.monotonic()
        self._printed = self._begun
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._bar: typing.Any = None
        else:
            self._bar = tqdm(desc=name, unit=unit, total=total, initial=done)

    def show(self, done: int, **values: float) -> None:
        """Shows the steps done and other numbers, such as the loss."""
        if self._bar is not None:
            self._bar.set_postfix({name: f"{value:.4g}" for name, value in values.items()}, refresh=False)
            self._bar.update(done - self._bar.n)
            return
        now = time.monotonic()
        last = done == self._total and done > self._done
        self._done = done
        if last or now - self._printed > 5:
            self._printed = now
            rate = (done - self._first) / max(now - self._begun, 1e-9)
            parts = [f"{self._name}: {self._unit} {done} of {self._total}"]
            parts += [f"{name} {value:.4g}" for name, value in values.items()]
            if rate > 0:
                parts += [f"{rate:.3g} {self._unit}s/s", f"{(self._total - done) / rate:.0f} s left"]
            print(", ".join(parts), file=sys.stderr)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def is_shown(progress: bool | None) -> bool:
    """Whether to show progress: as asked, or, by default, on a terminal and in a notebook."""
    if progress is not None:
        return progress
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


def last_step(path: str | os.PathLike[str]) -> dict[str, typing.Any]:
    """The last line of progress.jsonl that is about a training step; empty if there is none yet.

    Lines that are damaged or of another run are left out.
    """
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 65536))
            lines = file.read().split(b"\n")[:-1]  # the last may lack its end
    except OSError:
        return {}
    run = os.path.basename(os.path.dirname(os.path.realpath(path)))
    for line in reversed(lines):
        checked, _, check = line.rpartition(b',"check":"')
        if b'"loss":' in checked and checked.startswith(b'{"step":') and check == _check(run, checked) + b'"}':
            return json.loads(line)
    return {}


def _check(run: str, line: bytes) -> bytes:
    """Of a line of progress.jsonl without its last key, in the folder with this name."""
    return hashlib.sha256(os.fsencode(run) + b"\n" + line).hexdigest()[:8].encode()
