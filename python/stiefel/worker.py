"""The process that runs a map, a task or an optimizer written in Python: worker.py FILE ROLE THREADS.

The plugin `python` starts it with a socket as descriptor 3, on which requests arrive and replies leave, and a pipe as
descriptor 4, whose other end closes when the program ends. Messages are sequences of fields: 'i' and 8 bytes, 'd' and 8
bytes, or 's', 4 bytes of length and text. A reply begins with an exit code of the program; unless that is 0, a
sentence follows. Numbers of arrays are in memory that the worker creates and shares with the program.
"""

from __future__ import annotations

import faulthandler
import fcntl
import importlib.util
import os
import signal
import socket
import struct
import sys
import textwrap
import traceback
import typing

_SOCKET, _LIFELINE = 3, 4
_LARGEST = 1 << 17  # bytes of a message
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)
_FRAMES = 20  # of a traceback, the innermost
_GROWTH = 1 << 30  # bytes of which the worker warns


def _find_package() -> None:
    """Makes `import stiefel` find the package of this file, whichever the interpreter has installed."""
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != folder]
    spec = importlib.util.spec_from_file_location(
        "stiefel", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec and spec.loader
    sys.modules["stiefel"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["stiefel"])


if __name__ == "__main__":
    _find_package()

from stiefel.process import Error
from stiefel.source import EXHAUSTED, PLUGIN, USAGE, Fault, Field, Source, end_if_forked


def encode(fields: typing.Iterable[Field]) -> bytes:
    message = bytearray()
    for field in fields:
        if isinstance(field, str):
            text = field.encode(errors="replace")
            message += b"s" + struct.pack("=I", len(text)) + text
        elif isinstance(field, float):
            message += b"d" + struct.pack("=d", field)
        else:
            message += b"i" + struct.pack("=q", field)
    return bytes(message)


def decode(message: bytes) -> list[typing.Any]:
    fields: list[typing.Any] = []
    place = 0
    while place < len(message):
        kind, place = message[place : place + 1], place + 1
        if kind == b"s":
            (size,) = struct.unpack_from("=I", message, place)
            fields.append(message[place + 4 : place + 4 + size].decode())
            place += 4 + size
        else:
            fields.append(struct.unpack_from("=d" if kind == b"d" else "=q", message, place)[0])
            place += 8
    return fields


class Channel:
    """The socket to the program."""

    def __init__(self, path: str):
        self._path = path
        self._socket = socket.socket(fileno=_SOCKET)
        self._socket.set_inheritable(False)

    def receive(self) -> list[typing.Any]:
        """The next request; empty once the program needs nothing more."""
        return decode(self._socket.recv(_LARGEST))

    def send(self, code: int, fields: typing.Iterable[Field], descriptor: int = -1) -> None:
        end_if_forked()
        message = encode([code, *fields])
        if len(message) > _LARGEST:
            message = encode(
                [PLUGIN, f"{self._path}: a reply of {len(message)} bytes; at most {_LARGEST} are possible"]
            )
        if descriptor < 0:
            self._socket.send(message)
        else:
            socket.send_fds(self._socket, [message], [descriptor])
            os.close(descriptor)


class Server:
    """Answers requests about the objects that it makes."""

    def __init__(self, source: Source):
        from stiefel import objects  # needs NumPy, which not every interpreter has

        self._source = source
        self._make, self._fields = {
            "parametrisation": (objects.MapObject, 3),
            "task": (objects.TaskObject, 4),
            "optimizer": (objects.OptimizerObject, 1),
        }[source.role]
        self._objects: dict[int, typing.Any] = {}
        self._made = 0

    def answer(self, verb: str, *fields: typing.Any) -> tuple[list[Field], int]:
        """The fields of a reply, and the descriptor of new memory or −1."""
        if verb == "create":
            folder, *given = fields
            os.chdir(folder)
            options = self._source.read_options(given[self._fields :])
            made: typing.Any = self._make(self._source, *given[: self._fields], options)
            created, descriptor = made.created()
            self._made += 1
            self._objects[self._made] = made
            return [self._made, *created], descriptor
        if verb == "delete":
            self._objects.pop(fields[0], None)
            return [], -1
        reply = getattr(self._objects[fields[0]], verb)(*fields[1:])
        return reply if isinstance(reply, tuple) else (reply, -1)


def _failure(error: BaseException, path: str, verb: str, fields: typing.Sequence[typing.Any] = ()) -> tuple[int, str]:
    """The exit code for an exception in a request, and a sentence with the traceback below it."""
    if isinstance(error, Fault):
        return error.code, str(error)
    if isinstance(error, Error) and verb == "create":
        return USAGE, str(error)
    if isinstance(error, SyntaxError) and error.filename == path:
        return USAGE, f"{path}:{error.lineno}:{error.offset}: {type(error).__name__}: {error.msg}"
    trace = error.__traceback__
    own = [frame for frame in traceback.extract_tb(trace) if frame.filename == path]
    while own and trace and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next  # from the method on
    below = "".join(traceback.format_exception(type(error), error, trace, limit=-_FRAMES))
    told = f"{type(error).__name__}: {error}".strip(": ").splitlines()[0]
    if isinstance(error, ModuleNotFoundError):
        told += f" in {sys.executable}; install it there, or name another interpreter with `python:` or STIEFEL_PYTHON"
    if isinstance(error, SystemExit):
        told = f"sys.exit({error.code!r}) was called; raise an exception instead"
    if verb == "batch":
        told += f" (in batch({('train', 'validation', 'test')[fields[1]]!r}, {fields[2]}))"
    code = EXHAUSTED if isinstance(error, MemoryError) else USAGE if verb == "import" else PLUGIN
    place = f"{path}:{own[-1].lineno}" if own else path
    return code, f"{place}: {told}\n{textwrap.indent(below, '  ')[:_LARGEST // 4].rstrip()}"


def _live_no_longer_than_the_program() -> None:
    """The kernel kills this process when the other end of the lifeline closes, whatever it is doing."""
    os.set_inheritable(_LIFELINE, False)
    fcntl.fcntl(_LIFELINE, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(_LIFELINE, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(_LIFELINE, fcntl.F_SETFL, fcntl.fcntl(_LIFELINE, fcntl.F_GETFL) | os.O_ASYNC)


def _leave_signals_to_the_program() -> None:
    """A signal to the whole group or job lets the program save the run, for which it needs this process."""

    def handle(action: typing.Any) -> None:
        for number in _STOPPING:
            signal.signal(number, action)

    handle(signal.SIG_IGN)
    os.register_at_fork(after_in_child=lambda: handle(signal.SIG_DFL))  # but not for processes of the user's


def _resident() -> int:
    """Bytes of memory that this process has resident."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _serve(source: Source, channel: Channel) -> None:
    """Answers requests until there are no more, and warns once if this process keeps growing."""
    server = Server(source)
    requests, before, warned = 0, 0, False
    while request := channel.receive():
        verb, *fields = request
        try:
            reply, descriptor = server.answer(verb, *fields)
            code = 0
        except BaseException as error:  # noqa: BLE001 — also sys.exit
            code, sentence = _failure(error, source.path, verb, fields)
            reply, descriptor = [sentence], -1
        channel.send(code, reply, descriptor)
        requests += 1
        if requests % 16 == 0 and not warned:
            before = before or _resident()
            warned = _resident() - before > _GROWTH
            if warned:
                print(
                    f"warning: the Python process of {source.path} has grown by more than 1 GiB since it began; "
                    "something keeps what each call allocates",
                    file=sys.stderr,
                )


def main(path: str, role: str, threads: str) -> None:
    _live_no_longer_than_the_program()
    _leave_signals_to_the_program()
    faulthandler.enable()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = threads
    if threads == "1":
        os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    channel = Channel(path)
    try:
        if importlib.util.find_spec("numpy") is None:
            raise Fault(
                f"{sys.executable} has no NumPy: install it there, or name another interpreter with `python:` or "
                "STIEFEL_PYTHON",
                USAGE,
            )
        importlib.import_module("numpy")
        source = Source(path, role)
        ready = source.ready()
    except BaseException as error:  # noqa: BLE001 — also sys.exit
        code, sentence = _failure(error, path, "import")
        channel.send(code, [sentence])
    else:
        channel.send(0, ready)
        _serve(source, channel)


if __name__ == "__main__":
    main(*sys.argv[1:])
