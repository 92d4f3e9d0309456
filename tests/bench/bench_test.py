#!/usr/bin/python3
"""`stiefel bench` and tests/bench/run in small: usage: bench_test.py STIEFEL"""
import json
import pathlib
import subprocess
import sys
import tempfile

program, here = sys.argv[1], pathlib.Path(__file__).resolve().parent

EXPERIMENT = """name: tiny
task: {plugin: adding, length: 5}
model:
  cell: {plugin: elman, hidden: 4}
  recurrent: {plugin: dense}
optimizer: {plugin: adam}
train: {batch: 3, steps: 1}
"""


def bench(*words):
    return subprocess.run([program, "bench", *words, "--seconds", "0.01"], capture_output=True, text=True, check=False)


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "tiny.yaml").write_text(EXPERIMENT)

    answer = json.loads(bench("step", folder / "tiny.yaml", "model.cell.hidden=6", "--json").stdout)
    assert [row["threads"] for row in answer["rows"]] == [1, 2], answer
    assert all(0 < row["min_s"] <= row["median_s"] <= row["max_s"] and row["gflop"] > 0 for row in answer["rows"]), answer
    assert {"compiler", "blas", "simd_target", "cpu_model"} <= answer["circumstances"].keys(), answer

    answer = json.loads(bench("kernel", folder / "tiny.yaml", "train.batch=13", "--threads", "2", "--json").stdout)
    row, = answer["rows"]
    assert (row["rows"], row["cols"], row["columns"], row["threads"]) == (4, 4, 7, 2) and row["gflop_per_s"] > 0, row
    assert "gflop_per_s" in bench("kernel", folder / "tiny.yaml").stdout

    answer = json.loads(bench("complexity", "--hidden", "16,20", "--length", "3,5", "--json").stdout)
    maps = ["householder_16", "householder_n", "scaled_cayley", "full_unitary", "lie_exponential", "urnn"]
    keys = [(row["map"], row["hidden"], row["length"]) for row in answer["rows"]]
    assert keys == [(name, n, T) for name in maps for n in (16, 20) for T in (3, 5)], keys
    for row in answer["rows"]:
        assert all(row[f"{part}_s"] > 0 for part in ("refresh", "forward", "backward", "update")), row
        assert row["route"] in ("dense", "structured") and row["backward_gflop"] > row["forward_gflop"] > 0, row
    gflop = {key: row["forward_gflop"] for key, row in zip(keys, answer["rows"])}
    assert abs(gflop["scaled_cayley", 20, 5] - 5 * (2 * 20 * 20 + 2 * 20 * 2) * 1e-9) < 1e-15, gflop
    assert answer["rows"][8]["refresh_gflop"] == 2 * 16 ** 3 * 1e-9, answer["rows"][8]
    table = bench("complexity", "--maps", "urnn", "--hidden", "9", "--length", "4", "scalar=float64").stdout.splitlines()
    assert [line.split()[:3] for line in table] == [["map", "hidden", "length"], ["urnn", "9", "4"]], table

    for words in (["step"], ["stop", folder / "tiny.yaml"], ["step", folder / "tiny.yaml", "--threads", "many"],
                  ["step", folder / "tiny.yaml", "--maps", "urnn"], ["complexity", "--maps", "urn"], ["complexity", "--hidden", "8,"]):
        refused = bench(*words)
        assert refused.returncode == 2 and refused.stderr, (words, refused)

    made = subprocess.run([here / "run", "ornn_128_m16", "--program", program, "--no-peers", "--rounds", "1", "--seconds", "0.01", "--json",
                           folder / "all.json", "--markdown", folder / "all.md"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    workload, = json.loads((folder / "all.json").read_text())["workloads"]
    assert workload["threads"]["2"]["seconds"]["median"] > 0 and workload["ratio"] == {}, workload
    assert "| ornn_128_m16 |" in (folder / "all.md").read_text()
