"""Real runs, their reports, and what the tests read from a page. The first argument is the program."""
import contextlib
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

import h5py
import numpy

import runs

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<img src=x onerror=alert(1)> \"'&"


@contextlib.contextmanager
def empty_folder():
    with tempfile.TemporaryDirectory() as folder:
        yield pathlib.Path(folder)


def report(*words, folder, expected=0):
    done = subprocess.run([PROGRAM, "report", *map(str, words)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == expected, done.stderr
    return done


def figures(html):
    """The figures of a page by their names."""
    found = [xml.fromstring(text) for text in re.findall(r"<figure .*?</figure>", html, re.S)]
    return {figure.get("id"): figure for figure in found}


def read(folder, path):
    with h5py.File(folder / "results.h5") as file:
        return file[path][()]


class Made:
    """Real runs and their reports, made once."""
    steps = 10**6  # of the longest

    @classmethod
    def setUpClass(cls):
        if not hasattr(Made, "folder"):
            Made.scratch = tempfile.TemporaryDirectory()
            Made.folder = pathlib.Path(Made.scratch.name)
            Made.sweep = runs.make_sweep(PROGRAM, Made.folder)
            Made.generation = runs.make_generation(PROGRAM, Made.folder)
            report("runs/three maps", "-o", "sweep.html", "--title", "Adding: three maps", folder=Made.folder)
            report(Made.generation, "-o", "generation.html", folder=Made.folder)
            Made.page = Made.folder / "sweep.html"
            Made.figures = figures(Made.page.read_text())
            Made.long_losses = numpy.stack([runs.make_long(Made.sweep["elman, householder"][0], Made.folder / "long" / str(seed), cls.steps, seed) for seed in (1, 2)])
            report("long", "-o", "long.html", folder=Made.folder)
