"""The program as a child process: its errors are stiefel.Error, and an interrupt stops it as Ctrl-C does."""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import typing
import warnings
from collections.abc import Callable, Iterable

import stiefel
from stiefel import command

Path = typing.Union[str, "os.PathLike[str]"]


class Error(RuntimeError):
    """What failed, in the words of the program or of this package."""

    message: str
    """What is wrong, where, and what to do."""
    file: str | None
    """The file with the error, if the message names a place in one."""
    line: int | None
    """The line in this file, from 1."""
    column: int | None
    """The column in this line, from 1."""
    exit_code: int | None
    """The exit code of the program (docs/RUNNING.md lists them), or None if it was not started."""
    log: str
    """The last lines that the program printed."""

    def __init__(self, message: str, exit_code: int | None = None, log: str = ""):
        super().__init__(message)
        self.message, self.exit_code, self.log = message, exit_code, log
        place = re.match(r"([^\n]+?):(\d+):(?:(\d+):)? ", message)
        self.file = place[1] if place else None
        self.line = int(place[2]) if place else None
        self.column = int(place[3]) if place and place[3] else None

    def __reduce__(self) -> tuple[typing.Any, ...]:
        return Error, (self.message, self.exit_code, self.log)


def program() -> str:
    """The path of the program, which must have the version of the package."""
    try:
        path = command.program()
        version = _version(path, os.stat(path).st_mtime_ns)
    except OSError as error:
        raise Error(str(error)) from None
    if version != stiefel.__version__:
        raise Error(
            f"{path} is {version}, but this package is version {stiefel.__version__}; install the same version of both"
        )
    return path


@functools.cache
def _version(path: str, _: int) -> str:
    """The version of the program in a file, again if the file has changed."""
    ended = subprocess.run(
        [path, "--version"], check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
    )
    found = re.match(r"stiefel (\S+)", ended.stdout)
    if not found:
        told = ended.stderr.strip() or f"its exit code is {ended.returncode}"
        raise Error(f"{path} --version does not print the version: {told}", ended.returncode, told)
    return found[1]


class Child:
    """The program at work on a command."""

    def __init__(self, words: Iterable[Path]):
        self._words = [program(), *(os.fspath(word) for word in words)]
        self._process: subprocess.Popen[bytes] | None = None
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self._ended: tuple[str, str] | None = None

    def wait(self, watch: Callable[[], None] = lambda: None) -> int:
        """Starts it, waits for its end, calls `watch` ten times a second, and returns the exit code.

        It has its own session: an interrupt of a terminal or of a kernel reaches it once, through _stop(). If this
        process dies, the program gets SIGTERM and saves its run. Raises Error if it cannot be started.
        """
        pause, watched = 0.001, 0.0
        with self._out, self._err:
            try:
                self._process = self._started()
                while self._process.poll() is None:
                    time.sleep(pause)
                    pause = min(2 * pause, 0.02)
                    if time.monotonic() - watched > 0.1:
                        watched = time.monotonic()
                        watch()
                watch()
            finally:  # an interrupt, or an exception of `watch`
                self._stop()
                self._ended = self.printed(), self.told()
        code = int(self._process.returncode)
        return code if code >= 0 else 128 - code

    def _started(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=self._out,
                stderr=self._err,
                env={**os.environ, "STIEFEL_PARENT": str(os.getpid())},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # such as too long arguments
            raise Error(f"{self._words[0]} cannot be started: {error}") from None

    def _stop(self) -> None:
        """Stops it with a checkpoint if it still runs. A second interrupt, over a second later, ends it at once."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGINT)
        stopped = time.monotonic()
        while self._process.poll() is None:
            try:
                time.sleep(0.02)
            except KeyboardInterrupt:
                if time.monotonic() - stopped > 1:
                    self._process.kill()

    def printed(self) -> str:
        """What it has printed to standard output."""
        return self._ended[0] if self._ended else _content(self._out)

    def told(self) -> str:
        """What it has printed to standard error."""
        return self._ended[1] if self._ended else _content(self._err)

    def error(self, code: int) -> Error:
        """Why it ended with this exit code."""
        told = self.told()
        found = re.search(r"^stiefel: (.*)", told, re.MULTILINE | re.DOTALL)
        stopped = self.printed().partition("\nresults: ")[0].strip()  # by a signal that another process sent
        message = found[1].strip() if found else stopped or f"the program ended with exit code {code}"
        return Error(message, code, "\n".join(told.splitlines()[-20:]))


def _content(file: typing.Any) -> str:
    size = os.fstat(file.fileno()).st_size
    return os.fsdecode(os.pread(file.fileno(), size, 0))  # names of files need not be UTF-8


def call(words: Iterable[Path], allowed: tuple[int, ...] = ()) -> str:
    """What a command prints. Raises Error if it fails, except if it prints and its exit code is allowed."""
    child = Child(words)
    code = child.wait()
    if code and (code not in allowed or not child.printed()):
        raise child.error(code)
    pass_warnings(child.told())
    return child.printed()


def pass_warnings(told: str) -> None:
    """Warns of what the program has warned of."""
    for sentence in re.findall(r"^warning: (.*)", told, re.MULTILINE):
        warn(sentence)


def warn(sentence: str) -> None:
    """A warning at the line that called the package."""
    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("stiefel."):
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, stacklevel=level)
