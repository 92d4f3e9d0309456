#!/usr/bin/python3
"""Runs a fuzz target for some seconds, beginning with small files of its format.

usage: seeds.py NAME PROGRAM SECONDS
"""
import ctypes
import gzip
import io
import json
import math
import re
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

ROLLS = {"train": [[[60, 64, 67], [], [21, 108]], [[72], [72]]], "valid": [], "test": [[[60], [-1]]]}


def json_rolls():
    return [json.dumps(ROLLS), json.dumps(ROLLS).replace("72", "72.0").replace("valid", "validation")]


def mat():
    def seed(order):
        def element(kind, data):
            return struct.pack(order + "II", kind, len(data)) + data + bytes(-len(data) % 8)

        def matrix(kind, rows, columns, name, content):
            sizes = element(5, struct.pack(order + "ii", rows, columns))
            return element(14, element(6, struct.pack(order + "II", kind, 0)) + sizes + element(1, name) + content)

        def file(store):
            rolls = [matrix(6, 2, 88, b"", element(2, bytes(176))), matrix(6, 2, 88, b"", element(9, bytes(1408)))]
            cells = [matrix(1, 1, len(rolls), name, b"".join(rolls)) for name in (b"traindata", b"validdata", b"testdata")]
            return b"text".ljust(124) + struct.pack(order + "H", 0x0100) + (b"IM" if order == "<" else b"MI") + b"".join(map(store, cells))

        def compressed(data):
            packed = zlib.compress(data)
            return struct.pack(order + "II", 15, len(packed)) + packed

        return [file(lambda data: data), file(compressed)]
    return seed("<") + seed(">")


def rolls():
    return [b"\1" + seed for seed in mat()] + [b"\0" + seed.encode() for seed in json_rolls()]


def midi():
    def chunk(name, data):
        return name + struct.pack(">I", len(data)) + data

    events = b"\0\x90\x3c\x40\x83\x60\x3c\0" b"\0\xff\x51\x03\7\xa1\x20" b"\0\x91\x40\x40\x81\x70\x81\x40\x40" b"\0\xc0\5\0\xf0\1\xf7\0\xe0\0\x40"
    end = b"\0\xff\x2f\0"
    tracks = [chunk(b"MTrk", events + end), chunk(b"XFIH", b"abc") + chunk(b"MTrk", end)]
    return [chunk(b"MThd", struct.pack(">HHH", kind, kind + 1, 480)) + b"".join(tracks[:kind + 1]) for kind in (0, 1)]


def text():
    return ["", "one\ntwo \r\n <unk> N\n", "\ufeffgr\u00fc\u00dfe \u20ac \U0001f600\n"]


def csv():
    return ["a,b\n1,2\n3,4\n", '\ufeffx;"y ""z"""\r\n"1";2.5e-3\r\n']


def sequences():
    return ["id,x,y\na,1,2\na,2,\nb,3,1\n", 'id,x,z,y\n"a",1,2,red\nb,3,4,"blue"\n']


def npy():
    import numpy

    arrays = [numpy.zeros((2, 3)), numpy.zeros((2, 3, 4), "f4", order="F"), numpy.arange(5, dtype="u1"), numpy.array(7), numpy.zeros((0, 3))]
    files = []
    for array in arrays:
        file = io.BytesIO()
        numpy.save(file, array)
        files.append(file.getvalue())
    return files


def idx():
    plain = bytes((0, 0, 8, 3)) + struct.pack(">III", 3, 2, 2) + bytes(range(12))
    return [plain, gzip.compress(plain), bytes((0, 0, 8, 1)) + struct.pack(">I", 5) + b"abcde"]


def phones():
    return ["0 2260 h#\n2260 4070 sh\r\n4070\t5265  ax-h\n\n5265 5300 q"]


def timit():
    return ["TRAIN/DR1/FCJF0/SA1.WAV", "dr1-fvmh0/si836.wav"]


VALID = """name: first
task: {plugin: adding, length: 50}
model:
  cell: {plugin: elman, hidden: 16, activation: leaky_relu}
  recurrent: {plugin: householder, reflections: 4}
optimizer: {plugin: adam, rate: 1e-2}
train: {batch: 10, steps: 100, clip: {kind: norm, bound: 2}}
record: {loss: 0, blocks: {"activation.slope": 7}}
"""


def config():
    """Valid experiments, and all that config_golden_test expects to be refused."""
    folder = Path(__file__).resolve().parents[1] / "golden_errors"
    text = "\n".join(path.read_text() for path in sorted(folder.glob("*.txt")))
    cases = re.findall(r"^===== .*\n((?:.*\n)*?)-----\n", text, re.MULTILINE)
    refused = [re.sub(rb"<0x(..)>", lambda byte: bytes.fromhex(byte[1].decode()), case.encode()) for case in cases]
    lists = """name: "se\\tcond \\u00e9"
task: &t {plugin: copy, weights: [1, .5], symbols: [1, 2], one_hot: false}
model:
  cell: {plugin: lstm, hidden: 4}
  recurrent: dense
  maps: {forget: {plugin: scaled_cayley, route: dense}, "o.x": dense}
  input: {init: normal, scale: 0.1, embedding: {size: 3}}
optimizer:
  - {blocks: "recurrent.*", plugin: frozen}
  - {plugin: sgd, schedule: {kind: plateau, patience: 2}, weight_decay: 1e-4}
train: {epochs: 2, target: .5}
checkpoint: {every: 10, minutes: 0.5}
"""
    return [VALID, lists] + refused + [path.read_bytes() for path in sorted(folder.glob("base/*.yaml"))]


def overrides():
    return ["seed=2\nmodel.cell.hidden=256", 'record.blocks."activation.slope"=100\ntrain={steps: 5, clip: none}\nname="a b"', "optimizer.0.rate=1",
            "model.recurrent.plugin=scaled_cayley\nmodel.recurrent.init=zero\nmodel.recurrent.route=dense", "model.maps.forget.plugin=dense\n=\na..b=1",
            "task.plugin=copy\ntask.weights=[1, 2]\ntask.symbols=[]", "train.clip=elementwise\nmodel.cell=lstm\ntrain.steps=\ntrain.epochs=2",
            b'record.blocks."slope\xff"=100\ntrain.clip=none']


def index():
    entries = [{"file": f"step_{step:08}.h5", "step": step, "bytes": 12345, "sha256": f"{step:064x}"} for step in (10, 20, 123456789)]
    files = [{"file": file, "bytes": 12345, "sha256": "0" * 64} for file in ("best.h5", "best.h5", "results.h5")]
    whole = [json.dumps({"format_version": 2, "checkpoints": entries, "files": files[:count]}, indent=1) for count in range(4)]
    return [json.dumps({"format_version": 1, "checkpoints": entries[:count]}, indent=1) for count in range(4)] + whole + ["[" * 1000, "{}"]


def progress():
    line = json.dumps({"step": 1, "wall_time": 1.5, "step_seconds": 0.1, "loss": None}) + "\n"
    return ["", line, line + line[:9], "\0\n", "\n"]


def audio():
    """Sound by libsndfile: plain, mu-law, IMA ADPCM and GSM WAV, RIFX, RF64, FLAC, Vorbis, Opus, SPHERE."""
    class Info(ctypes.Structure):
        _fields_ = [("frames", ctypes.c_int64)] + [(name, ctypes.c_int) for name in ("rate", "channels", "format", "sections", "seekable")]

    library = ctypes.CDLL("libsndfile.so.1")
    library.sf_open.restype = ctypes.c_void_p
    samples = (ctypes.c_double * 600)(*(math.sin(0.01 * i * (1 + i / 100)) / 2 for i in range(600)))
    wav, nist, flac, ogg, rf64, big = 0x010000, 0x070000, 0x170000, 0x200000, 0x220000, 0x20000000
    files = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in (wav | 5, wav | 2, wav | 3, wav | 6, wav | 7, wav | 0x10, wav | 0x12, wav | 0x20, wav | big | 2, rf64 | 2, nist | 2, flac | 2, ogg | 0x60, ogg | 0x64):
            for channels in (1, 2):
                path, info = Path(folder) / f"{kind}-{channels}", Info(0, 8000, channels, kind, 0, 0)
                sound = library.sf_open(str(path).encode(), 0x20, ctypes.byref(info))
                if sound:  # not every coding has two channels
                    library.sf_writef_double(ctypes.c_void_p(sound), samples, ctypes.c_int64(600 // channels))
                    library.sf_close(ctypes.c_void_p(sound))
                    files.append(path.read_bytes())
    assert len(files) > 24, len(files)
    return files


def main():
    name, program, seconds = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(globals()[name]()):
            (Path(folder) / str(number)).write_bytes(seed if isinstance(seed, bytes) else seed.encode())
        return subprocess.run([program, f"-max_total_time={seconds}", "-rss_limit_mb=1024", "-timeout=10", "-max_len=16384",
                               f"-artifact_prefix={name}-", folder]).returncode


if __name__ == "__main__":
    sys.exit(main())
