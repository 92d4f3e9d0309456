#!/usr/bin/python3
"""`stiefel bench` and tests/bench/run in small, and what PyTorch computes where there is one: usage: bench_test.py STIEFEL"""
import importlib.machinery
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

    def run(*words):
        command = [here / "run", *words, "--program", program, "--no-peers", "--rounds", "1", "--seconds", "0.01",
                   "--json", folder / "all.json", "--markdown", folder / "all.md"]
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

    document, text = run("SGD 128", "geoSGD 128", "RNN 116", "--keep")
    assert [row["model"] for row in document["epochs"]] == ["RNN 116", "SGD 128", "geoSGD 128"], document
    assert all(row["timed"] >= 5 and row["seconds"]["median"] > 0 for row in document["epochs"]), document
    assert [row["steps"] for row in document["epochs"]] == [1100, 1000, 1000], document
    assert "| geoSGD 128 |" in text and "| 40.4 |" in text and "| kru_128 |" in text, text

    shown = subprocess.run([here / "run", "--show"], capture_output=True, text=True, check=True).stdout.split("---\n")
    assert len(shown) >= 17, shown
    for experiment in shown:
        (folder / "shown.yaml").write_text(experiment)
        valid = subprocess.run([program, "validate", folder / "shown.yaml"], capture_output=True, text=True, check=False)
        assert valid.returncode == 0 or "as far as can be checked without its data" in valid.stdout, valid.stderr

sys.dont_write_bytecode = True
run = importlib.machinery.SourceFileLoader("run", str(here / "run")).load_module()

# Two rounds of two versions of PyTorch: 1.9 has both kinds, 1.10 no hand-written one in the second round.
times = [{"eager 1.9": 4, "hand 1.9": 3, "eager 1.10": 6, "hand 1.10": 2}, {"eager 1.9": 10, "hand 1.9": 4, "eager 1.10": 8}]
rounds = [{"stiefel": [{"median_s": 2, "gflop": 1, "gflop_per_s": 5, "kernel_gflop_per_s": 10}],
           "peers": [{"variant": name.split()[0], "torch": name.split()[1], "blas": "b", "threads": 2, "median_s": seconds}
                     for name, seconds in row.items()]} for row in times]
found = run.summary(rounds, [2])
assert found["ratio"] == {"stock": {"median": 3, "min": 2, "max": 4}, "hand": {"median": 1.5, "min": 1, "max": 2}}, found
assert found["ratio_by_torch"] == {"1.9": {"stock": {"median": 3.5, "min": 2, "max": 5}, "hand": {"median": 1.75, "min": 1.5, "max": 2}},
                                   "1.10": {"stock": {"median": 3.5, "min": 3, "max": 4}}}, found
header, _, row = run.torch_table([{"workload": "w", **found}]).splitlines()
assert header.index("PyTorch 1.9") < header.index("PyTorch 1.10") and row.endswith("| 3.5 [3.0–4.0] | – |"), (header, row)
assert run.shown_command(["a", "--json", "/x/y.json", "--python=/x/python"]) == "tests/bench/run a --json y.json --python=python"

check = subprocess.run(["/usr/bin/python3", here / "peers.py", "check"], capture_output=True, text=True, check=False)
assert check.returncode == 0 or "No module named 'torch'" in check.stderr, check
if check.returncode:
    print("skipped: what PyTorch computes, for there is no python3-torch")
