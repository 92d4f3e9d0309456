#!/usr/bin/python3
"""Runs a fuzz target for some seconds, beginning with small sound files of its format.

usage: seeds.py NAME PROGRAM SECONDS
"""
import io
import subprocess
import sys
import tempfile
from pathlib import Path


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


def main():
    name, program, seconds = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(globals()[name]()):
            (Path(folder) / str(number)).write_bytes(seed if isinstance(seed, bytes) else seed.encode())
        return subprocess.run([program, f"-max_total_time={seconds}", "-rss_limit_mb=1024", "-timeout=10", "-max_len=4096",
                               f"-artifact_prefix={name}-", folder]).returncode


if __name__ == "__main__":
    sys.exit(main())
