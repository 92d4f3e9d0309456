"""The program `stiefel`: where it is, and the command of the installed package, which becomes it.

Nothing here imports NumPy, h5py or PyYAML, so that the command starts as fast as the program.
"""

from __future__ import annotations

import os
import sys


def prefix() -> str:
    """The package's folder. In a wheel, it holds bin, lib, include and share of an installation."""
    return os.path.dirname(os.path.abspath(__file__))


def program() -> str:
    """The path of the program: the one inside the package, else the first on the PATH.

    Raises FileNotFoundError if there is none.
    """
    own = os.path.join(prefix(), "bin", "stiefel")
    if os.path.isfile(own):
        return own
    for folder in os.get_exec_path():
        found = os.path.abspath(os.path.join(folder, "stiefel"))
        if os.path.isfile(found) and os.access(found, os.X_OK) and not _is_this_command(found):
            return found
    raise FileNotFoundError(
        f"there is no program `stiefel`, neither in {os.path.dirname(own)} nor on the PATH; "
        "install a wheel of stiefel, or add the folder `bin` of a build to the PATH"
    )


def _is_this_command(path: str) -> bool:
    """Whether a file is the script that calls main(), which pip also puts on the PATH."""
    with open(path, "rb") as file:
        return b"stiefel.command" in file.read(2048) if file.read(2) == b"#!" else False


def main() -> None:
    """Becomes the program, with the same arguments."""
    try:
        path = program()
        again = f"{os.getpid()} {path}"
        if os.environ.get("STIEFEL_COMMAND") == again:  # as scripts of pyenv do
            raise FileNotFoundError(f"{path} starts this command again; put the program's folder before it on the PATH")
        os.environ["STIEFEL_COMMAND"] = again
        os.environ.setdefault("STIEFEL_PYTHON", sys.executable or "")  # what `data fetch` of a wheel downloads with
        os.execv(path, [path, *sys.argv[1:]])
    except OSError as error:
        print(f"stiefel: {error}", file=sys.stderr)
        sys.exit(127)
