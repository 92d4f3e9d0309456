#!/usr/bin/python3
"""The code of docs/notebook.ipynb runs, and prints what the notebook shows; without the kernels of the documents, other numbers.

usage: notebook_test.py PYTHON_FOLDER STIEFEL SOURCE
"""
import contextlib
import io
import json
import os
import pathlib
import re
import sys
import tempfile

PACKAGE, PROGRAM, SOURCE = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
sys.path[:0] = [str(PACKAGE), str(SOURCE / "tests/journeys")]
try:
    import matplotlib
    import torch
    import pandas
    import xarray
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
matplotlib.use("Agg")
import matplotlib.pyplot as plt
from document import kernels_of, shows


def masked(text):
    """Without numbers that training ends with and the order that they give."""
    lines = [re.sub(r"\d+\.\d+(e-\d+)?", "#", " ".join(line.split())) for line in text.splitlines()]
    return sorted(re.sub(r"\b\d+ #", "N #", line) for line in lines)


def main():
    notebook = json.loads((SOURCE / "docs/notebook.ipynb").read_text(encoding="utf-8"))
    os.environ["PATH"] = f"{PROGRAM.parent}:{os.environ['PATH']}"
    names, figures, faults, kernels = {}, [], [], kernels_of(PROGRAM)
    os.environ.update(kernels)
    plt.show = lambda: figures.append(plt.gcf())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] != "code":
                continue
            printed, figures[:] = io.StringIO(), []
            with contextlib.redirect_stdout(printed):
                exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)  # pylint: disable=exec-used
            kinds = [output["output_type"] for output in cell["outputs"]]
            shown = "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")
            texts = shown, printed.getvalue()
            agree = shows(*(text.splitlines() for text in texts), True) if kernels else masked(texts[0]) == masked(texts[1])
            if "error" in kinds or not agree:
                faults.append(f"cell {number} shows\n{shown}\nand prints\n{printed.getvalue()}")
            if kinds.count("display_data") != len(figures):
                faults.append(f"cell {number} shows {kinds.count('display_data')} figures and draws {len(figures)}")
        os.chdir("/")
    if faults or not any(cell.get("outputs") for cell in notebook["cells"]):
        sys.exit("\n".join(faults) or "the notebook shows no outputs")
    print(f"{len(notebook['cells'])} cells, matplotlib {matplotlib.__version__}, pandas {pandas.__version__}, xarray {xarray.__version__}")


main()
