#!/usr/bin/python3
"""The network of docs/FROM_PYTORCH.md, trained by PyTorch and by stiefel, has the same size and learns about as well.

usage: from_pytorch_test.py PYTHON_FOLDER STIEFEL DOCUMENT
"""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "journeys"))
import document

try:
    import numpy
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

_, _, program, page = sys.argv
parts = {info: content for _, info, content in document.blocks(pathlib.Path(page).read_text(encoding="utf-8"))}
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for info, file in (("python ranges.py", "ranges.py"), ("python not-run", "torch_ranges.py"), ("yaml ranges.yaml", "ranges.yaml")):
        (folder / file).write_text(parts[info] + ("\nprint('parameters', sum(p.numel() for p in parameters))\n" if file == "torch_ranges.py" else ""))

    def said(*words):
        return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout
    said(sys.executable, "ranges.py")
    theirs = said(sys.executable, "torch_ranges.py")
    ours, plan = said(pathlib.Path(program).resolve(), "run", "ranges.yaml"), said(pathlib.Path(program).resolve(), "run", "ranges.yaml", "name=plan", "--dry-run")
    loss_of = {"PyTorch": float(re.search(r"test loss (\S+)", theirs)[1]), "stiefel": float(re.search(r"test loss (\S+)", ours)[1])}
    constant = float(re.search(r"constant predictor: ([^)]+)\)", ours)[1])
    print(loss_of, "constant predictor", constant)
    assert max(loss_of.values()) < 0.7 * constant, loss_of
    parameters = int(re.search(r"parameters (\d+)", theirs)[1]), int(re.search(r"parameters (\d+)", plan)[1])
    # PyTorch has a second bias in each of three gates, of which stiefel keeps that of the candidate.
    assert parameters[0] == parameters[1] + 2 * 24, parameters
