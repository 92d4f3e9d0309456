#!/usr/bin/python3
"""Sizes that do not fit are refused at once, and by the name of their key; no command takes memory for them first.

usage: sizes_test.py PROGRAM [--all]

Every key of `stiefel schema` that takes an integer, of the experiment and of every plugin, gets huge values in `validate`. With --all
many powers of two, and `run --dry-run` as well.
"""
import concurrent.futures
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import made_data
import made_sounds

PROGRAM, ALL = sys.argv[1], "--all" in sys.argv[2:]
MEMORY, SECONDS = 200e6, 1.0
LARGEST = 2**63 - 1
os.environ["STIEFEL_PYTHON"] = sys.executable
# No memory and no loop grows with these: counts of steps, periods, seeds, and limits of what is there anyway.
HARMLESS = re.compile(
    r"(^|\.)(seed|split_seed|permutation_seed|steps|epochs|every|patience|evaluate_every|chunk|keep|keep_every|loss|spectrum|"
    r"gradient_norms|orthogonality|scalars|record\.blocks\.input\.bias|reproject_every|rebase_every|project_every|"
    r"reorthonormalise_every|rank|max_length|longest|train_lines|train_limit|evaluation_limit|waveforms)$")
BASE = {"name": "sizes", "task": {"plugin": "adding", "length": 12}, "model": {"cell": {"plugin": "elman", "hidden": 64}, "recurrent": {"plugin": "dense"}},
        "optimizer": {"plugin": "sgd"}, "train": {"batch": 4, "steps": 3}}


class Ended:
    """How a command ended, with its time and its largest memory."""

    def __init__(self, words, limit=None):
        def start():
            if limit:
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        begin = time.monotonic()
        with tempfile.TemporaryFile("w+") as output:
            # Each thread of OpenBLAS takes address space: with many cores, all of a small limit.
            environment = {**os.environ, **({"OPENBLAS_NUM_THREADS": "1"} if limit else {})}
            process = subprocess.Popen([PROGRAM, *map(str, words)], stdout=output, stderr=subprocess.STDOUT, preexec_fn=start, env=environment)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = self.code = os.waitstatus_to_exitcode(status)
            output.seek(0)
            self.text = output.read()
        self.seconds, self.processor = time.monotonic() - begin, usage.ru_utime + usage.ru_stime
        self.memory = usage.ru_maxrss * 1024

    def __str__(self):
        return f"exit code {self.code} after {self.processor:.2f} s with {self.memory / 1e6:.0f} MB: {self.text[-600:]}"


def integer_keys(schema):
    """(experiment without the key, path of the key) of every key that takes an integer or a list of them."""
    def walk(node, path, experiment):
        for choice in node.get("anyOf", []) + node.get("oneOf", []):
            plugin = choice.get("properties", {}).get("plugin", {}).get("const")
            with_plugin = changed(experiment, path + ["plugin"], plugin) if plugin else experiment
            yield from walk({key: value for key, value in choice.items() if key != "items"}, path, with_plugin)
        for key, inner in node.get("properties", {}).items():
            if path or key not in ("seeds", "sweep"):
                yield from walk(inner, path + [key], experiment)
        named = node.get("additionalProperties")
        if isinstance(named, dict) and path != ["model", "maps"]:
            yield from walk(named, path + ["input.bias"], experiment)
        many = node.get("type") == "array"
        if (node.get("items", {}) if many else node).get("type") == "integer":
            yield experiment, path, many
    yield from walk(schema, [], BASE)


def changed(experiment, path, value):
    """A copy with another value at the path; another plugin keeps `hidden` alone."""
    copy = json.loads(json.dumps(experiment))
    node = copy
    for key in path[:-1]:
        if not isinstance(node.get(key), dict):
            node[key] = {}
        node = node[key]
    if path[-1] == "plugin" and node.get("plugin") != value:
        kept = {key: node[key] for key in ("hidden",) if key in node}
        node.clear()
        node.update(kept)
    node[path[-1]] = value
    return copy


def suited(experiment):
    """With what else the chosen plugins need."""
    if experiment["model"]["cell"]["plugin"] in ("lru", "mingru", "reflections", "delta_product"):
        experiment["model"].pop("recurrent", None)
    of_matrices = experiment["optimizer"]["plugin"] in ("geodesic_cayley", "riemannian_adam", "manifold_muon", "muon")
    if of_matrices and experiment["optimizer"]["plugin"] != "muon":
        experiment = changed(experiment, ["model", "recurrent", "plugin"], "full_unitary")
    if of_matrices or experiment["model"].get("recurrent", {}).get("plugin") == "full_unitary":
        mover = experiment["optimizer"] if of_matrices else {"plugin": "riemannian_adam"}
        experiment["optimizer"] = [{**mover, "blocks": "recurrent.*"}, {"plugin": "sgd"}]
    if experiment["model"].get("input", {}).get("embedding"):
        experiment = changed(experiment, ["task", "plugin"], "copy")
    if experiment["task"]["plugin"] == "sequence_generation":
        experiment = changed(experiment, ["task", "file"], "song/loop_tabla.flac")
    if experiment["task"]["plugin"] == "sequence_csv":
        experiment["task"].update(data="numbers.csv", sequence="s", targets=["y"])
    if experiment["task"]["plugin"] == "labelled_sounds":
        experiment["task"].update(data="recordings")
    for chosen, name in ((experiment["task"], "parity"), (experiment["model"].get("recurrent", {}), "cayley"), (experiment["optimizer"], "adam")):
        if isinstance(chosen, dict) and chosen.get("plugin") == "python":
            chosen["file"] = str(Path(__file__).parent / "python/roles" / f"{name}.py")
    if experiment["task"]["plugin"] == "copy" and "length" not in experiment["task"]:
        experiment = changed(experiment, ["task", "length"], 12)
    if "train" in experiment and "epochs" in experiment["train"]:
        experiment["train"].pop("steps", None)
    return experiment


def check(folder, number, experiment, path, many, value):
    """What is wrong, or nothing."""
    experiment = suited(changed(experiment, path, [value] if many else value))
    file = Path(folder) / f"{number}.yaml"
    file.write_text(json.dumps(experiment, indent=1))  # a subset of YAML
    key, wrong = ".".join(path), []
    commands = [["validate", file]]
    if ALL and value >= 2**34:  # smaller ones may fit, and take their time
        commands.append(["run", file, "--dry-run", "--output", folder])
    for words in commands:
        ended = Ended([*words, "--data", folder])
        what = f"{words[0]} with {key} = {value} of {experiment['task']['plugin']}, {experiment['model'].get('recurrent')}"
        if ended.processor > SECONDS or ended.memory > MEMORY:
            wrong.append(f"{what} took too much: {ended}")
        elif ended.code == 0 and not HARMLESS.search(key) and value >= 2**40:
            wrong.append(f"{what} was not refused: {ended}")
        elif ended.code not in (0, 2, 4, 8) or (ended.code and not re.search(rf"{re.escape(str(file))}:\d+:\d+: .*{re.escape(path[-1])}", ended.text)):
            wrong.append(f"{what} ended without naming the key and its place: {ended}")
    return wrong


def every_key(folder):
    schema = json.loads(subprocess.run([PROGRAM, "schema"], capture_output=True, text=True, check=True).stdout)
    cases = list({json.dumps(case): case for case in integer_keys(schema)}.values())
    assert len(cases) > 70, f"only {len(cases)} keys were found"
    values = [2**power for power in range(20, 63, 3)] + [LARGEST, LARGEST + 1] if ALL else [2**30, 2**40, LARGEST]
    jobs = [(folder, f"{i}-{value}", *case, value) for i, case in enumerate(cases) for value in values]
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        wrong = [fault for faults in pool.map(lambda job: check(*job), jobs) for fault in faults]
    print(f"{len(cases)} keys, {len(jobs)} experiments")
    return wrong


def refused_at_a_limit(folder):
    """Sizes that no address space of 4 GB holds; those just below are accepted."""
    limit, wrong = 4 << 30, []
    for change, key in (({"train": {"batch": 10**8, "steps": 3}}, "train.batch"), ({"task": {"plugin": "adding", "length": 10**8}}, "task.length"),
                        ({"task": {"plugin": "adding", "length": 10**9}}, "task.length"),
                        ({"task": {"plugin": "adding", "length": 12, "train_sequences": 10**9}}, "task.train_sequences"),
                        ({"task": {"plugin": "copy", "length": 12, "alphabet": 10**8}}, "task.alphabet"),
                        ({"model": {"cell": {"plugin": "elman", "hidden": 10**5}, "recurrent": "dense"}}, "model.cell.hidden"),
                        ({"model": {"cell": {"plugin": "lstm", "hidden": 10**7}, "recurrent": {"plugin": "kronecker", "field": "real"}}}, "model.cell.hidden"),
                        ({"model": {"cell": {"plugin": "elman", "hidden": 50000}, "recurrent": {"plugin": "householder", "reflections": 40000}}},
                         "model.recurrent.reflections")):
        file = Path(folder) / "limit.yaml"
        file.write_text(json.dumps({**BASE, **change}, indent=1))
        for words in (["validate", file], ["run", file, "--dry-run"], ["run", file, "--output", folder]):
            ended = Ended(words, limit)
            expected = rf"{re.escape(str(file))}:\d+:\d+: {re.escape(key)} is \d+: training would take \S+ [GM]B of memory or more, but ulimit -v allows 4.3 GB"
            if ended.code != 8 or not re.search(expected, ended.text) or ended.processor > SECONDS or ended.memory > MEMORY:
                wrong.append(f"{' '.join(map(str, words))} with {change}: {ended}")
    file.write_text(json.dumps({**BASE, "train": {"batch": 2000, "steps": 1}}))
    ended = Ended(["run", file, "--dry-run", "--threads", 1], limit)
    if ended.code:
        wrong.append(f"what fits was refused: {ended}")
    return wrong


def recomputed_at_a_limit(folder):
    """`recompute: auto` decides by the same limit: 1.3 GB of states are a quarter of 2 GB, not of this machine's memory."""
    file = Path(folder) / "recompute.yaml"
    file.write_text(json.dumps({**BASE, "task": {"plugin": "adding", "length": 10000},
                                "model": {"cell": {"plugin": "elman", "hidden": 64}, "recurrent": "dense"}, "train": {"batch": 512, "steps": 1}}))
    ended = Ended(["run", file, "--dry-run", "--threads", 1], 2 << 30)
    return [] if ended.code == 0 and ended.memory < 1e9 else [f"recompute: auto does not respect the limit: {ended}"]


def recorded_rows(folder):
    """Rows that wait to be written count: 32 kB a step, three times, but never more than what is written at once."""
    rows, limit, wrong = {"blocks": {"recurrent.W": 1}}, 330 * 10**6, []
    file = Path(folder) / "rows.yaml"
    for steps, least, most in ((1000, 95, 100), (10**9, 330, 340)):
        memory = []
        for record in ({}, rows):
            file.write_text(json.dumps({**BASE, "train": {"batch": 4, "steps": steps}, "record": record}))
            said = Ended(["run", file, "--dry-run", "--threads", 1]).text
            memory.append(int(re.search(r"^memory +about (\d+) MB$", said, re.M)[1]))
        if not least <= memory[1] - memory[0] <= most:
            wrong.append(f"{steps} recorded rows change the memory from {memory[0]} to {memory[1]} MB")
    refused = Ended(["validate", file], limit)
    if refused.code != 8 or "would take 336 MB of memory or more, but ulimit -v allows 330 MB" not in refused.text:
        wrong.append(f"recorded rows are not part of the check of memory: {refused}")
    # A run takes no more than that, and results.h5 has a float of four bytes for each number.
    file.write_text(json.dumps({**BASE, "train": {"batch": 4, "steps": 1000, "evaluate_every": 1000}, "record": rows, "checkpoint": {"every": 0}}))
    estimate = int(re.search(r"^memory +about (\d+) MB$", Ended(["run", file, "--dry-run", "--threads", 1]).text, re.M)[1])
    ended = Ended(["run", file, "--quiet", "--threads", 1, "--output", folder])
    if ended.code or not estimate / 2 <= ended.memory / 1e6 <= estimate:
        wrong.append(f"a run of about {estimate} MB: {ended}")
    stored = next(Path(folder).glob("sizes/*/results.h5")).stat().st_size
    if not 0.5 <= stored / (1000 * 64 * 64 * 4) <= 1.1:
        wrong.append(f"results.h5 has {stored} bytes")
    return wrong


def write_data(folder):
    made_data.blank_mnist(folder)
    made_data.short_treebank(folder)
    made_data.short_music(folder)
    made_sounds.write_sample(folder / "timit")
    made_sounds.write_song(folder / "song")
    for number in range(20):
        sound = folder / "recordings" / "ab"[number % 2] / f"{number}.wav"
        sound.parent.mkdir(parents=True, exist_ok=True)
        sound.write_bytes(made_sounds.wav(800, number))
    rows = [f"{s},{s * t % 7},{t % 3}" for s in range(20) for t in range(5)]
    (folder / "numbers.csv").write_text("\n".join(["s,x,y", *rows]) + "\n")


def many_errors(folder):
    """Thousands of errors are a page and a count."""
    file = Path(folder) / "many.yaml"
    file.write_text(json.dumps({**BASE, **{f"key_{i}": i for i in range(3000)}}, indent=1))
    ended = Ended(["validate", file])
    shown = ended.code == 2 and "and 2980 more\n" in ended.text and ended.text.endswith(f"{file}: 3000 errors\n") and len(ended.text) < 8000
    return [] if shown else [f"3,000 wrong keys: {len(ended.text)} bytes, {ended}"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder))
        tests = every_key, refused_at_a_limit, recomputed_at_a_limit, recorded_rows, many_errors
        wrong = [fault for test in tests for fault in test(folder)]
    print("\n".join(wrong) or "every size that does not fit is refused")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
