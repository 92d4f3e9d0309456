#!/usr/bin/python3
"""tools/survey/run and experiments/papers/figures.py in small: usage: survey_test.py STIEFEL"""
import json
import pathlib
import subprocess
import sys
import tempfile

program, here = sys.argv[1], pathlib.Path(__file__).resolve().parents[1] / "tools/survey"
figures = here.parents[1] / "experiments/papers/figures.py"


def run(*words, code=0):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == code, (words, done.stdout, done.stderr)
    return done


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    small = ["model.cell.hidden=16", "task.length=6", "train.batch=4", "train.steps=20", "train.evaluate_every=10",
             "record.orthogonality=10", "record.spectrum=10", "record.gradient_norms=10", "task.validation_sequences=8",
             "task.test_sequences=8"]
    survey = [here / "run", "kronecker", "goru_householder", "lru", "--program", program, "--output", folder / "survey", "--hidden", "16",
              "--seconds", "0.001", "--seeds", "3", "--json", folder / "all.json", "--markdown", folder / "all.md", "--changes", *small]
    first = run(*survey)
    rows = json.loads((folder / "all.json").read_text())["rows"]
    assert "goru_householder: learning 3" in first.stderr
    assert rows["kronecker"]["parameters"]["expected"] == rows["kronecker"]["parameters"]["maps"] == 8 * 4, rows
    assert rows["goru_householder"]["parameters"]["expected"] == rows["goru_householder"]["parameters"]["maps"], rows
    assert rows["goru_householder"]["gradient"]["map"]["error"] < 1e-7 and rows["lru"]["gradient"]["map"] is None, rows
    assert rows["goru_householder"]["defect"]["float64"]["end"] < 1e-13 < rows["goru_householder"]["defect"]["float32"]["end"] < 1e-5, rows
    assert rows["kronecker"]["seconds"]["16"]["structured"]["min_s"] > 0 and rows["kronecker"]["seconds"]["16"]["dense"]["min_s"] > 0, rows
    assert rows["lru"]["learning"]["3"]["steps"] == 20, rows
    assert "| `kronecker` |" in (folder / "all.md").read_text()

    again = run(*survey)
    assert again.stderr == "" and again.stdout == first.stdout, again.stderr

    runs = folder / "survey/runs/adding-goru-householder"
    for figure in ("spectra", "drift", "gradients", "curves", "tests", "spread", "clock"):
        assert "`adding-goru-householder` " in run(figures, figure, runs).stdout
    table = run(figures, "quartiles", runs, "--metric", "accuracy").stdout.splitlines()
    assert len(table) == 3 and table[2].startswith("| `adding-goru-householder` | 3 |"), table
    assert "valid_nothing" in run(figures, "quartiles", runs, "--metric", "nothing", code=1).stderr
    assert "activation_slope" in run(figures, "slope", runs, code=1).stderr
    assert "neither a result file" in run(figures, "curves", folder / "absent", code=1).stderr

    fewer = [here / "run", "householder", "--program", program, "--output", folder / "fewer", "--parts", "parameters", "--json",
             folder / "fewer.json", "--changes", "model.cell.hidden=16", "model.recurrent.reflections=4"]
    run(*fewer)
    counted = json.loads((folder / "fewer.json").read_text())["rows"]["householder"]["parameters"]
    assert counted["expected"] == counted["maps"] == 16 * 4 - 4 * 3 // 2, counted

    run(program, "run", here.parents[1] / "experiments/methods/householder.yaml", *small, "--until", "5", "--output", folder / "stopped", code=75)
    for figure in ("curves", "spread"):
        assert "| – |" in run(figures, figure, folder / "stopped").stdout
    assert "| 0 | – |" in run(figures, "quartiles", folder / "stopped", "--metric", "loss").stdout
    assert "no run has an evaluation" in run(figures, "clock", folder / "stopped", code=1).stderr
