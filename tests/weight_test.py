#!/usr/bin/python3
"""No part of the source tree outgrows what tests/weights.txt allows it.

usage: weight_test.py ROOT

The weight of a file is its number of characters other than blanks, which formatting does not change.
"""
import pathlib
import sys

from support import source_files

COUNTED = (".cpp", ".hpp", ".h", ".in", ".js", ".css", ".py")


def main():
    root = pathlib.Path(sys.argv[1])
    weights = {name: sum(not character.isspace() for character in (root / name).read_text())
               for name in source_files(root) if name.endswith(COUNTED)}
    faults, counted = [], set()
    for line in (root / "tests/weights.txt").read_text().splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        limit, part = int(words[0].replace(",", "")), " and ".join(words[1:])
        inside = {name for name in weights if name.startswith(tuple(folder + "/" for folder in words[1:]))}
        weight = sum(weights[name] for name in inside)
        counted |= inside
        print(f"{weight:>9,} of {limit:>9,}  {part}")
        if weight > limit:
            faults.append(f"{part}: {weight:,} characters, {weight - limit:,} more than tests/weights.txt allows; make it simpler, or "
                          "raise the limit in a commit that says for what")
        if not inside:
            faults.append(f"{part}: no file is there; correct tests/weights.txt")
    if (root / ".git").exists():  # else a folder of one's own cannot be told apart
        faults += [f"{name}: tests/weights.txt has no folder that it is in" for name in sorted(weights.keys() - counted)]
    print("\n".join(faults), file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
