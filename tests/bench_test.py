#!/usr/bin/python3
"""`stiefel bench` and tools/bench/run in small, and what PyTorch computes where there is one: usage: bench_test.py STIEFEL"""
import argparse
import importlib.machinery
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

program, here = sys.argv[1], pathlib.Path(__file__).resolve().parents[1] / "tools/bench"

EXPERIMENT = """name: tiny
task: {plugin: adding, length: 5}
model:
  cell: {plugin: elman, hidden: 4}
  recurrent: {plugin: dense}
optimizer: {plugin: adam}
train: {batch: 3, steps: 1}
"""


def bench(*words, seconds=0.01):
    return subprocess.run([program, "bench", *words, "--seconds", str(seconds)], capture_output=True, text=True, check=False)


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "tiny.yaml").write_text(EXPERIMENT)

    answer = json.loads(bench("step", folder / "tiny.yaml", "model.cell.hidden=6", "--json").stdout)
    assert [row["threads"] for row in answer["rows"]] == [1, 2], answer
    assert all(0 < row["min_s"] <= row["median_s"] <= row["max_s"] and row["gflop"] > 0 for row in answer["rows"]), answer
    assert {"compiler", "blas", "simd_target", "cpu_model"} <= answer["circumstances"].keys(), answer

    larger = folder / "tiny.yaml", "model.cell.hidden=64"  # fewer products in the shortest time that is measured
    row, = json.loads(bench("kernel", *larger, "train.batch=13", "--threads", "2", "--json").stdout)["rows"]
    assert (row["rows"], row["cols"], row["columns"], row["threads"]) == (64, 64, 7, 2) and row["gflop_per_s"] > 0, row
    assert "gflop_per_s" in bench("kernel", *larger).stdout

    limits = bench("limit", "--threads", "1", "--json", seconds=0.4).stdout
    answer = json.loads(limits)
    assert [row["limit"] for row in answer["rows"][-2:]] == ["read", "triad"], answer
    for row in answer["rows"]:
        assert 0 < row["min_rate"] <= row["rate"] <= row["max_rate"] and row["threads"] == 1, row
        assert row["unit"] == ("GFLOP/s" if row["limit"] == "multiply-add" else "GB/s"), row
    rates = {row["simd"]: row["max_rate"] for row in answer["rows"] if row["limit"] == "multiply-add"}
    with open("/proc/cpuinfo", encoding="utf-8") as cpu:
        words = cpu.read().split()
    fused = [name for name, flag in (("AVX3", "avx512f"), ("AVX2", "fma")) if flag in words]
    assert not fused or list(rates) == fused, (rates, fused)
    product = json.loads(bench("kernel", folder / "tiny.yaml", "model.cell.hidden=128", "train.batch=64", "--threads", "1", "--json").stdout)
    assert product["rows"][0]["min_gflop_per_s"] < max(rates.values()), (product, rates)
    assert [line.split()[0] for line in bench("limit").stdout.splitlines()].count("triad") == 2

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

    own = pathlib.Path(program).resolve().parent.parent / "tests/plugins_ok/gaussian_columns.so"
    answer = json.loads(bench("complexity", "--maps", "dense,gaussian_columns", f"plugins=[{own}]", "--hidden", "8", "--length", "4", "--json").stdout)
    assert [row["map"] for row in answer["rows"]] == ["dense", "gaussian_columns"], answer

    refused = bench("complexity", "--maps", "urnn,urn")
    assert refused.returncode == 3 and not refused.stdout and "did you mean 'urnn'" in refused.stderr, refused

    for words in (["step"], ["stop", folder / "tiny.yaml"], ["step", folder / "tiny.yaml", "--threads", "many"],
                  ["step", folder / "tiny.yaml", "--maps", "urnn"], ["complexity", "--maps", "urnn,u rnn"], ["complexity", "--hidden", "8,"],
                  ["limit", folder / "tiny.yaml"], ["limit", "--threads", "0"], ["limit", "--maps", "urnn"]):
        refused = bench(*words)
        assert refused.returncode == 2 and refused.stderr, (words, refused)

    quick = folder / "stiefel"  # with the limits of before, whose arrays take a second each time
    (folder / "limits.json").write_text(limits)
    quick.write_text(f'#!/bin/sh\ntest $2 = limit && exec cat {folder}/limits.json\nexec "{program}" "$@"\n')
    quick.chmod(0o755)

    def run(*words, peers=("--no-peers",), program=quick):
        command = [here / "run", *words, "--program", program, *peers, "--quick", "--seconds", "0.01",
                   "--json", folder / "all.json", "--markdown", folder / "all.md"]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        return json.loads((folder / "all.json").read_text()), (folder / "all.md").read_text()

    # An interpreter that has JAX alone, where each step takes a quarter of a second, and half of one by hand.
    fake = folder / "python"
    fake.write_text(f"""#!{sys.executable}
import json, sys
if sys.argv[1] == "-c":
    print(json.dumps({{"JAX": "XLA"}}))
elif sys.argv[2] == "variants":
    print(json.dumps(["scan", "hand"]))
else:
    print(json.dumps({{"framework": "JAX", "version": "1.2", "libraries": []}}), flush=True)
    for line in sys.stdin:
        print(json.dumps({{"seconds": [0.5 if sys.argv[3] == "hand" else 0.25] * 3}}), flush=True)
""")
    fake.chmod(0o755)
    document, text = run("kru_128", "--threads", "1", peers=("--python", fake))
    workload, = document["workloads"]
    assert {name: found["median"] for name, found in workload["peers"].items() if name.startswith("JAX")} == {"JAX scan": 0.25, "JAX hand": 0.5}
    assert workload["ratio"]["best"] == workload["ratio"]["JAX scan"] and workload["missing"] == ["PyTorch"], workload
    assert "| not installed | not installed | 0.250 | 0.500 |" in text and "JAX 1.2 (XLA)" in text, text
    assert "- hand, XLA, 2 threads, JAX 1.2: 0.500 s" in text and "has one round" in text, text
    document, text = run("ornn_128_m16", "--threads", "2", program=program)
    workload, = document["workloads"]
    assert workload["threads"]["2"]["seconds"]["median"] > 0 and workload["ratio"] == {}, workload
    assert "| ornn_128_m16 |" in text and str(folder) not in text, text
    found = workload["threads"]["2"]
    assert list(found["multiply_add"]) == list(rates) and found["triad"]["median"] > 0, found
    before, after = (limit["multiply_add"] for limit in workload["rounds"][0]["stiefel"][0]["limits"])
    fastest = max((before[target] + after[target]) / 2 for target in before)
    assert math.isclose(found["of_limit"]["median"], found["gflop_per_s"]["median"] / fastest, rel_tol=1e-9), found
    header = next(line for line in text.splitlines() if "of kernel" in line)
    assert "| of kernel, 2 threads | share of the limit, 2 threads |" in header, header

    document, text = run("kru_128", "ornn_512_m510_b1", "--keep", "--threads", "1")
    document, text = run("kru_128", "--keep")
    assert [w["workload"] for w in document["workloads"]] == ["ornn_128_m16", "kru_128", "ornn_512_m510_b1"], document
    assert document["workloads"][0]["rounds"] == workload["rounds"], document
    assert [list(w["threads"]) for w in document["workloads"]] == [["2"], ["2", "1"], ["1"]], document
    assert all({"date", "command", "stiefel", "rounds", "seconds", "peers"} <= w["made"].keys() for w in document["workloads"]), document
    assert text.count("`tools/bench/run kru_128 ") == 2 and "--json all.json" in text, text

    document, text = run("SGD 128", "geoSGD 128", "RNN 116", "--keep")
    assert [row["model"] for row in document["epochs"]] == ["RNN 116", "SGD 128", "geoSGD 128"], document
    assert all(row["timed"] >= 5 and row["seconds"]["median"] > 0 for row in document["epochs"]), document
    assert [row["steps"] for row in document["epochs"]] == [1100, 1000, 1000], document
    assert "| geoSGD 128 |" in text and "| 40.4 |" in text and "| kru_128 |" in text, text

    def refused(*words):
        done = subprocess.run([here / "run", *words], capture_output=True, text=True, check=False)
        assert done.returncode and "Traceback" not in done.stderr, done
        return done.stderr
    for content, reason in (("[]", "which tools/bench/run did not write"), ('{"workloads": null}', "workloads must be a list of rows"),
                            ('{"workloads": [{"workload": "kru_128"}]}', "has no made"), ("{", "cannot read")):
        (folder / "odd.json").write_text(content)
        said = refused("kru_128", "--keep", "--no-peers", "--json", folder / "odd.json", "--program", program)
        assert reason in said, content
    assert "--show prints workloads only" in refused("--show", "growth")

    shown = subprocess.run([here / "run", "--show"], capture_output=True, text=True, check=True).stdout.split("---\n")
    assert len(shown) >= 17, shown
    for experiment in shown:
        (folder / "shown.yaml").write_text(experiment)
        valid = subprocess.run([program, "validate", folder / "shown.yaml"], capture_output=True, text=True, check=False)
        assert valid.returncode == 0 or "as far as can be checked without its data" in valid.stdout, valid.stderr

sys.dont_write_bytecode = True
run = importlib.machinery.SourceFileLoader("run", str(here / "run")).load_module()

# Two rounds of two versions of PyTorch and of JAX: PyTorch 1.10 has no hand-written one in the second round, JAX none at all.
times = [{"eager 1.9": 4, "hand 1.9": 3, "eager 1.10": 6, "hand 1.10": 2, "scan J": 12},
         {"eager 1.9": 10, "hand 1.9": 4, "eager 1.10": 8, "scan J": 2}]
limit = {"multiply_add": {"AVX3": 20, "AVX2": 10}, "read": 5, "triad": 4}
lower = {"multiply_add": {"AVX3": 4, "AVX2": 8}, "read": 5, "triad": 2}
rounds = [{"stiefel": [{"median_s": 2, "gflop": 1, "gflop_per_s": 6, "kernel_gflop_per_s": 10, "limits": limits}],
           "peers": [{"variant": variant, "framework": "JAX" if version == "J" else "PyTorch", "version": version, "blas": "b", "threads": 2,
                      "median_s": seconds} for (variant, version), seconds in ((name.split(), t) for name, t in row.items())]}
          for row, limits in zip(times, ([limit, lower], [lower, lower]))]
found = run.summary(rounds, [2])
assert found["ratio"] == {"PyTorch stock": {"median": 3, "min": 2, "max": 4}, "PyTorch hand": {"median": 1.5, "min": 1, "max": 2},
                          "JAX scan": {"median": 3.5, "min": 1, "max": 6}, "best": {"median": 1, "min": 1, "max": 1}}, found
assert found["ratio_by_version"] == {
    "PyTorch 1.9": {"PyTorch stock": {"median": 3.5, "min": 2, "max": 5}, "PyTorch hand": {"median": 1.75, "min": 1.5, "max": 2}},
    "PyTorch 1.10": {"PyTorch stock": {"median": 3.5, "min": 3, "max": 4}}, "JAX J": {"JAX scan": {"median": 3.5, "min": 1, "max": 6}}}, found
# The first round's mean limits are 12 and 9 GFLOP/s, the second's 4 and 8.
assert found["threads"]["2"]["of_limit"] == {"median": 0.625, "min": 0.5, "max": 0.75}, found
assert found["threads"]["2"]["triad"] == {"median": 2.5, "min": 2, "max": 3}, found
header, _, row = run.markdown_table(run.versions_table([{"workload": "w", **found}])).splitlines()
assert header.index("PyTorch 1.9") < header.index("PyTorch 1.10") < header.index("JAX J"), header
assert row.endswith("| 3.5 [3.0–4.0] | – | 3.5 [1.0–6.0] | – |"), row
assert run.shown_command(["a", "--json", "/x/y.json", "--python=/x/python"]) == "tools/bench/run a --json y.json --python=python"

# What the peers compute, where an interpreter has them: STIEFEL_BENCH_PYTHON, else Debian's.
python = os.environ.get("STIEFEL_BENCH_PYTHON", "/usr/bin/python3")
has = {found.framework for found in run.interpreters([python])}
for needed, peers in (({"PyTorch"}, "peers.py"), ({"PyTorch", "JAX"}, "jax_peers.py")):
    if needed <= has:
        subprocess.run([python, here / peers, "check"], check=True)
    else:
        print(f"skipped: {peers} check, for {python} has no {' and no '.join(sorted(needed - has))}")

# A map in PyTorch.
rows = [{"map": "m", "cpp": run.spread([1, 2, 3]), "python": run.spread([1, 2.5, 3]), "ratio": run.spread([1, 1.25, 1])}]
assert "| m | 2.00 | 2.50 | 1.00 [1.00–1.25] |" in run.python_text(rows), run.python_text(rows)
if "PyTorch" in has:
    with tempfile.TemporaryDirectory() as folder:
        run.IN_PYTHON = [run.scornn(10, 2, length=5, task="adding")]
        os.environ["STIEFEL_PYTHON"] = python
        row, = run.measure_python(run.Stiefel(program, 0.01, pathlib.Path(folder)), argparse.Namespace(rounds=2))
        assert row["ratio"]["median"] > 1 and row["map"] == "scaled_cayley n = 10, B = 2, T = 5", row
