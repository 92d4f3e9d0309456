#!/usr/bin/python3
"""The files of the papers have the settings that experiments/papers/statements.csv and experiments/papers/settings.csv say they have, and what the papers state
is neither contradicted nor called unknown.

usage: settings_test.py PROGRAM EXPERIMENTS_FOLDER. The first lines of the tables explain their columns.
"""
import csv
import math
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

PROGRAM, FOLDER = sys.argv[1], Path(sys.argv[2])
SETTINGS = "papers/settings.csv", ["files", "setting", "published", "source", "used", "reason"]
STATEMENTS = "papers/statements.csv", ["paper", "section", "line", "statement", "files", "setting", "published", "used", "item", "standing", "reason"]
STANDINGS = ("followed", "deviates", "judged", "shown", "out of reach")
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
# Settings that papers state: a changed or deleted statement must be reported.
RELIED_ON = [("ornn/ptb_184_lstm", "optimizer[recurrent.forget.W].rate"), ("scornn/adding_200_lstm", "model.cell.forget_bias"),
             ("kru/adding_100", "optimizer[recurrent.factor_0].rate"), ("kru/jsb_kru", "model.cell.activation.kind"),
             ("vorontsov/mnist_m1", "optimizer[recurrent.U].rate"), ("vorontsov/adding_1000", "model.cell.hidden")]
# What a file may give without a line of the table: how a run is named, watched and saved.
FREE = ("name", "seed", "threads", "record.*", "checkpoint.*", "train.evaluate_every", "task.evaluation_batch")


def read_table(name: str, columns: list[str]) -> list[dict]:
    """Its rows as dictionaries, with the place "file:line" as `where`."""
    numbered = enumerate((FOLDER / name).read_text().splitlines(), 1)
    lines = [(number, text) for number, text in numbered if text and not text.startswith("#")]
    rows = list(csv.DictReader(text for _, text in lines))
    assert rows and [*rows[0]] == columns, f"{name} must have the columns {', '.join(columns)}"
    return [{**row, "where": f"{name}:{number}"} for row, (number, _) in zip(rows, lines[1:])]


def faults_of(row: dict) -> list[str]:
    if None in row or None in row.values():
        return ["the number of columns is wrong"]
    faults = [f"no {column}" for column in ("files", "setting", "published") if not row[column]]
    faults += ["no source"] if not row.get("source", "text") else []
    if bool(row["used"]) != bool(row["reason"]) and row.get("standing") != "followed":
        faults.append("used and reason must be given together")
    if row["used"] and agrees(row["used"], row["published"]):
        faults.append("used is what was published")
    return faults


def statement_faults(row: dict, items: dict[str, dict]) -> list[str]:
    """What is wrong with a statement: its standing, its reason, and the item that it names."""
    faults = [f"no {column}" for column in ("paper", "section", "line", "statement") if not row[column]]
    if row["standing"] not in STANDINGS:
        faults.append(f"standing must be one of {', '.join(STANDINGS)}")
    if row["setting"] and row["standing"] != ("deviates" if row["used"] else "followed"):
        faults.append("standing must be deviates where used is given, else followed")
    if row["standing"] in ("deviates", "shown", "out of reach") and not row["reason"]:
        faults.append(f"{row['standing']} needs a reason")
    if bool(row["item"]) != (row["standing"] in ("judged", "shown")):
        faults.append("item must be given with judged and shown, and only there")
    for name in filter(None, row["item"].split("; ")):
        item, _, of_item = name.partition(": ")
        rows = items.get(item, {})
        named = [rows[of_item]] if of_item in rows else [] if of_item else list(rows.values())
        if not named:
            faults.append(f"published.yaml has no {name}")
        elif row["standing"] == "judged" and not any(
                (one.get("judge") or "value" in one) and one.get("certainty", "printed") == "printed" for one in named):
            faults.append(f"nothing judges {name}")
    return faults


def published_items() -> dict[str, dict]:
    """The rows of published.yaml by item, as `stiefel reproduce` names it, with the defaults of their items."""
    items = {}
    for item in yaml.safe_load((FOLDER / "papers/published.yaml").read_text())["items"]:
        name = re.sub("-+", "-", re.sub(r"[^A-Za-z0-9.]", "-", item["item"]))
        items[f"{item['paper']}/{name}"] = {row["row"]: {**item, **row} for row in item["rows"]}
    return items


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
    stated, wrong = {}, {}  # the last row that matches wins
    for row in rows:
        if not matches(row["files"], file):
            continue
        for setting in expanded(row["setting"], blocks):
            before = stated.get(setting, row)
            if "statement" in row and "statement" not in before and is_open(before):
                wrong[setting] = f"{before['where']}: {setting} of {file} is called unknown or ours, but stated in {row['where']}"
            stated[setting] = row
    wrong |= {setting: f"{file}: {setting} is in no table"
              for setting in [*required_of(settings, blocks), *given]
              if not {setting, f"{setting}.plugin", f"{setting}.kind"} & set(stated)}
    for setting, row in stated.items():
        value, expected = settings.get(setting, "absent"), row["used"] or row["published"]
        free = expected == "unknown" and value != "absent"
        if free and setting in given:
            wrong[setting] = f"{file}: {setting} is {value}, without a reason in {row['where']}"
        if not free and not agrees(value, expected):
            wrong[setting] = f"{file}: {setting} is {value}, but {expected} in {row['where']} ({row.get('source', 'the text')})"
    return wrong, [row["where"] for row in stated.values()]


def is_open(row: dict) -> bool:
    """Whether a line of settings.csv says that the value is not known, or that it is a choice of this project."""
    words = " ".join((row["published"], row["source"], row["reason"])).lower()
    return row["published"] == "unknown" or any(word in words for word in ("our choice", "not published", "not stated", "not given", "not known"))


def budget_faults(rows: list[dict], items: dict[str, dict]) -> list[str]:
    """Rows of published.yaml that do not say `budget: ours` exactly where the tables have no published length for their file."""
    faults = []
    for item, of_item in items.items():
        for name, one in of_item.items():
            file = one["file"].removesuffix(".yaml")
            length = next((row for row in reversed(rows) if matches(row["files"], file) and row["setting"] in ("train.steps", "train.epochs")), None)
            unknown = length is not None and length["published"] == "unknown"
            if unknown != (one.get("budget") == "ours") and one.get("kind") != "seconds":
                faults.append(f"published.yaml: {item}: {name}: the budget is {'' if unknown else 'not '}ours")
    return faults


def silent_changes(statements: list[dict], settings: list[dict]) -> list[str]:
    """Statements whose value can be changed, or that can be taken away, without a complaint about the file that relies on them."""
    faults = []
    for file, setting in RELIED_ON:
        one = next((row for row in reversed(statements) if row["setting"] and matches(row["files"], file) and fnmatchcase(setting, glob(row["setting"]))), None)
        if one is None:
            faults.append(f"{file}: no statement about {setting}")
            continue
        others = [row for row in statements if row["setting"] and row is not one]
        for what, rows in (("changed", others + [{**one, "published": "12345", "used": ""}]), ("deleted", others)):
            if setting not in compare(file, settings + rows)[0]:
                faults.append(f"{one['where']}: can be {what} without a word about {file}")
    return faults


def glob(setting: str) -> str:
    """The setting of a table as a pattern for settings of one block."""
    return setting.replace("[", "[[]", 1) if setting.startswith("optimizer[") else setting


def main() -> int:
    settings, statements = read_table(*SETTINGS), read_table(*STATEMENTS)
    items = published_items()
    rows = settings + [row for row in statements if row["setting"]]
    paths = [path for paper in PAPERS for path in (FOLDER / paper).glob("*.yaml")]
    files = sorted(f"{path.parent.name}/{path.name.removesuffix('.yaml')}" for path in paths)
    with ThreadPoolExecutor(2) as pool:
        results = dict(zip(files, pool.map(lambda file: compare(file, rows), files)))
    compared = [where for _, places in results.values() for where in places]
    faults = [f"{row['where']}: {fault}" for row in rows for fault in faults_of(row)]
    faults += [f"{row['where']}: {fault}" for row in statements for fault in statement_faults(row, items)]
    used = set(compared)
    faults += [f"{row['where']}: no file is compared with it" for row in rows if row["where"] not in used]
    faults += [text for wrong, _ in results.values() for text in wrong.values()]
    faults += budget_faults(rows, items)
    for file, change, setting in CHANGES:
        if setting in results[file][0] or setting not in compare(file, rows, change)[0]:
            faults.append(f"{file}: the change {change} is not reported")
    faults += silent_changes(statements, settings)
    agreement = (f"{len(files)} files agree with {len(statements)} statements of the papers and {len(settings)} lines of {SETTINGS[0]} "
                 f"in {len(compared)} settings")
    print("\n".join(faults) or agreement)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
