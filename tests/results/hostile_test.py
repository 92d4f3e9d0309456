#!/usr/bin/python3
"""Result files that are damaged, foreign or malicious: `stiefel compare`, `export` and `diff` report them and continue.

usage: hostile_test.py STIEFEL [--times N] [--seed 1]

An intact result file is mutated in N ways. The commands must end within seconds and a bounded memory, with 0 or a code that says what
was wrong, and must still find an intact run next to the others.
"""
import argparse
import json
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from made_runs import TEXT  # pylint: disable=wrong-import-position

CODES = {0, 2, 4, 6, 8}
BATCH = 20
SECONDS, MEGABYTES = 120, 6000
EXPORTS = ("--csv", "--tensorboard")
EXPERIMENT = """name: hostile
task: {plugin: adding, length: 10, validation_sequences: 20, test_sequences: 20}
model:
  cell: {plugin: elman, hidden: 8}
  recurrent: {plugin: householder, reflections: 4}
optimizer: {plugin: adam, rate: 0.01}
train: {batch: 5, steps: 40, evaluate_every: 10}
record: {loss: 1, spectrum: 10, gradient_norms: 10, orthogonality: 10}
"""


# ---- bytes

def flip(data, rng):
    for _ in range(rng.choice((1, 1, 4, 64))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return data


def flip_head(data, rng):
    """Where the structure of the file is."""
    for _ in range(rng.choice((1, 2, 8))):
        data[rng.randrange(min(len(data), 4096))] ^= 1 << rng.randrange(8)
    return data


def cut(data, rng):
    return data[:rng.randrange(len(data))]


def zero(data, rng):
    at = rng.randrange(len(data))
    end = min(len(data), at + rng.choice((8, 512, 4096)))
    data[at:end] = bytes(end - at)
    return data


def scramble(data, rng):
    at, count = rng.randrange(len(data)), rng.choice((4, 8, 64))
    data[at:at + count] = rng.randbytes(count)
    return data


def splice(data, rng):
    count = rng.choice((16, 256, 2048))
    at, other = rng.randrange(len(data)), rng.randrange(len(data))
    data[at:at + count] = data[other:other + count]
    return data


def large_numbers(data, rng):
    """Sizes and addresses are 8 bytes: one of them becomes impossible."""
    at = rng.randrange(len(data) // 8) * 8
    data[at:at + 8] = rng.choice((2**63 - 1, 2**64 - 1, 2**40, len(data), 0)).to_bytes(8, "little")
    return data


# ---- what is in the file

def replace(file, path, **made):
    if path in file:
        del file[path]
    return file.create_dataset(path, **made)


def cyclic(file, rng):
    file[rng.choice(("epochs", "spectrum", "spectrum/recurrent", "gradient"))]["again"] = file[rng.choice(("/", "epochs", "spectrum"))]


def soft_link(file, rng):
    path = rng.choice(("epochs/valid_loss", "epochs", "config/yaml", "final"))
    del file[path]
    file[path] = h5py.SoftLink(rng.choice(("/steps/loss", "/nowhere", "/" + path, "/")))


def external_link(file, rng):
    path = rng.choice(("epochs/valid_loss", "epochs", "config", "steps"))
    del file[path]
    file[path] = h5py.ExternalLink(rng.choice(("/dev/zero", "/etc/passwd", "/proc/self/mem", "results.h5", "../whole/results.h5")), "/epochs")


def external_data(file, rng):
    path = rng.choice(("epochs/valid_loss", "steps/loss", "epochs/step"))
    del file[path]
    file.create_dataset(path, shape=(4,), dtype="f8", external=[(rng.choice(("/dev/zero", "/dev/random", "/etc/passwd")), 0, 32)])


def virtual(file, rng):
    path = rng.choice(("epochs/valid_loss", "steps/loss"))
    del file[path]
    layout = h5py.VirtualLayout(shape=(10**rng.choice((1, 6, 12)),), dtype="f8")
    layout[:4] = h5py.VirtualSource("/etc/passwd", "x", shape=(4,))
    file.create_virtual_dataset(path, layout)


def huge(file, rng):
    path = rng.choice(("epochs/valid_loss", "epochs/step", "steps/loss", "spectrum/recurrent/singular_values", "final/test_loss", "epochs/is_best"))
    size = 2**rng.choice((24, 29, 33, 40, 62))
    replace(file, path, shape=rng.choice(((size,), (size, 2), (2, size))), chunks=True, dtype="f8",
            fillvalue=1.0)


def bomb(file, rng):
    """Few bytes on the disk, much in memory."""
    path = rng.choice(("epochs/valid_loss", "steps/loss"))
    made = replace(file, path, shape=(2**rng.choice((22, 26)),), chunks=(2**22,), dtype="f8", compression="gzip")
    made[:2**22] = np.zeros(2**22)


def large_chunk(file, rng):
    replace(file, rng.choice(("epochs/valid_loss", "steps/loss")), shape=(4,), maxshape=(None,), chunks=(2**28,), dtype="f8", compression="gzip")


def wrong_type(file, rng):
    path = rng.choice(("epochs/valid_loss", "epochs/step", "epochs/is_best", "config/yaml", "provenance/plugins/name", "final/test_loss"))
    kind = rng.choice(("enum", "compound", "vlen", "reference", "opaque", "half", "big", "text", "region", "empty", "scalar", "array", "bool"))
    if kind == "enum":
        replace(file, path, data=np.zeros(4, "i4"), dtype=h5py.enum_dtype({"a": 0, "b": 1}))
    elif kind == "compound":
        replace(file, path, data=np.zeros(4, [("r", "f8"), ("i", "f8"), ("j", "S7")]))
    elif kind == "vlen":
        replace(file, path, shape=(4,), dtype=h5py.vlen_dtype(np.dtype("f8")))[0] = [1.0, 2.0]
    elif kind in ("reference", "region"):
        replace(file, path, shape=(4,), dtype=h5py.ref_dtype if kind == "reference" else h5py.regionref_dtype)
    elif kind == "opaque":
        replace(file, path, data=np.zeros(4, "V16"))
    elif kind == "empty":
        replace(file, path, data=h5py.Empty("f8"))
    elif kind == "scalar":
        replace(file, path, data=1.0)
    elif kind == "array":
        replace(file, path, shape=(4,), dtype=np.dtype(("f8", (3, 3))))
    elif kind == "text":
        replace(file, path, data=["x" * 10, "\x1b[2J", "ä", ""], dtype=TEXT)
    else:
        replace(file, path, data=np.ones(4, {"half": "<f2", "big": ">f8", "bool": "?"}[kind]))


def wrong_rank(file, rng):
    path = rng.choice(("epochs/valid_loss", "epochs/step", "epochs/is_best", "epochs/seconds", "steps/step", "spectrum/recurrent/k", "timing/phase"))
    replace(file, path, data=np.ones(rng.choice(((), (0,), (1,), (7,), (4, 0), (4, 4, 4), (1,) * 32))))


def wrong_attribute(file, rng):
    place, name = rng.choice((("/", "state"), ("/", "committed_step"), ("/", "title"), ("/status", "message"), ("/status", "best_step"),
                              ("/", "parameters"), ("/", "run_id"), ("/config", "hash"), ("/provenance", "hostname"), ("/epochs/valid_loss", "units")))
    value = rng.choice((1, 1e300, np.nan, np.arange(5), "", "../../..", "\x1b]0;x\x07", "x" * 60000, np.bytes_(b"\xff\xfe\x00"), h5py.Empty("f8"),
                        np.array(["a", "b"], dtype=TEXT), np.int64(-1), np.uint64(2**64 - 1)))
    file[place].attrs[name] = value


def lacking(file, rng):
    names = []
    file.visit(names.append)
    for name in rng.sample(names, 3):
        if name in file:
            del file[name]


def texts(file, rng):
    depth = 2000
    replace(file, "config/yaml", dtype=TEXT, data=rng.choice((
        "", "[" * depth, "a: &a [x]\nb: &b [*a, *a]\n" + "".join(f"c{i}: &c{i} [*b, *b, *b]\n" for i in range(99)), "- 1\n- 2", "a: 1\na: 2", "x" * 10**6,
        "? {a: b}\n: c", "name: \"\\x1b[2J\\n\"\nseed: '|,\"&%$'", "train: {select: 'a/b/../c', select_on: [1]}", "\tx: 1", "a: " + "{b: " * 90,
        "name: ../../../../tmp/evil\nseed: 1")))


def names(file, rng):
    name = rng.choice(("..", "a.b", "x" * 5000, "\x1b[31mred", "a\nb", "a,b", "\u202e", "é" * 200, '"', "=1+1"))
    group = file[rng.choice(("epochs", "final", "spectrum/recurrent"))]
    group.create_dataset(name, data=np.ones(len(group[list(group)[0]])))
    file.require_group("spectrum/" + name).create_dataset("snapshot", data=np.arange(3))


def many(file, rng):
    group = file["epochs"]
    for number in range(rng.choice((100, 6000))):
        group.create_dataset(f"d{number}", data=np.ones(4))


def deep(file, rng):
    group = file["spectrum"]
    for _ in range(rng.choice((10, 400))):
        group = group.create_group("g")


def wide(file, rng):
    replace(file, "epochs/wide", data=np.ones((len(file["epochs/step"]), rng.choice((10**3, 10**5)))))


def unequal_texts(file, rng):
    """As an array of texts of one length they would take gigabytes."""
    replace(file, rng.choice(("epochs", "timing", "steps")) + "/labels", data=["x"] * 2**rng.choice((8, 16)) + ["y" * 2**rng.choice((10, 20, 24))], dtype=TEXT)


BYTES = (flip, flip_head, cut, zero, scramble, splice, large_numbers)
CONTENT = (cyclic, soft_link, external_link, external_data, virtual, huge, bomb, large_chunk, wrong_type, wrong_rank, wrong_attribute, lacking, texts, names,
           many, deep, wide, unequal_texts)


# ---- files that are not result files

def foreign(path, rng):
    kind = rng.choice(("hdf5", "userblock", "text", "empty", "zeros", "signature", "folder", "fifo", "device", "loop", "unreadable"))
    if kind in ("hdf5", "userblock"):
        with h5py.File(path, "w", userblock_size=512 if kind == "userblock" else 0) as file:
            file["x/y"] = np.arange(10)
            file.attrs["state"] = "finished"
    elif kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "loop":
        path.symlink_to(path.name)
    else:
        path.write_bytes({"text": b"hello\n", "empty": b"", "zeros": bytes(10**5), "signature": b"\x89HDF\r\n\x1a\n" + bytes(range(256)) * 20,
                          "unreadable": b"x"}[kind])
        if kind == "unreadable":
            path.chmod(0)
    return kind


def mutate(whole, folder, number, rng):
    """A run in the folder with a result file that is not what it should be; returns what was done."""
    shutil.copytree(whole, folder)
    path = folder / "results.h5"
    if rng.random() < 0.3:
        os.remove(folder / "config.yaml")
    kind = rng.choice(BYTES) if rng.random() < 0.5 else rng.choice(CONTENT + (foreign,)) if number >= len(CONTENT) else CONTENT[number]
    if kind is foreign:
        os.remove(path)
        return f"foreign {foreign(path, rng)}"
    if kind in BYTES:
        path.write_bytes(kind(bytearray(path.read_bytes()), rng))
    else:
        with h5py.File(path, "r+", track_order=True) as file:
            kind(file, rng)
    return kind.__name__


def call(program, *words):
    """Exit code, what was said on both, seconds, MB of the largest process."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([program, *map(str, words)], stdout=out, stderr=err)
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired as late:
            process.kill()
            process.wait()
            raise AssertionError(f"{words} takes longer than {SECONDS} s") from late
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read())
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    assert process.returncode in CODES, (words, process.returncode, said)
    assert memory < MEGABYTES, (words, memory)
    assert not any(bad in part for part in said for bad in (b"\x1b", b"\x07")), (words, said)
    return process.returncode, said[0], said[1].decode(errors="replace"), time.monotonic() - begin, memory


class Seen:
    """Of all files: numbers of those read and refused by kind and of exit codes, the slowest command, the most memory."""

    def __init__(self):
        self.counts, self.codes, self.slowest, self.largest = {}, {}, (0, ""), 0

    def add(self, what, seconds, memory):
        self.slowest = max(self.slowest, (seconds, what))
        self.largest = max(self.largest, memory)


def examine(program, batch, kinds, rng, seen):
    """Every command on the runs of the folder, whose kinds are given by their names."""
    code, out, err, seconds, memory = call(program, "compare", batch, "--metric", "train_loss", "--json", "--by", "state")
    found = json.loads(out)
    assert code == (6 if found["unreadable"] else 0), err
    named = {pathlib.Path(run["path"]).name for group in found["groups"] for run in group["runs"]}
    refused = {pathlib.Path(run["path"]).name: run["reason"] for run in found["unreadable"]}
    assert "whole" in named and not named & refused.keys(), named
    assert all(refused.values()), refused
    seen.add(f"compare of {len(kinds)}", seconds, memory)
    for name, kind in kinds.items():
        action = ("export", batch / name, rng.choice(EXPORTS), "-o", batch / "out") if rng.random() < 0.8 else ("diff", batch / "whole", batch / name)
        code, out, err, seconds, memory = call(program, *action)
        assert code == 0 or err.startswith("stiefel: "), (name, kind, err)
        seen.add(f"{action[0]} of {kind}", seconds, memory)
        seen.counts.setdefault(kind, [0, 0])[0 if code == 0 else 1] += 1
        seen.codes[code] = seen.codes.get(code, 0) + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    settings = parser.parse_args()
    rng = random.Random(settings.seed)
    seen = Seen()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "experiment.yaml").write_text(EXPERIMENT, encoding="utf-8")
        subprocess.run([settings.program, "run", folder / "experiment.yaml", "--output", folder / "made", "--quiet", "--threads", "1"], check=True,
                       stdout=subprocess.DEVNULL)
        whole = next((folder / "made").rglob("results.h5")).parent
        shutil.rmtree(whole / "checkpoints")
        for first in range(0, settings.times, BATCH):
            batch = folder / "batch"
            shutil.copytree(whole, batch / "whole")
            kinds = {}
            for number in range(first, min(first + BATCH, settings.times)):
                kinds[f"run{number:05}"] = mutate(whole, batch / f"run{number:05}", number, rng)
            try:
                examine(settings.program, batch, kinds, rng, seen)
            except AssertionError:
                print(f"seed {settings.seed}, files from {first}; they are kept in {shutil.move(batch, tempfile.mkdtemp(prefix='hostile_'))}", flush=True)
                raise
            shutil.rmtree(batch)
    for kind, (read, refused) in sorted(seen.counts.items()):
        print(f"{kind:22} {read:6} read {refused:6} refused")
    print(f"{settings.times} files, exit codes {seen.codes}, slowest {seen.slowest[0]:.1f} s ({seen.slowest[1]}), most memory of a process {seen.largest} MB")


if __name__ == "__main__":
    main()
