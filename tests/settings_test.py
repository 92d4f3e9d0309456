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
REQUIRED = ["task.plugin", "model.cell.plugin", "model.cell.hidden", "model.recurrent.plugin", "model.input.init",
            "model.input.scale", "model.readout.init", "model.readout.scale", "model.initial_state.kind",
            "model.initial_state.scale", "train.batch", "train.clip.kind", "train.message_clip", "train.patience",
            "train.target", "train.select_on"]
REQUIRED_OF_TASK = {"adding": ["length", "positions", "target_scale", "train_sequences"],
                    "copy": ["length", "variant", "encoding", "train_sequences"],
                    "pixel_mnist": ["permuted", "scale", "split", "validation_images", "train_limit",
                                    "evaluation_limit"],
                    "characters": ["set", "mode", "trim", "unk", "longest", "ahead", "average.validation",
                                   "average.test"],
                    "polyphonic": ["set", "average", "max_length"],
                    "timit_phonemes": ["classes", "split", "test", "validation", "held_out"],
                    "timit_prediction": ["split", "test", "validation"],
                    "sequence_generation": ["file", "length"]}
REQUIRED_OF_MAP = {"dense": ["init", "soft_orthogonality"],
                   "svd_margin": ["init", "prior", "relu", "soft_orthogonality"],
                   "householder": ["reflections"], "scaled_cayley": ["init", "rho"],
                   "kronecker": ["factors", "field", "init"], "givens": ["style", "field", "init"]}
REQUIRED_OF_CELL = {"elman": ["gain", "activation.kind"], "lstm": ["forget_bias", "peepholes"]}
# Parameter blocks of the recurrent maps; a Kronecker product has one for each factor.
BLOCKS = {"dense": ["W"], "full_unitary": ["W"], "householder": ["U"], "scaled_cayley": ["A"],
          "givens": ["theta", "phi", "omega"], "urnn": ["theta_1", "theta_2", "theta_3", "v_1", "v_2"]}
GATES = {"elman": [""], "lstm": ["input.", "forget.", "output.", "candidate."],
         "gru": ["update.", "reset.", "candidate."]}
# A rate, a size, a λ, a bound, a split and a strength above 0, changed on the command line: the test must report them.
CHANGES = [("ornn/adding_400", "optimizer.rate=0.02", "optimizer[recurrent.U].rate"),
           ("scornn/mnist_170", "model.cell.hidden=171", "model.cell.hidden"),
           ("kru/jsb_kru", "model.recurrent.soft_unitary=0", "model.recurrent.soft_unitary"),
           ("vorontsov/mnist_m1", "train.message_clip=7", "train.message_clip"),
           ("vorontsov/mnist_m1", "task.split=first", "task.split"),
           ("vorontsov/figure4_panel3", "model.recurrent.prior=0", "model.recurrent.prior"),
           ("scornn/mnist_170", "model.dropout=0.5", "model.dropout"),
           ("kru/copy_1000", "task.alphabet=2", "task.alphabet"),
           ("kru/adding_200", "optimizer.rate=1000", "optimizer[recurrent.factor_0].rate"),
           ("ornn/adding_400_lstm", "train.accumulate=4", "train.accumulate")]
# What a file may give without a line of the table: how a run is named, watched and saved.
FREE = ("name", "seed", "threads", "record.*", "checkpoint.*", "train.evaluate_every", "task.evaluation_batch")


def read_table() -> list[dict]:
    """Its rows as dictionaries, with the number of the line as `line`."""
    numbered = enumerate(TABLE.read_text().splitlines(), 1)
    lines = [(number, text) for number, text in numbered if text and not text.startswith("#")]
    rows = list(csv.DictReader(text for _, text in lines))
    return [{**row, "line": number} for row, (number, _) in zip(rows, lines[1:])]


def faults_of(row: dict) -> list[str]:
    if set(row) != {*COLUMNS, "line"} or None in row.values():
        return [f"expected {len(COLUMNS)} columns"]
    faults = [f"no {column}" for column in COLUMNS[:4] if not row[column]]
    if bool(row["used"]) != bool(row["reason"]):
        faults.append("used and reason must be given together")
    if row["used"] and agrees(row["used"], row["published"]):
        faults.append("used is what was published")
    return faults


def matches(patterns: str, file: str) -> bool:
    words = patterns.split()
    left_out = any(fnmatchcase(file, word[1:]) for word in words if word.startswith("!"))
    return not left_out and any(fnmatchcase(file, word) for word in words)


def agrees(value: str, expected: str) -> bool:
    """Whether a value is the expected one, or one of several with | between them; numbers are compared as numbers."""
    def same(one: str, other: str) -> bool:
        try:
            if other == "positive":
                return float(one) > 0
            return math.isclose(float(one), float(other), rel_tol=1e-5)
        except ValueError:
            return one == other
    return any(same(value, text) for text in expected.split("|"))


def flat(tree, prefix: str = "") -> dict[str, str]:
    """The leaves of a configuration as texts, by their paths with dots."""
    if isinstance(tree, dict):
        return {path: leaf for key, branch in tree.items() for path, leaf in flat(branch, f"{prefix}{key}.").items()}
    return {prefix[:-1]: str(tree).lower() if isinstance(tree, bool) else str(tree)}


def blocks_of(settings: dict[str, str]) -> list[str]:
    """The parameter blocks of the network that a file describes."""
    spectrum = "s" if settings.get("model.recurrent.spectrum") == "free" else "p"
    factors = yaml.safe_load(settings.get("model.recurrent.factors", "[]"))
    one_map = BLOCKS.get(settings["model.recurrent.plugin"], ["U", "V", spectrum])
    recurrent = [f"factor_{index}" for index in range(len(factors))] or one_map
    others = {"input.bias": settings["model.input.bias"] == "true",
              "readout.bias": settings["model.readout.bias"] == "true",
              "input.embedding": settings["model.input.embedding.size"] != "0",
              "initial_state": settings["model.initial_state.kind"] == "learned",
              "activation.bias": settings.get("model.cell.activation.kind") == "modrelu",
              "activation.slope": (settings.get("model.cell.activation.kind") == "prelu"
                                   and settings["model.cell.activation.trainable"] == "true"),
              "peephole.input": settings.get("model.cell.peepholes") == "diagonal"}
    return (["input.weight", "readout.weight"] + [name for name, there in others.items() if there]
            + [f"recurrent.{gate}{block}" for gate in GATES[settings["model.cell.plugin"]] for block in recurrent])


def groups_of(config: dict) -> list[dict]:
    return config["optimizer"] if isinstance(config["optimizer"], list) else [config["optimizer"]]


def settings_of(config: dict) -> dict[str, str]:
    """All settings of a file; of the optimizer, optimizer[BLOCK].KEY of the first group that matches the block."""
    groups = groups_of(config)
    settings = flat({key: value for key, value in config.items() if key != "optimizer"})
    for block in blocks_of(settings):
        group = next(group for group in groups if fnmatchcase(block, group["blocks"]))
        settings.update(flat(group, f"optimizer[{block}]."))
    return settings


def loaded(path: Path) -> dict:
    """What a file gives, with the files that it extends."""
    def merge(below: dict, above: dict) -> dict:
        both = {key: merge(below[key], value) if isinstance(value, dict) and isinstance(below.get(key), dict) else value
                for key, value in above.items()}
        return {**below, **both}
    own, tree = yaml.safe_load(path.read_text()), {}
    for base in own.pop("extends", []):
        tree = merge(tree, loaded(path.parent / base))
    return merge(tree, own)


def given_in(file: str, overrides: tuple[str, ...], groups: list[dict], blocks: list[str]) -> set[str]:
    """The settings that a file or the command line gives, named as in settings_of()."""
    tree = loaded(FOLDER / f"{file}.yaml")
    optimizer = tree.pop("optimizer")
    of_groups = [set(flat(one)) if isinstance(one, dict) else {"plugin"}
                 for one in (optimizer if isinstance(optimizer, list) else [optimizer])]
    given = set(flat(tree))
    for path in (override.partition("=")[0] for override in overrides):
        if not path.startswith("optimizer."):
            given.add(path)
            continue
        number, _, key = path.removeprefix("optimizer.").partition(".")
        if number.isdigit():
            of_groups[int(number)].add(key)
        else:
            of_groups[0].add(path.removeprefix("optimizer."))
    for block in blocks:
        group = next(i for i, one in enumerate(groups) if fnmatchcase(block, one["blocks"]))
        given |= {f"optimizer[{block}].{key}" for key in of_groups[group] - {"blocks"}}
    return {setting for setting in given if not any(fnmatchcase(setting, free) for free in FREE)}


def expanded(setting: str, blocks: list[str]) -> list[str]:
    """A setting of the table, for each of the blocks that it names."""
    if not setting.startswith("optimizer["):
        return [setting]
    pattern, key = setting[len("optimizer["):].rsplit("].", 1)
    return [f"optimizer[{block}].{key}" for block in blocks if fnmatchcase(block, pattern)]


def required_of(settings: dict[str, str], blocks: list[str]) -> list[str]:
    trained = [block for block in blocks if settings[f"optimizer[{block}].plugin"] != "frozen"]
    return (REQUIRED + ["train.epochs" if settings["train.steps"] == "0" else "train.steps"]
            + [f"task.{key}" for key in REQUIRED_OF_TASK[settings["task.plugin"]]]
            + [f"model.cell.{key}" for key in REQUIRED_OF_CELL.get(settings["model.cell.plugin"], [])]
            + [f"model.recurrent.{key}" for key in REQUIRED_OF_MAP.get(settings["model.recurrent.plugin"], [])]
            + [f"optimizer[{block}].plugin" for block in blocks]
            + [f"optimizer[{block}].{key}" for block in trained for key in ("rate", "weight_decay", "schedule.kind")])


def compare(file: str, rows: list[dict], *overrides: str) -> tuple[dict[str, str], list[int]]:
    """What is wrong with a file, by setting, and which lines of the table it was compared with."""
    command = [PROGRAM, "validate", FOLDER / f"{file}.yaml", *overrides, "--resolved"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if answer.returncode:
        return {"": f"{file}: {answer.stdout}{answer.stderr}"}, []
    config = yaml.safe_load(answer.stdout)
    settings = settings_of(config)
    blocks = blocks_of(settings)
    given = {setting for setting in given_in(file, overrides, groups_of(config), blocks)
             if {setting, f"{setting}.plugin", f"{setting}.kind"} & set(settings)}
    stated = {}  # the last row that matches wins
    for row in rows:
        if matches(row["files"], file):
            stated.update((setting, row) for setting in expanded(row["setting"], blocks))
    wrong = {setting: f"{file}: {setting} is not in {TABLE.name}"
             for setting in [*required_of(settings, blocks), *given]
             if not {setting, f"{setting}.plugin", f"{setting}.kind"} & set(stated)}
    for setting, row in stated.items():
        value, expected = settings.get(setting, "absent"), row["used"] or row["published"]
        free = expected == "unknown" and value != "absent"
        if free and setting in given:
            wrong[setting] = f"{file}: {setting} is {value}, without a reason in {TABLE.name}:{row['line']}"
        if not free and not agrees(value, expected):
            where = f"{TABLE.name}:{row['line']} ({row['source']})"
            wrong[setting] = f"{file}: {setting} is {value}, but {expected} in {where}"
    return wrong, [row["line"] for row in stated.values()]


def budget_faults(rows: list[dict]) -> list[str]:
    """Items of published.yaml that do not say `budget: ours` exactly where the table has no published length."""
    faults = []
    for item in yaml.safe_load((FOLDER / "published.yaml").read_text())["items"]:
        files = {row["file"].removesuffix(".yaml") for row in item["rows"]}
        lengths = [next((row for row in reversed(rows) if matches(row["files"], file)
                         and row["setting"] in ("train.steps", "train.epochs")), None) for file in files]
        unknown = any(row and row["published"] == "unknown" for row in lengths)
        if unknown != (item.get("budget") == "ours") and item.get("kind") != "seconds":
            faults.append(f"published.yaml: {item['paper']}, {item['item']}: the budget is {'' if unknown else 'not '}ours")
    return faults


def main() -> int:
    rows = read_table()
    paths = [path for paper in PAPERS for path in (FOLDER / paper).glob("*.yaml")]
    files = sorted(f"{path.parent.name}/{path.name.removesuffix('.yaml')}" for path in paths)
    with ThreadPoolExecutor(2) as pool:
        results = dict(zip(files, pool.map(lambda file: compare(file, rows), files)))
    compared = [line for _, lines in results.values() for line in lines]
    faults = [f"{TABLE.name}:{row['line']}: {fault}" for row in rows for fault in faults_of(row)]
    unused = [row["line"] for row in rows if row["line"] not in compared]
    faults += [f"{TABLE.name}:{line}: no file is compared with it" for line in unused]
    faults += [text for wrong, _ in results.values() for text in wrong.values()]
    faults += budget_faults(rows)
    for file, change, setting in CHANGES:
        if setting in results[file][0] or setting not in compare(file, rows, change)[0]:
            faults.append(f"{file}: the change {change} is not reported")
    agreement = f"{len(files)} files agree with {len(rows)} lines of {TABLE.name} in {len(compared)} settings"
    print("\n".join(faults) or agreement)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
