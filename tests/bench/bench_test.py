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

    for words in (["step"], ["stop", folder / "tiny.yaml"], ["step", folder / "tiny.yaml", "--threads", "many"]):
        refused = bench(*words)
        assert refused.returncode == 2 and refused.stderr, (words, refused)

    def run(*words):
        command = [here / "run", *words, "--program", program, "--no-peers", "--rounds", "1", "--seconds", "0.01", "--json", folder / "all.json",
                   "--markdown", folder / "all.md"]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        return json.loads((folder / "all.json").read_text()), (folder / "all.md").read_text()

    document, text = run("ornn_128_m16")
    workload, = document["workloads"]
    assert workload["threads"]["2"]["seconds"]["median"] > 0 and workload["ratio"] == {}, workload
    assert "| ornn_128_m16 |" in text and str(folder) not in text, text

    document, text = run("kru_128", "ornn_512_m510_b1", "--keep", "--threads", "1")
    document, text = run("kru_128", "--keep")
    assert [w["workload"] for w in document["workloads"]] == ["ornn_128_m16", "kru_128", "ornn_512_m510_b1"], document
    assert document["workloads"][0]["rounds"] == workload["rounds"], document
    assert [list(w["threads"]) for w in document["workloads"]] == [["2", "1"], ["2", "1"], ["1"]], document
    assert all({"date", "command", "stiefel", "rounds", "seconds", "torch"} <= w["made"].keys() for w in document["workloads"]), document
    assert text.count("`tests/bench/run kru_128 ") == 2 and "--json all.json" in text, text
