#!/usr/bin/python3
"""experiments/published.yaml is complete and consistent: known keys and kinds, unique rows, experiments that exist, and every experiment of the
papers in a row or listed as unpublished. usage: published_test.py EXPERIMENTS_FOLDER
"""
import importlib.machinery
import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path

import yaml

FOLDER = Path(sys.argv[1])
KEYS = {"row", "file", "set", "seeds", "metric", "value", "kind", "certainty", "judge", "unit", "bench", "needs", "note",
        "explanation"}
KINDS = {"best test", "test", "validation", "curve", "seconds"}
METRICS = {"accuracy", "bpc", "loss", "nll_per_frame", "nmse", "frame_error_rate", "largest_singular_value", "smallest_singular_value",
           "mean_singular_value", "orthogonality_drift", "gradient_ratio", "slope"}
JUDGES = {("reaches", "by"), ("never",), ("better_than",), ("within",)}
TIMES = 20


def number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def wrong_with(row, siblings):
    """What is wrong with a row that has its item's defaults."""
    if row.keys() - KEYS:
        yield f"unknown keys {sorted(row.keys() - KEYS)}"
    kind, judge = row.get("kind"), row.get("judge")
    if kind not in KINDS:
        yield f"unknown kind {kind!r}"
    if row.get("certainty", "printed") not in ("printed", "remembered"):
        yield f"unknown certainty {row['certainty']!r}"
    if kind == "curve" and "value" in row or kind != "curve" and not number(row.get("value")):
        yield "a curve has no value, any other row needs one"
    if kind == "seconds" and not {"unit", "bench"} <= row.keys():
        yield "a time needs `unit` and `bench`"
    if kind != "seconds" and row.get("metric") not in METRICS:
        yield f"unknown metric {row.get('metric')!r}"
    if not all(isinstance(text, str) and re.match(r"[\w.]+=.", text) for text in row.get("set", [])):
        yield "`set` must be a list of key=value"
    if not row.get("seeds", [1]) or not all(isinstance(seed, int) for seed in row.get("seeds", [1])):
        yield "`seeds` must be a list of integers"
    if judge is None:
        if kind == "curve" and "shown only" not in row.get("note", "") and "for comparison" not in row.get("note", ""):
            yield "a curve without `judge` needs a note that says why"
        return
    if kind != "curve":
        yield "only curves have a `judge`"
    if tuple(judge) not in JUDGES:
        yield f"unknown judge {judge}"
    bounds = judge.get("within", [0, 1])
    if len(bounds) != 2 or not all(map(number, bounds)) or not bounds[0] < bounds[1]:
        yield f"{bounds} must be two bounds, the smaller one first"
    if not all(number(judge[key]) for key in ("reaches", "by", "never") if key in judge):
        yield f"{judge} must have numbers"
    other = siblings.get(judge.get("better_than"))
    if "better_than" in judge and (other in (None, row) or other.get("metric") != row.get("metric")):
        yield f"{judge['better_than']!r} must be another row of the item, with the same metric"


def measured_times():
    """Published times of the workloads that tests/bench/run measures."""
    loader = importlib.machinery.SourceFileLoader("bench_run", str(Path(__file__).parent / "bench/run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return {timed.model: timed.published for timed in module.TIMED}


def main():
    published = yaml.safe_load((FOLDER / "published.yaml").read_text(encoding="utf-8"))
    wrong, rows, unlisted = [], [], published["unlisted"]
    if published.keys() != {"tolerances", "papers", "items", "unlisted"}:
        wrong.append(f"unknown or missing parts: {sorted(published)}")
    for item in published["items"]:
        defaults = {key: value for key, value in item.items() if key not in ("paper", "item", "title", "rows")}
        if item["paper"] not in published["papers"]:
            wrong.append(f"unknown paper {item['paper']}")
        siblings = {row["row"]: {**defaults, **row} for row in item["rows"]}
        for row in item["rows"]:
            whole = {**defaults, **row}
            rows.append((item["paper"], item["item"], whole))
            wrong += [f"{item['paper']}, {item['item']}, {row['row']}: {said}" for said in wrong_with(whole, siblings)]
    names = Counter((paper, item, row["row"]) for paper, item, row in rows)
    wrong += [f"{', '.join(name)}: {count} times" for name, count in names.items() if count > 1]
    named = {row.get("file", "a row's `file`") for _, _, row in rows}
    wrong += [f"{file}: in a row, but missing" for file in sorted(named) if not (FOLDER / file).is_file()]
    valued = {row.get("metric") for _, _, row in rows if row["kind"] not in ("curve", "seconds")}
    if valued != published["tolerances"].keys():
        wrong.append(f"the tolerances must be those of {sorted(valued)}")
    there = {f"{paper}/{file.name}" for paper in published["papers"] for file in (FOLDER / paper).glob("*.yaml")}
    wrong += [f"{file}: in no row, and not in `unlisted`" for file in sorted(there - named - unlisted.keys()) if "/figure" not in file]
    wrong += [f"{file}: in `unlisted`, but in a row or missing" for file in unlisted if file in named or file not in there]
    times = {row["bench"]: row["value"] for _, _, row in rows if row["kind"] == "seconds"}
    if len(times) != TIMES or times != measured_times():
        wrong.append(f"the {len(times)} published times are not the {TIMES} of tests/bench/run")
    quality = [row for _, _, row in rows if row["kind"] not in ("curve", "seconds") and row.get("certainty") != "remembered"]
    public, curves = sum("needs" not in row for row in quality), sum(row["kind"] == "curve" for _, _, row in rows)
    summary = f"{len(rows)} rows: {len(quality)} printed results, {public} of them on public data, {curves} curves, {len(times)} times"
    print("\n".join(wrong) or summary)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
