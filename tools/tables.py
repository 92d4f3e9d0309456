"""What the programs that measure have in common: which stiefel, the command line as it may be shown, and tables."""
import os
import pathlib
import shlex
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[1]


def find_program(named):
    """The stiefel that is named, else the one in build/release/bin, else that of PATH; nothing if there is none."""
    built = ROOT / "build/release/bin/stiefel"
    program = named or (built if built.exists() else shutil.which("stiefel"))
    return str(program) if program and shutil.which(program) else None


def shown_command(program, words):
    """The command line without folders of this machine."""
    def shown(word):
        option, equals, value = word.rpartition("=")
        return f"{option}{equals}{pathlib.Path(value).name if os.path.isabs(value) else value}"
    return shlex.join([program, *map(shown, words)])


def markdown_table(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])
