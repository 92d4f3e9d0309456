#!/usr/bin/python3
"""Every file of experiments/ is valid, does a training step, and has the number of parameters that its first lines state.
published.yaml is not an experiment.

usage: experiments_test.py PROGRAM FOLDER. MNIST is replaced by a small set of blank images, the Penn Treebank by a few lines of its
characters, music by short scales, TIMIT and songs by noise, batches by two sequences.
"""
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import made_data
import made_sounds

PROGRAM, FOLDER = sys.argv[1], Path(sys.argv[2])


def stiefel(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300)


def check(file, data):
    """What is wrong with a file, or nothing."""
    valid = stiefel("validate", file, "--data", data)
    if valid.returncode:
        return f"{file}: {valid.stdout}{valid.stderr}"
    comment = "".join(line for line in file.read_text().splitlines(keepends=True) if line.startswith("#"))
    stated = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+)\s+(?:# )?parameters", comment.replace("\n# ", " "))]
    if not stated:
        return f"{file}: its first lines state no number of parameters"
    run = stiefel("run", file, "train.batch=2", "--threads", 1, "--dry-run", "--data", data)
    if run.returncode:
        return f"{file}: {run.stdout}{run.stderr}"
    found = [int(number) for number in re.findall(r"^(?:parameters|dimension) +(\d+)", run.stdout, re.M)]
    if stated[0] not in found:
        return f"{file}: states {stated[0]} parameters, but there are {' or '.join(map(str, found))}"
    return None


def main():
    files = sorted(file for file in FOLDER.rglob("*.yaml") if file != FOLDER / "papers/published.yaml")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        made_data.blank_mnist(Path(folder))
        made_data.short_treebank(Path(folder))
        made_data.short_music(Path(folder))
        made_sounds.write_whole(Path(folder) / "timit")
        made_sounds.write_song(Path(folder) / "song")
        wrong = [answer for answer in pool.map(lambda file: check(file, folder), files) if answer]
    print("\n".join(wrong) or f"{len(files)} experiments are valid, run, and have the parameters that they state")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
