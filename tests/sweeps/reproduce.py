#!/usr/bin/python3
"""`stiefel reproduce` on a list of its own: what is missing is run, killed and resumed; states follow from the runs; the report repeats.

usage: reproduce.py STIEFEL
"""
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import h5py

from tiny import kill

EXPERIMENT = """name: {name}
task: {{plugin: adding, length: 8}}
model: {{cell: {{plugin: elman, hidden: 8}}, recurrent: {{plugin: householder, reflections: 2}}}}
optimizer: {{plugin: adam, rate: 0.01}}
train: {{batch: 4, steps: {steps}, evaluate_every: 20}}
{more}"""
LIST = """tolerances: {{loss: 0.01, accuracy: 0.01}}
papers:
  tiny: {{authors: "A & B", year: 2020, title: "Tiny"}}
items:
  - paper: tiny
    item: table 1
    title: "Values"
    metric: loss
    kind: validation
    rows:
      - {{row: "first", file: tiny/first.yaml, value: {first}}}
      - {{row: "first, remembered", file: tiny/first.yaml, value: 1, certainty: remembered}}
      - {{row: "two seeds", file: tiny/first.yaml, value: 0.001, seeds: [1, 2]}}
      - {{row: "other set", file: tiny/first.yaml, value: 1e6, set: [model.recurrent.reflections=1]}}
  - paper: tiny
    item: table 2
    title: "Closed"
    metric: loss
    kind: validation
    rows:
      - {{row: "no data", file: tiny/absent.yaml, value: 1, needs: "a closed corpus"}}
  - paper: tiny
    item: figure 2
    title: "Curves"
    metric: loss
    kind: curve
    rows:
      - {{row: "reaches", file: tiny/first.yaml, judge: {{reaches: 1e6, by: 40}}}}
      - {{row: "reaches late", file: tiny/first.yaml, judge: {{reaches: 1e6, by: 10}}}}
      - {{row: "never", file: tiny/first.yaml, judge: {{never: 1e-9}}}}
      - {{row: "order", file: tiny/first.yaml, judge: {{better_than: "never"}}}}
      - {{row: "test", file: tiny/first.yaml, kind: test, value: 1e6}}
      - {{row: "order of tests", file: tiny/first.yaml, judge: {{better_than: "test"}}}}
      - {{row: "within", file: tiny/first.yaml, metric: largest_singular_value, judge: {{within: [0.9, 1.1]}}}}
      - {{row: "shown", file: tiny/first.yaml}}
  - paper: tiny
    item: figure 4
    title: "Panels"
    panels: [one, part 2]
    metric: loss
    kind: curve
    note: "Of the whole item."
    rows:
      - {{row: "one, curve", file: tiny/first.yaml, judge: {{never: 1e-9}}, budget: ours, note: "Of one row."}}
      - {{row: "one, seeds", file: tiny/first.yaml, seeds: [1, 2]}}
      - {{row: "map, part 2: largest", file: tiny/first.yaml, metric: largest_singular_value, set: [record.spectrum=20]}}
  - paper: tiny
    item: figure 5
    title: "Values"
    against: m
    metric: loss
    kind: curve
    rows:
      - {{row: "m = 2", file: tiny/first.yaml}}
      - {{row: "m = 1", file: tiny/first.yaml, set: [model.recurrent.reflections=1]}}
  - paper: tiny
    item: table 3
    title: "Times"
    kind: seconds
    unit: min/epoch
    rows:
      - {{row: "timed", file: tiny/first.yaml, value: 2, bench: "one"}}
      - {{row: "in seconds", file: tiny/first.yaml, value: 2, unit: s, bench: "one"}}
      - {{row: "not timed", file: tiny/first.yaml, value: 2, bench: "two"}}
"""


class Reproduction:
    def __init__(self, program, folder):
        self.program, self.folder, self.output = program, folder, folder / "runs"
        for name in ("tiny", "papers"):
            (folder / "experiments" / name).mkdir(parents=True)
        self.experiment("first", 60)
        self.experiment("long", 4000)
        self.experiment("absent", 20)
        self.publish()

    def experiment(self, name, steps, more=""):
        (self.folder / f"experiments/tiny/{name}.yaml").write_text(EXPERIMENT.format(name=name, steps=steps, more=more))

    def publish(self, first=0.5, more=""):
        (self.folder / "experiments/papers/published.yaml").write_text(LIST.format(first=first) + more)

    def publish_curves(self, *rows):
        """Adds the item "text" with these rows, in YAML."""
        head = '  - {paper: tiny, item: text, title: "T", metric: loss, kind: curve, rows: ['
        self.publish(more=head + ", ".join(rows) + "]}\n")

    def command(self, *words):
        return [self.program, "reproduce", *map(str, words), "--output", self.output, "--experiments", self.folder / "experiments",
                "--timings", self.folder / "timings.json", *([] if words[0] in ("list", "report") else ["--threads", "1"])]

    def __call__(self, *words, code=0):
        done = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr if code else done.stdout

    def rows(self):
        return {row["row"]: row for row in json.loads(self("list", "--json"))}

    def states(self):
        return {name: row["state"] for name, row in self.rows().items()}

    def folders(self):
        return sorted(path.parent.name for path in self.output.glob("runs/*/*/config.yaml"))


def check_values(reproduce):
    measured = reproduce.rows()["first"]["measured"]
    for published, state in ((measured - 0.009, "matched"), (measured + 0.009, "matched"), (measured - 0.011, "deviates upwards"), (measured + 0.011, "deviates downwards")):
        reproduce.publish(first=published)
        assert reproduce.states()["first"] == state, (published, measured, state)
    reproduce.publish()


def check_budget(reproduce):
    reproduce("tiny/table-1", "--budget", ".5", "--plan")
    assert len(reproduce("tiny/first", "--dry-run", "--budget", ".5").splitlines()) == 5  # two seeds, two other sets, the title
    for text, runs in (("two seeds", 2), ("other", 1), ("first", 1)):
        assert reproduce("tiny/table-1", "--dry-run", "--row", text).count("\n") == 1 + runs, text
    assert [row["row"] for row in json.loads(reproduce("list", "tiny/table-1", "--row", "first", "--json"))] == ["first"]
    assert [row["row"] for row in json.loads(reproduce("list", "tiny/table-1", "--row", "first,", "--json"))] == ["first, remembered"]
    reproduce("tiny/first", "--budget", ".5", "-j", "2")
    row = reproduce.rows()["first"]
    assert row["state"] == "50% of the budget" and row["share"] == 0.5, row


def check_whole(reproduce):
    reproduce("tiny/first", "--row", "first")
    rows = reproduce.rows()
    assert rows["two seeds"]["measured"] == rows["first"]["measured"], "a run with half of the budget counts next to a whole one"
    reproduce("tiny/first", "-j", "2")
    assert reproduce("tiny/first", "--dry-run").count("\n") == 1, "finished runs are planned again"
    expected = {"first, remembered": "measured, published value uncertain", "two seeds": "deviates upwards", "other set": "deviates downwards",
                "no data": "needs a closed corpus", "reaches": "matched", "reaches late": "missed", "never": "matched", "order": "missed",
                "test": "deviates downwards", "order of tests": "missed",
                "within": "matched", "shown": "measured", "timed": "not measured", "not timed": "not measured"}
    states = reproduce.states()
    assert {name: states[name] for name in expected} == expected, states
    rows = reproduce.rows()
    assert len(rows["two seeds"]["runs"]) == 2
    assert rows["order of tests"]["measured"] == rows["test"]["measured"] != rows["order"]["measured"] == rows["shown"]["measured"]


def check_criteria(reproduce):
    """Values of several seeds, criteria that are not met, and accuracies, of which the highest are best."""
    rows = reproduce.rows()
    values = [run["value"] for run in rows["two seeds"]["runs"]]
    assert abs(rows["two seeds"]["measured"] - sum(values) / 2) < 1e-12, rows["two seeds"]
    between = sum(values) / 2
    one = "{row: m2, file: tiny/first.yaml, judge: {better_than: m1}}"
    other = "{row: m1, file: tiny/first.yaml, set: [model.recurrent.reflections=1], judge: {better_than: m2}}"
    reproduce.publish_curves(
        f"{{row: one of two, file: tiny/first.yaml, seeds: [1, 2], judge: {{reaches: {between}, by: 60}}}}",
        f"{{row: both, file: tiny/first.yaml, seeds: [1, 2], judge: {{reaches: {max(values)}, by: 60}}}}",
        "{row: at the last step, file: tiny/first.yaml, judge: {reaches: 1e6, by: 20}}",
        "{row: not never, file: tiny/first.yaml, judge: {never: 1e6}}",
        "{row: below, file: tiny/first.yaml, metric: largest_singular_value, judge: {within: [1.1, 1.2]}}",
        "{row: above, file: tiny/first.yaml, metric: largest_singular_value, judge: {within: [0.8, 0.9]}}", one, other,
        "{row: accurate, file: tiny/first.yaml, metric: accuracy, judge: {reaches: 2, by: 60}}",
        "{row: a2, file: tiny/first.yaml, metric: accuracy, judge: {better_than: a1}}",
        "{row: a1, file: tiny/first.yaml, metric: accuracy, set: [model.recurrent.reflections=1], judge: {better_than: a2}}")
    rows = reproduce.rows()
    states = {name: row["state"] for name, row in rows.items()}
    expected = {"one of two": "missed", "both": "matched", "at the last step": "matched", "not never": "missed", "below": "missed", "above": "missed", "accurate": "missed"}
    for better, first, second in ((min, "m1", "m2"), (max, "a1", "a2")):
        measured = rows[first]["measured"], rows[second]["measured"]
        expected |= {name: "matched" if rows[name]["measured"] == better(measured) and measured[0] != measured[1] else "missed" for name in (first, second)}
    assert {name: states[name] for name in expected} == expected, states
    with h5py.File(pathlib.Path(rows["a2"]["runs"][0]["run"]) / "results.h5") as file:
        accuracy, best = file["epochs/valid_accuracy"][:], file["epochs/valid_loss"][:].argmin()
    assert rows["a2"]["measured"] == accuracy.max(), (rows["a2"], accuracy)
    for published, state in ((accuracy[best] + 0.02, "deviates downwards"), (accuracy[best] - 0.02, "deviates upwards"), (accuracy[best] + 0.005, "matched")):
        reproduce.publish_curves(f"{{row: value, file: tiny/first.yaml, metric: accuracy, kind: validation, value: {published}}}")
        assert reproduce.states()["value"] == state, (published, state)
    reproduce.publish()


def check_order(reproduce):
    """Rows that must be better or faster than others: than each of them, with each seed, at an earlier evaluation."""
    with h5py.File(pathlib.Path(reproduce.rows()["first"]["runs"][0]["run"]) / "results.h5") as file:
        losses, steps = file["epochs/valid_loss"][:], file["epochs/step"][:]
    assert list(steps) == [20, 40, 60], steps
    easy, hard = losses.max() * 1.01, losses.min() * 0.5
    slow = "set: [optimizer.rate=1e-9]"
    reproduce.publish_curves(
        f"{{row: fast, file: tiny/first.yaml, judge: {{faster_than: slow, to: {losses.min()}}}}}",
        f"{{row: slow, file: tiny/first.yaml, {slow}, judge: {{faster_than: fast, to: {losses.min()}}}}}",
        f"{{row: tie, file: tiny/first.yaml, judge: {{faster_than: slow, to: {max(easy, 1e3)}}}}}",
        f"{{row: neither, file: tiny/first.yaml, judge: {{faster_than: slow, to: {hard}}}}}",
        "{row: best, file: tiny/first.yaml, judge: {better_than: [slow, other]}}",
        "{row: not best, file: tiny/first.yaml, judge: {better_than: [slow, best]}}",
        "{row: not known, file: tiny/first.yaml, judge: {better_than: [slow, absent], after_runs: true}}",
        "{row: absent, file: tiny/absent.yaml}",
        f"{{row: other, file: tiny/first.yaml, {slow}}}",
        f"{{row: stays, file: tiny/first.yaml, {slow}, judge: {{returns: 1e3}}}}",
        "{row: other rate, file: tiny/first.yaml, set: [optimizer.rate=1]}",
        "{row: quoted, file: tiny/first.yaml, kind: validation, value: 7, certainty: quoted}")
    reproduce("tiny/text", "--row", "slow")
    reproduce("tiny/text", "--row", "other rate")
    with h5py.File(pathlib.Path(reproduce.rows()["other rate"]["runs"][0]["run"]) / "results.h5") as file:
        rising = file["epochs/valid_loss"][:]
    assert rising.argmin() < 2 and rising[rising.argmin() + 1] > rising.min() * 1.001, rising
    states = reproduce.states()
    expected = {"fast": "matched", "slow": "missed", "tie": "missed", "neither": "missed", "best": "matched", "not best": "missed", "not known": "measured",
                "stays": "missed", "quoted": "measured, judged where it is printed"}
    assert {name: states[name] for name in expected} == expected, states
    listed = reproduce("list", "tiny/text")
    reproduce.publish_curves(*(f"{{row: {name}, file: tiny/first.yaml, set: [optimizer.rate=1], judge: {{returns: {rising.min() * factor}}}}}"
                               for name, factor in (("falls back", 1.0005), ("never below", 0.5))))
    states = reproduce.states()
    assert (states["falls back"], states["never below"]) == ("matched", "missed"), states
    assert "better than slow; absent †" in listed and f"≤ {losses.min():.4g} earlier than slow" in listed and "7 (quoted)" in listed, listed
    for fault, words in (("{row: a, file: tiny/first.yaml, judge: {faster_than: a}}", "`faster_than` needs the value"),
                         ("{row: a, file: tiny/first.yaml, judge: {better_than: []}}", "name at least one row"),
                         ("{row: a, file: tiny/first.yaml, judge: {never: 1, within: [0, 1]}}", "judge must have only one criterion"),
                         ("{row: a, file: tiny/first.yaml, judge: {faster_than: b, to: 1}}, {row: b, file: tiny/first.yaml, kind: test, value: 1}", "is not a curve"),
                         ("{row: a, file: tiny/first.yaml, judge: {better_than: [c, b]}}, {row: c, file: tiny/first.yaml}, {row: b, file: tiny/first.yaml, kind: test, value: 1}",
                          "must be of the same kind"),
                         ("{row: a, file: tiny/first.yaml, judge: {better_than: [a, b]}}", 'the item has no row "b"')):
        reproduce.publish_curves(fault)
        assert words in reproduce("list", code=2), words
    reproduce.publish()


def check_others_runs(reproduce):
    """A run of another build, whose folder has the build behind its id, counts, and its commit is shown."""
    row = reproduce.rows()["first"]
    run = pathlib.Path(row["runs"][0]["run"])
    run.rename(run.with_name(run.name + "-0123456789"))
    found = reproduce.rows()["first"]
    assert found["state"] == row["state"] and found["runs"][0]["commit"] == row["runs"][0]["commit"] != "", found
    assert reproduce("tiny/first", "--dry-run").count("\n") == 1


def check_changed_default(reproduce):
    """A run that was made when `record.loss` was 5 still counts after the file has left that to the default."""
    reproduce.experiment("dated", 20, "record: {loss: 5}\n")
    reproduce.publish_curves("{row: dated, file: tiny/dated.yaml}")
    reproduce("tiny/dated")
    reproduce.experiment("dated", 20)
    assert reproduce.rows()["dated"]["state"] == "measured"
    assert reproduce("tiny/dated", "--dry-run").count("\n") == 1
    reproduce.experiment("dated", 20, "scalar: float64\n")
    assert reproduce.rows()["dated"]["state"] == "not run", "a run with another setting counts"
    reproduce.publish()


def check_divergence(reproduce):
    """Diverged is what diverged with the whole budget, also where a part of it was finished; uncertain curves are not judged."""
    reproduce.publish_curves("{row: broken, file: tiny/first.yaml, set: [optimizer.rate=1e30], judge: {never: 1e-9}}",
                             "{row: uncertain, file: tiny/first.yaml, certainty: remembered, judge: {never: 1e-9}}")
    reproduce("tiny/text", "--budget", ".5", code=5)
    states = reproduce.states()
    assert states["broken"].startswith("diverged at step ") and states["uncertain"] == "measured, published value uncertain", states
    reproduce("tiny/text", "--budget", ".016")  # one step
    assert reproduce.states()["broken"].startswith("diverged at step "), reproduce.states()
    reproduce("tiny/text", code=5)
    assert reproduce.states()["broken"] == "diverged"
    assert reproduce("tiny/text", "--dry-run").count("\n") == 1, "a diverged run is planned again"
    reproduce.publish()


def check_failed_run(reproduce):
    """What failed is tried again."""
    table = reproduce.folder / "there.csv"
    task = f"task={{plugin: sequence_csv, data: {table}, sequence: name, targets: [z]}}"
    reproduce.publish_curves(f"{{row: data, file: tiny/first.yaml, set: ['{task}']}}")
    assert str(table) in reproduce("tiny/text", code=4)
    table.write_text("name,x,z\n" + "".join(f"{sequence},{step},{sequence % 3}\n" for sequence in range(90) for step in range(4)), encoding="utf-8")
    reproduce("tiny/text")
    assert reproduce.states()["data"] == "measured"
    reproduce.publish()


def check_paired_seeds(reproduce):
    """Rows are compared over the seeds that both have: the same runs are never better than each other."""
    reproduce.publish_curves("{row: one seed, file: tiny/first.yaml, judge: {better_than: both seeds}}",
                             "{row: both seeds, file: tiny/first.yaml, seeds: [1, 2], judge: {better_than: one seed}}",
                             "{row: other seed, file: tiny/first.yaml, seeds: [3], judge: {better_than: one seed}}",
                             "{row: broken, file: tiny/first.yaml, set: [optimizer.rate=1e30], seeds: [1, 2]}")
    reproduce("tiny/text", "--row", "seed")
    rows = reproduce.rows()
    assert rows["one seed"]["measured"] != rows["both seeds"]["measured"]
    assert [rows[name]["state"] for name in ("one seed", "both seeds", "other seed")] == ["missed", "missed", "measured"], rows
    reproduce("tiny/text", "--row", "broken", code=5)
    assert re.search(r"broken .*  2/2, 2 diverged +diverged$", reproduce("list", "tiny/text"), re.M), reproduce("list", "tiny/text")
    reproduce.publish()


def check_changed_run(reproduce):
    """A run that was resumed with another rate is no run of the row."""
    reproduce.publish_curves("{row: slow, file: tiny/first.yaml, seeds: [7]}")
    stiefel = lambda *words: subprocess.run([reproduce.program, *map(str, words), "--quiet"], capture_output=True, text=True, check=False).returncode
    assert stiefel("run", reproduce.folder / "experiments/tiny/first.yaml", "seed=7", "--output", reproduce.output / "runs", "--until", "20") == 75
    run, = (path.parent.parent for path in reproduce.output.glob("runs/first/*/checkpoints/step_00000020.h5"))
    assert stiefel("resume", run, "optimizer.rate=1e-5", "--allow-change", "optimizer.rate") == 0
    assert reproduce.states()["slow"] == "not run", reproduce.states()
    assert "was resumed with another optimizer.rate" in reproduce("tiny/text", code=2)
    shutil.rmtree(run)
    reproduce.publish()


def check_quantities(reproduce):
    """Quantities of figures are those that the result file has at the last snapshot."""
    names = ("largest_singular_value", "smallest_singular_value", "mean_singular_value", "orthogonality_drift", "gradient_ratio", "slope", "condition_number", "spectral_radius")
    settings = '[model.recurrent=dense, "model.cell.activation={kind: prelu, slope: 0.7}", record.spectrum=20, record.gradient_norms=20, record.orthogonality=20, "record.blocks={activation.slope: 20}"]'
    reproduce.publish_curves(*(f"{{row: {name}, metric: {name}, file: tiny/first.yaml, set: {settings}}}" for name in names))
    reproduce("tiny/text")
    found = reproduce.rows()
    with h5py.File(pathlib.Path(found["slope"]["runs"][0]["run"]) / "results.h5") as file:
        values, defects = file["spectrum/recurrent/singular_values"][-1], file["orthogonality/recurrent/defect_fro"][:]
        norms = file["gradient/last_step_grad_norm" if "last_step_grad_norm" in file["gradient"] else "gradient/hidden_grad_norm"][-1]
        slopes = file["blocks/activation_slope/values"][-1]
        expected = (values.max(), values.min(), values.mean(), defects.ravel()[-1] / defects.ravel()[0], norms[0] / norms[-1], slopes.mean(), values.max() / values.min(),
                    file["spectrum/recurrent/eigenvalue_modulus"][-1].max())
    for name, value in zip(names, expected):
        assert abs(found[name]["measured"] / value - 1) < 1e-9, (name, found[name]["measured"], value)
    for metric in ("perplexity", "slope"):
        reproduce.publish_curves(f"{{row: none, metric: {metric}, file: tiny/first.yaml}}")
        said = reproduce("list", code=2)
        assert re.search(rf"published.yaml:\d+:\d+: the row 'none' needs {metric}, of which the finished run \S+ has none", said), said
    reproduce.publish()


def check_kill(reproduce):
    reproduce.publish_curves("{row: long, file: tiny/long.yaml}")
    worker = subprocess.Popen(reproduce.command("tiny/long"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + 60
    while not list(reproduce.output.glob("runs/long/*/checkpoints/step_*.h5")):
        assert time.monotonic() < end and worker.poll() is None, "no checkpoint came"
        time.sleep(0.02)
    runs = subprocess.run(["pgrep", "-f", f"run {reproduce.output}/configs"], capture_output=True, text=True, check=False).stdout.split()
    for pid in runs:
        os.kill(int(pid), signal.SIGSTOP)
    assert reproduce.states()["long"].startswith("running at step "), reproduce.states()
    reproduce("report", "tiny/text", "--to", reproduce.folder / "meanwhile")
    record = json.loads((reproduce.folder / "meanwhile/reproduction.json").read_text())
    recorded = next(seed for name, seed in record.items() if name.startswith("tiny/long.yaml"))
    assert recorded["state"] == "stopped" and recorded["x"], "what was running has stopped for whoever reads the record later"
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    for pid in runs:
        kill(int(pid))
    assert "at step" in reproduce.states()["long"], reproduce.states()
    before = reproduce.rows()["long"]["runs"][0]["cpu_seconds"]
    assert before > 0
    reproduce("tiny/long")
    assert reproduce.states()["long"] == "measured"
    assert reproduce.rows()["long"]["runs"][0]["cpu_seconds"] > before, "the time of the process that was killed is lost"
    assert len([name for name in reproduce.output.glob("runs/long/*/config.yaml")]) == 1
    reproduce.publish()


def check_timings(reproduce):
    for damaged in ('{"epochs": [{"seconds": 1}]}', '{"epochs": 5}', '{}', "[]", "{"):
        (reproduce.folder / "timings.json").write_text(damaged)
        assert "timings.json is not JSON from `tools/bench/run epochs`" in reproduce("list", code=6), damaged
    (reproduce.folder / "timings.json").write_text(json.dumps({"epochs": [
        {"model": "one", "seconds": {"median": 0.6}, "steps": 200, "made": {"stiefel": {"git_commit": "abc"}}}]}))
    rows = reproduce.rows()
    assert rows["timed"]["state"] == "measured" and abs(rows["timed"]["measured"] - 2) < 1e-9, rows["timed"]
    assert abs(rows["in seconds"]["measured"] - 120) < 1e-9
    assert rows["not timed"]["state"] == "not measured"


def check_figures(reproduce, document):
    """Each figure of the document is there: curves in panels, and values over a setting."""
    figures = {path.name: path.read_text() for path in (reproduce.folder / "documents/figures").iterdir()}
    assert sorted(figures) == sorted(re.findall(r'<img src="figures/([^"]*)"', document)) == [
        "tiny_figure_4_one.svg", "tiny_figure_4_part_2.svg",
        "tiny_figure_5.svg"], (sorted(figures), document)
    for words in ("optimizer step", "validation loss", "criterion: always &gt; 1e-09", ">curve<", ">seeds<"):
        assert words in figures["tiny_figure_4_one.svg"], words
    assert "largest singular value" in figures["tiny_figure_4_part_2.svg"] and ">map<" in figures["tiny_figure_4_part_2.svg"]
    values = figures["tiny_figure_5.svg"]
    assert ">m<" in values and "validation loss" in values and "optimizer step" not in values and re.search('data-x="[0-9. ]+ log"', values), values
    record = json.loads((reproduce.folder / "documents/reproduction.json").read_text())
    trace = record["tiny/first.yaml: loss (curve), seed 1"]
    assert trace["x"] == [20, 40, 60] and min(trace["y"]) == float(f"{trace['value']:.6g}"), trace
    assert not any("x" in seed for name, seed in record.items() if "(validation)" in name)


def check_overview(rows, document):
    """The first table counts the verdicts of each item."""
    lines = [line[2:-2].split(" | ") for line in document.partition("| item |")[2].partition("\n\n")[0].splitlines()[2:]]
    states = {}
    for row in rows:
        states.setdefault(f"{row['paper']}/{row['item'].replace(' ', '-')}", []).append(row["state"])
    assert [line[0] for line in lines] == list(states), (lines, states)
    for line, of_item in zip(lines, states.values()):
        verdicts = ("matched", "deviates upwards", "deviates downwards", "missed", "diverged")
        measured = sum(state in verdicts or state.startswith("measured") for state in of_item)
        assert line[2:4] == [str(len(of_item)), str(measured or next((state for state in of_item if state != "not run" and not state.startswith("needs")), of_item[0]))], (line, of_item)
        assert [int(word or 0) for word in line[4:]] == [of_item.count(word) for word in verdicts], (line, of_item)


def check_report(reproduce):
    said = reproduce("report", "--to", reproduce.folder / "documents")
    document = reproduce.folder / "documents/REPRODUCTION.md"
    page = reproduce.output / "reproduction.html"
    assert said.split() == [str(document), str(page)], said
    first = document.read_text(), page.read_text()
    reproduce("report", "--to", reproduce.folder / "documents")
    assert (document.read_text(), page.read_text()) == first, "the report differs when it is written again"
    for words in ("A & B 2020, table 1: Values", "| first |", "unexplained", "printed results: "):
        assert words in first[0], (words, first[0])
    between = statistics.stdev(run["value"] for run in reproduce.rows()["two seeds"]["runs"])
    shown, = re.findall(r"\| two seeds \|[^|]*\| [0-9.]+ ± ([0-9.]+) ", first[0])
    assert abs(float(shown) / between - 1) < 0.1, (shown, between)
    assert first[1].count("<svg xmlns") == 3 and "<h2>A &amp; B 2020, figure 2: Curves</h2>" in first[1]
    for text in first:
        assert "Of the whole item." in text and "one, curve: Of one row." in text, text
    assert "; for 1 of them, the paper does not give the budget, and 0 lack some of their seeds." in first[0], first[0]
    assert " 100% of ours |" in next(line for line in first[0].splitlines() if line.startswith("| one, curve |")), first[0]
    with h5py.File(pathlib.Path(reproduce.rows()["one, curve"]["runs"][0]["run"]) / "results.h5") as file:
        last = f"{file['epochs/valid_loss'][-1]:.3g}"
    header, line = (next(l for l in first[0].partition("figure 4: Panels\n")[2].splitlines() if l.startswith(start)).split(" | ") for start in ("| row |", "| one, curve |"))
    assert line[header.index("at the end")] == last, (header, line, last)
    check_figures(reproduce, first[0])
    rows = json.loads(reproduce("list", "--json"))
    check_overview(rows, first[0])
    listed = {row["row"]: row["state"] for row in rows}
    for name, state in listed.items():
        assert f"| {name} |" not in first[0] or f"| {state} |" in next(l for l in first[0].splitlines() if l.startswith(f"| {name} |")), name


def check_stopped_run(reproduce):
    """An unfinished run is shown with its curve, also after it is gone, until a whole run replaces it."""
    reproduce.publish_curves("{row: begun, file: tiny/first.yaml, seeds: [9], judge: {reaches: 1e6, by: 40}}")
    to, away = reproduce.folder / "begun", reproduce.output.with_name("away")
    words = ["seed=9", "--output", str(reproduce.output / "runs"), "--quiet"]
    run = lambda *more: subprocess.run([reproduce.program, "run", reproduce.folder / "experiments/tiny/first.yaml", *words, *more], check=False).returncode
    assert run("--until", "40") == 75
    document = lambda: (to / "REPRODUCTION.md").read_text()
    reproduce("report", "tiny/text", "--to", to)
    with_run = document()
    row, = (line for line in with_run.splitlines() if line.startswith("| begun |"))
    assert row.endswith(" | stopped at step 40 |") and row.split(" | ")[2] == "", row
    assert "src=\"figures/tiny_text.svg\"" in with_run and (to / "figures/tiny_text.svg").exists()
    reproduce.output.rename(away)
    reproduce("report", "tiny/text", "--to", to)
    assert document() == with_run
    shutil.rmtree(reproduce.output)
    away.rename(reproduce.output)
    assert reproduce("tiny/text", "--dry-run").count("\n") == 2, "a stopped run is not resumed"
    reproduce("tiny/text")
    reproduce("report", "tiny/text", "--to", to)
    assert "| matched |" in next(line for line in document().splitlines() if line.startswith("| begun |"))
    reproduce.publish()


def check_record(reproduce):
    """The record next to REPRODUCTION.md keeps what was measured when the runs are gone, as long as the settings are the same."""
    to = reproduce.folder / "documents"
    listed = lambda: {row["row"]: row for row in json.loads(reproduce("list", "--json", "--to", to))}
    with_runs, document = listed(), (to / "REPRODUCTION.md").read_text()
    figure = (to / "figures/tiny_figure_4_one.svg").read_text()
    record = (to / "reproduction.json").read_text()
    measured = {(row["file"], *row["set"], row["metric"], row["measured_as"], run["seed"]) for row in with_runs.values() for run in row["runs"]
                if row["kind"] != "seconds"}
    assert record.count('"settings"') == len(measured), "a run and what is measured of it stand in several lines, or in none"
    gone = reproduce.output.with_name("gone")
    reproduce.output.rename(gone)
    without = listed()
    for name, row in with_runs.items():
        assert (row["state"], row["measured"]) == (without[name]["state"], without[name]["measured"]), (row, without[name])
        assert all(run["run"] == "" for run in without[name]["runs"])
    assert sum(row["measured"] is not None for row in without.values()) >= 5
    reproduce("report", "--to", to)
    assert ((to / "REPRODUCTION.md").read_text(), (to / "reproduction.json").read_text()) == (document, record)
    assert (to / "figures/tiny_figure_4_one.svg").read_text() == figure, "a figure needs the runs"
    (to / "figures/own.svg").write_text("")
    reproduce("report", "tiny/table-3", "--to", to)
    assert [path.name for path in (to / "figures").iterdir()] == ["own.svg"], "figures of the earlier document are still there, or another's is gone"
    assert (to / "reproduction.json").read_text() == record, "a report of one item loses the record of the others"
    assert reproduce("tiny/first", "--dry-run").count("\n") > 1, "a record must not keep anyone from running"
    assert set(reproduce.states().values()) == {"not run", "not measured", "measured", "needs a closed corpus"}, reproduce.states()
    published = reproduce.folder / "experiments/papers/published.yaml"
    published.write_text(published.read_text().replace("reaches: 1e6, by: 40", "reaches: 1e-9, by: 40"))
    assert listed()["reaches"]["state"] == "missed", "a new criterion must judge the recorded run"
    reproduce.experiment("first", 600)
    assert listed()["first"]["state"] == "10% of the budget", listed()["first"]
    reproduce.experiment("first", 60, more="checkpoint: {keep: 5}\n")
    assert listed()["first"]["state"] != "not run", "a key without effect on results loses the record"
    reproduce.experiment("first", 60, more="record: {spectrum: 10}\n")
    assert {listed()[name]["state"] for name in ("first", "shown", "never")} == {"not run"}
    reproduce.experiment("first", 60)
    (to / "reproduction.json").write_text("{")
    assert "reproduction.json is not JSON from" in reproduce("list", "--to", to, code=6)
    (to / "reproduction.json").write_text(record.replace('"share"', '"sare"'))
    assert "reproduction.json" in reproduce("list", "--to", to, code=6)
    (to / "reproduction.json").write_text(record)
    shutil.rmtree(reproduce.output)
    gone.rename(reproduce.output)
    reproduce.publish()


def check_errors(reproduce):
    assert "did you mean 'tiny/table-1'" in reproduce("tiny/tabel-1", code=2)
    assert "no row has 'third' in its name; choose from 'first', 'first, remembered'" in reproduce("tiny/table-1", "--row", "third", code=2)
    assert "reproduce list` shows all" in reproduce("list", "--row", "fourth", code=2)
    assert "--budget must be a number above 0 and at most 1, got \"2\"" in reproduce("tiny", "--budget", "2", code=2)
    own, reproduce.output = reproduce.output, reproduce.folder / "other"
    subprocess.run([reproduce.program, "sweep", "run", reproduce.folder / "experiments/tiny/first.yaml", "seeds=1..2", "--output", reproduce.output, "--plan", "--quiet"],
                   check=True)
    assert "holds the sweep first, not reproduction; use another folder (--output)" in reproduce("tiny/first", "--plan", code=2)
    reproduce.output = own
    assert "would replace that of all; name its folder with --to" in reproduce("report", "tiny/table-1", code=2)
    listed = reproduce.folder / "experiments/papers/published.yaml"
    listed.rename(listed.with_suffix(".away"))
    assert f"{listed}: there is no such file" in reproduce("list", code=2)
    reproduce.publish(more="  - {paper: tiny, item: x, title: T, metric: loss, kind: curve, rows: [{row: a, file: f.yaml, valeu: 3}]}\n")
    said = reproduce("list", code=2)
    assert "published.yaml:" in said and "there is no key valeu; did you mean 'value'" in said, said
    reproduce.publish(more="""  - {paper: tiny, item: x, title: T, panels: [a], metric: loss, kind: curve, rows: [{row: "b, c", file: tiny/first.yaml}]}
  - {paper: tiny, item: y, title: T, against: a, metric: loss, kind: curve, rows: [{row: "a = b", file: tiny/first.yaml}]}
  - {paper: tiny, item: z, title: T, panel: [a], metric: loss, kind: curve, rows: []}
""")
    said = reproduce("list", code=2)
    for words in ("the row's name has none of the panels a", 'the row\'s name has no part "a = NUMBER"', "there is no key panel; did you mean 'panels'"):
        assert words in said, (words, said)
    reproduce.publish(more="  - {paper: tiny, item: x, title: T, metric: loss, kind: curve, rows: [{row: a, file: tiny/nowhere.yaml}]}\n")
    said = reproduce("list", code=2)
    assert "published.yaml:" in said and "nowhere.yaml" in said, said


def main():
    with tempfile.TemporaryDirectory() as folder:
        reproduce = Reproduction(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(folder))
        assert set(reproduce.states().values()) == {"not run", "not measured", "needs a closed corpus"}, reproduce.states()
        for check in (check_budget, check_whole, check_values, check_criteria, check_order, check_others_runs, check_changed_default, check_divergence, check_failed_run, check_paired_seeds, check_changed_run, check_quantities, check_kill, check_timings, check_stopped_run, check_report,
                      check_record, check_errors):
            check(reproduce)
            print(check.__name__)


if __name__ == "__main__":
    main()
