#!/usr/bin/python3
"""Every file of experiments/ is valid, does a training step, has the number of parameters that its first lines state, and the run IDs of
golden/run_ids.txt. published.yaml is not an experiment.

usage: experiments_test.py PROGRAM FOLDER [--write], which writes golden/run_ids.txt: a change of an ID makes finished runs train again. MNIST is replaced by a small set of blank images, the Penn Treebank by a few lines of its
characters, music by short scales, TIMIT and songs by noise, batches by two sequences.
"""
import hashlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import made_data
import made_sounds

PROGRAM, FOLDER = sys.argv[1], Path(sys.argv[2])
GOLDEN = Path(__file__).parent / "golden/run_ids.txt"
IDS = dict(line.split() for line in GOLDEN.read_text().splitlines()) if GOLDEN.exists() else {}


def stiefel(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300)


def run_id(file, validated):
    """The ID of the run, or a hash of those of a sweep."""
    if single := re.search(r"^  run +\S+/(\w+)", validated, re.M):
        return single[1]
    listed = stiefel("sweep", "run", "--dry-run", file).stdout.splitlines()[1:]
    return hashlib.sha256("\n".join(sorted(line.split("\t")[0] for line in listed)).encode()).hexdigest()[:10]


def check(file, data):
    """What is wrong with a file, or nothing."""
    valid = stiefel("validate", file, "--data", data)
    if valid.returncode:
        return f"{file}: {valid.stdout}{valid.stderr}"
    name, found = str(file.relative_to(FOLDER)), run_id(file, valid.stdout)
    if "--write" in sys.argv:
        IDS[name] = found
        return None
    if IDS.get(name) != found:
        return f"{file}: its run ID is {found}, not {IDS.get(name)}; if finished runs of users shall train again, add --write to {' '.join(sys.argv)}"
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
    if "--write" in sys.argv:
        GOLDEN.write_text("".join(f"{name} {found}\n" for name, found in sorted(IDS.items())))
    print("\n".join(wrong) or f"{len(files)} experiments are valid, run, and have the parameters that they state")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
