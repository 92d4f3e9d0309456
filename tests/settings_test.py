#!/usr/bin/python3
"""The files of the papers have the settings that experiments/settings.csv says the papers have.

usage: settings_test.py PROGRAM EXPERIMENTS_FOLDER. The first lines of the table explain its columns.
"""
import csv
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

PROGRAM, FOLDER = sys.argv[1], Path(sys.argv[2])
TABLE = FOLDER / "settings.csv"
COLUMNS = ["files", "setting", "published", "source", "used", "reason"]
PAPERS = ("ornn", "scornn", "kru", "vorontsov", "chung")
GATES = {"lstm": ("input", "forget", "output", "candidate"), "gru": ("update", "reset", "candidate")}
MAP_BLOCKS = {"dense": ["W"], "householder": ["U"], "scaled_cayley": ["A"], "full_unitary": ["W"], "givens": ["theta", "phi", "omega"],
              "kronecker": ["factor_0"], "urnn": ["theta_1", "theta_2", "theta_3", "v_1", "v_2"]}
REQUIRED = ["model.cell.plugin", "model.cell.hidden", "model.recurrent.plugin", "model.input.init", "model.readout.init",
            "model.initial_state.kind", "train.batch", "train.clip.kind", "train.message_clip", "task.plugin"]
REQUIRED_OF_TASK = {"adding": ["length", "positions", "target_scale", "train_sequences"],
                    "copy": ["length", "variant", "encoding", "train_sequences"],
                    "pixel_mnist": ["permuted", "scale", "split", "validation_images"],
                    "characters": ["mode", "trim", "unk", "longest", "ahead"],
                    "polyphonic": ["set"],
                    "timit_phonemes": ["classes", "split", "test", "validation", "held_out"],
                    "timit_prediction": ["split", "test", "validation"],
                    "sequence_generation": ["file", "length"]}
# One of each kind, changed on the command line: the test must see it.
CHANGES = [("ornn/adding_400", "optimizer.rate=0.02", "optimizer[recurrent.U].rate"),
           ("scornn/mnist_170", "model.cell.hidden=171", "model.cell.hidden"),
           ("kru/jsb_kru", "model.recurrent.soft_unitary=0", "model.recurrent.soft_unitary"),
           ("vorontsov/mnist_m1", "train.message_clip=7", "train.message_clip"),
           ("vorontsov/mnist_m1", "task.split=first", "task.split")]


def read_table():
    """Its lines as dictionaries, with the number of the line in `line`."""
    numbered = [(number, text) for number, text in enumerate(TABLE.read_text().splitlines(), 1) if text and not text.startswith("#")]
    rows = list(csv.DictReader(text for _, text in numbered))
    for (number, _), row in zip(numbered[1:], rows):
        row["line"] = number
    return rows


def faults_of_row(row, files):
    where = f"{TABLE.name}:{row['line']}"
    if set(row) != {*COLUMNS, "line"} or None in row.values():
        return [f"{where}: expected {len(COLUMNS)} columns"]
    faults = [f"{where}: no {column}" for column in COLUMNS[:4] if not row[column]]
    if bool(row["used"]) != bool(row["reason"]):
        faults.append(f"{where}: used and reason must be given together")
    if row["used"] and any(equal(row["used"], value) for value in row["published"].split("|")):
        faults.append(f"{where}: used is what was published")
    if not any(matches(row["files"], file) for file in files):
        faults.append(f"{where}: no file matches {row['files']}")
    return faults


def matches(patterns, file):
    words = patterns.split()
    left_out = any(fnmatchcase(file, word[1:]) for word in words if word.startswith("!"))
    return not left_out and any(fnmatchcase(file, word) for word in words)


def text_of(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def equal(one, other):
    try:
        return math.isclose(float(one), float(other), rel_tol=1e-5)
    except ValueError:
        return one == other


def flat(tree, prefix=""):
    if not isinstance(tree, dict):
        return {prefix[:-1]: text_of(tree)}
    return {key: value for name, branch in tree.items() for key, value in flat(branch, f"{prefix}{name}.").items()}


def blocks_of(config):
    """The parameter blocks of the network that a configuration describes."""
    model, cell, recurrent = config["model"], config["model"]["cell"], config["model"]["recurrent"]
    own = MAP_BLOCKS.get(recurrent["plugin"]) or ["U", "V", "s" if recurrent["spectrum"] == "free" else "p"]
    gates = [f"recurrent.{gate}" for gate in GATES.get(cell["plugin"], ())] or ["recurrent"]
    activation = cell.get("activation", {}).get("kind")
    optional = {"input.bias": model["input"]["bias"], "readout.bias": model["readout"]["bias"], "input.embedding": model["input"]["embedding"]["size"],
                "initial_state": model["initial_state"]["kind"] == "learned", "activation.bias": activation == "modrelu",
                "activation.slope": activation == "prelu", "peephole.input": cell.get("peepholes") == "diagonal"}
    return ["input.weight", "readout.weight", *(name for name, there in optional.items() if there),
            *(f"{gate}.{block}" for gate in gates for block in own)]


def settings_of(config):
    """Every setting and its value as texts; those of the optimizer by the block that they act on."""
    groups = config.pop("optimizer")
    settings = flat(config)
    for block in blocks_of(config):
        group = next(group for group in (groups if isinstance(groups, list) else [groups]) if fnmatchcase(block, group["blocks"]))
        settings |= {f"optimizer[{block}].{key}": value for key, value in flat(group).items()}
    return settings


def expanded(setting, blocks):
    """A setting of the table for each of the blocks that it names."""
    if not setting.startswith("optimizer["):
        return [setting]
    pattern, key = setting[len("optimizer["):].rsplit("].", 1)
    return [f"optimizer[{block}].{key}" for block in blocks if fnmatchcase(block, pattern)]


def required_of(config, settings):
    task = config["task"]["plugin"]
    frozen = [block for block in blocks_of(config) if settings[f"optimizer[{block}].plugin"] == "frozen"]
    return [*REQUIRED, "train.steps" if settings["train.steps"] != "0" else "train.epochs",
            *(f"task.{name}" for name in REQUIRED_OF_TASK[task]),
            *(f"optimizer[{block}].{'plugin' if block in frozen else 'rate'}" for block in blocks_of(config))]


def differences(file, rows, *overrides):
    """What differs between a file and the table: (setting, text), and how many settings were compared."""
    answer = subprocess.run([PROGRAM, "validate", FOLDER / f"{file}.yaml", *overrides, "--resolved"], capture_output=True, text=True, timeout=60)
    if answer.returncode:
        return [("", f"{file}: {answer.stdout}{answer.stderr}")], 0
    config = yaml.safe_load(answer.stdout)
    settings = settings_of(config)
    stated = {setting: row for row in rows if matches(row["files"], file) for setting in expanded(row["setting"], blocks_of(config))}
    wrong = [(name, f"{file}: {name} is not in {TABLE.name}") for name in required_of(config, settings) if name not in stated]
    for name, row in stated.items():
        value, expected = settings.get(name, "absent"), row["used"] or row["published"]
        if expected != "unknown" and not any(equal(value, text) for text in expected.split("|")):
            wrong.append((name, f"{file}: {name} is {value}, but {expected} in {TABLE.name}:{row['line']} ({row['source']})"))
    return wrong, len(stated)


def self_test(rows, found):
    """Changed settings that are not seen."""
    return [f"the change of {file} to {change} is not seen" for file, change, setting in CHANGES
            if setting in dict(found[file]) or setting not in dict(differences(file, rows, change)[0])]


def main():
    rows = read_table()
    files = sorted(str(path.relative_to(FOLDER).with_name(path.name[:-len(".yaml")])) for paper in PAPERS for path in (FOLDER / paper).glob("*.yaml"))
    faults = [fault for row in rows for fault in faults_of_row(row, files)]
    with ThreadPoolExecutor(2) as pool:
        results = dict(zip(files, pool.map(lambda file: differences(file, rows), files)))
    faults += [text for wrong, _ in results.values() for _, text in wrong]
    faults += self_test(rows, {file: wrong for file, (wrong, _) in results.items()})
    settings = sum(count for _, count in results.values())
    print("\n".join(faults) or f"{len(files)} files agree with {len(rows)} lines of {TABLE.name} in {settings} settings")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
