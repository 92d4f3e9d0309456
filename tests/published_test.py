#!/usr/bin/python3
"""experiments/papers/published.yaml is complete and consistent: the program reads it with all experiments, and every experiment of the papers is in a row
or listed as unpublished. usage: published_test.py PROGRAM EXPERIMENTS_FOLDER
"""
import importlib.machinery
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

PROGRAM, FOLDER = sys.argv[1], Path(sys.argv[2])
METRICS = {"accuracy", "bpc", "loss", "nll_per_frame", "nmse", "frame_error_rate", "largest_singular_value", "smallest_singular_value",
           "mean_singular_value", "condition_number", "spectral_radius", "orthogonality_drift", "gradient_ratio", "slope"}
TIMES = 20


def read_by_the_program():
    """What `stiefel reproduce` says of the list, which it reads with all experiments, or nothing."""
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run([PROGRAM, "reproduce", "list", "--experiments", FOLDER, "--output", empty], capture_output=True, text=True,
                              check=False)
    return [done.stderr.strip()] if done.returncode else []


def wrong_with(row, siblings):
    """What the program cannot know to be wrong with a row that has its item's defaults."""
    kind, judge = row["kind"], row.get("judge", {})
    if kind != "seconds" and row.get("metric") not in METRICS:
        yield f"unknown metric {row.get('metric')!r}"
    if kind == "curve" and not judge and "shown only" not in row.get("note", "") and "for comparison" not in row.get("note", ""):
        yield "a curve without `judge` needs a note that says why"
    named = judge.get("better_than", judge.get("faster_than", []))
    for name in [named] if isinstance(named, str) else named:
        other = siblings.get(name)
        if other in (None, row) or other.get("metric") != row.get("metric"):
            yield f"{name!r} must be another row of the item, with the same metric"


def measured_times():
    """Published times of the workloads that tools/bench/run measures."""
    loader = importlib.machinery.SourceFileLoader("bench_run", str(Path(__file__).parents[1] / "tools/bench/run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return {timed.model: timed.published for timed in module.TIMED}


def main():
    published = yaml.safe_load((FOLDER / "papers/published.yaml").read_text(encoding="utf-8"))
    wrong, rows, unlisted = read_by_the_program(), [], published["unlisted"]
    for item in published["items"]:
        defaults = {key: value for key, value in item.items() if key not in ("paper", "item", "title", "rows")}
        siblings = {row["row"]: {**defaults, **row} for row in item["rows"]}
        for row in item["rows"]:
            whole = {**defaults, **row}
            rows.append((item["paper"], item["item"], whole))
            wrong += [f"{item['paper']}, {item['item']}, {row['row']}: {said}" for said in wrong_with(whole, siblings)]
    named = {row["file"] for _, _, row in rows}
    valued = {row.get("metric") for _, _, row in rows if row["kind"] not in ("curve", "seconds")}
    if valued != published["tolerances"].keys():
        wrong.append(f"the tolerances must be those of {sorted(valued)}")
    there = {f"{paper}/{file.name}" for paper in published["papers"] for file in (FOLDER / paper).glob("*.yaml")}
    wrong += [f"{file}: in no row, and not in `unlisted`" for file in sorted(there - named - unlisted.keys()) if "/figure" not in file]
    wrong += [f"{file}: in `unlisted`, but in a row or missing" for file in unlisted if file in named or file not in there]
    times = {row["bench"]: row["value"] for _, _, row in rows if row["kind"] == "seconds"}
    if len(times) != TIMES or times != measured_times():
        wrong.append(f"the {len(times)} published times are not the {TIMES} of tools/bench/run")
    quality = [row for _, _, row in rows if row["kind"] not in ("curve", "seconds") and row.get("certainty", "printed") == "printed"]
    public, curves = sum("needs" not in row for row in quality), sum(row["kind"] == "curve" for _, _, row in rows)
    summary = f"{len(rows)} rows: {len(quality)} printed results, {public} of them on public data, {curves} curves, {len(times)} times"
    print("\n".join(wrong) or summary)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
