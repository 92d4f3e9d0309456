#!/usr/bin/python3
"""Finds phrases that read as translated, in what users and authors of plugins read.

    words_test.py SOURCE PROGRAM

Searched are string literals of C++ files, what the program's --help prints, comments of the SDK's headers, and Markdown.
"""
import pathlib
import re
import subprocess
import sys

from support import source_files

PHRASES = {
    r"(?<!there\s)is no (?!longer|more|less|fewer|need)\w+": "is not a …, or: must be …, got …",
    r"beside": "next to, in addition to",
    r"goe?s? on": "continues, resumes",
    r"is told": "is reported",
    r"at first": "initially",
    r"so many": "that many",
    r"of (its|their) own": "its own, separate",
    r"by (itself|themselves)": "automatically, alone",
    r"can(not)? be had": "is (not) available, cannot load",
    r"cannot be told": "cannot tell, is unknown",
    r"comes? by": "obtain",
}
PATTERN = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b".replace(" ", r"\s+"), re.I)

# Where such a phrase is right: (end of the file's name, text around it, why). Ten at most.
ALLOWED = []

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|R"(?P<mark>\w*)\((?P<raw>.*?)\)(?P=mark)"|(?P<text>"(?:\\.|[^"\\\n])*")|\d[\d']*|'(?:\\.|[^'\\\n])*'""", re.S)


def kept(source, part):
    """The source with everything but its comments, or but its string literals, made unreadable; lines stay where they are."""
    result, end = [], 0

    def hide(text):
        return re.sub(r"\S", "\0", text)

    for token in TOKEN.finditer(source):
        result.append(hide(source[end:token.start()]))
        end = token.end()
        if part == "comment" and token["comment"]:
            result.append(re.sub(r"/{2,3}<?|/\*+|\*/", lambda mark: " " * len(mark[0]), token[0]))
        elif part == "literal" and (token["text"] or token["raw"] is not None):
            inner = token["text"] or token[0]
            result.append(" " + inner[1:-1].replace("\\n", "  ") + " ")
        else:
            result.append(hide(token[0]))
    return "".join(result) + hide(source[end:])


def texts(root, program):
    """(name, text) of everything that is searched."""
    for name in source_files(root, "--others"):
        path = root / name
        if name.endswith(".md"):
            yield name, path.read_text()
        elif name.endswith((".cpp", ".hpp", ".hpp.in")) and name.split("/")[0] in ("core", "plugins", "tasks", "optimizers", "results"):
            source = path.read_text()
            yield name, kept(source, "literal")
            if name.startswith("core/include/stiefel/"):
                yield name, kept(source, "comment")

    def printed(*arguments):
        return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^  (\w+) ", printed("--help"), re.M)
    assert len(commands) > 10, "stiefel --help lists its commands"
    yield "stiefel --help", printed("--help")
    for command in commands:
        yield f"stiefel {command} --help", printed(command, "--help")


def main(root, program):
    assert len(ALLOWED) <= 10, "at most ten exceptions"
    found, used, searched = [], set(), 0
    for name, text in texts(pathlib.Path(root).resolve(), program):
        searched += 1
        for match in PATTERN.finditer(text):
            around = " ".join(text[max(0, match.start() - 40):match.end() + 40].replace("\0", " ").split())
            exception = next((entry for entry in ALLOWED if name.endswith(entry[0]) and entry[1] in around), None)
            if exception:
                used.add(exception)
            else:
                found.append(f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {around}")
    assert searched > 300, f"only {searched} texts were found below {root}"
    found += [f"no longer needed in ALLOWED: {entry}" for entry in ALLOWED if entry not in used]
    if found:
        print("\n".join(found))
        print("Write instead:", *(f"  {phrase}: {better}" for phrase, better in PHRASES.items()), sep="\n")
        sys.exit(f"{len(found)} phrases that read as translated")
    print(f"{searched} texts are free of such phrases")


main(*sys.argv[1:])
