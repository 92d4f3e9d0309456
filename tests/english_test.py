#!/usr/bin/python3
"""Messages and help texts avoid phrases that read as translated. usage: english_test.py SOURCE"""
import pathlib
import re
import sys

PHRASES = re.compile(r"\b((?<!there )is no (?!longer\b|more\b)|beside\b|goes? on\b|is told\b|at first\b|so many\b|of (its|their) own\b|by (itself|themselves)\b"
                     r"|cannot be had\b|comes? by\b|cannot be told\b)")
LITERAL = re.compile(r'//[^\n]*|"((?:[^"\\\n]|\\.)*)"')


def faults(file):
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        for literal in LITERAL.finditer(line):
            if found := PHRASES.search(literal[1] or ""):
                yield f"{file}:{number}: {found[0]!r} in {literal[0]}"


def main(root):
    files = [file for folder in ("core", "results", "tasks", "plugins", "optimizers") for suffix in ("cpp", "hpp")
             for file in sorted((root / folder).rglob("*." + suffix)) if not file.name.startswith("pickle")]
    wrong = [fault for file in files for fault in faults(file)]
    print("\n".join(wrong) or f"{len(files)} files are free of these phrases")
    return bool(wrong) or len(files) < 300


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
